from itertools import pairwise

import numpy as np
import pytest

from kernels.large import cross_validation, exactly, plain, require_promise, table
from spbn import kernels
from spbn.errors import ArgumentError
from spbn.kernels.estimates import Spans


def folds(rows, k=10):
    cuts = np.linspace(0, rows, k + 1).astype(int)
    return Spans(np.array([[a, b, 0, a, b, rows] for a, b in pairwise(cuts)]))


def queries(train, count):
    return Spans(np.array([[train, train + count, 0, train, 0, 0]]))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_small_data_is_computed_exactly(d):
    arrays = cross_validation(table("normal", d, 2000))
    np.testing.assert_array_equal(kernels.log_density(*arrays), exactly(arrays))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "spectral"])
@pytest.mark.parametrize(("d", "rows"), [(1, 30_000), (2, 30_000)])
def test_large_data_goes_through_fourier_space(engine, d, rows):
    arrays = cross_validation(table("normal", d, rows))
    expected = exactly(arrays)
    found = kernels.log_density(*arrays, engine=engine)
    require_promise(found, expected)
    assert (found != expected).any()
    np.testing.assert_array_equal(kernels.log_density(*arrays, engine="exact"), expected)


def test_spectral_is_spectral_even_if_it_does_not_pay():
    arrays = cross_validation(table("normal", 3, 2000))
    found, expected = kernels.log_density(*arrays, engine="spectral"), exactly(arrays)
    require_promise(found, expected)
    assert (found != expected).any()


def test_where_the_engines_change_places():
    assert not kernels.spectral_pays(1, folds(8_000))
    assert kernels.spectral_pays(1, folds(20_000))
    assert not kernels.spectral_pays(2, folds(10_000))
    assert kernels.spectral_pays(2, folds(25_000))
    assert not kernels.spectral_pays(3, folds(25_000))
    assert kernels.spectral_pays(3, folds(100_000))
    assert not kernels.spectral_pays(4, folds(1_000_000))
    assert kernels.pruning_pays(4, folds(1_000_000))
    assert not kernels.pruning_pays(4, folds(100_000))
    assert not kernels.pruning_pays(6, folds(1_000_000))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 5])
def test_few_queries_are_computed_exactly_however_large_the_kde(d):
    assert not kernels.spectral_pays(d, queries(1_000_000, 100))
    assert not kernels.pruning_pays(d, queries(1_000_000, 100))


def test_many_queries_against_a_large_kde_are_not():
    assert kernels.spectral_pays(1, queries(1_000_000, 100_000))
    assert kernels.spectral_pays(3, queries(1_000_000, 100_000))
    assert kernels.pruning_pays(4, queries(1_000_000, 100_000))


def test_beyond_three_dimensions_spectral_is_exact():
    arrays = cross_validation(table("normal", 4, 1000))
    np.testing.assert_array_equal(kernels.log_density(*arrays, engine="spectral"), exactly(arrays))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "spectral"])
def test_many_rows_in_four_dimensions_are_pruned(monkeypatch, engine):
    monkeypatch.setitem(kernels.PRUNING_TRAIN, 4, 3000)
    monkeypatch.setattr(kernels, "PRUNING_QUERIES", 1000)
    arrays = plain(table("bimodal", 4, 3000), table("bimodal", 4, 1000, seed=1))
    found, expected = kernels.log_density(*arrays, engine=engine), exactly(arrays)
    require_promise(found, expected)
    assert (found != expected)[:, 3000:].any()


def test_unknown_engines_are_refused():
    arrays = cross_validation(table("normal", 1, 100))
    with pytest.raises(ArgumentError, match=r"'spectral'\. Got 'fast'"):
        kernels.log_density(*arrays, engine="fast")
