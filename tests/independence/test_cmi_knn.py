import numpy as np
import pytest
from scipy import special, stats
from scipy.spatial import cKDTree

from spbn.errors import ArgumentError, DataError
from spbn.independence import CMIknn
from spbn.independence.cmi_knn import local_permutations, nearest

from strategies import nonlinear_frame


def information(x, y, given, k):
    """The estimate of Frenzel and Pompe by k-d trees, in the maximum norm."""
    parts = {"xyz": [x, y, *given], "xz": [x, *given], "yz": [y, *given], "z": list(given)}
    points = {name: np.column_stack(columns) for name, columns in parts.items() if columns}
    radius = cKDTree(points["xyz"]).query(points["xyz"], k=[k + 1], p=np.inf)[0][:, 0]
    terms = np.full(len(x), special.digamma(k))
    for name, sign in (("z", 1), ("xz", -1), ("yz", -1)):
        if name in points:
            tree = cKDTree(points[name])
            near = tree.query_ball_point(points[name], radius - 0.5, p=np.inf, return_length=True)
        else:
            near = np.full(len(x), len(x))
        terms += sign * special.digamma(near)
    return terms.mean()


@pytest.mark.slow
@pytest.mark.parametrize("transform", ["ranks", "standardise"])
@pytest.mark.parametrize("given", [[], [2], [2, 3, 4]])
@pytest.mark.parametrize("neighbours", [1, 7, 0.1])
def test_estimate_agrees_with_trees(transform, given, neighbours):
    frame = nonlinear_frame(130, 5)
    test = CMIknn(frame, neighbours=neighbours, transform=transform)
    grid = test._grid
    versions = np.stack([grid[0], np.random.default_rng(0).permutation(grid[0])])
    found = test._information(versions, grid[1], grid[given]) / 130 + special.digamma(test.neighbours)
    expected = [information(x, grid[1], grid[given], test.neighbours) for x in versions]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_estimate_approaches_the_information_of_a_gaussian(rng):
    """For correlation r it is -log(1 - r²) / 2."""
    x, y = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], size=2000).T
    test = CMIknn({"x": x, "y": y}, neighbours=5)
    grid = test._grid
    found = test._information(grid[:1], grid[1], grid[:0])[0] / 2000 + special.digamma(5)
    assert found == pytest.approx(-0.5 * np.log(1 - 0.64), abs=0.06)


@pytest.mark.parametrize("dimensions", [1, 3])
def test_nearest_rows(rng, dimensions):
    grid = rng.integers(0, 1000, size=(dimensions, 80)).astype(np.int32)
    found = nearest(grid, 6)
    distances = np.abs(grid[:, :, None] - grid[:, None, :]).max(axis=0)
    assert (found[:, 0] == np.arange(80)).all()
    for i in range(80):
        assert len(set(found[i])) == 6
        assert sorted(distances[i, found[i]]) == sorted(distances[i])[:6]


def test_local_permutations_stay_near_and_seldom_repeat(rng):
    grid = rng.permutation(200).astype(np.int32)[None]
    near = nearest(grid, 5)
    out = np.empty((50, 200), dtype=np.int64)
    local_permutations(rng, near, out)
    for order in out:
        assert all(order[i] in near[i] for i in range(200))
        assert len(set(order)) > 170
    moved = np.mean(out != np.arange(200))
    assert 0.6 < moved < 0.95
    assert len({tuple(order) for order in out}) == 50


def test_ranks_break_ties_at_random():
    data = {"coin": np.arange(60) % 2, "x": np.linspace(0, 1, 60)}
    ranks = [CMIknn(data, seed=seed)._grid[0] for seed in range(2)]
    for rank in ranks:
        assert sorted(rank) == list(range(60))
        assert (rank[::2] < 30).all()
    assert (ranks[0] != ranks[1]).any()


def test_smallest_pvalue_is_one_in_all(rng):
    x = rng.normal(size=60)
    assert CMIknn({"x": x, "y": x}, permutations=99).pvalue("x", "y") == 0.01


def pvalues_of(make, data_sets, given):
    return np.array(
        [
            CMIknn(make(np.random.default_rng(seed)), seed=seed, permutations=60).pvalue("x", "y", given)
            for seed in range(data_sets)
        ]
    )


def confounded(rng):
    z = rng.normal(size=200)
    x, y = 0.5 * rng.normal(size=(2, 200))
    return {"x": x + z**2, "y": y + np.cos(2 * z), "z": z}


@pytest.mark.slow
def test_pvalues_are_uniform_under_independence():
    pvalues = pvalues_of(confounded, 200, ["z"])
    assert 0.01 <= np.mean(pvalues <= 0.05) <= 0.09
    assert stats.kstest(pvalues, "uniform").pvalue > 1e-3
    assert np.mean(pvalues_of(confounded, 30, ()) <= 0.05) > 0.9  # z explains a clear dependence


@pytest.mark.parametrize("given", [(), ["z"]])
def test_nonlinear_dependence_is_seen(given):
    def circle(rng):
        angle = rng.uniform(0, 2 * np.pi, 200)
        return {"x": np.cos(angle), "y": np.sin(angle), "z": rng.normal(size=200)}

    assert (pvalues_of(circle, 20, given) <= 0.05).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"neighbours": 0}, "neighbours must be a share of the rows or a count. Got 0"),
        ({"neighbours": "5"}, "neighbours must be a share"),
        ({"neighbours": 50}, "fewer than the 50 rows"),
        ({"permutations": 0}, "permutations must be a count"),
        ({"permutation_neighbours": 1.5}, "permutation_neighbours must be a count"),
        ({"transform": "log"}, "'ranks' or 'standardise'. Got 'log'"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(ArgumentError, match=message):
        CMIknn(nonlinear_frame(50, 2), **options)


def test_too_few_rows_to_permute():
    with pytest.raises(DataError, match=r"needs at least 6 rows. Got 5"):
        CMIknn(nonlinear_frame(5, 3)).pvalue("a", "b", ["c"])
