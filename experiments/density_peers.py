"""What a user would pick instead of a network: vine copulas, Gaussian mixtures, kernel density estimates.

Every method is a function from training and test rows (arrays, rows × columns) to the log-density of the
test rows. Whatever they choose, they choose on training rows.
"""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KernelDensity

COMPONENTS = (1, 2, 3, 5, 8, 12, 18, 25, 35)
COVARIANCES = ("full", "tied", "diag", "spherical")
BANDWIDTHS = np.geomspace(0.03, 3.0, 25)
MOST_ROWS = 4_000  # on which a bandwidth is chosen
LEAST = 1e-300  # of a density, so that its logarithm is finite


def gaussian_mixture(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Fit a mixture whose components and covariance predict a fifth of the training rows best."""
    (a, b), scale = _standardised(train, test)
    fit_rows, held_out = train_test_split(a, test_size=0.2, random_state=0)
    best, chosen = -np.inf, (1, "full")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that EM has not converged
        for components, covariance in product(COMPONENTS, COVARIANCES):
            if components <= len(fit_rows) // 2:
                score = _mixture(components, covariance).fit(fit_rows).score(held_out)
                if score > best:
                    best, chosen = score, (components, covariance)
        return _mixture(*chosen).fit(a).score_samples(b) - scale


def _mixture(components: int, covariance: str) -> GaussianMixture:
    return GaussianMixture(components, covariance_type=covariance, random_state=0, n_init=2, max_iter=300)


def kernel_density(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Fit a kernel density estimate of standardised columns, its bandwidth chosen by cross-validation."""
    (a, b), scale = _standardised(train, test)
    some = np.random.default_rng(0).permutation(len(a))[:MOST_ROWS] if len(a) > MOST_ROWS else slice(None)
    search = GridSearchCV(KernelDensity(), {"bandwidth": BANDWIDTHS}, cv=5, refit=False).fit(a[some])
    return KernelDensity(**search.best_params_).fit(a).score_samples(b) - scale


def vine_parametric(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Fit a vine of parametric pair copulas."""
    return _vine(train, test, parametric=True)


def vine_nonparametric(train: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Fit a vine of transformed local likelihood pair copulas."""
    return _vine(train, test, parametric=False)


def _vine(train: np.ndarray, test: np.ndarray, *, parametric: bool) -> np.ndarray:
    import pyvinecopulib as vines
    from pyvinecopulib.core import Kde1d

    log_density = np.zeros(len(test))
    uniform_train, uniform_test = np.empty_like(train), np.empty_like(test)
    for k in range(train.shape[1]):
        margin = Kde1d()
        margin.fit(np.ascontiguousarray(train[:, k]))
        log_density += np.log(np.maximum(margin.pdf(np.ascontiguousarray(test[:, k])), LEAST))
        for out, rows in ((uniform_train, train), (uniform_test, test)):
            out[:, k] = np.clip(margin.cdf(np.ascontiguousarray(rows[:, k])), 1e-10, 1 - 1e-10)
    families = vines.parametric if parametric else [vines.indep, vines.tll]
    controls = vines.FitControlsVinecop(family_set=list(families), num_threads=1)
    copula = vines.Vinecop.from_data(uniform_train, controls=controls)
    return log_density + np.log(np.maximum(copula.pdf(uniform_test), LEAST))


def _standardised(train: np.ndarray, test: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """Return rows with mean 0 and variance 1, and what that takes off the log-density."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return ((train - mean) / deviation, (test - mean) / deviation), float(np.log(deviation).sum())


PEERS = {
    "vine, parametric": vine_parametric,
    "vine, nonparametric": vine_nonparametric,
    "Gaussian mixture": gaussian_mixture,
    "KernelDensity": kernel_density,
}
