import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from spbn.nodes import CKDE

from naive import ckde_logpdf
from strategies import nonlinear_frame


@given(parents=st.integers(0, 4), rows=st.integers(8, 60), seed=st.integers(0, 99))
def test_agrees_with_the_definition(parents, rows, seed):
    frame = nonlinear_frame(rows, 5, seed)
    names = list("cbde")[:parents]
    ours = CKDE.fit(frame, "a", names).logpdf(frame)
    np.testing.assert_allclose(ours, ckde_logpdf(frame, frame, "a", names), rtol=1e-9, atol=1e-10)


def test_a_function_as_bandwidth_sees_the_child_first():
    frame = nonlinear_frame(80, 3)

    def rule(data):
        return np.diag([0.1, 0.2, 0.3]) + 0.01 * np.cov(data.T)

    ours = CKDE.fit(frame, "b", ["a", "c"], bandwidth=rule).logpdf(frame)
    np.testing.assert_allclose(ours, ckde_logpdf(frame, frame, "b", ["a", "c"], rule), rtol=1e-10)


@settings(max_examples=15)
@given(parents=st.integers(0, 3), seed=st.integers(0, 99), row=st.integers(0, 39))
def test_integrates_to_one_and_cdf_is_that_integral(parents, seed, row):
    frame = nonlinear_frame(40, 4, seed)
    names = list("bcd")[:parents]
    cpd = CKDE.fit(frame, "a", names)
    fixed = {name: frame[name][row] for name in names}

    def at(function, xs):
        xs = np.atleast_1d(xs)
        return function({"a": xs, **{name: np.full(len(xs), value) for name, value in fixed.items()}})

    grid = np.linspace(-15, 15, 6001)
    density = np.exp(at(cpd.logpdf, grid))
    assert integrate.simpson(density, x=grid) == pytest.approx(1.0, abs=1e-9)
    below = integrate.cumulative_simpson(density, x=grid, initial=0)
    np.testing.assert_allclose(at(cpd.cdf, grid), below, atol=1e-7)


@pytest.mark.parametrize("distance", [1e3, 1e6, 1e9, 1e12, 1e160])
def test_far_from_all_parents_the_nearest_kernel_decides(distance):
    """There the density is the normal distribution that the kernel of the nearest row gives."""
    frame = nonlinear_frame(50, 2)
    cpd = CKDE.fit(frame, "b", ["a"])
    (h_aa, h_ab), (_, h_bb) = cpd.bandwidth
    nearest = frame["a"].argmax()
    mean = frame["b"][nearest] + h_ab / h_aa * (distance - frame["a"][nearest])
    normal = stats.norm(mean, np.sqrt(h_bb - h_ab**2 / h_aa))
    x = mean + np.array([-1.0, 0.0, 2.0]) * max(1.0, 1e-12 * distance)
    far = {"a": np.full(3, distance), "b": x}
    if distance <= 1e9:  # beyond, x and the mean themselves are rounded too much to compare
        np.testing.assert_allclose(cpd.logpdf(far), normal.logpdf(x), rtol=1e-5)
        np.testing.assert_allclose(cpd.cdf(far), normal.cdf(x), atol=1e-5)
    assert not np.isnan(cpd.logpdf(far)).any()
    assert not np.isnan(cpd.cdf(far)).any()
    assert np.isfinite(cpd.sample(3, given=far, seed=0)).all()


@pytest.mark.parametrize("names", [[], ["b"], ["b", "c"]])
def test_samples_have_the_density(names):
    frame = nonlinear_frame(150, 3)
    cpd = CKDE.fit(frame, "a", names)
    n = 4000
    given = {name: np.full(n, frame[name][7]) for name in names}
    sample = cpd.sample(n, given=given, seed=5)
    uniform = cpd.cdf({"a": sample, **given})
    assert stats.kstest(uniform, "uniform").pvalue > 0.01
    np.testing.assert_array_equal(sample, cpd.sample(n, given=given, seed=5))


def test_repr_and_equality():
    frame = nonlinear_frame(50, 2)
    assert repr(CKDE.fit(frame, "b", ["a"])) == "b | a ~ CKDE (50 rows)"
    assert repr(CKDE.fit(frame, "b")) == "b ~ CKDE (50 rows)"
    assert CKDE.fit(frame, "b", ["a"]) == CKDE.fit(frame, "b", ["a"])
    assert CKDE.fit(frame, "b", ["a"]) != CKDE.fit(frame, "a", ["b"])


@pytest.mark.slow
@pytest.mark.parametrize("parents", [[], ["a"], ["a", "b"]])
@pytest.mark.parametrize("asked", [1, 7, 300])
def test_density_and_distribution_function_together(parents, asked):
    """In one pass over the kernels, also for rows far from all of them."""
    train, frame = nonlinear_frame(400, 3, seed=1), nonlinear_frame(asked, 3, seed=2)
    frame.loc[0, "c"] += 40.0
    cpd = CKDE.fit(train, "c", parents)
    density, below = cpd.logpdf_and_cdf(frame)
    np.testing.assert_allclose(density, ckde_logpdf(frame, train, "c", parents), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(below, cpd.cdf(frame), rtol=1e-9, atol=1e-14)
    far = frame.assign(a=frame["a"] + 1e4)
    np.testing.assert_allclose(cpd.logpdf_and_cdf(far)[0], cpd.logpdf(far), rtol=1e-9)
    np.testing.assert_allclose(cpd.logpdf_and_cdf(far)[1], cpd.cdf(far), rtol=1e-9, atol=1e-14)
