"""Options of the commands that ask a model: score, query, impute, predict, classes and sample."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from command_options import (
    option,
)
from learning_options import FRAME
from spbn.plots.pictures import save_figure

pytestmark = pytest.mark.usefixtures("tables")


NEW = FRAME.iloc[:-4]  # not the training table, whose rows would be left out one by one


def scored(run, *arguments):
    """Score rows, and return those that are printed, as lists of words."""
    NEW.to_csv("new.csv", index=False)
    code, out, err = run("score", "m.spbn", "new.csv", *arguments)
    assert code == 0, err
    return [line.split() for line in out.splitlines() if re.match(r" *\d+ +-", line)]


@pytest.mark.slow
@option("score", "--top")
def test_score_top(run):
    order = spbn.learn(FRAME).logpdf(NEW).argsort()
    for top in (0, 3, 56):
        assert [int(row[0]) for row in scored(run, "--top", top)] == [i + 1 for i in order[:top]]
    assert len(scored(run)) == 20


@option("score", "--by-node")
def test_score_by_node(run):
    by_node = spbn.learn(FRAME).logpdf_by_node(NEW)
    row, total, *contributions = scored(run, "--top", 1, "--by-node")[0]
    expected = by_node.iloc[int(row) - 1]
    assert [float(number) for number in contributions] == pytest.approx(expected.tolist(), abs=1e-3)
    assert float(total) == pytest.approx(expected.sum(), abs=1e-3)


@option("score", "--out")
def test_score_out(run):
    network = spbn.learn(FRAME)
    scored(run, "--out", "s.csv")
    pd.testing.assert_frame_equal(pd.read_csv("s.csv"), pd.DataFrame({"logpdf": network.logpdf(NEW)}))
    scored(run, "--by-node", "--out", "s.csv")
    pd.testing.assert_frame_equal(pd.read_csv("s.csv")[list("abcd")], network.logpdf_by_node(NEW))


def holed(rows):
    """Return some rows, with holes in two columns."""
    rows = rows.copy()
    rows.loc[rows.index[[2, 7]], "b"] = np.nan
    rows.loc[rows.index[7], "d"] = np.nan
    return rows


@option("score", "--missing")
def test_score_missing(run):
    rows = holed(NEW)
    rows.to_csv("h.csv", index=False)
    code, _, err = run("score", "m.spbn", "h.csv")
    assert code == 2
    assert "in column 'b', the first in row 3 (line 4)" in err
    assert "--missing integrate" in err
    code, out, err = run("score", "m.spbn", "h.csv", "--missing", "integrate", "--top", 99, "--out", "s.csv")
    assert (code, err) == (0, "")
    expected = spbn.learn(FRAME).logpdf(rows, missing="integrate")
    np.testing.assert_allclose(pd.read_csv("s.csv")["logpdf"], expected)
    printed = [line.split(maxsplit=2) for line in out.splitlines() if re.match(r" *\d+ +-", line)]
    assert [int(words[0]) for words in printed] == (expected.argsort() + 1).tolist()
    absent = {int(words[0]): words[2].rpartition("no ")[2] for words in printed if "no " in words[2]}
    assert absent == {3: "b", 8: "b, d"}
    assert run("score", "m.spbn", "h.csv", "--missing", "integrate", "--by-node")[0] == 2


@option("score", "--seed")
def test_score_seed(run):
    rows = holed(NEW)
    rows.to_csv("h.csv", index=False)
    network = spbn.learn(FRAME, model="spbn")
    network.save("kernels.spbn")
    found = {}
    for seed in (0, 5):
        options = ("--missing", "integrate", "--seed", seed, "--out", "s.csv")
        assert run("score", "kernels.spbn", "h.csv", *options)[0] == 0
        found[seed] = pd.read_csv("s.csv")["logpdf"]
        np.testing.assert_allclose(found[seed], network.logpdf(rows, missing="integrate", seed=seed))
    assert not np.array_equal(found[0], found[5])


def answered(run, *arguments):
    """Ask a model something, and return what is printed for programs."""
    code, out, err = run("query", "m.spbn", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def same_answer(printed, posterior):
    """Tell whether what is printed is a posterior."""
    means = {name: numbers["mean"] for name, numbers in printed["variables"].items()}
    return means == posterior.mean().to_dict() and printed["log_evidence"] == posterior.log_evidence


@option("query", "--given")
def test_query_given(run):
    network = spbn.learn(FRAME)
    printed = answered(run, "--given", "b=0.5", "--given", "-1<=d<=1")
    assert same_answer(printed, network.query({"b": 0.5, "d": (-1, 1)}))
    assert printed["given"] == {"b": 0.5, "d": [-1.0, 1.0]}
    assert not same_answer(answered(run), network.query({"b": 0.5, "d": (-1, 1)}))


@option("query", "--do")
def test_query_do(run):
    network = spbn.learn(FRAME)
    node = next(node for node in network.nodes if network.structure.parents(node))
    parent = network.structure.parents(node)[0]
    printed = answered(run, "--do", f"{node}=0.5")
    assert same_answer(printed, network.query(do={node: 0.5}))
    assert printed["do"] == {node: 0.5}
    seen = network.query({node: 0.5})
    assert printed["variables"][parent]["mean"] != seen.mean()[parent]


@pytest.fixture
def lines(tables):
    """A model of lines, of whose arcs all directions are open."""
    network = spbn.learn(FRAME, model="gbn")
    assert tuple(network.open_directions()) == network.structure.arcs != ()
    network.save("m.spbn")
    return network


@option("query", "--over")
@option("query", "--data")
def test_query_over(run, lines):
    source, target = lines.structure.arcs[0]
    posterior = lines.query(do={target: 0.5}, over="equivalent", data=FRAME)
    asked = ("--do", f"{target}=0.5", "--over", "equivalent", "--data", "frame.csv")
    printed = answered(run, *asked)
    assert same_answer(printed, posterior)
    assert [tuple(arc) for arc in printed["open_directions"]] == list(posterior.open_directions)
    found = posterior.range().loc[source]
    row = {"variable": source, "low": found["low"], "high": found["high"]}
    assert row in printed["range"]
    assert [row["mean"] for row in printed["by_graph"]] == posterior.by_graph()["mean"].tolist()
    text = run("query", "m.spbn", *asked)[1].splitlines()
    graphs = sum(one.graphs for one in posterior.alternatives)
    expected = f"over equivalent graphs: {len(posterior.alternatives)} answers of {graphs} graphs. "
    assert any(line.startswith(expected) for line in text)
    (line,) = [line for line in text[text.index("") :] if line.startswith(f"{source} ")]
    assert [float(number) for number in line.split()[1:]] == pytest.approx(found.tolist(), abs=0.01)
    assert f"it depends on directions that are open: {source} → {target}" in "\n".join(text)
    code, _, err = run("query", "m.spbn", *asked[:-2])
    assert code == 2
    assert "pass the training rows, --data" in err
    code, _, err = run("query", "m.spbn", *asked[:2], *asked[-2:])
    assert (code, err) == (2, "spbn: --data can only be used with --over equivalent.\n")


def effect_of(run, *arguments, low=0, high=1):
    """Ask for an effect on the command line; return the document for programs."""
    code, out, err = run("effect", "m.spbn", *arguments, "--low", low, "--high", high, "--json")
    assert code == 0, err
    return json.loads(out)


@option("effect", "--cause")
@option("effect", "--outcome")
@option("effect", "--low")
@option("effect", "--high")
def test_effect_asked(run, lines):
    source, target = lines.structure.arcs[0]
    found = lines.effect(source, target, low=-1.0, high=2.0)
    printed = effect_of(run, "--cause", source, "--outcome", target, low=-1, high=2)
    assert printed["effect"] == found.effect != 0.0
    assert (printed["cause"], printed["outcome"]) == (source, target)
    assert (printed["low"], printed["high"]) == (-1.0, 2.0)
    assert [tuple(arc) for arc in printed["open_directions"]] == list(found.open_directions)
    assert [tuple(chosen) for chosen in printed["adjustment_sets"]] == list(found.adjustment_sets)
    event = effect_of(run, "--cause", source, "--outcome", f"{target}>0.5")
    expected = lines.effect(source, {target: (0.5, None)}, low=0.0, high=1.0)
    assert event["effect"] == expected.effect
    asked = ("effect", "m.spbn", "--cause", source, "--outcome", f"{target}>0.5", "--low", 0, "--high", 1)
    assert run(*asked)[1] == f"{expected}\n"
    for changed, message in (
        (("--cause", "w"), "--cause 'w' does not name a variable of the model. Its variables are"),
        (("--low", "x"), f"--low '{source}=x': '{source}' is continuous, and 'x' is not a number"),
        (("--outcome", "w"), "--outcome 'w' does not name a variable of the model"),
        (
            ("--outcome", f"{target}=1"),
            f"--outcome: '{target}' is continuous, so exactly 1 has probability 0",
        ),
        (("-n", 0), "-n must be 1 or more. Got 0."),
        (("--outcome", source), "--cause and --outcome are the same"),
    ):
        code, _, err = run(*asked, *changed)
        assert code == 2
        assert message in err


@option("effect", "--over")
@option("effect", "--data")
def test_effect_over(run, lines):
    source, target = lines.structure.arcs[0]
    printed = effect_of(
        run, "--cause", source, "--outcome", target, "--over", "equivalent", "--data", "frame.csv"
    )
    found = lines.effect(source, target, low=0.0, high=1.0, over="equivalent", data=FRAME)
    assert printed["interval"] == list(found.interval())
    assert [row["effect"] for row in printed["by_graph"]] == found.by_graph["effect"].tolist()
    assert len(printed["by_graph"]) > 1


@option("effect", "-n")
@option("effect", "--seed")
def test_effect_n_and_seed(run):
    network = spbn.learn(FRAME, model="kdebn")
    network.save("m.spbn")
    source, target = network.structure.arcs[0]
    printed = effect_of(run, "--cause", source, "--outcome", target, "-n", 300, "--seed", 5)
    found = network.effect(source, target, low=0.0, high=1.0, n=300, seed=5)
    assert (printed["effect"], printed["error"]) == (found.effect, found.error)
    assert found.error > 0.0
    assert effect_of(run, "--cause", source, "--outcome", target, "-n", 300)["effect"] != found.effect


@option("counterfactual", "--do")
@option("counterfactual", "-n")
@option("counterfactual", "--seed")
@option("counterfactual", "--out")
def test_counterfactual(run, lines):
    rows = holed(NEW)
    rows.to_csv("h.csv", index=False)
    source = lines.structure.arcs[0][0]
    asked = ("counterfactual", "m.spbn", "h.csv", "--do", f"{source}=0.5", "-n", 20, "--seed", 3)
    code, out, err = run(*asked, "--out", "c.csv")
    assert (code, out) == (0, f"{len(rows)} rows written to c.csv\n")
    found = lines.counterfactual(rows, do={source: 0.5}, n=20, seed=3)
    assert f"note: this depends on directions that are open: {source} → " in err
    pd.testing.assert_frame_equal(pd.read_csv("c.csv"), found.to_frame().reset_index(drop=True))
    assert "b low" in found.to_frame()
    assert run(*asked)[1] == found.to_frame().to_csv(index=False)
    assert run("counterfactual", "m.spbn", "h.csv")[0] == 2


@option("query", "--event")
def test_query_event(run):
    posterior = spbn.learn(FRAME).query({"b": 0.5})
    happened = (posterior.draws["a"] > 0.2) & (posterior.draws["d"] < 0)
    expected = posterior.weights[happened.to_numpy()].sum()
    printed = answered(run, "--given", "b=0.5", "--event", "a>0.2", "--event", "d<0")["event"]
    assert printed["probability"] == pytest.approx(expected) != posterior.probability({"a": (0.2, None)})
    error = (expected * (1 - expected) / posterior.effective_size) ** 0.5
    assert printed["standard_error"] == pytest.approx(error)
    out = run("query", "m.spbn", "--given", "b=0.5", "--event", "a>0.2", "--event", "d<0")[1]
    assert f"P(a>0.2 and d<0) = {expected:.4g} ± {error:.2g}" in out


@option("query", "-n")
def test_query_n(run):
    assert same_answer(answered(run, "--given", "b=0.5", "-n", 77), spbn.learn(FRAME).query({"b": 0.5}, n=77))
    assert run("query", "m.spbn", "-n", 0)[2] == "spbn: -n must be 1 or more. Got 0.\n"


@pytest.mark.filterwarnings("always:the answer rests on only")
@option("query", "--max-seconds")
def test_query_max_seconds(run):
    structure = spbn.Structure("abc", [("a", "c"), ("b", "c")], "ckde")
    spbn.BayesianNetwork.fit(structure, FRAME[["a", "b", "c"]]).save("kernels.spbn")
    far = FRAME["c"].mean() + 4.0 * FRAME["c"].std()
    arguments = ("query", "kernels.spbn", "--given", f"c={far}", "-n", 500, "--json")
    documents = {}
    for limit in (0, 1000):
        code, out, err = run(*arguments, "--max-seconds", limit)
        assert code == 0
        documents[limit] = json.loads(out)
        assert ("allow more (--max-seconds)" in err) == (limit == 0)
    network = spbn.BayesianNetwork.load("kernels.spbn")
    assert documents[1000]["log_evidence"] == network.query({"c": far}, n=500).log_evidence
    with pytest.warns(spbn.errors.SpbnWarning, match="time was up"):
        hasty = network.query({"c": far}, n=500, max_seconds=0)
    assert documents[0]["log_evidence"] == hasty.log_evidence
    assert documents[0]["log_evidence"] != documents[1000]["log_evidence"]
    code, _, err = run(*arguments, "--max-seconds", -1)
    assert (code, err) == (2, "spbn: --max-seconds must be a number, 0 or more. Got -1.0 instead.\n")


@option("query", "--seed")
def test_query_seed(run):
    network = spbn.learn(FRAME)
    assert same_answer(answered(run, "--given", "b=0.5", "--seed", 4), network.query({"b": 0.5}, seed=4))
    assert not same_answer(answered(run, "--given", "b=0.5"), network.query({"b": 0.5}, seed=4))


@option("query", "--out")
def test_query_out(run):
    arguments = ("--given", "b=0.5", "-n", 50, "--seed", 3, "--out", "s.parquet")
    code, out, _ = run("query", "m.spbn", *arguments)
    assert code == 0
    assert out.endswith("50 draws written to s.parquet\n")
    posterior = spbn.learn(FRAME).query({"b": 0.5}, n=50, seed=3)
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), posterior.sample(50, seed=3))
    assert answered(run, *arguments)["method"] == posterior.method  # what is written is said elsewhere


@pytest.mark.slow
@option("query", "--plot")
def test_query_plot(run):
    assert run("query", "m.spbn", "--given", "b=0.5", "-n", 50, "--plot", "p.svg")[0] == 0
    drawn = Path("p.svg").read_text()
    assert all(f">{name}</text>" in drawn for name in "abcd")
    assert "given what is known" in drawn
    save_figure(spbn.learn(FRAME).query({"b": 0.5}, n=50), Path("again.svg"))
    assert Path("again.svg").read_text() == drawn


def test_an_answer_in_json(run):
    posterior = spbn.learn(FRAME).query({"b": 0.5})
    printed = answered(run, "--given", "b=0.5")
    assert printed["method"] == posterior.method
    assert printed["effective_size"] == posterior.effective_size
    assert printed["log_evidence_error"] == posterior.log_evidence_error
    for name, numbers in printed["variables"].items():
        low, high = posterior.interval(printed["share"]).loc[name]
        expected = {"mean": posterior.mean(), "std": posterior.std(), "median": posterior.median()}
        expected = {key: values[name] for key, values in expected.items()} | {"low": low, "high": high}
        assert numbers == expected


@option("impute", "--out")
def test_impute_out(run):
    holed(FRAME).assign(id=range(len(FRAME))).to_csv("h.csv", index=False)
    code, out, _ = run("impute", "m.spbn", "h.csv", "--out", "full.csv")
    assert code == 0
    assert out == f"3 missing values in 2 rows filled in: b 2, d 1\n{len(FRAME)} rows written to full.csv\n"
    full = pd.read_csv("full.csv")
    assert full["id"].tolist() == list(range(len(FRAME)))
    expected = spbn.learn(FRAME).impute(pd.read_csv("h.csv")[list("abcd")])
    pd.testing.assert_frame_equal(full[list("abcd")], expected)


@option("impute", "--draws")
def test_impute_draws(run):
    holed(FRAME).to_csv("h.csv", index=False)
    assert run("impute", "m.spbn", "h.csv", "--out", "full.csv", "--draws", 2)[0] == 0
    expected = spbn.learn(FRAME).imputations(pd.read_csv("h.csv"), n=2)
    for number in (1, 2):
        pd.testing.assert_frame_equal(pd.read_csv(f"full-{number}.csv"), expected[number - 1])
    assert not expected[0].equals(expected[1])
    assert not Path("full.csv").exists()
    assert run("impute", "m.spbn", "h.csv", "--out", "full.csv", "--draws", 0)[0] == 2


@option("impute", "--seed")
def test_impute_seed(run):
    holed(FRAME).to_csv("h.csv", index=False)
    assert run("impute", "m.spbn", "h.csv", "--out", "full.csv", "--seed", 6)[0] == 0
    network, rows = spbn.learn(FRAME), pd.read_csv("h.csv")
    pd.testing.assert_frame_equal(pd.read_csv("full.csv"), network.impute(rows, seed=6))
    assert not network.impute(rows, seed=6).equals(network.impute(rows))


def predicted(run, *arguments):
    NEW.drop(columns="d").to_csv("new.csv", index=False)
    code, _, err = run("predict", "m.spbn", "new.csv", *arguments, "--out", "p.csv")
    assert code == 0, err
    return pd.read_csv("p.csv")


def classes(run, *arguments):
    """Say which rows belong to which class, of a model with blends; some values are missing."""
    network = spbn.learn(FRAME, model="blend", hidden=2)
    network.save("h.spbn")
    rows = NEW.assign(b=NEW["b"].where(NEW.index % 2 == 0))
    rows.to_csv("new.csv", index=False)
    code, out, err = run("classes", "h.spbn", "new.csv", *arguments)
    assert code == 0, err
    return network, rows, out


@option("classes", "--seed")
def test_classes_seed(run):
    network, rows, _ = classes(run, "--seed", 8, "--out", "c.csv")
    expected = network.classes(rows, seed=8)[["1", "2"]].reset_index(drop=True)
    pd.testing.assert_frame_equal(pd.read_csv("c.csv")[["1", "2"]], expected)


@option("classes", "--out")
def test_classes_out(run):
    network, rows, out = classes(run, "--out", "c.csv")
    found = pd.read_csv("c.csv", dtype={"class": str})
    assert found["class"].tolist() == network.classes(rows)["class"].tolist()
    assert "c.csv" in out
    code, _, err = run("classes", "m.spbn", "new.csv")
    assert code == 2
    assert "no hidden class: learn it with --hidden auto" in err


@option("predict", "--target")
def test_predict_target(run):
    expected = spbn.learn(FRAME).predict(NEW[["b", "c"]], ["d", "a"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(predicted(run, "--target", "d", "--target", "a"), expected)


@option("predict", "--statistic")
def test_predict_statistic(run):
    network = spbn.learn(FRAME)
    found = {}
    for statistic in ("mean", "median", "mode"):
        found[statistic] = predicted(run, "--target", "d", "--statistic", statistic)
        expected = network.predict(NEW[list("abc")], ["d"], statistic=statistic).reset_index(drop=True)
        pd.testing.assert_frame_equal(found[statistic], expected)
    assert not found["mean"].equals(found["median"])


@option("predict", "--seed")
def test_predict_seed(run):
    expected = spbn.learn(FRAME).predict(NEW[list("abc")], ["d"], seed=8).reset_index(drop=True)
    pd.testing.assert_frame_equal(predicted(run, "--target", "d", "--seed", 8), expected)
    assert not predicted(run, "--target", "d").equals(expected)


@option("predict", "--out")
def test_predict_out(run):
    found = predicted(run, "--target", "d")
    code, out, _ = run("predict", "m.spbn", "new.csv", "--target", "d")
    assert (code, out) == (0, found.to_csv(index=False))


@option("sample", "-n")
def test_sample_n(run):
    assert len(run("sample", "m.spbn", "-n", 7)[1].splitlines()) == 1 + 7


@option("sample", "--seed")
def test_sample_seed(run):
    printed = run("sample", "m.spbn", "-n", 7, "--seed", 5)[1]
    assert printed == spbn.learn(FRAME).sample(7, seed=5).to_csv(index=False)
    assert printed != run("sample", "m.spbn", "-n", 7)[1]


@option("sample", "--out")
def test_sample_out(run):
    code, out, _ = run("sample", "m.spbn", "-n", 7, "--out", "s.parquet")
    assert (code, out) == (0, "7 rows written to s.parquet\n")
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), spbn.learn(FRAME).sample(7, seed=0))
