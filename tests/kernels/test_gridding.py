import math

import numpy as np
import pytest
from scipy import special

from spbn._base import jit
from spbn.kernels.estimates import Spans
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import Field, Grid


def bump(distances):
    """The window, from its definition."""
    inside = np.abs(distances) <= gridding.WIDTH / 2
    root = np.sqrt(np.maximum(0, 1 - (2 * distances / gridding.WIDTH) ** 2))
    return np.where(inside, special.i0(gridding.SHAPE * root) / special.i0(gridding.SHAPE), 0)


def weights(positions, cells):
    """Rows × cells: the window of every row around a periodic axis, computed for all cells."""
    if cells == 1:
        return np.ones((len(positions), 1))
    centres = positions[:, None] + gridding.WIDTH / 2
    distances = (np.arange(cells) - centres + cells / 2) % cells - cells / 2
    return bump(distances)


@pytest.mark.parametrize("shape", [(64, 1, 1), (48, 1, 60), (50, 33, 47), (12, 12, 12), (16, 100, 20)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_spread_and_read(rng, shape, count, monkeypatch):
    positions = rng.uniform(-20, 150, size=(3, 400))  # around the end too
    axes = [weights(p, cells) for p, cells in zip(positions, shape, strict=True)]
    binned = gridding.bin_rows(np.arange(400), positions, shape)
    grid = np.ones(shape)
    monkeypatch.setattr(jit, "thread_count", lambda: count)
    gridding.spread(binned, grid, weight=-2.0)
    values = gridding.interpolate(binned, grid)
    np.testing.assert_allclose(grid, 1 - 2 * np.einsum("ri,rj,rk->ijk", *axes), rtol=0, atol=1e-11)
    expected = np.einsum("ri,rj,rk,ijk->r", *axes, grid, optimize=True)
    np.testing.assert_allclose(values, expected[binned.rows], rtol=1e-12, atol=1e-10)


def test_binning_keeps_every_row_once(rng):
    positions = rng.uniform(0, 90, size=(3, 5000))
    binned = gridding.bin_rows(np.arange(7, 5007), positions, (100, 90, 80))
    np.testing.assert_array_equal(np.sort(binned.rows), np.arange(7, 5007))
    np.testing.assert_array_equal(binned.positions, positions[:, binned.rows - 7])
    assert binned.starts[0] == 0
    assert binned.starts[-1] == 5000
    assert (np.diff(binned.starts) >= 0).all()


def test_the_transform_of_the_window():
    z, dz = np.linspace(-gridding.WIDTH / 2, gridding.WIDTH / 2, 200_001, retstep=True)
    for angle in (0.0, 0.7, 2.0, math.pi):
        expected = np.trapezoid(bump(z) * np.cos(angle * z), dx=dz)
        found = gridding.transform(np.array([angle]))[0]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("width", [1.0, 1.3, 2.0])
def test_a_single_source_is_as_precise_as_the_window_says(width):
    """At all distances and positions between the cells: the constants of the error analysis."""
    distances = np.linspace(0, 9 * width, 3000)
    gaussian = np.exp(-0.5 * (distances / width) ** 2)
    worst = np.zeros(len(distances))
    for shift in np.linspace(0, gridding.SPACING, 21):
        coordinates = shift + np.concatenate([[0], distances])[None]
        grid = Grid(np.array([-20.0]), np.array([40.0]), 10.0 * width)
        spans = Spans(np.array([[1, coordinates.shape[1], 0, 1, 0, 0]]))
        field = Field.of(coordinates, spans, grid)
        sums = field.sums(spans.queries[0], field.spectrum(spans.training[0]), np.array([[width**2]]))
        worst = np.maximum(worst, np.abs(sums - gaussian))
    assert (worst / np.maximum(gaussian, 1e-7)).max() < 1.7e-7


def test_a_covariance_that_is_not_round(rng):
    """The filter has the right axes, in three dimensions and in two."""
    for d in (2, 3):
        root = np.eye(d) + 0.4 * rng.uniform(-1, 1, size=(d, d))
        covariance = root @ root.T
        covariance /= np.linalg.eigvalsh(covariance).min()
        coordinates = np.concatenate([np.zeros((d, 1)), 2 * rng.normal(size=(d, 500))], axis=1)
        grid = Grid(coordinates.min(axis=1), coordinates.max(axis=1), 16.0)
        spans = Spans(np.array([[1, 501, 0, 1, 0, 0]]))
        field = Field.of(coordinates, spans, grid)
        sums = field.sums(spans.queries[0], field.spectrum(spans.training[0]), covariance)
        x = coordinates[:, 1:]
        expected = np.exp(-0.5 * np.einsum("ir,ij,jr->r", x, np.linalg.inv(covariance), x))
        np.testing.assert_allclose(sums, expected, rtol=0, atol=1e-9)
