"""How good the probabilities of a classifier are: confusion, log loss, calibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.lazy import pd

#: Smaller probabilities count as this much, so that one row cannot make the log loss infinite.
LEAST_PROBABILITY = 1e-15
BINS = 10
SHOWN_ROWS = 10
#: Columns of an explanation that come before those of the features.
FACTS = ("predicted", "probability", "runner_up")


@dataclass(frozen=True)
class Bin:
    """Rows whose predicted class has a probability in a range: how many, the mean, and how many are right."""

    rows: int
    probability: float
    correct: float


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the probabilities that a classifier gives to some rows are worth."""

    confusion: IntArray  # how many rows of a class (first axis) were predicted to be of another
    accuracy: float
    log_loss: float  # the mean of -log P(true class)
    brier: float  # the mean over the rows of Σ (P(class) - [class is true])², summed over the classes
    reliability: tuple[Bin | None, ...]  # by the probability of the predicted class, in ten ranges

    @property
    def calibration_error(self) -> float:
        """How far the probability of the predicted class is from the share of correct ones, in the mean."""
        bins = [found for found in self.reliability if found is not None]
        distances = [found.rows * abs(found.correct - found.probability) for found in bins]
        return sum(distances) / sum(found.rows for found in bins)


def assess(probabilities: FloatArray, truth: IntArray) -> Assessment:
    """Compare probabilities (rows × classes) with the true classes, given by their numbers."""
    from sklearn.metrics import confusion_matrix

    predicted = probabilities.argmax(axis=1)
    right = predicted == truth
    given = np.arange(len(truth))
    clipped = np.maximum(probabilities, LEAST_PROBABILITY)
    errors = probabilities - np.eye(probabilities.shape[1])[truth]
    certainty = probabilities[given, predicted]
    places = np.minimum((certainty * BINS).astype(np.int64), BINS - 1)
    ranges = [places == place for place in range(BINS)]
    return Assessment(
        confusion=confusion_matrix(truth, predicted, labels=np.arange(probabilities.shape[1])),
        accuracy=float(np.mean(right)),
        log_loss=float(-np.log(clipped[given, truth] / clipped.sum(axis=1)).mean()),
        brier=float((errors**2).sum(axis=1).mean()),
        reliability=tuple(
            Bin(int(rows.sum()), float(certainty[rows].mean()), float(right[rows].mean()))
            if rows.any()
            else None
            for rows in ranges
        ),
    )


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a classifier says about some rows, and the truth as far as it is known."""

    classes: npt.NDArray[Any]
    probabilities: FloatArray  # rows × classes
    explanation: pd.DataFrame  # what `SPBNClassifier.explain` says
    truth: npt.NDArray[Any] | None  # the class of every row

    @cached_property
    def known(self) -> BoolArray:
        """Tell which rows are of a class that the classifier knows."""
        if self.truth is None:
            return np.zeros(len(self.probabilities), dtype=np.bool_)
        return np.isin(self.truth, self.classes)

    @cached_property
    def assessment(self) -> Assessment | None:
        """How good the probabilities are, for rows of known classes; None if there are none."""
        if self.truth is None or not self.known.any():
            return None
        labels = np.searchsorted(self.classes, self.truth[self.known])
        return assess(self.probabilities[self.known], labels)

    @property
    def frame(self) -> pd.DataFrame:
        """The predictions as a table: the class if it is known, the prediction, and all probabilities."""
        columns: dict[str, Any] = {} if self.truth is None else {"truth": self.truth}
        columns |= {name: self.explanation[name].to_numpy() for name in ("predicted", "probability")}
        columns |= {f"P({name})": p for name, p in zip(self.classes, self.probabilities.T, strict=True)}
        return pd.DataFrame(columns, index=self.explanation.index)

    def wrong_rows(self) -> IntArray:
        """Return rows that are predicted wrongly, those that seemed most certain first."""
        if self.truth is None:
            return np.empty(0, dtype=np.int64)
        wrong = np.flatnonzero(self.explanation["predicted"].to_numpy() != self.truth)
        certainty = self.explanation["probability"].to_numpy()[wrong]
        return wrong[np.argsort(-certainty, kind="stable")][:SHOWN_ROWS]

    def uncertain_rows(self) -> IntArray:
        """Return the rows whose most likely class is least likely."""
        return np.argsort(self.explanation["probability"].to_numpy(), kind="stable")[:SHOWN_ROWS]

    def reasons(self, row: int, most: int = 5) -> list[tuple[str, float]]:
        """Return what speaks most for a row's predicted class against the runner-up, or against it."""
        ratios = self.explanation.drop(columns=list(FACTS)).iloc[row]
        largest = ratios.abs().sort_values(ascending=False, kind="stable").index[:most]
        return [(str(name), float(ratios[name])) for name in largest]
