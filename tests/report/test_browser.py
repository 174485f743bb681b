"""The report in a browser: Debian's chromium, driven by playwright."""

import itertools
import re

import pytest

from browsing import launched, needs_chromium

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def url(rendered, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(rendered, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser, url):
    """Open the report; whatever the page complains about fails the test."""
    contexts, complaints = [], []

    def open_(fragment="", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on(
            "request",
            lambda request: None if re.match("file:|data:", request.url) else complaints.append(request.url),
        )
        page.goto(url + fragment)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def shown(page):
    """Numbers of the nodes whose panels can be seen."""
    return [int(panel.get_attribute("id")[5:]) for panel in page.locator(".panel:visible").all()]


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def test_a_click_on_a_node_shows_its_panel(opened, network):
    page = opened()
    assert len(shown(page)) == 1
    for number in range(len(network.nodes)):
        page.locator(f".graph .node[data-node='{number}']").click()
        assert shown(page) == [number]
        assert page.locator(f"#node-{number} svg.figure").is_visible()
        assert page.locator(".node[aria-current]").get_attribute("data-node") == str(number)


def test_the_arcs_of_the_chosen_node_stand_out(opened, network):
    page = opened()
    source, target = network.structure.arcs[0]
    i, j = network.nodes.index(source), network.nodes.index(target)
    page.locator(f".graph .node[data-node='{i}']").click()
    near = page.locator(".arc.near")
    assert near.count() == sum(source in arc for arc in network.structure.arcs)
    assert "near" in page.locator(f".graph .node[data-node='{j}']").get_attribute("class")


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_keys_choose_a_node(opened, network, key):
    page = opened()
    for number in (0, 4):
        page.locator(f".graph .node[data-node='{number}']").focus()
        page.keyboard.press(key)
        assert shown(page) == [number]


def test_tab_reaches_the_nodes_and_shows_where_it_is(opened, network):
    page = opened()
    reached, widths = [], set()
    for _ in range(15 + 2 * len(network.nodes)):  # the links of the menu and of the data check come first
        page.keyboard.press("Tab")
        number = page.evaluate("document.activeElement.closest('.graph .node')?.dataset.node")
        if number is not None:
            reached.append(int(number))
            widths.add(
                page.evaluate(
                    "getComputedStyle(document.activeElement.querySelector('ellipse')).strokeDasharray"
                )
            )
    assert sorted(reached) == list(range(len(network.nodes)))
    assert "none" not in widths


def test_a_link_elsewhere_leads_to_the_panel(opened):
    page = opened()
    link = page.locator("#unusual [data-node]").last
    number = int(link.get_attribute("data-node"))
    link.click()
    assert shown(page) == [number]
    page.wait_for_function(
        "panel => { const top = panel.getBoundingClientRect().top; return top >= 0 && top < innerHeight; }",
        arg=page.locator(f"#node-{number}").element_handle(),
    )
    assert page.evaluate("document.activeElement.id") == f"node-{number}"


def test_an_address_can_name_a_node(opened):
    assert shown(opened("#node-3")) == [3]


@pytest.mark.parametrize("width", [380, 320])
def test_nothing_sticks_out(opened, network, width):
    page = opened(viewport={"width": width, "height": 800})
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for number in range(len(network.nodes)):
        page.locator(f".graph .node[data-node='{number}']").dispatch_event("click")
        assert overflow(page) <= 0


def test_light_and_dark(opened):
    light, dark = opened(color_scheme="light"), opened(color_scheme="dark")
    brightness = [sum(map(int, re.findall(r"\d+", background(page))[:3])) for page in (light, dark)]
    assert brightness[0] > 600
    assert brightness[1] < 150
    axis = "getComputedStyle(document.querySelector('.panel.open .figure text')).fill"
    assert light.evaluate(axis) != dark.evaluate(axis)


def test_all_panels_are_printed(opened, network):
    page = opened()
    page.emulate_media(media="print")
    assert shown(page) == list(range(len(network.nodes)))
    assert overflow(page) <= 0


def test_all_panels_are_there_without_scripts(opened, network):
    assert shown(opened(java_script_enabled=False)) == list(range(len(network.nodes)))


def test_names_do_nothing(opened, network):
    page = opened()
    titles = page.evaluate("[...document.querySelectorAll('.panel h3')].map(h => h.textContent)")
    assert titles[0] == network.nodes[0] == "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def long_url(tmp_path_factory):
    """A report with 279 steps, names that do not break, and nodes of two types."""
    import warnings

    import numpy as np
    import pandas as pd

    import spbn
    from spbn.report import render
    from spbn.search import ChangeType, SearchResult, Step
    from spbn.search.hill_climbing import Trail

    rng = np.random.default_rng(0)
    names = [f"a_name_that_does_not_break_{i}" for i in range(6)]
    frame = pd.DataFrame(rng.normal(size=(60, 6)).cumsum(axis=1), columns=names)
    types = dict.fromkeys(names, "lg") | {names[2]: "ckde"}
    structure = spbn.Structure(names, list(itertools.pairwise(names)), types)
    trail, steps = Trail(structure), []
    for number in range(1, 280):
        before, after = ("lg", "ckde") if number % 2 else ("ckde", "lg")
        operator = ChangeType(names[0], spbn.NodeType.parse(before), spbn.NodeType.parse(after))
        trail.append(operator)
        score = 1000.0 * (1 - 0.98**number)
        steps.append(Step(operator, 1.0, score, score - number, 0, number, trail))
    search = SearchResult(structure, score, score, tuple(steps), "patience", 270)
    network = spbn.BayesianNetwork.fit(structure, frame, search=search)
    path = tmp_path_factory.mktemp("long") / "report.html"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path.write_text(render(network, data=frame), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("width", [1280, 390])
def test_long_searches_and_bars_are_seen_as_a_whole(browser, long_url, width):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(long_url)
    # Nothing in these two sections has to be scrolled to be seen.
    for section in ("#learning", "#importance"):
        boxes = page.locator(f"{section} .scroll:visible")
        assert boxes.count() >= 2
        for box in boxes.all():
            assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    for label in page.locator("#learning .chart text", has_text="best").all():
        box = label.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width
    # Bars are as long as their losses say.
    bars = page.locator("#importance .card:last-child tbody tr:visible")
    lengths = [bar.bounding_box()["width"] for bar in bars.locator(".track i").all()]
    shares = [float(i.get_attribute("style")[6:-1]) for i in bars.locator(".track i").all()]
    assert len(set(shares)) > 3
    for length, share in zip(lengths, shares, strict=True):
        assert length == pytest.approx(lengths[0] * share / 100, abs=1.5)
    page.close()


def test_nodes_have_the_colours_of_their_types(browser, long_url):
    import spbn

    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(long_url)
        for node_type in (spbn.NodeType.LG, spbn.NodeType.CKDE):
            colour = node_type.appearance.colour if scheme == "light" else node_type.appearance.dark_colour
            rgb = f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"
            fill = page.locator(f".node.type-{node_type.name} ellipse").first
            assert fill.evaluate("ellipse => getComputedStyle(ellipse).fill") == rgb
            keys = page.locator(f".legend .key.type-{node_type.name}")
            assert keys.evaluate("key => getComputedStyle(key).backgroundColor") == rgb
        page.close()
