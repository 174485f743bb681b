"""How good are the densities? Blend nodes and margins beside the paper's models and what others would use.

The tables and outer folds are those of `uci`. Columns with ties flatter whatever can put a narrow peak on a
value, so that every method is also run on tables without ties: uniform noise of one rounding step is added
to their columns. What the paper's models do on the tables as they are is in the results of `uci`. What the
blends of version 0.2 did, which had neither curves nor tails, is kept under names of their own.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from experiments.density_peers import PEERS
from experiments.sources import OUTER_FOLDS, outer_folds, uci_names, uci_table
from spbn.nodes import Blend

#: Our models, by the arguments of `spbn.learn`.
MODELS = {
    "GBN": {"model": "gbn"},
    "KDEBN": {"model": "kdebn"},
    "SPBN": {"model": "spbn"},
    "blend": {"model": "blend"},
    "blend, margins": {"model": "blend", "margins": "yeo-johnson"},
    "auto": {"model": "auto"},
}
METHODS = (*MODELS, *PEERS)
#: Results of version 0.2, which are kept and not run again: what they are compared with, by their names.
BEFORE = {"blend 0.2": "blend", "blend 0.2, margins": "blend, margins"}
#: What `uci` calls the paper's models: the algorithm, the model and the patience.
PAPER = {"GBN": ("HC-BIC", "GBN", 0), "KDEBN": ("HC", "KDEBN", 5), "SPBN": ("HC", "SPBN-CKDE", 5)}
#: Methods that have run on all folds, by which ranks are computed.
RANKED = (*PAPER, *BEFORE, *PEERS)
#: What a blend consists of: parts of the names of its components.
PARTS = ("kernels", "linear", "curve", "local", "tails")
VERSIONS = ("raw", "no ties")
QUICK = ("Iris",)
#: What a method costs, roughly, beside a KDEBN search; the order of the cells follows it.
RELATIVE_COST = {"GBN": 0.01, "auto": 0.5, "blend": 1.5, "blend, margins": 1.0, "vine, parametric": 4.0}
#: Where a vine would take hours.
TOO_LONG = {"Spambase", "Waveform-Noise", "Cardiotocography"}
#: Folds that are run of tables with at least so many values; all methods but blends with margins run fewer.
FEWER_FOLDS = {100_000: 1, 10_000: 2}
FEWEST_FOLDS = 2  # of blends with margins and of the default model, which has no more
COMPARED = "blend, margins"
DEFAULT = "auto"


@dataclass(frozen=True)
class Cell:
    """One method on the training rows of one outer fold of one version of a table."""

    data: str
    version: str
    fold: int
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, those with published values beside them first, and then those that cost least."""
    names, folds = (QUICK, 1) if quick else (uci_names(data), OUTER_FOLDS)
    everything = [
        Cell(name, version, fold, method)
        for name in names
        for version in VERSIONS
        for method in METHODS
        for fold in range(min(folds, _folds(data, name, version, method)))
        if not (name in TOO_LONG and method.startswith("vine")) and not (version == "raw" and method in PAPER)
    ]
    return sorted(everything, key=lambda cell: _cost(data, cell))


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn on the training rows, and evaluate on the test rows."""
    frame = table(data, cell.data, cell.version)
    train, test = (frame.iloc[rows] for rows in outer_folds(len(frame))[cell.fold])
    if cell.method in MODELS:
        network = spbn.learn(train, **MODELS[cell.method])
        log_density, arcs = np.asarray(network.logpdf(test)), len(network.structure.arcs)
        weights = mean_weights(network)
    else:
        log_density, arcs = PEERS[cell.method](train.to_numpy(), test.to_numpy()), 0
        weights = dict.fromkeys(PARTS, math.nan)
    return {
        "loglik": float(log_density.sum()),
        "least": float(log_density.min()),
        "rows": len(test),
        "nodes": frame.shape[1],
        "arcs": arcs,
        **weights,
    }


def mean_weights(network: spbn.BayesianNetwork) -> dict[str, float]:
    """Return what blends that have parents consist of, on average over the nodes."""
    blends = [cpd.weights for cpd in network.cpds.values() if isinstance(cpd, Blend) and cpd.parents]
    return {
        part: sum(w for weights in blends for name, w in weights.items() if part in name) / len(blends)
        if blends
        else math.nan
        for part in PARTS
    }


@lru_cache(maxsize=4)
def table(data: Path, name: str, version: str) -> pd.DataFrame:
    """Return a table as it is, or without ties."""
    frame = uci_table(data, name)
    return frame if version == "raw" else without_ties(frame, name)


def without_ties(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Add uniform noise of one rounding step to every column with ties."""
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))
    columns = {}
    for column in frame.columns:
        values = frame[column].to_numpy()
        noise = rng.uniform(-0.5, 0.5, len(values))
        columns[column] = values + noise * rounding_step(values)
    return pd.DataFrame(columns, index=frame.index)


def rounding_step(values: np.ndarray) -> float:
    """Return the least difference of different values, and 0 where no two are the same."""
    distinct = np.unique(values)
    if len(distinct) == len(values):
        return 0.0
    gaps = np.diff(distinct)
    return float(gaps[gaps > 1e-9 * (distinct[-1] - distinct[0])].min())


def _folds(data: Path, name: str, version: str, method: str) -> int:
    if method == DEFAULT:
        return FEWEST_FOLDS
    values = uci_table(data, name).size
    folds = next((folds for size, folds in FEWER_FOLDS.items() if values >= size), OUTER_FOLDS)
    return max(folds, FEWEST_FOLDS) if method == COMPARED else folds


def _cost(data: Path, cell: Cell) -> tuple[bool, float]:
    rows, columns = uci_table(data, cell.data).shape
    compared = (cell.version, cell.method) == ("raw", COMPARED)
    return not compared, float(rows**2 * columns**2) * RELATIVE_COST.get(cell.method, 1.0)


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.densities import draw

    draw(results, data, out)
