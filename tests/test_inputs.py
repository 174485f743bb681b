"""Inputs: nodes without densities, which can only be parents."""

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.plots import plot_structure
from spbn.plots.graphs import to_dot
from spbn.structure import Structure

from strategies import nonlinear_frame

STRUCTURE = Structure(["a", "b"], [("u", "a"), ("a", "b"), ("u", "b")], "lg", inputs=["u", "v"])


def test_structures():
    assert STRUCTURE.nodes == ("a", "b")
    assert STRUCTURE.inputs == ("u", "v")
    assert STRUCTURE.used_inputs == ("u",)
    assert [family.node for family in STRUCTURE.families()] == ["a", "b"]
    assert Structure(["a", "b", "u", "v"], STRUCTURE.arcs) != STRUCTURE
    assert Structure.from_networkx(STRUCTURE.to_networkx()) == STRUCTURE
    assert eval(repr(STRUCTURE), {"Structure": Structure}) == STRUCTURE
    assert "u (input)" in str(STRUCTURE)
    assert STRUCTURE.with_type("a", "ckde").inputs == ("u", "v")
    assert STRUCTURE.with_dag(STRUCTURE.dag.without_arc("u", "b")).inputs == ("u", "v")
    for wrong in (lambda: Structure("ab", [("a", "u")], inputs=["u"]), lambda: STRUCTURE.type("u")):
        with pytest.raises(spbn.errors.GraphError, match="input"):
            wrong()
    with pytest.raises(spbn.errors.GraphError, match="an input has no parents"):
        STRUCTURE.with_dag(STRUCTURE.dag.with_arc("a", "v"))


@pytest.mark.parametrize(
    ("arcs", "open_arcs"),
    [
        ([("u", "a"), ("a", "b"), ("u", "b")], {("a", "b")}),  # b → a would say the same
        ([("u", "a"), ("a", "b")], set()),  # u → a ← b would not
        ([("a", "b"), ("u", "b")], set()),
        ([("a", "b")], {("a", "b")}),
        ([("u", "a"), ("v", "a"), ("a", "b"), ("u", "b")], set()),
    ],
)
def test_directions_that_inputs_decide(arcs, open_arcs):
    assert set(Structure("ab", arcs, inputs=["u", "v"]).undecided_arcs()) == open_arcs


def test_fits_are_those_without_the_inputs_densities(tmp_path):
    frame = nonlinear_frame(80, 3).set_axis(["a", "b", "u"], axis=1)
    whole = Structure(["a", "b", "u"], STRUCTURE.arcs)
    for margins in ("none", "yeo-johnson"):
        network = spbn.BayesianNetwork.fit(STRUCTURE, frame, margins=margins)
        other = spbn.BayesianNetwork.fit(whole, frame, margins=margins)
        expected = other.logpdf_by_node(frame)[["a", "b"]]
        pd.testing.assert_frame_equal(network.logpdf_by_node(frame), expected)
        network.save(tmp_path / "m.spbn")
        assert spbn.BayesianNetwork.load(tmp_path / "m.spbn") == network
        found = spbn.explain.leave_one_out(network, frame)
        np.testing.assert_allclose(found, spbn.explain.leave_one_out(other, frame)[:, :2])


@pytest.mark.parametrize("scale", [1.0, 1e-6])  # densities of small numbers are great
def test_a_search_gives_inputs_no_parents(scale):
    frame = nonlinear_frame(150, 4)
    *nodes, given = frame.columns
    frame[given] *= scale
    score = spbn.scores.BIC(frame)
    found = spbn.search.hill_climb(score, Structure(nodes, inputs=[given]), types=["lg"]).structure
    assert all(target != given for _, target in found.arcs)
    forbidden = [(node, given) for node in nodes]
    other = spbn.search.hill_climb(score, Structure(frame.columns), types=["lg"], forbidden_arcs=forbidden)
    assert set(found.arcs) == set(other.structure.arcs)
    alone = score.local(given, [], "lg")
    assert spbn.search.hill_climb(
        score, Structure(nodes, inputs=[given]), types=["lg"]
    ).score == pytest.approx(other.score - alone)
    validated = spbn.scores.ValidatedLikelihood(frame)
    result = spbn.search.hill_climb(validated, Structure(nodes, types="ckde", inputs=[given]))
    assert result.validation_score == pytest.approx(validated.validation_total(result.structure))


def test_pictures():
    pytest.importorskip("igraph")
    dot = to_dot(STRUCTURE)
    assert '"u" [style=dashed];' in dot
    assert '"v"' not in dot  # nobody needs it
    texts = {text.get_text() for text in plot_structure(STRUCTURE).texts}
    assert texts == {"a", "b", "u"}
