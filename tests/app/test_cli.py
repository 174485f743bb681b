import os
import re
import subprocess
import sys
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn import BayesianNetwork
from spbn.cli.files import read_table, write_table
from spbn.tables.splits import holdout_rows

from strategies import nonlinear_frame


def test_learn_writes_a_model_that_learn_would_give(folder, run):
    code, out, err = run("learn", "data.csv", "--out", "m.spbn", "--seed", "3", "--patience", "1")
    assert (code, err) == (0, "")
    assert "model written to m.spbn" in out
    assert BayesianNetwork.load("m.spbn") == spbn.learn(pd.read_csv("data.csv"), seed=3, patience=1)


def test_learn_takes_constraints_and_columns(folder, run):
    code, out, _ = run(
        "learn", "data.csv", "--columns", "a,c", "--require", "c:a", "--model", "gbn", "--out", "m.spbn"
    )
    assert code == 0
    network = BayesianNetwork.load("m.spbn")
    assert network.nodes == ("a", "c")
    assert network.structure.arcs == (("c", "a"),)
    assert "a = " in out


def test_learn_by_pc(folder, run):
    by_tests = ("--model", "spbn", "--algorithm", "pc", "--test", "plc")
    code, learned, _ = run("learn", "data.csv", *by_tests, "--out", "m.spbn")
    assert code == 0
    network = BayesianNetwork.load("m.spbn")
    assert network.structure.arcs
    assert f"PC: {sum(network.search.tests_run)} independence tests" in learned
    assert f"node types: {len(network.type_search.steps)} step" in learned
    shown = run("show", "m.spbn")[1]
    assert "independence tests" in shown
    edges = network.search.pdag.edges
    assert edges
    listed = ", ".join(f"{a} — {b}" for a, b in edges)
    for text in (learned, shown):
        assert f"direction not known from the tests: {listed}\n" in text


def test_missing_rows(folder, run):
    frame = nonlinear_frame(150, 3)
    frame.loc[7, "b"] = np.nan
    frame.to_csv("holes.csv", index=False)
    code, _, err = run("learn", "holes.csv")
    assert code == 2
    assert "1 value is missing or infinite in column 'b', in row 8 (line 9). " in err
    assert "--missing drop" in err
    code, out, _ = run("learn", "holes.csv", "--missing", "drop", "--out", "m.spbn")
    assert code == 0
    assert out.startswith("1 of 150 rows left out because of missing values")
    assert BayesianNetwork.load("m.spbn") == spbn.learn(frame.drop(index=7))


@pytest.mark.parametrize(("options", "detail"), [({}, "noise"), ({"model": "spbn"}, "bandwidth")])
def test_show(folder, run, options, detail):
    network = spbn.learn(nonlinear_frame(150, 3), **options)
    network.save("model.spbn")
    code, out, _ = run("show", "model.spbn")
    assert code == 0
    for node in network.nodes:
        assert repr(network.cpds[node]) in out
    assert detail in out
    for arcs, shown in (((), ""), (network.structure.arcs[:1], "direction open: {} → {}\n")):
        record = replace(network.record, open_directions=arcs)
        network.replace(record=record).save("other.spbn")
        out = run("show", "other.spbn")[1]
        assert shown.format(*(name for arc in arcs for name in arc)) in out
        assert ("direction open" in out) == bool(arcs)


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_score_counts_rows_from_1_in_every_kind_of_file(folder, run, kind):
    frame = nonlinear_frame(150, 3)
    network = BayesianNetwork.fit(spbn.Structure("abc", types="lg"), frame)  # no arcs: nodes are columns
    network.save("model.spbn")
    frame.loc[4, "b"] = 25.0
    write_table(frame, f"new.{kind}")
    code, out, _ = run(
        "score", "model.spbn", f"new.{kind}", "--top", "2", "--by-node", "--out", f"scores.{kind}"
    )
    assert code == 0
    rows = [line.split() for line in out.splitlines() if re.match(r"\s*\d+ +-", line)]
    assert len(rows) == 2
    assert rows[0][0] == "5"
    np.testing.assert_allclose(
        [float(number) for number in rows[0][2:]], network.logpdf_by_node(frame).loc[4], atol=1e-3
    )
    _, out, _ = run("score", "model.spbn", f"new.{kind}", "--top", "2")
    rows = [line.split() for line in out.splitlines() if re.match(r"\s+\d+ ", line)]
    assert (rows[0][0], rows[0][2]) == ("5", "b")
    assert "Rows are counted from 1" in out
    scores = read_table(f"scores.{kind}").reset_index(drop=True)
    np.testing.assert_allclose(scores["logpdf"], network.logpdf(frame))
    np.testing.assert_allclose(scores[["a", "b", "c"]], network.logpdf_by_node(frame))


@pytest.mark.parametrize(
    ("names", "total"),
    [
        (["a", "b"], "logpdf"),
        (["a", "logpdf"], "total_logpdf"),
        (["total_logpdf", "logpdf"], "total_total_logpdf"),
    ],
)
def test_the_sum_of_the_scores_has_a_column_of_its_own(folder, run, names, total):
    frame = nonlinear_frame(60, 2).set_axis(names, axis=1)
    network = spbn.learn(frame, model="gbn")
    network.save("m.spbn")
    frame = frame.iloc[:-5]  # not the training table, whose rows would be left out
    frame.to_csv("named.csv", index=False)
    assert run("score", "m.spbn", "named.csv", "--by-node", "--out", "s.csv")[0] == 0
    scores = pd.read_csv("s.csv")
    assert list(scores.columns) == [total, *names]
    run("score", "m.spbn", "named.csv", "--out", "only.csv")
    assert list(pd.read_csv("only.csv").columns) == [total]
    np.testing.assert_allclose(scores[total], network.logpdf(frame))
    np.testing.assert_allclose(scores[names], network.logpdf_by_node(frame))


MAGIC = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF", "dot": b"digraph"}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "start"), MAGIC.items())
def test_plot(model, run, kind, start):
    assert run("plot", "model.spbn", "--out", f"graph.{kind}")[0] == 0
    first = (model / f"graph.{kind}").read_bytes()
    assert first.startswith(start)
    run("plot", "model.spbn", "--out", f"graph.{kind}")
    assert (model / f"graph.{kind}").read_bytes() == first


@pytest.mark.parametrize("command", ["learn", "show", "score", "sample", "compare", "plot", "report", "demo"])
def test_every_command_has_help_with_an_example(run, command):
    code, out, _ = run(command, "--help")
    assert code == 0
    assert f"spbn {command}" in out


def binary():
    return bytes(range(256)) * 20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"\n", "no columns"),
        (b"a,b\n", "no rows"),
        (binary(), "not a text file"),
        (b"a,b\n1,2\n3,4,5\n", "line 3"),
        (b"a,b\n1,2,3\n1,2,3\n", "more fields"),
        (b"a,b\nx,y\nu,v\n", "columns? 'a' holds text with 2 different values.*--discrete a,b"),
        (
            b"a,b\n1,2\n3,oops\n",
            "column 'b' holds text.*: 'oops' in row 2 \\(line 3\\).* --drop b",
        ),
        (b"a,a\n1,2\n", "'a' appear more than once|distinct"),
        (b"a,b\n1,2\n1,3\n1,4\n", r"'a' is constant.* \(--drop a\)"),
        (b"a,b\n1,1\n2,2\n5,5\n", r"'b' is a copy of column 'a'.* \(--drop b\)"),
        (b"a,b\n1e300,2\n-1e300,3\n1,4\n", "'a' varies too much .*: rescale it"),
        (b"a,b\n1e308,2\n-1e308,3\n1,4\n", "'a' varies too much .*: rescale it"),
        (b"a,b\n1,2\n2,3\n4,4\n5,1\n3,3\n", "--folds must be between 2 and the number of rows, 5"),
        (b"a,b\n\n1,2\n\n\n3,oops\n", "column 'b' holds text among numbers: 'oops' in row 2 \\(line 6\\)"),
        (b'a,b,c\n1,2,"x\ny"\n', "column 'c' holds text.* in row 1 \\(line 3\\)"),
        (b"a,b\n1,2\n,2\n3,\n4,inf\n", "1 value is missing or infinite in column 'a', in row 2 \\(line 3\\)"),
        (b"a,b\n1,2\n2,\n3,\n4,inf\n", "3 values .* 'b', the first in row 2 \\(line 3\\). .* --missing drop"),
        (b",a\n5,1\n1,2\n", """column 1 has no name.* --drop '""'"""),
        (b"a,b,\n1,2,\n3,4,\n", "column 3 has no name"),
        (b"a;b\n1,5;2\n1,6;3;4\n", "separated by ';', use --sep ';'"),
        (b"caf\x81,b\n1,2\n", "UTF-8: line 1 has the byte 0x81. Give its encoding with --encoding"),
    ],
)
def test_bad_files_are_one_line_and_exit_code_2(folder, run, content, message):
    if content is not None:
        (folder / "bad.csv").write_bytes(content)
    code, out, err = run("learn", "bad.csv")
    assert (code, out) == (2, "")
    assert re.search(message, err)
    assert err.startswith("spbn: ")
    assert len(err.strip().splitlines()) == 1


def test_several_faults_of_a_table_are_listed_above_the_line(folder, run):
    (folder / "bad.csv").write_text("a,b,c\n" + "".join(f"{k},n{k},2020-01-{k:02}\n" for k in range(1, 21)))
    code, out, err = run("learn", "bad.csv")
    assert (code, out) == (2, "")
    *listed, last = err.splitlines()
    assert [line.split("  ")[0].strip() for line in listed] == ["column", "a", "b", "c", ""]
    assert last.startswith(
        "spbn: bad.csv cannot be learned from as it is. To have all this done: spbn learn bad"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learn", "data.csv", "--columns", "a,z"], "no column 'z'"),
        (["learn", "data.csv", "--columns", "a,a"], "--columns must name every column once"),
        (["learn", "data.csv", "--columns", ""], "--columns does not name a column"),
        (["learn", "data.csv", "--drop", ""], "--drop does not name a column"),
        (["learn", "data.csv", "--drop", "a,z"], "no column 'z'. Its columns are 'a', 'b' and 'c'."),
        (["learn", "data.csv", "--drop", "c,a,b"], "--drop names all columns"),
        (["learn", "."], "the folder . has no files whose names end in .parquet"),
        (["compare", "data.csv", "--drop", "z"], "no column 'z'"),
        (["score", "model.spbn", "data.csv", "--top", "-3"], "--top must be 0 or more. Got -3."),
        (["learn", "data.csv", "--out", "."], ". is a folder"),
        (["score", "model.spbn", "data.csv", "--out", "s.txt"], "must end in one of .csv, .tsv, .csv.gz"),
        (["show", "."], "is a folder"),
        (["sample", "model.spbn", "-n", "10000000000000000"], "not enough memory"),
        (["learn", "data.csv", "--out", "nowhere/m.spbn"], "nowhere does not exist"),
        (["learn", "data.csv", "--report", "nowhere/r.html"], "nowhere does not exist"),
        (["learn", "data.csv", "--require", "ab"], "written A:B"),
        (["learn", "data.csv", "--model", "bn"], "--model must be one of"),
        (["learn", "data.csv", "--folds", "many"], "--folds"),
        (["learn", "data.xls"], "Got 'data.xls'. Save it as .xlsx."),
        (["learn", "data.csv", "--out", "-"], "only tables can be written to standard output"),
        (["learn", "data.csv", "--sep", ";;"], "--sep must be one character, or one of tab"),
        (["learn", "data.csv", "--encoding", "klingon"], "--encoding must be one that Python knows"),
        (["impute", "model.spbn", "data.csv", "--out", "-", "--draws", "2"], "takes one: give a file"),
        (["classify", "-", "--target", "a", "--test", "-"], "only one table can come from standard input"),
        (["watch", "model.spbn", "--reference", "-"], "only one table can come from standard input"),
        (["learn"], "Missing argument"),
        (["learn", "data.csv", "--speed", "9"], "--speed"),
        (["show", "model.spbn", "--top", "3"], "spbn show has no option --top, which is for spbn score."),
        (["confidence", "data.csv", "--lags", "1"], "which is for spbn learn. Halves drawn at random would"),
        (["fly"], "fly"),
        (["show", "nothing.spbn"], "does not exist"),
        (["show", "data.csv"], "not an .spbn file"),
        (["score", "model.spbn", "short.csv"], "no column 'c'"),
        (["sample", "model.spbn", "-n", "-3"], "number of samples"),
        (["plot", "model.spbn", "--out", "graph.gif"], "must end in"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(model, run, arguments, message):
    nonlinear_frame(20, 2).to_csv("short.csv", index=False)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_an_interrupt_leaves_nothing_half_written(model, run, monkeypatch):
    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(pd.DataFrame, "to_csv", interrupt)
    monkeypatch.setattr(zipfile.ZipFile, "writestr", interrupt)
    before = sorted(os.listdir())
    assert run("sample", "model.spbn", "--out", "s.csv")[0] == 130
    assert run("learn", "data.csv", "--out", "new.spbn")[0] == 130
    assert sorted(os.listdir()) == before


def test_parquet_without_its_package(model, run, monkeypatch):
    def absent(*args, **options):
        raise ImportError

    run("sample", "model.spbn", "-n", "5", "--out", "s.parquet")
    monkeypatch.setattr(pd.DataFrame, "to_parquet", absent)
    monkeypatch.setattr(pd, "read_parquet", absent)
    before = sorted(os.listdir())
    for arguments in (("score", "model.spbn", "s.parquet"), ("sample", "model.spbn", "--out", "t.parquet")):
        code, _, err = run(*arguments)
        assert code == 2
        assert err.strip() == "spbn: Parquet files need the package pyarrow: pip install pyarrow."
    assert sorted(os.listdir()) == before


def test_a_report_without_its_packages_is_refused_before_learning(folder, run, monkeypatch):
    monkeypatch.setattr("spbn.errors.find_spec", lambda name: None)
    code, out, err = run("learn", "data.csv", "--report", "r.html")
    assert (code, out) == (2, "")
    assert "spbn[plot]" in err


def test_names_with_commas_and_colons(folder, run):
    nonlinear_frame(60, 3).set_axis(["a, b", "x:y", "c"], axis=1).to_csv("odd.csv", index=False)
    assert (
        run("learn", "odd.csv", "--columns", '"a, b", x:y', "--require", "x:y:a, b", "--out", "m.spbn")[0]
        == 0
    )
    assert BayesianNetwork.load("m.spbn").structure.arcs == (("x:y", "a, b"),)
    assert run("learn", "odd.csv", "--drop", '"a, b"', "--out", "m.spbn")[0] == 0
    assert BayesianNetwork.load("m.spbn").nodes == ("x:y", "c")


def test_an_arc_that_can_be_read_in_two_ways_is_refused(folder, run):
    nonlinear_frame(60, 4).set_axis(["a", "b:c", "a:b", "c"], axis=1).to_csv("odd.csv", index=False)
    code, _, err = run("learn", "odd.csv", "--require", "a:b:c")
    assert code == 2
    assert "can be read as a → b:c or a:b → c" in err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_far_away_that_stop_the_search_are_named(folder, run, kind):
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    frame = pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.1 * rng.normal(size=400)})
    write_table(frame, f"frame.{kind}")
    assert "warning" not in run("learn", f"frame.{kind}", "--patience", "0")[2]
    split = np.random.default_rng(0).spawn(2)[0]  # as the score does
    row = int(holdout_rows(400, 0.2, split)[1][0])
    score = spbn.scores.ValidatedLikelihood(frame, seed=0)
    before = score.validation_local("b", type="lg")
    frame.loc[row, "b"] = 30.0
    score = spbn.scores.ValidatedLikelihood(frame, seed=0)
    assert score.validation_local("b", type="lg") < before - 100  # it is a validation row
    write_table(frame, f"frame.{kind}")
    code, out, err = run("learn", f"frame.{kind}", "--patience", "0")
    assert code == 0
    assert "0 arcs" in out
    line = f" (line {row + 2})" if kind == "csv" else ""
    assert f"Look at row {row + 1}{line}, column 'b'." in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.filterwarnings("always")
def test_warnings_are_one_line(folder, run):
    spbn.learn(nonlinear_frame(80, 2).rename(columns={"a": "語"}), model="gbn").save("m.spbn")
    code, _, err = run("plot", "m.spbn", "--out", "g.png")
    assert code == 0
    assert err.startswith("spbn: warning: ")
    assert len(err.strip().splitlines()) == 1


def test_no_command_shows_the_help_and_nothing_else(run):
    code, out, err = run()
    assert code == 2
    assert "Usage" in out + err
    assert "spbn: " not in out + err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there are no such signals on Windows")
@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_a_signal_leaves_the_old_file_and_nothing_else(model, number, code):
    """The command is stopped in the middle of writing."""
    program = f"""
import os, signal, sys, zipfile
def stop(*args, **options): os.kill(os.getpid(), signal.{number}); signal.pause()
zipfile.ZipFile.writestr = stop
from spbn.cli.main import main
sys.argv = ["spbn", "learn", "data.csv", "--model", "gbn", "--out", "model.spbn"]
main()
"""
    before = {name: (model / name).read_bytes() for name in os.listdir()}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, "")
    assert {name: (model / name).read_bytes() for name in os.listdir()} == before


@pytest.mark.slow
def test_a_reader_that_has_seen_enough(model):
    program = """
import sys
from spbn.cli.main import main
sys.argv = ["spbn", "sample", "model.spbn", "-n", "20000"]
main()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as command:
        command.stdout.readline()
        command.stdout.close()
        assert command.stderr.read() == b""


@pytest.mark.slow
def test_a_terminal_that_cannot_show_every_letter(folder):
    spbn.learn(nonlinear_frame(80, 2).rename(columns={"a": "größe"}), model="gbn").save("m.spbn")
    program = "import sys; from spbn.cli.main import main; sys.argv = ['spbn', 'show', 'm.spbn']; main()"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert rb"gr\xf6\xdfe" in done.stdout


@pytest.mark.slow
def test_the_installed_command():
    command = os.path.join(os.path.dirname(sys.executable), "spbn")
    out = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert out.strip() == f"spbn {spbn.__version__}"


@pytest.mark.slow
def test_training_rows_are_scored_without_themselves(folder, run):
    """Wine's row 122 is the least likely once it does not sit on a kernel of its own."""
    from sklearn.datasets import load_wine

    frame = load_wine(as_frame=True).data
    frame.to_csv("wine.csv", index=False)
    spbn.learn(frame, model="spbn").save("wine.spbn")
    code, out, _ = run("score", "wine.spbn", "wine.csv", "--top", "1")
    assert code == 0
    (row,) = [line.split() for line in out.splitlines() if re.match(r"\s+\d+ +-", line)]
    assert row[0] == "122"
    assert float(row[1]) == pytest.approx(-58.4, abs=0.05)
    assert "each is scored by the network fitted to all other rows" in out


def test_a_row_has_the_same_reasons_in_any_file(folder, run):
    """The nodes to blame are measured against training rows, not against the rows beside it."""
    frame = nonlinear_frame(200, 4)
    spbn.learn(frame).save("m.spbn")
    odd = frame.iloc[[0, 1, 2]].copy()
    odd.iloc[0, 1], odd.iloc[1, 2] = 30.0, -30.0
    reasons = []
    for rows in (odd, odd.iloc[:1], pd.concat([odd, frame.iloc[3:100]])):
        rows.to_csv("some.csv", index=False)
        _, out, _ = run("score", "m.spbn", "some.csv")
        (line,) = [line for line in out.splitlines() if re.match(r" +1 +-", line)]
        reasons.append(line)
        assert "a little of everything" not in line
    assert len(set(reasons)) == 1
