"""A node type of one's own: registered, it takes part in everything."""

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn import BayesianNetwork, NodeType, Structure
from spbn._base.files import family_of, numbers
from spbn.errors import ArgumentError
from spbn.nodes import LinearGaussian, base
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


@dataclass(frozen=True)
class Bell(Laplace):
    """The mean of the parents, and normal noise."""

    @property
    def type(self):
        return NodeType.parse("bell")

    def logpdf_of_columns(self, columns):
        return stats.norm.logpdf(columns[-1], self._mean(columns[:-1]), self.scale)

    def cdf_of_columns(self, columns):
        return stats.norm.cdf(columns[-1], self._mean(columns[:-1]), self.scale)

    def draw(self, parents, rng):
        return self._mean(parents) + rng.normal(scale=self.scale, size=parents.shape[1])

    def as_linear(self):
        slopes = tuple(1.0 / len(self.parents) for _ in self.parents)
        return LinearGaussian(self.node, self.parents, 0.0, slopes, self.scale**2)


class BellType(LaplaceType):
    name = "bell"

    def fit(self, table, node, parents, settings):
        columns = table.select([node, *parents]).columns
        mean = columns[1:].mean(axis=0) if parents else 0.0
        return Bell(node, tuple(parents), float(np.sqrt(np.mean((columns[0] - mean) ** 2))))

    def from_record(self, record, arrays):
        return Bell(*family_of(record), float(numbers(record, "scale", ())))


@pytest.fixture
def bell(monkeypatch):
    """A type whose densities are linear Gaussian, registered for one test only."""
    monkeypatch.setattr(base, "_REGISTERED", dict(base._REGISTERED))
    yield register(BellType())
    del NodeType.BELL


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
    with pytest.raises(ArgumentError, match="'discrete', 'curve' or 'laplace'"):
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


def test_what_is_linear_takes_part_in_exact_inference(bell, rng):
    data = {"s": rng.choice(["p", "q"], 200), "a": rng.normal(size=200)}
    data["b"] = data["a"] + rng.normal(size=200)
    data["c"] = (data["a"] + data["b"]) / 2 + rng.normal(size=200) * np.where(data["s"] == "p", 0.5, 2.0)
    structure = Structure(
        ["s", *"abc"],
        [("a", "b"), ("a", "c"), ("b", "c"), ("s", "c")],
        {"s": "discrete", **dict.fromkeys("abc", "bell")},
    )
    network = BayesianNetwork.fit(structure, data)
    lines = {
        "a": network.cpds["a"].as_linear(),
        "b": network.cpds["b"].as_linear(),
        "c": replace(
            network.cpds["c"], densities=tuple(density.as_linear() for density in network.cpds["c"].cases)
        ),
    }
    types = {"s": "discrete", **dict.fromkeys("abc", "lg")}
    same = BayesianNetwork(
        Structure(structure.nodes, structure.arcs, types), {"s": network.cpds["s"], **lines}
    )
    np.testing.assert_allclose(same.logpdf(data), network.logpdf(data), rtol=1e-12)
    for evidence in ({"c": 1.5}, {"c": -2.0, "s": "p"}, {"a": 0.3}):
        found, expected = network.query(evidence), same.query(evidence)
        assert found.method == expected.method == "exact"
        np.testing.assert_array_equal(found.mean(), expected.mean())
        np.testing.assert_array_equal(found.std(), expected.std())


def test_what_is_not_linear_is_simulated(laplace, rng):
    data = {"a": rng.laplace(size=100)}
    data["b"] = data["a"] + rng.laplace(size=100)
    network = BayesianNetwork.fit(Structure("ab", [("a", "b")], "laplace"), data)
    posterior = network.query({"b": 1.0}, seed=0)
    assert posterior.method != "exact"
    a = np.linspace(-15.0, 15.0, 3001)
    weights = np.exp(network.logpdf({"a": a, "b": np.ones_like(a)}))
    assert posterior.mean()["a"] == pytest.approx((a * weights).sum() / weights.sum(), abs=0.1)
    inside = network.query({"b": (0.5, 2.0)}, seed=0)  # by bisection of the distribution function
    assert inside.sample(100, seed=0)["b"].between(0.5, 2.0).all()


@pytest.mark.parametrize("name", ["laplace", "bell"])
def test_it_is_scored_made_compact_reported_and_monitored(name, request, tmp_path, rng):
    node_type = request.getfixturevalue(name)
    data = pd.DataFrame({"s": rng.choice(["p", "q"], 120), "a": rng.laplace(size=120)})
    data["b"] = data["a"] + rng.laplace(size=120)
    types = {"s": "discrete", "a": name, "b": name}
    network = BayesianNetwork.fit(Structure("sab", [("a", "b"), ("s", "b")], types), data)
    compact = network.compact()
    assert compact == network
    compact.save(tmp_path / "model.spbn")
    assert BayesianNetwork.load(tmp_path / "model.spbn") == network
    scorer = spbn.load_scorer(tmp_path / "model.spbn")
    np.testing.assert_allclose(scorer.logpdf(data), network.logpdf(data), rtol=1e-12)
    page = spbn.report.render(network, data=data)
    assert node_type.appearance.sentence in page
    monitor = spbn.Monitor(network, data, seed=0)
    alarms = monitor.update(pd.DataFrame({"s": ["p", "q"], "a": [0.1, 0.1], "b": [0.2, 400.0]}))
    assert alarms["alarm"].tolist() == [False, True]
