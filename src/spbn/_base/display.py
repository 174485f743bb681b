"""How objects and long work are shown, without them knowing it.

A network can be plotted, and a notebook shows it as HTML, but the packages that draw are above the models. So
a model asks here, ``display.html(self)``, and those packages register a function for its class when they are
imported. Nothing imports them until something is to be shown for the first time: then the loader does, which
the package `spbn` itself, above all others, has set.

    @display.html.register(BayesianNetwork)
    def network_html(network: BayesianNetwork) -> str: ...

How far long work is, a line in a terminal or a notebook shows, and nothing of it stays.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import Any, Generic, Protocol, TypeVar, final

Shown = TypeVar("Shown")
Function = TypeVar("Function", bound=Callable[..., Any])


@final
class View(Generic[Shown]):
    """One way to show objects: a function for each class of them."""

    def __init__(self) -> None:
        self._functions: dict[type, Callable[..., Shown]] = {}
        self._load: Callable[[], object] | None = None

    def set_loader(self, load: Callable[[], object]) -> None:
        """Set what imports the modules that register functions: it is called before the first view."""
        self._load = load

    def register(self, *classes: type) -> Callable[[Function], Function]:
        """Show objects of some classes by the function that is decorated."""

        def decorate(function: Function) -> Function:
            self._functions.update(dict.fromkeys(classes, function))
            return function

        return decorate

    def __call__(self, shown: object, *args: Any, **options: Any) -> Shown:
        """Show an object by the function of its class, or of the nearest base class that has one."""
        if self._load is not None:
            self._load()
            self._load = None
        functions = (self._functions[kind] for kind in type(shown).__mro__ if kind in self._functions)
        function = next(functions, None)
        if function is None:
            raise TypeError(f"objects of {type(shown).__name__} have no such view")
        return function(shown, *args, **options)


#: What notebooks show.
html: View[str] = View()
#: The graph as an SVG picture.
svg: View[str] = View()
#: Axes or figures of matplotlib.
plot: View[Any] = View()


def repr_html(self: object) -> str:
    """Show an object in a notebook: the method ``_repr_html_`` of classes that have such a view."""
    return html(self)


# Control characters (C0, DEL, C1), marks that turn the direction of text, line separators, and half
# characters that cannot be encoded. Names in a file may hold any of these, and a terminal obeys them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
COMPILING = "compiling, on the first run only"
NOTHING = {"text/html": "", "text/plain": ""}
PAUSE = 0.1  # seconds between two changes of what a notebook shows


def printable(text: str) -> str:
    r"""Write what a terminal would obey as an escape, such as \x1b; the text is then one line."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Show(Protocol):
    """Changes a line: its text, and how much is done of how much."""

    def __call__(self, text: str, done: int | None = None, total: int | None = None) -> None: ...


def in_notebook() -> bool:
    """Tell whether this runs in a notebook, where a terminal's progress line would not be seen."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    # Some notebooks have shells of their own, derived from this one.
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)


@contextmanager
def working(
    shown: bool, title: str, total: int | None = None, *, bar: bool = False, stays: bool = False
) -> Iterator[Show]:
    """Show that something is being done, with a bar or else for how long.

    Gives a function that changes the text, and says how much is done of how much.
    """
    if not shown:
        yield lambda text, done=None, total=None: None
        return
    if in_notebook():
        with _notebook_line(title, total) as show:
            yield show
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    spinner = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    columns = Progress.get_default_columns() if bar else spinner
    with Progress(*columns, console=Console(stderr=True), transient=not stays) as display:
        task = display.add_task(title, total=total)
        yield lambda text, done=None, total=None: display.update(
            task, description=text, completed=done, total=total
        )


@contextmanager
def _notebook_line(title: str, total: int | None) -> Iterator[Show]:
    from IPython.display import display

    put: Any = display  # it has no types
    start, last = time.monotonic(), 0.0

    def both(text: str, done: int | None, total: int | None) -> dict[str, str]:
        """Return what is shown as HTML, and as text where there is none."""
        extent = "" if total is None else f' value="{done}" max="{total}"'
        bar = f"<progress{extent}></progress>"
        html = f"<div>{bar} {escape(text)} <small>{time.monotonic() - start:.0f} s</small></div>"
        return {"text/html": html, "text/plain": text}

    handle = put(both(title, 0, total), raw=True, display_id=True)

    def show(text: str, done: int | None = None, total: int | None = None) -> None:
        nonlocal last
        if time.monotonic() - last >= PAUSE:
            last = time.monotonic()
            handle.update(both(text, done, total), raw=True)

    try:
        yield show
    finally:
        handle.update(NOTHING, raw=True)


Notice = Callable[[Any], None] | None  # takes what is done, or None where nothing is to be shown


def search_progress(shown: bool, patience: int) -> AbstractContextManager[Notice]:
    """Give the `on_step` of a search that updates a progress line; None where nothing is to be shown."""

    def describe(step: Any) -> str:
        misses = f", {step.misses} of {patience} misses" if step.misses else ""
        scores = f"score {step.score:.1f}, validation {step.validation_score:.1f}{misses}"
        return printable(f"step {step.number}: {scores}; {step.operator}")

    return _line_progress(shown, describe)


def sweep_progress(shown: bool) -> AbstractContextManager[Notice]:
    """Give the `on_sweep` of an order search that updates a progress line; None if nothing is to be shown."""
    return _line_progress(shown, str)


@contextmanager
def _line_progress(shown: bool, describe: Callable[[Any], str]) -> Iterator[Notice]:
    """Give a function that describes what it is given in a progress line, which speaks of compiling, too."""
    if not shown:
        yield None
        return
    from spbn._base.jit import watching_compilation

    now = "scoring the first candidates"
    with working(True, now) as show:

        def on_progress(done: Any) -> None:
            nonlocal now
            now = describe(done)
            show(now)

        def on_compilation(under_way: bool) -> None:
            if under_way or not in_notebook():
                show(COMPILING if under_way else now)

        with watching_compilation(on_compilation):
            yield on_progress


@contextmanager
def counting_progress(shown: bool, title: str, total: int) -> Iterator[Callable[[], None]]:
    """Give a function to call after every piece of work, which moves a progress bar."""
    done = iter(range(1, total + 1))
    with working(shown, title, total, bar=True) as show:
        yield lambda: show(title, next(done, total), total)


@contextmanager
def stage_progress(shown: bool, title: str) -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that shows what is being done, how much of it is done, and how much there is."""
    with working(shown, title, bar=True, stays=True) as show:
        yield lambda what, done, total: show(f"{title}: {what}", done, total)
