import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.drawing.markup import clean
from spbn.report import render, write_report
from spbn.report.sections.learning import how_learned

VOID = {"meta", "br", "hr", "link", "img", "input"}


class Page(HTMLParser):
    """Reads a page, and refuses elements that are not closed in order."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.texts = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else None, data))

    def with_class(self, name):
        return [(tag, a) for tag, a in self.elements if name in (a.get("class") or "").split()]

    def text(self, *tags):
        return "".join(data for tag, data in self.texts if not tags or tag in tags)


@pytest.fixture(scope="module")
def page(rendered):
    return Page(rendered)


def test_it_is_a_whole_page(page, rendered):
    assert rendered.startswith("<!doctype html>")
    assert [tag for tag, _ in page.elements].count("section") == 5
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_links_and_references_lead_somewhere(page, rendered):
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    for _, attributes in page.elements:
        if attributes.get("href", "").startswith("#"):
            assert attributes["href"][1:] in ids
        if "aria-labelledby" in attributes:
            assert attributes["aria-labelledby"] in ids
    assert set(re.findall(r"url\(#([^)]+)\)", rendered)) <= ids


def test_nothing_is_loaded(page, rendered):
    assert "http://" not in rendered
    assert "https://" not in rendered
    for tag, attributes in page.elements:
        assert tag not in {"link", "iframe", "object", "embed", "img"}
        for key in ("src", "href", "xlink:href"):
            assert re.match(r"#|data:image/png;base64,", attributes.get(key, "#")), (tag, key)
    assert "@import" not in rendered
    assert "default-src 'none'" in rendered


def test_names_are_nothing_but_text(page, frame):
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert "alert" not in page.text("script", "style")
    assert "Report & <b>title</b>" in page.text("h1")
    assert "Report & <b>title</b>" in page.text("title")
    assert [a["aria-label"] for _, a in page.with_class("panel")] == [
        f"Node {clean(c)}" for c in frame.columns
    ]


def test_every_node_is_there(page, network):
    assert len(page.with_class("panel")) == len(page.with_class("node")) == len(network.nodes)
    assert len(page.with_class("arc")) == len(network.structure.arcs)
    assert len(page.with_class("figure")) == len(network.nodes)
    ckde = sum(t == "ckde" for t in network.structure.types.values())
    assert len([1 for _, a in page.with_class("node") if "ckde" in a["class"]]) == ckde
    equations = page.text("code")
    for cpd in network.cpds.values():
        assert clean(repr(cpd)) in equations


def test_the_same_input_gives_the_same_bytes(network, frame, rendered):
    assert render(network, data=frame, title="Report & <b>title</b>") == rendered


def test_figures_follow_the_theme(rendered):
    figures = re.findall(r'<svg[^>]*class="figure".*?</svg>', rendered, flags=re.S)
    assert figures
    for figure in figures:
        assert not re.search(r"(fill|stroke): ?#", figure)
        assert "font-family" not in figure
        assert "xmlns" not in figure


def test_written_files_appear_whole_or_not_at_all(network, frame, rendered, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(network, path, data=frame, title="Report & <b>title</b>")
    assert path.read_bytes() == rendered.encode()
    monkeypatch.setattr("os.replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(network, path, data=frame)
    assert path.read_bytes() == rendered.encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_loaded_network_without_data(network, tmp_path):
    network.save(tmp_path / "model.spbn")
    text = Page(render(spbn.BayesianNetwork.load(tmp_path / "model.spbn"))).text()
    assert "Score after every step" in text
    assert "no rows were given" in text


def test_a_gaussian_network_without_data(plain_frame):
    text = Page(render(spbn.BayesianNetwork.fit(spbn.Structure("abc", [("a", "b")]), plain_frame))).text()
    assert "does not carry its search" in text
    assert "There are no rows to compute scores from" in text
    assert "rows drawn from the model" in text


@pytest.mark.parametrize("rows", [1, 2, 25])
def test_few_rows(plain_network, plain_frame, rows):
    Page(render(plain_network, data=plain_frame[:rows]))


def test_one_node(plain_frame):
    network = spbn.BayesianNetwork.fit(spbn.Structure(["a"], types="ckde"), plain_frame)
    assert "1 node and 0 arcs" in Page(render(network, data={"a": plain_frame["a"]})).text()


def test_far_outliers(plain_frame):
    frame = plain_frame.copy()
    frame.loc[3, "c"] = 1e9
    network = spbn.BayesianNetwork.fit(spbn.Structure("abc", [("a", "b"), ("c", "b")], "ckde"), frame)
    assert len(render(network, data=frame)) < 1_000_000


def test_columns_of_few_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": (rng.random(800) < 0.001).astype(float), "b": rng.integers(0, 2, 800)})
    frame.loc[0, "a"] = 1.0
    Page(render(spbn.BayesianNetwork.fit(spbn.Structure("ab", [("a", "b")]), frame), data=frame))


def test_long_names_stay_different():
    names = [f"{'long ' * 10}{i}" for i in range(4)]
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 4)), columns=names)
    arcs = [(names[0], names[1]), (names[0], names[2])]
    page = Page(render(spbn.BayesianNetwork.fit(spbn.Structure(names, arcs), frame)))
    ellipses = {(a["cx"], a["cy"]) for tag, a in page.elements if tag == "ellipse"}
    assert len(ellipses) == 4
    assert all(len(data) <= 48 for tag, data in page.texts if tag == "text")


class FoundByPC:
    """What the report needs of a PCResult."""

    def __init__(self, pdag, tests_run):
        self.pdag, self.tests_run = pdag, tests_run


@pytest.mark.parametrize("tests_run", [(3, 6, 1), 10])
def test_a_network_found_by_pc(plain_network, tests_run):
    pdag = spbn.PDAG("abc", [("a", "b")], [("b", "c")])
    network = spbn.BayesianNetwork(
        plain_network.structure, plain_network.cpds, search=FoundByPC(pdag, tests_run)
    )
    text = Page(render(network)).text()
    assert "Learned by PC with 10 independence tests." in text
    assert "1 arc with a known direction, 1 edge without" in text
    assert "b — c" in text


def test_the_search_over_types_behind_pc(plain_frame, tmp_path):
    found = spbn.learn(plain_frame, algorithm="pc", test="plc", start="ckde")
    assert found.type_search.steps
    found.save(tmp_path / "m.spbn")
    for network in (found, spbn.BayesianNetwork.load(tmp_path / "m.spbn")):
        text = Page(render(network, data=plain_frame)).text()
        assert f"Learned by PC with {sum(found.search.tests_run)} independence tests, its node types" in text
        assert "The node types, for these arcs" in text
        assert "Score after every step" in text


def test_rows_that_stopped_the_search(plain_frame):
    frame = plain_frame.copy()
    validating = spbn.splits.holdout_rows(120, 0.2, np.random.default_rng(0))[1]
    frame.loc[validating[0], "b"] = 40.0
    text = Page(render(spbn.learn(frame, patience=0), data=frame)).text()
    assert f"Look at row {validating[0]} (b)." in " ".join(text.split()).replace("( b )", "(b)")
    assert "keeps what it had" not in Page(render(spbn.learn(plain_frame), data=plain_frame)).text()


def test_why_a_search_stopped(network, frame, plain_network):
    from spbn.report.content import describe

    steps = len(network.search.steps)
    assert how_learned(describe(network)).startswith(f"Learned by hill climbing in {steps} steps; it stopped")
    score = spbn.CVLikelihood(frame, folds=3)
    start = spbn.Structure(frame.columns)
    result = spbn.hill_climb(score, start, max_steps=0)
    unclimbed = spbn.BayesianNetwork.fit(start, frame, search=result)
    assert "took no step" in Page(render(unclimbed)).text()
    assert "not recorded" in how_learned(describe(plain_network))


def test_a_missing_package_is_named(plain_network, monkeypatch):
    monkeypatch.setattr("spbn.drawing.packages.find_spec", lambda name: None if name == "igraph" else name)
    with pytest.raises(ImportError, match=r"needs igraph.*spbn\[plot\]"):
        render(plain_network)
