"""Gaussian sums through Fourier space, in one to three dimensions: time N log N instead of N².

A sum of Gaussians is a convolution, and smooth. So the training rows are spread on
a regular grid (`gridding`), the grid is multiplied in Fourier space by
the Gaussian's transform, and the result is read off at the query rows:

- Coordinates are whitened once for all spans (folds) whose bandwidths are alike.
  There the bandwidth of span m is a matrix A_m near the identity, and its filter
  exp(-ωᵀ A_m ω / 2). Spans with very different bandwidths, such as the one fold
  whose queries hold the outlier that widens all others, get a grid of their own.
- Every row is spread once into the grid of all rows. The training rows of a span are
  that grid minus the rows that it does not train on (`boxes.Field`). Sets of the same
  variables with similar bandwidths share all of this: in the scores' terms, J and M.
- The grid covers a box that leaves out long tails, chosen by cost (`boxes`). Rows outside
  the box go to the exact kernel. As training rows they matter in the box only if
  they are within reach of it, and then they are on the grid too.

What is promised
----------------
Log-densities within 1e-6 of the exact kernel's, row by row. Let S be the sum of
a row's n Gaussians, each of height 1, and G(r) = exp(-r²/2). There are three errors:

1. *Aliasing.* A source at distance r contributes G(r) with an error of at most
   1.7e-7 · max(G(r), 1e-7), the constants of `gridding`. Over all sources that is at most
   1.7e-7 · (S + 1e-7 n).
2. *Reach.* Sources farther away than `REACH` = 8.03 widths may be lost or may be seen
   around the end of the grid: at most n G(8.03) = 1e-14 n.
3. *Rounding* in the transforms: a few 1e-16 of the greatest sum, so below 1e-15 n.

They are absolute, so a row is good if its sum is not too small: with S ≥ `THRESHOLD` · n, THRESHOLD = 1e-7,
they are below (3.4e-7 + 1e-7 + 1e-8) S in the very worst case, that all sources lie at the worst distance. In
data neighbours at all distances contribute, and errors are some 1e-10. Rows below the threshold are isolated,
hence few: 300 in a million of a three-dimensional normal sample. They go to the exact kernel.

The bound leaves out what rounding does to the rows themselves when they are whitened, which is harmless
unless the bandwidth matrix is nearly singular. So the engine checks itself (`complete`) on about a hundred
rows, including the least dense ones above the threshold, and raises the threshold or gives all rows to the
exact kernel if it does not keep its promise.

Results do not depend on the number of threads: cells are summed in a fixed order
(`gridding`), and the transforms treat every line of the grid alike.

Why not a library for non-uniform FFTs? FINUFFT computes every Fourier mode to the same precision, from
complex numbers; see `gridding` for what a Gaussian filter allows instead. That is what makes three dimensions
affordable, and errors are smaller (`benchmarks/nonuniform.py`; the table is in docs/large-data.md).
"""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.kernels.estimates import ALIKE, Estimate, Group, Spans, grouped, whitened
from spbn.kernels.exact import exact_rows
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import Field, Grid

__all__ = ["DIMENSIONS", "REACH", "THRESHOLD", "log_density"]

DIMENSIONS = 3  # at most: a grid of four would not fit in memory
THRESHOLD = 1e-7  # of a row's sum to the number of its training rows
REACH = 8.03  # widths of a Gaussian

# Seconds on two cores of 3 GHz, to weigh a larger grid against rows that are computed directly.
SECONDS_A_CELL = 10e-9  # for one transform
SECONDS_A_PAIR = 0.33e-9

CHECKED = 5e-7  # what rows that are checked must keep, so that the others keep 1e-6
CHECKS = 256  # rows to check, for every set
ATTEMPTS = 3  # to find a threshold that keeps the promise
FEW = 0.25  # share of rows below a raised threshold; if there are more, the exact kernel takes all


def log_density(
    points: FloatArray,
    columns: IntArray,
    whiteners: FloatArray,
    spans: Spans,
    *,
    thrifty: bool = False,
    alike: float = ALIKE,
) -> FloatArray:
    """Return the log-density of rows under kernel density estimates made of other rows.

    The arrays are those of `exact.log_density`, with at most three variables to a set. Sets of the same
    variables share most of the work if their bandwidths are similar.

    Parameters
    ----------
    thrifty
        Use the exact kernel where a grid would cost more.
    alike
        Sets of the same variables share a grid if their bandwidths differ by less than this factor.

    Returns
    -------
    Sets × rows. Rows that no span queries are NaN.
    """
    out = np.full((len(columns), points.shape[1]), np.nan)
    for variables in np.unique(columns, axis=0):
        rows = np.ascontiguousarray(points[variables])
        estimates = [
            Estimate(number, span, whiteners[number, span])
            for number in np.flatnonzero((columns == variables).all(axis=1)).tolist()
            for span in spans.queried
        ]
        for group in grouped(estimates, alike):
            heights = _heights(rows, spans, group, thrifty)
            complete(rows, spans, group.estimates, heights, out)
    return out


def _heights(rows: FloatArray, spans: Spans, group: Group, thrifty: bool) -> list[FloatArray]:
    """Return S / n for the query rows of every estimate; zero where the grid cannot tell."""
    coordinates = whitened(rows, group.whitener)
    grid = _grid(coordinates, spans, group, thrifty)
    if grid is None:
        return [np.zeros(spans.query_counts[estimate.span]) for estimate in group.estimates]
    outside = ~grid.covers(coordinates)
    field = Field.of(coordinates, spans.only([estimate.span for estimate in group.estimates]), grid)
    heights: dict[int, FloatArray] = {}
    for span in sorted({estimate.span for estimate in group.estimates}):
        first, end = spans.queries[span]
        spectrum = field.spectrum(spans.training[span])
        for number, estimate in enumerate(group.estimates):
            if estimate.span == span:
                sums = field.sums(spans.queries[span], spectrum, group.covariances[number])
                sums[outside[first:end]] = 0.0
                heights[number] = sums / max(1, spans.training_counts[span])
    return [heights[number] for number in range(len(group.estimates))]


def _grid(coordinates: FloatArray, spans: Spans, group: Group, thrifty: bool) -> Grid | None:
    """Choose a grid; None if none fits, or none pays."""
    numbers = np.array([estimate.span for estimate in group.estimates])
    queries, train = spans.query_counts, spans.training_counts
    different = np.unique(numbers)
    queried = np.concatenate([np.arange(first, end) for first, end in spans.queries[different]])
    grid, cost = gridding.cheapest_grid(
        coordinates[:, queried],
        REACH * group.widest,
        cell_cost=(len(numbers) + len(different)) * SECONDS_A_CELL,
        row_cost=float(train[numbers].mean()) * len(numbers) / len(different) * SECONDS_A_PAIR,
    )
    if grid.cells > gridding.MAX_CELLS:
        return None
    if thrifty and cost > float((queries * train)[numbers].sum()) * SECONDS_A_PAIR:
        return None
    return grid


def complete(
    rows: FloatArray, spans: Spans, estimates: list[Estimate], heights: list[FloatArray], out: FloatArray
) -> None:
    """Turn heights into log-densities, with exact values for rows below the threshold, and check.

    The heights of an estimate are the density of its query rows divided by that where all training rows lie
    at one place. The threshold is the least that is precise enough; it is raised if rows that are checked
    turn out not to be.
    """
    for estimate, found in zip(estimates, heights, strict=True):
        values = np.maximum(found, np.finfo(float).tiny)  # the rest is below the threshold
        out[estimate.number, slice(*spans.queries[estimate.span])] = np.log(values) + estimate.log_peak
    threshold, known = THRESHOLD, -math.inf  # rows below the latter height are exact
    for attempt in range(ATTEMPTS + 1):
        below = sum(np.count_nonzero(found < threshold) for found in heights)
        if attempt == ATTEMPTS or (attempt > 0 and below / sum(map(len, heights)) > FEW):
            threshold = math.inf
        isolated = [np.flatnonzero((found < threshold) & (found >= known)) for found in heights]
        checks = _rows_to_check(estimates, heights, threshold)
        wanted = [
            spans.queries[estimate.span, 0] + np.concatenate(both)
            for estimate, *both in zip(estimates, isolated, checks, strict=True)
        ]
        worst = 0.0  # greatest height among rows that were checked and found wrong
        for estimate, found, numbers, few, values in zip(
            estimates, heights, wanted, isolated, exact_rows(rows, spans, estimates, wanted), strict=True
        ):
            errors = np.abs(out[estimate.number, numbers] - values)[len(few) :]
            wrong = found[numbers[len(few) :] - spans.queries[estimate.span, 0]][~(errors <= CHECKED)]
            worst = max(worst, wrong.max(initial=0.0))
            out[estimate.number, numbers] = values
        if worst == 0.0:
            return
        known, threshold = threshold, 2.0 * worst


def _rows_to_check(estimates: list[Estimate], heights: list[FloatArray], threshold: float) -> list[IntArray]:
    """Choose rows above the threshold: the least dense ones, and as many evenly spaced."""
    sets = len({estimate.number for estimate in estimates})
    half = math.ceil(0.5 * CHECKS * sets / len(estimates))
    chosen = []
    for found in heights:
        good = np.flatnonzero(found >= threshold)
        if len(good) > 2 * half:
            least = good[np.argpartition(found[good], half)[:half]]
            evenly = good[np.linspace(0, len(good) - 1, half).astype(int)]
            good = np.union1d(least, evenly)
        chosen.append(good)
    return chosen
