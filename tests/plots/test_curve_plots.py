"""Pictures of nodes that follow a curve: what is drawn are the numbers of the density."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.nodes import Curve
from spbn.plots import plot_cpd
from spbn.plots.densities import FADING, MOST_PANELS

mpl.use("agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def made(rows=300, seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = rng.standard_normal((3, rows))
    b += 0.5 * a
    town = rng.choice(["Leith", "Portobello"], rows, p=[0.6, 0.4])
    size = rng.choice(["small", "large"], rows)
    y = np.sin(2 * a) + b**2 + 0.5 * c + 2.0 * (town == "Leith") * a + 0.2 * rng.standard_normal(rows)
    frame = {"a": a, "b": b, "c": np.exp(c), "town": town, "size": size, "y": y, "skewed": np.exp(y / 2)}
    return pd.DataFrame(frame)


FRAME = made()


def fitted(node, parents, kind="curve", margins="none", frame=FRAME):
    nodes = [*parents, node]
    types = {name: "discrete" if name in ("town", "size") else "lg" for name in parents} | {node: kind}
    structure = spbn.Structure(nodes, [(parent, node) for parent in parents], types)
    return spbn.BayesianNetwork.fit(structure, frame, margins=margins)


def edges(ax):
    """Return the lower and upper edges of bands, by their labels, at the points of the curve."""
    found = {}
    for band in ax.collections:
        corners = pd.DataFrame(band.get_paths()[0].vertices, columns=["x", "y"]).groupby("x")["y"]
        found[band.get_label()] = (corners.min().to_numpy(), corners.max().to_numpy())
    return found


def line(ax, label="curve"):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found.get_data()


def at_medians(parents, **columns):
    """Return parents × rows: some as given, and the others at their medians."""
    rows = len(next(iter(columns.values())))
    return np.stack([columns.get(name, np.full(rows, FRAME[name].median())) for name in parents])


def test_one_parent_has_a_line_and_two_bands_over_the_rows():
    network = fitted("y", ["a"])
    ax, cpd = plot_cpd(network, "y", data=FRAME), network.cpds["y"]
    xs, ys = line(ax)
    assert xs[0] < FRAME["a"].quantile(0.01)
    assert xs[-1] > FRAME["a"].quantile(0.99)
    np.testing.assert_allclose(ys, cpd.mean(xs[None]))
    for k, name in ((1, "±1 s.d."), (2, "±2 s.d.")):
        low, high = edges(ax)[name]
        np.testing.assert_allclose(low, cpd.mean(xs[None]) - k * cpd.spread(xs[None]))
        np.testing.assert_allclose(high, cpd.mean(xs[None]) + k * cpd.spread(xs[None]))
    dots = next(line for line in ax.lines if line.get_marker() == ".")
    np.testing.assert_array_equal(dots.get_xydata(), FRAME[["a", "y"]])


def test_with_margins_a_curve_is_in_the_units_of_the_data():
    network = fitted("skewed", ["c"], margins="yeo-johnson")
    ax, cpd = plot_cpd(network, "skewed", data=FRAME), network.cpds["skewed"]

    def transformed(name, values):
        margin = network.margins.columns[name]
        return stats.yeojohnson((values - margin.centre) / margin.scale, margin.exponent)

    xs, ys = line(ax)
    parents = transformed("c", xs)[None]
    np.testing.assert_allclose(transformed("skewed", ys), cpd.mean(parents), atol=1e-9)
    low, high = edges(ax)["±2 s.d."]
    np.testing.assert_allclose(transformed("skewed", high), cpd.mean(parents) + 2 * cpd.spread(parents))
    np.testing.assert_allclose(transformed("skewed", low), cpd.mean(parents) - 2 * cpd.spread(parents))
    assert (high - ys > ys - low).all()  # skewed to the right


@pytest.mark.parametrize("parents", [["a", "b"], ["b", "a"]])
def test_two_parents_have_a_map_near_the_rows(parents):
    network = fitted("y", parents)
    ax, cpd = plot_cpd(network, "y", data=FRAME), network.cpds["y"]
    (image,) = ax.images
    heights = np.ma.filled(image.get_array(), np.nan)
    left, right, bottom, top = image.get_extent()
    xs, ys = np.linspace(left, right, heights.shape[1]), np.linspace(bottom, top, heights.shape[0])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == (*network.structure.parents("y"), "y")
    places = dict(zip((ax.get_xlabel(), ax.get_ylabel()), np.meshgrid(xs, ys), strict=True))
    expected = cpd.mean(np.stack([places[parent].ravel() for parent in cpd.parents]))
    steps = [
        np.subtract.outer(points.ravel(), FRAME[name].to_numpy()) / np.ptp(points)
        for name, points in places.items()
    ]
    near = np.hypot(*steps).min(axis=1) <= FADING
    assert 0.2 < near.mean() < 0.9
    np.testing.assert_allclose(heights.ravel(), np.where(near, expected, np.nan))


def test_contour_lines_are_where_the_curve_has_the_height_that_is_written():
    network = fitted("y", ["a", "b"])
    ax, cpd = plot_cpd(network, "y", data=FRAME), network.cpds["y"]
    (contours,) = ax.collections
    assert len(contours.levels) > 3
    for level, path in zip(contours.levels, contours.get_paths(), strict=True):
        if len(path.vertices):
            places = dict(zip((ax.get_xlabel(), ax.get_ylabel()), path.vertices.T, strict=True))
            found = cpd.mean(np.stack([places[parent] for parent in cpd.parents]))
            assert np.abs(found - level).max() < 0.05 * FRAME["y"].std()


def test_three_parents_have_panels_with_the_others_at_their_medians():
    network = fitted("y", ["a", "b", "c"])
    ax, cpd = plot_cpd(network, "y", data=FRAME), network.cpds["y"]
    assert [panel.get_xlabel() for panel in ax.child_axes] == ["a", "b", "c"]
    assert len({panel.get_ylim() for panel in ax.child_axes}) == 1
    for panel in ax.child_axes:
        xs, ys = line(panel)
        parents = at_medians(cpd.parents, **{panel.get_xlabel(): xs})
        np.testing.assert_allclose(ys, cpd.mean(parents))
        np.testing.assert_allclose(edges(panel)["±1 s.d."][1], cpd.mean(parents) + cpd.spread(parents))


def test_the_parents_that_matter_most_have_panels():
    rng = np.random.default_rng(1)
    names = [f"x{k}" for k in range(MOST_PANELS + 2)]
    frame = pd.DataFrame(rng.standard_normal((400, len(names))), columns=names)
    frame["y"] = frame[names[2:]].sum(axis=1) + 0.1 * rng.standard_normal(400)
    ax = plot_cpd(fitted("y", names, frame=frame), "y", data=frame)
    assert [panel.get_xlabel() for panel in ax.child_axes] == names[2:]


def test_there_is_a_curve_for_every_level():
    """It is that of the rows with this level, and goes no farther than they do."""
    ax = plot_cpd(fitted("y", ["a", "town"]), "y", data=FRAME)
    assert ax.get_legend().get_title().get_text() == "town"
    for town, rows in FRAME.groupby("town"):
        xs, ys = line(ax, town)
        cpd = Curve.fit(rows, "y", ["a"])
        np.testing.assert_allclose(ys, cpd.mean(xs[None]), atol=1e-9)
        assert rows["a"].min() <= xs[0] < xs[-1] <= rows["a"].max()
    (low, high) = edges(ax)["±1 s.d."]  # of the last town
    np.testing.assert_allclose(high - low, 2 * cpd.spread(xs[None]), atol=1e-9)


def test_levels_are_those_of_the_parent_that_changes_the_curve_most():
    ax = plot_cpd(fitted("y", ["size", "a", "town", "b"]), "y", data=FRAME)
    assert ax.get_legend().get_title().get_text() == "town"
    assert [panel.get_xlabel() for panel in ax.child_axes] == ["a", "b"]
    usual = FRAME["size"].mode()[0]
    for town, rows in FRAME[FRAME["size"] == usual].groupby("town"):
        cpd = Curve.fit(rows, "y", ["a", "b"])
        for panel in ax.child_axes:
            xs, ys = line(panel, town)
            parents = at_medians(cpd.parents, **{panel.get_xlabel(): xs})
            np.testing.assert_allclose(ys, cpd.mean(parents), atol=1e-9)


def test_one_continuous_parent_names_where_discrete_ones_are():
    ax = plot_cpd(fitted("y", ["size", "a", "town"]), "y", data=FRAME)
    assert ax.get_xlabel() == f"a   (at size = {FRAME['size'].mode()[0]})"


def test_a_node_with_discrete_parents_only_has_a_density_for_every_level():
    network = fitted("y", ["town"])
    ax = plot_cpd(network, "y", data=FRAME)
    xs, ys = line(ax, "Leith")
    rows = pd.DataFrame({"y": xs, "town": "Leith"})
    np.testing.assert_allclose(ys, np.exp(network.node_logpdf("y", rows)))


def test_a_blend_shows_its_curve_over_the_shading_if_that_has_most_of_the_weight():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, 400)
    smooth = pd.DataFrame({"x": x, "y": np.sin(3 * x) + 0.2 * rng.standard_normal(400)})
    twofold = smooth.assign(y=np.where(rng.random(400) < 0.5, 1, -1) + 0.05 * smooth["y"])
    for frame, is_smooth in ((smooth, True), (twofold, False)):
        network = fitted("y", ["x"], "blend", frame=frame)
        cpd = network.cpds["y"]
        assert (cpd.weights["curve"] >= 0.5) == is_smooth
        ax = plot_cpd(network, "y", data=frame)
        assert len(ax.images) == 1
        drawn = [line for line in ax.lines if line.get_marker() != "."]
        assert len(drawn) == is_smooth
        for curve in drawn:
            np.testing.assert_allclose(curve.get_ydata(), cpd.curve.mean(curve.get_xdata()[None]))
