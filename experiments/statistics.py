"""Comparing several algorithms over several data sets: ranks, the Friedman test, and all pairs after it.

The procedures are those of García and Herrera (2008): An extension on "Statistical comparisons
of classifiers over multiple data sets" for all pairwise comparisons. JMLR 9, 2677-2694.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

Pair = tuple[str, str]

MOST_ALGORITHMS = 13  # there are 27,644,437 ways to group 13, and seven times as many to group 14
CHUNK = 4_096


@dataclass(frozen=True)
class Friedman:
    """The Friedman test, and Iman and Davenport's less conservative form of it."""

    chi_square: float
    pvalue: float
    f: float
    f_pvalue: float


def mean_ranks(results: pd.DataFrame) -> dict[str, float]:
    """Return the mean rank of every algorithm: 1 is best, and ties share their ranks.

    Parameters
    ----------
    results
        One row per data set, one column per algorithm; greater is better.
    """
    return results.rank(axis=1, ascending=False).mean().to_dict()


def friedman(results: pd.DataFrame) -> Friedman:
    """Test whether all algorithms are equally good; results as for `mean_ranks`."""
    datasets, algorithms = results.shape
    chi_square, pvalue = stats.friedmanchisquare(*results.to_numpy().T)
    remainder = datasets * (algorithms - 1) - chi_square
    # If all data sets agree on the order, nothing remains.
    f = (datasets - 1) * chi_square / remainder if remainder > 0 else math.inf
    degrees = (algorithms - 1, (algorithms - 1) * (datasets - 1))
    return Friedman(float(chi_square), float(pvalue), float(f), float(stats.f.sf(f, *degrees)))


def pairwise_pvalues(ranks: Mapping[str, float], datasets: int) -> dict[Pair, float]:
    """Return the two-sided p-value of every pair: the difference of mean ranks is about normal."""
    deviation = math.sqrt(len(ranks) * (len(ranks) + 1) / (6 * datasets))
    return {
        (a, b): float(2 * stats.norm.sf(abs(ranks[a] - ranks[b]) / deviation))
        for a, b in combinations(ranks, 2)
    }


def holm(pvalues: Mapping[Pair, float]) -> dict[Pair, float]:
    """Adjust p-values by Holm's procedure, which only takes their number into account."""
    factors = np.arange(len(pvalues), 0, -1)
    ordered = sorted(pvalues, key=pvalues.__getitem__)
    return _monotone(dict(zip(ordered, factors * [pvalues[pair] for pair in ordered], strict=True)), pvalues)


def bergmann_hommel(pvalues: Mapping[Pair, float]) -> dict[Pair, float]:
    """Adjust the p-values of all pairs by Bergmann and Hommel's procedure.

    If A equals B and B equals C, then A equals C: not every set of hypotheses can be exactly the
    true ones. Those that can ("exhaustive" sets) group the algorithms, and contain the pairs within
    the groups. The adjusted p-value of a pair is

        max over exhaustive sets I with the pair in it of  |I| · min over I of the p-values,

    no less than that of a pair with a smaller p-value, and at most 1.
    """
    algorithms = list(dict.fromkeys(name for pair in pvalues for name in pair))
    pairs = [pair if pair in pvalues else pair[::-1] for pair in combinations(algorithms, 2)]
    if len(pairs) != len(pvalues) or set(pairs) != set(pvalues):
        raise ValueError(
            f"pvalues must have every pair of the {len(algorithms)} algorithms exactly once: "
            f"{len(pairs)} pairs. Got {len(pvalues)}."
        )
    if len(algorithms) > MOST_ALGORITHMS:
        raise ValueError(
            f"Bergmann and Hommel's procedure is for up to {MOST_ALGORITHMS} algorithms. "
            f"Got {len(algorithms)}: use holm."
        )
    left, right = np.triu_indices(len(algorithms), 1)
    raw = np.array([pvalues[pair] for pair in pairs])
    adjusted = np.zeros(len(pairs))
    for groups in partitions(len(algorithms)):
        together = groups[:, left] == groups[:, right]
        bound = together.sum(axis=1) * np.where(together, raw, 1.0).min(axis=1)
        adjusted = np.maximum(adjusted, (together * bound[:, None]).max(axis=0))
    return _monotone(dict(zip(pairs, adjusted, strict=True)), pvalues)


def partitions(items: int) -> Iterator[np.ndarray]:
    """Yield all ways to group some items, in arrays whose rows hold the group of every item."""
    pending = [np.zeros((1, min(items, 1)), dtype=np.int8)]
    while pending:
        groups = pending.pop()
        if groups.shape[1] == items:
            yield groups
        else:
            grown = _with_one_more(groups)
            pending.extend(grown[k : k + CHUNK] for k in range(0, len(grown), CHUNK))


def _with_one_more(groups: np.ndarray) -> np.ndarray:
    """Put one more item into each of the existing groups, or into one of its own."""
    choices = groups.max(axis=1) + 2
    last = np.arange(choices.sum()) - np.repeat(np.cumsum(choices) - choices, choices)
    return np.column_stack([np.repeat(groups, choices, axis=0), last]).astype(np.int8)


def _monotone(adjusted: Mapping[Pair, float], pvalues: Mapping[Pair, float]) -> dict[Pair, float]:
    ordered = sorted(pvalues, key=pvalues.__getitem__)
    running = np.minimum(np.maximum.accumulate([adjusted[pair] for pair in ordered]), 1.0)
    found = dict(zip(ordered, running.tolist(), strict=True))
    return {pair: found[pair] for pair in pvalues}
