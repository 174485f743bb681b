import math
import sys

import pytest
from scipy import stats

import spbn
from spbn.datasets import synthetic
from spbn.pgmpy import from_pgmpy, to_pgmpy

from strategies import mixed_frame

NODES = "ABCDE"
ARCS = [("C", "A"), ("A", "B"), ("C", "B"), ("D", "E")]


@pytest.fixture
def network():
    return spbn.BayesianNetwork.fit(spbn.Structure(NODES, ARCS, "lg"), synthetic(300, seed=0))


@pytest.fixture
def pgmpy():
    return pytest.importorskip("pgmpy", reason="needs pgmpy")


@pytest.mark.parametrize("convert", [to_pgmpy, from_pgmpy])
def test_without_pgmpy_the_error_says_how_to_get_it(convert, network, monkeypatch):
    installed = [name for name in sys.modules if name.partition(".")[0] == "pgmpy"]
    for name in {"pgmpy", *installed}:
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not there
    with pytest.raises(spbn.SpbnError, match="pip install 'pgmpy"):
        convert(network)


@pytest.mark.usefixtures("pgmpy")
class TestWithPgmpy:
    def test_there_and_back(self, network):
        back = from_pgmpy(to_pgmpy(network))
        assert back.structure == network.structure
        assert back.nodes == network.nodes
        for node, cpd in network.cpds.items():
            other = back.cpds[node]
            assert other.parents == cpd.parents
            assert (other.intercept, other.coefficients) == (cpd.intercept, cpd.coefficients)
            assert other.variance == pytest.approx(cpd.variance, rel=1e-14)

    def test_the_density_is_the_same(self, network):
        """pgmpy makes the joint normal distribution of it, rounded to 8 decimals: another way to the same."""
        data = synthetic(50, seed=1)
        assert to_pgmpy(network).log_likelihood(data) == pytest.approx(network.loglik(data), rel=1e-6)

    def test_the_model_is_one_that_pgmpy_accepts(self, network):
        model = to_pgmpy(network)
        assert model.check_model()
        assert list(model.simulate(n_samples=5, seed=0).columns) != []

    def test_a_node_without_arcs(self):
        network = spbn.BayesianNetwork.fit(spbn.Structure(["x"]), {"x": [1.0, 2.0, 4.0]})
        assert from_pgmpy(to_pgmpy(network)).structure == network.structure

    def test_a_model_of_pgmpy(self):
        from pgmpy.factors.continuous import LinearGaussianCPD
        from pgmpy.models import LinearGaussianBayesianNetwork

        model = LinearGaussianBayesianNetwork([("x", "y"), ("w", "y")])
        model.add_cpds(
            LinearGaussianCPD("y", [1.0, 2.0, -3.0], 0.5, ["w", "x"]),  # not the order of the graph
            LinearGaussianCPD("w", [0.0], 1.0),
            LinearGaussianCPD("x", [4.0], 2.0),
        )
        network = from_pgmpy(model)
        row = {"w": [0.3], "x": [1.7], "y": [-2.0]}
        expected = (
            stats.norm.logpdf(0.3)
            + stats.norm.logpdf(1.7, 4.0, 2.0)
            + stats.norm.logpdf(-2.0, 1.0 + 2.0 * 0.3 - 3.0 * 1.7, 0.5)
        )
        assert network.logpdf(row)[0] == pytest.approx(expected, rel=1e-12)

    def test_fitted_by_pgmpy(self):
        from pgmpy.models import LinearGaussianBayesianNetwork

        data = synthetic(200, seed=2)
        model = LinearGaussianBayesianNetwork(ARCS).fit(data)
        network = from_pgmpy(model)
        assert network.loglik(data) == pytest.approx(model.log_likelihood(data), rel=1e-6)
        assert math.isfinite(network.loglik(data))
        ours = spbn.BayesianNetwork.fit(network.structure, data)
        for node in NODES:
            theirs, cpd = network.cpds[node], ours.cpds[node]
            assert dict(zip(theirs.parents, theirs.coefficients, strict=True)) == pytest.approx(
                dict(zip(cpd.parents, cpd.coefficients, strict=True))
            )

    def test_kernel_nodes_are_refused(self):
        structure = spbn.Structure(NODES, ARCS).with_type("B", "ckde").with_type("E", "ckde")
        network = spbn.BayesianNetwork.fit(structure, synthetic(50, seed=0))
        with pytest.raises(spbn.errors.ArgumentError, match=r"linear Gaussian nodes only.*'B' and 'E'"):
            to_pgmpy(network)

    def test_other_objects_are_refused(self, network):
        with pytest.raises(spbn.errors.ArgumentError, match="Got Structure"):
            to_pgmpy(network.structure)
        with pytest.raises(spbn.errors.ArgumentError, match="Got BayesianNetwork"):
            from_pgmpy(network)

    def test_a_model_that_is_not_fitted_is_refused(self):
        from pgmpy.models import LinearGaussianBayesianNetwork

        with pytest.raises(spbn.errors.GraphError, match="no CPD for 'x'"):
            from_pgmpy(LinearGaussianBayesianNetwork([("x", "y")]))

    def test_latent_variables_are_refused(self):
        from pgmpy.models import LinearGaussianBayesianNetwork

        with pytest.raises(spbn.errors.ArgumentError, match=r"latent.*'x'"):
            from_pgmpy(LinearGaussianBayesianNetwork([("x", "y")], latents={"x"}))

    def test_a_cpd_that_is_not_that_of_the_graph_is_refused(self):
        from pgmpy.factors.continuous import LinearGaussianCPD
        from pgmpy.models import LinearGaussianBayesianNetwork

        model = LinearGaussianBayesianNetwork([("x", "y")])
        model.add_cpds(LinearGaussianCPD("x", [0.0], 1.0), LinearGaussianCPD("y", [0.0], 1.0))
        with pytest.raises(spbn.errors.GraphError, match="the CPD of 'y'"):
            from_pgmpy(model)


def test_discrete_nodes_are_refused():
    frame = mixed_frame(60)
    with pytest.raises(
        spbn.errors.ArgumentError, match=r"no discrete nodes, but these are: 'u', 'v' and 'w'"
    ):
        to_pgmpy(spbn.learn(frame, model="gbn"))
