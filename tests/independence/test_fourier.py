import numpy as np
import pytest
from scipy.spatial.distance import pdist

from spbn.independence import rcot_kernel
from spbn.independence.rcot_kernel import Features, fill_features, median_distance, project_one, project_set


def features_of(columns, members, weights, phases):
    out = np.empty((len(phases), columns.shape[1]))
    features = Features(np.array([members]), weights[None], phases[None], *np.empty((2, 1, len(phases))))
    fill_features(columns, features, 0, 0, columns.shape[1], out)
    return out


def test_features_are_cosines_of_projections(rng):
    columns = rng.normal(size=(3, 40)) * [[1.0], [30.0], [1e3]]
    weights, phases = rng.normal(size=(6, 2)), rng.random(6)
    expected = np.cos(2 * np.pi * (weights @ columns[[2, 0]] + phases[:, None]))
    np.testing.assert_allclose(features_of(columns, [2, 0], weights, phases), expected, atol=1e-11)


@pytest.mark.parametrize("dimensions", [1, 2, 4])
def test_inner_products_approximate_the_gaussian_kernel(rng, dimensions):
    columns = rng.normal(size=(dimensions, 30))
    members = np.arange(dimensions)
    if dimensions == 1:
        features = features_of(columns, members, *project_one(columns[0], 5000, rng))
        # Phases fill half a turn: f and -f are alike, so the mean of products is what matters.
        kernel = 2 * features.T @ features / 5000
    else:
        features = features_of(columns, members, *project_set(columns, members, 40_000, rng))
        kernel = 2 * features.T @ features / 40_000
    squares = ((columns[:, :, None] - columns[:, None, :]) ** 2).sum(axis=0)
    np.testing.assert_allclose(kernel, np.exp(-squares / (2 * median_distance(columns) ** 2)), atol=0.04)


def test_features_of_one_variable_cover_all_frequencies_and_phases(rng):
    column = rng.normal(size=100)
    for _ in range(20):
        weights, phases = project_one(column, 5, rng)
        scaled = weights[:, 0] * 2 * np.pi * median_distance(column[None])
        quartiles = np.searchsorted([0.2533, 0.5244, 0.8416, 1.2816], np.sort(scaled))
        assert quartiles.tolist() == [0, 1, 2, 3, 4]  # one in each fifth of the half-normal distribution
        assert (np.sort(phases) * 10).astype(int).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("rows", "dimensions"), [(2, 1), (7, 2), (200, 3), (500, 1)])
def test_median_distance(rng, rows, dimensions):
    columns = rng.normal(size=(dimensions, rows))
    distances = np.sort(pdist(columns.T))
    below, above = distances[(len(distances) - 1) // 2], distances[len(distances) // 2]
    assert below * (1 - 1e-4) <= median_distance(columns) <= above * (1 + 1e-4)


def test_median_distance_of_sorted_rows_is_that_of_all(rng):
    column = np.sort(rng.normal(size=20_000))[None]
    shuffled = rng.permutation(column[0])[None]
    assert median_distance(column) == pytest.approx(median_distance(shuffled), rel=0.1)


def test_a_median_distance_of_zero_is_no_width():
    column = np.zeros(100)
    column[:3] = 1.0
    assert median_distance(column[None]) == 1.0


@pytest.mark.parametrize(("p", "q", "width"), [(4, 4, 8), (5, 100, 33), (25, 25, 256), (1, 3, 2), (7, 0, 5)])
def test_products(rng, p, q, width):
    a, b = rng.normal(size=(p, width + 3)), rng.normal(size=(q, width + 3))
    out = rng.normal(size=(p, q))
    expected = out + a[:, :width] @ b[:, :width].T
    rcot_kernel.add_products(a, b, width, False, out)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)
    square = np.zeros((p, p))
    rcot_kernel.add_products(a, a, width, True, square)
    np.testing.assert_allclose(np.tril(square), np.tril(a[:, :width] @ a[:, :width].T), atol=1e-12)
    left = rng.normal(size=(p, width + 3))
    expected = left.copy()
    expected[:, :width] -= out @ b[:, :width]
    rcot_kernel.subtract_combinations(out, b, width, left)
    np.testing.assert_allclose(left, expected, atol=1e-11)


def test_solving(rng):
    root = rng.normal(size=(12, 20))
    matrix = root @ root.T
    factor = matrix.copy()
    rcot_kernel.factorise(factor, 0.5)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix + 0.5 * np.eye(12)), rtol=1e-10)
    right = rng.normal(size=12)
    expected = np.linalg.solve(matrix + 0.5 * np.eye(12), right)
    rcot_kernel.solve(factor, right)
    np.testing.assert_allclose(right, expected, rtol=1e-9)


def test_power_sums_are_those_of_the_eigenvalues(rng):
    root = rng.normal(size=(9, 9))
    matrix = root @ root.T
    eigenvalues = np.linalg.eigvalsh(matrix)
    found = np.empty(8)
    rcot_kernel.sum_powers(np.tril(matrix), found)
    np.testing.assert_allclose(found, [np.sum(eigenvalues**r) for r in range(1, 9)], rtol=1e-10)
