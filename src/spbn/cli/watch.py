"""``spbn watch``: alarms, with their reasons, for rows that come line by line, as CSV or as JSON objects."""

from __future__ import annotations

import codecs
import csv
import io
import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, final

import click

from spbn._base.display import printable
from spbn.cli import inputs, options
from spbn.cli.command import command, complain, note, plain
from spbn.cli.sources import EXCEL, GZIP, PARQUET, Source
from spbn.errors import ArgumentError, DataError, SpbnError, quoted

if TYPE_CHECKING:
    from spbn.monitoring import Monitor, MonitorResult
    from spbn.network import Network
    from spbn.tables.table import Variable

SAVE_EVERY = 10.0  # seconds between two times that the state is saved
MOST_COMPLAINTS = 20  # about lines that are not rows, before they are only counted
NO_REFERENCE = (
    "spbn watch compares rows with rows in normal operation: give them with --reference table.csv. The table "
    "that the model was learned from will do."
)
AT_A_TIME = 1 << 16  # bytes that are read at once, if there are so many
LONGEST_LINE = 1 << 20  # bytes: what is longer is not a row
MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "none", "-"})
SEPARATORS = (",", "\t", ";")
_NUMBER = re.compile(r"[-+]?\d*\.\d+([eE][-+]?\d+)?")


@command
@options.model_argument
@options.table_argument(
    "rows",
    default="-",
    help="The rows: a file, or - for standard input. CSV with a header line, or one JSON object per line.",
)
@options.table_option(
    "--reference",
    help="A table of rows in normal operation: rows that the model has not seen, or those that it was "
    "learned from.",
)
@click.option(
    "--alarm", type=float, help="Share of rows in normal operation that may raise an alarm. Default: 0.001."
)
@click.option("--drift", type=float, help="Rate of false drift alarms, per row. Default: 0.00001.")
@options.file_option(
    "--state",
    "Keep the state in this file, and resume from it if it exists: watch.json. Then no --reference is "
    "needed.",
)
@click.option("--label", help="A column that identifies rows, such as a time.")
@click.option("--all", "shows_all", is_flag=True, help="Print every row, not only alarms.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects, one per line.")
@options.seed_option
def watch(
    model: Path,
    rows: Source,
    reference: Source | None,
    alarm: float | None,
    drift: float | None,
    state: Path | None,
    label: str | None,
    shows_all: bool,
    as_json: bool,
    seed: int,
) -> None:
    """Watch rows as they arrive, and print alarms with reasons.

    Press Ctrl-C to stop.

    [dim]tail -f sensors.csv | spbn watch model.spbn - --reference normal.csv --alarm 0.001[/]
    """
    inputs.require_targets(state, inputs=[model, reference, rows])
    if reference is not None and reference.is_standard:
        raise ArgumentError("--reference must be a file: standard input is for the rows to watch.")
    if rows.path.is_dir():
        raise DataError(f"{rows} is a folder, not a file with rows.")
    if rows.path.suffix.lower() in (PARQUET, EXCEL, GZIP):
        raise DataError(f"spbn watch reads text, line by line: {rows} has to be written as CSV first.")
    monitor = _monitor(inputs.load_any_model(model), reference, state, alarm, drift, seed)
    printer = AlarmPrinter(monitor, shows_all=shows_all, as_json=as_json, name=str(rows))
    reader = RowReader(monitor.variables, label, monitor.keys, printer.absent, rows.sep, rows.decimal)
    saved = time.monotonic()
    with nullcontext(sys.stdin.buffer) if rows.is_standard else rows.path.open("rb") as stream:
        try:
            for lines in lines_of(stream, encoding=rows.encoding):
                printer.take([line for line in lines if line.number > (rows.skip_rows or 0)], reader)
                sys.stdout.flush()
                if state is not None and time.monotonic() - saved > SAVE_EVERY:
                    monitor.save(state)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            pass  # the usual way to stop watching
        finally:
            if state is not None:
                monitor.save(state)
    if not as_json:
        printer.summarise()
    if printer.lines and not monitor.rows:
        raise click.exceptions.Exit(1)


def _monitor(
    network: Network,
    reference: Source | None,
    state: Path | None,
    alarm: float | None,
    drift: float | None,
    seed: int,
) -> Monitor:
    """Make a monitor, or go on with one that was saved."""
    from spbn.cli.files import present
    from spbn.monitoring.monitor import ALARM, DRIFT, Monitor

    for option, value in (("--alarm", alarm), ("--drift", drift)):
        if value is not None and not 0.0 < value < 1.0:
            raise ArgumentError(f"{option} must be between 0 and 1. Got {value:g}.")
    if state is not None and state.exists():
        monitor = Monitor.load(state, network, alarm=alarm, drift=drift)
        unread = "" if reference is None else f"; {reference} is not read again"
        note(f"resuming from {state}, after {monitor.rows:,} rows{unread}.")
        return monitor
    if reference is None:
        raise ArgumentError(NO_REFERENCE)
    frame = inputs.frame_for(network, reference)
    holes = int((~present(frame).all(axis=1)).sum())
    if holes:
        have, them = ("has", "it") if holes == 1 else ("have", "them")
        of_all = f"{holes} of {len(frame)} reference rows"
        note(f"{of_all} {have} missing values: rows are not compared with {them}.")
    with inputs.busy("scoring the reference rows"):
        alarm, drift = ALARM if alarm is None else alarm, DRIFT if drift is None else drift
        return Monitor(network, frame, alarm=alarm, drift=drift, seed=seed)


@final
class AlarmPrinter:
    """Judges rows, prints what is found, and counts."""

    def __init__(self, monitor: Monitor, *, shows_all: bool, as_json: bool, name: str) -> None:
        self._monitor, self._shows_all, self._as_json, self._name = monitor, shows_all, as_json, name
        self.lines = 0  # that are not rows
        self._before = (monitor.rows, monitor.alarms, monitor.drift_alarms)

    def take(self, lines: list[Line], reader: RowReader) -> None:
        rows = []
        for line in lines:
            try:
                row = reader.row(line)
            except DataError as error:
                self._skip(line.number, error)
            else:
                rows += [] if row is None else [row]
        if rows:
            self._judge(rows)

    def _judge(self, rows: list[Row]) -> None:
        """Judge rows together or, if one of them cannot be judged, one by one without it."""
        import numpy as np

        names = self._monitor.keys
        try:
            keys = dict(zip(names, zip(*(row.keys for row in rows), strict=True), strict=True))
            result = self._monitor.check_columns(np.stack([row.values for row in rows], axis=1), keys)
        except DataError as error:
            if len(rows) == 1:
                self._skip(rows[0].line, error)
                return
            for row in rows:
                self._judge([row])
        else:
            for k in range(len(rows)) if self._shows_all else sorted({*result.reasons, *result.drifts}):
                found = _document(rows[k], result, k)
                sys.stdout.write(f"{json.dumps(found) if self._as_json else self._words(found)}\n")

    def absent(self, number: int, names: list[str]) -> None:
        are, them = ("it is", "it") if len(names) == 1 else ("they are", "them")
        over_time = self._monitor.network.is_dynamic
        so = f"what depends on {them} is not judged" if over_time else "integrated out"
        note(f"{self._name}, line {number} has no {quoted(names)}: {are} unknown, and {so}.")

    def _skip(self, number: int, reason: DataError) -> None:
        """Say why a line is not a row; the first few times."""
        self.lines += 1
        if self.lines <= MOST_COMPLAINTS:
            complain(f"{self._name}, line {number} is left out: {str(reason).rstrip('.')}.")
        if self.lines == MOST_COMPLAINTS:
            complain("further lines that are left out are only counted.")

    def summarise(self) -> None:
        monitor = self._monitor
        after = (monitor.rows, monitor.alarms, monitor.drift_alarms)
        rows, alarms, drifts = (now - then for now, then in zip(after, self._before, strict=True))
        left_out = f", {_count(self.lines, 'line')} left out" if self.lines else ""
        note(
            f"{_count(rows, 'row')} watched: {_count(alarms, 'alarm')}, {_count(drifts, 'drift alarm')}"
            f"{left_out}."
        )

    def _words(self, found: Mapping[str, Any]) -> str:
        share, parts = found["share"], []
        if found["alarm"]:
            rarity = f"1 row in {1.0 / share:,.0f}" if share > 1e-9 else "fewer than 1 row in a billion"
            reasons = " and ".join(f"{r['variable']} = {_short(r['value'])}" for r in found["blame"])
            parts.append(f"ALARM: {rarity} is as unusual{f', because of {reasons}' if reasons else ''}")
        elif self._shows_all:
            parts.append("not judged" if share is None else f"share {share:.3g}")
        if found["drift_alarm"]:
            moved = " and ".join(f"{m['variable']}{_by(m['shift'])}" for m in found["drift_blame"])
            parts.append(f"DRIFT: {moved}, since row {found['since']} or so")
        elif self._shows_all:
            parts.append(f"drift {found['drift']:.2g}")
        name = f" [{found['label']}]" if "label" in found else ""
        return printable(f"row {found['row']} (line {found['line']}){name}: {'; '.join(parts)}")


def _document(row: Row, result: MonitorResult, k: int) -> dict[str, Any]:
    found: dict[str, Any] = {"row": result.first + k + 1, "line": row.line}
    if row.label:
        found["label"] = row.label
    found |= {
        "share": plain(result.p_values[k]),
        "alarm": bool(result.alarms[k]),
        "blame": [
            {"variable": reason.node, "value": reason.value, "drop": reason.drop}
            for reason in result.reasons.get(k, ())
        ],
        "drift": float(result.drift[k]),
        "drift_alarm": k in result.drifts,
    }
    if k in result.drifts:
        drift = result.drifts[k]
        found["drift_blame"] = [
            {"variable": name, "shift": None if shift != shift else shift}
            for name, shift in zip(drift.blame, drift.shifts, strict=True)
        ]
        found["since"] = drift.since + 1
    return found


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _by(shift: float | None) -> str:
    """Say how far something has moved, if that can be said and is worth it."""
    return "" if shift is None or abs(shift) < 0.05 else f" by {shift:+.1f} standard deviations"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


class Line(NamedTuple):
    """A line and its number, counted from 1; no text if it cannot be read."""

    number: int
    text: str | None


class Row(NamedTuple):
    """The values of a row, NaN being missing; the number of its line; what it is called; and its keys."""

    values: list[float]
    line: int
    label: str
    keys: tuple[str, ...] = ()


def lines_of(stream: BinaryIO, *, encoding: str | None = None) -> Iterator[list[Line]]:
    """Yield lines as they come: all that are there already, or else the next one when it is there.

    `encoding`: UTF-8 if nothing is said. What cannot be decoded makes a line that is not a row.
    """
    # Bytes that are not UTF-8 become half characters, which show in which lines they were.
    is_utf8 = encoding is None or codecs.lookup(encoding).name == "utf-8"
    decoder = codecs.getincrementaldecoder(encoding or "utf-8")("surrogateescape" if is_utf8 else "replace")
    number = 0
    rest = ""
    skipping = False  # the rest of a line that is too long
    for chunk in _chunks(stream):
        try:
            *whole, rest = (rest + decoder.decode(chunk, final=not chunk)).split("\n")
        except UnicodeError:
            raise DataError(
                f"the rows are not text in the encoding {encoding!r}: give the right one with --encoding."
            ) from None
        if not chunk and (rest or skipping):
            whole.append(rest)
        found = []
        for text in whole:
            number += 1
            content = text.removeprefix("\ufeff") if number == 1 else text
            found.append(Line(number, content.rstrip("\r") if not skipping and _is_readable(text) else None))
            skipping = False
        if len(rest) > LONGEST_LINE:
            rest, skipping = "", True
        if found:
            yield found


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Yield bytes as they come; the last ones are none."""
    try:
        descriptor = stream.fileno()
    except (AttributeError, io.UnsupportedOperation):
        yield from stream
    else:
        while chunk := os.read(descriptor, AT_A_TIME):  # waits for the first byte, not for all
            yield chunk
    yield b""


def _is_readable(text: str) -> bool:
    try:
        return len(text.encode()) <= LONGEST_LINE
    except UnicodeEncodeError:  # it has half characters
        return False


class NamesError(SpbnError):
    """The first line makes no sense, and so no other does."""


@final
class RowReader:
    """Reads lines as rows of some variables.

    `label`: a column that says what rows are called.
    `keys`: columns that say which series a row belongs to, and when it was.
    `on_absent`: is told the variables that the stream lacks, when that shows: their values are missing.
    `sep`, `decimal`: what is between the fields of CSV, and before the decimals of a number. The first is
    recognised in the line of names, and the second is a point, if nothing is said.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        label: str | None = None,
        keys: Sequence[str] = (),
        on_absent: Callable[[int, list[str]], None] = lambda number, names: None,
        sep: str | None = None,
        decimal: str | None = None,
    ) -> None:
        self._variables, self._label, self._keys, self._on_absent = variables, label, keys, on_absent
        self._told: set[str] = set()  # of which variables it was told that they are absent
        self._separators, self._decimal = SEPARATORS if sep is None else (sep,), decimal or "."
        self._is_json: bool | None = None
        self._separator = ","
        self._names: list[str] = []  # in the first line
        self._places: dict[str, int] = {}  # of the columns that matter

    def row(self, line: Line) -> Row | None:
        """Return the row of a line; None if it is empty or holds the names.

        Raises
        ------
        DataError
            The line is not a row; the message says why.
        """
        if line.text is None:
            raise DataError(
                "it is too long, or not text in UTF-8: if it is in another encoding, say so, as in "
                "--encoding cp1252"
            )
        text = line.text.strip()
        if not text:
            return None
        if self._is_json is None:
            self._is_json = text.startswith("{")
            if not self._is_json:
                self._read_names(line.number, line.text)
                return None
        if self._is_json:
            found = _object(text)
            self._tell(line.number, found)
            return self._row(line.number, found, _as_number)
        try:
            return self._row(line.number, self._record(line.text), self._value)
        except DataError:
            if not self._has_names(line.text):
                raise
            self._read_names(line.number, line.text)  # again, perhaps in another order
            return None

    def _read_names(self, number: int, text: str) -> None:
        """Find out from the first line which field is which variable, or refuse the stream."""
        sources = [v.reading.source for v in self._variables if v.reading is not None]
        variables = list(dict.fromkeys([*(v.name for v in self._variables), *sources]))
        candidates = {mark: [name.strip() for name in _fields(text, mark)] for mark in self._separators}
        self._separator = max(candidates, key=lambda mark: len({*variables} & {*candidates[mark]}))
        found = candidates[self._separator]
        if not {*variables} & {*found}:
            self._is_json = None
            raise NamesError(
                f"the first line must hold the names of the columns, or a JSON object: none of "
                f"{quoted(variables)} is in {text!r:.80}."
            )
        repeated = sorted({name for name in found if found.count(name) > 1 and name in variables})
        if repeated:
            raise NamesError(f"the first line has {quoted(repeated)} more than once.")
        if self._label is not None and self._label not in found:
            raise NamesError(f"--label: the first line has no {self._label!r}. It has {quoted(found)}.")
        lacking = [key for key in self._keys if key not in found]
        if lacking:
            raise NamesError(f"the first line has no {quoted(lacking)}, which the model needs.")
        self._names = found
        wanted = (*variables, *self._keys, self._label)
        self._places = {name: found.index(name) for name in wanted if name is not None and name in found}
        self._tell(number, found)

    def _has_names(self, text: str) -> bool:
        """Tell whether a line has the names of the columns, as where several tables follow each other."""
        with suppress(DataError):
            return sorted(map(str.strip, _fields(text, self._separator))) == sorted(self._names)
        return False

    def _record(self, text: str) -> dict[str, str]:
        fields = text.split(self._separator) if '"' not in text else _fields(text, self._separator)
        if len(fields) != len(self._names):
            found = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
            raise DataError(f"it has {found}, and the first line has {len(self._names)} names")
        return {name: fields[place].strip() for name, place in self._places.items()}

    def _row(self, number: int, found: Mapping[str, Any], read: Callable[[Variable, Any], float]) -> Row:
        values = [read(variable, self._field(variable, found)) for variable in self._variables]
        label = "" if self._label is None else str(found.get(self._label, ""))
        lacking = [
            key for key in self._keys if found.get(key) is None or (not self._is_json and not found[key])
        ]
        if lacking:
            raise DataError(f"it has no {quoted(lacking)}")
        return Row(values, number, label, tuple(str(found[key]) for key in self._keys))

    def _value(self, variable: Variable, field: str | None) -> float:
        """Read a field; None if the stream has none for a variable."""
        from spbn.tables.rows import number_of

        if variable.reading is not None:
            return number_of(variable, variable.reading.value(field))
        if field is None or (field not in variable.levels and field.lower() in MISSING):
            return math.nan
        if variable.levels:
            return number_of(variable, field)
        other = "," if self._decimal == "." else "."
        written = field.replace(self._decimal, ".") if other not in field else ""
        value: Any = None
        if "_" not in written:  # which Python allows in numbers
            with suppress(ValueError):
                value = float(written)
        if value is None:
            has_other = _NUMBER.fullmatch(field.replace(other, ".", 1)) is not None
            comma = "comma" if other == "," else "point"
            remedy = f": if that is a decimal {comma}, use --decimal {other}" if has_other else ""
            raise DataError(f"{variable.name!r} must be a number. Got {field!r:.60}{remedy}")
        if math.isinf(value):
            raise DataError(f"{variable.name!r} is infinite: leave the field empty if its value is unknown")
        return number_of(variable, value)

    def _field(self, variable: Variable, found: Mapping[str, Any]) -> Any:
        """Return what a row has for a variable; None if nothing."""
        from spbn.tables.readings import source_of

        source = source_of(variable.reading, variable.name, found)
        return None if source is None else found[source]

    def _tell(self, number: int, there: Mapping[str, Any] | Sequence[str]) -> None:
        from spbn.tables.readings import source_of

        new = [
            v.name
            for v in self._variables
            if v.name not in self._told and source_of(v.reading, v.name, there) is None
        ]
        if new:
            self._told.update(new)
            self._on_absent(number, new)


def _as_number(variable: Variable, value: Any) -> float:
    from spbn.tables.rows import number_of

    return number_of(variable, value if variable.reading is None else variable.reading.value(value))


def _object(text: str) -> dict[str, Any]:
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    raise DataError("it is not a JSON object")


def _fields(text: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([text], delimiter=separator, skipinitialspace=True), [])
    except csv.Error as error:  # a field that is too long, or an end of line within one
        raise DataError(f"it cannot be read as CSV ({error})") from None
