import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from kernels.large import SHAPES, table
from spbn._base import files
from spbn.errors import ArgumentError
from spbn.kernels import compressed, compression, spectral
from spbn.kernels.compression import Extent, compact_kernels, least_around
from spbn.kernels.conditional import PreparedKernels
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.coefficients import Coefficients, Rings
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.numerics import gaussian

from naive import kde_logpdf, scott

TOLERANCE = 1e-6


@pytest.fixture
def always_tabled(monkeypatch):
    """Even a few rows are put into tables."""
    monkeypatch.setattr(compression, "FEW_ROWS", 0)


def prepared(points):
    return PreparedKernels.of(points, gaussian.whitener(scott(points.T)), "exact")


def curve(rng, d, rows):
    """Rows of a nonlinear dependence: variables × rows."""
    points = rng.normal(size=(d, rows))
    points[-1] += np.sin(2.0 * points[0])
    return points


def weights_at(kernels, parents):
    """Weights of the rows' kernels at the parents' values, and the child's means: by the definition."""
    whitened = kernels.whitener[:-1, :-1] @ (parents - kernels.centre[:-1])
    squares = ((whitened[:, :, None] - kernels.coordinates[:-1, None, :]) ** 2).sum(axis=0)
    return special.softmax(-0.5 * squares, axis=1)


def coordinates(made, points):
    """Rows in the coordinates of compact kernels."""
    return made.whitener @ (points - made.centre)


def child_coordinate(kernels, parents, child):
    return (kernels.whitener @ (np.vstack([parents, child]) - kernels.centre))[-1]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    d=st.integers(1, 3),
    rows=st.integers(30, 1500),
    shape=st.sampled_from(SHAPES),
    offset=st.floats(-1e3, 1e3),
    spread=st.sampled_from([1.0, 3.0, 30.0]),
    few=st.sampled_from([0, 5000]),
    row_cost=st.sampled_from([0.0, 1.0, 100.0]),
    seed=st.integers(0, 10_000),
)
def test_log_densities_of_rows_near_and_far(d, rows, shape, offset, spread, few, row_cost, seed):
    points = np.ascontiguousarray(table(shape, d, rows, seed).T) + offset
    kernels = prepared(points)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compression, "FEW_ROWS", few)
        patch.setattr(compression, "SMALL", 0.0)  # thresholds are raised, until most rows are outposts
        patch.setattr(compression, "BYTES_AN_OUTPOST", row_cost)
        patch.setattr(compression, "MORE_OUTPOSTS", 1e9)
        made = compact_kernels(kernels, TOLERANCE)
    if made is None:  # tails too long for a grid, and no rows are few
        assert few == 0
        return
    rng = np.random.default_rng(seed)
    middle, deviation = points.mean(axis=1), points.std(axis=1)
    others = middle[:, None] + spread * deviation[:, None] * rng.normal(size=(d, 200))
    for queries in (points[:, :300], others):
        truth = kernels.conditional_log_density(queries)
        allowed = TOLERANCE * np.maximum(1.0, np.abs(truth))
        # The grain of the outposts: nearly singular bandwidths have no more digits either.
        assert (np.abs(made.conditional_log_density(queries) - truth) <= allowed).all()


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_agrees_with_the_definition(rng, d, always_tabled):
    points = curve(rng, d, 800)
    queries = np.concatenate([points[:, :100], 5.0 * rng.normal(size=(d, 100))], axis=1)
    bandwidth = scott(points.T)
    truth = kde_logpdf(queries.T, points.T, bandwidth)
    if d > 1:
        truth = truth - kde_logpdf(queries[:-1].T, points[:-1].T, bandwidth[:-1, :-1])
    made = compact_kernels(prepared(points), TOLERANCE)
    assert made.joint is not None
    found = made.conditional_log_density(queries)
    assert (np.abs(found - truth) <= TOLERANCE * np.maximum(1.0, np.abs(truth))).all()


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_many_queries_at_once(rng, d, always_tabled):
    """They are sorted, and read from tables in another way than a few."""
    kernels = prepared(curve(rng, d, 800))
    made = compact_kernels(kernels, TOLERANCE)
    queries = 2.5 * curve(rng, d, compressed.FEW_QUERIES + 1)
    truth = kernels.conditional_log_density(queries)
    allowed = TOLERANCE * np.maximum(1.0, np.abs(truth))
    assert (np.abs(made.conditional_log_density(queries) - truth) <= allowed).all()


def test_absurdly_far_rows_are_finite(rng, always_tabled):
    kernels = prepared(curve(rng, 2, 500))
    made = compact_kernels(kernels, TOLERANCE)
    queries = np.array([[1e6, 0.0, -1e12], [0.0, 1e9, 1e12]])
    np.testing.assert_allclose(
        made.conditional_log_density(queries), kernels.conditional_log_density(queries), rtol=1e-6
    )


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("tailed", [False, True])
def test_distribution_function(rng, d, tailed, always_tabled, monkeypatch):
    points = curve(rng, d, 1500)
    if tailed:  # the box leaves rows out
        points[:, :40] *= 6.0
        monkeypatch.setattr(compression, "COMFORTABLE_CELLS", 200)
        monkeypatch.setattr(compression, "BYTES_A_ROW", 1.0)
    monkeypatch.setattr(compression, "SMALL", np.inf)  # nor is anything else left out
    kernels = prepared(points)
    made = compact_kernels(kernels, TOLERANCE)
    assert made.joint.lattice.grid.covers(coordinates(made, points)).all() != tailed
    queries = np.concatenate([points[:, :200], 4.0 * rng.normal(size=(d, 200))], axis=1)
    below = special.ndtr(
        child_coordinate(kernels, queries[:-1], queries[-1])[:, None] - kernels.coordinates[-1]
    )
    truth = (weights_at(kernels, queries[:-1]) * below).sum(axis=1)
    np.testing.assert_allclose(made.conditional_cdf(queries), truth, rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "interval", [(-1.0, 0.5), (0.2, 0.2001), (4.0, np.inf), (-np.inf, -30.0), (9.0, 9.5)]
)
@pytest.mark.parametrize("d", [1, 2, 3])
def test_probabilities_of_intervals(rng, d, interval, always_tabled):
    points = curve(rng, d, 1200)
    kernels = prepared(points)
    made = compact_kernels(kernels, TOLERANCE)
    parents = np.concatenate([points[:-1, :100], 6.0 * rng.normal(size=(d - 1, 30))], axis=1)
    found = made.log_mass(parents, *interval)
    _, truth = kernels.choose_rows_between(parents, *interval, np.zeros(parents.shape[1]))
    assert (np.abs(found - truth) <= 2e-6 * np.maximum(1.0, np.abs(truth))).all()


@pytest.mark.slow
@pytest.mark.parametrize("interval", [(-np.inf, np.inf), (0.3, 2.0), (5.0, np.inf)])
@pytest.mark.parametrize("where", ["near", "far"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_draws_have_the_distribution_that_they_should(rng, d, where, interval, always_tabled):
    """The distribution function at draws is uniform between its values at the ends."""
    points = curve(rng, d, 1200)
    kernels = prepared(points)
    made = compact_kernels(kernels, TOLERANCE)
    parents = np.full((d - 1, 800), 0.4 if where == "near" else 9.0)
    drawn = made.draw_between(parents, *interval, rng)
    assert ((drawn >= interval[0]) & (drawn <= interval[1])).all()

    def survival(child):
        z = child_coordinate(kernels, parents, child)[:, None] - kernels.coordinates[-1]
        return (weights_at(kernels, parents) * special.ndtr(-z)).sum(axis=1)

    top = np.zeros(800) if np.isinf(interval[1]) else survival(np.full(800, interval[1]))
    bottom = np.ones(800) if np.isinf(interval[0]) else survival(np.full(800, interval[0]))
    assert stats.kstest((survival(drawn) - top) / (bottom - top), "uniform").pvalue > 1e-4


def test_draws_beside_the_box(rng, always_tabled, monkeypatch):
    monkeypatch.setattr(compression, "COMFORTABLE_CELLS", 0)
    monkeypatch.setattr(compression, "BYTES_A_ROW", 0.0)
    points = rng.standard_t(2, size=(1, 2000))
    made = compact_kernels(prepared(points), TOLERANCE)
    bottom, top = made.joint.low[0], made.joint.high[0]
    drawn = coordinates(made, made.draw_between(np.empty((0, 4000)), -np.inf, np.inf, rng))[0]
    rows = coordinates(made, points)
    for found, mass in (
        (drawn < bottom, special.ndtr(bottom - rows).mean()),
        (drawn > top, special.ndtr(rows - top).mean()),
    ):
        assert mass > 0.005
        assert stats.binomtest(int(found.sum()), 4000, mass).pvalue > 1e-4


@pytest.mark.parametrize("tabled", [True, False])
def test_outposts_are_rounded_and_do_not_tell_which_came_first(rng, tabled, monkeypatch):
    """To a thousandth of the tolerance, in widths of a kernel; rows of equal coordinates come one by one."""
    monkeypatch.setattr(compression, "FEW_ROWS", 0 if tabled else 5000)
    monkeypatch.setattr(compression, "MOST_OUTPOSTS", 1.0 if tabled else 0.0)
    points = np.round(rng.normal(size=(2, 300)), 1)
    for tolerance, power in ((1e-6, -30), (1e-4, -24), (0.01, -17)):
        made = compact_kernels(prepared(points), tolerance)
        assert (made.joint is not None) == tabled
        assert made.grain == 2.0**power
        grains = made.outposts / 2.0**power
        np.testing.assert_array_equal(grains, np.round(grains))
        assert made.outposts.T.tolist() == sorted(made.outposts.T.tolist())
        found, truth = coordinates(made, points).T, made.outposts.T
        distances = np.abs(truth[:, None] - found).max(axis=2).min(axis=1)  # every outpost is near a row
        assert distances.max() <= 0.5001 * 2.0**power


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_neither_boxes_nor_centres_are_rows(rng, d, always_tabled):
    """The median of an odd number of values is one of them, and so is the end of a column."""
    points = curve(rng, d, 401) + 1e3
    made = compact_kernels(prepared(points), TOLERANCE)
    assert not np.isin(made.centre[:, 0], points).any()
    deviations = np.sqrt(np.diagonal(np.linalg.inv(made.whitener.T @ made.whitener)))
    assert (np.abs(made.centre[:, 0] - np.median(points, axis=1)) <= 0.5 * deviations).all()
    ends = np.concatenate([made.joint.low, made.joint.high])
    np.testing.assert_array_equal(ends, np.round(4.0 * ends) / 4.0)


@pytest.mark.slow
def test_a_box_ends_where_sums_are_small(rng):
    """Rows that lie alone are outposts, and the table does not reach as far as they do."""
    points = rng.normal(size=(2, 40_000))
    points[:, :3] = [[60.0, 0.0, -50.0], [60.0, -70.0, 0.0]]
    kernels = prepared(points)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spectral, "THRESHOLD", 1e-4)  # of 40,000: a row alone does not make a sum of 4
        made = compact_kernels(kernels, TOLERANCE)
    low, high = coordinates(made, np.array([[-6.0, 6.0]] * 2)).T
    assert (made.joint.low > low - 2.0).all()
    assert (made.joint.high < high + 2.0).all()
    for queries in (points[:, :200], 1.1 * points[:, :200]):
        truth = kernels.conditional_log_density(queries)
        allowed = TOLERANCE * np.maximum(1.0, np.abs(truth))
        assert (np.abs(made.conditional_log_density(queries) - truth) <= allowed).all()


@pytest.mark.slow
@pytest.mark.parametrize("d", [2, 3])
def test_a_threshold_is_raised_where_that_saves_bytes(rng, d, monkeypatch):
    points = curve(rng, d, 30_000 if d == 2 else 10_000)
    kernels, sizes, kept, thresholds = prepared(points), [], [], []
    for cost, more in ((1e9, 1e9), (0.0, 1.1), (0.0, 1e9)):
        monkeypatch.setattr(compression, "BYTES_AN_OUTPOST", cost)
        monkeypatch.setattr(compression, "MORE_OUTPOSTS", more)
        made = compact_kernels(kernels, TOLERANCE)
        sizes.append(len(zlib.compress(files.to_bytes(made.joint.integers))))
        kept.append(made.outposts.shape[1])
        thresholds.append(made.joint.threshold)
        queries = np.concatenate([points[:, :300], 2.0 * points[:, 300:600]], axis=1)
        truth = kernels.conditional_log_density(queries)
        allowed = TOLERANCE * np.maximum(1.0, np.abs(truth))
        assert (np.abs(made.conditional_log_density(queries) - truth) <= allowed).all()
    assert thresholds[0] == spectral.THRESHOLD * points.shape[1] < thresholds[2]
    assert sizes[0] >= sizes[1] >= sizes[2]
    assert kept[0] <= kept[1] <= 1.15 * kept[0] < kept[2]
    assert sizes[2] < 0.7 * sizes[0]


@settings(max_examples=15, deadline=None)
@given(d=st.integers(1, 3), rows=st.integers(1, 60), spread=st.floats(0.0, 5.0), seed=st.integers(0, 10_000))
def test_sums_around_nodes_are_no_less_than_said(d, rows, spread, seed):
    rng = np.random.default_rng(seed)
    points = spread * rng.normal(size=(d, rows))
    low, high = points.min(axis=1) - 3.0, points.max(axis=1) + 3.0
    table = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), low, high))
    lattice, threshold = table.lattice, 1e-5 * rows
    sums = table.sums(np.eye(d))
    least = least_around(sums, lattice, threshold)
    assert (least <= sums * (1 + 1e-5)).all(where=sums > threshold)
    places = rng.uniform(low, high, size=(500, d))
    nearest = np.zeros((3, 500), dtype=int)
    for k, axis in enumerate(lattice.grid.axes):
        nearest[axis] = np.abs(lattice.nodes[k][:, None] - places[:, k]).argmin(axis=0)
    truth = np.exp(-0.5 * ((places[:, :, None] - points) ** 2).sum(axis=1)).sum(axis=1)
    said = least[tuple(nearest)]
    dense = sums[tuple(nearest)] > threshold
    assert dense.any()
    assert (truth >= said * (1 - 1e-4))[dense].all()
    assert (truth <= 25.0 * said)[
        dense
    ].all()  # by at most twice the steepest slope, 4.8, times half a diagonal


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_what_a_table_will_cost_is_known_beforehand(rng, d):
    points = prepared(curve(rng, d, 20_000)).coordinates
    low, high = points.min(axis=1) - 4.0, points.max(axis=1) + 4.0
    whole = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), low, high))
    extent = Extent.of(whole, TOLERANCE)
    found = extent.outskirts.estimated_rows(whole)
    assert found == pytest.approx(extent.outskirts.holds(points).sum(), rel=0.1, abs=20)
    box = extent.box
    part = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), box.low, box.high))
    error = 0.4 * TOLERANCE
    made = len(zlib.compress(files.to_bytes(Coefficients.of(part, extent.threshold, error).integers)))
    rings = Rings.of(whole.spectrum(np.eye(d)), whole.lattice.grid)
    share = box.cells / whole.lattice.grid.cells
    assert rings.bytes(error * extent.threshold, share) == pytest.approx(made, rel=0.25, abs=100)


def test_the_same_seed_draws_the_same(rng, always_tabled):
    made = compact_kernels(prepared(curve(rng, 2, 600)), TOLERANCE)
    parents = 3.0 * rng.normal(size=(1, 500))
    one, two = (made.draw_between(parents, -np.inf, np.inf, np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.slow
@pytest.mark.parametrize(("d", "rows"), [(1, 100_000), (2, 100_000), (3, 100_000)])
def test_large_tables_keep_few_rows(rng, d, rows):
    points = rng.normal(size=(d, rows))
    kernels = prepared(points)
    made = compact_kernels(kernels, TOLERANCE)
    assert made.outposts.shape[1] < {1: 1e-3, 2: 0.05, 3: 0.5}[d] * rows
    queries = np.concatenate([points[:, :300], 2.5 * rng.normal(size=(d, 300))], axis=1)
    truth = kernels.conditional_log_density(queries)
    found = made.conditional_log_density(queries)
    assert (np.abs(found - truth) <= TOLERANCE * np.maximum(1.0, np.abs(truth))).all()


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3])
def test_rows_that_are_not_outposts_do_not_matter_on_the_outskirts(rng, d):
    points = prepared(curve(rng, d, 3000)).coordinates
    low, high = points.min(axis=1) - 4.0, points.max(axis=1) + 4.0
    whole = RowTable.of(points, Lattice(np.zeros(d), np.eye(d), low, high))
    extent = Extent.of(whole, 1e-4)
    kept = extent.outskirts.holds(points)
    assert kept.any()
    assert d == 3 or not kept.all()
    queries = rng.uniform(low - 8.0, high + 8.0, size=(1000, d))
    squares = ((queries[:, :, None] - points) ** 2).sum(axis=1)
    outskirts = np.exp(-0.5 * squares).sum(axis=1) < extent.threshold
    assert outskirts.sum() > 50
    shares = special.softmax(-0.5 * squares[outskirts], axis=1)
    assert shares[:, ~kept].sum(axis=1).max(initial=0.0) < 1e-4


def test_a_wider_tolerance_makes_smaller_tables(rng):
    kernels = prepared(curve(rng, 2, 20_000))
    sizes, outposts = [], []
    for tolerance in (1e-6, 1e-4, 1e-2):
        made = compact_kernels(kernels, tolerance)
        sizes.append(made.joint.numbers.size)
        outposts.append(made.outposts.shape[1])
        points = curve(rng, 2, 500)
        error = np.abs(made.conditional_log_density(points) - kernels.conditional_log_density(points))
        assert error.max() < tolerance
    assert sizes == sorted(sizes, reverse=True)
    assert outposts == sorted(outposts, reverse=True)
    assert sizes[0] > sizes[-1]


@pytest.mark.slow
def test_few_rows_that_are_all_outposts_need_no_table(rng):
    made = compact_kernels(prepared(rng.normal(size=(3, 200))), TOLERANCE)
    assert made.joint is None
    assert made.outposts.shape[1] == made.rows == 200


def test_tables_that_do_not_fit(rng, monkeypatch):
    monkeypatch.setattr(gridding, "MAX_CELLS", 1000)
    assert compact_kernels(prepared(rng.normal(size=(3, 200))), TOLERANCE).joint is None
    monkeypatch.setattr(compression, "FEW_ROWS", 199)
    assert compact_kernels(prepared(rng.normal(size=(3, 200))), TOLERANCE) is None


@pytest.mark.parametrize("tolerance", [0, 1e-9, 0.5, -1e-6, True, "1e-6", float("nan")])
def test_refuses_tolerances_that_make_no_sense(tolerance, rng):
    with pytest.raises(ArgumentError, match=r"tolerance must be between 1e-06 and 0\.01\. Got"):
        compact_kernels(prepared(rng.normal(size=(1, 50))), tolerance)
