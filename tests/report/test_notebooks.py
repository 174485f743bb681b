"""What notebooks show: complete, escaped, and legible in any theme."""

import re

import numpy as np
import pandas as pd
import pytest

import spbn
from mixed import mixed_network
from reading import Page
from spbn.learning.comparison import Comparison
from spbn.learning.stability import Confidence

pytest.importorskip("igraph")


def hostile():
    names = ["<script>alert(1)</script>", "b & c"]
    rng = np.random.default_rng(0)
    a = rng.normal(size=80)
    data = {names[0]: a, names[1]: 2 * a + rng.normal(size=80)}
    return spbn.BayesianNetwork.fit(spbn.Structure(names, [tuple(names)]), data)


def shown():
    network = hostile()
    first, second = network.nodes
    structures = (network.structure, spbn.Structure(network.nodes, [(second, first)]))
    rows = network.sample(80, seed=1)
    dynamic = spbn.learn_dynamic(rows, model="gbn")
    monitor = spbn.Monitor(dynamic, rows, alarm=0.05)
    return {
        "network": network,
        "structure": network.structure,
        "posterior": network.query({second: (0.5, None)}),
        "confidence": Confidence(structures, {}, 80, ""),
        "unusual rows": spbn.explain.unusual_rows(network, rows),
        "dynamic network": dynamic,
        "forecast": dynamic.forecast(rows, 3, n=50),
        "verdicts": monitor.update(rows),
        "monitor": monitor,
    }


SHOWN = ["network", "structure", "posterior", "confidence", "unusual rows", "dynamic network", "forecast"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHOWN, "verdicts", "monitor"])
def test_names_are_text_and_nothing_is_loaded(name):
    html = shown()[name]._repr_html_()
    page = Page(html)  # every element is closed
    assert {tag for tag, _ in page.elements}.isdisjoint({"script", "link", "img", "a", "iframe"})
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert "alert(1)" in page.text() or name == "monitor"  # which names no variable
    assert "http" not in html
    assert len(html) < 20_000
    # Colours come from the notebook: nothing is painted behind the text but bars and nodes.
    assert not re.search(r"background: ?#|color-scheme|[^-]color: ?#", re.sub(r"\.track.*", "", html))


def test_a_network_shows_its_graph_and_densities():
    network = mixed_network()
    page = Page(network._repr_html_())
    assert len(page.with_class("node")) == len(network.nodes)
    assert len(page.with_class("arc")) == len(network.structure.arcs)
    text = page.text()
    assert (
        "Gaussian Bayesian network with discrete nodes: 5 nodes (3 linear Gaussian, 2 discrete), 6 arcs"
        in text
    )
    assert "from 160 rows" in text
    for cpd in network.cpds.values():
        assert cpd.describe().formula in text


def test_without_the_package_for_graphs_there_is_a_table(monkeypatch):
    monkeypatch.setattr("spbn.errors.find_spec", lambda name: None)
    network = mixed_network()
    assert "<svg" not in network._repr_html_()
    assert "<details open>" in network._repr_html_()
    assert "<td>town</td><td>size</td>" in network.structure._repr_html_()


def test_a_posterior_shows_its_numbers():
    network = mixed_network()
    posterior = network.query({"x": (None, 1.0), "town": {"Leith", "Stockbridge"}}, do={"z": 2.0})
    text = Page(posterior._repr_html_()).text()
    assert "given that x is at most 1.0 and town is Leith or Stockbridge and z is set to 2.0" in text
    assert f"{posterior.mean()['y']:.3f}"[:5].replace("-", "−") in text
    best = posterior.probabilities("size").idxmax()
    assert f"{best} {100 * posterior.probabilities('size').max():.0f} %" in text
    assert posterior._repr_html_().count('class="bars"') == 2  # x and y


def test_confidence_shows_strengths_and_why_directions_are_open():
    text = Page(shown()["confidence"]._repr_html_()).text()
    assert "2 replicates" in text
    assert "1 of 1" in text
    assert "100 %" in text
    assert "replicates disagree" in text


def test_a_comparison_is_a_frame_with_bars():
    frame = spbn.compare_models(mixed_network().sample(60, seed=0)[["x", "z"]], folds=2)
    assert isinstance(frame, Comparison)
    assert type(frame.sort_values("seconds")) is type(frame.head()) is pd.DataFrame
    page = Page(frame._repr_html_())
    assert len(page.with_class("track")) == len(frame)
    widths = [float(a["style"][6:-1]) for tag, a in page.elements if tag == "i"]
    density = frame["log-density"].to_numpy()
    assert widths == pytest.approx((100 * np.exp(density - density.max())).tolist(), abs=0.06)
    for model in frame["model"]:
        assert model in page.text("td")


def test_open_directions_are_named_where_variables_are_set():
    """In a posterior about variables that are set, and in the explorer."""
    network = mixed_network()
    assert tuple(network.open_directions()) == (("town", "size"),)
    text = Page(network.query(do={"size": "small"})._repr_html_()).text()
    assert "It depends on directions that are open: town → size" in text
    assert "It depends on" not in Page(network.query(do={"x": 1.0})._repr_html_()).text()
    page = spbn.report.render_explorer(network, n=100)
    assert "also depends on directions that are open: town → size." in Page(page).text()
    chain = [(f"x{k}", f"x{k + 1}") for k in range(9)]
    names = [f"x{k}" for k in range(10)]
    cpds = {b: spbn.nodes.LinearGaussian(b, [a], 0.0, [1.0], 1.0) for a, b in chain}
    cpds["x0"] = spbn.nodes.LinearGaussian("x0", [], 0.0, [], 1.0)
    page = spbn.report.render_explorer(spbn.BayesianNetwork(spbn.Structure(names, chain), cpds), n=100)
    assert "x4 → x5, x5 → x6 and 3 more." in Page(page).text()
