"""Large graphs in a browser: zoom, fit, search, the neighbourhood of a node."""

from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import spbn
from browsing import launched, needs_chromium
from spbn.report import render

pytestmark = needs_chromium
NODES = 200


@pytest.fixture(scope="module")
def network():
    """Two hundred nodes, each with up to three of the nodes before it as parents."""
    rng = np.random.default_rng(0)
    names = [f"sensor {i:03d}" for i in range(NODES)]
    arcs = [
        (names[parent], names[child])
        for child in range(1, NODES)
        for parent in rng.choice(child, min(child, rng.integers(0, 4)), replace=False).tolist()
    ]
    frame = pd.DataFrame(rng.normal(size=(30, NODES)), columns=names)
    return spbn.BayesianNetwork.fit(spbn.Structure(names, arcs), frame)


@pytest.fixture(scope="module")
def url(network, tmp_path_factory):
    """A page with the graph, but without the densities of its nodes, which take long to draw."""
    path = tmp_path_factory.mktemp("large") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spbn.report.graph._cpd_figure", lambda *_, **__: ("", ""))
        patch.setattr("spbn.diagnostics.model.measure_importance", lambda *_: "not computed")
        path.write_text(render(network), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@contextmanager
def opened(browser, url, width):
    """Give a page, on which nothing may go wrong."""
    complaints = []
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(60_000)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(url)
    yield page
    assert complaints == []
    page.close()


@pytest.fixture(scope="module", params=[1280, 390])
def page(request, browser, url):
    with opened(browser, url, request.param) as page:
        yield page


@pytest.fixture(scope="module")
def moving():
    """A network over time, of nodes that depend on each other as well as on inputs."""
    rng = np.random.default_rng(0)
    names = [f"s{i:02d}" for i in range(14)]
    frame = pd.DataFrame(np.cumsum(rng.normal(size=(60, 14)), axis=0), columns=names)
    required = [(f"{a}[t-1]", b) for a, b in pairwise(names)] + [("s00", "s05")]
    return spbn.learn_dynamic(frame, lags=1, model="gbn", required_arcs=required)


@pytest.fixture(scope="module")
def moving_page(browser, moving, tmp_path_factory):
    path = tmp_path_factory.mktemp("moving") / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spbn.report.graph._cpd_figure", lambda *_, **__: ("", ""))
        path.write_text(render(moving), encoding="utf-8")
    with opened(browser, path.as_uri(), 1280) as page:
        yield page


def box(page, selector):
    return page.locator(selector).first.bounding_box()


def is_inside(page, inner, outer):
    """Whether one element is within another; both measured at once, as the page may be scrolling."""
    return page.evaluate(
        """([inner, outer]) => {
            const [a, b] = [inner, outer].map(name => document.querySelector(name).getBoundingClientRect());
            return b.left <= a.left + 1 && a.right <= b.right + 1
                && b.top <= a.top + 1 && a.bottom <= b.bottom + 1;
        }""",
        [inner, outer],
    )


def test_the_whole_graph_fits_its_pane(page):
    page.locator(".graph-tools .fit").click()
    graph, pane = box(page, "#graph .graph"), box(page, "#graph .pane")
    assert graph["width"] <= pane["width"] + 1 or graph["width"] < 800  # never smaller than a tenth
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_zooming_keeps_the_middle(page):
    page.locator(".graph-tools .fit").click()
    before = box(page, "#graph .graph")
    for _ in range(3):
        page.locator(".graph-tools .in").click()
    after = box(page, "#graph .graph")
    assert after["width"] == pytest.approx(before["width"] * 1.3**3, rel=0.01)
    page.locator(".graph-tools .out").click()
    assert box(page, "#graph .graph")["width"] == pytest.approx(before["width"] * 1.3**2, rel=0.01)


def test_a_node_is_found_by_its_name(page, network):
    page.locator(".graph-tools .search").fill("SENSOR 17")
    assert page.locator(".graph-tools .matches").inner_text() == "10 found"
    assert page.locator("#graph .node.lost").count() == NODES - 10
    page.locator(".graph-tools .search").fill("173")
    page.keyboard.press("Enter")
    node = "#graph .node[data-name='sensor 173']"
    assert page.locator(".panel:visible h3").inner_text() == "sensor 173"
    assert is_inside(page, f"{node} ellipse", "#graph .pane")
    assert box(page, f"{node} text")["height"] > 9  # legible
    page.locator(".graph-tools .search").fill("")
    assert page.locator("#graph .node.lost").count() == 0


def test_the_neighbourhood_of_a_node(page, network):
    structure = network.structure
    button = page.locator(".graph-tools .near")
    page.locator(".graph-tools .search").fill("sensor 100")
    page.keyboard.press("Enter")
    button.click()
    view = page.locator(".neighbourhood")
    near = [*structure.parents("sensor 100"), "sensor 100", *structure.dag.children("sensor 100")]
    assert view.locator(".node").evaluate_all("all => all.map(n => n.dataset.name)") == near
    assert view.locator(".arc").count() == len(near) - 1
    heights = {name: box(page, f".neighbourhood .node[data-name='{name}'] ellipse")["y"] for name in near}
    for parent in structure.parents("sensor 100"):
        assert heights[parent] < heights["sensor 100"]
    for child in structure.dag.children("sensor 100"):
        assert heights[child] > heights["sensor 100"]
    other = next(name for name in near if name != "sensor 100")
    view.locator(f".node[data-name='{other}']").click()  # and so on, from node to node
    assert page.locator(".panel:visible h3").inner_text() == other
    assert page.locator(".neighbourhood .node.chosen").get_attribute("data-name") == other
    page.locator(".neighbourhood .node[data-name='sensor 100']").focus()
    page.keyboard.press("Enter")
    assert page.locator(".neighbourhood .node.chosen").get_attribute("data-name") == "sensor 100"
    button.click()
    assert page.locator(".neighbourhood").count() == 0
    assert page.locator("#graph .graph").is_visible()


def test_the_neighbourhood_of_every_node_over_time(moving_page, moving):
    """With the inputs, which have no panel."""
    structure = moving.transition.structure
    moving_page.locator(".graph-tools .near").click()
    for node in structure.nodes:
        moving_page.locator(".graph-tools .search").fill(node)
        moving_page.keyboard.press("Enter")
        assert moving_page.locator(".neighbourhood .node.chosen").get_attribute("data-name") == node
        near = {*structure.parents(node), node, *structure.dag.children(node)}
        words = moving_page.locator(".neighbourhood text").evaluate_all("all => all.map(t => t.textContent)")
        assert set(words) == near
        assert moving_page.locator(".neighbourhood .arc").count() == len(near) - 1
    assert moving_page.locator(".neighbourhood .input").count() > 0
