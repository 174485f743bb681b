import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spbn.errors import ArgumentError, DataError, FitError
from spbn.nodes import KDE

from strategies import nonlinear_frame


@pytest.mark.parametrize("rule", ["scott", "silverman"])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_agrees_with_scipy(rule, columns):
    frame = nonlinear_frame(400, columns)
    train, test = frame[:300], frame[300:]
    ours = KDE.fit(train, bandwidth=rule).logpdf(test)
    theirs = stats.gaussian_kde(train.T, bw_method=rule).logpdf(test.T)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_columns_are_found_by_name():
    frame = nonlinear_frame(100, 3)
    kde = KDE.fit(frame, ["c", "a"])
    np.testing.assert_array_equal(kde.logpdf(frame), kde.logpdf(frame[["b", "a", "c"]]))
    with pytest.raises(DataError, match="lacks column 'c'"):
        kde.logpdf(frame[["a", "b"]])


def test_a_large_offset_costs_no_digits():
    frame = nonlinear_frame(200, 2).round(6)
    moved = frame + 1e8
    back = moved - 1e8  # what is left of the values at that offset
    np.testing.assert_allclose(KDE.fit(moved).logpdf(moved), KDE.fit(back).logpdf(back), rtol=1e-10)


def test_a_row_does_not_depend_on_the_others_in_the_query():
    frame = nonlinear_frame(60, 2)
    kde = KDE.fit(frame)
    row = {"a": [0.1], "b": [0.2]}
    crowd = {"a": [0.1] + [1e18] * 100, "b": [0.2] + [1e18] * 100}
    assert kde.logpdf(crowd)[0] == kde.logpdf(row)[0]


def test_numbers_too_large_to_be_squared_have_no_density():
    kde = KDE.fit(nonlinear_frame(60, 2))
    assert kde.logpdf({"a": [1e160], "b": [0.0]}) == -np.inf


def test_points_cannot_be_changed():
    kde = KDE.fit(nonlinear_frame(60, 2))
    for array in (kde.points, kde.bandwidth):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


def test_samples_have_the_covariance_of_points_and_kernels():
    kde = KDE.fit(nonlinear_frame(100, 3))
    expected = np.cov(kde.points, ddof=0) + kde.bandwidth
    np.testing.assert_allclose(np.cov(kde.sample(100_000, seed=0).T), expected, atol=0.05)


def test_samples_have_the_density():
    kde = KDE.fit(nonlinear_frame(200, 1))
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(kde.logpdf({"a": grid}))
    cdf = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid))])
    sample = kde.sample(5000, seed=1)["a"]
    assert stats.kstest(sample, lambda x: np.interp(x, grid, cdf)).pvalue > 0.01


def test_samples_repeat_with_the_seed():
    kde = KDE.fit(nonlinear_frame(50, 2))
    pd.testing.assert_frame_equal(kde.sample(10, seed=3), kde.sample(10, seed=3))
    assert kde.sample(10, seed=3).columns.tolist() == ["a", "b"]


def test_equality_and_repr():
    frame = nonlinear_frame(50, 3)
    assert KDE.fit(frame) == KDE.fit(frame)
    assert KDE.fit(frame) != KDE.fit(frame, bandwidth="silverman")
    assert KDE.fit(frame) != KDE.fit(frame[:49])
    assert repr(KDE.fit(frame)) == "KDE of a, b, c (50 rows)"


def test_refusals():
    with pytest.raises(FitError, match="singular"):
        KDE.fit({"a": [1.0, 2.0, 3.0], "b": [2.0, 4.0, 6.0]})
    with pytest.raises(ArgumentError, match="bandwidth must be"):
        KDE.fit(nonlinear_frame(50, 1), bandwidth=0.3)
    with pytest.raises(DataError, match="at least 2 rows"):
        KDE.fit({"a": [1.0]})
    with pytest.raises(DataError, match="no columns are named"):
        KDE.fit(nonlinear_frame(50, 1), [])
    for wrong in (-1, 1.5, True):
        with pytest.raises(ArgumentError, match="number of samples"):
            KDE.fit(nonlinear_frame(50, 1)).sample(wrong)


@pytest.mark.slow
@pytest.mark.skipif(
    not os.path.exists("/proc/self/clear_refs"), reason="reads memory figures that only Linux has"
)
def test_memory_stays_small():
    """200,000 rows under 20,000 kernels: an array of all pairs would take 32 GB."""
    code = """
import numpy as np, spbn
def status(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024
rng = np.random.default_rng(0)
kde = spbn.nodes.KDE.fit({"a": rng.normal(size=20_000), "b": rng.normal(size=20_000)})
queries = {"a": rng.normal(size=200_000), "b": rng.normal(size=200_000)}
small = {name: column[:10] for name, column in queries.items()}
kde.logpdf(small)
with open("/proc/self/clear_refs", "w") as control:
    control.write("5")  # the peak starts anew
before = status("VmRSS")
spbn.nodes.KDE(kde.names, kde.points, kde.bandwidth, "exact").logpdf(queries)
print(status("VmHWM") - before)
"""
    used = float(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    assert 1 < used < 200


def test_a_joint_density_has_no_child_to_choose_a_scale_for(rng):
    with pytest.raises(ArgumentError, match="bandwidth='cv' is for CKDE nodes"):
        KDE.fit({"a": rng.normal(size=20)}, bandwidth="cv")
