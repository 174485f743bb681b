import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spbn.errors import ArgumentError, DataError, FitError
from spbn.nodes import LinearGaussian

from naive import lg_logpdf
from strategies import nonlinear_frame


@given(
    parents=st.integers(0, 4),
    rows=st.integers(10, 60),
    seed=st.integers(0, 99),
    offset=st.sampled_from([0, 1e4]),
)
def test_agrees_with_the_definition(parents, rows, seed, offset):
    frame = nonlinear_frame(rows, 5, seed) + offset
    names = list("bcde")[:parents]
    cpd = LinearGaussian.fit(frame, "a", names)
    np.testing.assert_allclose(cpd.logpdf(frame), lg_logpdf(frame, frame, "a", names), rtol=1e-8, atol=1e-8)


def test_one_parent_is_the_regression_of_scipy():
    frame = nonlinear_frame(100, 2)
    cpd, line = LinearGaussian.fit(frame, "b", ["a"]), stats.linregress(frame["a"], frame["b"])
    assert cpd.coefficients[0] == pytest.approx(line.slope, rel=1e-12)
    assert cpd.intercept == pytest.approx(line.intercept, rel=1e-12)


def test_cdf_is_that_of_the_normal_distribution():
    cpd = LinearGaussian("y", ("x",), 1.0, (2.0,), 4.0)
    data = {"x": [0.0, 1.0], "y": [1.0, 5.0]}
    np.testing.assert_allclose(cpd.cdf(data), stats.norm.cdf([0, 1]), rtol=1e-14)


def test_samples_have_the_density():
    cpd = LinearGaussian("y", ("x",), 1.0, (2.0,), 4.0)
    sample = cpd.sample(4000, given={"x": np.full(4000, 3.0)}, seed=0)
    assert stats.kstest(sample, stats.norm(7, 2).cdf).pvalue > 0.01
    np.testing.assert_array_equal(sample, cpd.sample(4000, given={"x": np.full(4000, 3.0)}, seed=0))


def test_reads_as_an_equation():
    cpd = LinearGaussian("C", ("A", "B"), 1.25, (0.8, -0.31234), 0.49)
    assert repr(cpd) == "C = 1.25 + 0.8·A - 0.3123·B + N(0, 0.49)"


def test_refusals():
    frame = nonlinear_frame(20, 3)
    frame["sum"] = frame["a"] + frame["b"]
    frame["one"] = 1.0
    with pytest.raises(FitError, match="'sum' is a linear combination"):
        LinearGaussian.fit(frame, "sum", ["a", "b"])
    with pytest.raises(FitError, match="linearly dependent"):
        LinearGaussian.fit(frame, "c", ["a", "b", "sum"])
    with pytest.raises(FitError, match="'one' is constant"):
        LinearGaussian.fit(frame, "one")
    with pytest.raises(FitError, match="at least 4 rows"):
        LinearGaussian.fit(frame[:3], "c", ["a", "b"])
    with pytest.raises(DataError, match="lacks column 'z'"):
        LinearGaussian.fit(frame, "z")
    cpd = LinearGaussian.fit(frame, "c", ["a"])
    with pytest.raises(ArgumentError, match="pass their values"):
        cpd.sample(3)
    with pytest.raises(ArgumentError, match="each of the 3 samples"):
        cpd.sample(3, given={"a": [1.0, 2.0]})
    with pytest.raises(ArgumentError, match="whole number"):
        cpd.sample(-1)
