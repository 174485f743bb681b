import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from spbn.numerics.mixture_weights import mixing_weights

from naive import em_weights


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    components=st.integers(1, 6),
    rows=st.integers(1, 300),
    spread=st.sampled_from([0.01, 1.0, 30.0, 800.0]),
    seed=st.integers(0, 999),
)
def test_agrees_with_em(components, rows, spread, seed):
    log_densities = np.random.default_rng(seed).normal(0.0, spread, (components, rows))
    weights, total = mixing_weights(log_densities)
    expected = em_weights(log_densities)
    np.testing.assert_allclose(weights, expected, atol=1e-9)
    mixed = special.logsumexp(log_densities, b=weights[:, None], axis=0).sum()
    assert total == pytest.approx(mixed, rel=1e-12, abs=1e-9)


def test_normal_densities_of_very_different_widths():
    x = np.random.default_rng(0).standard_t(1.5, 2000)
    log_densities = np.stack([stats.norm.logpdf(x, 0, s) for s in (0.01, 0.1, 1.0, 10.0, 100.0)])
    np.testing.assert_allclose(mixing_weights(log_densities)[0], em_weights(log_densities), atol=1e-9)


def test_equal_components_share_their_weight():
    row = np.random.default_rng(0).normal(size=(1, 50))
    np.testing.assert_allclose(mixing_weights(np.repeat(row, 4, axis=0))[0], 0.25, atol=1e-12)


@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_a_component_that_is_not_defined_for_some_row_drops_out(bad):
    log_densities = np.random.default_rng(0).normal(size=(3, 40))
    without = mixing_weights(log_densities[[0, 2]])
    log_densities[1, 7] = bad
    weights, total = mixing_weights(log_densities)
    assert weights[1] == 0.0
    np.testing.assert_array_equal(weights[[0, 2]], without[0])
    assert total == without[1]


def test_without_any_component_there_is_no_likelihood():
    weights, total = mixing_weights(np.full((3, 5), -np.inf))
    assert total == -np.inf
    assert not weights.any()


def test_weights_do_not_depend_on_where_the_arrays_lie():
    """The same bits, whatever lies in memory around them."""
    rng = np.random.default_rng(3)
    for rows in (47, 61, 150):
        log_densities = -rng.exponential(3.0, size=(5, rows))
        kept, found = [], set()
        for _ in range(200):
            kept.append(np.empty(rng.integers(1, 3000)))
            weights, total = mixing_weights(log_densities.copy())
            found.add((weights.tobytes(), total))
        assert len(found) == 1
