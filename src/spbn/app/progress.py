"""A line in the terminal that shows how far long work is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from spbn.app.escaping import printable
from spbn.numerics.compiling import watching_compilation
from spbn.search import Step

COMPILING = "compiling, on the first run only"


@contextmanager
def search_progress(shown: bool, patience: int) -> Iterator[Callable[[Step], None] | None]:
    """Give the `on_step` of a search that updates a progress line; None where nothing is to be shown."""
    if not shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        now = "scoring the first candidates"
        task = display.add_task(now, total=None)

        def on_step(step: Step) -> None:
            nonlocal now
            misses = f", {step.misses} of {patience} misses" if step.misses else ""
            scores = f"score {step.score:.1f}, validation {step.validation_score:.1f}{misses}"
            now = printable(f"step {step.number}: {scores}; {step.operator}")
            display.update(task, description=now)

        def on_compilation(under_way: bool) -> None:
            display.update(task, description=COMPILING if under_way else now)

        with watching_compilation(on_compilation):
            yield on_step


@contextmanager
def counting_progress(shown: bool, title: str, total: int) -> Iterator[Callable[[], None]]:
    """Give a function to call after every piece of work, which moves a progress bar."""
    if not shown:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as display:
        task = display.add_task(title, total=total)
        yield lambda: display.advance(task)


@contextmanager
def working(shown: bool, title: str) -> Iterator[None]:
    """Show that something is being done, and for how long; nothing of it stays on the screen."""
    if not shown:
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        display.add_task(title, total=None)
        yield
