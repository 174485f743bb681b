import numpy as np
import pytest
from experiments.missing import METHODS, crps


def test_crps_of_draws_is_that_of_the_distribution():
    """The closed form for a standard normal at x: x (2Φ(x) - 1) + 2φ(x) - 1/√π."""
    from scipy import stats

    rng = np.random.default_rng(0)
    truth = np.array([-1.0, 0.0, 2.0])
    draws = rng.standard_normal((200_000, 1)) + np.zeros(3)
    normal = stats.norm()
    expected = truth * (2 * normal.cdf(truth) - 1) + 2 * normal.pdf(truth) - 1 / np.sqrt(np.pi)
    np.testing.assert_allclose(crps(draws, truth), expected, atol=0.01)
    # Few draws are as good as many, in the mean; one draw is the absolute error.
    few = crps(rng.standard_normal((2, 200_000)), np.full(200_000, 2.0)).mean()
    assert few == pytest.approx(expected[2], abs=0.01)
    assert crps(np.array([[3.0]]), np.array([1.0]))[0] == 2.0


@pytest.mark.slow
def test_rows_without_holes_stay_as_they_are():
    import pandas as pd

    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc"))
    frame["b"] += frame["a"]
    holes = frame.mask(rng.random(frame.shape) < 0.1)
    there = holes.notna().to_numpy()
    for method, fill in METHODS.items():
        network, draws = fill(holes)
        assert network is not None, method
        for completed in draws:
            np.testing.assert_array_equal(completed[there], frame.to_numpy()[there])
            assert np.isfinite(completed).all()
