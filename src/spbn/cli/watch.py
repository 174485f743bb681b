"""``spbn watch``: alarms, with their reasons, for rows as they come."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, final

import click

from spbn._base.display import printable
from spbn.cli.command import argument, command
from spbn.cli.inputs import busy, frame_for, load_any_model, require_targets
from spbn.cli.options import FILE, TABLE, model_argument, seed_option, table_options
from spbn.cli.output import complain, note, plain
from spbn.cli.sources import EXCEL, GZIP, PARQUET, Source
from spbn.errors import ArgumentError, DataError, quoted

if TYPE_CHECKING:
    from spbn.cli.stream import Line, Row, RowReader
    from spbn.diagnostics import Reason
    from spbn.monitoring import Drift, Monitor, MonitorResult
    from spbn.network import Network

SAVE_EVERY = 10.0  # seconds between two times that the state is saved
MOST_COMPLAINTS = 20  # about lines that are not rows, before they are only counted
NO_REFERENCE = (
    "spbn watch compares rows with rows in normal operation: give them with --reference table.csv. The table "
    "that the model was learned from will do."
)


@command
@model_argument
@argument(
    "rows",
    metavar="ROWS",
    type=TABLE,
    default="-",
    help="The rows: a file, or - for standard input. CSV with a header line, or one JSON object per line.",
)
@click.option(
    "--reference",
    type=TABLE,
    metavar="TABLE",
    help="A table of rows in normal operation: rows that the model has not seen, or those that it was "
    "learned from.",
)
@click.option(
    "--alarm", type=float, help="Share of rows in normal operation that may raise an alarm. Default: 0.001."
)
@click.option("--drift", type=float, help="Rate of false drift alarms, per row. Default: 0.00001.")
@click.option(
    "--state",
    type=FILE,
    help="Keep the state in this file, and resume from it if it exists: watch.json. Then no --reference is "
    "needed.",
)
@click.option("--label", help="A column that identifies rows, such as a time.")
@click.option("--all", "shows_all", is_flag=True, help="Print every row, not only alarms.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON objects, one per line.")
@seed_option
@table_options
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
    require_targets(state, inputs=[model, reference, rows])
    if reference is not None and reference.is_standard:
        raise ArgumentError("--reference must be a file: standard input is for the rows to watch.")
    if not rows.is_standard:
        _require_text(rows.path)
    network = load_any_model(model)
    monitor = _monitor(network, reference, state, alarm, drift, seed)
    printer = AlarmPrinter(monitor, every=shows_all, as_json=as_json, name=str(rows))
    with _opened(rows) as stream:
        _watch(monitor, rows, stream, printer, state, label)
    if not as_json:
        printer.summarise()
    if printer.lines and not monitor.rows:
        raise click.exceptions.Exit(1)


def _watch(
    monitor: Monitor,
    source: Source,
    stream: BinaryIO,
    printer: AlarmPrinter,
    state: Path | None,
    label: str | None,
) -> None:
    """Judge rows until there are no more, or Ctrl-C; the state is saved in any case."""
    from spbn.cli.stream import RowReader, lines_of

    reader = RowReader(
        monitor.variables,
        label=label,
        keys=monitor.keys,
        on_absent=printer.absent,
        sep=source.sep,
        decimal=source.decimal,
    )
    saved = time.monotonic()
    try:
        for lines in lines_of(stream, encoding=source.encoding):
            found = list(_rows(reader, lines, printer))
            for batch in _check(monitor, found, printer):
                printer.show(*batch)
            sys.stdout.flush()
            if state is not None and time.monotonic() - saved > SAVE_EVERY:
                monitor.save(state)
                saved = time.monotonic()
    except KeyboardInterrupt:
        pass  # the usual way to stop watching
    finally:
        if state is not None:
            monitor.save(state)


def _rows(reader: RowReader, lines: list[Line], printer: AlarmPrinter) -> Iterator[Row]:
    from spbn.cli.stream import is_fatal

    for line in lines:
        try:
            row = reader.row(line)
        except DataError as error:
            if is_fatal(error):
                raise
            printer.skipped(line.number, str(error))
            continue
        if row is not None:
            yield row


def _check(
    monitor: Monitor, rows: list[Row], printer: AlarmPrinter
) -> Iterator[tuple[list[Row], MonitorResult]]:
    """Judge rows together or, if one of them cannot be judged, one by one without it."""
    if not rows:
        return
    import numpy as np

    try:
        keys = dict(zip(monitor.keys, zip(*(row.keys for row in rows), strict=True), strict=True))
        result = monitor.check_columns(np.stack([row.values for row in rows], axis=1), keys)
    except DataError as error:
        if len(rows) == 1:
            printer.skipped(rows[0].line, str(error))
            return
        for row in rows:
            yield from _check(monitor, [row], printer)
        return
    yield rows, result


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
    frame = frame_for(network, reference, with_holes=True)
    holes = int((~present(frame).all(axis=1)).sum())
    if holes:
        have, them = ("has", "it") if holes == 1 else ("have", "them")
        of_all = f"{holes} of {len(frame)} reference rows"
        note(f"{of_all} {have} missing values: rows are not compared with {them}.")
    with busy("scoring the reference rows"):
        return Monitor(
            network,
            frame,
            alarm=ALARM if alarm is None else alarm,
            drift=DRIFT if drift is None else drift,
            seed=seed,
        )


@contextmanager
def _opened(source: Source) -> Iterator[BinaryIO]:
    if source.is_standard:
        yield sys.stdin.buffer
        return
    with source.path.open("rb") as stream:
        yield stream


def _require_text(source: Path) -> None:
    if source.is_dir():
        raise DataError(f"{source} is a folder, not a file with rows.")
    if source.suffix.lower() in (PARQUET, EXCEL, GZIP):
        raise DataError(f"spbn watch reads text, line by line: {source} has to be written as CSV first.")


@final
class AlarmPrinter:
    """Prints what is found, and counts."""

    def __init__(self, monitor: Monitor, *, every: bool, as_json: bool, name: str) -> None:
        self._monitor, self._every, self._as_json, self._name = monitor, every, as_json, name
        self.lines = 0  # that are not rows
        self._before = (monitor.rows, monitor.alarms, monitor.drift_alarms)

    def absent(self, number: int, names: list[str]) -> None:
        """Say which variables a stream lacks."""
        it = "it is" if len(names) == 1 else "they are"
        what = f"{self._name}, line {number} has no {quoted(names)}: {it} unknown"
        if self._monitor.network.is_dynamic:
            it = "it" if len(names) == 1 else "them"
            note(f"{what}, and what depends on {it} is not judged.")
        else:
            note(f"{what}, and integrated out.")

    def skipped(self, number: int, reason: str) -> None:
        """Say why a line is not a row; the first few times."""
        self.lines += 1
        if self.lines <= MOST_COMPLAINTS:
            complain(f"{self._name}, line {number} is left out: {reason.rstrip('.')}.")
        if self.lines == MOST_COMPLAINTS:
            complain("further lines that are left out are only counted.")

    def show(self, rows: list[Row], result: MonitorResult) -> None:
        """Print the alarms of some rows, or all rows."""
        wanted = range(len(rows)) if self._every else sorted({*result.reasons, *result.drifts})
        for k in wanted:
            line = self._json(rows[k], result, k) if self._as_json else self._words(rows[k], result, k)
            sys.stdout.write(line + "\n")

    def summarise(self) -> None:
        """Say how many rows and alarms there were."""
        monitor = self._monitor
        after = (monitor.rows, monitor.alarms, monitor.drift_alarms)
        rows, alarms, drifts = (now - then for now, then in zip(after, self._before, strict=True))
        left_out = f", {_count(self.lines, 'line')} left out" if self.lines else ""
        note(
            f"{_count(rows, 'row')} watched: {_count(alarms, 'alarm')}, {_count(drifts, 'drift alarm')}"
            f"{left_out}."
        )

    def _words(self, row: Row, result: MonitorResult, k: int) -> str:
        share = float(result.p_values[k])
        parts = ["not judged" if share != share else f"share {share:.3g}"]
        if result.alarms[k]:
            parts = [f"ALARM: {_rarity(share)}{_because(result.reasons.get(k, ()))}"]
        if k in result.drifts:
            parts.append(f"DRIFT: {_moved(result.drifts[k])}")
        elif self._every:
            parts.append(f"drift {result.drift[k]:.2g}")
        name = f" [{row.label}]" if row.label else ""
        shown = parts if self._every or result.alarms[k] else parts[1:]
        return printable(f"row {result.first + k + 1} (line {row.line}){name}: {'; '.join(shown)}")

    def _json(self, row: Row, result: MonitorResult, k: int) -> str:
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
            shifts = [None if shift != shift else shift for shift in drift.shifts]
            found["drift_blame"] = [
                {"variable": name, "shift": shift} for name, shift in zip(drift.blame, shifts, strict=True)
            ]
            found["since"] = drift.since + 1
        return json.dumps(found)


def _rarity(share: float) -> str:
    """Say how rare a share is."""
    return (
        f"1 row in {1.0 / share:,.0f} is as unusual"
        if share > 1e-9
        else "fewer than 1 row in a billion is as unusual"
    )


def _because(reasons: tuple[Reason, ...]) -> str:
    shown = [
        f"{r.node} = {r.value:.5g}" if isinstance(r.value, float) else f"{r.node} = {r.value}"
        for r in reasons
    ]
    return f", because of {' and '.join(shown)}" if shown else ""


def _moved(drift: Drift) -> str:
    """Say what has moved, and since when."""
    shown = []
    for name, shift in zip(drift.blame, drift.shifts, strict=True):
        by = "" if shift != shift or abs(shift) < 0.05 else f" by {shift:+.1f} standard deviations"
        shown.append(f"{name}{by}")
    return f"{' and '.join(shown)}, since row {drift.since + 1} or so"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
