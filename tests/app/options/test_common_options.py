"""Every option of every command has a test; here are those of options that say how a table is written."""

import importlib.util
import json
import re
from functools import partialmethod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from command_line import GROUP, named_options
from command_options import (
    SERIES,
    learned_over_time,
    many_rows,
    option,
)
from learning_options import FRAME

pytestmark = pytest.mark.usefixtures("tables")


def marked():
    """Return the options that tests in this folder are marked with."""
    for path in Path(__file__).parent.glob("test_*_options.py"):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for function in vars(module).values():
            own = list(getattr(function, "pytestmark", ())) if callable(function) else []
            cases = [case for mark in own if mark.name == "parametrize" for case in mark.args[1]]
            for mark in [*own, *(mark for case in cases for mark in getattr(case, "marks", ()))]:
                if mark.name == "option":
                    command, *names = mark.args
                    yield from ((command, name) for name in names)


def test_every_option_has_a_test():
    """Whoever adds an option adds a test of it, and marks that with ``@option(command, name)``."""
    own_tests = {(command, "--json") for command in GROUP.commands if command != "watch"}  # test_json.py
    assert set(marked()) == named_options() - own_tests


#: Commands that read tables, and arguments with which they do little work; the table is `odd.csv`.
READERS = {
    "learn": ["odd.csv", "--model", "gbn", "--columns", "a,b,c"],
    "compare": ["odd.csv", "--folds", "2", "--columns", "a,b"],
    "confidence": ["odd.csv", "--model", "gbn", "--columns", "a,b,c", "--replicates", "2"],
    "classify": ["odd.csv", "--target", "ü", "--columns", "a", "--folds", "2", "--model", "gbn"],
    "score": ["m.spbn", "odd.csv"],
    "impute": ["m.spbn", "odd.csv", "--out", "full.csv"],
    "predict": ["m.spbn", "odd.csv", "--target", "a"],
    "classes": ["h.spbn", "odd.csv"],
    "query": ["m.spbn", "--do", "a=1", "--over", "equivalent", "--data", "odd.csv"],
    "effect": [
        *("m.spbn", "--cause", "a", "--outcome", "b", "--low", "0", "--high", "1"),
        *("--over", "equivalent", "--data", "odd.csv"),
    ],
    "counterfactual": ["m.spbn", "odd.csv", "--do", "a=1"],
    "report": ["m.spbn", "odd.csv", "--out", "r.html"],
    "forecast": ["time.spbn", "odd.csv", "--steps", "2", "-n", "5"],
}


#: How tables are written that need an option: the sign between fields, the encoding, the complaint.
ODD = {
    "--sep": (":", "utf-8", ":", "no column|none of the columns|lacks the column"),
    "--decimal": (
        ";",
        "utf-8",
        ",",
        "Use --decimal , if|numbers with decimal commas",
    ),
    "--encoding": (",", "cp437", "cp437", "Give its encoding with --encoding"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name"),
    [pytest.param(c, n, id=f"{c} {n}", marks=option(c, n)) for c in READERS for n in ODD],
)
def test_reading(command, name, run):
    """A table that is written in an odd way is refused, and read with the option that says so."""
    sep, encoding, value, complaint = ODD[name]
    frame = FRAME
    if command == "classes":
        spbn.learn(FRAME, model="gbn", hidden=2).save("h.spbn")
    if command == "forecast":
        learned_over_time(run).save("time.spbn")
        frame = SERIES.astype({"t": int})
    lines = [sep.join([*map(str, frame.columns), "ü"])]
    for number, row in enumerate(frame.itertuples(index=False)):
        fields = [f"{1.0 + abs(x) % 8:.3f}" if isinstance(x, float) else str(x) for x in row]
        lines.append(sep.join([*fields, "xy"[number % 2]]))
    text = "\n".join(lines)
    text = text.replace(".", ",") if name == "--decimal" else text
    Path("odd.csv").write_text(text, encoding=encoding)
    code, _, err = run(command, *READERS[command])
    assert code == 2
    assert re.search(complaint, err), err
    code, _, err = run(command, *READERS[command], name, value)
    assert code == 0, err


def odd_table(command, run):
    """Return a table for a command, which may need a model."""
    if command == "classes":
        spbn.learn(FRAME, model="gbn", hidden=2).save("h.spbn")
    if command == "forecast":
        learned_over_time(run).save("time.spbn")
        return SERIES.astype({"t": int})
    return FRAME.assign(ü=np.resize(["x", "y"], len(FRAME)))


TITLED = READERS | {"check": ["odd.csv"]}


@pytest.mark.slow
@pytest.mark.parametrize("command", [pytest.param(c, id=c, marks=option(c, "--skip-rows")) for c in TITLED])
def test_skip_rows(command, run):
    """Lines above the names are refused, or recognised, and passed over where the option says so."""
    Path("odd.csv").write_text("A, title: b\n\n" + odd_table(command, run).to_csv(index=False))
    assert (run(command, *TITLED[command])[0] == 0) == (command == "check")
    code, _, err = run(command, *TITLED[command], "--skip-rows", "2")
    assert code == 0, err
    code, _, err = run(command, *TITLED[command], "--skip-rows", "-2")
    assert (code, "--skip-rows must be 0 or more. Got -2" in err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("command", [pytest.param(c, id=c, marks=option(c, "--sheet")) for c in TITLED])
@pytest.mark.filterwarnings("ignore:odd.xlsx has 2 sheets")
def test_sheet(command, run):
    with pd.ExcelWriter("odd.xlsx") as book:
        pd.DataFrame({"note": ["see", "Rows"], "page": [1, 2]}).to_excel(
            book, sheet_name="Notes", index=False
        )
        odd_table(command, run).to_excel(book, sheet_name="Rows", index=False)
    arguments = [argument.replace("odd.csv", "odd.xlsx") for argument in TITLED[command]]
    notes = run(command, *arguments, "--sheet", "Notes")
    for sheet in ("Rows", "2"):
        code, out, err = run(command, *arguments, "--sheet", sheet)
        assert code == 0, err
        assert (code, out) != notes[:2]
    code, _, err = run(command, *arguments, "--sheet", "Row")
    assert (code, "no sheet 'Row'. Its sheets are 'Notes' and 'Rows'" in err) == (2, True)


@option("check", "--sep", "--decimal", "--encoding")
def test_check_reading(run):
    text = "".join(f"{k % 7 + 1},{k % 11 + 100};é{k % 2}\n" for k in range(40))
    Path("odd.csv").write_text(f"a;é\n{text}".replace(";", ":"), encoding="latin-1")
    written = ("--sep", ":", "--encoding", "latin-1")
    code, out, _ = run("check", "odd.csv", *written[2:], "--json")
    assert json.loads(out)["columns"] != ["a", "é"]
    code, out, err = run("check", "odd.csv", *written, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert "',' between thousands" in found["findings"][0]["evidence"]
    assert " ".join(written) in found["command"]
    code, out, _ = run("check", "odd.csv", *written, "--decimal", ",", "--json")
    assert "decimal commas" in json.loads(out)["findings"][0]["evidence"]


@option("check", "--drop", "--discrete", "--na")
def test_check_columns(run):
    FRAME.assign(name=[f"n {k}" for k in range(60)], k=np.resize([7, 2, 3, 4, 5, 6], 60)).to_csv("odd.csv")

    def found(*arguments):
        code, out, err = run("check", "odd.csv", "--json", *arguments)
        assert code == 0, err
        return json.loads(out)

    plain = found()
    assert [finding["column"] for finding in plain["findings"]] == ["Unnamed: 0", "name"]
    assert "name" not in found("--drop", "a,name")["command"].replace("--drop a,name", "")
    assert found("--drop", "a")["columns"] == ["b", "c", "d", "k"]
    assert "name" in found("--discrete", "name")["columns"]
    coded = found("--na", "7")
    assert coded["findings"][-1]["kind"] == "holes"
    assert "--na 7" in coded["command"]


def watched_oddly(run, text, *options, encoding="utf-8"):
    """Watch a file of rows that are written in an odd way; return the shares of the rows, and complaints."""
    many_rows(300)
    Path("odd.csv").write_bytes(text.encode(encoding))
    command = ("watch", "m.spbn", "odd.csv", "--reference", "many.csv", "--all", "--json", *options)
    _, out, err = run(*command)
    return [json.loads(line)["share"] for line in out.splitlines()], err


@option("watch", "--sep")
def test_watch_sep(run):
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


@option("watch", "--skip-rows")
def test_watch_skip_rows(run):
    text = FRAME.to_csv(index=False)
    expected, _ = watched_oddly(run, text)
    many_rows(300)
    Path("titled.csv").write_text("A title\n" + Path("many.csv").read_text())
    Path("odd.csv").write_text("A title\n" + text)
    command = ("watch", "m.spbn", "odd.csv", "--reference", "titled.csv", "--all", "--json")
    assert run(*command)[0] == 2
    _, out, _ = run(*command, "--skip-rows", "1")
    assert [json.loads(line)["share"] for line in out.splitlines()] == expected


@option("watch", "--sheet")
@pytest.mark.filterwarnings("ignore:many.xlsx has 2 sheets")
def test_watch_sheet(run):
    FRAME.to_csv("odd.csv", index=False)
    many_rows(300)
    with pd.ExcelWriter("many.xlsx") as book:
        pd.DataFrame({"note": [1, 2], "page": [3, 4]}).to_excel(book, sheet_name="Notes", index=False)
        pd.read_csv("many.csv").to_excel(book, sheet_name="Rows", index=False)
    command = ("watch", "m.spbn", "odd.csv", "--reference", "many.xlsx", "--all", "--json")
    assert run(*command, "--sheet", "Notes")[0] == 2
    code, out, err = run(*command, "--sheet", "Rows")
    assert (code, len(out.splitlines())) == (0, len(FRAME)), err


@option("watch", "--decimal")
def test_watch_decimal(run):
    text = FRAME.to_csv(index=False, sep=";")
    expected, _ = watched_oddly(run, text)
    found, err = watched_oddly(run, text.replace(".", ","))
    assert (found, "if that is a decimal comma, use --decimal ," in err) == ([], True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", partialmethod(pd.DataFrame.to_csv, sep=";", decimal=","))
        found, err = watched_oddly(run, text.replace(".", ","), "--decimal", ",")
    assert found == expected


@option("watch", "--encoding")
def test_watch_encoding(run):
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
