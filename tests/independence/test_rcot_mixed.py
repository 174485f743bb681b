"""RCoT on mixed tables, against the tests that statisticians use there."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.independence import RCoT

from strategies import mixed_frame


def rates(make, data_sets, x, y, given=()):
    pvalues = [
        RCoT(make(np.random.default_rng(seed)), seed=seed).pvalue(x, y, given) for seed in range(data_sets)
    ]
    return np.mean(np.array(pvalues) <= 0.05)


def confounded(rng, rows=400):
    """All depend on a discrete z, and on nothing else."""
    z = rng.choice(list("klm"), size=rows)
    shift = pd.Series(z).map({"k": -1.5, "l": 0.0, "m": 1.5}).to_numpy()
    chance = pd.Series(z).map({"k": 0.2, "l": 0.5, "m": 0.9}).to_numpy()
    return pd.DataFrame(
        {
            "x": shift + rng.normal(size=rows),
            "y": shift**2 + rng.normal(size=rows),
            "d": np.where(rng.random(rows) < chance, "yes", "no"),
            "e": rng.choice(list("pqrs"), size=rows),
            "f": np.where(rng.random(rows) < 1 - chance, "a", np.where(rng.random(rows) < 0.5, "b", "c")),
            "z": z,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "y", "given"),
    [("d", "e", ""), ("x", "e", ""), ("x", "y", "z"), ("x", "d", "z"), ("d", "f", "z"), ("d", "f", "ze")],
)
def test_false_positives_are_as_rare_as_alpha_says(x, y, given):
    assert 0.0 < rates(confounded, 150, x, y, list(given)) <= 0.11


@pytest.mark.parametrize(("x", "y"), [("d", "f"), ("x", "d"), ("x", "z"), ("d", "z"), ("y", "z")])
def test_what_the_condition_hides_is_seen_without_it(x, y):
    assert rates(confounded, 20, x, y) > 0.9


def test_agrees_in_kind_with_chi_square_and_anova():
    """What these find very clear is seen, and what they find likely is not rejected."""
    kinds = set()
    for seed in range(6):
        frame = confounded(np.random.default_rng(seed), 300)
        test = RCoT(frame, seed=seed)
        for x, y in [("d", "z"), ("f", "z"), ("d", "f"), ("e", "z"), ("d", "e")]:
            usual = stats.chi2_contingency(pd.crosstab(frame[x], frame[y])).pvalue
            kinds.add(_agree(test.pvalue(x, y), usual))
        for x in ("d", "z", "e"):
            usual = stats.f_oneway(*(part for _, part in frame.groupby(x)["x"])).pvalue
            kinds.add(_agree(test.pvalue("x", x), usual))
    assert {"dependent", "independent"} <= kinds


def _agree(found, usual):
    if usual < 1e-6:
        assert found < 0.01
        return "dependent"
    if usual > 0.3:
        assert found > 0.01
        return "independent"
    return "unclear"


def test_names_of_levels_and_kinds_of_columns_do_not_matter():
    frame = mixed_frame(200)
    questions = [("a", "u", ()), ("u", "v", ()), ("a", "b", ["u"]), ("u", "v", ["w", "a"])]
    expected = RCoT(frame).pvalues(questions)
    ordered = frame.assign(u=pd.Categorical(frame["u"], categories=list("xyzq")))  # q does not occur
    np.testing.assert_array_equal(RCoT(ordered).pvalues(questions), expected)
    renamed = frame.assign(v=frame["v"] == "yes")
    np.testing.assert_array_equal(RCoT(renamed).pvalues(questions), expected)


def test_a_relabelled_copy_in_the_condition_leaves_nothing():
    frame = mixed_frame(300)
    frame["copy"] = frame["u"].map({"x": "third", "y": "first", "z": "second"})
    test = RCoT(frame)
    assert test.pvalue("u", "v", ["copy"]) == 1.0
    assert test.pvalue("a", "u", ["copy", "w"]) == 1.0
    # Features of a condition that is not the copy alone do not span what the copy says.
    assert test.pvalue("u", "v", ["copy", "a"]) == 1.0
    assert test.pvalue("v", "u", ["w", "copy", "a"]) == 1.0
    assert test.pvalue("u", "v", ["w"]) < 0.05
    frame["level"] = frame["u"].map({"x": 0.3, "y": 1.7, "z": -4.0})  # numbers that the levels determine
    assert RCoT(frame).pvalue("level", "v", ["u"]) == 1.0
    assert RCoT(frame).pvalue("level", "v", ["u", "a"]) == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_pc_points_no_arc_from_numbers_to_levels(seed):
    frame = mixed_frame(300, seed)
    found = spbn.search.pc(RCoT(frame)).pdag
    discrete = set("uvw")
    assert not [arc for arc in found.arcs if arc[1] in discrete and arc[0] not in discrete]
    assert not [edge for edge in found.edges if len(discrete & set(edge)) == 1]
    network = spbn.learn(frame, algorithm="pc", folds=3)
    assert not [arc for arc in network.structure.arcs if arc[1] in discrete and arc[0] not in discrete]
    assert np.isfinite(network.logpdf(frame)).all()


def test_pc_refuses_required_arcs_into_levels_before_it_asks_anything(monkeypatch):
    test = RCoT(mixed_frame(100))
    monkeypatch.setattr(RCoT, "answer", None)
    with pytest.raises(spbn.errors.KnowledgeError, match=r"Got a → u: reverse it"):
        spbn.search.pc(test, required_arcs=iter([("a", "u")]))
