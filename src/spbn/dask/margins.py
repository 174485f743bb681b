"""Margins of rows that workers hold: Yeo-Johnson transforms, fitted in a handful of passes.

The exponent of a column makes a normal density of its transformed values most likely, and that likelihood
needs their number, mean and variance alone. Every pass computes these for some exponents at a time, for all
columns, ever closer to the best one; at last a polynomial through them has its minimum there, to far more
digits than anybody needs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.dask.plan import Plan, blocks
from spbn.dask.shards import Shards
from spbn.transforms import GREATEST, LEAST, Margins, YeoJohnson

EXPONENTS = 9  # that are tried in a pass
PASSES = 3  # in which the interval becomes an eighth of what it was, each time


class Spread(NamedTuple):
    """Sums of a column under each of some transforms: number, means, squared deviations from these.

    `slopes` is the sum of the logarithms of 1 + |z|, with the sign of z, the standardised values.
    """

    rows: int
    means: FloatArray
    squares: FloatArray
    slopes: float

    def add(self, other: Spread) -> Spread:
        """Return the sums of both."""
        rows = self.rows + other.rows
        share = other.rows / max(1, rows)
        shift = other.means - self.means
        return Spread(
            rows,
            self.means + share * shift,
            self.squares + other.squares + self.rows * share * shift**2,
            self.slopes + other.slopes,
        )

    def losses(self, exponents: FloatArray) -> FloatArray:
        """Return minus the log-likelihood of every transform, but for a constant."""
        losses: FloatArray = (
            0.5 * self.rows * np.log(self.squares / self.rows) - (exponents - 1.0) * self.slopes
        )
        return losses


class TransformRequest(NamedTuple):
    """Transforms of a column to try."""

    column: int
    transforms: tuple[YeoJohnson, ...]


def spreads(plan: Plan, parts: Sequence[int], asked: Sequence[TransformRequest]) -> list[Spread]:
    """Return the sums of columns under some transforms, over the rows of some parts."""
    out = [Spread(0, np.zeros(len(one.transforms)), np.zeros(len(one.transforms)), 0.0) for one in asked]
    everything = tuple(range(plan.assignment.folds + 1))
    for block in blocks(plan, parts, [[one.column] for one in asked]):
        for place, one in enumerate(asked):
            column = block.rows([one.column], everything)[0]
            if len(column):
                out[place] = out[place].add(_spread(column, one.transforms))
    return out


def _spread(column: FloatArray, transforms: Sequence[YeoJohnson]) -> Spread:
    means, squares = np.empty(len(transforms)), np.empty(len(transforms))
    for k, transform in enumerate(transforms):
        moved = transform.forward(column)
        means[k] = moved.mean()
        squares[k] = np.sum((moved - means[k]) ** 2)
    z = (column - transforms[0].centre) / transforms[0].scale
    return Spread(len(column), means, squares, float(np.sum(np.sign(z) * np.log1p(np.abs(z)))))


def fit_margins(shards: Shards) -> Margins:
    """Return the transforms of the continuous columns that `Margins.fit` finds for all rows."""
    every, places = shards.every, np.flatnonzero(~shards.discrete)
    if not len(places):
        return Margins({})
    centres = (every.mean + shards.centre)[places]
    scales = np.sqrt(np.diag(every.scatter) / every.count)[places]
    low, high = np.full(len(places), LEAST), np.full(len(places), GREATEST)
    special: list[FloatArray] = []
    best = np.ones(len(places))
    for number in range(PASSES):
        exponents = np.stack([_between(a, b) for a, b in zip(low, high, strict=True)])
        asked = [
            TransformRequest(
                c, tuple(YeoJohnson(float(centres[i]), float(scales[i]), float(e)) for e in exponents[i])
            )
            for i, c in enumerate(places.tolist())
        ]
        passed = shards.map(spreads, asked)
        found = [reduce(Spread.add, parts) for parts in zip(*passed, strict=True)]
        for i, spread in enumerate(found):
            losses = spread.losses(exponents[i])
            if number == 0:  # both ends and the middle, which changes nothing, are tried exactly
                special.append(losses[[0, EXPONENTS // 2, -1]])
            if number < PASSES - 1:
                place = int(np.argmin(losses))
                low[i], high[i] = exponents[i, max(0, place - 1)], exponents[i, min(place + 1, EXPONENTS - 1)]
            else:
                best[i] = _best(exponents[i], losses, special[i])
    return Margins(
        {
            shards.names[c]: YeoJohnson(float(centres[i]), float(scales[i]), float(best[i]))
            for i, c in enumerate(places.tolist())
        }
    )


def _between(low: float, high: float) -> FloatArray:
    return np.linspace(low, high, EXPONENTS)


def _best(exponents: FloatArray, losses: FloatArray, special: FloatArray) -> float:
    """Return where the polynomial through losses is least, or an end or the middle if that is better."""
    inside = np.polynomial.Polynomial.fit(exponents, losses - losses.min(), EXPONENTS - 1)
    roots = inside.deriv().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    candidates = [float(e) for e in real if exponents[0] <= e <= exponents[-1]]
    candidates += [float(exponents[0]), float(exponents[-1])]
    best = min(candidates, key=lambda e: float(inside(e)))
    least = float(inside(best)) + float(losses.min())
    place = int(np.argmin(special))
    known = (LEAST, 0.5 * (LEAST + GREATEST), GREATEST)[place]
    return known if special[place] < least and not math.isclose(known, best) else best
