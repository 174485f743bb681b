"""Estimates from some of the rows lead a search along the same steps as sums over all of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.mixed import mixed_frame

import spbn
from spbn import datasets
from spbn.nodes.base import NodeType
from spbn.nodes.families import named_batch
from spbn.rows.families import FamilyBatch
from spbn.scores import Score, likelihood
from spbn.scores.likelihood import CVLikelihood, ValidatedLikelihood

from strategies import ScoreOf, random_local

ROWS = 4_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have estimates made for small tables too."""
    monkeypatch.setattr(likelihood, "FEWEST_ROWS", 1_000)


def heavy_tailed(rows: int) -> pd.DataFrame:
    """Return a table in which a few rows decide."""
    rng = np.random.default_rng(3)
    a = rng.standard_t(1.5, rows)
    b = a + rng.normal(size=rows)
    b[rng.choice(rows, 8, replace=False)] += 60.0
    c = np.where(rng.random(rows) < 0.5, -2.0, 2.0) * b + rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.normal(size=rows)})


TABLES = {
    "synthetic": lambda: datasets.synthetic(ROWS, seed=2),
    "heavy tails": lambda: heavy_tailed(ROWS),
    "mixed": lambda: mixed_frame(ROWS),
}


class Rough:
    """Estimates of a score's changes, each wrong by less than it says."""

    def __init__(self, score: Score) -> None:
        self._score = score
        self._rng = np.random.default_rng(0)

    def gains(self, new: FamilyBatch, old: FamilyBatch) -> tuple[np.ndarray, np.ndarray]:
        true = self._score.local_batch(new) - self._score.local_batch(old)
        errors = self._rng.uniform(0.2, 2.0, len(true))
        return true + errors * self._rng.uniform(-0.99, 0.99, len(true)), errors


@pytest.mark.parametrize("seed", range(10))
def test_rough_estimates_lead_to_the_same_steps(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, types = list("abcd"), ("ckde", "blend")
    in_full, estimated, copy = (ScoreOf(nodes, random_local(seed), types=types) for _ in range(3))
    estimated.preview = Rough(copy)
    start = spbn.Structure(nodes, [("a", "b"), ("b", "c"), ("c", "d")], "ckde")
    expected = spbn.search.hill_climb(in_full, start, types=types)
    asked = []
    local_batch = ScoreOf.local_batch

    def counted(score: ScoreOf, batch: FamilyBatch) -> np.ndarray:
        asked.append(batch)
        assert len(asked) < 5_000, "the same is computed again and again"
        return local_batch(score, batch)

    monkeypatch.setattr(ScoreOf, "local_batch", counted)
    found = spbn.search.hill_climb(estimated, start, types=types)
    assert [step.operator for step in found.steps] == [step.operator for step in expected.steps]
    assert found.score == pytest.approx(expected.score, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "settings", [{}, {"model": "blend"}, {"bandwidth": "silverman"}, {"types": ("lg", "curve")}], ids=str
)  # of the model "spbn", unless there is another
def test_search_takes_the_same_steps(
    table: str, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, settings = TABLES[table](), {"model": "spbn", **settings}
    in_full = spbn.learn(data, **settings)
    settled = []
    monkeypatch.setattr(likelihood, "FEWEST_ROWS", 1_000)
    estimate = likelihood.Preview.gains
    monkeypatch.setattr(
        likelihood.Preview, "gains", lambda *arguments: settled.append(1) or estimate(*arguments)
    )
    estimated = spbn.learn(data, **settings)
    assert settled
    assert [str(step) for step in estimated.search.steps] == [str(step) for step in in_full.search.steps]
    assert estimated.search.score == in_full.search.score
    assert estimated.search.stop_reason == in_full.search.stop_reason


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_most_families_are_never_computed_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    score = ValidatedLikelihood(datasets.synthetic(ROWS, seed=2))
    computed = []
    compute = ValidatedLikelihood._compute
    monkeypatch.setattr(
        ValidatedLikelihood,
        "_compute",
        lambda self, batch: computed.extend(batch.keys) or compute(self, batch),
    )
    start = spbn.Structure(score.nodes, types="ckde")
    found = spbn.search.hill_climb(score, start, types=("ckde",))
    with_estimates = len(computed)
    computed.clear()
    monkeypatch.setattr(likelihood, "FEWEST_ROWS", 1 << 40)
    again = ValidatedLikelihood(datasets.synthetic(ROWS, seed=2))
    assert spbn.search.hill_climb(again, start, types=("ckde",)).structure == found.structure
    assert with_estimates < 0.7 * len(computed)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("node_type", [NodeType.CKDE, NodeType.BLEND, NodeType.CURVE], ids=str)
def test_gains_are_as_good_as_they_say(table: str, node_type: NodeType) -> None:
    data = TABLES[table]()
    score = CVLikelihood(data)
    continuous = [v.name for v in score.variables if not v.is_discrete]
    pairs = [(a, b) for a in continuous for b in score.nodes if a != b]
    new = named_batch(score.nodes, [(a, [b], node_type) for a, b in pairs])
    old = named_batch(score.nodes, [(a, [], node_type) for a, _ in pairs])
    assert score.preview is not None
    gains, errors = score.preview.gains(new, old)
    true = score.local_batch(new) - score.local_batch(old)
    assert (errors > 0.0).all()
    assert (np.abs(gains - true) < errors).all()
    # Six standard errors: of some dozens of estimates half should be within one, and one or two beyond.
    known = errors < likelihood.UNKNOWN
    assert known.any()
    assert np.abs(gains - true)[known].max() > errors[known].max() / 100.0


def test_small_tables_have_none() -> None:
    assert CVLikelihood(datasets.synthetic(2_000, seed=1)).preview is None
    assert CVLikelihood(datasets.synthetic(2_000, seed=1), bandwidth="cv").preview is None
    assert spbn.scores.BIC(datasets.synthetic(2_000, seed=1)).preview is None


@pytest.mark.usefixtures("small")
def test_outstanding_rows_are_all_there() -> None:
    data = heavy_tailed(ROWS)
    score = CVLikelihood(data)
    assert score.preview is not None
    asked = score.preview.outstanding.store.partition
    values = asked.queried(asked.original.columns)
    for name, row in zip(data.columns, values, strict=True):
        extreme = data[name].abs().nlargest(10)
        assert np.isin(data[name].loc[extreme.index], row).all()
    assert score.preview.some.store.partition.queries * score.preview.standing_for + len(
        values[0]
    ) == pytest.approx(ROWS)


@pytest.mark.usefixtures("small")
def test_a_family_that_cannot_be_fitted_is_certain_to_be_worse() -> None:
    data = datasets.synthetic(ROWS, seed=2)
    data["copy"] = data["A"]
    score = CVLikelihood(data)
    batch = [named_batch(score.nodes, [("A", parents, "ckde")]) for parents in (["copy"], [])]
    assert score.preview is not None
    gains, errors = score.preview.gains(*batch)
    assert gains[0] == -np.inf
    assert errors[0] == 0.0
