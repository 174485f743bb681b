"""Folds of a cross-validation, and rows to hold out.

Rows are dealt at random. If that leaves a level of a discrete column out of the rows that something is fitted
to, a row that has it changes places with another one: what is fitted then knows the level.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn._base.checks import is_whole
from spbn.errors import ArgumentError, DataError, argument, in_python


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to validate with, rows to train on, and the fold of each of these; some rows may be neither."""

    training: IntArray
    folds: IntArray
    validation: IntArray


def fold_labels(
    rows: int,
    folds: int | npt.ArrayLike,
    seed: Seed,
    *,
    held_out: int = 0,
    discrete: FloatArray | None = None,
) -> IntArray:
    """Return the fold of every row, 0 to k - 1.

    `folds`: a count k: the rows are shuffled into folds whose sizes differ by one at most. Or a label for
    every row, taken as it is.
    `held_out`: how many further rows were set aside before, for the wording of errors.
    `discrete`: the level codes of discrete columns, columns × rows. Levels that occur twice or more often are
    in at least two folds, where that is possible, so that they never miss from the rows outside a fold.
    """
    if is_whole(folds):
        if not 2 <= folds <= rows:
            aside = f"training rows: {rows}, with {held_out} of {rows + held_out} set aside for validation"
            counted = f"the number of {aside}" if held_out else f"the number of rows, {rows}"
            raise ArgumentError(f"{argument('folds')} must be between 2 and {counted}. Got {folds} instead.")
        labels = generator(seed).permutation(rows) % int(folds)
        _spread_levels(labels, discrete, 2, lambda counts: bool((counts > 0).sum() > 1))
    else:
        labels = _given_labels(rows, folds)
    left = rows - int(np.bincount(labels).max())
    if left < 2:
        raise DataError(
            f"folds of {rows} rows leave {left} to fit on, and 2 are needed: use more rows or folds."
        )
    return labels


def holdout_rows(
    rows: int, fraction: float, seed: Seed, *, discrete: FloatArray | None = None
) -> tuple[IntArray, IntArray]:
    """Split row numbers at random into those kept and the fraction held out, each in order.

    Every level of discrete columns, given as codes, columns × rows, is kept in some row where possible.
    """
    if not isinstance(fraction, float | int | np.floating) or not 0 < fraction < 1:
        raise ArgumentError(
            f"{argument('validation')} must be a fraction between 0 and 1{in_python(', or a table')}. "
            f"Got {fraction!r} instead."
        )
    held_out = round(rows * float(fraction))
    if not 0 < held_out < rows:
        purpose = "validate with" if held_out == 0 else "train on"
        raise ArgumentError(
            f"a validation fraction of {fraction} of {rows} rows leaves no row to {purpose}: choose another."
        )
    order = generator(seed).permutation(rows)
    is_held_out = np.zeros(rows, dtype=np.int64)
    is_held_out[order[:held_out]] = 1
    _spread_levels(is_held_out, discrete, 1, lambda counts: bool(counts[0] > 0))
    return np.flatnonzero(is_held_out == 0), np.flatnonzero(is_held_out)


def _spread_levels(
    labels: IntArray, discrete: FloatArray | None, fewest: int, is_spread: Callable[[IntArray], bool]
) -> None:
    """Exchange labels of rows until every level that occurs often enough is spread, where that is possible.

    Levels that occur less often than `fewest` are not looked at; `is_spread` tells from how often a level
    occurs with every label whether that is enough.
    """
    if discrete is None:
        return
    codes, kinds = discrete.astype(np.int64), int(labels.max()) + 1
    counts = [
        np.bincount(column * kinds + labels, minlength=(int(column.max()) + 1) * kinds).reshape(-1, kinds)
        for column in codes
    ]

    def exchange(first: int, second: int) -> None:
        for column, counted in zip(codes, counts, strict=True):
            for row, other in ((first, second), (second, first)):
                counted[column[row], labels[row]] -= 1
                counted[column[row], labels[other]] += 1
        labels[first], labels[second] = labels[second], labels[first]

    def lacking(*rows: int) -> int:
        """Count the levels of some rows that are not spread."""
        return sum(
            not is_spread(counted[column[row]])
            for column, counted in zip(codes, counts, strict=True)
            for row in rows
        )

    for column, counted in zip(codes, counts, strict=True):
        for level in np.flatnonzero(counted.sum(axis=1) >= fewest).tolist():
            if is_spread(counted[level]):
                continue
            row = int((column == level).argmax())
            for other in np.flatnonzero(labels != labels[row]).tolist():
                before = lacking(row, other)
                exchange(row, other)
                if lacking(row, other) < before:
                    break
                exchange(row, other)


def _given_labels(rows: int, labels: npt.ArrayLike) -> IntArray:
    try:
        array = np.asarray(labels)
        distinct, codes = np.unique(array, return_inverse=True)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{argument('folds')} must be a count, or labels of one kind. Got {labels!r:.100}."
        ) from None
    if array.shape != (rows,):
        raise ArgumentError(
            f"{argument('folds')} must be a count or one label for each of the {rows} rows. "
            f"Got shape {array.shape}."
        )
    if len(distinct) < 2:
        raise ArgumentError(
            f"{argument('folds')} must label at least 2 folds. All labels are {distinct[0]!r}."
        )
    return codes.astype(np.int64)
