"""--json: one document on standard output, nothing else, with the numbers of the library."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from command_line import GROUP
from mixed import mixed_frame
from spbn.cli.command import plain
from time_series import autoregression

from strategies import nonlinear_frame

FRAME = nonlinear_frame(60, 3, seed=2)
SERIES = autoregression(40, series=2)
MIXED = mixed_frame(80, seed=0)


@pytest.fixture
def files(folder):
    """Tables, and models of them."""
    FRAME.to_csv("frame.csv", index=False)
    FRAME.iloc[:20].to_csv("new.csv", index=False)
    holes = FRAME.copy()
    holes.loc[[3, 8], "a"] = np.nan
    holes.to_csv("holes.csv", index=False)
    FRAME.assign(kind=np.where(FRAME["a"] > 0, "yes", "no")).to_csv("kinds.csv", index=False)
    SERIES.to_csv("series.csv", index=False)
    spbn.learn(FRAME, model="gbn").save("m.spbn")
    spbn.learn_dynamic(SERIES, model="gbn", series="machine").save("time.spbn")
    return folder


@pytest.fixture
def asked(run, files):
    """Run a command with --json; return the document, after checking that nothing else is printed."""

    def call(*arguments):
        code, out, err = run(*arguments, "--json")
        assert code == 0, err
        document = json.loads(out)
        assert out == json.dumps(document, indent=2) + "\n"
        for name in document["files"].values():
            assert all(Path(one).exists() for one in ([name] if isinstance(name, str) else name))
        return document

    return call


def model():
    return spbn.BayesianNetwork.load("m.spbn")


def _learn(asked):
    found = asked("learn", "frame.csv", "--out", "out.spbn", "--report", "r.html")
    expected = spbn.learn(FRAME)
    assert {tuple(arc) for arc in found["arcs"]} == set(expected.structure.arcs)
    assert {n["name"]: n["type"] for n in found["nodes"]} == {
        node: kind.name for node, kind in expected.structure.types.items()
    }
    assert {n["name"]: tuple(n["parents"]) for n in found["nodes"]} == {
        node: expected.structure.parents(node) for node in expected.nodes
    }
    assert [tuple(arc) for arc in found["open_directions"]] == list(expected.open_directions())
    assert found["search"]["score"] == expected.search.score
    assert found["search"]["steps"] == len(expected.search.steps)
    assert found["rows"] == len(FRAME)
    assert found["files"] == {"out": "out.spbn", "report": "r.html"}


def _check(asked):
    found = asked("check", "kinds.csv", "--na", "-999")
    prepared = spbn.prepare(pd.read_csv("kinds.csv"), na=[-999])
    assert [finding["column"] for finding in found["findings"]] == [f.column for f in prepared.findings]
    assert found["columns"] == list(prepared.frame)
    assert found["rows"] == len(prepared.frame)


def _show(asked):
    network = spbn.learn(MIXED, model="blend", max_parents=1)
    network.save("mixed.spbn")
    found = asked("show", "mixed.spbn")
    for node in found["nodes"]:
        description = network.cpds[node["name"]].describe()
        assert node["formula"] == description.formula
        assert node.get("weights", {}) == dict(description.shares)
        for shown, table in zip(node.get("tables", ()), description.tables, strict=True):
            np.testing.assert_array_equal(shown["values"], table.values)
        assert list(node.get("cases", {})) == list(description.cases)
    assert any("weights" in node or "cases" in node for node in found["nodes"])
    assert found["settings"]["model"] == "blend"
    dynamic = spbn.DynamicNetwork.load("time.spbn")
    shown = asked("show", "time.spbn")
    assert (shown["lags"], shown["series"]) == (1, "machine")
    assert {tuple(arc) for arc in shown["transition"]["arcs"]} == set(dynamic.transition.structure.arcs)


def _plot(asked):
    assert asked("plot", "m.spbn", "--out", "g.svg") == {"files": {"out": "g.svg"}}


def _report(asked):
    assert asked("report", "m.spbn", "--out", "r.html") == {"files": {"out": "r.html"}}


def _explore(asked):
    assert asked("explore", "m.spbn", "-n", 50, "--no-open") == {"files": {"out": "m-explorer.html"}}


def _query(asked):
    posterior = model().query({"b": 0.5}, do={"c": 1.0})
    event = ("--event", "a>0")
    found = asked("query", "m.spbn", "--given", "b=0.5", "--do", "c=1", *event, "--out", "s.csv")
    assert found["variables"]["a"]["mean"] == posterior.mean()["a"]
    assert found["event"]["probability"] == posterior.probability({"a": (0, None)})
    assert found["files"] == {"out": "s.csv"}


def _predict(asked):
    found = asked("predict", "m.spbn", "new.csv", "--target", "a")
    expected = model().predict(FRAME.iloc[:20][["b", "c"]], ["a"])
    assert [row["a"] for row in found["rows"]] == expected["a"].tolist()


def _effect(asked):
    source, target = model().structure.arcs[0]
    found = asked("effect", "m.spbn", "--cause", source, "--outcome", target, "--low", 0, "--high", 1)
    assert found["effect"] == model().effect(source, target, low=0.0, high=1.0).effect


def _counterfactual(asked):
    found = asked("counterfactual", "m.spbn", "new.csv", "--do", "a=1")
    expected = model().counterfactual(FRAME.iloc[:20], do={"a": 1.0})
    assert [row["c"] for row in found["rows"]] == expected.rows["c"].tolist()


def _classes(asked):
    network = spbn.learn(FRAME, model="gbn", hidden=2)
    network.save("h.spbn")
    found = asked("classes", "h.spbn", "new.csv")
    expected = network.classes(FRAME.iloc[:20])
    assert [row["class"] for row in found["rows"]] == expected["class"].tolist()
    assert [row["1"] for row in found["rows"]] == expected["1"].tolist()


def _impute(asked):
    found = asked("impute", "m.spbn", "holes.csv", "--out", "full.csv", "--draws", 2)
    assert found["filled"] == {"a": 2}
    assert (found["rows"], found["draws"]) == (len(FRAME), 2)
    assert found["files"] == {"out": ["full-1.csv", "full-2.csv"]}


def _score(asked):
    found = asked("score", "m.spbn", "new.csv", "--top", 3, "--by-node", "--out", "s.csv")
    by_node = model().logpdf_by_node(FRAME.iloc[:20])
    total = by_node.sum(axis=1).to_numpy()
    assert found["mean"] == pytest.approx(total.mean())
    assert [row["row"] for row in found["unusual"]] == (total.argsort()[:3] + 1).tolist()
    worst = found["unusual"][0]
    assert worst["by_node"] == pytest.approx(by_node.iloc[worst["row"] - 1].to_dict())
    assert worst["logpdf"] == pytest.approx(sum(worst["by_node"].values()))
    holes = asked("score", "m.spbn", "holes.csv", "--missing", "integrate", "--top", 99)
    expected = model().logpdf(pd.read_csv("holes.csv"), missing="integrate")
    assert {row["row"]: row["logpdf"] for row in holes["unusual"]} == pytest.approx(
        dict(enumerate(expected.tolist(), 1))
    )
    assert {row["row"] for row in holes["unusual"] if row["missing"] == ["a"]} == {4, 9}


def _sample(asked):
    found = asked("sample", "m.spbn", "-n", 4, "--seed", 3)
    assert pd.DataFrame(found["rows"]).equals(model().sample(4, seed=3))
    assert asked("sample", "m.spbn", "--out", "s.csv") == {"files": {"out": "s.csv"}}


def _confidence(asked):
    found = asked("confidence", "frame.csv", "--model", "gbn", "--replicates", 3)
    expected = spbn.confidence(FRAME, model="gbn", replicates=3)
    columns = list(expected.arcs.columns)
    assert pd.DataFrame(found["arcs"])[columns].equals(expected.arcs)
    assert found["threshold"] == expected.threshold
    believed = {(arc["source"], arc["target"]) for arc in found["arcs"] if arc["believed"]}
    assert believed == set(expected.structure().arcs)
    notes = {(a["source"], a["target"]): a["open"] for a in found["arcs"] if a["open"]}
    assert notes == expected.open_directions()


def _compare(asked):
    found = asked("compare", "frame.csv", "--columns", "a,b", "--folds", 2)["models"]
    expected = spbn.compare_models(FRAME[["a", "b"]], folds=2)
    assert [row["log_density"] for row in found] == expected["log-density"].tolist()
    assert [row["difference_error"] for row in found] == expected["difference error"].tolist()
    assert [row["CKDE_share"] for row in found] == expected["CKDE share"].tolist()


def _classify(asked):
    found = asked("classify", "kinds.csv", "--target", "kind", "--model", "gbn", "--test", "kinds.csv")
    rows = pd.read_csv("kinds.csv")
    classifier = spbn.sklearn.SPBNClassifier(model="gbn").fit(rows.drop(columns="kind"), rows["kind"])
    expected = classifier.predict_proba(rows.drop(columns="kind"))
    assert found["classes"] == ["no", "yes"]
    np.testing.assert_allclose([row["P(yes)"] for row in found["predictions"]], expected[:, 1])
    right = (expected[:, 1] > 0.5) == (rows["kind"] == "yes")
    assert found["accuracy"] == pytest.approx(right.mean())
    assert np.trace(found["confusion"]) == right.sum()


def _forecast(asked):
    found = asked("forecast", "time.spbn", "series.csv", "--steps", 3, "-n", 50, "--event", "a>0")
    ahead = spbn.DynamicNetwork.load("time.spbn").forecast(SERIES, 3, n=50)
    means, quantiles = ahead.mean(), ahead.quantile([0.05])
    assert len(found["rows"]) == 6
    for row in found["rows"]:
        where = (row["machine"], row["step"])
        assert row["variables"]["b"]["mean"] == means.loc[where, "b"]
        assert row["variables"]["a"]["low"] == pytest.approx(quantiles.loc[where, ("a", 0.05)])
    chances = {name: ahead.probability({"a": (0, None)}, series=name) for name in ahead.series}
    assert found["event"]["probability"] == chances


def _compact(asked):
    spbn.learn(FRAME, model="kdebn", max_parents=0).save("m.spbn")
    found = asked("compact", "m.spbn", "--tolerance", 0.001, "--out", "small.spbn")
    assert found["tolerance"] == 0.001
    sizes = [Path(name).stat().st_size for name in ("small.spbn", "m.spbn")]
    assert [found["bytes"], found["bytes_before"]] == sizes


def _export(asked):
    assert asked("export", "m.spbn", "--out", "graph.graphml") == {"files": {"out": "graph.graphml"}}


def _import(asked):
    Path("x.bif").write_text(
        "variable x { type discrete [ 2 ] { a, b }; } probability ( x ) { table 0.25, 0.75; }"
    )
    found = asked("import", "x.bif", "--out", "x.spbn")
    assert [node["name"] for node in found["nodes"]] == ["x"]
    assert found["files"] == {"out": "x.spbn"}


def _demo(asked):
    small = spbn.datasets.paper_synthetic("200")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spbn.datasets.paper_synthetic", lambda name: small)
        found = asked("demo")
    assert found["true_density"] == pytest.approx(spbn.datasets.synthetic_logpdf(small).sum())
    assert set(found["files"]) == {"model", "report"}


CASES = {name[1:]: case for name, case in dict(globals()).items() if name[0] == "_" and name[1:2].islower()}
STREAM = "watch"  # goes on for ever, so it prints an object per line; see test_watching.py


def test_every_command_is_tried():
    assert set(CASES) | {STREAM} == set(GROUP.commands)


@pytest.mark.slow
@pytest.mark.parametrize("command", CASES)
def test_the_document_has_the_numbers_of_the_library(asked, command):
    CASES[command](asked)


def test_a_failure_prints_no_document(run, files):
    code, out, err = run("learn", "nothing.csv", "--json")
    assert (code, out) == (2, "")
    assert "does not exist" in err


def test_what_is_said_on_the_way_goes_elsewhere(run, files):
    code, out, err = run("learn", "holes.csv", "--missing", "drop", "--model", "gbn", "--json")
    assert code == 0
    assert json.loads(out)["rows"] == len(FRAME) - 2
    assert "2 of 60 rows left out" in err


def test_a_document_and_a_table_do_not_share_standard_output(run, files):
    code, out, err = run("sample", "m.spbn", "--out", "-", "--json")
    assert (code, out) == (2, "")
    assert "--json and a table cannot both go to standard output" in err


def test_plain_data_is_what_json_has():
    odd = {
        1: np.float64(math.nan),
        "a": [np.int64(2), -math.inf, np.bool_(True)],
        "b": np.eye(2),
        "c": Path("x"),
    }
    expected = {"1": None, "a": [2, None, True], "b": [[1.0, 0.0], [0.0, 1.0]], "c": "x"}
    assert plain(odd) == expected
    json.dumps(plain(odd), allow_nan=False)
