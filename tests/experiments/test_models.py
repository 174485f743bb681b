"""The models that times are measured with: their equations are what they say."""

import numpy as np
import pytest
from experiments.models import MODELS, Equation, Mixture, Normal

from spbn.datasets import synthetic, synthetic_structure

EVERY = pytest.mark.parametrize("variables", MODELS)


def test_five_variables_are_the_synthetic_network():
    assert MODELS[5].structure == synthetic_structure()
    ours, theirs = MODELS[5].sample(50_000, seed=1), synthetic(50_000, seed=2)
    np.testing.assert_allclose(ours.mean(), theirs.mean(), atol=0.15)
    np.testing.assert_allclose(ours.cov(), theirs.cov(), rtol=0.05, atol=0.15)


@pytest.mark.parametrize("variables", [10, 20])
def test_half_of_the_nodes_are_linear_gaussian(variables):
    types = [equation.type for equation in MODELS[variables].equations]
    assert types.count("lg") == types.count("ckde") == variables // 2


@EVERY
def test_linear_gaussian_nodes_are_linear_and_the_others_are_not(variables):
    rng = np.random.default_rng(0)
    for equation in MODELS[variables].equations:
        x, y = ({parent: rng.normal(size=50) for parent in equation.parents} for _ in range(2))
        middle = {parent: (x[parent] + y[parent]) / 2 for parent in equation.parents}
        straight = np.allclose(equation.mean(middle), (equation.mean(x) + equation.mean(y)) / 2)
        normal = isinstance(equation.noise, Normal)
        assert (equation.type == "lg") == (straight and normal), equation


@EVERY
def test_rows_come_from_the_equations(variables):
    model = MODELS[variables]
    frame = model.sample(20_000, seed=3)
    assert list(frame.columns) == list(model.structure.nodes)
    assert np.isfinite(frame.to_numpy()).all()
    columns = {name: frame[name].to_numpy() for name in frame}
    for equation in model.equations:
        noise = columns[equation.node] - equation.mean(columns)
        if isinstance(equation.noise, Normal):
            assert noise.mean() == pytest.approx(0.0, abs=5 * np.sqrt(equation.noise.variance / 20_000))
            assert noise.var() == pytest.approx(equation.noise.variance, rel=0.05)
        for parent in equation.parents:
            assert abs(np.corrcoef(noise, columns[parent])[0, 1]) < 0.04


def test_mixture_has_its_moments():
    mixture = Mixture(((0.25, -2.0, 0.5), (0.75, 2.0, 4.0)))
    sample = mixture.sample(100_000, np.random.default_rng(0))
    assert sample.mean() == pytest.approx(1.0, abs=0.05)
    assert sample.var() == pytest.approx(0.25 * 4.5 + 0.75 * 8.0 - 1.0, rel=0.03)
    assert str(mixture) == "0.25 N(-2, 0.5) + 0.75 N(2, 4)"


@EVERY
def test_the_same_seed_gives_the_same_rows(variables):
    model = MODELS[variables]
    assert model.sample(50, seed=7).equals(model.sample(50, seed=7))
    assert not model.sample(50, seed=7).equals(model.sample(50, seed=8))


def test_parents_are_read_off_the_expression():
    assert Equation("Z", "ckde", "sin(Y / X) + 2 * Y", Normal(1.0)).parents == ("X", "Y")
    assert Equation("Z", "lg", "6", Normal(1.0)).parents == ()


@EVERY
def test_the_table_has_every_equation(variables):
    table = MODELS[variables].markdown()
    assert len(table.splitlines()) == variables + 2
    assert all(f"| {equation.node} |" in table for equation in MODELS[variables].equations)
