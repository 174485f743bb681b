import itertools
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from matplotlib.patches import Ellipse, FancyArrowPatch
from PIL import Image

import spbn
from spbn import BayesianNetwork, NodeType, Structure
from spbn.errors import ArgumentError, GraphError, PackageError
from spbn.plots import plot_contributions, plot_cpd, plot_search, plot_structure
from spbn.plots.graphs import layered, node_width, save_graph, to_dot, to_svg
from spbn.plots.pictures import graph_inches, one_line, short_labels
from spbn.record import Record
from spbn.search import AddArc, SearchResult, Step
from spbn.search.hill_climbing import Trail

from strategies import arcs_of_dag, nonlinear_frame

mpl.use("agg")
FRAME = nonlinear_frame(120, 3)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("package", ["igraph", "matplotlib"])
def test_without_a_package_the_message_says_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PackageError, match=rf"drawing needs {package}: .* pip install 'spbn\[plot\]'"):
        plot_structure(Structure(["a", "b"], [("a", "b")]))


@pytest.mark.slow
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
    line, kernels = NodeType.LG.appearance.colour, NodeType.CKDE.appearance.colour
    assert colours == {"a": line, "b": kernels, "c": line}
    assert colours["a"] != colours["b"]
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == 2


def test_open_directions_of_a_network_are_dashed():
    structure = Structure("abcd", [("a", "b"), ("c", "d")])
    network = spbn.BayesianNetwork.fit(structure, nonlinear_frame(30, 4))
    for record, count in ((None, 2), ((("a", "b"),), 1), ((), 0)):
        shown = network.replace(record=Record(open_directions=record))
        ax = plot_structure(shown)
        lines = [patch.get_linestyle() for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
        assert lines.count("-") + lines.count("solid") == 2 - count
        legend = ax.get_legend()
        assert ([] if legend is None else [text.get_text() for text in legend.get_texts()]) == [
            "dashed: direction open"
        ] * bool(count)
        assert to_dot(shown).count("[style=dashed]") == count
        assert plot_structure(shown, compare_to=structure).get_legend() is not None
    assert plot_structure(structure).get_legend() is None


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


def long_search(count):
    """A search of many steps, the best of them ten before the end."""
    best = count - 10
    nodes = [f"x{i}" for i in range(count + 1)]
    trail, steps = Trail(Structure(nodes)), []
    for number, (a, b) in enumerate(itertools.pairwise(nodes), 1):
        trail.append(AddArc(a, b))
        validation = float(min(number, 2 * (count - 10) - number))
        steps.append(
            Step(AddArc(a, b), 1.0, float(number), validation, max(0, number - count + 10), number, trail)
        )
    best = count - 10
    return SearchResult(trail.after(best), float(best), float(best), tuple(steps), "patience", best)


@pytest.mark.slow
@pytest.mark.parametrize("count", [24, 25, 66, 279])
def test_a_long_search_fits_a_screen(count):
    search = long_search(count)
    ax = plot_search(search)
    ax.figure.draw_without_rendering()
    assert ax.figure.get_size_inches()[0] * 100 < 1300
    low, high = ax.get_xlim()
    assert low < search.best < high
    assert [text.get_text() for text in ax.texts] == ["best"]
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert (labels == [str(step.operator) for step in search.steps]) == (count <= 24)
    assert all("." not in label for label in labels) or count <= 24


@pytest.mark.slow
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


def shading(ax):
    """The greatest density that is shown at every value of the parent."""
    image = ax.get_images()[0]
    left, right, *_ = image.get_extent()
    peaks = np.asarray(image.get_array()).max(axis=0)
    return np.linspace(left, right, len(peaks)), peaks


def test_nothing_is_shown_far_from_the_rows_of_a_ckde():
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, 300)
    data = {"x": x, "y": np.sin(2 * x) + 0.1 * rng.normal(size=300)}
    wide = {"x": np.linspace(-9.0, 9.0, 300), "y": np.linspace(-1.5, 1.5, 300)}
    structure = Structure("xy", [("x", "y")], "ckde")
    xs, peaks = shading(plot_cpd(BayesianNetwork.fit(structure, data), "y", data=wide))
    assert (peaks[np.abs(xs) > 6.0] == 0.0).all()
    assert (peaks[np.abs(xs) < 2.0] > 0.5).all()
    # A straight line goes on beyond the rows.
    xs, peaks = shading(plot_cpd(BayesianNetwork.fit(structure.with_type("y", "lg"), data), "y", data=wide))
    assert (peaks[np.abs(xs) < 6.0] > 0.1).all()


def test_contributions_have_to_be_contributions():
    network = spbn.learn(FRAME, model="gbn")
    for wrong in (network, FRAME.to_numpy(), None):
        with pytest.raises(ArgumentError, match=r"plot_contributions\(network\.logpdf_by_node\(data\)\)"):
            plot_contributions(wrong)


def test_contributions_add_up():
    network = spbn.learn(FRAME, model="gbn")
    contributions = network.logpdf_by_node(FRAME)
    ax = plot_contributions(contributions, time=np.arange(120) * 0.5)
    total = ax.get_lines()[0]
    np.testing.assert_allclose(total.get_ydata(), network.logpdf(FRAME))
    np.testing.assert_array_equal(total.get_xdata(), np.arange(120) * 0.5)
    assert len(plot_contributions(contributions, nodes=["b"]).get_lines()) == 2
    with pytest.raises(ArgumentError, match="one value for each of the 120 rows"):
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
    assert svg == to_svg(network)


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


@pytest.mark.slow
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
        save_graph(structure, tmp_path / "g.png")
    assert len(caught) == 1
    save_graph(structure, tmp_path / "g.svg")
    assert "日本語" in (tmp_path / "g.svg").read_text(encoding="utf-8")


def tree(count):
    """A graph that is wide: every node has three children."""
    nodes = [f"a variable {i}" for i in range(count)]
    return Structure(nodes, [(nodes[(i - 1) // 3], nodes[i]) for i in range(1, count)], "ckde")


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 40])
def test_small_graphs_have_all_their_resolution(count, tmp_path):
    ax = plot_structure(tree(count))
    save_graph(tree(count), tmp_path / "g.png")
    with Image.open(tmp_path / "g.png") as image:
        assert image.size == pytest.approx([200 * inches for inches in graph_inches(ax)], abs=1)


@pytest.mark.slow
def test_a_picture_of_a_large_graph_can_be_opened(tmp_path):
    path = tmp_path / "g.png"
    with pytest.warns(UserWarning, match=r"graph of 700 nodes.*an \.svg or \.pdf can be enlarged"):
        save_graph(tree(700), path)
    with Image.open(path) as image:
        assert max(image.size) <= 10_000
        assert image.width * image.height < 2.1e7
    assert path.stat().st_size < 8e6
    save_graph(tree(700), tmp_path / "g.svg")  # no warning


def test_a_graph_with_several_types_has_a_legend_of_them():
    types = {"a": "lg", "b": "ckde", "c": "blend"}
    legend = plot_structure(Structure("abc", [("a", "b")], types)).get_legend()
    shown = dict(zip([t.get_text() for t in legend.get_texts()], legend.legend_handles, strict=True))
    known = {
        NodeType.parse(name).appearance.label: NodeType.parse(name).appearance.colour
        for name in types.values()
    }
    assert {name: mpl.colors.to_hex(one.get_markerfacecolor()) for name, one in shown.items()} == known
