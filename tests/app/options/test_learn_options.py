"""Options of ``spbn learn``: they give the network that Python gives."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from command_options import (
    HOLES,
    SERIES,
    as_options,
    learning_options,
    option,
    over_time,
    require_passing,
    scheduler_address,
    workers_as_threads,
)
from learning_options import CASES, FRAME
from spbn.cli.files import read_table
from spbn.cli.inputs import resample
from spbn.cli.options import tiers_in
from spbn.report import render

pytestmark = pytest.mark.usefixtures("tables")


def learned(run, *arguments):
    code, _, err = run("learn", *arguments, "--out", "out.spbn")
    assert code == 0, err
    return spbn.BayesianNetwork.load("out.spbn")


@pytest.mark.parametrize("name", learning_options("learn"))
def test_learn_setting(name, run):
    """Settings that `spbn.learn` has as well."""
    value, others = CASES[name]
    without = spbn.learn(FRAME, **others)
    expected = spbn.learn(FRAME, **others, **{name: value})
    assert expected != without, "the rows do not show whether the option arrives: choose others"
    network = learned(run, "frame.csv", *as_options(others | {name: value}))
    assert network == expected
    assert network.record.settings == expected.record.settings


@option("learn", "--columns")
def test_learn_columns(run):
    assert learned(run, "named.csv", "--columns", "d,a") == spbn.learn(FRAME[["d", "a"]])
    repeated = ("--columns", "d", "--columns", "a")
    assert learned(run, "named.csv", *repeated) == spbn.learn(FRAME[["d", "a"]])


@option("learn", "--fix")
def test_learn_fix(run):
    messy = FRAME.assign(a=[f"{x} kg" for x in FRAME["a"]], k=3)
    messy.to_csv("messy.csv", index=False)
    code, _, err = run("learn", "messy.csv", "--model", "gbn")
    assert (code, "To have all this done: spbn learn messy.csv --model gbn --fix auto" in err) == (2, True)
    network = learned(run, "messy.csv", "--model", "gbn", "--fix", "auto")
    assert network == spbn.learn(pd.read_csv("messy.csv"), prepare="auto", model="gbn")
    np.testing.assert_array_equal(network.logpdf(messy), network.logpdf(FRAME))
    code, _, err = run("learn", "series.csv", "--lags", "1", "--fix", "auto")
    assert (code, "--fix cannot be used with --lags" in err) == (2, True)


@option("learn", "--na")
def test_learn_na(run):
    coded = FRAME.copy()
    coded.loc[3, "a"] = -999
    coded.to_csv("coded.csv", index=False)
    network = learned(run, "coded.csv", "--model", "gbn", "--na", "-999", "--missing", "drop")
    assert network == spbn.learn(FRAME.drop(index=3), model="gbn")
    assert np.isfinite(network.logpdf(coded, missing="integrate")).all()
    assert network.logpdf(coded, missing="integrate")[3] > -50
    assert network == learned(run, "coded.csv", "--model", "gbn", "--na", "-999.0", "--missing", "drop")


@option("learn", "--drop")
def test_learn_drop(run):
    assert learned(run, "named.csv", "--drop", "name,c") == spbn.learn(FRAME, drop=["c"])
    assert learned(run, "named.csv", "--drop", "name", "--drop", "c") == spbn.learn(FRAME, drop=["c"])


@pytest.mark.slow
@option("learn", "--missing")
def test_learn_missing(run):
    assert run("learn", "holes.csv")[0] == 2
    network = learned(run, "holes.csv", "--missing", "drop")
    assert network == spbn.learn(FRAME.drop(index=3))
    assert network.record.settings["missing"] == "drop"
    code, _, err = run("learn", "holes.csv")
    assert "--missing impute" in err
    code, out, _ = run("learn", "holes.csv", "--missing", "impute", "--out", "m.spbn", "--report", "r.html")
    assert code == 0
    assert out.startswith(f"1 value is missing, in 1 of {len(FRAME)} rows")
    found, expected = spbn.BayesianNetwork.load("m.spbn"), spbn.learn(HOLES, missing="impute")
    assert found == expected
    assert found.record.rounds == expected.record.rounds
    assert expected != spbn.learn(FRAME.drop(index=3))


@option("learn", "--out")
def test_learn_out(run):
    assert learned(run, "frame.csv") == spbn.learn(FRAME)


@pytest.mark.slow
@option("learn", "--report")
def test_learn_report(run):
    network = learned(run, "frame.csv", "--report", "r.html")
    assert Path("r.html").read_text() == render(network, data=read_table("frame.csv"), title="frame")


@option("learn", "--checkpoint")
def test_learn_checkpoint(run):
    for name, options in (("auto", {}), ("paper", {"model": "spbn"})):
        path = f"{name}.jsonl"
        cut = spbn.learn(FRAME, max_seconds=0, checkpoint=path, **options)
        assert cut.search.stop_reason == "max_seconds"
        whole = spbn.learn(FRAME, **options)
        assert learned(run, "frame.csv", "--checkpoint", path, *as_options(options)) == whole
        assert len(Path(path).read_text().splitlines()) > 2
    assert cut.structure.arcs == ()


@pytest.mark.cluster
@option("learn", "--workers")
def test_learn_workers(run):
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


@pytest.mark.cluster
@option("learn", "--scheduler")
def test_learn_scheduler(run):
    with scheduler_address() as address:
        assert learned(run, "frame.csv", "--scheduler", address) == spbn.learn(FRAME)
        code, _, err = run("learn", "frame.csv", "--scheduler", address, "--workers", 2)
        assert (code, "give --workers or --scheduler, not both" in err) == (2, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spbn.dask.client.connected.__wrapped__.__kwdefaults__", {"timeout": 0.5})
        code, _, err = run("learn", "frame.csv", "--scheduler", "tcp://127.0.0.1:1")
        assert (code, "the scheduler at tcp://127.0.0.1:1 did not answer within" in err) == (2, True)


def test_the_options_of_several_files_reach_the_search(run):
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


@pytest.mark.cluster
def test_categories_in_several_files(run):
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
def test_what_several_files_do_not_support_is_refused(run, options):
    code, _, err = run("learn", "0.parquet", "1.parquet", *options)
    assert code == 2
    assert f"{options[0]}" in err
    assert "cannot be used with several files" in err


def test_validation_and_penalty_take_numbers_and_words(run):
    found = learned(
        run, "frame.csv", "--validation", "none", "--penalty", "auto", "--model", "gbn", "--score", "cv"
    )
    assert found == spbn.learn(FRAME, validation=None, model="gbn", score="cv")
    found = learned(run, "frame.csv", "--model", "auto", "--penalty", "3.5")
    assert found == spbn.learn(FRAME, model="auto", penalty=3.5)
    code, _, err = run("learn", "frame.csv", "--validation", "some")
    assert (code, "'some' is neither a number nor 'none'" in err) == (2, True)
    code, _, err = run("learn", "frame.csv", "--model", "spbn", "--penalty", "2")
    assert (code, "--penalty is for --score cv without validation rows" in err) == (2, True)


@option("learn", "--lags")
def test_learn_lags(run):
    frame = SERIES[["a", "b"]]
    frame.to_csv("plain.csv", index=False)
    two = over_time(run, "--lags", "2", table="plain.csv", frame=frame, lags=2)
    assert two != over_time(run, "--lags", "1", table="plain.csv", frame=frame)
    kept = ["--forbid", "a[t-1]:a", "--require", "b[t-1]:a", "--max-seconds", "1e9"]
    arcs = {"forbidden_arcs": [("a[t-1]", "a")], "required_arcs": [("b[t-1]", "a")], "max_seconds": 1e9}
    over_time(run, "--lags", "1", *kept, table="plain.csv", frame=frame, **arcs)


@option("learn", "--series")
def test_learn_series(run):
    frame = SERIES.drop(columns="t")
    found = over_time(run, "--lags", "1", "--series", "machine", "--drop", "t", frame=frame, series="machine")
    assert found.transition.record.rows == 3 * 39
    assert run("learn", "series.csv", "--series", "machine")[2].endswith("together with --lags.\n")


@option("learn", "--time")
def test_learn_time(run):
    found = over_time(run, "--lags", "1", "--series", "machine", "--time", "t", series="machine", time="t")
    assert found.step == 2.0


@option("learn", "--every")
def test_learn_every(run):
    frame = resample(SERIES, time="t", every=4, series="machine")
    options = ["--lags", "1", "--series", "machine", "--time", "t", "--every", "4"]
    found = over_time(run, *options, frame=frame, series="machine", time="t")
    assert found.step == 4.0


@option("learn", "--season")
def test_learn_season(run):
    options = ["--lags", "1", "--series", "machine", "--time", "t", "--season", "10"]
    found = over_time(run, *options, series="machine", time="t", season=10)
    assert found.season == 10
    code, _, err = run("learn", "series.csv", *options[:-1], "year")
    assert (code, "--season year needs dates" in err) == (2, True)
    assert run("learn", "series.csv", "--season", "10")[2].endswith("together with --lags.\n")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "types"])
def test_the_options_of_learning_reach_models_over_time(name, run):
    value = CASES[name][0]
    function, command = "spbn.learn_dynamic", ("learn", "frame.csv", "--lags", "1")
    require_passing(run, function, command, as_options({name: value}), {name: value})


@option("learn", "--tiers")
@pytest.mark.parametrize(
    ("text", "tiers"),
    [
        ("a;b,c", [["a"], ["b", "c"]]),
        (" a ; b, c ;", [["a"], ["b", "c"]]),
        ('"x, y; z",a;"b"', [["x, y; z", "a"], ["b"]]),
        ("d*;*", [["d*"], ["*"]]),
    ],
)
def test_tiers_are_read_as_people_write_them(text, tiers):
    assert tiers_in("--tiers", text) == tiers


@option("learn", "--tiers")
def test_tiers_from_a_file(run):
    tiers = [["d"], ["c"], ["a", "b"]]
    Path("tiers.txt").write_text("\ufeffd\n\nc\r\na, b\n", encoding="utf-8")
    network = learned(run, "frame.csv", "--model", "gbn", "--tiers", "tiers.txt")
    assert network == spbn.learn(FRAME, model="gbn", tiers=tiers)
    assert network.record.settings["tiers"] == tiers
    code, _, err = run("learn", "frame.csv", "--tiers", "a,b")
    assert (code, "--tiers takes groups of columns, 'age,sex;dose;outcome', or" in err) == (2, True)
    assert "Got 'a,b', which cannot be read as a file (No such file or directory)" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tiers", "a;z"], "--tiers names an unknown column: 'z'. The columns are 'a', 'b', 'c' and 'd'."),
        (["--tiers", "a;b;a"], "--tiers has 'a' in two tiers, 1 and 3: leave it in one of them."),
        (["--tiers", "a;b", "--require", "b:a"], "--require has b → a, which points back: 'b' is in tier 2"),
        (["--forbid", "z*:a"], "--forbid 'z*:a': the pattern 'z*' matches no column. The columns are 'a', "),
        (["--forbid", "a:z"], "--forbid 'a:z' names an unknown column: 'z'."),
        (["--require", "*:*"], "the required arcs (--require) form a cycle: "),
    ],
)
def test_knowledge_that_makes_no_sense(run, options, message):
    code, _, err = run("learn", "frame.csv", "--model", "gbn", *options)
    assert code == 2
    assert message in err


@option("learn", "--forbid")
def test_patterns_of_arcs(run):
    found = learned(run, "frame.csv", "--model", "gbn", "--forbid", "*:b", "--forbid", "c:?")
    assert found == spbn.learn(FRAME, model="gbn", forbidden_arcs=[("*", "b"), ("c", "?")])
    assert found.record.settings["forbidden_arcs"] == [["*", "b"], ["c", "?"]]
