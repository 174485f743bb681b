"""A sequential test of drift: does some variable no longer behave as it did in the reference rows?

In every row, every variable has a value of its own distribution function, P(X ≤ x | parents), the
probability integral transform (PIT). Whatever the network gets wrong about that distribution, the *rank* of
this value among those of the reference rows and of all rows seen since is uniform, and independent of all
earlier ranks, as long as the rows are exchangeable (those of a smoothed conformal p-value; Vovk, Gammerman
and Shafer 2005). PIT values are compared by the bin that they fall into, and ties are broken at random, so
that memory is bounded.

For each variable there are bets on kinds of drift: that the ranks rise or fall, spread out or gather. A bet
multiplies what was staked by e(rank), a function with mean 1 over uniform ranks. One unit is staked anew
before every row (Shiryaev and Roberts), and the statistic is the mean R of what all bets have come to:

    R ← (R + 1) · e(rank).

While nothing drifts, R minus the number of rows is a martingale. So an alarm when R reaches 1 / rate is false
with probability m · rate at most within m rows, and comes after 1 / rate rows or more on average
(e-detectors; Shin, Ramdas and Rinaldo 2023). After a drift R grows exponentially, by what the best bet earns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, frozen
from spbn._base.jit import compiled

BINS = 256  # of PIT values
CELLS = 1024  # of ranks, in each of which a bet is constant
#: The kinds of drift that are bet on: ranks as if of a normal variable that has moved by so many standard
#: deviations, or whose own is multiplied.
SHIFTS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)
FACTORS = (0.4, 2.0)
GREATEST = 1e250  # of a stake, which is multiplied by at most CELLS


@cache
def bets() -> FloatArray:
    """Return what the bets pay: kinds × cells, each with mean 1.

    A cell pays its probability under the kind of drift, relative to that under none.
    """
    from scipy.special import ndtr, ndtri

    edges = ndtri(np.linspace(0.0, 1.0, CELLS + 1))
    drifted = [ndtr(edges - shift) for shift in SHIFTS] + [ndtr(edges / factor) for factor in FACTORS]
    return frozen(CELLS * np.diff(np.array(drifted), axis=1))


def bin_counts(pit: FloatArray) -> FloatArray:
    """Count the PIT values of reference rows, variables × rows, in bins; NaN is not counted."""
    counts = np.zeros((len(pit), BINS))
    for variable, row in zip(counts, pit, strict=True):
        known = row[~np.isnan(row)]
        np.add.at(variable, np.minimum((known * BINS).astype(np.int64), BINS - 1), 1.0)
    return counts


@dataclass(frozen=True)
class Change:
    """Where the evidence for a drift is."""

    variable: int  # the number of the variable with the most evidence
    certain: frozenset[int]  # those whose own evidence would be enough for an alarm
    since: int  # the number of the row with which the drift seems to have begun


@final
class DriftTest:
    """A test that goes on row after row, with a false-alarm rate.

    `reference` is how many PIT values of reference rows fall into every bin: variables × `BINS`.
    """

    def __init__(self, reference: FloatArray, rate: float) -> None:
        self._reference, self._rate = frozen(reference), rate
        shape = (len(reference), len(bets()))
        self.rows = 0
        #: How many PIT values fall into every bin, those of reference rows included: variables × `BINS`.
        self.counts: FloatArray = reference.copy()
        #: What every bet has come to: variables × kinds.
        self.stakes = np.zeros(shape)
        #: To tell when a drift began: the best sum of logs of a bet's payments over the last rows, and the
        #: first of these rows.
        self.sums, self.starts = np.zeros(shape), np.zeros(shape, dtype=np.int64)

    def update(self, pit: FloatArray, uniforms: FloatArray) -> tuple[FloatArray, dict[int, Change]]:
        """Take new rows: P(X ≤ x | parents), variables × rows; NaN is missing, and says nothing.

        Uniforms, variables × rows, in [0, 1), break ties. Return the statistic after every row, relative to
        that of an alarm; and for every row with an alarm, by its number, where the drift is. After an alarm
        the test begins again.
        """
        rows = pit.shape[1]
        statistic = np.empty(rows)
        found: dict[int, Change] = {}
        pit, uniforms = frozen(pit), frozen(uniforms)
        first = 0
        while first < rows:
            state = self.counts, self.stakes, self.sums, self.starts
            stop = _advance(first, self.rows, pit, uniforms, bets(), self._rate, state, statistic)
            self.rows += stop - first
            first = stop
            if statistic[stop - 1] >= 1.0:
                found[stop - 1] = self._change()
                self._restart()
        return statistic, found

    def _change(self) -> Change:
        variable = int(self.stakes.sum(axis=1).argmax())
        kind = int(self.stakes[variable].argmax())
        certain = np.flatnonzero(self._rate * self.stakes.mean(axis=1) >= 1.0)
        return Change(variable, frozenset(certain.tolist()), int(self.starts[variable, kind]))

    def _restart(self) -> None:
        self.counts[:] = self._reference
        self.stakes[:] = 0.0
        self.sums[:] = 0.0
        self.starts[:] = self.rows


@compiled()
def _advance(
    first: int,
    seen: int,
    pit: FloatArray,
    uniforms: FloatArray,
    payments: FloatArray,
    rate: float,
    state: tuple[FloatArray, FloatArray, FloatArray, IntArray],
    statistic: FloatArray,
) -> int:
    """Take rows from the first on, up to an alarm; return the number of the row after the last."""
    counts, stakes, sums, starts = state
    variables, bins = counts.shape
    kinds, cells = payments.shape
    for row in range(first, pit.shape[1]):
        for i in range(variables):
            value = pit[i, row]
            if np.isnan(value):
                continue
            bin = min(int(value * bins), bins - 1)
            below = 0.0
            for b in range(bin):
                below += counts[i, b]
            total = below
            for b in range(bin, bins):
                total += counts[i, b]
            rank = (below + uniforms[i, row] * (counts[i, bin] + 1.0)) / (total + 1.0)
            counts[i, bin] += 1.0
            cell = min(int(rank * cells), cells - 1)
            for kind in range(kinds):
                paid = payments[kind, cell]
                stakes[i, kind] = min((stakes[i, kind] + 1.0) * paid, GREATEST)
                if sums[i, kind] <= 0.0:
                    sums[i, kind] = 0.0
                    starts[i, kind] = seen + row - first
                sums[i, kind] += np.log(max(paid, 1e-300))
        mean = 0.0
        for i in range(variables):
            for kind in range(kinds):
                mean += stakes[i, kind]
        statistic[row] = rate * mean / (variables * kinds)
        if statistic[row] >= 1.0:
            return row + 1
    return pit.shape[1]
