"""How good are the probabilities of classes? `SPBNClassifier` beside the classifiers of scikit-learn.

The tables are those of `uci` that have a class. The ten folds are stratified, so that no class is missing
from training rows. Of large tables only some of the folds are run.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold

import spbn
from experiments.classifier_peers import PEERS, fit_peer
from experiments.sources import OUTER_FOLDS, uci_classes, uci_names, uci_table
from spbn.diagnostics.classification import assess

#: Ours, by the arguments of `SPBNClassifier`; all calibrated, with margins, and a network for every class.
MODELS = {
    "GBN": {"model": "gbn"},
    "SPBN": {"model": "spbn"},
    "blend": {"model": "blend"},
}
MOST_PARENTS = 3
#: A second log loss takes smaller probabilities for this one: a forest often says that a class is impossible.
KINDER = 0.001
METHODS = (*MODELS, *PEERS)
#: Folds that are run of tables with at least so many numbers.
FEWER_FOLDS = {150_000: 2, 100_000: 3, 40_000: 5}
QUICK = ("Iris",)


@dataclass(frozen=True)
class Cell:
    """One method on the training rows of one fold of a table."""

    data: str
    fold: int
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, those of the smallest table first."""
    names = QUICK if quick else [name for name in uci_names(data) if uci_classes(data, name) is not None]
    everything = [
        Cell(name, fold, method)
        for name in names
        for method in METHODS
        for fold in range(1 if quick else folds_of(uci_table(data, name)))
    ]
    return sorted(everything, key=lambda cell: _size(data, cell.data))


def folds_of(frame: pd.DataFrame) -> int:
    """Return how many of the ten folds are run."""
    return next((folds for size, folds in FEWER_FOLDS.items() if frame.size >= size), OUTER_FOLDS)


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn on the training rows, and compare the probabilities with the classes of the test rows."""
    frame, classes = uci_table(data, cell.data), uci_classes(data, cell.data).to_numpy()
    names, labels = np.unique(classes, return_inverse=True)
    train, test = stratified_folds(data, cell.data)[cell.fold]
    own = {"temperature": np.nan, "doubt": np.nan, "uncalibrated": np.nan}
    if cell.method in MODELS:
        model = spbn.sklearn.SPBNClassifier(
            **MODELS[cell.method], margins="yeo-johnson", max_parents=MOST_PARENTS
        )
        model.fit(frame.iloc[train], classes[train])
        probabilities = model.predict_proba(frame.iloc[test])
        joint = model.predict_joint_log_proba(frame.iloc[test])
        raw = softmax(joint, axis=1)
        own = {
            "temperature": model.temperature_,
            "doubt": model.doubt_,
            "uncalibrated": assess(raw, labels[test]).log_loss,
        }
    else:
        model = fit_peer(cell.method, frame.to_numpy()[train], classes[train])
        probabilities = np.zeros((len(test), len(names)))  # of classes that it has not seen, too
        probabilities[:, np.searchsorted(names, model.classes_)] = model.predict_proba(frame.to_numpy()[test])
    found = assess(probabilities, labels[test])
    kinder = np.maximum(probabilities, KINDER)
    return {
        "rows": len(test),
        "accuracy": found.accuracy,
        "log_loss": found.log_loss,
        "kinder_log_loss": assess(kinder / kinder.sum(axis=1, keepdims=True), labels[test]).log_loss,
        "brier": found.brier,
        "bins": " ".join(f"{b.rows}:{b.probability:.6f}:{b.correct:.6f}" for b in found.reliability if b),
        **own,
    }


@cache
def stratified_folds(data: Path, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of the ten folds."""
    classes = uci_classes(data, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some classes have fewer rows than there are folds
        folds = StratifiedKFold(OUTER_FOLDS, shuffle=True, random_state=0)
        return list(folds.split(np.empty(len(classes)), classes))


def _size(data: Path, name: str) -> float:
    """Return what a search costs, roughly."""
    rows, columns = uci_table(data, name).shape
    return float(rows**2 * columns**2)


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.classifiers import draw

    draw(results, data, out)
