"""Tables of all shapes, and the arrays that the engines take, for the tests of the engines for large data."""

from itertools import pairwise

import numpy as np

from spbn import kernels
from spbn.kernels.estimates import Spans
from spbn.numerics import gaussian

SHAPES = [
    "normal",
    "bimodal",
    "student",
    "lognormal",
    "integers",
    "clusters",
    "outlier",
    "collinear",
]


def table(shape, d, rows, seed=0):
    """Rows × d."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, d))
    if shape == "bimodal":
        x += np.where(rng.random((rows, 1)) < 0.5, -4, 4)
    elif shape == "student":
        x /= np.sqrt(rng.chisquare(2, size=(rows, 1)) / 2)
    elif shape == "lognormal":
        x = np.exp(x)
    elif shape == "integers":
        x = np.round(3 * x)
    elif shape == "clusters":
        x = 1e-3 * x + rng.normal(size=(30, d))[rng.integers(30, size=rows)]
    elif shape == "outlier":
        x[rows // 3] = 1e6
    elif shape == "collinear":
        x[:, 1:] = x[:, :1] + 1e-5 * x[:, 1:]
    return x


def scott(x, *, widened=1.0):
    """The whitener of a table."""
    rows, d = x.shape
    factor = rows ** (-2 / (d + 4)) * widened**2
    return gaussian.whitener(np.ascontiguousarray(factor * np.atleast_2d(np.cov(x.T))))


def cross_validation(x, folds=10, *, widened=(1.0,)):
    """Points, columns, whiteners and spans; one set for every factor of the bandwidth."""
    x = x - x.mean(axis=0)
    cuts = np.linspace(0, len(x), folds + 1).astype(int)
    spans = Spans(np.array([[a, b, 0, a, b, len(x)] for a, b in pairwise(cuts)]))
    training = [np.delete(x, np.s_[a:b], axis=0) for a, b in spans.queries]
    whiteners = np.array([[scott(part, widened=factor) for part in training] for factor in widened])
    columns = np.tile(np.arange(x.shape[1]), (len(widened), 1))
    return np.ascontiguousarray(x.T), columns, whiteners, spans


def plain(train, queries, whitener=None):
    """Points, columns, whiteners and spans of queries under a KDE."""
    both = np.concatenate([train, queries])
    span = Spans(np.array([[len(train), len(both), 0, len(train), 0, 0]]))
    points = np.ascontiguousarray((both - train.mean(axis=0)).T)
    whitener = scott(train) if whitener is None else whitener
    return points, np.arange(train.shape[1])[None], whitener[None, None], span


def exactly(arrays):
    return kernels.exact.log_density(*arrays)


def require_promise(found, expected):
    """Every row within 1e-6, and the totals of sets within 1e-9, relative or by row."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-6)
    totals, queried = np.nansum(expected, axis=1), np.isfinite(expected).sum(axis=1)
    assert (np.abs(np.nansum(found, axis=1) - totals) <= 1e-9 * (np.abs(totals) + queried)).all()
