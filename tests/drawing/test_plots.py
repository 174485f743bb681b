import itertools

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.patches import Ellipse, FancyArrowPatch

import spbn
from spbn import ArgumentError, BayesianNetwork, GraphError, Structure
from spbn.drawing.layout import layered, node_width, one_line, short_labels
from spbn.drawing.pictures import save_structure, to_dot, to_svg
from spbn.drawing.plots import plot_contributions, plot_cpd, plot_search, plot_structure

from strategies import arcs_of_dag, nonlinear_frame

mpl.use("agg")
FRAME = nonlinear_frame(120, 3)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@settings(max_examples=50)
@given(arcs_of_dag(max_nodes=15))
def test_layouts_point_downwards_and_nothing_overlaps(graph):
    nodes, arcs = graph
    layout = layered(nodes, arcs)
    assert set(layout.centres) == set(nodes)
    assert set(layout.routes) == set(arcs)
    for (a, b), route in layout.routes.items():
        assert route[0] == layout.centres[a]
        assert route[-1] == layout.centres[b]
        ys = [y for _, y in route]
        assert all(upper < lower for upper, lower in itertools.pairwise(ys))
    for a in nodes:
        for b in nodes:
            (xa, ya), (xb, yb) = layout.centres[a], layout.centres[b]
            if a != b and ya == yb:
                assert abs(xa - xb) >= 0.5 * (node_width(a) + node_width(b))


def fills(ax):
    """The colour of every node, by its name."""
    names = {tuple(np.round(text.get_position(), 6)): text.get_text() for text in ax.texts}
    ellipses = [patch for patch in ax.patches if isinstance(patch, Ellipse)]
    return {names[tuple(np.round(e.center, 6))]: mpl.colors.to_hex(e.get_facecolor()) for e in ellipses}


def test_structure_has_every_node_and_arc_and_shows_types():
    ax = plot_structure(Structure("abc", [("a", "b"), ("a", "c")], {"a": "lg", "b": "ckde", "c": "lg"}))
    colours = fills(ax)
    assert colours["a"] == colours["c"] == "#ffffff"
    assert colours["b"] not in ("#ffffff", colours["a"])
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == 2


def test_two_structures_compared():
    found = Structure("abcd", [("a", "b"), ("c", "b"), ("a", "d")])
    truth = Structure(
        "abcd", [("a", "b"), ("b", "c"), ("c", "d")], {"a": "ckde", "b": "lg", "c": "lg", "d": "lg"}
    )
    ax = plot_structure(found, compare_to=truth)
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    colours = sorted(mpl.colors.to_hex(arrow.get_edgecolor()) for arrow in arrows)
    assert len(arrows) == 4
    assert len(set(colours)) == 4
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "both",
        "missing",
        "added",
        "reversed",
    ]
    with pytest.raises(GraphError, match="same nodes"):
        plot_structure(found, compare_to=Structure("abc"))


def test_search_shows_both_scores():
    network = spbn.learn(FRAME)
    ax = plot_search(network.search)
    line = ax.get_lines()[0]
    np.testing.assert_array_equal(line.get_ydata(), [step.score for step in network.search.steps])
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == [str(step.operator) for step in network.search.steps]
    with pytest.raises(ArgumentError, match="SearchResult"):
        plot_search(None)


@pytest.mark.parametrize("arcs", [[], [("a", "c")], [("a", "c"), ("b", "c")]])
@pytest.mark.parametrize("node_type", ["lg", "ckde"])
@pytest.mark.parametrize("data", [None, FRAME])
def test_densities_are_drawn_for_every_number_of_parents(arcs, node_type, data):
    network = BayesianNetwork.fit(Structure("abc", arcs, node_type), FRAME)
    ax = plot_cpd(network, "c", data=data)
    if len(arcs) != 1:
        xs, density = ax.get_lines()[-1].get_data()
        assert np.trapezoid(density, xs) == pytest.approx(1.0, abs=0.1)
    assert "c" in ax.get_xlabel() + ax.get_ylabel()


def test_contributions_add_up():
    network = spbn.learn(FRAME, model="gbn")
    contributions = network.logpdf_by_node(FRAME)
    ax = plot_contributions(contributions, time=np.arange(120) * 0.5)
    total = ax.get_lines()[0]
    np.testing.assert_allclose(total.get_ydata(), network.logpdf(FRAME))
    np.testing.assert_array_equal(total.get_xdata(), np.arange(120) * 0.5)
    assert len(plot_contributions(contributions, nodes=["b"]).get_lines()) == 2
    with pytest.raises(ArgumentError, match="value for each of the 120 rows"):
        plot_contributions(contributions, time=[1, 2])
    with pytest.raises(GraphError, match="no column 'z'"):
        plot_contributions(contributions, nodes=["z"])


def test_axes_can_be_given():
    _, ax = plt.subplots()
    network = spbn.learn(FRAME, model="gbn")
    assert network.plot(ax) is ax
    assert plot_cpd(network, "a", ax) is ax


def test_a_notebook_shows_the_graph():
    network = spbn.learn(FRAME, model="gbn")
    svg = network._repr_svg_()
    assert "<svg" in svg
    assert svg == to_svg(network.structure)


def test_dot_escapes_names():
    assert '"a \\"b\\"" [' in to_dot(Structure(['a "b"']))


STRANGE = [
    "cost in $ per $",
    "_hidden_$x$",
    "a name that is much longer than any label of a graph ought to be",
]


def shown_texts(ax):
    figure = ax.figure
    figure.draw_without_rendering()
    return [text for text in figure.findobj(mpl.text.Text) if text.get_text()]


def test_names_are_shown_as_they_are_and_not_as_mathematics():
    frame = FRAME.set_axis(STRANGE, axis=1)
    network = spbn.learn(frame, required_arcs=[(STRANGE[0], STRANGE[1])])
    pair = BayesianNetwork.fit(Structure(STRANGE, [(STRANGE[0], STRANGE[1])], "ckde"), frame)
    both = BayesianNetwork.fit(Structure(STRANGE, [(n, STRANGE[2]) for n in STRANGE[:2]]), frame)
    for ax in (
        plot_structure(network),
        plot_search(network.search),
        plot_cpd(pair, STRANGE[0]),
        plot_cpd(pair, STRANGE[1]),
        plot_cpd(both, STRANGE[2]),
        plot_contributions(network.logpdf_by_node(frame)),
    ):
        texts = [text for text in shown_texts(ax) if "$" in text.get_text()]
        assert texts
        assert not any(text.get_parse_math() for text in texts)


def test_contributions_name_nodes_that_begin_with_an_underscore():
    frame = FRAME.set_axis(STRANGE, axis=1)
    network = spbn.learn(frame, model="gbn")
    ax = plot_contributions(network.logpdf_by_node(frame), nodes=STRANGE[:2])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["all nodes", *STRANGE[:2]]


@pytest.mark.parametrize("nodes", ["a", "ab"])
def test_the_legend_of_a_narrow_comparison_fits(nodes):
    arcs = [("a", "b")] if len(nodes) > 1 else []
    ax = plot_structure(Structure(nodes, arcs), compare_to=Structure(nodes, types="ckde"))
    ax.figure.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= ax.figure.bbox.x1
    assert box.y0 >= 0


def test_labels_are_short_one_line_and_distinct():
    names = ["x" * 90 + "1", "x" * 90 + "2", "tab\tand\nline", "tab and line", "ok"]
    labels = short_labels(names, 20)
    assert len(set(labels.values())) == len(names)
    assert max(map(len, labels.values())) <= 22
    assert labels["ok"] == "ok"
    assert one_line("a\tb\ud800\uffff") == "a b  "
    assert node_width("日本語日本語") > node_width("abcdef")


def test_letters_that_the_font_lacks_are_one_warning(tmp_path):
    structure = Structure(["日本語", "語"])
    with pytest.warns(UserWarning, match=r"an \.svg has them") as caught:
        save_structure(structure, tmp_path / "g.png")
    assert len(caught) == 1
    save_structure(structure, tmp_path / "g.svg")
    assert "日本語" in (tmp_path / "g.svg").read_text(encoding="utf-8")
