"""A few queries of prepared kernels: the log-density of a child given its parents, in one compiled call.

Where rows are scored one by one, the sums are the least of the work: most of it would be calls and small
arrays. Here whitening, the sums of all variables, those of the parents and their quotient are one call. The
loop over pairs is that of `adding`, so the sums are those of `exact` and `multiscale`.
"""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import LOG_2PI, FloatArray, frozen
from spbn._base.jit import compiled
from spbn.kernels.exact import FEWEST_PAIRS, UNDERFLOW
from spbn.kernels.inner_loop import BLOCK, TILE, TO_BASE_2, add_block, adder, scales_adder, workspace
from spbn.kernels.multiscale import SCALES, SPARSE
from spbn.kernels.spectral import DIMENSIONS

_WIDE_TO_BASE_2 = 0.5 * TO_BASE_2  # for the widest scale


def is_few(shape: tuple[int, ...], asked: int, engine: str) -> bool:
    """Tell whether queries of kernels, variables × rows, are few enough for this, and an engine allows it."""
    d, rows = shape
    return asked <= TILE and asked * rows < FEWEST_PAIRS and (engine != "spectral" or d > DIMENSIONS)


def conditional_log_density(frame: FloatArray, train: FloatArray, queries: FloatArray) -> FloatArray | None:
    """Return the log-density of the last variable given those before it; None if a query is too far out.

    Parameters
    ----------
    frame
        Variables × (centre and a row of the whitener), of the training rows' coordinates; frozen.
    train
        Whitened training rows, variables × rows; frozen.
    queries
        Variables × queries, in the coordinates of the data.
    """
    d, rows = train.shape
    offsets = np.array([_offset(frame, rows)])
    out = np.empty((1, queries.shape[1]))
    adders = (adder(d), adder(max(1, d - 1)))
    work = (workspace(d), workspace(max(1, d - 1)))
    near = _quotients(*adders, frozen(queries), frame, train, TO_BASE_2, UNDERFLOW, 0, offsets, *work, out)
    return out[0] if near else None


def conditional_log_density_by_scale(
    frame: FloatArray, train: FloatArray, queries: FloatArray
) -> FloatArray | None:
    """Do the same at every scale: scales × queries."""
    d, rows = train.shape
    offsets = _offset(frame, rows) - 0.5 * np.log(SCALES)
    out = np.empty((len(SCALES), queries.shape[1]))
    adders = (scales_adder(d), scales_adder(max(1, d - 1)))
    work = (workspace(d, sums=len(SCALES)), workspace(max(1, d - 1), sums=len(SCALES)))
    least = SPARSE * rows
    near = _quotients(
        *adders, frozen(queries), frame, train, _WIDE_TO_BASE_2, least, SCALES.index(1.0), offsets, *work, out
    )
    return out if near else None


def _offset(frame: FloatArray, rows: int) -> float:
    """Return what to add to the logarithm of a quotient of sums, or of a sum if there are no parents."""
    log_rows = math.log(rows) if len(frame) == 1 else 0.0
    return math.log(frame[-1, -1]) - 0.5 * LOG_2PI - log_rows


@compiled()
def _quotients(
    adder: int,
    below_adder: int,
    queries: FloatArray,
    frame: FloatArray,
    train: FloatArray,
    unit: float,
    least: float,
    checked: int,
    offsets: FloatArray,
    work: FloatArray,
    below: FloatArray,
    out: FloatArray,
) -> bool:
    """Put the logarithms of quotients, scales × queries; or stop and say so if a sum is too small.

    Parameters
    ----------
    unit
        What coordinates are multiplied by.
    least, checked
        What a sum must exceed, and at which of the scales.
    work, below
        Workspaces of all variables and of the parents, with zeros.
    """
    d, asked = queries.shape
    for i in range(asked):
        for k in range(d):
            z = 0.0
            for m in range(k + 1):
                z += frame[k, 1 + m] * (queries[m, i] - frame[m, 0])
            work[k, i] = z * unit
            if k < d - 1:
                below[k, i] = z * unit
    for first in range(0, train.shape[1], BLOCK):
        width = min(BLOCK, train.shape[1] - first)
        for k in range(d):
            for j in range(width):
                work[d + k, j] = train[k, first + j] * unit
            if k < d - 1:
                for j in range(width):
                    below[d - 1 + k, j] = work[d + k, j]
        add_block(adder, work, d, width, asked)  # type: ignore[call-arg]
        if d > 1:
            add_block(below_adder, below, d - 1, width, asked)
    for i in range(asked):
        if not work[2 * d + checked, i] > least or (d > 1 and not below[2 * d - 2 + checked, i] > least):
            return False
        for s in range(len(out)):
            log_sum = math.log(work[2 * d + s, i])
            if d > 1:
                log_sum -= math.log(below[2 * d - 2 + s, i])
            out[s, i] = log_sum + offsets[s]
    return True
