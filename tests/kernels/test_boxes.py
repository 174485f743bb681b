import numpy as np
import pytest

from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import cheapest_grid

REACH = 8.0


def cost(grid, points, cell_cost, row_cost):
    """What a box costs: its cells, and the points outside of it."""
    return grid.cells * cell_cost + np.count_nonzero(~grid.covers(points)) * row_cost


@pytest.mark.parametrize("d", [1, 2, 3])
def test_all_points_are_in_the_box_if_they_are_expensive(rng, d):
    points = 5 * rng.normal(size=(d, 3000))
    grid, _ = cheapest_grid(points, REACH, cell_cost=1e-6, row_cost=1e9)
    assert grid.covers(points).all()


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_far_point_is_cut_off(rng, d):
    points = rng.normal(size=(d, 5000))
    points[0, 17] = 1e9
    grid, _ = cheapest_grid(points, REACH, cell_cost=1e-6, row_cost=1e-3)
    assert not grid.covers(points)[17]
    assert grid.covers(points).mean() > 0.9
    assert grid.high[0] < 10


def test_one_long_tail_is_cut_at_one_end(rng):
    points = np.exp(2 * rng.normal(size=(2, 20_000)))
    grid, _ = cheapest_grid(points, REACH, cell_cost=1e-6, row_cost=1e-3)
    assert (grid.low < np.quantile(points, 0.001, axis=1)).all()
    assert (grid.high < np.quantile(points, 0.999, axis=1)).all()


def test_no_face_is_better_moved_alone(rng):
    points = rng.standard_t(2, size=(3, 20_000))
    costs = {"cell_cost": 1e-6, "row_cost": 1e-3}
    grid, expected = cheapest_grid(points, REACH, **costs)
    assert cost(grid, points, **costs) <= expected  # which counts a point twice if two faces cut it off
    for axis in range(3):
        for side in ("low", "high"):
            for level in (0.0, 0.01, 0.1):
                moved = {"low": grid.low.copy(), "high": grid.high.copy()}
                quantile = level if side == "low" else 1 - level
                moved[side][axis] = np.quantile(points[axis], quantile)
                assert expected < 1.02 * cost(gridding.Grid(**moved, reach=REACH), points, **costs)


def test_a_grid_fits_in_memory_where_any_does(rng, monkeypatch):
    points = 3 * rng.standard_t(2, size=(3, 20_000))
    monkeypatch.setattr(gridding, "MAX_CELLS", 50_000_000)
    grid, _ = cheapest_grid(points, REACH, cell_cost=1e-12, row_cost=1e9)
    assert grid.cells <= gridding.MAX_CELLS


def test_the_grid_holds_the_box_and_its_rim():
    for low, high in ([0.0], [3.0]), ([-1.0, 5.0], [0.0, 9.0]), ([0.0, 0.0, 0.0], [1.0, 2.0, 30.0]):
        grid = gridding.Grid(np.array(low), np.array(high), REACH)
        cells = np.array(grid.shape)[grid.axes]
        assert (cells * gridding.SPACING >= grid.high - grid.low + 2 * REACH).all()
        corners = np.stack([grid.low - REACH, grid.high + REACH], axis=1)
        assert grid.covers(corners, rim=True).all()
        assert not grid.covers(corners).any()
        centres = grid.positions(corners)[grid.axes] + gridding.WIDTH / 2
        assert (centres > -1e-9).all()
        assert (centres < cells[:, None] + 1e-9).all()


def test_all_points_at_one_place():
    grid, _ = cheapest_grid(np.full((2, 500), 3.0), REACH, cell_cost=1e-6, row_cost=1e-3)
    assert grid.covers(np.full((2, 1), 3.0)).all()
