"""Names come from files: whatever they hold, a terminal does not obey it."""

import io
import re
import sys
from pathlib import Path

import pytest
from rich.console import Console

import spbn
from spbn._base.display import printable

from strategies import nonlinear_frame

EVIL = "b\x1b[31m\x07\x9b2J\x7f\u202e:smile:[red]\u2066\rx"
SAFE = r"b\x1b[31m\x07\x9b2J\x7f\u202e:smile:[red]\u2066\rx"
#: Everything that a terminal may obey, but for the ends of lines.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.mark.parametrize(
    "text", ["größe (µm)", "語", "a → b", "x²", "naïve\u00a0name", "👩‍🔬", "é", "  two  "]
)
def test_ordinary_text_stays_as_it_is(text):
    assert printable(text) == text


def test_every_control_character_is_escaped():
    for code in (*range(0x20), *range(0x7F, 0xA0), 0x61C, *range(0x200E, 0x2010), *range(0x2028, 0x202F)):
        assert printable(chr(code)).isascii()
        assert printable(chr(code)).isprintable()
    assert printable("\ud800") == r"\ud800"
    assert printable(EVIL) == SAFE


@pytest.fixture
def evil(folder):
    frame = nonlinear_frame(60, 3).rename(columns={"b": EVIL})
    frame.to_parquet("evil.parquet")
    spbn.learn(frame, model="gbn").save("evil.spbn")
    frame.assign(**{EVIL: 1.0}).to_parquet("constant.parquet")
    frame.rename(columns={"a": "a2"}).to_parquet("other.parquet")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("learn evil.parquet", 0),
        ("learn evil.parquet --algorithm pc --test plc", 0),
        ("learn constant.parquet", 2),
        ("learn evil.parquet --require z:a", 2),
        ("learn evil.parquet --drop z", 2),
        ("show evil.spbn", 0),
        ("score evil.spbn evil.parquet", 0),
        ("score evil.spbn evil.parquet --by-node", 0),
        ("score evil.spbn other.parquet", 2),
        ("report evil.spbn --out r.html", 0),
    ],
)
def test_names_from_files_are_escaped(evil, run, arguments, code):
    found, out, err = run(*arguments.split())
    assert found == code
    assert OBEYED.search(out + err) is None
    if "report" not in arguments:
        assert re.search(r"b\\x1b\[31m\\x07\\x9b2J\\x7f\\u202e:smile:\[red\]\\u2066\\rx", out + err)


def test_names_of_files_are_escaped(folder, run):
    for arguments in (
        ["show", "\x1b[31m.spbn"],
        ["learn", "\x1b[31m.csv"],
        ["sample", "m", "--out", "\x1b/x.csv"],
    ):
        code, _, err = run(*arguments)
        assert code == 2
        assert r"\x1b" in err
        assert OBEYED.search(err) is None


@pytest.mark.filterwarnings("always")
def test_warnings_are_escaped(folder, run):
    frame = nonlinear_frame(60, 2)
    frame.to_csv("evil\x1b.csv", index=False, header=["1", "2"])
    code, _, err = run("learn", "evil\x1b.csv", "--model", "gbn")
    assert code == 0
    assert err.startswith(r"spbn: warning: all column names of evil\x1b.csv are numbers (1, 2)")


def test_samples_are_escaped_on_a_terminal_only(evil, run, monkeypatch):
    _, piped, _ = run("sample", "evil.spbn", "-n", "3")
    assert piped.startswith(f"a,{EVIL},c\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, shown, _ = run("sample", "evil.spbn", "-n", "3")
    assert shown.splitlines()[0] == f"a,{SAFE},c"


def test_progress_is_escaped(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda **options: Console(file=stream, force_terminal=True, width=200)
    )
    frame = nonlinear_frame(60, 2).set_axis(["a", EVIL], axis=1)
    assert spbn.learn(frame, model="gbn", progress=True).structure.arcs
    assert SAFE in stream.getvalue()
    assert not {"\x07", "\x9b", "\u202e"} & set(stream.getvalue())


@pytest.mark.parametrize(
    ("columns", "notes"),
    [
        ({}, []),
        ({"id": range(60)}, ["column 'id' has a different whole number in every row", "--drop id"]),
        ({"x, y": range(60)}, ["""--drop '"x, y"'."""]),
        (
            {"i": range(60), "sex": [0, 1] * 30},
            ["--drop i", "only two or three different values", "--discrete sex"],
        ),
    ],
)
def test_peculiar_columns_are_mentioned(folder, run, columns, notes):
    nonlinear_frame(60, 2).assign(**columns).to_csv("data.csv", index=False)
    code, _, err = run("learn", "data.csv", "--model", "gbn", "--out", "m.spbn")
    assert code == 0
    assert all(line.startswith("spbn: note: ") for line in err.splitlines())
    assert len(err.splitlines()) == len(columns)
    assert all(note in err for note in notes)
    assert Path("m.spbn").exists()


def test_log_densities_of_absurd_rows_fit_on_a_line(folder, run):
    frame = nonlinear_frame(60, 2)
    spbn.BayesianNetwork.fit(spbn.Structure(frame.columns), frame).save("m.spbn")
    frame.iloc[3, 0] = 1e140
    frame.to_csv("far.csv", index=False)
    _, out, _ = run("score", "m.spbn", "far.csv", "--top", "1")
    assert re.search(r"mean log-density -\d\.\d+e\+\d+\n", out)
    assert max(map(len, out.splitlines())) < 120
