"""Mixed tables: conditional Gaussian networks, SPBNs and blends, and the authors' hybrid SPBN beside them.

Every row is tested by models that were learned without it, and every model has to give every test row a
density. PyBNesian cannot score rows with a configuration that it has not seen: how many these are is a
result, and its likelihood is that of the other rows. Times are those of the processor, all cores together,
so that it does not matter what else the machine does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spbn
from experiments.hybrid_tables import SOURCES, hybrid_table
from experiments.sources import OUTER_FOLDS, outer_folds

#: Our models, by the arguments of `spbn.learn`.
MODELS: dict[str, dict[str, Any]] = {
    "CLG": {"model": "gbn"},
    "SPBN, patience 0": {"model": "spbn", "patience": 0},
    "SPBN, patience 5": {"model": "spbn", "patience": 5},
    "blend, patience 0": {"model": "blend", "margins": "yeo-johnson", "patience": 0},
    "blend, patience 5": {"model": "blend", "margins": "yeo-johnson", "patience": 5},
}
PEER = "PyBNesian"
METHODS = (*MODELS, PEER)
#: PyBNesian is stopped after this many seconds of all cores. If the first fold of a table is, or takes more
#: than a fifth of that, the others are not begun; nor is any of a table with more rows than it could ever do.
LIMIT = 600
OTHER_FOLDS = 120
PEER_ROWS = 10_000
QUICK = ("Liver",)
#: What a method costs, roughly, beside an SPBN search; the order of the cells follows it.
RELATIVE_COST = {"CLG": 0.05, "blend, patience 0": 3.0, "blend, patience 5": 4.0, PEER: 100.0}
#: Tables that would take too long: with fewer parents, and fewer folds.
MAX_PARENTS = {"Adult": 3, "Cover Type": 3, "KDD": 3}
FEWER_FOLDS = {"Adult": 2, "Cover Type": 2, "KDD": 2}
RESULTS = Path(__file__).parent / "results" / "hybrid.csv"


@dataclass(frozen=True)
class Cell:
    """One method on the training rows of one outer fold of a table."""

    data: str
    fold: int
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, those that cost least first."""
    everything = [
        Cell(name, fold, method)
        for name in (QUICK if quick else SOURCES)
        for method in METHODS
        for fold in range(1 if quick else folds_of(name))
        if method != PEER or (find_spec("pybnesian") and len(hybrid_table(data, name)) < PEER_ROWS)
    ]
    return sorted(everything, key=lambda cell: (cell.fold > 0 and cell.method == PEER, _cost(data, cell)))


def folds_of(name: str) -> int:
    """Return how many of the outer folds of a table are run."""
    return FEWER_FOLDS.get(name, OUTER_FOLDS)


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn on the training rows, and evaluate on the test rows."""
    if cell.method == PEER:
        return _run_peer(cell, data)
    frame = hybrid_table(data, cell.data)
    train, test = (frame.iloc[rows] for rows in outer_folds(len(frame))[cell.fold])
    options = MODELS[cell.method] | {"max_parents": MAX_PARENTS.get(cell.data)}
    began = time.process_time()
    network = spbn.learn(train, **options)
    learning = time.process_time() - began
    return _measured(np.asarray(network.logpdf(test)), frame, len(network.structure.arcs), learning)


def _measured(
    log_density: np.ndarray, frame: pd.DataFrame, arcs: int, learning: float
) -> dict[str, float | int | str]:
    """Return the likelihood of the rows that have one, and how many these are."""
    scored = np.isfinite(log_density)
    return {
        "status": "measured",
        "learning": round(learning, 3),
        "loglik": float(log_density[scored].sum()),
        "least": float(log_density[scored].min(initial=0.0)),
        "rows": len(log_density),
        "unscored": int((~scored).sum()),
        "nodes": frame.shape[1],
        "arcs": arcs,
    }


def _run_peer(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Let PyBNesian learn in a process that can be stopped."""
    if cell.fold > 0 and not _is_quick(cell.data):
        return _unmeasured("not begun")
    command = [sys.executable, "-m", "experiments.hybrid", str(data), json.dumps(asdict(cell))]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_limit_processor)
    if done.returncode < 0:
        return _unmeasured("stopped")
    if done.returncode > 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return _unmeasured(f"failed: {last[0]:.200}")
    found: dict[str, float | int | str] = json.loads(done.stdout)
    return found


def _limit_processor() -> None:
    """Let the system end this process when its time is over."""
    seconds = LIMIT * (os.cpu_count() or 1)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def _unmeasured(status: str) -> dict[str, float | int | str]:
    values = ("learning", "loglik", "least", "rows", "unscored", "nodes", "arcs")
    return {"status": status, **dict.fromkeys(values, "")}


def _is_quick(name: str) -> bool:
    """Tell whether PyBNesian's first fold of a table ended soon."""
    if not RESULTS.exists():
        return True
    found = pd.read_csv(RESULTS)
    mine = found[(found["data"] == name) & (found["method"] == PEER) & (found["fold"] == 0)]
    soon = (mine["status"] == "measured") & (mine["learning"] <= OTHER_FOLDS * (os.cpu_count() or 1))
    return bool(soon.all())


def peer_cell(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn the authors' hybrid SPBN, which starts with CKDE nodes, and evaluate it."""
    import pybnesian

    frame = hybrid_table(data, cell.data)
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in outer_folds(len(frame))[cell.fold])
    began = time.process_time()
    found = peer_network(train, pybnesian.ValidatedLikelihood(train, test_ratio=0.2, k=10, seed=0))
    found.fit(train)
    learning = time.process_time() - began
    return _measured(np.asarray(found.logl(test)), frame, len(found.arcs()), learning)


def peer_network(train: pd.DataFrame, score: Any, *, patience: int = 0) -> Any:
    """Return PyBNesian's hybrid SPBN of some rows under a score."""
    import pybnesian

    nodes = list(train.columns)
    discrete = set(train.select_dtypes("category").columns)
    types = [
        (node, pybnesian.DiscreteFactorType() if node in discrete else pybnesian.CKDEType()) for node in nodes
    ]
    operators = pybnesian.OperatorPool([pybnesian.ArcOperatorSet(), pybnesian.ChangeNodeTypeSet()])
    start = pybnesian.SemiparametricBN(nodes, types)
    return pybnesian.GreedyHillClimbing().estimate(operators, score, start, patience=patience)


def _cost(data: Path, cell: Cell) -> float:
    rows, columns = hybrid_table(data, cell.data).shape
    return float(rows**2 * columns**2) * RELATIVE_COST.get(cell.method, 1.0)


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.hybrid import draw

    draw(results, data, out)


if __name__ == "__main__":
    print(json.dumps(peer_cell(Cell(**json.loads(sys.argv[2])), Path(sys.argv[1]))))
