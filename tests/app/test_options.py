"""Every option of every command reaches what it is for: whoever adds one adds a case here."""

import json
import re
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer.main

import spbn
from learning_options import CASES, FRAME
from spbn.cli.files import read_table
from spbn.cli.main import app
from spbn.cli.resample import resample
from spbn.cli.wording import OPTIONS
from spbn.learning.settings import MODELS
from spbn.plots.densities import save_posterior
from spbn.plots.pictures import save_slices, to_dot
from spbn.plots.timelines import save_forecast
from spbn.record import plain_settings
from spbn.report import render
from spbn.report.confidence import render_confidence
from time_series import autoregression

from strategies import nonlinear_frame

CHECKS = {}
SERIES = autoregression(40, series=3).assign(t=np.tile(np.arange(40) * 2.0, 3))


def checks(command, option):
    """Register a test of an option."""

    def register(function):
        assert (command, option) not in CHECKS
        CHECKS[command, option] = function
        return function

    return register


#: What typer adds: see test_overview.py.
COMPLETION = ("--install-completion", "--show-completion")


def every_option():
    """Return the options of all commands, as the parser knows them; --json has a test file of its own."""
    group = typer.main.get_command(app)
    for name, command in [("", group), *group.commands.items()]:
        for parameter in command.params:
            option = max(parameter.opts, key=len)
            has_own_tests = option in COMPLETION or (option == "--json" and name != "watch")
            if parameter.param_type_name == "option" and option != "--help" and not has_own_tests:
                yield name, option


def test_every_option_has_a_test():
    assert set(CHECKS) == set(every_option())


@pytest.fixture
def tables(folder):
    """Tables, and a model of one of them."""
    FRAME.to_csv("frame.csv", index=False)
    holes = FRAME.copy()
    holes.loc[3, "a"] = np.nan
    holes.to_csv("holes.csv", index=False)
    FRAME.assign(name="Bob").to_csv("named.csv", index=False)
    SERIES.to_csv("series.csv", index=False)
    labelled_frame().rename(columns={"few": "d"}).to_csv("labelled.csv", index=False)
    spbn.learn(FRAME).save("m.spbn")
    return folder


def learned(run, *arguments):
    code, _, err = run("learn", *arguments, "--out", "out.spbn")
    assert code == 0, err
    return spbn.BayesianNetwork.load("out.spbn")


def as_options(settings):
    """Write settings of `learn` as options."""
    for name, value in settings.items():
        if name in ("required_arcs", "forbidden_arcs"):
            for source, target in value:
                yield from (OPTIONS[name], f"{source}:{target}")
        else:
            yield from (OPTIONS[name], ",".join(value) if name == "discrete" else str(value))


def check_learning(name):
    """Make the test of an option that `learn` has as well."""
    value, others = CASES[name]

    def check(run):
        without = spbn.learn(FRAME, **others)
        expected = spbn.learn(FRAME, **others, **{name: value})
        assert expected != without, "the rows do not show whether the option arrives: choose others"
        network = learned(run, "frame.csv", *as_options(others | {name: value}))
        assert network == expected
        assert network.record.settings == expected.record.settings

    return check


for name in CASES:
    if name != "types":  # types of one's own are for Python
        checks("learn", OPTIONS[name])(check_learning(name))


@checks("learn", "--columns")
def _(run):
    assert learned(run, "named.csv", "--columns", "d,a") == spbn.learn(FRAME[["d", "a"]])
    repeated = ("--columns", "d", "--columns", "a")
    assert learned(run, "named.csv", *repeated) == spbn.learn(FRAME[["d", "a"]])


@checks("learn", "--drop")
def _(run):
    assert learned(run, "named.csv", "--drop", "name,c") == spbn.learn(FRAME, drop=["c"])
    assert learned(run, "named.csv", "--drop", "name", "--drop", "c") == spbn.learn(FRAME, drop=["c"])


@checks("learn", "--missing")
def _(run):
    assert run("learn", "holes.csv")[0] == 2
    network = learned(run, "holes.csv", "--missing", "drop")
    assert network == spbn.learn(FRAME.drop(index=3))
    assert network.record.settings["missing"] == "drop"
    code, _, err = run("learn", "holes.csv")
    assert "--missing impute" in err
    code, out, _ = run("learn", "holes.csv", "--missing", "impute", "--out", "m.spbn", "--report", "r.html")
    assert code == 0
    assert out.startswith(f"1 value is missing, in 1 of {len(FRAME)} rows")
    found = spbn.BayesianNetwork.load("m.spbn")
    assert found == spbn.learn(read_table("holes.csv"), missing="impute")
    assert len(found.record.rounds) == 4


@checks("learn", "--out")
def _(run):
    assert learned(run, "frame.csv") == spbn.learn(FRAME)


@checks("learn", "--report")
def _(run):
    network = learned(run, "frame.csv", "--report", "r.html")
    assert Path("r.html").read_text() == render(network, data=read_table("frame.csv"), title="frame")


@checks("learn", "--checkpoint")
def _(run):
    cut = spbn.learn(FRAME, max_seconds=0, checkpoint="run.jsonl")
    assert cut.structure.arcs == ()
    assert learned(run, "frame.csv", "--checkpoint", "run.jsonl") == spbn.learn(FRAME)
    assert len(Path("run.jsonl").read_text().splitlines()) > 2


@contextmanager
def workers_as_threads():
    """Start workers as threads of this process, and count the clients that commands get."""
    found = []

    def counted(*arguments, **options):
        found.append((arguments, options))
        return original(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        original = spbn.dask.client.local_workers
        patch.setattr("spbn.cli.workers.PROCESSES", False)
        patch.setattr("spbn.dask.client.local_workers", counted)
        yield found


@contextmanager
def scheduler_address():
    """Give the address of a scheduler with a worker."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address


@checks("learn", "--workers")
def _(run):
    with workers_as_threads() as started:
        assert learned(run, "frame.csv", "--workers", 2) == spbn.learn(FRAME)
        assert [arguments for arguments, _ in started] == [(2,)]
        FRAME[:30].to_parquet("0.parquet")
        FRAME[30:].to_parquet("1.parquet")
        options = ("--model", "gbn", "--score", "cv", "--folds", 3, "--workers", 1)
        network = learned(run, "0.parquet", "1.parquet", *options)
        assert len(started) == 2
    expected = spbn.distributed.learn(["0.parquet", "1.parquet"], model="gbn", score="cv", folds=3)
    assert network == expected
    assert network.record.settings == expected.record.settings
    assert run("learn", "frame.csv", "--workers", 0)[0] == 2


@checks("learn", "--scheduler")
def _(run):
    with scheduler_address() as address:
        assert learned(run, "frame.csv", "--scheduler", address) == spbn.learn(FRAME)
        code, _, err = run("learn", "frame.csv", "--scheduler", address, "--workers", 2)
        assert (code, "give --workers or --scheduler, not both" in err) == (2, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spbn.dask.client.connected.__wrapped__.__kwdefaults__", {"timeout": 0.5})
        code, _, err = run("learn", "frame.csv", "--scheduler", "tcp://127.0.0.1:1")
        assert (code, "the scheduler at tcp://127.0.0.1:1 did not answer within" in err) == (2, True)


def test_the_options_of_several_files_reach_the_search(run, tables):
    FRAME[:30].to_parquet("0.parquet")
    FRAME[30:].to_parquet("1.parquet")
    settings = {
        "model": "gbn",
        "score": "cv",
        "start": "lg",
        "folds": 3,
        "validation": 0.3,
        "patience": 1,
        "epsilon": 0.1,
        "max_parents": 1,
        "required_arcs": [("a", "b")],
        "forbidden_arcs": [("b", "c")],
        "bandwidth": "silverman",
        "margins": "yeo-johnson",
        "smoothing": 2.0,
        "missing": "drop",
        "seed": 5,
        "max_seconds": 1000.0,
    }
    given = {}

    def learn(data, **options):
        given.update(options, data=data)
        return spbn.learn(FRAME, max_parents=0, model="gbn")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spbn.distributed.learn", learn)
        chosen = ("--drop", "d", "--columns", "a,b,c,d", "--discrete", "c")
        learned(run, "0.parquet", "1.parquet", *as_options(settings), *chosen)
        assert given["data"] == [Path("0.parquet"), Path("1.parquet")]
        assert {name: given[name] for name in settings} == settings
        assert (given["drop"], given["columns"]) == (["d"], ["a", "b", "c", "d"])
        assert given["discrete"] == ["c"]
        learned(run, "[01].parquet")  # nor has a shell filled it in
        assert "max_parents" not in given or given["max_parents"] == 1


def test_categories_in_several_files(run, tables):
    """Text is one by itself, and whole numbers are if they are named."""
    rng = np.random.default_rng(0)
    kind, few = rng.choice(["x", "y"], 300), rng.integers(0, 3, 300)
    frame = pd.DataFrame({"kind": kind, "few": few, "a": rng.normal(size=300) + few * (kind == "x")})
    names = ["0.parquet", "1.parquet"]
    for name, part in zip(names, (frame[:100], frame[100:]), strict=True):
        part.to_parquet(name)
    options = ("--model", "gbn", "--discrete", "few", "--smoothing", 7)
    with workers_as_threads():
        found = learned(run, *names, *options, "--workers", 2)
    expected = spbn.distributed.learn(names, model="gbn", discrete=["few"], smoothing=7.0)
    assert found.structure == expected.structure
    assert found.structure.types["few"] == found.structure.types["kind"] == spbn.NodeType.DISCRETE
    assert {name: found.cpds[name] for name in ("few", "kind")} == {
        name: expected.cpds[name] for name in ("few", "kind")
    }
    assert expected != spbn.distributed.learn(names, model="gbn", discrete=["few"])
    code, _, err = run("learn", *names, "--discrete", "some")
    assert (code, "--discrete names unknown columns: 'some'" in err) == (2, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--algorithm", "pc"),
        ("--test", "plc"),
        ("--alpha", "0.1"),
        ("--missing", "impute"),
        ("--bandwidth", "cv"),
        ("--checkpoint", "run.jsonl"),
    ],
)
def test_what_several_files_do_not_support_is_refused(run, tables, options):
    code, _, err = run("learn", "0.parquet", "1.parquet", *options)
    assert code == 2
    assert f"{options[0]}" in err
    assert "cannot be used with several files" in err


def repeated(run, *arguments):
    """Run `spbn confidence`; return the settings that its checkpoint has, and the arcs that it wrote."""
    Path("run.jsonl").unlink(missing_ok=True)
    command = ("confidence", *arguments, "--checkpoint", "run.jsonl", "--out", "arcs.csv")
    code, _, err = run(*command)
    assert code == 0, err
    return json.loads(Path("run.jsonl").read_text().splitlines()[0])["settings"], pd.read_csv("arcs.csv")


def check_confidence(name):
    """Make the test of an option that `learn` has as well: it must be a setting of the replicates."""
    value, others = CASES[name]

    def check(run):
        found, arcs = repeated(run, "frame.csv", "--replicates", 1, *as_options(others | {name: value}))
        assert found[name] == plain_settings({name: value})[name]
        expected = spbn.confidence(FRAME, replicates=1, **others, **{name: value})
        pd.testing.assert_frame_equal(arcs, expected.arcs, check_dtype=False)

    return check


for name in CASES:
    if name not in ("types", "max_seconds"):  # replicates have as much time as they need
        checks("confidence", OPTIONS[name])(check_confidence(name))


def confidence_of(run, table, *arguments):
    """Return the arcs that the command writes with two quick replicates."""
    return repeated(run, table, "--model", "gbn", "--replicates", 2, *arguments)[1]


def expected_arcs(frame, **settings):
    return spbn.confidence(frame, **{"model": "gbn", "replicates": 2, **settings}).arcs


@checks("confidence", "--columns")
def _(run):
    found = confidence_of(run, "named.csv", "--columns", "d,a,b")
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME[["d", "a", "b"]]))


@checks("confidence", "--drop")
def _(run):
    found = confidence_of(run, "named.csv", "--drop", "name,c")
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME, drop=["c"]))


@checks("confidence", "--missing")
def _(run):
    assert run("confidence", "holes.csv", "--replicates", 2)[0] == 2
    found = confidence_of(run, "holes.csv", "--missing", "drop")
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME.drop(index=3).reset_index(drop=True)))


@checks("confidence", "--replicates")
@checks("confidence", "--out")
def _(run):
    found = confidence_of(run, "frame.csv", "--replicates", 5)
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME, replicates=5))
    assert len(Path("run.jsonl").read_text().splitlines()) == 1 + 5


@checks("confidence", "--workers")
def _(run):
    found = confidence_of(run, "frame.csv", "--workers", 2)
    pd.testing.assert_frame_equal(found, expected_arcs(FRAME))
    assert run("confidence", "frame.csv", "--workers", 0)[0] == 2


@checks("confidence", "--scheduler")
def _(run):
    with scheduler_address() as address:
        found = confidence_of(run, "frame.csv", "--scheduler", address)
        pd.testing.assert_frame_equal(found, expected_arcs(FRAME))
        assert run("confidence", "frame.csv", "--scheduler", address, "--workers", 2)[0] == 2
    code, _, err = run("confidence", "frame.csv", "named.csv")
    assert (code, "one table can be given. Got 2: 'frame.csv' and 'named.csv'" in err) == (2, True)


@checks("confidence", "--checkpoint")
def _(run):
    spbn.confidence(read_table("frame.csv"), replicates=1, checkpoint="run.jsonl", model="gbn")
    code, _, err = run("confidence", "frame.csv", "--checkpoint", "run.jsonl", "--model", "kdebn")
    assert (code, "it was made with --model gbn, and not with --model kdebn" in err) == (2, True)


@checks("confidence", "--report")
def _(run):
    confidence_of(run, "frame.csv", "--report", "r.html")
    found = spbn.confidence(FRAME, model="gbn", replicates=2)
    assert Path("r.html").read_text() == render_confidence(found, title="Which arcs of frame to believe")


NEW = FRAME.iloc[:-4]  # not the training table, whose rows would be left out one by one


def scored(run, *arguments):
    """Score rows, and return those that are printed, as lists of words."""
    NEW.to_csv("new.csv", index=False)
    code, out, err = run("score", "m.spbn", "new.csv", *arguments)
    assert code == 0, err
    return [line.split() for line in out.splitlines() if re.match(r" *\d+ +-", line)]


@checks("score", "--top")
def _(run):
    order = spbn.learn(FRAME).logpdf(NEW).argsort()
    for top in (0, 3, 56):
        assert [int(row[0]) for row in scored(run, "--top", top)] == [i + 1 for i in order[:top]]
    assert len(scored(run)) == 20


@checks("score", "--by-node")
def _(run):
    by_node = spbn.learn(FRAME).logpdf_by_node(NEW)
    row, total, *contributions = scored(run, "--top", 1, "--by-node")[0]
    expected = by_node.iloc[int(row) - 1]
    assert [float(number) for number in contributions] == pytest.approx(expected.tolist(), abs=1e-3)
    assert float(total) == pytest.approx(expected.sum(), abs=1e-3)


@checks("score", "--out")
def _(run):
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


@checks("score", "--missing")
def _(run):
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
    assert {int(words[0]): words[2] for words in printed if len(words) > 2} == {3: "b", 8: "b, d"}
    assert run("score", "m.spbn", "h.csv", "--missing", "integrate", "--by-node")[0] == 2


@checks("score", "--seed")
def _(run):
    rows = holed(NEW)
    rows.to_csv("h.csv", index=False)
    network = spbn.learn(FRAME)
    found = {}
    for seed in (0, 5):
        options = ("--missing", "integrate", "--seed", seed, "--out", "s.csv")
        assert run("score", "m.spbn", "h.csv", *options)[0] == 0
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


@checks("query", "--given")
def _(run):
    network = spbn.learn(FRAME)
    printed = answered(run, "--given", "b=0.5", "--given", "-1<=d<=1")
    assert same_answer(printed, network.query({"b": 0.5, "d": (-1, 1)}))
    assert printed["given"] == {"b": 0.5, "d": [-1.0, 1.0]}
    assert not same_answer(answered(run), network.query({"b": 0.5, "d": (-1, 1)}))


@checks("query", "--do")
def _(run):
    network = spbn.learn(FRAME)
    node = next(node for node in network.nodes if network.structure.parents(node))
    parent = network.structure.parents(node)[0]
    printed = answered(run, "--do", f"{node}=0.5")
    assert same_answer(printed, network.query(do={node: 0.5}))
    assert printed["do"] == {node: 0.5}
    seen = network.query({node: 0.5})
    assert printed["variables"][parent]["mean"] != seen.mean()[parent]


@checks("query", "--event")
def _(run):
    posterior = spbn.learn(FRAME).query({"b": 0.5})
    happened = (posterior.draws["a"] > 0.2) & (posterior.draws["d"] < 0)
    expected = posterior.weights[happened.to_numpy()].sum()
    printed = answered(run, "--given", "b=0.5", "--event", "a>0.2", "--event", "d<0")["event"]
    assert printed["probability"] == pytest.approx(expected) != posterior.probability({"a": (0.2, None)})
    error = (expected * (1 - expected) / posterior.effective_size) ** 0.5
    assert printed["standard_error"] == pytest.approx(error)
    out = run("query", "m.spbn", "--given", "b=0.5", "--event", "a>0.2", "--event", "d<0")[1]
    assert f"P(a>0.2 and d<0) = {expected:.4g} ± {error:.2g}" in out


@checks("query", "-n")
def _(run):
    assert same_answer(answered(run, "--given", "b=0.5", "-n", 77), spbn.learn(FRAME).query({"b": 0.5}, n=77))
    assert run("query", "m.spbn", "-n", 0)[2] == "spbn: -n must be 1 or more. Got 0.\n"


@checks("query", "--seed")
def _(run):
    network = spbn.learn(FRAME)
    assert same_answer(answered(run, "--given", "b=0.5", "--seed", 4), network.query({"b": 0.5}, seed=4))
    assert not same_answer(answered(run, "--given", "b=0.5"), network.query({"b": 0.5}, seed=4))


@checks("query", "--out")
def _(run):
    arguments = ("--given", "b=0.5", "-n", 50, "--seed", 3, "--out", "s.parquet")
    code, out, _ = run("query", "m.spbn", *arguments)
    assert code == 0
    assert out.endswith("50 draws written to s.parquet\n")
    posterior = spbn.learn(FRAME).query({"b": 0.5}, n=50, seed=3)
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), posterior.sample(50, seed=3))
    assert answered(run, *arguments)["method"] == posterior.method  # what is written is said elsewhere


@checks("query", "--plot")
def _(run):
    assert run("query", "m.spbn", "--given", "b=0.5", "-n", 50, "--plot", "p.svg")[0] == 0
    drawn = Path("p.svg").read_text()
    assert all(f">{name}</text>" in drawn for name in "abcd")
    assert "given what is known" in drawn
    save_posterior(spbn.learn(FRAME).query({"b": 0.5}, n=50), Path("again.svg"))
    assert Path("again.svg").read_text() == drawn


def test_an_answer_in_json(run, tables):
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


@checks("impute", "--out")
def _(run):
    holed(FRAME).assign(id=range(len(FRAME))).to_csv("h.csv", index=False)
    code, out, _ = run("impute", "m.spbn", "h.csv", "--out", "full.csv")
    assert code == 0
    assert out == f"3 missing values in 2 rows filled in: b 2, d 1\n{len(FRAME)} rows written to full.csv\n"
    full = pd.read_csv("full.csv")
    assert full["id"].tolist() == list(range(len(FRAME)))
    expected = spbn.learn(FRAME).impute(pd.read_csv("h.csv")[list("abcd")])
    pd.testing.assert_frame_equal(full[list("abcd")], expected)


@checks("impute", "--draws")
def _(run):
    holed(FRAME).to_csv("h.csv", index=False)
    assert run("impute", "m.spbn", "h.csv", "--out", "full.csv", "--draws", 2)[0] == 0
    expected = spbn.learn(FRAME).impute(pd.read_csv("h.csv"), draws=2)
    for number in (1, 2):
        pd.testing.assert_frame_equal(pd.read_csv(f"full-{number}.csv"), expected[number - 1])
    assert not expected[0].equals(expected[1])
    assert not Path("full.csv").exists()
    assert run("impute", "m.spbn", "h.csv", "--out", "full.csv", "--draws", 0)[0] == 2


@checks("impute", "--seed")
def _(run):
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


@checks("predict", "--target")
def _(run):
    expected = spbn.learn(FRAME).predict(NEW[["b", "c"]], ["d", "a"]).reset_index(drop=True)
    pd.testing.assert_frame_equal(predicted(run, "--target", "d", "--target", "a"), expected)


@checks("predict", "--statistic")
def _(run):
    network = spbn.learn(FRAME)
    found = {}
    for statistic in ("mean", "median", "mode"):
        found[statistic] = predicted(run, "--target", "d", "--statistic", statistic)
        expected = network.predict(NEW[list("abc")], ["d"], statistic=statistic).reset_index(drop=True)
        pd.testing.assert_frame_equal(found[statistic], expected)
    assert not found["mean"].equals(found["median"])


@checks("predict", "--seed")
def _(run):
    expected = spbn.learn(FRAME).predict(NEW[list("abc")], ["d"], seed=8).reset_index(drop=True)
    pd.testing.assert_frame_equal(predicted(run, "--target", "d", "--seed", 8), expected)
    assert not predicted(run, "--target", "d").equals(expected)


@checks("predict", "--out")
def _(run):
    found = predicted(run, "--target", "d")
    code, out, _ = run("predict", "m.spbn", "new.csv", "--target", "d")
    assert (code, out) == (0, found.to_csv(index=False))


@checks("sample", "-n")
def _(run):
    assert len(run("sample", "m.spbn", "-n", 7)[1].splitlines()) == 1 + 7


@checks("sample", "--seed")
def _(run):
    printed = run("sample", "m.spbn", "-n", 7, "--seed", 5)[1]
    assert printed == spbn.learn(FRAME).sample(7, seed=5).to_csv(index=False)
    assert printed != run("sample", "m.spbn", "-n", 7)[1]


@checks("sample", "--out")
def _(run):
    code, out, _ = run("sample", "m.spbn", "-n", 7, "--out", "s.parquet")
    assert (code, out) == (0, "7 rows written to s.parquet\n")
    pd.testing.assert_frame_equal(pd.read_parquet("s.parquet"), spbn.learn(FRAME).sample(7, seed=0))


def compared(run, *arguments):
    """Compare models, and return what is printed of each: densities, differences and arcs."""
    code, out, err = run("compare", *arguments)
    assert code == 0, err
    table = [line.replace("±", " ").split() for line in out.splitlines()]
    lines = [words for words in table if words and words[0] in MODELS]
    return [tuple(line[:5] if k == 0 else line[:7]) for k, line in enumerate(lines)]


def comparison(data, **options):
    """Return the same of the function; the best model differs from none."""
    table = spbn.compare_models(data, **options)
    errors = ["log-density", "standard error", "difference", "difference error"]
    found = []
    for k, row in table.iterrows():
        numbers = [f"{row[name]:.4f}" for name in (errors if k else errors[:2])]
        found.append((row["model"], row["margins"], *numbers, f"{row['arcs']:.1f}"))
    return found


@checks("compare", "--folds")
def _(run):
    found = {folds: compared(run, "frame.csv", "--columns", "a,b", "--folds", folds) for folds in (2, 3)}
    assert found == {folds: comparison(FRAME[["a", "b"]], folds=folds) for folds in (2, 3)}
    assert found[2] != found[3]


def given_to(run, name, *arguments):
    """Return what a command gives to a function of the library, which then does nothing."""
    found = {}

    def take(*_, **options):
        found.update(options)
        raise spbn.SpbnError("taken")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(name, take)
        err = run(*arguments)[2]
        assert err.endswith("spbn: taken\n"), err
    return found


def check_passing(name, function, *arguments, called=None, option=None):
    """Make the test of an option that reaches `learn` through another function, perhaps by another name."""
    value, called = CASES[name][0], called or name

    def check(run):
        without = given_to(run, function, *arguments)
        options = as_options({name: value}) if option is None else [option, str(value)]
        found = given_to(run, function, *arguments, *options)
        assert found[called] == value != without[called]
        assert {key for key in found if found[key] != without[key]} == {called}

    return check


OWN = ("types", "max_seconds", "model", "folds", "margins", "discrete", "seed")
for name in CASES:
    if name not in OWN:
        function = "spbn.learning.comparison.compare_models"
        checks("compare", OPTIONS[name])(check_passing(name, function, "compare", "frame.csv"))
    if name not in (*OWN, "max_parents", "patience"):
        function = "spbn.sklearn.classifier.SPBNClassifier"
        command = ("classify", "labelled.csv", "--target", "kind")
        called = "score_function" if name == "score" else name
        option = "--independence-test" if name == "test" else None  # --test is a table there
        check = check_passing(name, function, *command, called=called, option=option)
        checks("classify", option or OPTIONS[name])(check)


@pytest.mark.parametrize("name", [name for name in CASES if name != "types"])
def test_the_options_of_learning_reach_models_over_time(name, run, tables):
    command = ("learn", "frame.csv", "--lags", "1")
    check_passing(name, "spbn.timeseries.learn.learn_dynamic", *command)(run)


@checks("compare", "--workers")
def _(run):
    with workers_as_threads() as started:
        found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--workers", 2)
        assert len(started) == 1
    assert found == comparison(FRAME[["a", "b"]], folds=2)


@checks("compare", "--scheduler")
def _(run):
    with scheduler_address() as address:
        found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--scheduler", address)
    assert found == comparison(FRAME[["a", "b"]], folds=2)


@checks("compare", "--seed")
def _(run):
    found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--seed", 4)
    assert found == comparison(FRAME[["a", "b"]], folds=2, seed=4) != comparison(FRAME[["a", "b"]], folds=2)


@checks("compare", "--margins")
def _(run):
    found = compared(run, "frame.csv", "--columns", "a,b", "--folds", 2, "--margins", "yeo-johnson")
    assert found == comparison(FRAME[["a", "b"]], folds=2, margins="yeo-johnson")
    assert {line[1] for line in found} == {"yeo-johnson"}


@checks("compare", "--columns")
def _(run):
    found = compared(run, "named.csv", "--folds", 2, "--columns", "b,d")
    assert found == comparison(FRAME[["b", "d"]], folds=2)


@checks("compare", "--drop")
def _(run):
    found = compared(run, "named.csv", "--folds", 2, "--drop", "a,c,name")
    assert found == comparison(FRAME[["b", "d"]], folds=2)


@checks("compare", "--discrete")
def _(run):
    halves = FRAME[["a", "b"]].round()
    halves.to_csv("whole.csv", index=False)
    found = compared(run, "whole.csv", "--folds", 2, "--discrete", "b")
    assert found == comparison(halves, folds=2, discrete=["b"]) != comparison(halves, folds=2)


@checks("compare", "--missing")
def _(run):
    assert run("compare", "holes.csv", "--folds", 2)[0] == 2
    found = compared(run, "holes.csv", "--columns", "a,b", "--folds", 2, "--missing", "drop")
    assert found == comparison(FRAME[["a", "b"]].drop(index=3), folds=2)


def compacted(run, *arguments):
    code, out, err = run("compact", "m.spbn", *arguments, "--out", "small.spbn")
    assert code == 0, err
    return spbn.BayesianNetwork.load("small.spbn"), out


@checks("compact", "--out")
def _(run):
    spbn.learn(FRAME, model="kdebn", max_parents=1).save("m.spbn")
    network, out = compacted(run)
    assert network == spbn.BayesianNetwork.load("m.spbn").compact()
    assert re.match(r"compact model written to small.spbn: \d+ kB instead of \d+ kB", out)


@checks("compact", "--tolerance")
def _(run):
    spbn.learn(FRAME, model="kdebn", max_parents=0).save("m.spbn")
    exact = spbn.BayesianNetwork.load("m.spbn")
    network, _ = compacted(run, "--tolerance", "0.01")
    assert network == exact.compact(0.01)
    assert network != exact.compact()
    code, _, err = run("compact", "m.spbn", "--tolerance", "1e-12", "--out", "other.spbn")
    assert code == 2
    assert "--tolerance must be between 1e-06 and 0.01" in err
    assert not Path("other.spbn").exists()


@checks("compact", "--others")
def _(run):
    structure = spbn.Structure("abcd", [("a", "d"), ("b", "d"), ("c", "d")], "ckde")
    spbn.BayesianNetwork.fit(structure, FRAME).save("m.spbn")
    code, _, err = run("compact", "m.spbn", "--out", "small.spbn")
    assert code == 2
    assert "Learn with --max-parents 2, or pass --others keep to keep the rows of such nodes." in err
    network, _ = compacted(run, "--others", "keep")
    assert network.cpds["d"].kept_rows is not None
    assert network.cpds["a"].kept_rows is None


@checks("plot", "--out")
def _(run):
    assert run("plot", "m.spbn", "--out", "graph.dot")[0] == 0
    assert Path("graph.dot").read_text() == to_dot(spbn.learn(FRAME).structure)


@checks("report", "--out")
def _(run):
    assert run("report", "m.spbn", "--out", "r.html")[0] == 0
    assert Path("r.html").read_text() == render(spbn.BayesianNetwork.load("m.spbn"), title="m")


@checks("report", "--data")
def _(run):
    network = spbn.BayesianNetwork.load("m.spbn")
    expected = render(network, data=read_table("frame.csv"), title="m")
    assert "no rows were given" not in expected
    for rows in (["frame.csv"], ["--data", "frame.csv"]):  # the second as in version 0.1
        assert run("report", "m.spbn", *rows, "--out", "r.html")[0] == 0
        assert Path("r.html").read_text() == expected
    code, _, err = run("report", "m.spbn", "frame.csv", "--data", "holes.csv", "--out", "r.html")
    assert (code, "one table can be given. Got frame.csv and --data holes.csv" in err) == (2, True)


@checks("report", "--confidence")
def _(run):
    assert run("confidence", "frame.csv", "--model", "gbn", "--replicates", 4, "--out", "arcs.csv")[0] == 0
    assert run("report", "m.spbn", "--confidence", "arcs.csv", "--out", "r.html")[0] == 0
    network = spbn.BayesianNetwork.load("m.spbn")
    found = spbn.confidence(FRAME, model="gbn", replicates=4)
    strengths = spbn.explain.Strengths.from_table(found.arcs, network.nodes)
    page = Path("r.html").read_text()
    assert page == render(network, title="m", confidence=strengths)
    assert "Which arcs to believe" in page
    code, _, err = run("report", "m.spbn", "--confidence", "frame.csv", "--out", "r.html")
    assert (code, "frame.csv: a table of arcs has the columns 'source', 'target'" in err) == (2, True)


def explored(run, *arguments, **settings):
    """Run `spbn explore`, and compare the page with the one that the library writes."""
    code, out, err = run("explore", "m.spbn", "--no-open", *arguments)
    assert code == 0, err
    name = out.split()[-1]
    network = spbn.BayesianNetwork.load("m.spbn")
    assert Path(name).read_text() == spbn.report.render_explorer(network, title="m", **settings)
    return name


@checks("explore", "--out")
def _(run):
    assert explored(run, "--out", "e.html") == "e.html"
    assert explored(run) == "m-explorer.html"


@checks("explore", "--samples")
def _(run):
    explored(run, "--samples", 300, samples=300)
    code, _, err = run("explore", "m.spbn", "--samples", 0, "--no-open")
    assert code == 2
    assert "-n must be a whole number" in err
    explored(run, "-n", 300, samples=300)


@checks("explore", "--seed")
def _(run):
    first = explored(run, "--samples", 300, "--seed", 4, samples=300, seed=4)
    assert Path(first).read_text() != spbn.report.render_explorer(
        spbn.BayesianNetwork.load("m.spbn"), title="m", samples=300
    )


@checks("explore", "--open")
def _(run):
    import webbrowser

    addresses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
        assert run("explore", "m.spbn", "--samples", 100, "--no-open")[0] == 0
        assert addresses == []
        code, out, _ = run("explore", "m.spbn", "--samples", 100)
        assert (code, "No browser" in out) == (0, False)
        assert addresses == [Path("m-explorer.html").resolve().as_uri()]
        patch.setattr(webbrowser, "open", lambda address: False)
        assert "No browser was found" in run("explore", "m.spbn", "--samples", 100)[1]


@checks("demo", "--folder")
def _(run):
    Path("here").mkdir()
    assert run("demo", "--folder", "here")[0] == 0
    assert {path.name for path in Path("here").iterdir()} == {"spbn-demo.spbn", "spbn-demo.html"}
    assert spbn.BayesianNetwork.load("here/spbn-demo.spbn").record.rows == 200


@checks("", "--version")
def _(run):
    assert run("--version")[:2] == (0, f"spbn {spbn.__version__}\n")


@pytest.mark.parametrize(("command", "option"), CHECKS)
def test_the_option_arrives(command, option, tables, run, monkeypatch):
    small = spbn.datasets.paper_synthetic("200")
    monkeypatch.setattr("spbn.cli.demo.paper_synthetic", lambda name: small)  # 10,000 rows take a while
    CHECKS[command, option](run)


def labelled_frame(rows=90, seed=0):
    rng = np.random.default_rng(seed)
    frame = nonlinear_frame(rows, 3, seed=seed)
    frame["few"] = rng.integers(1, 4, size=rows)
    frame["kind"] = np.where(frame["a"] + rng.normal(size=rows) > 0, "yes", "no")
    return frame


def classified(run, *arguments, model="gbn"):
    """Return the probabilities that the command writes."""
    labelled_frame().to_csv("labelled.csv", index=False)
    labelled_frame(40, seed=1).to_csv("new.csv", index=False)
    command = ("classify", "labelled.csv", "--target", "kind", "--model", model, "--out", "p.csv")
    code, _, err = run(*command, *arguments)
    assert code == 0, err
    return pd.read_csv("p.csv")[["P(no)", "P(yes)"]].to_numpy()


def expected_classes(columns=("a", "b", "c", "few"), **options):
    train, new = labelled_frame(), labelled_frame(40, seed=1)
    model = spbn.SPBNClassifier(**{"model": "gbn", **options}).fit(train[list(columns)], train["kind"])
    return model.predict_proba(new[list(columns)])


def check_classifying(option, value, **settings):
    """Make the test of an option that the classifier has as well."""

    def check(run):
        found = classified(run, "--test", "new.csv", option, value, model=settings.get("model", "gbn"))
        plain = {"model": settings["model"]} if "model" in settings and option != "--model" else {}
        assert not np.allclose(found, expected_classes(**plain), rtol=1e-4), "choose another value"
        np.testing.assert_allclose(found, expected_classes(**settings), rtol=1e-6)

    return check


for case in [
    ("--model", "spbn", {"model": "spbn"}),
    ("--margins", "none", {"margins": "none"}),
    ("--structure", "augmented", {"structure": "augmented"}),
    ("--max-parents", "0", {"max_parents": 0}),
    ("--patience", "0", {"model": "spbn", "patience": 0}),
    ("--discrete", "few", {"discrete": ["few"]}),
    ("--seed", "3", {"seed": 3}),
    ("--columns", "b,a", {"columns": ("b", "a")}),
    ("--drop", "c,few", {"columns": ("a", "b")}),
]:
    checks("classify", case[0])(check_classifying(case[0], case[1], **case[2]))


@checks("classify", "--calibrate")
def _(run):
    found = classified(run, "--test", "new.csv", "--no-calibrate")
    np.testing.assert_allclose(found, expected_classes(calibrate=False), rtol=1e-6)
    assert not np.allclose(found, classified(run, "--test", "new.csv", "--calibrate"))


@checks("classify", "--missing")
def _(run):
    holes = labelled_frame()
    holes.loc[3, "a"] = np.nan
    holes.to_csv("gaps.csv", index=False)
    labelled_frame(40, seed=1).to_csv("new.csv", index=False)
    command = [
        "classify",
        "gaps.csv",
        "--target",
        "kind",
        "--model",
        "gbn",
        "--test",
        "new.csv",
        "--out",
        "p.csv",
    ]
    assert run(*command)[0] == 2
    assert run(*command, "--missing", "drop")[0] == 0
    whole = holes.dropna()
    model = spbn.SPBNClassifier(model="gbn").fit(whole.drop(columns="kind"), whole["kind"])
    expected = model.predict_proba(labelled_frame(40, seed=1).drop(columns="kind"))
    np.testing.assert_allclose(pd.read_csv("p.csv")[["P(no)", "P(yes)"]], expected, rtol=1e-6)


@checks("classify", "--target")
@checks("classify", "--test")
@checks("classify", "--out")
def _(run):
    np.testing.assert_allclose(classified(run, "--test", "new.csv"), expected_classes(), rtol=1e-6)


@checks("classify", "--folds")
def _(run):
    first, second = classified(run, "--folds", "2"), classified(run, "--folds", "3")
    assert len(first) == len(second) == 90
    assert not np.allclose(first, second)


@checks("classify", "--report")
def _(run):
    classified(run, "--test", "new.csv", "--report", "r.html")
    assert "Most uncertain rows" in Path("r.html").read_text()


def over_time(run, *arguments, table="series.csv", **settings):
    """Learn a model over time, by the command line and by Python: they must be the same."""
    code, _, err = run("learn", table, "--model", "gbn", *arguments, "--out", "time.spbn")
    assert code == 0, err
    expected = spbn.learn_dynamic(settings.pop("frame", SERIES), model="gbn", **settings)
    found = spbn.DynamicNetwork.load("time.spbn")
    assert found == expected
    return found


@checks("learn", "--lags")
def _(run):
    frame = SERIES[["a", "b"]]
    frame.to_csv("plain.csv", index=False)
    two = over_time(run, "--lags", "2", table="plain.csv", frame=frame, lags=2)
    assert two != over_time(run, "--lags", "1", table="plain.csv", frame=frame)
    kept = ["--forbid", "a[t-1]:a", "--require", "b[t-1]:a", "--max-seconds", "1e9"]
    arcs = {"forbidden_arcs": [("a[t-1]", "a")], "required_arcs": [("b[t-1]", "a")], "max_seconds": 1e9}
    over_time(run, "--lags", "1", *kept, table="plain.csv", frame=frame, **arcs)


@checks("learn", "--series")
def _(run):
    frame = SERIES.drop(columns="t")
    found = over_time(run, "--lags", "1", "--series", "machine", "--drop", "t", frame=frame, series="machine")
    assert found.transition.record.rows == 3 * 39
    assert run("learn", "series.csv", "--series", "machine")[2].endswith("together with --lags.\n")


@checks("learn", "--time")
def _(run):
    found = over_time(run, "--lags", "1", "--series", "machine", "--time", "t", series="machine", time="t")
    assert found.step == 2.0


@checks("learn", "--every")
def _(run):
    frame = resample(SERIES, time="t", every=4, series="machine")
    options = ["--lags", "1", "--series", "machine", "--time", "t", "--every", "4"]
    found = over_time(run, *options, frame=frame, series="machine", time="t")
    assert found.step == 4.0


def forecast(run, *arguments):
    code, out, err = run("forecast", "time.spbn", "series.csv", *arguments)
    assert code == 0, err
    return out


def learned_over_time(run):
    return over_time(run, "--lags", "1", "--series", "machine", "--time", "t", series="machine", time="t")


@checks("forecast", "--steps")
@checks("forecast", "-n")
@checks("forecast", "--seed")
@checks("forecast", "--out")
@checks("forecast", "--paths")
def _(run):
    network = learned_over_time(run)
    options = ["--steps", "7", "-n", "50", "--seed", "3", "--out", "ahead.csv", "--paths", "paths.csv"]
    out = forecast(run, *options)
    expected = network.forecast(SERIES, 7, n=50, seed=3)
    pd.testing.assert_frame_equal(pd.read_csv("paths.csv"), expected.paths)
    written = pd.read_csv("ahead.csv").set_index(["machine", "step"])
    np.testing.assert_allclose(written["a mean"], expected.mean()["a"])
    np.testing.assert_allclose(written["b 95 %"], expected.quantile(0.95)["b"].iloc[:, 0])
    assert out.startswith("7 steps ahead, 50 paths, 3 series")


@checks("forecast", "--event")
def _(run):
    network = learned_over_time(run)
    out = forecast(run, "--steps", "3", "--event", "a>3", "--event", "b<2")
    ahead = network.forecast(SERIES, 3)
    for name in ahead.series:
        probability = ahead.probability({"a": (3, None), "b": (None, 2)}, series=name)
        assert f"{name}: P(a>3 and b<2 within 3 steps) = {probability:.4g} ±" in out


@checks("forecast", "--only")
@checks("forecast", "--plot")
def _(run):
    network = learned_over_time(run)
    code, _, err = run("forecast", "time.spbn", "series.csv", "--plot", "fan.svg")
    assert (code, "--only" in err) == (2, True)
    forecast(run, "--only", "m1", "--plot", "fan.svg", "--paths", "paths.csv")
    expected = network.forecast(SERIES[SERIES["machine"] == "m1"], 10)
    pd.testing.assert_frame_equal(pd.read_csv("paths.csv"), expected.paths)
    save_forecast(expected, Path("expected.svg"))
    assert Path("fan.svg").read_bytes() == Path("expected.svg").read_bytes()
    assert "'m9'" in run("forecast", "time.spbn", "series.csv", "--only", "m9")[2]


@checks("forecast", "--every")
def _(run):
    network = learned_over_time(run)
    uneven = SERIES[SERIES["machine"] == "m0"].assign(t=lambda f: f["t"] + 0.5 * (f.index % 2))
    uneven.to_csv("uneven.csv", index=False)
    code, _, err = run("forecast", "time.spbn", "uneven.csv")
    assert code == 2
    assert "not equally spaced" in err
    assert "--every 2" in err
    assert run("forecast", "time.spbn", "uneven.csv", "--every", "2", "--paths", "paths.csv")[0] == 0
    expected = network.forecast(resample(uneven, time="t", every=2, series="machine"), 10)
    pd.testing.assert_frame_equal(pd.read_csv("paths.csv"), expected.paths)


@checks("plot", "--slices")
def _(run):
    network = learned_over_time(run)
    assert run("plot", "time.spbn", "--out", "g.svg", "--slices", "4")[0] == 0
    save_slices(network, Path("expected.svg"), slices=4)
    assert Path("g.svg").read_bytes() == Path("expected.svg").read_bytes()
    assert "--slices is for models over time" in run("plot", "m.spbn", "--out", "g.svg", "--slices", "4")[2]


def many(rows, seed=1):
    """Write rows like those of the frame, but more of them, and return them."""
    found = spbn.BayesianNetwork.load("m.spbn").sample(rows, seed=seed)
    found.to_csv("many.csv", index=False)
    return found


def watch(run, *arguments):
    """Watch the frame, compared with 300 other rows; return what is printed."""
    many(300)
    code, out, err = run("watch", "m.spbn", "frame.csv", "--reference", "many.csv", *arguments)
    assert code == 0, err
    return out, err


def judged(run, *arguments):
    """Return what `spbn watch` says about every row of the frame."""
    out, _ = watch(run, "--all", "--json", *arguments)
    return pd.DataFrame([json.loads(line) for line in out.splitlines()])


def expected_verdicts(**settings):
    return spbn.Monitor(spbn.BayesianNetwork.load("m.spbn"), many(300), **settings).update(FRAME)


@checks("watch", "--reference")
def _(run):
    np.testing.assert_allclose(judged(run)["share"], expected_verdicts()["share"])
    other = many(200, seed=2)
    other.to_csv("other.csv", index=False)
    expected = spbn.Monitor(spbn.BayesianNetwork.load("m.spbn"), other).update(FRAME)
    np.testing.assert_allclose(judged(run, "--reference", "other.csv")["share"], expected["share"])
    assert (expected["share"] != expected_verdicts()["share"]).any()


@checks("watch", "--alarm")
def _(run):
    found = judged(run, "--alarm", 0.2)
    assert found["alarm"].tolist() == expected_verdicts(alarm=0.2)["alarm"].tolist()
    assert found["alarm"].sum() > expected_verdicts()["alarm"].sum()


@checks("watch", "--drift")
def _(run):
    np.testing.assert_allclose(judged(run, "--drift", 0.01)["drift"], expected_verdicts(drift=0.01)["drift"])


@checks("watch", "--seed")
def _(run):
    found = judged(run, "--seed", 7)["drift"]
    np.testing.assert_allclose(found, expected_verdicts(seed=7)["drift"])
    assert (found != expected_verdicts()["drift"]).any()


@checks("watch", "--state")
def _(run):
    watch(run, "--state", "s.json")
    _, err = watch(run, "--state", "s.json", "--alarm", 0.3)
    assert f"after {len(FRAME)} rows" in err
    monitor = spbn.Monitor.load("s.json", spbn.BayesianNetwork.load("m.spbn"))
    assert (monitor.rows, monitor.alarm) == (2 * len(FRAME), 0.3)


@checks("watch", "--label")
def _(run):
    Path("rows.csv").write_text(FRAME.assign(when="noon").to_csv(index=False))
    many(300)
    command = ("watch", "m.spbn", "rows.csv", "--reference", "many.csv", "--all")
    assert "row 1 (line 2) [noon]: share" in run(*command, "--label", "when")[1]
    assert json.loads(run(*command, "--label", "when", "--json")[1].splitlines()[0])["label"] == "noon"
    code, _, err = run(*command, "--label", "where")
    assert (code, "--label: the first line has no 'where'" in err) == (2, True)


@checks("watch", "--all")
def _(run):
    out, _ = watch(run, "--all")
    assert len(out.splitlines()) == len(FRAME)
    assert len(watch(run)[0].splitlines()) == expected_verdicts()["alarm"].sum()


@checks("watch", "--json")
def _(run):
    out, _ = watch(run, "--alarm", 0.1, "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert len(found) == expected_verdicts(alarm=0.1)["alarm"].sum()
    assert all(line["alarm"] for line in found)


#: Commands that read tables, and arguments with which they do little work; the table is `odd.csv`.
READERS = {
    "learn": ["odd.csv", "--model", "gbn", "--columns", "a,b,c"],
    "compare": ["odd.csv", "--folds", "2", "--columns", "a,b"],
    "confidence": ["odd.csv", "--model", "gbn", "--columns", "a,b,c", "--replicates", "2"],
    "classify": ["odd.csv", "--target", "é", "--columns", "a", "--folds", "2", "--model", "gbn"],
    "score": ["m.spbn", "odd.csv"],
    "impute": ["m.spbn", "odd.csv", "--out", "full.csv"],
    "predict": ["m.spbn", "odd.csv", "--target", "a"],
    "report": ["m.spbn", "odd.csv", "--out", "r.html"],
    "forecast": ["time.spbn", "odd.csv", "--steps", "2", "-n", "5"],
}
#: How tables are written that need an option: the sign between fields, the encoding, the complaint.
ODD = {
    "--sep": (":", "utf-8", ":", "no column|none of the columns|lacks the column"),
    "--decimal": (";", "utf-8", ",", "Use --decimal , if they are decimal commas"),
    "--encoding": (",", "latin-1", "latin-1", "use --encoding cp1252"),
}


def check_reading(command, option):
    """Make the test of an option that says how a table is frame."""
    sep, encoding, value, complaint = ODD[option]

    def check(run):
        frame = FRAME
        if command == "forecast":
            learned_over_time(run).save("time.spbn")
            frame = SERIES.astype({"t": int})
        lines = [sep.join([*map(str, frame.columns), "é"])]
        for number, row in enumerate(frame.itertuples(index=False)):
            fields = [f"{1.0 + abs(x) % 8:.3f}" if isinstance(x, float) else str(x) for x in row]
            lines.append(sep.join([*fields, "xy"[number % 2]]))
        text = "\n".join(lines)
        text = text.replace(".", ",") if option == "--decimal" else text
        Path("odd.csv").write_text(text, encoding=encoding)
        code, _, err = run(command, *READERS[command])
        assert code == 2
        assert re.search(complaint, err), err
        code, _, err = run(command, *READERS[command], option, value)
        assert code == 0, err

    return check


def watched_oddly(run, text, *options, encoding="utf-8"):
    """Watch a file of rows that are written in an odd way; return the shares of the rows, and complaints."""
    many(300)
    Path("odd.csv").write_bytes(text.encode(encoding))
    command = ("watch", "m.spbn", "odd.csv", "--reference", "many.csv", "--all", "--json", *options)
    _, out, err = run(*command)
    return [json.loads(line)["share"] for line in out.splitlines()], err


@checks("watch", "--sep")
def _(run):
    text = FRAME.to_csv(index=False)
    expected, _ = watched_oddly(run, text)
    assert len(expected) == len(FRAME)
    found, err = watched_oddly(run, text.replace(",", "|"))
    assert (found, "the first line must hold the names" in err) == ([], True)
    Path("many.csv").unlink()
    with pytest.MonkeyPatch.context() as patch:
        # The reference is written in the same way.
        patch.setattr(pd.DataFrame, "to_csv", partialmethod(pd.DataFrame.to_csv, sep="|"))
        found, err = watched_oddly(run, text.replace(",", "|"), "--sep", "|")
    assert found == expected


@checks("watch", "--decimal")
def _(run):
    text = FRAME.to_csv(index=False, sep=";")
    expected, _ = watched_oddly(run, text)
    found, err = watched_oddly(run, text.replace(".", ","))
    assert (found, "if that is a decimal comma, use --decimal ," in err) == ([], True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", partialmethod(pd.DataFrame.to_csv, sep=";", decimal=","))
        found, err = watched_oddly(run, text.replace(".", ","), "--decimal", ",")
    assert found == expected


@checks("watch", "--encoding")
def _(run):
    rows = FRAME.assign(name="é")
    text = rows.to_csv(index=False)
    expected, _ = watched_oddly(run, text, "--label", "name")
    found, err = watched_oddly(run, text, encoding="latin-1")
    assert (found, "--encoding cp1252" in err) == ([], True)
    for encoding in ("latin-1", "utf-16"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pd.DataFrame, "to_csv", partialmethod(pd.DataFrame.to_csv, encoding=encoding))
            found, err = watched_oddly(run, text, "--encoding", encoding, encoding=encoding)
        assert found == expected, err


for command in READERS:
    for option in ODD:
        checks(command, option)(check_reading(command, option))
