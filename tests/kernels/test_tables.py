import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.large import SHAPES, exactly, plain, table
from spbn.errors import ArgumentError
from spbn.kernels.estimates import whitened
from spbn.kernels.spectral import THRESHOLD, gridding
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.numerics import gaussian
from spbn.numerics.moments import centre_of

from naive import kde_logpdf, scott


def bandwidth_of(rows):
    return scott(rows.T)


def lattice_around(rows, whitener, widest=1.0):
    """A lattice whose box holds all rows."""
    centre = centre_of(rows)[:, 0]
    coordinates = whitened(rows - centre[:, None], whitener)
    return Lattice(centre, whitener, coordinates.min(axis=1), coordinates.max(axis=1), widest)


def log_density(density, points):
    """Log-densities, -inf where there is no answer, and whether there is one."""
    heights = density.heights(points)
    answered = heights >= THRESHOLD
    values = np.full(len(heights), -np.inf)
    values[answered] = np.log(heights[answered]) + density.log_peak
    return values, answered


def covers(lattice, points):
    return lattice.grid.covers(lattice.coordinates(points))


def tabled(rows, bandwidth=None, widest=1.0):
    bandwidth = bandwidth_of(rows) if bandwidth is None else bandwidth
    lattice = lattice_around(rows, gaussian.whitener(bandwidth), widest)
    return RowTable.of(rows, lattice)


@settings(max_examples=15, deadline=None)
@given(
    d=st.integers(1, 3),
    rows=st.integers(20, 800),
    shape=st.sampled_from(SHAPES),
    offset=st.floats(-1e4, 1e4),
    parts=st.integers(1, 5),
    seed=st.integers(0, 10_000),
)
def test_tables_of_parts_add_up_to_the_density_of_all_rows(d, rows, shape, offset, parts, seed):
    points = np.ascontiguousarray(table(shape, d, rows, seed).T) + offset
    whitener = gaussian.whitener(bandwidth_of(points))
    try:
        lattice = lattice_around(points, whitener)
    except ArgumentError:  # tails so long that no grid is large enough
        return
    cuts = np.sort(np.random.default_rng(seed).integers(0, rows + 1, size=parts - 1))
    total = RowTable.total(RowTable.of(part, lattice) for part in np.split(points, cuts, axis=1))
    values, answered = log_density(total.density(whitener), points)
    assert total.rows == rows
    assert answered.all()  # each has a kernel of its own
    # Not by the definition: the determinant of nearly singular matrices has too few digits there.
    truth = exactly(plain(points.T, points.T, whitener))[0, rows:]
    np.testing.assert_allclose(values, truth, rtol=0, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_fold_is_taken_out_by_subtraction(rng, d):
    points = rng.normal(size=(d, 3000))
    whole = tabled(points)
    fold = RowTable.of(points[:, :1000], whole.lattice)
    rest = points[:, 1000:]
    bandwidth = 1.3 * bandwidth_of(points)
    widened = tabled(points, widest=1.5)
    left = widened - RowTable.of(points[:, :1000], widened.lattice)
    values, answered = log_density(left.density(gaussian.whitener(bandwidth)), points[:, :1000])
    truth = kde_logpdf(points[:, :1000].T, rest.T, bandwidth)
    assert answered.mean() > 0.9
    np.testing.assert_allclose(values[answered], truth[answered], rtol=0, atol=1e-6)
    assert (whole - fold).rows == 2000


@pytest.mark.parametrize("d", [1, 2, 3])
def test_says_which_queries_it_cannot_answer(rng, d):
    points, queries = rng.normal(size=(d, 500)), 4.0 * rng.normal(size=(d, 400))
    bandwidth = bandwidth_of(points)
    density = tabled(points).density(gaussian.whitener(bandwidth))
    values, answered = log_density(density, queries)
    truth = kde_logpdf(queries.T, points.T, bandwidth)
    assert 0.02 < answered.mean() < 0.9
    assert np.isneginf(values[~answered]).all()
    np.testing.assert_allclose(values[answered], truth[answered], rtol=0, atol=1e-6)
    peak = density.log_peak
    inside = covers(density.lattice, queries)
    assert (truth[inside & ~answered] < peak + np.log(1e-7) + 1e-6).all()  # no excuse elsewhere


@pytest.mark.parametrize("d", [1, 2, 3])
def test_rows_beyond_the_box_still_count(rng, d):
    points = rng.normal(size=(d, 2000))
    bandwidth = bandwidth_of(points)
    whitener = gaussian.whitener(bandwidth)
    coordinates = whitener @ points
    low, high = 0.3 * coordinates.min(axis=1), 0.3 * coordinates.max(axis=1)
    lattice = Lattice(np.zeros(d), whitener, low, high)
    values, answered = log_density(RowTable.of(points, lattice).density(whitener), points)
    np.testing.assert_array_equal(answered, covers(lattice, points))
    assert 0.1 < answered.mean() < 0.9
    truth = kde_logpdf(points[:, answered].T, points.T, bandwidth)
    np.testing.assert_allclose(values[answered], truth, rtol=0, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_sums_at_the_nodes(rng, d):
    points = rng.normal(size=(d, 300))
    bandwidth = bandwidth_of(points)
    whitener = gaussian.whitener(bandwidth)
    whole = tabled(points)
    sums, nodes = whole.sums(whitener), whole.lattice.nodes
    assert sums.shape == whole.windows.shape
    chosen = rng.integers(0, [max(1, n) for n in sums.shape], size=(200, 3))
    coordinates = np.stack(
        [along[chosen[:, k]] for along, k in zip(nodes, whole.lattice.grid.axes, strict=True)]
    )
    places = np.linalg.solve(whitener, coordinates) + whole.lattice.centre[:, None]
    density = sums[tuple(chosen.T)] / 300
    truth = np.exp(kde_logpdf(places.T, points.T, bandwidth) - whole.density(whitener).log_peak)
    np.testing.assert_allclose(density, truth, rtol=0, atol=1e-12)


def test_travels_as_plain_data(rng):
    whole = tabled(rng.normal(size=(2, 200)))
    again = pickle.loads(pickle.dumps(whole))
    assert again.lattice == whole.lattice
    np.testing.assert_array_equal((again + whole).windows, 2 * whole.windows)


def test_refuses_tables_of_another_lattice(rng):
    one, other = tabled(rng.normal(size=(2, 200))), tabled(rng.normal(size=(2, 200)))
    for operation in (RowTable.__add__, RowTable.__sub__):
        with pytest.raises(ArgumentError, match="on the same lattice"):
            operation(one, other)


@pytest.mark.parametrize("factor", [0.9, 4.5])
def test_refuses_kernels_that_the_lattice_is_not_made_for(rng, factor):
    points = rng.normal(size=(1, 200))
    whole = tabled(points, widest=2.0)
    with pytest.raises(ArgumentError, match="1 to 2 times as wide"):
        whole.density(whole.lattice.whitener / np.sqrt(factor))


def test_refuses_what_does_not_fit(rng, monkeypatch):
    with pytest.raises(ArgumentError, match=r"1 to 3 dimensions\. Got 4"):
        tabled(rng.normal(size=(4, 50)))
    monkeypatch.setattr(gridding, "MAX_CELLS", 100)
    with pytest.raises(ArgumentError, match=r"at most 1e\+02"):
        tabled(rng.normal(size=(2, 50)))
