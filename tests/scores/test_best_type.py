import numpy as np
import pandas as pd
import pytest

import spbn
from spbn import NodeType, Structure
from spbn.errors import ArgumentError
from spbn.scores import BestType, CVLikelihood

from strategies import ScoreOf, mixed_frame, nonlinear_frame, random_local

SIMPLE_FIRST = ("lg", "curve", "blend")
FAMILIES = [(n, p) for n in "abcd" for p in ("", "a", "b", "c", "cd", "bd", "ab") if n not in p]


def test_the_best_type_wins_by_what_it_costs():
    score = ScoreOf("abc", random_local(2))
    best = BestType(score, SIMPLE_FIRST, cost=0.4)
    for node, parents in [("a", ()), ("b", ("a",)), ("c", ("a", "b"))]:
        values = [score.local(node, parents, t) - 0.4 * k for k, t in enumerate(SIMPLE_FIRST)]
        assert best.local(node, parents, "lg") == max(values)
        structure = Structure("abc", [(parent, node) for parent in parents])
        assert best.best_types(structure).type(node) == SIMPLE_FIRST[int(np.argmax(values))]


def test_a_simple_type_wins_a_tie():
    score = ScoreOf("ab", lambda family: 1.0)
    assert set(BestType(score, SIMPLE_FIRST).best_types(Structure("ab")).types.values()) == {NodeType.LG}


def test_less_simple_types_are_left_alone_if_residuals_promise_nothing():
    asked = []

    class Judged(ScoreOf):
        def judge(self, batch):
            asked.extend(batch.types.tolist())
            return self._compute(batch), np.full(len(batch), 2.0)

    score = Judged("ab", lambda family: 100.0 * (family.type == "blend"))
    assert BestType(score, SIMPLE_FIRST, cost=3.0).local("a") == 0.0
    assert len(asked) == 1
    assert BestType(score, SIMPLE_FIRST, cost=0.9).local("a") == pytest.approx(100.0 - 1.8)


@pytest.mark.parametrize("seed", range(5))
def test_looking_at_residuals_first_changes_little(seed):
    """All types are compared in full: what residuals do not show is worth less than a few nats."""
    frame = nonlinear_frame(400, 4, seed)
    likelihood = CVLikelihood(frame, penalty="auto")
    best = BestType(likelihood, cost=likelihood.penalty)
    for node, parents in FAMILIES:
        values = [
            likelihood.local(node, parents, t) - likelihood.penalty * k for k, t in enumerate(SIMPLE_FIRST)
        ]
        found = best.local(node, parents, "lg")
        assert found in values
        assert max(values) - 6.0 <= found <= max(values)


def test_discrete_columns_keep_their_type():
    frame = mixed_frame(300)
    likelihood = CVLikelihood(frame, penalty="auto")
    best = BestType(likelihood, cost=1.0)
    assert best.node_types == {NodeType.LG, NodeType.DISCRETE}
    types = {name: "discrete" if name in "uvw" else "lg" for name in frame}
    structure = Structure(types, [("u", "v"), ("u", "a")], types)
    assert best.local("v", ["u"], "discrete") == likelihood.local("v", ["u"], "discrete")
    typed = best.best_types(structure)
    assert {typed.type(name) for name in "uvw"} == {NodeType.DISCRETE}
    assert best.total(structure) == pytest.approx(
        sum(
            likelihood.local(family.node, family.parents, family.type) - cost
            for family in typed.families()
            for cost in [SIMPLE_FIRST.index(family.type.name) if family.type != NodeType.DISCRETE else 0]
        )
    )


def test_hill_climbing_has_the_types_from_the_score():
    frame = nonlinear_frame(300, 4)
    likelihood = CVLikelihood(frame, penalty="auto")
    best = BestType(likelihood, cost=likelihood.penalty)
    found = spbn.search.hill_climb(best, Structure("abcd"), operators=["arcs"])
    assert found.structure == best.best_types(Structure("abcd", found.structure.arcs))
    assert "curve" in set(map(str, found.structure.types.values()))
    assert found.steps[-1].structure == found.structure
    assert found.best == len(found.steps)
    assert found.score == pytest.approx(best.total(Structure("abcd", found.structure.arcs)))


def test_unknown_types_are_refused():
    with pytest.raises(ArgumentError, match="types must be some of those that the score is defined for"):
        BestType(spbn.scores.BIC(nonlinear_frame(50, 2)))
    with pytest.raises(ArgumentError, match="types must be"):
        BestType(CVLikelihood(nonlinear_frame(50, 2)), [])


def test_penalty_is_paid_by_every_arc():
    frame = nonlinear_frame(100, 3)
    free, penalised = CVLikelihood(frame), CVLikelihood(frame, penalty=2.5)
    for parents in ("", "a", "ab"):
        assert penalised.local("c", parents) == free.local("c", parents) - 2.5 * len(parents)
    auto = CVLikelihood(frame, penalty="auto").penalty
    assert auto == pytest.approx(np.log(100) / 2 + 2 * np.log(3) / 3)
    for wrong in (-1, "much", None, np.nan):
        with pytest.raises(ArgumentError, match='penalty must be "auto", or a number that is 0 or more'):
            CVLikelihood(frame, penalty=wrong)


def test_averaged_scores_are_judged_together():
    frames = [nonlinear_frame(200, 3, seed) for seed in (1, 2)]
    scores = [CVLikelihood(pd.DataFrame(frame)) for frame in frames]
    average = spbn.scores.base.Averaged(scores)
    batch = average._checked([("c", ["a"], "lg")])
    found = [score.judge(batch) for score in scores]
    np.testing.assert_allclose(average.judge(batch), np.mean(found, axis=0))


def test_leads_come_from_curves_wherever_a_line_may_not_suffice():
    """Bimodal noise is not normal, but a curve is no better: what is left over decides all the same."""
    rng = np.random.default_rng(2)
    a, c = rng.normal(size=(2, 500))
    b = a + rng.choice([-0.9, 0.9], 500) + rng.normal(0, 0.4, 500)
    likelihood = CVLikelihood(pd.DataFrame({"a": a, "b": b, "c": c}), penalty="auto")
    best = BestType(likelihood, ["lg", "curve"], cost=likelihood.penalty)
    assert best.best_types(Structure("abc", [("a", "b")])).type("b") == NodeType.LG
    of_a, of_b = best.leads(best._checked([("a", [], "lg"), ("b", ["a"], "lg")]))
    assert np.isinf(of_a).all()
    assert of_b[2] < 4.0


def test_what_a_draft_knows_changes_no_score():
    likelihood = CVLikelihood(nonlinear_frame(300, 4), penalty="auto")
    best, fresh = (BestType(likelihood, cost=likelihood.penalty) for _ in range(2))
    families = [(node, parents, "lg") for node in "ab" for parents in ("", "c", "d", "cd")]
    drafted = best.draft.local_many(families)
    np.testing.assert_array_equal(best.local_many(families), fresh.local_many(families))
    assert best._simple == fresh._simple
    assert (drafted <= fresh.local_many(families)).all()
