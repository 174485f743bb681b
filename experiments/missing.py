"""What holes cost: values of complete tables are deleted at random, and what is left is learned from.

Every way to deal with holes ends in the same model, a network of blends with margins, so that only the holes
make a difference. Two things are measured: how well the deleted values are predicted (CRPS, in standard
deviations of the column), and how likely the test rows are under the network that is learned.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from experiments.sources import OUTER_FOLDS, outer_folds, uci_table

TABLES = ("Vowel", "Wine", "QSAR fish toxicity", "Parkinsons")
RATES = (0.1, 0.3)
FOLDS = 3
MORE_FOLDS = {"Wine": OUTER_FOLDS}  # of a table that is small enough
DRAWS = 10
FEWEST_ROWS = 20  # without holes, to learn from them alone
LEARN = {"model": "blend", "margins": "yeo-johnson"}
QUICK = ("Wine",)

#: The network that was learned, if it could be, and draws × rows × columns of the completed table.
Filled = tuple["spbn.BayesianNetwork | None", np.ndarray]


@dataclass(frozen=True)
class Cell:
    """One way to deal with holes, on the training rows of one outer fold."""

    data: str
    rate: float
    fold: int
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, those of small tables first."""
    names, rates = (QUICK, RATES[:1]) if quick else (TABLES, RATES)
    names = sorted(names, key=lambda name: uci_table(data, name).size)
    return [
        Cell(name, rate, fold, method)
        for name in names
        for fold in range(1 if quick else MORE_FOLDS.get(name, FOLDS))
        for rate in rates
        for method in METHODS
    ]


def run(cell: Cell, data: Path) -> dict[str, float | int]:
    """Delete values of the training rows, deal with the holes, and see how good that is."""
    frame = uci_table(data, cell.data)
    train, test = (frame.iloc[rows].reset_index(drop=True) for rows in outer_folds(len(frame))[cell.fold])
    holes = np.random.default_rng(cell.fold).random(train.shape) < cell.rate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network, draws = METHODS[cell.method](train.mask(holes))
    if network is None:
        return {"crps": np.nan, "loglik": np.nan, "rows": len(test), "nodes": frame.shape[1]}
    scale = train.std(ddof=0).to_numpy()
    return {
        "crps": float(np.mean(crps(draws / scale, train.to_numpy() / scale)[holes])),
        "loglik": float(network.loglik(test)),
        "rows": len(test),
        "nodes": frame.shape[1],
    }


def crps(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return the continuous ranked probability score of draws, first axis: E|X - x| - E|X - X'| / 2.

    The second term is over different draws, so that their number makes no difference in the mean.
    """
    ordered = np.sort(draws, axis=0)
    n = len(ordered)
    ranks = (2 * np.arange(1, n + 1) - n - 1).reshape(-1, *[1] * (draws.ndim - 1))
    return np.abs(ordered - truth).mean(axis=0) - (ranks * ordered).sum(axis=0) / (n * max(n - 1, 1))


def imputing(frame: pd.DataFrame) -> Filled:
    """Learn from what is there."""
    network = spbn.learn(frame, missing="impute", **LEARN)
    return network, _drawn(network, frame)


def dropping(frame: pd.DataFrame) -> Filled:
    """Learn from the rows without holes."""
    if len(frame.dropna()) < FEWEST_ROWS:
        return None, np.empty(0)
    network = spbn.learn(frame, missing="drop", **LEARN)
    return network, _drawn(network, frame)


def with_means(frame: pd.DataFrame) -> Filled:
    """Fill holes with the means of their columns."""
    filled = frame.fillna(frame.mean())
    return spbn.learn(filled, **LEARN), filled.to_numpy()[None]


def iterating(frame: pd.DataFrame) -> Filled:
    """Fill holes with scikit-learn's IterativeImputer, which draws from Bayesian linear regressions."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    draws = [
        IterativeImputer(sample_posterior=True, random_state=seed).fit_transform(frame)
        for seed in range(DRAWS)
    ]
    return spbn.learn(pd.DataFrame(draws[0], columns=frame.columns), **LEARN), np.stack(draws)


METHODS: dict[str, Callable[[pd.DataFrame], Filled]] = {
    'missing="impute"': imputing,
    'missing="drop"': dropping,
    "means": with_means,
    "IterativeImputer": iterating,
}


def _drawn(network: spbn.BayesianNetwork, frame: pd.DataFrame) -> np.ndarray:
    return np.stack([filled.to_numpy() for filled in network.imputations(frame, n=DRAWS)])


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the table."""
    from experiments.page import signed, table

    results = results.dropna(subset=["loglik"])  # folds with too few complete rows
    by = {"index": ["data", "rate"], "columns": "method"}
    sizes = results.assign(size=results["rows"] * results["nodes"])
    loglik = sizes.pivot_table("loglik", **by, aggfunc="sum") / sizes.pivot_table("size", **by, aggfunc="sum")
    score = results.pivot_table("crps", **by)
    rows = []
    for key in score.index:
        cells_ = [f"{score.loc[key].get(m, np.nan):.3f}" for m in METHODS]
        values = [loglik.loc[key].get(m, np.nan) for m in METHODS]
        rows.append([key[0], f"{100 * key[1]:.0f} %", *cells_, *(signed(v, 3) for v in values)])
    heads = ["table", "missing", *(f"CRPS, {m}" for m in METHODS), *(f"log-density, {m}" for m in METHODS)]
    (out / "missing.md").write_text(table(heads, rows).replace("nan", "–"), "utf-8")
