import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from spbn import BayesianNetwork
from spbn.datasets import paper_synthetic, synthetic, synthetic_logpdf, synthetic_structure
from spbn.errors import ArgumentError


@pytest.mark.slow
def test_the_papers_figures_come_out():
    test = paper_synthetic("test")
    assert synthetic_logpdf(test).sum() == pytest.approx(-6982.23, abs=0.005)
    network = BayesianNetwork.fit(synthetic_structure(), paper_synthetic("10000"))
    assert network.loglik(test) == pytest.approx(-7134.9028, abs=1e-4)


@pytest.mark.shared
@pytest.mark.parametrize("table", ["200", "2000", "10000", "test"])
def test_the_papers_rows_are_drawn_again(shared, table):
    published = pd.read_csv(shared / "paper-data" / "synthetic" / f"synthetic_{table}.csv")[list("ABCDE")]
    np.testing.assert_allclose(paper_synthetic(table), published, rtol=1e-14, atol=1e-15)


def test_rows_have_the_density():
    rows = synthetic(20_000, seed=1)
    assert stats.kstest(rows["A"], stats.norm(6, 1).cdf).pvalue > 0.01
    mixture = lambda x: 0.5 * stats.norm.cdf(x, -2) + 0.5 * stats.norm.cdf(x, 2)  # noqa: E731
    assert stats.kstest(rows["B"], mixture).pvalue > 0.01
    for residual, variance in [
        (rows["C"] - rows["A"] * rows["B"], 1),
        (rows["D"] - 10 - 0.8 * rows["C"], 0.5),
        (rows["E"] - 1 / (1 + np.exp(-rows["D"])), 0.5),
    ]:
        assert stats.kstest(residual, stats.norm(0, np.sqrt(variance)).cdf).pvalue > 0.01


def test_integrating_the_last_variable_out_leaves_the_density_of_the_others():
    row = synthetic(1, seed=3)
    grid = np.linspace(-8, 8, 4001)
    rows = row.loc[row.index.repeat(len(grid))].assign(E=grid)
    others = integrate.simpson(np.exp(synthetic_logpdf(rows)), x=grid)
    e_given_d = stats.norm.pdf(row["E"][0], 1 / (1 + np.exp(-row["D"][0])), np.sqrt(0.5))
    assert others == pytest.approx(np.exp(synthetic_logpdf(row)[0]) / e_given_d, rel=1e-9)


def test_seeds_and_refusals():
    pd.testing.assert_frame_equal(synthetic(10, seed=4), synthetic(10, seed=4))
    with pytest.raises(ArgumentError, match="whole number"):
        synthetic(2.5)
    with pytest.raises(ArgumentError, match="table must be one of"):
        paper_synthetic("500")
