"""Whatever a command reads is still there afterwards."""

import os
from pathlib import Path

import pytest

import spbn

from strategies import nonlinear_frame

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other links and permissions")


@pytest.fixture
def files(folder):
    """Return what is in every file of a folder with a table and a model."""
    spbn.learn(nonlinear_frame(150, 3), model="gbn").save("m.spbn")
    return {path: path.read_bytes() for path in sorted(Path().iterdir())}


@pytest.fixture
def refused(run, files, monkeypatch):
    """Check that a command is refused before it does any work, and changes nothing."""

    def working(*args, **options):
        raise AssertionError("work has begun")

    monkeypatch.setattr("spbn.cli.options.training_frame", working)
    monkeypatch.setattr("spbn.cli.inputs.load_any_model", working)
    monkeypatch.setattr("spbn.datasets.paper_synthetic", working)

    def check(*arguments, message):
        before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert len(err.splitlines()) == 1
        assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before

    return check


#: Commands that write, with the file that they read and would destroy.
DESTRUCTIVE = [
    ("learn data.csv --out {}", "data.csv"),
    ("learn data.csv --report {}", "data.csv"),
    ("learn data.csv --checkpoint {}", "data.csv"),
    ("confidence data.csv --out {}", "data.csv"),
    ("confidence data.csv --report {}", "data.csv"),
    ("confidence data.csv --checkpoint {}", "data.csv"),
    ("score m.spbn data.csv --out {}", "data.csv"),
    ("score m.spbn data.csv --out {}", "m.spbn"),
    ("sample m.spbn --out {}", "m.spbn"),
    ("plot m.spbn --out {}", "m.spbn"),
    ("report m.spbn --out {}", "m.spbn"),
    ("report m.spbn data.csv --out {}", "data.csv"),
]


@pytest.mark.parametrize("way", ["itself", "path", "absolute", "link", "hard link", "linked folder"])
@pytest.mark.parametrize(("command", "victim"), DESTRUCTIVE)
def test_no_input_is_overwritten(refused, command, victim, way):
    name = f"other{Path(victim).suffix}"
    if way == "link":
        Path(name).symlink_to(victim)
    elif way == "hard link":
        Path(name).hardlink_to(victim)
    elif way == "linked folder":
        Path("here").symlink_to(".")
        name = f"here/{victim}"
    else:
        name = {
            "itself": victim,
            "path": f"../{Path.cwd().name}/{victim}",
            "absolute": str(Path(victim).absolute()),
        }[way]
    refused(*command.format(name).split(), message="writing would destroy it")


def test_no_file_is_written_twice(refused):
    refused("learn", "data.csv", "--out", "a", "--report", "./a", message="a would be written twice")
    Path("b").symlink_to("a")  # which is not there yet
    refused("learn", "data.csv", "--out", "a", "--report", "b", message="b would be written twice")
    Path("spbn-demo.spbn").symlink_to("spbn-demo.html")
    refused("demo", message="would be written twice")


@pytest.mark.parametrize(
    "command",
    [
        "learn data.csv --out {}",
        "learn data.csv --report {}",
        "score m.spbn data.csv --out {}",
        "sample m.spbn --out {}",
        "plot m.spbn --out {}",
        "report m.spbn --out {}",
    ],
)
def test_what_cannot_be_written_is_refused_before_any_work(refused, command):
    Path("kept.csv").write_text("precious")
    Path("kept.csv").chmod(0o444)
    refused(
        *command.format("kept.csv").split(), message="no permission to write to kept.csv: it is read-only"
    )
    refused(*command.format("nowhere/x.csv").split(), message="nowhere does not exist: create it first")
    Path("folder.csv").mkdir()
    refused(*command.format("folder.csv").split(), message="folder.csv is a folder")
    os.mkfifo("pipe.csv")
    refused(*command.format("pipe.csv").split(), message="pipe.csv is not a regular file")


def test_the_demo_respects_read_only_files(refused):
    Path("spbn-demo.html").write_text("precious")
    Path("spbn-demo.html").chmod(0o444)
    refused("demo", message="no permission to write to spbn-demo.html")


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="root may write anywhere")
def test_a_folder_without_permission(refused):
    Path("closed").mkdir(mode=0o555)
    refused("sample", "m.spbn", "--out", "closed/s.csv", message="no permission to write to the folder")


def test_an_old_file_that_is_not_read_is_replaced(files, run):
    Path("s.csv").write_text("old")
    assert run("sample", "m.spbn", "-n", "3", "--out", "s.csv")[0] == 0
    assert len(Path("s.csv").read_text().splitlines()) == 4
    assert all(path.read_bytes() == content for path, content in files.items())
