"""The explorer in a browser: what it shows is what the network answers."""

import itertools
import re
import urllib.parse

import numpy as np
import pandas as pd
import pytest

import spbn
from browsing import launched, needs_chromium
from mixed import mixed_network
from spbn.report import render, render_explorer
from time_series import mixed

from strategies import nonlinear_frame

pytestmark = needs_chromium
WIDTHS = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}


def gaussian():
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    b = 2.0 * a + rng.normal(size=200)
    frame = pd.DataFrame({"a": 1000.0 + a, "b": b, "c <b>&": a - b + rng.normal(size=200)})
    arcs = [("a", "b"), ("a", "c <b>&"), ("b", "c <b>&")]
    return spbn.BayesianNetwork.fit(spbn.Structure(frame.columns, arcs), frame)


def curved():
    frame = nonlinear_frame(150, 3)
    names = list(frame.columns)
    structure = spbn.Structure(names, list(itertools.pairwise(names)), "ckde")
    return spbn.BayesianNetwork.fit(structure, frame)


NETWORKS = {
    "gaussian": gaussian,
    "curved": curved,
    "mixed": lambda: mixed_network("blend", "yeo-johnson"),
}


@pytest.fixture(scope="module")
def browser():
    with launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The explorers of the networks, as addresses."""
    folder = tmp_path_factory.mktemp("explorers")
    found = {}
    for name, network in NETWORKS.items():
        path = folder / f"{name}.html"
        path.write_text(render_explorer(network()), encoding="utf-8")
        found[name] = path.as_uri()
    return found


@pytest.fixture
def opened(browser, pages):
    """Open an explorer; whatever the page complains about fails the test."""
    contexts, complaints = [], []

    def open_(name, width="desk", fragment="", **options):
        context = browser.new_context(viewport=WIDTHS[width], has_touch=width == "phone", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: None if re.match("file:|data:", request.url) else complaints.append(request.url),
        )
        page.goto(pages[name] + fragment)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def card(page, network, name):
    return page.locator(f".variable[data-variable='{network.nodes.index(name)}']")


def settled(page):
    """Wait until the next frame has been drawn."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def brush(page, network, name, start, end):
    """Drag from one share of a chart's width to another."""
    chart = card(page, network, name).locator(".brush")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    for share in np.linspace(start, end, 4)[1:]:
        page.mouse.move(box["x"] + share * box["width"], y)
    page.mouse.up()
    settled(page)


def asked(page, network):
    """Read the question off the link that restores it, as evidence."""
    link = page.locator(".whatif .link").get_attribute("href")
    variables = {variable.name: variable for variable in network.variables}
    evidence = {}
    for part in filter(None, link.partition("?")[2].split("&")):
        name, _, value = part.partition("=")
        if name == ":pins":
            continue
        name = urllib.parse.unquote(name)
        if variables[name].is_discrete:
            evidence[name] = {urllib.parse.unquote(level) for level in value.split(",")}
        else:
            evidence[name] = tuple(float(end) if end else None for end in value.split(".."))
    return evidence


def matching(rows, evidence):
    """Count the rows in which everything holds."""
    holds = np.ones(len(rows), dtype=bool)
    for name, value in evidence.items():
        if isinstance(value, set):
            holds &= rows[name].isin(value)
        else:
            low, high = value
            holds &= rows[name].between(
                -np.inf if low is None else low, np.inf if high is None else high, inclusive="left"
            )
    return np.count_nonzero(holds)


def require_the_networks_answer(page, network, evidence):
    """All charts show the conditional distributions, as precisely as the samples that are left allow."""
    left = int(page.locator("#explorer").get_attribute("data-left"))
    assert 300 < left < 20_000
    assert left == matching(network.sample(20_000, seed=0), evidence)  # the rows that the page has
    posterior = network.query(evidence, n=20_000, seed=1)
    assert left / 20_000 == pytest.approx(
        np.exp(posterior.log_evidence),
        abs=5 * np.sqrt(0.25 / 20_000) + 5 * posterior.log_evidence_error * np.exp(posterior.log_evidence),
    )
    means, deviations, prior = posterior.mean(), posterior.std(), network.sample(20_000, seed=2)
    for variable in posterior.variables:
        box = card(page, network, variable.name)
        if variable.is_discrete:
            shares = posterior.probabilities(variable.name)
            for level, text in zip(variable.levels, box.locator(".share").all_inner_texts(), strict=True):
                seen = float(text.replace("<", "").replace("%", "").strip()) / 100
                assert seen == pytest.approx(shares[level], abs=0.005 + 3 / np.sqrt(left))
        else:
            seen, name = float(box.get_attribute("data-mean")), variable.name
            effective = 1 / left + 1 / posterior.effective_size
            # Cells are cut once more below this, and tails are averaged by tenths.
            cell = 0.1 * np.ptp(np.quantile(prior[name], [0.005, 0.995])) / 90
            error = 4 * deviations[name] * np.sqrt(effective) + cell
            assert seen == pytest.approx(means[name], abs=error)
            assert abs(seen) < 1e6


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NETWORKS)
def test_brushing_shows_what_the_network_answers(opened, name, width):
    network = NETWORKS[name]()
    page = opened(name, width)
    continuous = [variable.name for variable in network.variables if not variable.is_discrete]
    for node, values in network.sample(20_000, seed=0)[continuous].items():
        # Middles of cells stand for what is in them, and tails are added up as they are.
        cell = np.ptp(np.quantile(values, [0.005, 0.995])) / 90
        seen = float(card(page, network, node).get_attribute("data-mean"))
        assert seen == pytest.approx(values.mean(), abs=0.1 * cell)
    brush(page, network, continuous[0], 0.55, 0.8)
    first = asked(page, network)
    assert list(first) == continuous[:1]
    assert None not in first[continuous[0]]
    require_the_networks_answer(page, network, first)
    brush(page, network, continuous[-1], 0.3, 1.1)  # beyond the chart: no upper limit
    if name == "mixed":
        card(page, network, "size").locator(".level", has_text="small").click()
        settled(page)
    both = asked(page, network)
    assert both[continuous[0]] == first[continuous[0]]
    assert both[continuous[-1]][1] is None
    assert both.get("size", {"small"}) == {"small"}
    require_the_networks_answer(page, network, both)
    page.locator(".whatif .reset").click()
    settled(page)
    assert page.locator("#explorer").get_attribute("data-left") == "20000"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_same_by_keyboard(opened, name, width):
    network = NETWORKS[name]()
    page = opened(name, width)
    variable = next(variable.name for variable in network.variables if not variable.is_discrete)
    at_least, at_most = card(page, network, variable).locator("[role=slider]").all()
    assert at_least.get_attribute("aria-label") == f"{variable}: at least"
    assert at_least.get_attribute("aria-valuetext") == "no limit"
    at_least.focus()
    for key in ["PageUp"] * 10 + ["ArrowRight"] * 3 + ["ArrowLeft"]:
        page.keyboard.press(key)
    at_most.focus()
    for key in ["Shift+ArrowLeft"] * 3 + ["ArrowDown"]:
        page.keyboard.press(key)
    settled(page)
    low, high = asked(page, network)[variable]
    assert float(at_least.get_attribute("aria-valuenow")) == low
    assert float(at_most.get_attribute("aria-valuenow")) == high
    least, most = (float(at_least.get_attribute(f"aria-value{end}")) for end in ("min", "max"))
    cell = (low - least) / 52  # ten bars of five cells, three to the right, one to the left
    assert (most - high) / cell == pytest.approx(16)
    if name == "mixed":
        card(page, network, "town").locator(".level").first.focus()
        page.keyboard.press("Enter")
        settled(page)
        assert asked(page, network)["town"] == {"Leith"}
        assert card(page, network, "town").locator(".level").first.get_attribute("aria-pressed") == "true"
    require_the_networks_answer(page, network, asked(page, network))
    at_most.focus()
    page.keyboard.press("Escape")
    settled(page)
    assert variable not in asked(page, network)


def test_a_brush_is_moved_resized_and_taken_away(opened):
    network = curved()
    name = network.nodes[0]
    page = opened("curved")
    brush(page, network, name, 0.3, 0.5)
    low, high = asked(page, network)[name]
    brush(page, network, name, 0.4, 0.6)  # its middle
    moved = asked(page, network)[name]
    assert moved[1] - moved[0] == pytest.approx(high - low)
    assert moved[0] > low
    brush(page, network, name, 0.7, 0.8)  # its end
    assert asked(page, network)[name][0] == moved[0]
    assert asked(page, network)[name][1] > moved[1]
    chart = card(page, network, name).locator(".brush").bounding_box()
    page.mouse.click(chart["x"] + 0.1 * chart["width"], chart["y"] + 20)
    settled(page)
    assert asked(page, network) == {}


def test_a_link_restores_the_question(opened):
    network = NETWORKS["mixed"]()
    page = opened("mixed")
    brush(page, network, "x", 0.4, 0.6)
    card(page, network, "town").locator(".level").nth(1).click()
    card(page, network, "town").locator(".level").nth(2).click()
    card(page, network, "z").locator(".pin").click()
    settled(page)
    link = page.locator(".whatif .link").get_attribute("href")
    page.wait_for_function("link => location.hash === link", arg=link)
    again = opened("mixed", fragment=link)
    for part in (".question", ".remaining", ".code"):
        assert again.locator(part).text_content() == page.locator(part).text_content()
    assert again.locator(".variable h3").first.inner_text() == "z"
    assert "town is Portobello or Stockbridge" in again.locator(".question").inner_text()
    code = again.locator(".code").text_content()
    evidence = eval(code.removeprefix("network.query(").removesuffix(")"), {})
    assert evidence == asked(again, network)
    assert evidence["town"] == {"Portobello", "Stockbridge"}


def test_damaged_links_are_harmless(opened):
    network = gaussian()
    page = opened("gaussian", fragment="#what-if?a=x..y&zz=1..2&b=%E0%A4%A&:pins=nobody&c%20%3Cb%3E%26=5..-5")
    assert page.locator("#explorer").get_attribute("data-left") is not None
    assert set(asked(page, network)) <= {"c <b>&"}
    assert page.locator(".variable h3").all_inner_texts() == list(network.nodes)


def test_few_samples_are_warned_of(opened):
    network = gaussian()
    page = opened("gaussian")
    assert not page.locator(".few").is_visible()
    brush(page, network, "a", 0.95, 0.97)
    brush(page, network, "b", 0.05, 0.09)
    left = int(page.locator("#explorer").get_attribute("data-left"))
    assert left < 100
    assert page.locator(".few").is_visible()
    assert page.locator(".few").inner_text().startswith(f"Only {left} " if left else "No sample is left")
    assert page.locator(".itself").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_sticks_out(opened, width, scheme):
    page = opened("mixed", width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    bright = sum(
        map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor")))
    )
    assert (bright > 600) == (scheme == "light")


def test_without_scripts_it_says_so(opened):
    page = opened("gaussian", java_script_enabled=False)
    assert page.get_by_text("needs JavaScript").is_visible()


def test_sixty_variables_are_found_sorted_and_pinned(browser, tmp_path):
    rng = np.random.default_rng(0)
    names = [f"sensor {i:02d}" for i in range(60)]
    frame = pd.DataFrame(rng.normal(size=(100, 60)), columns=names)
    frame["sensor 41"] = frame["sensor 07"] + 0.3 * rng.normal(size=100)
    network = spbn.BayesianNetwork.fit(spbn.Structure(names, [("sensor 07", "sensor 41")]), frame)
    text = render_explorer(network)
    assert len(text) < 1_000_000
    path = tmp_path / "sixty.html"
    path.write_text(text, encoding="utf-8")
    page = browser.new_page(viewport=WIDTHS["desk"])
    page.goto(path.as_uri())
    titles = page.locator(".variable:visible h3")
    assert titles.all_inner_texts() == names
    page.locator(".search").fill("SENSOR 4")
    assert titles.all_inner_texts() == names[40:50]
    assert page.locator(".hidden").inner_text() == "50 variables not shown"
    card(page, network, "sensor 43").locator(".pin").click()
    page.locator(".search").fill("07")
    assert titles.all_inner_texts() == ["sensor 43", "sensor 07"]
    brush(page, network, "sensor 07", 0.8, 1.0)
    page.locator(".search").fill("")
    page.locator(".changed").click()
    assert titles.all_inner_texts()[:3] == ["sensor 43", "sensor 07", "sensor 41"]
    page.locator(".sorted").click()
    assert titles.all_inner_texts()[:3] == ["sensor 43", "sensor 00", "sensor 01"]
    page.close()


@pytest.mark.parametrize("whole", [False, True], ids=["alone", "in a report"])
def test_a_network_over_time_shows_rows_given_those_before(browser, tmp_path, whole):
    data = mixed(400, seed=2)
    arcs = [("mode", "x"), (("x", 1), "x"), (("mode", 1), "mode")]
    dynamic = spbn.learn_dynamic(data, model="gbn", score="bic", required_arcs=arcs, max_parents=2)
    text = render(dynamic, data=data) if whole else render_explorer(dynamic)
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    named = {page.locator(".variable h3").nth(k).inner_text(): k for k in range(4)}
    assert list(named) == ["mode", "x", "mode[t-1]", "x[t-1]"]
    cards = {name: page.locator(f".variable[data-variable='{k}']") for name, k in named.items()}
    for name in ("mode", "mode[t-1]"):
        cards[name].locator(".level", has_text="on").click()
    chart = cards["x[t-1]"].locator(".brush")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 10)
    page.mouse.up()
    settled(page)
    left = int(page.locator("#explorer").get_attribute("data-left"))
    assert 200 < left < 10_000
    # Given both modes, a row is a line in the row before, as the transition network has it.
    before, now = (float(cards[name].get_attribute("data-mean")) for name in ("x[t-1]", "x"))
    given = dict.fromkeys(dynamic.transition.inputs, before) | {"mode": "on"}
    answer = dynamic.transition.query(given | {"mode[t-1]": "on"}, n=20_000)
    error = answer.std()["x"] * np.sqrt(1 / left + 1 / 20_000)
    assert now == pytest.approx(answer.mean()["x"], abs=4 * error + 0.02)
    # Nothing answers such a question precisely, so the page does not say that the network would.
    assert not page.locator(".itself").is_visible()
    page.close()
