"""Searches on mixed tables: what they may propose, and what they find again."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn import Structure
from spbn.errors import KnowledgeError
from spbn.search import AddArc

from strategies import mixed_frame

DISCRETE = frozenset("uvw")


def into_levels(arcs):
    """Arcs from numbers to levels."""
    return [(source, target) for source, target in arcs if target in DISCRETE and source not in DISCRETE]


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 999), rare=st.integers(0, 2), model=st.sampled_from(["gbn", "spbn", "blend"]))
def test_no_arc_goes_from_numbers_to_levels(seed, rare, model):
    frame = mixed_frame(60, seed, rare=rare)
    network = spbn.learn(frame, model=model, folds=3, patience=2)
    assert not into_levels(network.structure.arcs)
    added = [step.operator for step in network.record.search.steps if isinstance(step.operator, AddArc)]
    assert not into_levels([(operator.source, operator.target) for operator in added])
    assert {network.structure.type(name).name for name in DISCRETE} == {"discrete"}
    assert np.isfinite(network.logpdf(frame)).all()


@pytest.mark.parametrize(
    "ask",
    [
        lambda frame, **k: spbn.learn(frame, **k),
        lambda frame, **k: spbn.learn(frame, model="gbn", **k),
        lambda frame, **k: spbn.learn(frame, algorithm="pc", **k),
        lambda frame, **k: spbn.search.hill_climb(spbn.scores.BIC(frame), _start(), types=("lg",), **k),
    ],
)
def test_required_arcs_into_levels_are_refused_before_anything_is_scored(ask, monkeypatch):
    monkeypatch.setattr("spbn.nodes.families.FamilyScorer.totals", None)
    monkeypatch.setattr("spbn.independence.RCoT.answer", None)
    with pytest.raises(KnowledgeError, match=r"no arc can go from a continuous to a discrete.*Got a → u"):
        ask(mixed_frame(60), required_arcs=iter([("a", "u"), ("u", "v")]))


def _start():
    return Structure(
        list("abcuvw"), types={name: "discrete" if name in DISCRETE else "lg" for name in "abcuvw"}
    )


def test_required_arcs_may_come_from_an_iterator():
    found = spbn.search.hill_climb(
        spbn.scores.BIC(mixed_frame(60)), _start(), types=("lg",), required_arcs=iter([("w", "c")])
    )
    assert ("w", "c") in found.structure.arcs


def test_a_start_with_an_arc_into_levels_is_refused():
    start = Structure(list("abcuvw"), [("a", "u")], dict(_start().types))
    with pytest.raises(KnowledgeError, match="reverse it"):
        spbn.search.hill_climb(spbn.scores.BIC(mixed_frame(60)), start, types=("lg",))


def truth():
    """A network with arcs among levels, from levels to numbers, and among numbers."""
    rng = np.random.default_rng(0)
    n = 20_000
    u = rng.choice(list("xyz"), size=n, p=[0.4, 0.35, 0.25])
    w = rng.choice(list("kl"), size=n)
    chance = pd.Series(u).map({"x": 0.15, "y": 0.5, "z": 0.85}).to_numpy()
    v = np.where(rng.random(n) < np.where(w == "k", chance, 1 - chance), "yes", "no")
    a = pd.Series(u).map({"x": -2.0, "y": 0.0, "z": 3.0}).to_numpy() + rng.normal(size=n)
    b = np.where(v == "yes", 1.5, -0.7) * a + np.where(v == "yes", 0.5, 1.0) * rng.normal(size=n)
    return pd.DataFrame({"u": u, "w": w, "v": v, "a": a, "b": b})


def test_samples_of_a_mixed_network_give_its_structure_back():
    arcs = {("u", "v"), ("w", "v"), ("u", "a"), ("v", "b"), ("a", "b")}
    types = dict.fromkeys("uvw", "discrete") | dict.fromkeys("ab", "lg")
    network = spbn.BayesianNetwork.fit(Structure(list("uwvab"), arcs, types), truth())
    samples = network.sample(20_000, seed=1)
    found = spbn.learn(samples, model="gbn").structure
    assert set(found.arcs) == arcs
    assert dict(found.types) == dict(network.structure.types)
