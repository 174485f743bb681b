import re

import numpy as np
import pandas as pd
import pytest

import spbn
from reading import Page
from spbn._base.arrays import generator
from spbn.diagnostics import leave_one_out
from spbn.report import render, write_report
from spbn.report.content import how_learned
from spbn.report.html import clean
from spbn.tables.splits import holdout_rows

import naive


@pytest.fixture(scope="module")
def page(rendered):
    return Page(rendered)


def test_it_is_a_whole_page(page, rendered):
    assert rendered.startswith("<!doctype html>")
    assert [tag for tag, _ in page.elements].count("section") == 8
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
    for node_type in spbn.NodeType:
        count = sum(other is node_type for other in network.structure.types.values())
        assert len([1 for _, a in page.with_class("node") if f"type-{node_type.name}" in a["class"]]) == count
    equations = page.text("code")
    for cpd in network.cpds.values():
        assert clean(cpd.describe().formula) in equations


@pytest.mark.slow
def test_the_same_input_gives_the_same_bytes(network, frame, rendered):
    assert render(network, data=frame, title="Report & <b>title</b>") == rendered


def test_figures_follow_the_theme(rendered):
    figures = re.findall(r'<svg[^>]*class="figure".*?</svg>', rendered, flags=re.S)
    assert figures
    for figure in figures:
        assert not re.search(r"(fill|stroke): ?#", figure)
        assert "font-family" not in figure
        assert "xmlns" not in figure


@pytest.mark.slow
def test_written_files_appear_whole_or_not_at_all(network, frame, rendered, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    write_report(network, path, data=frame, title="Report & <b>title</b>")
    assert path.read_bytes() == rendered.encode()
    monkeypatch.setattr("os.replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(network, path, data=frame)
    assert path.read_bytes() == rendered.encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.slow
def test_a_loaded_network_without_data(network, tmp_path):
    network.save(tmp_path / "model.spbn")
    text = Page(render(spbn.BayesianNetwork.load(tmp_path / "model.spbn"))).text()
    assert "Score after every step" in text
    assert "no rows were given" in text


@pytest.mark.slow
def test_a_gaussian_network_without_data(plain_frame):
    text = Page(render(spbn.BayesianNetwork.fit(spbn.Structure("abc", [("a", "b")]), plain_frame))).text()
    assert "has no record of its search" in text
    assert "There are no rows to compute scores from" in text
    assert "rows drawn from the model" in text


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 2, 25])
def test_few_rows(plain_network, plain_frame, rows):
    Page(render(plain_network, data=plain_frame[:rows]))


def test_one_node(plain_frame):
    network = spbn.BayesianNetwork.fit(spbn.Structure(["a"], types="ckde"), plain_frame)
    assert "1 node and 0 arcs" in Page(render(network, data={"a": plain_frame["a"]})).text()


@pytest.mark.slow
def test_far_outliers(plain_frame):
    frame = plain_frame.copy()
    frame.loc[3, "c"] = 1e9
    network = spbn.BayesianNetwork.fit(spbn.Structure("abc", [("a", "b"), ("c", "b")], "ckde"), frame)
    assert len(render(network, data=frame)) < 1_000_000


@pytest.mark.slow
def test_columns_of_few_values():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": (rng.random(800) < 0.001).astype(float), "b": rng.integers(0, 2, 800)})
    frame.loc[0, "a"] = 1.0
    Page(render(spbn.BayesianNetwork.fit(spbn.Structure("ab", [("a", "b")]), frame), data=frame))


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("tests_run", [(3, 6, 1), 10])
def test_a_network_found_by_pc(plain_network, tests_run):
    pdag = spbn.graphs.PDAG("abc", [("a", "b")], [("b", "c")])
    network = spbn.BayesianNetwork(
        plain_network.structure, plain_network.cpds, search=FoundByPC(pdag, tests_run)
    )
    text = Page(render(network)).text()
    assert "Learned by PC with 10 independence tests." in text
    assert "1 arc with a known direction, 1 edge without" in text
    assert "b — c" in text


@pytest.mark.slow
def test_the_search_over_types_after_pc(plain_frame, tmp_path):
    found = spbn.learn(plain_frame, model="spbn", algorithm="pc", test="plc")
    assert found.type_search.steps
    found.save(tmp_path / "m.spbn")
    for network in (found, spbn.BayesianNetwork.load(tmp_path / "m.spbn")):
        text = Page(render(network, data=plain_frame)).text()
        assert (
            f"Learned by PC with {sum(found.search.tests_run)} independence tests, then its node types"
            in text
        )
        assert "The node types, for these arcs" in text
        assert "Score after every step" in text


@pytest.mark.slow
def test_an_order_search(plain_frame, tmp_path):
    found = spbn.learn(plain_frame, model="auto")
    found.save(tmp_path / "m.spbn")
    for network in (found, spbn.BayesianNetwork.load(tmp_path / "m.spbn")):
        assert network.search == found.search
        text = Page(render(network, data=plain_frame)).text()
        assert (
            f"Learned by order search in {len(found.search.steps)} steps; it stopped because no better"
            in text
        )
        assert "kept the graph with the best score" in text
        assert "Score after every step" in text


def words(text):
    return " ".join(text.split())


@pytest.mark.slow
def test_rows_that_stopped_the_search(plain_frame):
    frame = plain_frame.copy()
    validating = holdout_rows(120, 0.2, generator(0).spawn(2)[0])[1]
    frame.loc[validating[0], "b"] = 40.0
    page = Page(render(spbn.learn(frame, patience=0), data=frame))
    assert f"look at row {validating[0]} (b)." in words(page.text("p", "a"))
    assert "What to try: correct or remove these rows if they are wrong" in page.text("p")
    sound = Page(render(spbn.learn(plain_frame), data=plain_frame))
    assert "far from all others" not in sound.text("p")


def cells(text, heading):
    """The texts of the cells below a heading, row by row."""
    part = text.split(f">{heading}<", 1)[1]
    found = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", part, flags=re.S):
        values = re.findall(r"<td[^>]*>(.*?)</td>", row, flags=re.S)
        if values:
            found.append([re.sub(r"<[^>]*>", "", value).strip() for value in values])
    return found


def written(text):
    return float(text.replace("−", "-").replace(",", "").replace("+", "").replace(" %", "").replace(">", ""))


@pytest.mark.slow
def test_losses_stand_beside_twice_their_standard_error(plain_network, plain_frame):
    """Against the definition: twice the root of n times the variance of the rows' differences."""
    text = render(plain_network, data=plain_frame)
    labels = spbn.scores.CVLikelihood(plain_frame, folds=10, seed=0).folds
    with_arc = naive.cv_rows(plain_frame, labels, "b", ["a"], "ckde")
    without = naive.cv_rows(plain_frame, labels, "b", [], "ckde")
    difference = with_arc - without
    name, total, error, density = cells(text, "Arcs")[0][:4]
    assert name == "a → b"
    assert written(total) == pytest.approx(difference.sum(), rel=1e-3)
    assert written(error) == pytest.approx(2 * np.sqrt(120 * difference.var(ddof=1)), rel=0.05)
    # The arc helps, so that a row loses density without it.
    assert density.startswith("−")
    assert written(density) == pytest.approx(100 * (np.exp(-difference.mean()) - 1), abs=0.6)


@pytest.mark.slow
def test_changes_for_the_better_have_a_plus(plain_network, plain_frame):
    """A curved relation fitted by a straight line: CKDE would do better, and density would rise."""
    structure = plain_network.structure.with_type("b", "lg")
    text = render(spbn.BayesianNetwork.fit(structure, plain_frame), data=plain_frame)
    row = next(row for row in cells(text, "Node types") if row[0] == "b LG → CKDE")
    assert written(row[1]) < 0
    assert row[3].startswith("+")


@pytest.mark.slow
def test_verdicts_and_their_legend_agree(plain_network, plain_frame):
    page = Page(render(plain_network, data=plain_frame))
    good, fair = map(
        float, re.search(r"good up to ([\d.]+) .*?, fair up to ([\d.]+),", page.text("p")).groups()
    )
    assert good == pytest.approx(1.358 / np.sqrt(120), abs=5e-4)
    badges = re.findall(r"(good|fair|poor) (\d\.\d{3})", page.text("span"))
    assert len(badges) == 3
    for verdict, distance in badges:
        assert verdict == (
            "good" if float(distance) <= good else "fair" if float(distance) <= fair else "poor"
        )


@pytest.mark.slow
def test_the_least_likely_rows_are_listed(plain_network, plain_frame):
    frame = plain_frame.set_axis([f"day {i}" for i in range(120)])
    text = render(plain_network, data=frame)
    rows = cells(text, "Most unusual rows")[: -len(plain_network.record.settings)]
    left_out = np.array(leave_one_out(plain_network, frame)).sum(axis=1)
    least = np.argsort(left_out)[:10]
    assert [row[0] for row in rows] == [f"day {i}" for i in least]  # ten, and no more
    assert [written(row[1]) for row in rows] == pytest.approx(left_out[least].tolist(), rel=1e-3)
    assert "each is scored by the network fitted to all other rows" in text
    assert "(their medians over training rows)" in text
    others = render(plain_network, data=frame[:50])
    assert "The rows are scored as new ones" in others
    unrecorded = spbn.BayesianNetwork(plain_network.structure, plain_network.cpds)
    assert "(their medians over 1,000 rows drawn from the network)" in render(unrecorded, data=frame)


@pytest.mark.slow
def test_a_row_without_a_reason(plain_network, plain_frame):
    typical = {"a": [0.0], "b": [0.0], "c": [0.0]}
    assert "a little of everything" in render(plain_network, data=typical)


@pytest.mark.slow
def test_provenance(plain_frame):
    network = spbn.learn(plain_frame, folds=3, patience=2, seed=7, forbidden_arcs=[("a", "c")])
    text = words(Page(render(network, data=plain_frame)).text("dt", "dd", "code", "td"))
    record = network.record
    assert "120 rows, 3 columns" in text
    assert record.data_hash in text
    assert 'model = spbn, folds = 3, patience = 2, forbidden_arcs = [["a", "c"]]' in text
    assert "Seed7" in text
    for name, version in record.versions.items():
        assert f"{name} {version}" in text
    assert f"{record.seconds:.1f} seconds" in text
    for model in ("auto", "spbn"):
        default = Page(render(spbn.learn(plain_frame, model=model), data=plain_frame)).text("dd")
        assert f"model = {model}, all others at their defaults" in default
    fitted = spbn.BayesianNetwork.fit(network.structure, plain_frame)
    assert "all at their defaults" in Page(render(fitted, data=plain_frame)).text("dd")


@pytest.mark.slow
def test_what_is_not_on_record_is_not_guessed(plain_network):
    network = spbn.BayesianNetwork(plain_network.structure, plain_network.cpds)
    part = render(network).split('id="provenance"')[1]
    assert part.count("not recorded") == 6
    assert "All settings" not in part


@pytest.mark.slow
def test_why_a_search_stopped(network, frame, plain_network):
    from spbn.report.content import describe

    steps = len(network.search.steps)
    assert how_learned(describe(network)).startswith(f"Learned by order search in {steps} steps; it stopped")
    climbed = spbn.learn(frame, model="spbn", folds=3, seed=1)
    steps = len(climbed.search.steps)
    assert how_learned(describe(climbed)).startswith(f"Learned by hill climbing in {steps} steps; it stopped")
    score = spbn.scores.CVLikelihood(frame, folds=3)
    start = spbn.Structure(frame.columns)
    result = spbn.search.hill_climb(score, start, max_steps=0)
    unclimbed = spbn.BayesianNetwork.fit(start, frame, search=result)
    assert "took no steps" in Page(render(unclimbed)).text()
    assert "not recorded" in how_learned(describe(plain_network))


def test_a_missing_package_is_named(plain_network, monkeypatch):
    monkeypatch.setattr("spbn.errors.find_spec", lambda name: None if name == "igraph" else name)
    with pytest.raises(ImportError, match=r"needs igraph.*spbn\[plot\]"):
        render(plain_network)


@pytest.mark.slow
def test_the_data_is_checked_first(plain_network, plain_frame):
    frame = plain_frame.assign(id=range(120))
    frame.loc[[3, 5], "b"] = np.nan
    text = render(plain_network, data=frame)
    assert text.index('id="data"') < text.index('id="graph"')
    page = words(Page(text).text())
    assert "The rows given: 120 rows, 3 columns. 2 values are missing, in 2 rows" in page
    assert "filled once, with likely values. Not used: id." in page
    rows = cells(text.split('id="graph"')[0], "Data check")
    assert rows[0][:4] == ["b", "numbers", "2", "118"]  # what there is to look at comes first
    assert [row[0] for row in rows[1:]] == ["a", "c"]
    frame.loc[7, "c"] = -999.0
    noted = render(plain_network, data=frame)
    assert "1 column to check, listed first." in words(Page(noted).text())
    rows = cells(noted.split('id="graph"')[0], "Data check")
    assert [row[0] for row in rows] == ["c", "b", "a"]
    assert "Nothing is missing." in render(plain_network, data=plain_frame)
    assert "The training rows that nodes keep" in render(plain_network)


@pytest.mark.slow
def test_alarm_thresholds_are_stated(plain_network, plain_frame):
    page = render(plain_network, data=plain_frame)
    left_out = np.sort(np.array(leave_one_out(plain_network, plain_frame)).sum(axis=1))
    (level,) = re.findall(r"</b>([−\d.]+) \(1 in 100\)", page)  # 120 rows are too few for 1 in 1,000
    assert written(level) == pytest.approx(left_out[0], rel=1e-3)  # 0.01 · 121 rounded down is the first
    assert "1 in 1,000" not in page
    assert "too few rows to set an alarm threshold: it needs 99" in render(
        plain_network, data=plain_frame[:98]
    )


@pytest.mark.slow
def test_arcs_have_their_confidence_where_it_was_computed(plain_network, plain_frame):
    from spbn.learning.stability import Confidence

    both = spbn.Structure("abc", [("a", "b"), ("c", "b")], "lg")
    reverse = spbn.Structure("abc", [("b", "a"), ("c", "b")], "lg")
    found = Confidence((both, reverse, reverse), {}, 120, "")
    text = render(plain_network, data=plain_frame, confidence=found)
    rows = cells(text, "Which arcs to believe")
    assert rows[0] == ["a → b", "100 %", "", "33 %", "direction open: " + rows[0][-1][16:]]
    assert "replicates disagree" in rows[0][-1]
    assert rows[1][:2] == ["c → b", "100 %"]
    assert "Believed, but not in this network" in text
    assert "replicates disagree)</title>" in text  # and in the graph
    assert 'id="confidence"' not in render(plain_network, data=plain_frame)
    with pytest.raises(spbn.errors.ArgumentError, match="about the nodes of the network"):
        render(plain_network, confidence=Confidence((spbn.Structure("ab"),), {}, 120, ""))
