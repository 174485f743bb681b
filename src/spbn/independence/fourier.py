"""Random Fourier features: cosines of random projections, whose inner products approximate a Gaussian kernel.

For weights w ~ N(0, 1/width²) and phases b uniform on a circle, the average of
2 cos(w·x + b) cos(w·y + b) is exp(-|x - y|² / (2 width²)) (Rahimi and Recht, 2007).
The width is the median distance between rows. Weights and phases are kept in
turns, not radians, because whole turns can then be removed exactly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.jit import CONTRACT, compiled

#: Rows from which the median distance is taken.
WIDTH_ROWS = 500

_TURN = 2.0 * math.pi
# Taylor series of the sine, which is exact to 3e-16 up to a quarter turn.
_S3, _S5, _S7, _S9, _S11, _S13, _S15, _S17, _S19 = (
    (-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 10)
)


class Projections(NamedTuple):
    """Random projections of sets of variables, the sets on the first axis, then the features."""

    #: Sets × variables: the columns that a set consists of.
    members: IntArray
    #: Sets × features × variables.
    weights: FloatArray
    #: Sets × features.
    phases: FloatArray


class Features(NamedTuple):
    """Projections, and what gives their cosines mean 0 and standard deviation 1.

    Compiled code takes no tuple within a tuple, so the projections are listed again.
    """

    members: IntArray
    weights: FloatArray
    phases: FloatArray
    #: Sets × features.
    centres: FloatArray
    #: Sets × features.
    scales: FloatArray


def project_set(
    columns: FloatArray, members: IntArray, features: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw weights and phases for some columns, as wide as those columns are spread."""
    width = median_distance(columns[members])
    weights = rng.normal(size=(features, len(members)))
    return weights / (width * _TURN), rng.random(features)


def project_one(column: FloatArray, features: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Draw weights and phases for one column, spread evenly over frequencies and phases.

    A few features drawn without care may all be blind to the same thing. So the
    distribution is cut into as many parts of equal probability as there are
    features, and each part gives one. A feature and its negative are equivalent,
    so positive weights and phases up to half a turn are enough.
    """
    width = median_distance(column[None, :])
    from scipy.special import ndtri  # not at the top: it takes a third of a second

    weights = ndtri(0.5 + 0.5 * _one_of_each_part(features, rng))
    return weights[:, None] / (width * _TURN), 0.5 * _one_of_each_part(features, rng)


def median_distance(columns: FloatArray) -> float:
    """Return the median distance between up to 500 rows that are evenly spread over the data.

    If most rows are equal the median is 0, which is not a width: then 1 is used, the
    standard deviation of the standardised columns.
    """
    rows = columns.shape[1]
    chosen = np.linspace(0, rows - 1, min(rows, WIDTH_ROWS)).astype(np.int64)
    return _median_distance(np.ascontiguousarray(columns[:, chosen], dtype=np.float32)) or 1.0


@compiled(fastmath=CONTRACT)
def cosine_of_turns(turns: float) -> float:
    """Return cos(2π turns), in a form that the compiler turns into vector instructions."""
    rest = turns - np.floor(turns + 0.5)  # in [-1/2, 1/2]
    x = _TURN * (0.25 - abs(rest))  # cos(2π r) = sin(2π (1/4 - |r|))
    s = x * x
    p = _S19
    p = p * s + _S17
    p = p * s + _S15
    p = p * s + _S13
    p = p * s + _S11
    p = p * s + _S9
    p = p * s + _S7
    p = p * s + _S5
    p = p * s + _S3
    return p * s * x + x


@compiled(fastmath=CONTRACT)
def fill_features(
    columns: FloatArray,
    projections: Projections | Features,
    number: int,
    first: int,
    width: int,
    out: FloatArray,
) -> None:
    """Write the cosines of one set: ``out[f, j]`` is feature f of row first + j, for j below `width`."""
    members, weights = projections.members[number], projections.weights[number]
    phases = projections.phases[number]
    for f in range(len(phases)):
        turns, phase = out[f], phases[f]
        for j in range(width):
            turns[j] = phase
        for m in range(len(members)):
            weight = weights[f, m]
            column = columns[members[m], first : first + width]  # no index is negative: this is vectorised
            for j in range(width):
                turns[j] += weight * column[j]
        for j in range(width):
            turns[j] = cosine_of_turns(turns[j])


@compiled(fastmath=CONTRACT)
def _median_distance(columns: FloatArray) -> float:
    """Halve an interval until it is as narrow as single precision: counting is faster than sorting."""
    variables, rows = columns.shape
    squares = np.zeros(rows * (rows - 1) // 2, dtype=np.float32)
    start = 0
    for i in range(rows):
        for m in range(variables):
            for j in range(i):
                difference = columns[m, i] - columns[m, j]
                squares[start + j] += difference * difference
        start += i
    low, high = np.float32(0.0), squares.max()
    for _ in range(30):
        middle = np.float32(0.5) * (low + high)
        below = 0
        for k in range(len(squares)):
            below += squares[k] <= middle
        if 2 * below < len(squares):
            low = middle
        else:
            high = middle
    return math.sqrt(high) if low > 0.0 else 0.0


def _one_of_each_part(parts: int, rng: np.random.Generator) -> FloatArray:
    """Return a random number from each of the equal parts of [0, 1), in random order."""
    numbers: FloatArray = (rng.permutation(parts) + rng.random(parts)) / parts
    return numbers
