"""What commands print and write: lines for people, one JSON document for programs, and tables.

A result is a `View`, which knows how it is printed and what goes into the document. Here are those that
several commands have; others are beside their commands.

Names come from files, and files from anywhere: every line goes through `say` or `complain`, which write
control characters as escapes instead of sending them to the terminal.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import math
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import islice
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, final

import click

from spbn._base.display import printable
from spbn.cli.sources import STANDARD
from spbn.errors import ArgumentError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from spbn.network import BayesianNetwork, Network
    from spbn.nodes.base import Description

SHOWN_CASES = 24


@functools.cache
def _console(*, stderr: bool) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)


def say(line: str = "", *, style: str | None = None) -> None:
    """Print one line."""
    _console(stderr=False).print(printable(line), style=style)


def say_lines(text: str) -> None:
    """Print text of several lines."""
    for line in text.split("\n"):
        say(line)


def complain(message: str) -> None:
    """Print one line to the error stream."""
    _console(stderr=True).print(printable(f"spbn: {message}"))


def note(message: str) -> None:
    """Print a note to the error stream."""
    complain(f"note: {message}")


def as_option_value(names: Iterable[str]) -> str:
    """Write names as the value of an option that takes several: separated by commas, and fit for a shell."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="").writerow(names)
    return shlex.quote(stream.getvalue())


class View(Protocol):
    """A result, as people and as programs see it."""

    def show(self) -> None:
        """Print it in words."""

    def document(self) -> Mapping[str, Any]:
        """Return what goes into the JSON document."""


@final
class Answer:
    """What a command has found and which files it has written, for people or for programs."""

    def __init__(self, *, as_json: bool = False, table_stream: TextIO | None = None) -> None:
        self.as_json = as_json
        self._table_stream = table_stream
        self._content: dict[str, Any] = {}
        self._files: dict[str, str | list[str]] = {}
        self._is_shown = False

    def give(self, view: View) -> None:
        """Answer with a result."""
        if self.as_json:
            self._content.update(view.document())
        else:
            view.show()
            self._is_shown = True

    def add(self, **content: Any) -> None:
        """Put into the document what is only for programs."""
        self._content.update(content)

    def wrote(self, option: str, path: Path | Sequence[Path], line: str, *, apart: bool = True) -> None:
        """Say that a file was written, and which option asked for it; of several files, name all.

        Parameters
        ----------
        apart
            Whether an empty line comes first, if something was printed before.
        """
        self._files[option] = str(path) if isinstance(path, Path) else [str(one) for one in path]
        if self.as_json:
            return
        if apart and self._is_shown and len(self._files) == 1:
            say()
        say(line)

    def save_rows(self, rows: pd.DataFrame, path: Path) -> None:
        """Write a table to a file, or as CSV to standard output."""
        if path == STANDARD:
            (self._table_stream or sys.stdout).write(rows.to_csv(index=False))
        else:
            from spbn.cli.files import write_table

            write_table(rows, path)

    def write_rows(self, option: str, rows: pd.DataFrame, path: Path | None, what: str | None = None) -> None:
        """Write a table if an option asks for it, and say so."""
        if path is not None:
            self.save_rows(rows, path)
            self.wrote(option, path, f"{what or f'{len(rows)} rows'} written to {shown(path)}")

    @property
    def document(self) -> dict[str, Any]:
        """The answer as plain data."""
        return plain({**self._content, "files": self._files})


def answer_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --json; it is passed its `answer`, which knows who is to read it.

    With --json, whatever else the command prints goes to the error stream, and the document is printed when
    all is done: standard output has one document, or nothing if the command fails. Likewise, where a table
    goes to standard output, nothing else does.
    """

    @click.option("--json", "as_json", is_flag=True, help="Print a JSON document instead of text.")
    @functools.wraps(command)
    def called(*, as_json: bool, **given: Any) -> None:
        takes_output = any(isinstance(value, Path) and value == STANDARD for value in given.values())
        if as_json and takes_output:
            raise ArgumentError("--json and a table cannot both go to standard output (-): give a file.")
        if not as_json and not takes_output:
            command(answer=Answer(), **given)
            return
        answer = Answer(as_json=as_json, table_stream=sys.stdout)
        with redirect_stdout(sys.stderr):
            command(answer=answer, **given)
        if as_json:
            sys.stdout.write(json.dumps(answer.document, indent=2, allow_nan=False) + "\n")

    return called


def shown(path: Path) -> str:
    """Say where a table was written to."""
    return "standard output" if path == STANDARD else str(path)


def plain(value: Any) -> Any:
    """Return a value as JSON has it; what is missing or infinite is null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else None
    if hasattr(value, "tolist"):  # an array, or one of its values
        return plain(value.tolist())
    if isinstance(value, Sequence | set | frozenset):
        return [plain(inner) for inner in value]
    return str(value)


@dataclass(frozen=True)
class NetworkView:
    """A network: its nodes in the order of sampling, how they were found and from what.

    Attributes
    ----------
    details
        Whether to give the parameters of every node.
    """

    network: Network
    details: bool = False

    def show(self) -> None:
        """Print the nodes, parents first, with their types and densities; and how they were found."""
        from spbn.search import PCResult, SearchResult

        network = self.network
        if network.is_dynamic:
            say(f"a row given the {'row' if network.lags == 1 else f'{network.lags} rows'} before it:")
            NetworkView(network.row_network, self.details).show()
            say()
            say(f"the first {'row' if network.lags == 1 else f'{network.lags} rows'} of a series:")
        network = network.parts[0]
        _show_nodes(network, details=self.details)
        if isinstance(network.search, PCResult):
            pdag, tests = network.search.pdag, sum(network.search.tests_run)
            found = f"{count(pdag.arcs, 'arc')} with a known direction, {count(pdag.edges, 'edge')} without"
            say()
            say(f"PC: {tests} independence tests; {found}")
        search = network.type_search if isinstance(network.search, PCResult) else network.search
        if isinstance(search, SearchResult):
            what = "node types: " if search is network.type_search else ""
            say()
            say(f"{what}{count(search.steps, 'step')}, stopped: {search.stop_reason}")

    def document(self) -> dict[str, Any]:
        """Describe the nodes, the arcs, the search and the rows."""
        network = self.network
        if network.is_dynamic:
            static, transition = network.parts
            return {
                "lags": network.lags,
                "series": network.series,
                "time": network.time,
                "transition": NetworkView(transition, self.details).document(),
                "static": NetworkView(static, self.details).document(),
            }
        (network,) = network.parts
        structure, record = network.structure, network.record
        nodes = []
        for name in network.order:
            if name not in network.cpds:
                continue
            cpd = network.cpds[name]
            description = cpd.describe()
            node = {"name": name, "type": cpd.type.name, "parents": list(structure.parents(name))}
            details = _of_description(description) if self.details else {"formula": description.formula}
            nodes.append(node | details)
        return {
            "nodes": nodes,
            "inputs": list(structure.inputs),
            "arcs": [list(arc) for arc in structure.arcs],
            "open_directions": [list(arc) for arc in structure.undecided_arcs()],
            "rows": record.rows,
            "seconds": record.seconds,
            "search": _of_search(network.search),
            "type_search": _of_search(network.type_search),
            **({"settings": record.settings, "versions": record.versions} if self.details else {}),
        }


def _show_nodes(network: BayesianNetwork, *, details: bool) -> None:
    structure = network.structure
    kinds = [str(node_type) for node_type in structure.types.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(sorted(kinds, reverse=True)))
    inputs = f", {count(structure.inputs, 'input')}" if structure.inputs else ""
    say(f"{count(structure.nodes, 'node')} ({counts}){inputs}, {count(structure.arcs, 'arc')}")
    say()
    width = max(map(len, kinds))
    legends: dict[str, None] = {}
    for node in network.order:
        if node not in network.cpds:
            continue
        cpd = network.cpds[node]
        say(f"{structure.type(node):{width}}  {cpd!r}")
        description = cpd.describe()
        if details:
            _show_details(description, " " * (width + 4))
        legends[description.legend] = None
    for legend in filter(None, legends):
        say()
        say(legend, style="dim")


def _show_details(description: Description, indent: str) -> None:
    """Print the tables of a density, and its cases: one line for each."""
    for table in description.tables:
        names, title = max(map(len, table.rows)), table.title
        widths = [max(11, len(column)) for column in table.columns]
        if table.of_probabilities:
            heads = " ".join(f"{name:>{width}}" for name, width in zip(table.columns, widths, strict=True))
            say(f"{indent}{title}  {'':{names}} {heads}")
            title = " " * len(title)
        for name, row in zip(table.rows, table.values, strict=True):
            numbers = " ".join(f"{value:{width}.4g}" for value, width in zip(row, widths, strict=True))
            say(f"{indent}{title}  {name:{names}} {numbers}")
    shown = dict(islice(description.cases.items(), SHOWN_CASES))
    longest = max(map(len, shown), default=0)
    for name, case in shown.items():
        say(f"{indent}{name:{longest}}  {case.formula}")
    if len(description.cases) > len(shown):
        say(f"{indent}and {len(description.cases) - len(shown)} more")


def _of_description(description: Description) -> dict[str, Any]:
    found: dict[str, Any] = {"formula": description.formula}
    if description.tables:
        found["tables"] = [
            {name: getattr(table, name) for name in ("title", "rows", "columns", "values")}
            for table in description.tables
        ]
    if description.shares:
        found["weights"] = dict(description.shares)
    if description.cases:
        found["cases"] = {name: _of_description(case) for name, case in description.cases.items()}
    return found


def _of_search(search: Any) -> dict[str, Any] | None:
    from spbn.search import PCResult, SearchResult

    if isinstance(search, PCResult):
        pdag = search.pdag
        return {
            "tests": sum(search.tests_run),
            "arcs": [list(arc) for arc in pdag.arcs],
            "edges": [list(edge) for edge in pdag.edges],
        }
    if not isinstance(search, SearchResult):
        return None
    return {
        "score": search.score,
        "validation_score": search.validation_score,
        "steps": len(search.steps),
        "best": search.best,
        "stop_reason": search.stop_reason,
    }


@dataclass(frozen=True)
class RowsView:
    """Rows of a table: CSV, or a list of objects."""

    rows: pd.DataFrame

    def show(self) -> None:
        """Print CSV."""
        # What goes into a pipe or a file stays as it is.
        rows = self.rows.rename(columns=printable) if sys.stdout.isatty() else self.rows
        sys.stdout.write(rows.to_csv(index=False))

    def document(self) -> dict[str, Any]:
        """Give one object per row."""
        return {"rows": objects(self.rows)}


def objects(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return one object per row of a table."""
    import pandas as pd

    names = list(map(str, rows.columns))
    # Columns of categories and the like have holes of their own.
    return [
        dict(zip(names, (None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in row), strict=True))
        for row in rows.itertuples(index=False, name=None)
    ]


def standard_error(probability: float, draws: float) -> float:
    """Return the standard error of a probability that was counted among draws."""
    return math.sqrt(probability * (1.0 - probability) / max(draws, 1.0))


def count(things: Collection[Any], word: str, words: str | None = None) -> str:
    """Say how many there are, in words."""
    return f"{len(things)} {word if len(things) == 1 else words or f'{word}s'}"
