"""Times: every procedure runs, and what would take too long is not begun."""

import importlib.util

import pandas as pd
import pytest
from experiments.figures.times import ratio_table
from experiments.models import MODELS
from experiments.times import OURS, THEIRS, Cell

from experiments import peer, times

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.mark.parametrize("name", times.PROCEDURES)
def test_every_procedure_learns(name):
    truth = MODELS[5]
    arcs = times.learn(times.PROCEDURES[name], truth.sample(150), truth.structure)
    assert 0 < arcs <= 10


@pytest.mark.skipif(importlib.util.find_spec("pybnesian") is None, reason="needs pybnesian")
@pytest.mark.parametrize("name", ["GBN, BIC", "GBN, BGe", "PC-PLC, graph"])
def test_the_peer_finds_the_same_number_of_arcs(name):
    truth = MODELS[5]
    frame, procedure = truth.sample(500), times.PROCEDURES[name]
    graph = list(truth.structure.arcs)
    assert peer.learn(procedure, frame, graph) == times.learn(procedure, frame, truth.structure)


def test_cells_are_all_there_and_the_short_ones_first():
    everything = times.cells(None, quick=False)
    ours = [cell for cell in everything if cell.library == OURS]
    assert len(set(ours)) == len(ours) == 3 * 5 * len(times.PROCEDURES)
    expected = [times.expected_seconds(cell) for cell in ours]
    assert expected == sorted(expected)
    assert sum(map(times.expected_seconds, times.cells(None, quick=True))) < 60


def finished(*lines):
    columns = ["library", "variables", "rows", "procedure", "status", "learning"]
    return pd.DataFrame(lines, columns=columns)


def test_what_would_take_too_long_is_foreseen():
    cell = Cell(THEIRS, 5, 4_000, "KDEBN, patience 0")
    assert times.predicted_seconds(cell, finished()) == 0.0
    done = [
        (THEIRS, 5, 500, "KDEBN, patience 0", "measured", 3.0),
        (THEIRS, 5, 2_000, "KDEBN, patience 0", "measured", 40.0),
        (THEIRS, 10, 2_000, "KDEBN, patience 0", "measured", 900.0),
        (OURS, 5, 2_000, "KDEBN, patience 0", "measured", 900.0),
        (THEIRS, 5, 10_000, "KDEBN, patience 0", "measured", 900.0),
    ]
    assert times.predicted_seconds(cell, finished(*done)) == 160.0
    too_long = (THEIRS, 5, 3_000, "KDEBN, patience 0", "stopped", None)
    assert times.predicted_seconds(cell, finished(*done, too_long)) == float("inf")
    linear = Cell(THEIRS, 5, 4_000, "GBN, BIC")
    assert times.predicted_seconds(linear, finished((THEIRS, 5, 2_000, "GBN, BIC", "measured", 1.0))) == 2.0


def test_ratios():
    name = "KDEBN, patience 0"
    done = [
        (OURS, 5, 200, name, "measured", 0.01),
        (THEIRS, 5, 200, name, "measured", 2.0),
        (OURS, 5, 500, name, "measured", 0.5),
        (OURS, 5, 2_000, name, "measured", 3.0),
        (THEIRS, 5, 2_000, name, "stopped", None),
        (OURS, 5, 4_000, name, "measured", 30.0),
        (THEIRS, 5, 4_000, name, "not begun", None),
    ]
    (line,) = (line for line in ratio_table(finished(*done), 5).splitlines() if name in line)
    assert line == f"| {name} | 0.01 s, 200× | 0.5 s | 3 s, > 200× | 30 s, (> 20×) |  |"


def test_best_time_repeats_what_is_short():
    calls = []
    seconds, result = times.best_time(lambda: calls.append(1) or len(calls))
    assert len(calls) == result == 3
    assert seconds < 1.0


@pytest.mark.slow
def test_render_writes_a_figure_and_tables(tmp_path):
    done = [
        (library, variables, rows, name, "measured", 1e-6 * rows * variables * (1 + 9 * (library == THEIRS)))
        for library in (OURS, THEIRS)
        for variables in times.VARIABLES
        for rows in times.ROWS
        for name in times.PROCEDURES
    ]
    times.render(finished(*done), None, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *(f"models-{variables}.md" for variables in (10, 20, 5)),
        *(f"times-{variables}.md" for variables in (10, 20, 5)),
        "times.svg",
    ]
    assert "10×" in (tmp_path / "times-10.md").read_text(encoding="utf-8")
