"""Fixtures for the tests of the command line."""

import sys

import pytest

import spbn
from command_line import main
from command_options import HOLES, SERIES, labelled_frame
from learning_options import FRAME

from strategies import nonlinear_frame


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, but for a table."""
    monkeypatch.chdir(tmp_path)
    nonlinear_frame(150, 3).to_csv("data.csv", index=False)
    return tmp_path


@pytest.fixture
def model(folder):
    """The folder, with a model as well."""
    spbn.learn(nonlinear_frame(150, 3)).save("model.spbn")
    return folder


@pytest.fixture
def tables(folder):
    """Tables, and a model of one of them."""
    FRAME.to_csv("frame.csv", index=False)
    HOLES.to_csv("holes.csv", index=False)
    FRAME.assign(name="Bob").to_csv("named.csv", index=False)
    SERIES.to_csv("series.csv", index=False)
    labelled_frame().rename(columns={"few": "d"}).to_csv("labelled.csv", index=False)
    spbn.learn(FRAME).save("m.spbn")
    return folder


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command; return its exit code, and what it printed to both streams."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["spbn", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
