"""A node type of one's own: registered, it takes part in everything."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import spbn
from spbn import BayesianNetwork, NodeType, Structure
from spbn._base.files import family_of, numbers
from spbn.errors import ArgumentError
from spbn.nodes import base
from spbn.nodes.base import CPD, Appearance, Description, place_of, register, registered

from strategies import nonlinear_frame


@dataclass(frozen=True)
class Laplace(CPD):
    """The mean of the parents, and Laplace noise."""

    node: str
    parents: tuple[str, ...]
    scale: float

    @property
    def type(self):
        return NodeType.parse("laplace")

    def _mean(self, parents):
        return parents.mean(axis=0) if self.parents else 0.0

    def logpdf_of_columns(self, columns):
        return stats.laplace.logpdf(columns[-1], self._mean(columns[:-1]), self.scale)

    def cdf_of_columns(self, columns):
        return stats.laplace.cdf(columns[-1], self._mean(columns[:-1]), self.scale)

    def draw(self, parents, rng):
        return self._mean(parents) + rng.laplace(scale=self.scale, size=parents.shape[1])

    def to_record(self, arrays):
        return {"scale": self.scale}

    def describe(self):
        return Description(f"{self.node} ~ Laplace")


class LaplaceType(NodeType):
    name = "laplace"
    appearance = Appearance(
        "laplace", "laplace", "The mean of its parents and Laplace noise.", "#ff0000", "#ff0000"
    )

    def fit(self, table, node, parents, settings):
        columns = table.select([node, *parents]).columns
        mean = columns[1:].mean(axis=0) if parents else 0.0
        return Laplace(node, tuple(parents), float(np.abs(columns[0] - mean).mean()))

    def from_record(self, record, arrays):
        return Laplace(*family_of(record), float(numbers(record, "scale", ())))


@pytest.fixture
def laplace(monkeypatch):
    """The type, registered for one test only."""
    monkeypatch.setattr(base, "_REGISTERED", dict(base._REGISTERED))
    found = register(LaplaceType())
    yield found
    del NodeType.LAPLACE


def test_the_types_of_the_package_come_first():
    assert [node_type.name for node_type in registered()][:2] == ["lg", "ckde"]
    assert (place_of(NodeType.LG), place_of(NodeType.CKDE)) == (0, 1)


def test_a_type_is_known_by_its_name(laplace):
    assert NodeType.LAPLACE is NodeType.parse("laplace") is laplace
    assert laplace == "laplace"
    assert laplace != "lg"
    assert laplace in NodeType
    assert list(NodeType)[-1] is laplace
    assert len(NodeType) == len(registered()) == place_of(laplace) + 1
    assert pickle.loads(pickle.dumps(laplace)) is laplace
    assert f"{laplace:>9}" == "  laplace"
    assert {laplace: 1}["laplace"] == 1
    with pytest.raises(ArgumentError, match="'blend', 'discrete' or 'laplace'"):
        NodeType.parse("gauss")


def test_registering_twice_and_registering_nonsense(laplace):
    assert register(LaplaceType()) is laplace

    class Other(LaplaceType):
        pass

    with pytest.raises(ArgumentError, match="already a node type called 'laplace'"):
        register(Other())
    Other.name = "two words"
    with pytest.raises(ArgumentError, match="a plain word"):
        register(Other())
    with pytest.raises(ArgumentError, match="derived from NodeType"):
        register(LaplaceType)


def test_it_is_scored_fold_by_fold(laplace):
    frame = nonlinear_frame(40, 3)
    score = spbn.scores.CVLikelihood(frame, folds=4)
    expected = np.empty(40)
    for fold in range(4):
        test = score.folds == fold
        train = frame[~test]
        scale = (train["a"] - train[["b", "c"]].mean(axis=1)).abs().mean()
        expected[test] = stats.laplace.logpdf(frame["a"][test], frame[["b", "c"]][test].mean(axis=1), scale)
    np.testing.assert_allclose(score.rows(("a", ("b", "c"), "laplace")), expected, rtol=1e-12)
    assert score.local("a", ("b", "c"), "laplace") == pytest.approx(expected.sum(), rel=1e-12)
    mixed = [("a", ("b",), "lg"), ("a", ("b",), "laplace"), ("b", (), "laplace"), ("a", ("b",), "ckde")]
    fresh = spbn.scores.CVLikelihood(frame, folds=4)
    np.testing.assert_allclose(score.local_many(mixed), [fresh.local(*family) for family in mixed])


def test_it_is_learned_where_it_is_asked_for_and_saved(laplace, tmp_path, rng):
    data = {"a": rng.laplace(size=300), "b": rng.normal(size=300) ** 3}
    network = spbn.learn(data, types=["lg", "laplace"], folds=4)
    assert network.structure.type("a") == "laplace"
    assert "ckde" not in network.structure.types.values()
    assert "laplace" not in spbn.learn(data, folds=4).structure.types.values()
    network.save(tmp_path / "model.spbn")
    loaded = BayesianNetwork.load(tmp_path / "model.spbn")
    assert loaded == network
    np.testing.assert_array_equal(loaded.logpdf(data), network.logpdf(data))
    assert network.sample(5, seed=0).shape == (5, 2)
    climbed = spbn.search.hill_climb(
        spbn.scores.ValidatedLikelihood(data, folds=4), Structure("ab"), types=["lg", "ckde", "laplace"]
    )
    assert climbed.structure.type("a") == "laplace"


def test_a_type_that_is_not_registered_here_cannot_be_loaded(laplace, tmp_path, rng, monkeypatch):
    data = {"a": rng.laplace(size=50)}
    BayesianNetwork.fit(Structure("a", types="laplace"), data).save(tmp_path / "model.spbn")
    monkeypatch.delitem(base._REGISTERED, "laplace")
    with pytest.raises(spbn.errors.ModelFileError, match="of an unknown type"):
        BayesianNetwork.load(tmp_path / "model.spbn")
