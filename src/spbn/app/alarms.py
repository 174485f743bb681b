"""How ``spbn watch`` prints what it finds: in words, or as JSON, one object per line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, final

from spbn.app.answers import plain
from spbn.app.escaping import printable
from spbn.app.terminal import complain, note
from spbn.errors import quoted

if TYPE_CHECKING:
    from spbn.app.streams import Row
    from spbn.dynamic.monitor import Monitor
    from spbn.dynamic.verdicts import Drift, Verdicts
    from spbn.explain import Reason

MOST_COMPLAINTS = 20  # about lines that are not rows, before they are only counted


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
        from spbn.dynamic.network import DynamicNetwork

        what = f"{self._name}, line {number} has no {quoted(names)}: {it} unknown"
        if isinstance(self._monitor.network, DynamicNetwork):
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

    def show(self, rows: list[Row], verdicts: Verdicts) -> None:
        """Print the alarms of some rows, or all rows."""
        wanted = range(len(rows)) if self._every else sorted({*verdicts.reasons, *verdicts.drifts})
        for k in wanted:
            line = self._json(rows[k], verdicts, k) if self._as_json else self._words(rows[k], verdicts, k)
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

    def _words(self, row: Row, verdicts: Verdicts, k: int) -> str:
        share = float(verdicts.shares[k])
        parts = ["not judged" if share != share else f"share {share:.3g}"]
        if verdicts.alarms[k]:
            parts = [f"ALARM: {_rarity(share)}{_because(verdicts.reasons.get(k, ()))}"]
        if k in verdicts.drifts:
            parts.append(f"DRIFT: {_moved(verdicts.drifts[k])}")
        elif self._every:
            parts.append(f"drift {verdicts.drift[k]:.2g}")
        name = f" [{row.label}]" if row.label else ""
        shown = parts if self._every or verdicts.alarms[k] else parts[1:]
        return printable(f"row {verdicts.first + k + 1} (line {row.line}){name}: {'; '.join(shown)}")

    def _json(self, row: Row, verdicts: Verdicts, k: int) -> str:
        found: dict[str, Any] = {"row": verdicts.first + k + 1, "line": row.line}
        if row.label:
            found["label"] = row.label
        found |= {
            "share": plain(verdicts.shares[k]),
            "alarm": bool(verdicts.alarms[k]),
            "blame": [
                {"variable": reason.node, "value": reason.value, "drop": reason.drop}
                for reason in verdicts.reasons.get(k, ())
            ],
            "drift": float(verdicts.drift[k]),
            "drift_alarm": k in verdicts.drifts,
        }
        if k in verdicts.drifts:
            drift = verdicts.drifts[k]
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
