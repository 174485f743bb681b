"""Folds of a cross-validation, and rows to hold out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spbn.errors import ArgumentError, DataError
from spbn.numerics.arrays import IntArray
from spbn.numerics.random import Seed, generator


def fold_labels(rows: int, folds: int | npt.ArrayLike, seed: Seed, *, held_out: int = 0) -> IntArray:
    """Return the fold of every row, 0 to k - 1.

    Parameters
    ----------
    folds
        A count k: the rows are shuffled into folds whose sizes differ by one
        at most. Or a label for every row, taken as it is.
    held_out
        How many further rows were set aside before, for the wording of errors.
    """
    if isinstance(folds, int | np.integer) and not isinstance(folds, bool):
        if not 2 <= folds <= rows:
            aside = f"training rows: {rows}, with {held_out} of {rows + held_out} set aside for validation"
            counted = f"the number of {aside}" if held_out else f"the number of rows, {rows}"
            raise ArgumentError(f"folds must be between 2 and {counted}. Got {folds} instead.")
        labels = generator(seed).permutation(rows) % int(folds)
    else:
        labels = _given_labels(rows, folds)
    left = rows - int(np.bincount(labels).max())
    if left < 2:
        raise DataError(
            f"folds of {rows} rows leave {left} to fit on, and 2 are needed: use more rows or folds."
        )
    return labels


def holdout_rows(rows: int, fraction: float, seed: Seed) -> tuple[IntArray, IntArray]:
    """Split row numbers at random into those kept and the fraction held out, each in order."""
    if not isinstance(fraction, float | int | np.floating) or not 0 < fraction < 1:
        raise ArgumentError(
            f"validation must be a fraction between 0 and 1, or a table. Got {fraction!r} instead."
        )
    held_out = round(rows * float(fraction))
    if not 0 < held_out < rows:
        purpose = "validate with" if held_out == 0 else "train on"
        raise ArgumentError(
            f"a validation fraction of {fraction} of {rows} rows leaves no row to {purpose}: choose another."
        )
    order = generator(seed).permutation(rows)
    return np.sort(order[held_out:]), np.sort(order[:held_out])


def _given_labels(rows: int, labels: npt.ArrayLike) -> IntArray:
    try:
        array = np.asarray(labels)
        distinct, codes = np.unique(array, return_inverse=True)
    except (TypeError, ValueError):
        raise ArgumentError(f"folds must be a count, or labels of one kind. Got {labels!r:.100}.") from None
    if array.shape != (rows,):
        raise ArgumentError(
            f"folds must be a count or one label for each of the {rows} rows. Got shape {array.shape}."
        )
    if len(distinct) < 2:
        raise ArgumentError(f"folds must label at least 2 folds. All labels are {distinct[0]!r}.")
    return codes.astype(np.int64)
