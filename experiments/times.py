"""How long learning takes, compared with PyBNesian: 5 to 20 variables, 200 to 10,000 rows, every procedure.

Both libraries use all cores, draw their own folds, and compile before they are timed. Measure on
an otherwise idle machine, with ``--jobs 1``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

import spbn
from experiments.models import MODELS
from experiments.procedures import START, Procedure, with_patience

OURS, THEIRS = "spbn", "PyBNesian"
VARIABLES = tuple(MODELS)
ROWS = (200, 500, 2_000, 4_000, 10_000)
#: "types" learns the node types on the true graph, as after PC.
PROCEDURES = {
    "GBN, BIC": Procedure("HC-BIC", "GBN"),
    "GBN, BGe": Procedure("HC-BGe", "GBN"),
    **{
        f"{procedure.model}, patience {procedure.patience}": procedure
        for procedure in with_patience("HC", ["GBN", "KDEBN", "SPBN-LG", "SPBN-CKDE"])
    },
    "PC-PLC, graph": Procedure("PC-PLC", "GBN"),
    "PC-RCoT, graph": Procedure("PC-RCoT", "GBN"),
    "node types": Procedure("types", "SPBN-LG"),
}
#: PyBNesian is stopped after this many seconds, and not started if it would take longer.
LIMIT = 600.0
RESULTS = Path(__file__).parent / "results" / "times.csv"


@dataclass(frozen=True)
class Cell:
    """One procedure of one library on a table."""

    library: str
    variables: int
    rows: int
    procedure: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, the quickest first: a run that is stopped early then has most of them.

    PyBNesian with patience comes last, because it adds little to PyBNesian without. If PyBNesian is
    not installed, it is left out.
    """
    libraries = (OURS, THEIRS) if find_spec("pybnesian") else (OURS,)
    everything = [
        Cell(library, variables, rows, procedure)
        for library in libraries
        for variables in VARIABLES
        for rows in (ROWS[:2] if quick else ROWS)
        for procedure in PROCEDURES
    ]
    everything.sort(key=lambda cell: (_is_last(cell), expected_seconds(cell)))
    return everything[: 40 if quick else None]


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Measure one procedure, or say why it was not measured."""
    procedure = PROCEDURES[cell.procedure]
    if cell.library == THEIRS:
        predicted = predicted_seconds(cell, _finished())
        if predicted > LIMIT:
            return {"status": "not begun", "learning": "", "arcs": ""}
        return _run_peer(cell, procedure)
    truth = MODELS[cell.variables]
    frame = truth.sample(cell.rows)
    _compile()
    seconds, arcs = best_time(lambda: learn(procedure, frame, truth.structure))
    return {"status": "measured", "learning": seconds, "arcs": arcs}


def best_time(function: Callable[[], int], *, enough: float = 3.0) -> tuple[float, int]:
    """Return the seconds of the fastest of up to three runs, if they do not take long, and the result."""
    seconds: list[float] = []
    while not seconds or (len(seconds) < 3 and sum(seconds) + min(seconds) < enough):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return round(min(seconds), 5), result


def learn(procedure: Procedure, frame: pd.DataFrame, truth: spbn.Structure) -> int:
    """Learn by a procedure and return the number of arcs."""
    if procedure.algorithm.startswith("PC-"):
        test = (
            spbn.independence.PartialCorrelation
            if procedure.algorithm == "PC-PLC"
            else spbn.independence.RCoT
        )
        pdag = spbn.search.pc(test(frame)).pdag
        return len(pdag.arcs) + len(pdag.edges)
    start = spbn.Structure(list(frame.columns), types=START[procedure.model])
    operators: tuple[str, ...] = ("arcs", "types") if procedure.semiparametric else ("arcs",)
    if procedure.algorithm == "types":
        start, operators = start.with_dag(truth.dag), ("types",)
    score: Any
    if procedure.algorithm in ("HC-BIC", "HC-BGe"):
        score = (spbn.scores.BIC if procedure.algorithm == "HC-BIC" else spbn.scores.BGe)(frame)
    else:
        score = spbn.scores.ValidatedLikelihood(frame, folds=10, validation=0.2, seed=0)
    found = spbn.search.hill_climb(score, start, operators=operators, patience=procedure.patience)
    return len(found.structure.arcs)


def predicted_seconds(cell: Cell, finished: pd.DataFrame) -> float:
    """Return how long PyBNesian will take, judging by fewer rows; infinite if those took too long."""
    same = finished[
        (finished["library"] == cell.library)
        & (finished["variables"] == cell.variables)
        & (finished["procedure"] == cell.procedure)
        & (finished["rows"] < cell.rows)
    ]
    if same.empty:
        return 0.0
    last = same.sort_values("rows").iloc[-1]
    if last["status"] != "measured":
        return float("inf")
    return float(last["learning"]) * (cell.rows / last["rows"]) ** (2 if _is_kernel(cell) else 1)


def expected_seconds(cell: Cell) -> float:
    """Return roughly how long a cell takes on two cores."""
    if not _is_kernel(cell):
        tests = cell.procedure == "PC-RCoT, graph"
        rate = {OURS: 2e-8, THEIRS: 4e-7}[cell.library] * (50 if tests else 1)
        return 0.01 + rate * cell.rows * cell.variables**2.5
    share = 0.1 if cell.procedure == "node types" else 1.5 if "patience 5" in cell.procedure else 1.0
    effort = share * cell.variables**2.5
    if cell.library == OURS:
        return 0.02 + 6e-9 * cell.rows**1.7 * effort
    return 2.0 + 1.5e-7 * cell.rows**2 * effort


def _is_last(cell: Cell) -> bool:
    return cell.library == THEIRS and PROCEDURES[cell.procedure].patience > 0


def _is_kernel(cell: Cell) -> bool:
    procedure = PROCEDURES[cell.procedure]
    return procedure.algorithm in ("HC", "types") and procedure.model != "GBN"


def _run_peer(cell: Cell, procedure: Procedure) -> dict[str, float | int | str]:
    words = [cell.variables, cell.rows, *asdict(procedure).values()]
    command = [sys.executable, "-m", "experiments.peer", *map(str, words)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True)
    except subprocess.TimeoutExpired:
        return {"status": "stopped", "learning": "", "arcs": ""}
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"PyBNesian failed:\n{error.stderr[-2000:]}") from None
    return {"status": "measured", **json.loads(done.stdout.splitlines()[-1])}


def _finished() -> pd.DataFrame:
    if not RESULTS.exists():
        return pd.DataFrame(columns=["library", "variables", "rows", "procedure", "status", "learning"])
    return pd.read_csv(RESULTS)


@cache
def _compile() -> None:
    truth = MODELS[5]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for procedure in PROCEDURES.values():
            learn(procedure, truth.sample(300), truth.structure)


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Draw seconds against rows, and write the seconds of both libraries and their ratios."""
    from experiments.figures.times import draw

    draw(results, out)
