import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

import spbn
from spbn import Structure
from spbn.errors import ArgumentError

from naive import lg_logpdf
from strategies import nonlinear_frame

FRAME = nonlinear_frame(50, 5)


@pytest.mark.slow
@given(parents=st.integers(0, 4), seed=st.integers(0, 99), offset=st.sampled_from([0.0, 1e8]))
def test_bic_is_the_penalised_likelihood(parents, seed, offset):
    frame = nonlinear_frame(30, 5, seed)
    names = list("bcde")[:parents]
    expected = lg_logpdf(frame, frame, "a", names).sum() - np.log(30) / 2 * (parents + 2)
    # At an offset of 1e8 the columns themselves keep 8 digits.
    assert spbn.scores.BIC(frame + offset).local("a", names) == pytest.approx(
        expected, rel=1e-6 if offset else 1e-10
    )


def test_bic_of_nearly_collinear_columns_keeps_its_digits(rng):
    x = rng.normal(size=200)
    noise = rng.normal(size=200)
    noise -= np.polyval(np.polyfit(x, noise, 1), x)  # exactly the residual
    for scale in [1e-3, 1e-4, 1e-5]:
        frame = {"x": x, "y": x + scale * noise}
        variance = scale**2 * (noise**2).sum() / 198
        expected = -100 * np.log(2 * np.pi * variance) - 99 - np.log(200) / 2 * 3
        assert spbn.scores.BIC(frame).local("y", ["x"]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
def test_bge_of_one_variable_is_the_marginal_likelihood_of_a_normal_gamma():
    """By the predictive distribution, row by row: a product of Student t densities."""
    x = FRAME["a"].to_numpy()
    iss_mu, iss_w, nu = 2.0, 5.0, 0.3
    # One variable: Wishart with iss_w degrees of freedom and scale t = iss_mu (iss_w - 2)/(iss_mu + 1).
    kappa, freedom, mean, scale = iss_mu, iss_w, nu, iss_mu * (iss_w - 2) / (iss_mu + 1)
    log_marginal = 0.0
    for value in x:
        spread = np.sqrt(scale * (kappa + 1) / (kappa * freedom))
        log_marginal += stats.t.logpdf(value, freedom, mean, spread)
        scale += kappa / (kappa + 1) * (value - mean) ** 2
        mean = (kappa * mean + value) / (kappa + 1)
        kappa, freedom = kappa + 1, freedom + 1
    score = spbn.scores.BGe({"a": x}, iss_mu=iss_mu, iss_w=iss_w, nu={"a": nu})
    assert score.local("a") == pytest.approx(log_marginal, rel=1e-11)


@pytest.mark.slow
@given(seed=st.integers(0, 99))
def test_bge_is_the_same_for_equivalent_structures(seed):
    score = spbn.scores.BGe(nonlinear_frame(40, 3, seed), iss_mu=0.7, nu=[0.1, 0.2, 0.3])
    chain, reverse, fork = [("a", "b"), ("b", "c")], [("c", "b"), ("b", "a")], [("b", "a"), ("b", "c")]
    totals = [score.total(Structure("abc", arcs)) for arcs in (chain, reverse, fork)]
    np.testing.assert_allclose(totals, totals[0], rtol=1e-12)
    collider = score.total(Structure("abc", [("a", "b"), ("c", "b")]))
    assert collider != pytest.approx(totals[0], rel=1e-9)


def test_bge_of_a_complete_graph_is_the_marginal_likelihood_of_the_matrix_normal():
    """Closed form for all variables together, with scipy's multivariate gamma function."""
    data = FRAME[["a", "b", "c"]].to_numpy()
    rows, n = data.shape
    iss_mu, iss_w = 1.0, n + 2.0
    t = iss_mu * (iss_w - n - 1) / (iss_mu + 1)
    posterior = t * np.eye(n) + (rows - 1) * np.cov(data.T)
    expected = (
        -rows * n / 2 * np.log(np.pi)
        + n / 2 * np.log(iss_mu / (rows + iss_mu))
        + special.multigammaln((rows + iss_w) / 2, n)
        - special.multigammaln(iss_w / 2, n)
        + iss_w / 2 * n * np.log(t)
        - (rows + iss_w) / 2 * np.linalg.slogdet(posterior)[1]
    )
    complete = Structure("abc", [("a", "b"), ("a", "c"), ("b", "c")])
    assert spbn.scores.BGe(FRAME[["a", "b", "c"]]).total(complete) == pytest.approx(expected, rel=1e-12)


def test_default_prior_mean_is_the_column_mean():
    default, given_ = spbn.scores.BGe(FRAME), spbn.scores.BGe(FRAME, nu=FRAME.mean().to_dict())
    assert default.local("a", ["b"]) == pytest.approx(given_.local("a", ["b"]), rel=1e-12)
    assert default.local("a", ["b"]) != pytest.approx(
        spbn.scores.BGe(FRAME, nu=np.ones(5)).local("a", ["b"]), rel=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iss_mu": 0}, "iss_mu"),
        ({"iss_w": 6}, "iss_w"),
        ({"nu": [1.0]}, "nu"),
        ({"nu": {"a": 1.0}}, "nu"),
        ({"nu": [np.nan] * 5}, "nu"),
    ],
)
def test_bge_refuses_priors_that_make_no_sense(options, message):
    with pytest.raises(ArgumentError, match=message):
        spbn.scores.BGe(FRAME, **options)


@pytest.mark.parametrize("score", [spbn.scores.BIC, spbn.scores.BGe])
def test_kernel_nodes_are_refused(score):
    with pytest.raises(ArgumentError, match="type lg only"):
        score(FRAME).local("a", [], "ckde")


def test_too_few_rows_score_minus_infinity():
    assert spbn.scores.BIC(FRAME[:5]).local("a", ["b", "c", "d", "e"]) == -np.inf
    assert np.isfinite(spbn.scores.BIC(FRAME[:6]).local("a", ["b", "c", "d", "e"]))
