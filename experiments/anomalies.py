"""How well do networks find anomalies? Beside neighbours, isolation forests and local outlier factors.

The tables are those of ADBench: half of the normal rows are for learning, the other half and all anomalies
are for testing. Every method sees the same rows and columns. A network scores a row by its log-density, and
also by its drops alone: how far the log-densities of its nodes are below what is typical of them, with no
credit for nodes that are above.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

import spbn
from experiments import densities
from experiments.anomaly_peers import PEERS
from spbn.diagnostics import UnusualRow, UnusualRows, unusual_rows

#: Our models, by the arguments of `spbn.learn`.
MODELS = {name: densities.MODELS[name] for name in ("GBN", "SPBN", "blend", "blend, margins")}
METHODS = (*MODELS, *PEERS)
HALVES = 5
MOST_ROWS = 2_000  # to learn from
TIED = 0.1  # share of the rows that one value must have for its column to count as tied
QUICK = ("45_wine", "39_vertebral", "14_glass")


@dataclass(frozen=True)
class Cell:
    """One method on one random half of the normal rows of a table; `half` is the seed."""

    data: str
    half: int
    method: str


@dataclass(frozen=True)
class Halves:
    """Rows to learn from and rows to test, standardised, with names for the columns.

    Attributes
    ----------
    rows
        The test rows' numbers in the file.
    original
        The test rows in the units of the file.
    anomalous
        Which test rows are anomalies.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    rows: np.ndarray
    original: pd.DataFrame
    anomalous: np.ndarray


def names(data: Path) -> list[str]:
    """Return the names of the tables."""
    return sorted(path.stem for path in data.glob("*.npz"))


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, the smallest tables first."""
    tables, halves = (QUICK, 1) if quick else (names(data), HALVES)
    return [
        Cell(name, half, method)
        for name in sorted(tables, key=lambda name: (data / f"{name}.npz").stat().st_size)
        for half in range(halves)
        for method in METHODS
    ]


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn from normal rows, and see how far anomalies are told from other normal rows."""
    halves = halve(*read(data, cell.data), seed=cell.half)
    sizes = {
        "train": len(halves.train),
        "test": len(halves.test),
        "anomalies": int(halves.anomalous.sum()),
        "columns": halves.train.shape[1],
        "tied_columns": tied_columns(halves.train),
    }
    if cell.method in PEERS:
        scores = PEERS[cell.method](halves.train.to_numpy(), halves.test.to_numpy(), cell.half)
        found = {"auc": area(halves, scores), "auc_of_drops": "", "row": "", "is_anomaly": "", "reasons": ""}
    else:
        unusual = unusual_rows(spbn.learn(halves.train, **MODELS[cell.method]), halves.test, top=1)
        found = {
            "auc": area(halves, -unusual.logpdf),
            "auc_of_drops": area(halves, drops(unusual)),
            **_described(unusual.rows[0], halves),
        }
    return {**found, **sizes}


def area(halves: Halves, scores: np.ndarray) -> float:
    """Return the area under the ROC curve of the test rows."""
    return float(roc_auc_score(halves.anomalous, scores))


def drops(unusual: UnusualRows) -> np.ndarray:
    """Return how far the nodes of every row are below what is typical of them, in total."""
    typical = np.array([unusual.typical[node] for node in unusual.nodes])
    return np.maximum(typical - unusual.contributions, 0.0).sum(axis=1)


def tied_columns(train: pd.DataFrame) -> int:
    """Return in how many columns a tenth of the rows or more have the same value."""
    return sum(int(train[name].value_counts(normalize=True).iloc[0] >= TIED) for name in train.columns)


@lru_cache(maxsize=1)
def read(data: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a table, and which of them are anomalies."""
    with np.load(data / f"{name}.npz") as file:
        return file["X"].astype(float), file["y"] == 1


def halve(values: np.ndarray, anomalous: np.ndarray, *, seed: int) -> Halves:
    """Draw half of the normal rows to learn from, and leave out columns that are constant there.

    A column counts as constant if all of these rows but one have the same value, because the one may be
    needed to validate what is learned from the others.
    """
    normal = np.random.default_rng(seed).permutation(np.flatnonzero(~anomalous))
    middle = len(normal) // 2
    train, test = normal[:middle][:MOST_ROWS], np.sort(np.append(normal[middle:], np.flatnonzero(anomalous)))
    varies = np.array(
        [np.unique(column, return_counts=True)[1].max() < len(train) - 1 for column in values[train].T]
    )
    columns = [f"column {k}" for k in np.flatnonzero(varies) + 1]
    frame = pd.DataFrame(values[:, varies], columns=columns)
    centre, scale = frame.iloc[train].mean(), frame.iloc[train].std(ddof=0)
    standardised = (frame - centre) / scale
    return Halves(
        standardised.iloc[train].reset_index(drop=True),
        standardised.iloc[test].reset_index(drop=True),
        test,
        frame.iloc[test].reset_index(drop=True),
        anomalous[test],
    )


def _described(worst: UnusualRow, halves: Halves) -> dict[str, float | int | str]:
    """Say which row is the most unusual, whether it is an anomaly, and why it is unusual."""
    values = halves.original.iloc[worst.position]
    return {
        "row": int(halves.rows[worst.position]),
        "is_anomaly": int(halves.anomalous[worst.position]),
        "reasons": "; ".join(
            f"{reason.node} = {values[reason.node]:.4g} (z = {reason.value:.1f}, drop {reason.drop:.1f})"
            for reason in worst.reasons
        ),
    }


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and the figure."""
    from experiments.figures.anomalies import draw

    draw(results, out)
