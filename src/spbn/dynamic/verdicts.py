"""What a monitor says about rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spbn.explain.unusual import Reason
from spbn.numerics.arrays import BoolArray, FloatArray


@dataclass(frozen=True)
class Drift:
    """A drift alarm.

    Attributes
    ----------
    row
        The number of the row that raised it, counted from 0.
    since
        The number of the row where the drift seems to have begun.
    blame
        The variables to blame, the worst first.
    shifts
        How far each of them has moved, in standard deviations given its parents; NaN if it is discrete.

    Examples
    --------
    >>> import spbn
    >>> from spbn.tables import training_table
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> monitor = spbn.Monitor(network, data)
    >>> moved = training_table(data.assign(A=data["A"] + 3.0), "error")
    >>> first = next(iter(monitor.judge(moved).drifts.values()))
    >>> print(first.blame)
    ('A',)
    """

    row: int
    since: int
    blame: tuple[str, ...]
    shifts: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What a monitor says about some rows.

    Attributes
    ----------
    first
        The number of the first row, counted from 0 since the monitor was made.
    shares, alarms
        How many rows in normal operation are as unusual, and whether those are too few; NaN and False if
        a row cannot be judged yet.
    drift
        The statistic of the drift test, relative to that of an alarm.
    reasons
        Of every row with an alarm, by its place among these rows: the variables to blame.
    drifts
        The drift alarms, by the place of their rows among these rows.
    """

    first: int
    shares: FloatArray
    alarms: BoolArray
    drift: FloatArray
    reasons: Mapping[int, tuple[Reason, ...]] = field(default_factory=dict)
    drifts: Mapping[int, Drift] = field(default_factory=dict)
