"""What holds for every score."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spbn
from spbn import NodeType, Structure
from spbn.errors import GraphError
from spbn.nodes import Family
from spbn.nodes.families import families_of

import reference
from strategies import arcs_of_dag, nonlinear_frame

FRAME = nonlinear_frame(60, 7)
SCORES = {
    "bic": spbn.scores.BIC(FRAME),
    "bge": spbn.scores.BGe(FRAME),
    "cv": spbn.scores.CVLikelihood(FRAME, folds=5),
    "holdout": spbn.scores.HoldoutLikelihood(FRAME),
    "validated": spbn.scores.ValidatedLikelihood(FRAME, folds=5),
}
every_score = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)


@pytest.mark.shared
@pytest.mark.parametrize("name", reference.TABLES)
def test_reference_scores(shared, name):
    frame, numbers = reference.load(shared, name)
    cv = spbn.scores.CVLikelihood(frame, folds=numbers["cv_labels"])
    bic, bge = spbn.scores.BIC(frame), spbn.scores.BGe(frame)
    for family in numbers["families"]:
        node, parents = family["node"], family["parents"]
        assert cv.local(node, parents, "ckde") == pytest.approx(family["ckde"], rel=1e-11)
        assert cv.local(node, parents, "lg") == pytest.approx(family["lg"], rel=1e-11)
        assert bic.local(node, parents) == pytest.approx(family["bic"], rel=1e-11)
        assert bge.local(node, parents) == pytest.approx(family["bge"], rel=1e-11)


@every_score
@given(graph=arcs_of_dag(max_nodes=7), mask=st.integers(0, 127))
def test_total_is_the_sum_of_locals(score, graph, mask):
    nodes, arcs = graph
    types = {
        n: "ckde" if mask >> i & 1 and NodeType.CKDE in score.node_types else "lg"
        for i, n in enumerate(nodes)
    }
    structure = Structure(nodes, arcs, types)
    locals_ = [score.local(node, structure.parents(node), structure.type(node)) for node in nodes]
    assert score.total(structure) == pytest.approx(sum(locals_), rel=1e-12)


@every_score
def test_the_order_of_parents_and_of_columns_does_not_matter(score):
    moved = type(score)(FRAME[FRAME.columns[::-1]])
    fresh = type(score)(FRAME)
    for node_type in score.node_types:
        value = fresh.local("a", ["d", "b", "c"], node_type)
        assert value == fresh.local("a", ["b", "c", "d"], node_type)
        assert value == pytest.approx(moved.local("a", ["c", "d", "b"], node_type), rel=1e-10)


@every_score
def test_a_batch_equals_one_by_one(score):
    families = [
        Family(node, parents, node_type)
        for node in "ab"
        for parents in [(), ("c",), ("d", "c"), ("c", "d"), ("c", "d", "e", "f", "g")]
        for node_type in score.node_types
    ]
    batch = score.local_many(families)
    fresh = type(score)(
        FRAME, **({"folds": 5} if hasattr(score, "rows") and "Holdout" not in type(score).__name__ else {})
    )
    np.testing.assert_allclose(batch, [fresh.local(*family) for family in families], rtol=1e-12)


@every_score
def test_a_linear_combination_scores_minus_infinity(score):
    frame = FRAME.assign(sum=FRAME["a"] + FRAME["b"], tenth=FRAME["a"] / 10)
    options = {"iss_w": 11} if isinstance(score, spbn.scores.BGe) else {}
    collinear = type(score)(frame * 1e6, **options)
    for node_type in score.node_types:
        assert collinear.local("sum", ["a", "b"], node_type) == -np.inf
        if node_type not in ("curve", "blend"):  # a curve takes parents that say the same
            assert collinear.local("c", ["a", "tenth"], node_type) == -np.inf
        assert np.isfinite(collinear.local("sum", ["a"], node_type))


@every_score
def test_unknown_nodes_are_refused(score):
    with pytest.raises(GraphError, match="no column 'z'"):
        score.local("z")
    with pytest.raises(GraphError, match="no column 'z'"):
        score.local("a", ["z"])
    with pytest.raises(GraphError, match="distinct other nodes"):
        score.local("a", ["a"])
    with pytest.raises(GraphError, match="distinct other nodes"):
        score.local("a", ["b", "b"])
    with pytest.raises(spbn.errors.ArgumentError, match="a node type must be"):
        score.local("a", [], "gaussian")


@pytest.mark.parametrize(
    "score",
    [
        spbn.scores.BIC,
        spbn.scores.BGe,
        spbn.scores.CVLikelihood,
        spbn.scores.HoldoutLikelihood,
        spbn.scores.ValidatedLikelihood,
    ],
)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]}), "'b' is constant"),
        (pd.DataFrame({"a": [1.0, 2.0, np.nan]}), "missing='drop'"),
        (pd.DataFrame({"a": [1.0]}), "at least 2 rows"),
    ],
)
def test_bad_data_is_refused(score, data, message):
    with pytest.raises(spbn.errors.DataError, match=message):
        score(data)


def test_the_cache_computes_once_and_forgets_when_full():
    computed = []

    class Counting(spbn.scores.Score):
        cache_limit = 4

        def _compute(self, batch):
            computed.extend(families_of(batch))
            return np.arange(len(batch), dtype=float)

    score = Counting("abcdef", NodeType)
    score.local_many([Family("a"), Family("b"), Family("c", ("b", "a"))])
    assert computed == [Family("a"), Family("b"), Family("c", ("a", "b"))]
    score.local_many([("a", [], "lg"), Family("c", ("b", "a"))])
    assert len(computed) == 3
    score.local_many([Family("d"), Family("e"), Family("f")])
    assert score.local_many([Family("d"), Family("e"), Family("f")]).tolist() == [0, 1, 2]
    assert len(computed) == 6
    score.local_many([Family("a")])
    assert computed[-1] == Family("a")


def test_types_may_be_written_as_text():
    score = SCORES["cv"]
    expected = score.local("a", ["b"], NodeType.CKDE)
    fresh = spbn.scores.CVLikelihood(FRAME, folds=5)
    assert fresh.local_many([Family("a", ("b",), "ckde"), ("a", ["b"], "ckde")]).tolist() == [
        expected,
        expected,
    ]


@every_score
def test_scores_with_a_further_parent_are_those_of_larger_families(score):
    """Where a score offers them, also with a column that is nearly a copy."""
    nearly = FRAME.assign(h=FRAME["c"] + 1e-5 * FRAME["d"])
    score = type(score)(nearly)
    families = [("a", parents, "lg") for parents in [(), ("c",), ("b", "d", "g"), ("b", "c", "f")]]
    found = score.further(score._checked(families))
    assert (found is None) == isinstance(score, spbn.scores.BGe)
    if found is not None:
        for (node, parents, _), row in zip(families, found, strict=True):
            for place, other in enumerate(score.nodes):
                if other not in {node, *parents}:
                    assert row[place] == score.local(node, [*parents, other])


def test_scores_with_a_further_parent_are_not_offered_where_they_take_time():
    score = spbn.scores.CVLikelihood(FRAME, folds=5)
    assert score.further(score._checked([("a", ["b"], "lg")])) is not None
    assert score.further(score._checked([("a", ["b"], "curve")])) is None
    discrete = spbn.scores.CVLikelihood(FRAME.assign(level=list("xy") * 30), folds=5)
    assert discrete.further(discrete._checked([("a", ["b"], "lg")])) is None
