"""Ctrl-C in `spbn learn`: the best network so far is offered, and saved where nobody can be asked.

And Ctrl-C while a command or its workers start, which says nothing; and workers whose command was killed.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import spbn
from command_line import answer_questions
from spbn.io.checkpoint import Checkpoint

needs_signals = pytest.mark.skipif(os.name == "nt", reason="there are no such signals on Windows")


@pytest.fixture
def interrupted(folder, monkeypatch):
    """A search that is interrupted after its second step; the first line of the checkpoint is none."""
    original, count = Checkpoint.append, 0

    def append(self, result):
        nonlocal count
        original(self, result)
        count += 1
        if count == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "append", append)
    return folder


LEARN = ("learn", "data.csv", "--model", "spbn", "--checkpoint", "run.jsonl")


def test_without_a_terminal_it_is_saved(interrupted, run):
    code, out, _ = run(*LEARN, "--out", "m.spbn")
    assert code == 130
    assert "best network after 2 steps written to m.spbn" in out
    network = spbn.BayesianNetwork.load("m.spbn")
    assert network.search.stop_reason == "interrupted"
    assert len(network.search.steps) == 2
    code, out, _ = run("show", "m.spbn")
    assert "stopped: interrupted" in out


@pytest.mark.parametrize("answer", [True, False])
def test_on_a_terminal_it_is_offered(answer, interrupted, run, monkeypatch):
    asked = answer_questions(monkeypatch, answer)
    monkeypatch.setattr("spbn.cli.learn._is_terminal", lambda: True)
    code, out, _ = run(*LEARN, "--out", "m.spbn")
    assert code == 130
    assert len(asked) == 1
    assert "after 2 steps. Save the best network so far to m.spbn?" in asked[0]
    assert Path("m.spbn").exists() == answer
    assert ("written to m.spbn" in out) == answer


def test_without_a_file_to_write_nothing_is_offered(interrupted, run):
    code, out, _ = run(*LEARN)
    assert (code, "written" in out) == (130, False)
    assert Path("run.jsonl").read_text().count("\n") == 3


def test_the_search_goes_on_from_its_checkpoint(interrupted, run):
    run(*LEARN)
    code, _, _ = run(*LEARN, "--out", "m.spbn")
    assert code == 0
    run("learn", "data.csv", "--model", "spbn", "--out", "whole.spbn")
    assert spbn.BayesianNetwork.load("m.spbn").search == spbn.BayesianNetwork.load("whole.spbn").search


def test_a_table_is_not_taken_for_a_checkpoint(folder, run):
    code, _, err = run("learn", "data.csv", "--checkpoint", "data.csv")
    assert (code, "is an input" in err) == (2, True)
    Path("other.csv").write_text("a,b\n1,2\n")
    code, _, err = run("learn", "data.csv", "--checkpoint", "other.csv")
    assert (code, "other.csv is not a checkpoint of spbn" in err) == (2, True)
    assert Path("other.csv").read_text() == "a,b\n1,2\n"


def test_confidence_is_printed_with_words(folder, run):
    code, out, _ = run("confidence", "data.csv", "--replicates", 5, "--model", "gbn")
    assert code == 0
    assert out.startswith("5 replicates, 3 nodes; arcs stronger than ")
    assert "strength  direction" in out
    assert "open: the reverse is equivalent" in out


SLOW_IMPORT = """
import os, sys, time

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["SLOW"]:
            print("importing", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Slow())
"""


def start(*arguments, **environment):
    """Start Python in a session of its own, as a shell would start a command in a terminal."""
    paths = [*([environment.pop("path")] if "path" in environment else []), Path(spbn.__file__).parents[1]]
    return subprocess.Popen(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize(
    ("module", "code"), [("numba", -2), ("spbn.network", -2), ("click", -2), ("rich", 130)]
)
def test_ctrl_c_while_the_command_starts_says_nothing(module, code, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT)
    (tmp_path / "spbn").write_text("from spbn.cli import run\nrun()\n")
    command = start(str(tmp_path / "spbn"), "--help", path=tmp_path, SLOW=module)
    assert command.stdout.readline() == b"importing\n"
    os.killpg(command.pid, signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert (command.returncode, err.strip()) == (code, b"")


def test_ctrl_c_is_as_usual_where_spbn_is_imported():
    program = "import signal, spbn; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert start("-c", program).communicate(timeout=60) == (b"True\n", b"")


WORKERS = {
    "processes": "from spbn.cli.learn import _processes as workers",
    "dask": "from spbn.dask.client import local_workers as workers",
}
PROGRAM = """
import sys, time
{}
if __name__ == "__main__":
    try:
        with workers(2) as pool:
            pool.submit(time.sleep, 300).result()
    except KeyboardInterrupt:
        sys.exit(130)
"""


def is_alive(process):
    psutil = pytest.importorskip("psutil")
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children_of(command):
    """Wait until two workers have been started, beside the process that keeps count of what they share."""
    psutil = pytest.importorskip("psutil")
    deadline, found = time.monotonic() + 60, []
    while len(found) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
        found = psutil.Process(command.pid).children()
    assert len(found) >= 3
    return found


def require_end(processes):
    deadline = time.monotonic() + 60
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_alive, processes))


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("kind", WORKERS)
def test_ctrl_c_while_workers_start_says_nothing(kind, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.format(WORKERS[kind]))
    command = start(str(tmp_path / "program.py"))
    children = children_of(command)
    os.killpg(command.pid, signal.SIGINT)  # which is what a terminal does
    _, err = command.communicate(timeout=60)
    assert (command.returncode, err.decode()) == (130, "")
    require_end(children)


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("kind", WORKERS)
def test_workers_end_with_a_command_that_is_killed(kind, tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.format(WORKERS[kind]))
    command = start(str(tmp_path / "program.py"))
    children = children_of(command)
    time.sleep(3.0)  # so that they have begun to work
    command.kill()
    command.communicate(timeout=60)
    require_end(children)
