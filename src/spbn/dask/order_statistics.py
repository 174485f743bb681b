"""Order statistics of columns over rows that workers hold: exact, from counts.

Values between two bounds are counted in many bins, the bin that holds the wanted one gives the next bounds,
and once there are few values between these, they are brought here. That takes four to seven passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.dask.mapreduce import Block, Plan
from spbn.rows.store import Columns

BINS = 4096
FEW = 4096  # values that are brought here
GREATEST = 1e300  # beyond all values


class CountRequest(NamedTuple):
    """A column, and pairs of bounds between which values are counted."""

    columns: Columns
    bounds: FloatArray  # pairs × 2


def _values(plan: Plan, block: Block, columns: Columns) -> FloatArray:
    """Return a column in all rows of folds."""
    return block.rows(columns, tuple(range(plan.assignment.folds)))[0]


class Counted(NamedTuple):
    """How many values are in the bins between each of some pairs of bounds, and the ends of these values."""

    counts: IntArray  # pairs × bins
    least: FloatArray
    greatest: FloatArray

    @classmethod
    def join(cls, parts: Sequence[Counted]) -> Counted:
        """Add up what was counted in different rows."""
        counts, least, greatest = zip(*parts, strict=True)
        return cls(np.sum(counts, axis=0), np.min(least, axis=0), np.max(greatest, axis=0))


def count_values(plan: Plan, block: Block, asked: CountRequest) -> Counted:
    """Count the values in the bins between each pair of bounds."""
    values = _values(plan, block, asked.columns)
    counts = np.zeros((len(asked.bounds), BINS), dtype=np.int64)
    least, greatest = np.full(len(counts), np.inf), np.full(len(counts), -np.inf)
    for number, (low, high) in enumerate(asked.bounds):
        between = values[(values >= low) & (values <= high)]
        if len(between):
            counts[number] = np.bincount(np.searchsorted(bin_ends(low, high), between), minlength=BINS)
            least[number], greatest[number] = between.min(), between.max()
    return Counted(counts, least, greatest)


def values_between(plan: Plan, block: Block, asked: CountRequest) -> list[FloatArray]:
    """Return the values between each pair of bounds."""
    values = _values(plan, block, asked.columns)
    return [values[(values >= low) & (values <= high)] for low, high in asked.bounds]


def bin_ends(low: float, high: float) -> FloatArray:
    """Return the upper ends of the bins between two bounds, which the last is."""
    ends = low + (high - low) * (np.arange(1, BINS + 1) / BINS)
    ends[-1] = high
    return ends


def order_statistics(
    gather: Callable[..., list[Any]], columns: Sequence[int], ranks: IntArray, rows: int
) -> FloatArray:
    """Return columns × ranks: the values that would be at these places if columns were sorted.

    `gather`: makes a pass over the rows (`Shards.gather`).
    """
    shape = (len(columns), len(ranks))
    bounds = np.broadcast_to([-GREATEST, GREATEST], (*shape, 2)).copy()
    below, between = np.zeros(shape, dtype=np.int64), np.full(shape, rows)
    while (wide := (between > FEW) & (bounds[..., 0] < bounds[..., 1])).any():
        asked = [CountRequest((c,), bounds[i][wide[i]]) for i, c in enumerate(columns) if wide[i].any()]
        found = Counted(*map(np.concatenate, zip(*gather(count_values, asked, Counted.join), strict=True)))
        for (i, k), counted, *ends in zip(np.argwhere(wide).tolist(), *found, strict=True):
            if ends[0] > bounds[i, k, 0] or ends[1] < bounds[i, k, 1]:
                bounds[i, k] = ends  # there is nothing beyond: the bins were too wide
                continue
            upto = below[i, k] + np.cumsum(counted)
            chosen = int(np.searchsorted(upto, ranks[k], side="right"))
            edges = np.append(bounds[i, k, 0], bin_ends(*bounds[i, k]))
            lowest = edges[0] if chosen == 0 else np.nextafter(edges[chosen], np.inf)
            bounds[i, k] = lowest, edges[chosen + 1]
            below[i, k], between[i, k] = upto[chosen] - counted[chosen], counted[chosen]
    out = bounds[..., 0].copy()
    few = bounds[..., 0] < bounds[..., 1]
    asked = [CountRequest((c,), bounds[i][few[i]]) for i, c in enumerate(columns) if few[i].any()]
    values = [some for found in gather(values_between, asked, _join) for some in found] if asked else []
    for (i, k), some in zip(np.argwhere(few).tolist(), values, strict=True):
        out[i, k] = np.sort(some)[ranks[k] - below[i, k]]
    return out


def _join(parts: Sequence[list[FloatArray]]) -> list[FloatArray]:
    return [np.concatenate(some) for some in zip(*parts, strict=True)]
