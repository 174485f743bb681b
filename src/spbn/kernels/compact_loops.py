"""The loops of `CompactKernels`: reading tables for a few queries, and adding up tails beside a table."""

from __future__ import annotations

import math

import numpy as np

from spbn.kernels.spectral.gridding import interpolate_at
from spbn.numerics.arrays import FloatArray
from spbn.numerics.compiling import compiled
from spbn.numerics.normal import mass as mass_of

_ROOT_2PI = math.sqrt(2.0 * math.pi)


@compiled()
def read_tables(
    first: int,
    end: int,
    queries: FloatArray,
    frame: FloatArray,
    limits: FloatArray,
    pieces: FloatArray,
    joint: FloatArray,
    parents: FloatArray,
    points: FloatArray,
    sums: FloatArray,
    out: FloatArray,
) -> bool:
    """Put whitened queries, the sums of all variables and of the parents, and log-densities.

    A log-density is infinite where the tables have no answer; tells whether they have all answers.

    Parameters
    ----------
    frame
        Variables × (centre, low and high end of the box, offset in cells, and a row of the whitener).
    limits
        The least sums that are precise enough, of all variables and of the parents; how many rows there are,
        which is the sum of no parents; and the spacing of the grids.
    """
    d = len(queries)
    places, below = np.zeros((3, end - first)), np.zeros((3, end - first))
    inside = np.zeros((2, end - first), dtype=np.bool_)
    for i in range(first, end):
        within = True
        for k in range(d):
            z = 0.0
            for m in range(k + 1):
                z += frame[k, 4 + m] * (queries[m, i] - frame[m, 0])
            points[k, i] = z
            inside[1, i - first] = within  # all that come before the last
            if not (frame[k, 1] <= z <= frame[k, 2]):
                within = False
                z = frame[k, 1]
            # The axes of a grid: the first, the last, and then the one between.
            place = z / limits[3] + frame[k, 3]
            places[_axis(k, d), i - first] = place
            if k < d - 1:
                below[_axis(k, d - 1), i - first] = place
        inside[0, i - first] = within
    interpolate_at(places, 0, end - first, pieces, joint, sums[0, first:end])
    if d > 1:
        interpolate_at(below, 0, end - first, pieces, parents, sums[1, first:end])
    scale = math.log(frame[d - 1, 3 + d] / _ROOT_2PI)
    all_answered = True
    for i in range(first, end):
        if d == 1:
            sums[1, i] = limits[2]
        elif not inside[1, i - first]:
            sums[1, i] = 0.0
        answered = inside[0, i - first] and sums[0, i] >= limits[0] and (d == 1 or sums[1, i] >= limits[1])
        out[i] = math.log(sums[0, i] / sums[1, i]) + scale if answered else np.inf
        all_answered &= answered
    return all_answered


@compiled()
def _axis(k: int, d: int) -> int:
    """Return the axis of a grid that a variable lies along; see `Grid.axes`."""
    return 2 if d == 2 and k == 1 else k


@compiled()
def tail_masses(
    first: int,
    end: int,
    train: FloatArray,
    queries: FloatArray,
    lows: FloatArray,
    highs: FloatArray,
    tails: FloatArray,
    out: FloatArray,
) -> None:
    """Put what rows have of intervals below the lower tail's end, and above the upper one's."""
    child = len(train) - 1
    for i in range(first, end):
        if lows[i] >= tails[0] and highs[i] <= tails[1]:
            continue
        for j in range(train.shape[1]):
            square = 0.0
            for k in range(child):
                square += (queries[k, i] - train[k, j]) ** 2
            if square > 80.0:
                continue
            weight = math.exp(-0.5 * square)
            if lows[i] < tails[0]:
                z = train[child, j]
                out[0, i] += weight * mass_of(lows[i] - z, min(highs[i], tails[0]) - z)
            if highs[i] > tails[1]:
                z = train[child, j]
                out[2, i] += weight * mass_of(max(lows[i], tails[1]) - z, highs[i] - z)
