"""A run that is killed goes on where it was, and one bad cell does not stop the others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest
from experiments.results_file import ResultsError, ResultsFile
from experiments.runner import run_experiment

ROOT = Path(__file__).resolve().parents[2]
TOY = """
import os, time
from dataclasses import dataclass
from pathlib import Path

@dataclass(frozen=True)
class Cell:
    name: str
    number: int

def cells(data, quick):
    return [Cell(name, number) for name in ("a, b", "c") for number in range(2 if quick else 4)]

def batch(cell):
    return cell.name

def run(cell, data):
    with open(data / "calls", "a") as calls:
        calls.write(f"{cell.number}\\n")
    time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
    if cell.number == 2 and (data / "broken").exists():
        raise ValueError("two is broken")
    threads = os.environ.get("NUMBA_NUM_THREADS", "")
    return {"square": cell.number**2, "text": 'said "so"', "process": os.getpid(), "threads": threads}
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A small experiment, in a folder that is its data too."""
    (tmp_path / "toy.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path)
    yield "toy"
    sys.modules.pop("toy", None)


def calls(folder):
    return len((folder / "calls").read_text().split())


def test_every_cell_is_a_line(toy, tmp_path):
    results = tmp_path / "deep" / "results.csv"
    assert run_experiment(toy, tmp_path, results) == 0
    frame = pd.read_csv(results)
    assert list(frame.columns) == ["name", "number", "square", "text", "process", "threads", "seconds"]
    assert list(zip(frame["name"], frame["number"], strict=True)) == [
        (name, number) for name in ("a, b", "c") for number in range(4)
    ]
    assert (frame["square"] == frame["number"] ** 2).all()
    assert set(frame["text"]) == {'said "so"'}


def test_what_is_there_is_not_run_again(toy, tmp_path):
    results = tmp_path / "results.csv"
    run_experiment(toy, tmp_path, results, quick=True)
    assert calls(tmp_path) == 4
    run_experiment(toy, tmp_path, results)
    assert calls(tmp_path) == 8
    before = results.read_bytes()
    run_experiment(toy, tmp_path, results)
    assert results.read_bytes() == before


@pytest.mark.parametrize("left", [0.1, 0.5, 0.9])
def test_a_line_that_was_cut_off_is_run_again(toy, tmp_path, left):
    results = tmp_path / "results.csv"
    run_experiment(toy, tmp_path, results)
    *whole, last = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(whole) + last[: int(left * len(last))])
    run_experiment(toy, tmp_path, results)
    assert calls(tmp_path) == 9
    assert len(pd.read_csv(results).drop_duplicates(["name", "number"])) == 8


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_cell_that_fails_is_told_and_left_out(toy, tmp_path, jobs, capsys):
    results = tmp_path / "results.csv"
    (tmp_path / "broken").touch()
    assert run_experiment(toy, tmp_path, results, jobs=jobs) == 2
    assert sorted(pd.read_csv(results)["number"]) == [0, 0, 1, 1, 3, 3]
    assert "ValueError: two is broken" in capsys.readouterr().err
    (tmp_path / "broken").unlink()
    assert run_experiment(toy, tmp_path, results, jobs=jobs) == 0
    assert len(pd.read_csv(results)) == 8


@pytest.mark.slow
def test_workers_have_one_thread_each_and_keep_batches_together(toy, tmp_path):
    results = tmp_path / "results.csv"
    before = dict(os.environ)
    run_experiment(toy, tmp_path, results, jobs=2)
    frame = pd.read_csv(results)
    assert (frame["threads"] == 1).all()
    assert os.getpid() not in set(frame["process"])
    assert len(frame.drop_duplicates(["name", "process"])) == 2
    assert dict(os.environ) == before


@pytest.mark.slow
@pytest.mark.parametrize(("how", "jobs"), [(signal.SIGKILL, 1), (signal.SIGINT, 2)])
def test_a_run_that_is_stopped_goes_on(toy, tmp_path, how, jobs):
    results = tmp_path / "results.csv"
    program = f"""
import sys
from pathlib import Path
from experiments.runner import run_experiment
if __name__ == "__main__":
    run_experiment("toy", Path({str(tmp_path)!r}), Path({str(results)!r}), jobs={jobs})
"""
    script = tmp_path / "script.py"
    script.write_text(program)
    path = os.pathsep.join([str(ROOT), str(tmp_path)])
    environment = {**os.environ, "PYTHONPATH": path, "TOY_SECONDS": "0.2"}
    process = subprocess.Popen([sys.executable, script], env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not results.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(how)
    process.communicate(timeout=30)
    assert process.returncode != 0
    finished = len(pd.read_csv(results))
    assert finished >= 1
    begun = calls(tmp_path)
    time.sleep(0.5)
    assert calls(tmp_path) == begun, "a worker outlived the run"
    run_experiment(toy, tmp_path, results)
    assert calls(tmp_path) == begun + 8 - finished
    assert len(pd.read_csv(results).drop_duplicates(["name", "number"])) == len(pd.read_csv(results)) == 8


def test_results_of_another_version_are_refused(tmp_path):
    path = tmp_path / "results.csv"
    path.write_text("name,value\nx,1\n")
    with pytest.raises(ResultsError, match="move it away"):
        ResultsFile(path, ["name", "number"])


def test_an_empty_file_is_begun(toy, tmp_path):
    results = tmp_path / "results.csv"
    results.touch()
    run_experiment(toy, tmp_path, results)
    assert len(pd.read_csv(results)) == 8
