"""What the spectral engine leaves to the exact kernel: isolated rows, and rows that check its promise."""

from __future__ import annotations

import math

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.kernels.batching import Estimate, Spans
from spbn.kernels.exact import exact_rows

CHECKED = 5e-7  # what rows that are checked must keep, so that the others keep 1e-6
CHECKS = 256  # rows to check, for every set
ATTEMPTS = 3  # to find a threshold that keeps the promise
FEW = 0.25  # share of rows below a raised threshold; if there are more, the exact kernel takes all


def complete(
    rows: FloatArray,
    spans: Spans,
    estimates: list[Estimate],
    heights: list[FloatArray],
    threshold: float,
    out: FloatArray,
) -> None:
    """Turn heights into log-densities, with exact values for rows below the threshold, and check.

    Parameters
    ----------
    rows
        The variables of the estimates × rows.
    heights
        For every estimate, the density of its query rows divided by that where all
        training rows lie at one place.
    threshold
        Least height that is precise enough. It is raised if rows that are checked
        turn out not to be.
    out
        Sets × rows, to be filled in.
    """
    for estimate, found in zip(estimates, heights, strict=True):
        values = np.maximum(found, np.finfo(float).tiny)  # the rest is below the threshold
        out[estimate.number, slice(*spans.queries[estimate.span])] = np.log(values) + estimate.log_peak
    known = -math.inf  # rows below this height are exact
    for attempt in range(ATTEMPTS + 1):
        if attempt == ATTEMPTS or (attempt > 0 and _share_below(threshold, heights) > FEW):
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


def _share_below(threshold: float, heights: list[FloatArray]) -> float:
    return sum(np.count_nonzero(found < threshold) for found in heights) / sum(map(len, heights))


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
