"""Ranks and multiple comparisons, beside a published case study and the definition itself."""

from itertools import combinations, pairwise, product

import numpy as np
import pandas as pd
import pytest
from experiments.statistics import (
    bergmann_hommel,
    friedman,
    holm,
    mean_ranks,
    pairwise_pvalues,
    partitions,
)
from hypothesis import given
from hypothesis import strategies as st

# Five classifiers on 30 data sets: the case study of García and Herrera (2008).
CASE_RANKS = {"C4.5": 2.1, "1-NN": 3.25, "NB": 2.2, "Kernel": 4 + 1 / 3, "CN2": 3 + 7 / 60}
# pair, p-value, adjusted by Holm, adjusted by Bergmann and Hommel
CASE = [
    ("C4.5", "Kernel", 4.487e-8, 4.487e-7, 4.487e-7),
    ("NB", "Kernel", 1.736e-7, 1.5625e-6, 1.0417e-6),
    ("Kernel", "CN2", 0.0028805, 0.023044, 0.011522),
    ("C4.5", "1-NN", 0.0048488, 0.033941, 0.029093),
    ("1-NN", "Kernel", 0.0079635, 0.047781, 0.031854),
    ("1-NN", "NB", 0.0101123, 0.050562, 0.031854),
    ("C4.5", "CN2", 0.0127630, 0.051052, 0.038289),
    ("NB", "CN2", 0.0247447, 0.074234, 0.038289),
    ("1-NN", "CN2", 0.7439715, 1.0, 1.0),
    ("C4.5", "NB", 0.8064959, 1.0, 1.0),
]


def of_pair(values, a, b):
    return values[a, b] if (a, b) in values else values[b, a]


@pytest.mark.parametrize(("a", "b", "raw", "by_holm", "by_bergmann_hommel"), CASE)
def test_case_study(a, b, raw, by_holm, by_bergmann_hommel):
    pvalues = pairwise_pvalues(CASE_RANKS, 30)
    assert of_pair(pvalues, a, b) == pytest.approx(raw, rel=1e-4)
    assert of_pair(holm(pvalues), a, b) == pytest.approx(by_holm, rel=1e-4)
    assert of_pair(bergmann_hommel(pvalues), a, b) == pytest.approx(by_bergmann_hommel, rel=1e-4)


def possible_truths(algorithms):
    """All sets of pairs that can be the true equalities: those of some means or other."""
    return {
        frozenset((a, b) for a, b in combinations(algorithms, 2) if means[a] == means[b])
        for values in product(range(len(algorithms)), repeat=len(algorithms))
        for means in [dict(zip(algorithms, values, strict=True))]
    } - {frozenset()}


TRUTHS = {k: possible_truths("ABCDE"[:k]) for k in (2, 3, 4, 5)}


@pytest.mark.parametrize("k", TRUTHS)
def test_partitions_are_all_possible_truths(k):
    found = {
        frozenset(pair for pair in combinations("ABCDE"[:k], 2) if len({group[name] for name in pair}) == 1)
        for groups in partitions(k)
        for row in groups
        for group in [dict(zip("ABCDE", row, strict=False))]
    }
    assert found - {frozenset()} == TRUTHS[k]


@pytest.mark.parametrize(("k", "bell"), [(1, 1), (6, 203), (9, 21_147), (10, 115_975)])
def test_partitions_are_counted_by_bell_numbers(k, bell):
    assert sum(len(groups) for groups in partitions(k)) == bell


@st.composite
def pvalues_of_all_pairs(draw):
    pairs = list(combinations("ABCDE"[: draw(st.integers(2, 5))], 2))
    grid = draw(st.lists(st.integers(0, 1_000), min_size=len(pairs), max_size=len(pairs), unique=True))
    return {pair: k / 1_000 for pair, k in zip(draw(st.permutations(pairs)), grid, strict=True)}


@pytest.mark.slow
@given(pvalues_of_all_pairs(), st.sampled_from([0.01, 0.0503, 0.1001, 0.3007]))
def test_rejects_what_the_definition_rejects(pvalues, alpha):
    # Retained is what is in a possible truth that shows no p-value small enough for its size.
    names = sorted({name for pair in pvalues for name in pair})
    retained = {
        pair
        for truth in TRUTHS[len(names)]
        if min(pvalues[other] for other in truth) > alpha / len(truth)
        for pair in truth
    }
    smallest = min((pvalues[pair] for pair in retained), default=np.inf)
    rejected = {pair for pair in pvalues if pvalues[pair] < smallest}
    assert {pair for pair, p in bergmann_hommel(pvalues).items() if p <= alpha} == rejected


@given(pvalues_of_all_pairs())
def test_lies_between_the_raw_and_holm(pvalues):
    adjusted, stepwise = bergmann_hommel(pvalues), holm(pvalues)
    ordered = sorted(pvalues, key=pvalues.get)
    assert list(adjusted) == list(pvalues)
    assert all(pvalues[pair] <= adjusted[pair] <= stepwise[pair] + 1e-12 for pair in pvalues)
    assert all(adjusted[a] <= adjusted[b] for a, b in pairwise(ordered))


def test_many_algorithms_take_no_time():
    rng = np.random.default_rng(0)
    names = [f"algorithm {k}" for k in range(11)]
    pvalues = {pair: float(p) for pair, p in zip(combinations(names, 2), rng.random(55) ** 4, strict=True)}
    assert max(bergmann_hommel(pvalues).values()) <= 1.0


def test_pairs_must_be_complete():
    with pytest.raises(ValueError, match="every pair"):
        bergmann_hommel({("A", "B"): 0.1, ("B", "C"): 0.2})
    with pytest.raises(ValueError, match="use holm"):
        bergmann_hommel(dict.fromkeys(combinations("ABCDEFGHIJKLMN", 2), 0.1))


def test_friedman_with_published_figures():
    # Nine algorithms on two data sets; R's friedman.test and scmamp's imanDavenportTest.
    ranks = [[1, 8, 6, 4, 7, 2, 5, 3, 9], [1, 6, 3, 9, 7, 2, 8, 4, 5]]
    result = friedman(-pd.DataFrame(ranks))
    assert result.chi_square == pytest.approx(11.733, abs=5e-4)
    assert result.pvalue == pytest.approx(0.1635, abs=5e-5)
    assert result.f == pytest.approx(2.75)
    assert result.f_pvalue == pytest.approx(0.08697, abs=5e-6)


def test_friedman_where_all_agree():
    result = friedman(pd.DataFrame([[3.0, 2.0, 1.0]] * 4))
    assert result.f == np.inf
    assert result.f_pvalue == 0.0


def test_mean_ranks_share_ties():
    results = pd.DataFrame({"a": [3.0, 1.0], "b": [2.0, 1.0], "c": [1.0, 5.0]})
    assert mean_ranks(results) == {"a": 1.75, "b": 2.25, "c": 2.0}
