"""What workers do with their rows: every function here makes one pass over some parts of the rows.

What goes back is sums over rows, whatever their number, with three exceptions, each a handful of rows that
lie far from others: those that a table of kernels cannot answer (`read_tables`), the ends of whitened
coordinates (`tails`), and those that a compact density has to keep (`outposts`). Only `collect` sends all
rows, for node types that need them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.threads import available_threads
from spbn.dask.plan import Block, Plan, blocks
from spbn.errors import DataError, setting
from spbn.kernels import exact
from spbn.kernels.estimates import Spans, whitened
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.tables import Lattice, RowTable, TabledDensity
from spbn.kernels.spectral.truncation import Outskirts
from spbn.numerics.moments import Moments
from spbn.rows.store import Columns

TAIL = 2048  # of the least and greatest coordinates that are reported
CHECKS = 2  # of the least dense rows that a table answers, and as many others, are checked


class Survey(NamedTuple):
    """What one look at a part of the rows tells.

    Attributes
    ----------
    moments
        Of the rows with each label.
    low, high, median
        Of every column; the medians are those of the first rows.
    bad
        How many values of every column are missing or infinite.
    dropped
        The rows with such values.
    """

    rows: int
    moments: list[Moments]
    low: FloatArray
    high: FloatArray
    median: FloatArray
    bad: IntArray
    dropped: IntArray


def survey(plan: Plan, parts: Sequence[int]) -> dict[int, Survey]:
    """Look at all columns of some parts; what is empty is left out."""
    return {part: found for part in parts if (found := _surveyed(plan, part)) is not None}


def _surveyed(plan: Plan, part: int) -> Survey | None:
    columns = list(range(len(plan.names)))
    labels_ = range(plan.assignment.folds + 1)
    moments = [Moments.of(np.empty((len(columns), 0))) for _ in labels_]
    low, high = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    median = np.full(len(columns), np.nan)
    bad, dropped, first = np.zeros(len(columns), dtype=np.int64), [], 0
    for block, labels in plan.rows(part, columns):
        finite = np.isfinite(block)
        bad += (~finite).sum(axis=1)
        whole: BoolArray = finite.min(axis=0)
        dropped.append(first + np.flatnonzero(~whole))
        first += block.shape[1]
        kept, mine = (block, labels) if whole.all() else (block[:, whole], labels[whole])
        if not kept.shape[1]:
            continue
        low, high = np.minimum(low, kept.min(axis=1)), np.maximum(high, kept.max(axis=1))
        if np.isnan(median).all():
            median = np.median(kept[:, :1001], axis=1)
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that cannot be squared are refused later
            for label in labels_:
                moments[label] = moments[label] + Moments.of(kept[:, mine == label])
    if not first:
        return None
    rows = sum(found.count for found in moments)
    return Survey(rows, moments, low, high, median, bad, np.concatenate(dropped))


def require_finite(plan: Plan, found: Mapping[int, Survey]) -> None:
    """Refuse missing and infinite values, and say where the first are."""
    for part, seen in sorted(found.items()):
        for name, bad in zip(plan.names, seen.bad.tolist(), strict=True):
            if bad:
                values = "value is" if bad == 1 else "values are"
                raise DataError(
                    f"{plan.chunks[part]}: {bad} {values} missing or infinite in column {name!r}. "
                    f"Fill them, or pass {setting('missing', 'drop')} to leave such rows out."
                )


class Counted(NamedTuple):
    """How many rows have the configurations of some columns: their numbers, and configurations × labels."""

    numbers: IntArray
    counts: IntArray


def count(plan: Plan, parts: Sequence[int], asked: Sequence[Columns]) -> list[Counted]:
    """Count the configurations of sets of discrete columns in some parts."""
    labels = plan.assignment.folds + 1
    out = [count_labels(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), labels) for _ in asked]
    for block in blocks(plan, parts, asked):
        of_rows = np.repeat(np.arange(labels), np.diff(block.starts))
        for place, columns in enumerate(asked):
            found = count_labels(configuration_numbers(plan, block, columns), of_rows, labels)
            out[place] = add_counts([out[place], found])
    return out


def count_labels(numbers: IntArray, of_rows: IntArray, labels: int) -> Counted:
    """Count the labels of rows that have each of some numbers."""
    distinct, places = np.unique(numbers, return_inverse=True)
    counts = np.bincount(places * labels + of_rows, minlength=len(distinct) * labels)
    return Counted(distinct, counts.reshape(-1, labels))


def add_counts(parts: Sequence[Counted]) -> Counted:
    """Add up the counts of different rows."""
    numbers = np.unique(np.concatenate([part.numbers for part in parts]))
    counts = np.zeros((len(numbers), parts[0].counts.shape[1]), dtype=np.int64)
    for part in parts:
        counts[np.searchsorted(numbers, part.numbers)] += part.counts
    return Counted(numbers, counts)


def configuration_numbers(plan: Plan, block: Block, columns: Columns) -> IntArray:
    """Return the configuration of every row of a block, the first column being the most significant."""
    numbers = np.zeros(int(block.starts[-1]), dtype=np.int64)
    for column in columns:
        levels = len(plan.levels[plan.names[column]])
        numbers = numbers * levels + block.columns[block.places[column]].astype(np.int64)
    return numbers


#: By the number of a configuration, the moments of its rows with each label.
MomentsByConfiguration = Mapping[int, Sequence[Moments]]


def moments_by_configuration(
    plan: Plan, parts: Sequence[int], asked: Sequence[Columns]
) -> list[MomentsByConfiguration]:
    """Return the moments of all columns, for every configuration of sets of discrete columns."""
    every = list(range(len(plan.names)))
    none = Moments.of(np.empty((len(every), 0)))
    out: list[dict[int, list[Moments]]] = [{} for _ in asked]
    for block in blocks(plan, parts, [every]):
        for found, columns in zip(out, asked, strict=True):
            numbers = configuration_numbers(plan, block, columns)
            for label, (start, end) in enumerate(pairwise(block.starts.tolist())):
                order = start + np.argsort(numbers[start:end], kind="stable")
                distinct, first = np.unique(numbers[order], return_index=True)
                for number, mine in zip(distinct.tolist(), np.split(order, first[1:]), strict=False):
                    moments = found.setdefault(number, [none] * (plan.assignment.folds + 1))
                    moments[label] = moments[label] + Moments.of(block.columns[:, mine])
    return list(out)


def add_moments(parts: Sequence[MomentsByConfiguration]) -> MomentsByConfiguration:
    """Add up the moments of different rows."""
    out: dict[int, Sequence[Moments]] = {}
    for part in parts:
        for number, found in part.items():
            before = out.get(number)
            out[number] = found if before is None else [a + b for a, b in zip(before, found, strict=True)]
    return out


def collect(plan: Plan, parts: Sequence[int], columns: Columns) -> list[tuple[int, FloatArray, IntArray]]:
    """Return the number of every part, columns of all its rows, and their labels."""
    found = []
    for part in parts:
        pieces = [(np.empty((len(columns), 0)), np.empty(0, dtype=np.int64)), *plan.rows(part, columns)]
        found.append(
            (part, np.concatenate([p for p, _ in pieces], axis=1), np.concatenate([m for _, m in pieces]))
        )
    return found


class TailRequest(NamedTuple):
    """Coordinates of which the tails are asked for: of the rows with some labels."""

    columns: tuple[int, ...]
    centre: FloatArray
    whitener: FloatArray
    labels: tuple[int, ...]


def tails(plan: Plan, parts: Sequence[int], asked: Sequence[TailRequest]) -> list[FloatArray]:
    """Return, for everything asked, its least and greatest coordinates: 2 × variables × at most `TAIL`."""
    found: list[list[FloatArray]] = [[] for _ in asked]
    for block in blocks(plan, parts, [one.columns for one in asked]):
        for number, one in enumerate(asked):
            rows = block.rows(one.columns, one.labels)
            if rows.shape[1]:
                coordinates = whitened(rows - one.centre[:, None], one.whitener)
                found[number] = [join_tails([*found[number], _tails(coordinates)])]
    return [one[0] if one else np.empty((2, len(a.columns), 0)) for one, a in zip(found, asked, strict=True)]


def _tails(coordinates: FloatArray) -> FloatArray:
    if coordinates.shape[1] > TAIL:
        low = np.partition(coordinates, TAIL, axis=1)[:, :TAIL]
        high = np.partition(coordinates, -TAIL, axis=1)[:, -TAIL:]
        return np.stack([low, high])
    return np.stack([coordinates, coordinates])


def join_tails(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the tails of all rows from those of parts."""
    every = np.concatenate(parts, axis=2)
    if every.shape[2] <= TAIL:
        return every
    return np.stack(
        [np.partition(every[0], TAIL, axis=1)[:, :TAIL], np.partition(every[1], -TAIL, axis=1)[:, -TAIL:]]
    )


class TableRequest(NamedTuple):
    """Tables to make: of the rows with each of some sets of labels."""

    columns: tuple[int, ...]
    lattice: Lattice
    labels: tuple[tuple[int, ...], ...]


def spread(plan: Plan, parts: Sequence[int], asked: Sequence[TableRequest]) -> list[list[RowTable]]:
    """Return, for everything asked, the tables of the rows with each of its sets of labels."""
    windows = [[np.zeros(one.lattice.grid.shape) for _ in one.labels] for one in asked]
    counts = [[0 for _ in one.labels] for one in asked]
    for block in blocks(plan, parts, [one.columns for one in asked]):
        for number, one in enumerate(asked):
            for slot, mine in enumerate(one.labels):
                rows = block.rows(one.columns, mine)
                counts[number][slot] += rows.shape[1]
                _put(rows, one.lattice, windows[number][slot])
    return [
        [RowTable(one.lattice, *both) for both in zip(rows, tables, strict=True)]
        for one, rows, tables in zip(asked, counts, windows, strict=True)
    ]


def _put(rows: FloatArray, lattice: Lattice, windows: FloatArray) -> None:
    """Add rows to a table in place: it may be much larger than they are."""
    coordinates, grid = lattice.coordinates(rows), lattice.grid
    near = coordinates[:, grid.covers(coordinates, rim=True)]
    binned = gridding.bin_rows(np.arange(near.shape[1]), grid.positions(near), grid.shape)
    threads = available_threads()
    gridding.spread(binned, gridding.coefficients(), windows, threads)


class DensityRequest(NamedTuple):
    """Densities to read at the rows with a label."""

    columns: tuple[int, ...]
    density: TabledDensity
    label: int
    threshold: float


class Reading(NamedTuple):
    """What a table answers: the sum of the log-heights of rows, how many they are, and what is left.

    Attributes
    ----------
    isolated
        The rows that it cannot answer, variables × rows: a handful, and the only rows that leave a worker.
    checks, heights
        Some rows that it can answer, to check them, and what it answers.
    """

    total: float
    rows: int
    isolated: FloatArray
    checks: FloatArray
    heights: FloatArray


def read_tables(plan: Plan, parts: Sequence[int], asked: Sequence[DensityRequest]) -> list[Reading]:
    """Return what tables answer at the rows of some parts."""
    out: list[list[Reading]] = [[] for _ in asked]
    for block in blocks(plan, parts, [one.columns for one in asked]):
        for number, one in enumerate(asked):
            points = block.rows(one.columns, (one.label,))
            heights = one.density.heights(points)
            good = heights >= one.threshold
            chosen = rows_to_check(heights, good)
            read = Reading(
                float(np.log(heights[good]).sum()),
                int(good.sum()),
                points[:, ~good],
                points[:, chosen],
                heights[chosen],
            )
            out[number] = [join_readings([*out[number], read])]
    empty = [np.empty((len(one.columns), 0)) for one in asked]
    return [
        found[0] if found else Reading(0.0, 0, none, none, np.empty(0))
        for found, none in zip(out, empty, strict=True)
    ]


def rows_to_check(heights: FloatArray, good: BoolArray) -> IntArray:
    """Choose rows to check: the least dense ones that are answered, and some others."""
    answered = np.flatnonzero(good)
    if len(answered) <= 2 * CHECKS:
        return answered
    least = answered[np.argpartition(heights[answered], CHECKS)[:CHECKS]]
    evenly = answered[np.linspace(0, len(answered) - 1, CHECKS).astype(int)]
    return np.union1d(least, evenly)


def join_readings(parts: Sequence[Reading]) -> Reading:
    """Add up readings of the same densities at different rows; of the checks, as many are kept as of one."""
    checks = np.concatenate([part.checks for part in parts], axis=1)
    heights = np.concatenate([part.heights for part in parts])
    chosen = rows_to_check(heights, np.ones(len(heights), dtype=np.bool_))
    return Reading(
        math.fsum(part.total for part in parts),
        sum(part.rows for part in parts),
        np.concatenate([part.isolated for part in parts], axis=1),
        checks[:, chosen],
        heights[chosen],
    )


class KernelRequest(NamedTuple):
    """Kernels to add up at some points, variables × points: those of training rows without a label."""

    columns: tuple[int, ...]
    centre: FloatArray
    whitener: FloatArray
    label: int
    points: FloatArray


def add_kernels(plan: Plan, parts: Sequence[int], asked: Sequence[KernelRequest]) -> list[FloatArray]:
    """Return, for everything asked, the log of the sum of the kernels at its points."""
    out = [np.full(one.points.shape[1], -np.inf) for one in asked]
    folds = tuple(range(plan.assignment.folds))
    for block in blocks(plan, parts, [one.columns for one in asked]):
        starts, training = block.starts, int(block.starts[plan.assignment.folds])
        for number, one in enumerate(asked):
            first, end = starts[one.label], min(starts[one.label + 1], training)
            count = training - max(0, int(end - first))
            if not count or not one.points.shape[1]:
                continue
            rows = block.rows(one.columns, folds)
            points = np.concatenate([rows, one.points], axis=1) - one.centre[:, None]
            span = [
                training,
                points.shape[1],
                0,
                min(first, training),
                max(end, min(first, training)),
                training,
            ]
            values = exact.log_density(
                np.ascontiguousarray(points),
                np.arange(len(rows))[None],
                one.whitener[None, None],
                Spans(np.array([span])),
            )[0, training:]
            out[number] = np.logaddexp(out[number], values + math.log(count))
    return out


class OutpostRequest(NamedTuple):
    """Rows to keep with a compact density: those near the outskirts of all rows; all if there are none."""

    columns: tuple[int, ...]
    outskirts: Outskirts | None
    centre: FloatArray
    whitener: FloatArray


def outposts(plan: Plan, parts: Sequence[int], asked: OutpostRequest) -> FloatArray:
    """Return the rows to keep, variables × rows, in coordinates in which kernels are standard normals."""
    found = [np.empty((len(asked.columns), 0))]
    everything = tuple(range(plan.assignment.folds + 1))
    for block in blocks(plan, parts, [asked.columns]):
        points = block.rows(asked.columns, everything)
        coordinates = whitened(points - asked.centre[:, None], asked.whitener)
        chosen = slice(None) if asked.outskirts is None else asked.outskirts.holds(coordinates)
        found.append(coordinates[:, chosen])
    return np.concatenate(found, axis=1)
