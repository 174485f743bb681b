"""``spbn watch``: rows as they come, alarms with their reasons, and lines that are not rows."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.cli import watch
from spbn.cli.watch import Line, NamesError, RowReader, lines_of
from spbn.tables.table import Variable

VARIABLES = [Variable("x"), Variable("colour", ("blue", "red"))]


def draw(rows, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows)
    return pd.DataFrame({"x": x, "y": x + 0.5 * rng.standard_normal(rows), "z": rng.standard_normal(rows)})


@pytest.fixture
def watched(folder):
    """A folder with a model, a table of reference rows and new rows, of which the fifth is unusual."""
    spbn.BayesianNetwork.fit(spbn.Structure("xyz", [("x", "y")]), draw(400, 0)).save("m.spbn")
    draw(400, 1).to_csv("normal.csv", index=False)
    new = draw(20, 2)
    new.insert(0, "time", [f"12:{k:02}" for k in range(20)])
    new.loc[4, "z"] = 50.0
    new.to_csv("new.csv", index=False)
    return new


@pytest.fixture
def stdin(monkeypatch):
    """Give the command something to read."""

    def give(text):
        content = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))

    return give


WATCH = ("watch", "m.spbn")
REFERENCE = ("--reference", "normal.csv")


def test_alarms_are_printed_with_their_reasons(watched, run):
    code, out, err = run(*WATCH, "new.csv", *REFERENCE)
    assert code == 0
    assert len(out.splitlines()) == 1
    assert out.startswith("row 5 (line 6): ALARM: ")
    assert out.rstrip().endswith("as unusual, because of z = 50")
    assert "20 rows watched: 1 alarm, 0 drift alarms." in err


def test_what_is_printed_is_what_the_library_says(watched, run):
    code, out, _ = run(*WATCH, "new.csv", *REFERENCE, "--all", "--json")
    assert code == 0
    printed = pd.DataFrame([json.loads(line) for line in out.splitlines()])
    network = spbn.BayesianNetwork.load("m.spbn")
    expected = spbn.Monitor(network, pd.read_csv("normal.csv")).update(watched)
    np.testing.assert_allclose(printed["share"], expected["p_value"])
    for name in ("alarm", "drift", "drift_alarm"):
        np.testing.assert_allclose(printed[name], expected[name])
    assert printed["blame"][4][0]["variable"] == "z"
    assert printed["blame"][4][0]["value"] == 50.0
    assert printed["row"].tolist() == list(range(1, 21))
    assert printed["line"].tolist() == list(range(2, 22))


def test_a_drift_is_printed(watched, run):
    rows = draw(60, 3)
    rows["y"] += 2.0
    rows.to_csv("drifting.csv", index=False)
    code, out, _ = run(*WATCH, "drifting.csv", *REFERENCE, "--alarm", 5e-4)
    assert code == 0
    assert "DRIFT: y by +" in out
    assert "standard deviations, since row " in out
    code, out, _ = run(*WATCH, "drifting.csv", *REFERENCE, "--json", "--alarm", 5e-4)
    first = json.loads(out.splitlines()[0])
    assert first["drift_alarm"]
    assert first["drift_blame"][0]["variable"] == "y"
    assert first["drift_blame"][0]["shift"] > 1
    assert 1 <= first["since"] <= 15


def test_malformed_lines_are_left_out_and_the_stream_goes_on(watched, run, stdin):
    good = "0.1,0.2,0.3"
    lines = ["x,y,z", good, "0.1,0.2", good, "a,0.2,0.3", "0.1,inf,0.3", "", "1_0,2,3", good, "0.1,0.2,99"]
    stdin("\n".join(lines))
    code, out, err = run(*WATCH, "-", *REFERENCE)
    assert code == 0
    assert "row 4 (line 10): ALARM" in out
    assert "line 3 is left out: it has 2 fields, and the first line has 3 names." in err
    assert "line 5 is left out: 'x' must be a number. Got 'a'." in err
    assert "line 6 is left out: 'y' is infinite" in err
    assert "line 8 is left out: 'x' must be a number. Got '1_0'." in err
    assert "4 rows watched: 1 alarm, 0 drift alarms, 4 lines left out." in err


def test_names_may_come_again_in_another_order(watched, run, stdin):
    first, second = watched.iloc[:10], watched.iloc[10:]
    parts = [first, first.iloc[:0], second[["z", "time", "y", "x"]]]
    stdin("".join(part.to_csv(index=False) for part in parts))
    code, out, err = run(*WATCH, "-", *REFERENCE, "--all", "--label", "time", "--json")
    assert (code, err) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [row["label"] for row in found] == watched["time"].tolist()
    assert [row["line"] for row in found] == [*range(2, 12), *range(14, 24)]
    network, normal = spbn.BayesianNetwork.load("m.spbn"), pd.read_csv("normal.csv")
    expected = spbn.Monitor(network, normal).update(watched)
    np.testing.assert_allclose([row["share"] for row in found], expected["p_value"])


def test_lines_that_are_not_csv_are_left_out(watched, run, stdin):
    long = '"' + "9" * 200_000 + '"'
    stdin(f'x,y,z\n1,2,"3\r4"\n{long},1,2\n1,2,x\r4"\n0,0,inf\n0,0,0\n')
    code, _, err = run(*WATCH, "-", *REFERENCE)
    assert code == 0
    assert err.splitlines()[-1] == "spbn: note: 1 row watched: 0 alarms, 0 drift alarms, 4 lines left out."
    assert "line 3 is left out: it cannot be read as CSV" in err
    assert "line 5 is left out: 'z' is infinite: leave the field empty if its value is unknown." in err


def test_another_encoding_than_was_said_ends_it(watched, run, stdin):
    draw(400, 1).to_parquet("normal.parquet")
    stdin("x,y,z\n0,0,0\n")
    code, _, err = run(*WATCH, "-", "--reference", "normal.parquet", "--encoding", "utf-16")
    assert (code, err) == (
        2,
        "spbn: the rows are not text in the encoding 'utf-16': give the right one with --encoding.\n",
    )


def test_complaints_come_to_an_end(watched, run, stdin):
    stdin("x,y,z\n" + 100 * "nonsense\n" + "1,1,1\n")
    _, _, err = run(*WATCH, "-", *REFERENCE)
    assert err.count("is left out:") == watch.MOST_COMPLAINTS
    assert "only counted" in err
    assert "100 lines left out" in err


def test_a_missing_variable_is_integrated_out_and_mentioned_once(watched, run, stdin):
    stdin("z,x\n0.1,0.2\n0.3,0.1\n70,0.1\n")
    code, out, err = run(*WATCH, "-", *REFERENCE)
    assert code == 0
    assert err.count("has no 'y': it is unknown, and integrated out") == 1
    assert "line 1 has no 'y'" in err
    assert "row 3 (line 4): ALARM" in out
    assert "because of z = 70" in out
    stdin('{"x": 1, "y": 1, "z": 1}\n{"x": 1, "z": null}\n{"x": 1, "z": 2}\n')
    code, _, err = run(*WATCH, "-", *REFERENCE)
    assert code == 0
    assert err.count("'y'") == 1
    assert "line 2 has no 'y'" in err
    assert "3 rows watched" in err


def test_json_lines_are_read(watched, run, stdin):
    rows = [
        '{"x": 0.1, "y": 0.1, "z": 60}',
        "[1]",
        '{"x": ',
        '{"x": "0.1", "y": 1, "z": 1}',
        '{"x": 1, "y": 1, "z": 0}',
    ]
    stdin("\n".join(rows))
    code, out, err = run(*WATCH, *REFERENCE)
    assert code == 0
    assert "row 1 (line 1): ALARM" in out
    for line in (2, 3):
        assert f"line {line} is left out: it is not a JSON object." in err
    assert "line 4 is left out: 'x' must be a number. Got '0.1'." in err
    assert "2 rows watched" in err


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("1,2,3", "the first line must hold the names of the columns, or a JSON object"),
        ("x,y,x,z", "the first line has 'x' more than once"),
        ("hello", "must hold the names"),
    ],
)
def test_a_first_line_that_makes_no_sense_ends_it(watched, run, stdin, first, message):
    stdin(f"{first}\n1,2,3\n")
    code, _, err = run(*WATCH, "-", *REFERENCE)
    assert code == 2
    assert message in err


def test_other_separators_quotes_and_encodings(watched, run, stdin):
    stdin("\ufeffx;note;y;z\r\n0.1;hi;0.2;0.3\r\n0.1;hi;0.2;88\r\n")
    _, out, _ = run(*WATCH, "-", *REFERENCE)
    assert "row 2 (line 3): ALARM" in out
    stdin('x,note,y,z\n0.1,"a, b",0.2,88\n')
    assert "row 1 (line 2): ALARM" in run(*WATCH, "-", *REFERENCE)[1]
    stdin(b"x,y,z\n0.1,\xff,0.2\n0.1,0.1,0.1\n")
    _, _, err = run(*WATCH, "-", *REFERENCE)
    assert "line 2 is left out: it is too long, or not text in UTF-8: if it is in another encoding" in err
    assert "1 row watched" in err


def test_a_state_goes_on(watched, run, stdin):
    text = Path("new.csv").read_text().splitlines()
    stdin("\n".join(text[:11]))
    run(*WATCH, "-", *REFERENCE, "--state", "s.json")
    stdin("\n".join([text[0], *text[11:]]))
    code, _, err = run(*WATCH, "-", *REFERENCE, "--state", "s.json")
    assert code == 0
    assert "resuming from s.json, after 10 rows; normal.csv is not read again." in err
    network = spbn.BayesianNetwork.load("m.spbn")
    whole = spbn.Monitor(network, pd.read_csv("normal.csv"))
    whole.update(watched)
    whole.save("whole.json")
    assert json.loads(Path("s.json").read_text()) == json.loads(Path("whole.json").read_text())


def test_it_needs_rows_to_compare_with(watched, run):
    code, _, err = run(*WATCH, "new.csv")
    assert code == 2
    assert "give them with --reference table.csv" in err
    code, _, err = run(*WATCH, "new.csv", "--state", "none.json")
    assert code == 2
    assert not Path("none.json").exists()
    for option in ("--alarm", "--drift"):
        code, _, err = run(*WATCH, "new.csv", *REFERENCE, option, 1.5)
        assert (code, f"{option} must be between 0 and 1. Got 1.5." in err) == (2, True)
    code, _, err = run(*WATCH, "new.csv", *REFERENCE, "--state", "normal.csv")
    assert (code, "normal.csv is an input" in err) == (2, True)
    code, _, err = run(*WATCH, "new.csv", "--state", "new.json", "--reference", "nowhere.csv")
    assert (code, "nowhere.csv" in err) == (2, True)
    Path("rows.parquet").write_bytes(b"PAR1")
    code, _, err = run(*WATCH, "rows.parquet", *REFERENCE)
    assert (code, "has to be written as CSV first" in err) == (2, True)
    code, _, err = run(*WATCH, "gone.csv", *REFERENCE)
    assert (code, "gone.csv: No such file" in err) == (2, True)


def test_reference_rows_with_holes_are_mentioned(watched, run):
    reference = pd.read_csv("normal.csv")
    reference.loc[3, "y"] = np.nan
    reference.to_csv("normal.csv", index=False)
    code, _, err = run(*WATCH, "new.csv", *REFERENCE)
    assert code == 0
    assert "1 of 400 reference rows has missing values: rows are not compared with it." in err


def test_a_stream_without_rows_fails(watched, run, stdin):
    stdin("")
    assert run(*WATCH, "-", *REFERENCE)[0] == 0
    stdin("x,y,z\nnonsense\n")
    assert run(*WATCH, "-", *REFERENCE)[0] == 1


def test_rows_over_time_are_watched(folder, run, stdin):
    rng = np.random.default_rng(4)
    x = np.zeros(300)
    for t in range(1, 300):
        x[t] = 0.9 * x[t - 1] + rng.standard_normal()
    y = 0.9 * np.roll(x, 1) + rng.standard_normal(300)
    frame = pd.DataFrame({"t": np.arange(300), "x": x, "y": y})
    frame.to_csv("normal.csv", index=False)
    spbn.learn_dynamic(frame, lags=1, time="t", model="gbn").save("m.spbn")
    stdin("t,x,y\n0,1,0\n1,0.9,0\n2,0.8,40\n2,0.8,0\n9,0.5,0\n10,0.5,0\n")
    code, out, err = run(*WATCH, "-", *REFERENCE, "--all")
    assert code == 0
    lines = out.splitlines()
    assert "row 1 (line 2): not judged" in lines[0]
    assert "share" in lines[1]
    assert "row 3 (line 4): ALARM" in lines[2]
    assert "because of y = 40" in lines[2]
    assert "line 5 is left out: the times must ascend in steps of 1" in err
    assert "not judged" in lines[3]  # after a gap
    assert "share" in lines[4]
    stdin("x,y\n1,0\n")
    code, _, err = run(*WATCH, "-", *REFERENCE)
    assert (code, "the first line has no 't', which the model needs" in err) == (2, True)
    # Without y, and with a hole in x: what can be judged is judged.
    stdin("t,x\n0,1\n1,0.9\n2,\n3,0.8\n4,0.7\n5,30\nsix,0.1\n6,20\n")
    code, out, err = run(*WATCH, "-", *REFERENCE, "--all")
    assert code == 0
    assert err.count("line 1 has no 'y': it is unknown, and what depends on it is not judged.") == 1
    assert "line 8 is left out: column 't' has no time (six): times are numbers or dates" in err
    judged = ["not judged" not in line for line in out.splitlines()]
    assert judged == [False, True, False, False, True, True, True]
    assert "row 6 (line 7): ALARM" in out
    assert "because of x = 30" in out


@pytest.mark.slow
def test_dates_and_reference_rows_with_holes_over_time(folder, run, stdin):
    """Times of rows that come one by one go on, also where they are dates."""
    rng = np.random.default_rng(4)
    times = pd.date_range("2024-03-30 22:00", periods=300, freq="10min").astype(str)
    frame = pd.DataFrame({"when": times, "x": rng.standard_normal(300).cumsum()})
    dynamic = spbn.learn_dynamic(
        frame[:200], lags=1, time="when", model="gbn", required_arcs=[(("x", 1), "x")]
    )
    dynamic.save("m.spbn")
    frame.loc[20, "x"] = np.nan
    frame[:200].to_csv("normal.csv", index=False)
    stdin(frame[200:].to_csv(index=False) + "2024-04-01 23:50,1\n")  # a time that was there
    code, out, err = run(*WATCH, "-", *REFERENCE, "--all", "--state", "s.json")
    assert code == 0, err
    assert "1 of 200 reference rows has missing values" in err
    assert ["not judged" in line for line in out.splitlines()] == [True] + 99 * [False]
    assert "line 102 is left out: the times must ascend in steps of 600" in err
    monitor = spbn.Monitor.load("s.json", dynamic)
    for when, is_judged in (
        ("2024-04-02 00:00", True),
        ("2024-04-02 00:10", True),
        ("2024-04-02 03:00", False),
    ):
        assert monitor.update({"when": when, "x": 0.0})["p_value"].notna().all() == is_judged


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_ends_it_and_keeps_the_state(watched):
    """In a process of its own, whose input stays open: rows are judged as they come."""
    command = [sys.executable, "-c", "from spbn.cli.main import main; main()", *WATCH, "-", *REFERENCE]
    process = subprocess.Popen(
        [*command, "--state", "s.json"],
        env=os.environ | {"PYTHONPATH": str(Path(spbn.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"x,y,z\n0,0,0\n0,0,77\n")
    process.stdin.flush()
    assert b"row 2 (line 3): ALARM" in process.stdout.readline()  # though there is no end of input
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert b"2 rows watched: 1 alarm" in err
    assert b"Traceback" not in err
    assert json.loads(Path("s.json").read_text())["rows"] == 2


def test_lines_come_as_they_are_written():
    """All that are there at once; a line that is not finished has to wait."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as target:
        found = lines_of(source)
        target.write(b"a\nb\nc")
        assert next(found) == [Line(1, "a"), Line(2, "b")]
        target.write(b"d\n")
        assert next(found) == [Line(3, "cd")]
        target.write(b"rest")
        target.close()
        assert list(found) == [[Line(4, "rest")]]


def test_a_line_without_end_takes_no_memory(monkeypatch):
    monkeypatch.setattr(watch, "LONGEST_LINE", 100)
    monkeypatch.setattr(watch, "AT_A_TIME", 64)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as target:
        target.write(b"ok\n" + 500 * b"x" + b"\nnext\n" + 300 * b"y")
        target.close()
        lines = [line for batch in lines_of(source) for line in batch]
    assert lines == [Line(1, "ok"), Line(2, None), Line(3, "next"), Line(4, None)]


def test_levels_and_missing_values_are_read():
    reader = RowReader(VARIABLES)
    assert reader.row(Line(1, "x, colour")) is None
    assert reader.row(Line(2, "  ")) is None
    np.testing.assert_array_equal(reader.row(Line(3, "1.5, red")).values, [1.5, 1.0])
    for hole in ("", "?", "NA", "nan", "null"):
        assert np.isnan(reader.row(Line(4, f"{hole},{hole}")).values).all()
    with pytest.raises(
        spbn.errors.DataError, match="'colour' has the level 'green', which is unknown"
    ) as caught:
        reader.row(Line(5, "1,green"))
    assert not isinstance(caught.value, NamesError)
