"""How good the probabilities of a classifier are: confusion, log loss, calibration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spbn.numerics.arrays import FloatArray, IntArray

#: Smaller probabilities count as this much, so that one row cannot make the log loss infinite.
LEAST_PROBABILITY = 1e-15
BINS = 10


@dataclass(frozen=True)
class Bin:
    """Rows whose predicted class has a probability in a range: how many, the mean, and how many are right."""

    rows: int
    probability: float
    correct: float


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the probabilities that a classifier gives to some rows are worth.

    Attributes
    ----------
    confusion
        How many rows of a class (first axis) were predicted to be of another.
    accuracy
        The share of rows whose most likely class is the true one.
    log_loss
        The mean of -log P(true class).
    brier
        The mean over the rows of Σ (P(class) - [class is true])², summed over the classes.
    reliability
        Rows by the probability of the predicted class, in ten ranges; None where there are none.
    """

    confusion: IntArray
    accuracy: float
    log_loss: float
    brier: float
    reliability: tuple[Bin | None, ...]

    @property
    def calibration_error(self) -> float:
        """How far the probability of the predicted class is from the share of correct ones, in the mean."""
        bins = [found for found in self.reliability if found is not None]
        distances = [found.rows * abs(found.correct - found.probability) for found in bins]
        return sum(distances) / sum(found.rows for found in bins)


def assess(probabilities: FloatArray, truth: IntArray) -> Assessment:
    """Compare probabilities (rows × classes) with the true classes, given by their numbers."""
    rows, classes = probabilities.shape
    predicted = probabilities.argmax(axis=1)
    confusion = np.zeros((classes, classes), dtype=np.int64)
    np.add.at(confusion, (truth, predicted), 1)
    clipped = np.maximum(probabilities, LEAST_PROBABILITY)
    clipped = clipped / clipped.sum(axis=1, keepdims=True)
    given = np.arange(rows)
    errors = probabilities.copy()
    errors[given, truth] -= 1.0
    return Assessment(
        confusion=confusion,
        accuracy=float(np.mean(predicted == truth)),
        log_loss=float(-np.log(clipped[given, truth]).mean()),
        brier=float((errors**2).sum(axis=1).mean()),
        reliability=_reliability(probabilities[given, predicted], predicted == truth),
    )


def _reliability(probability: FloatArray, correct: FloatArray) -> tuple[Bin | None, ...]:
    places = np.minimum((probability * BINS).astype(np.int64), BINS - 1)
    found: list[Bin | None] = []
    for place in range(BINS):
        rows = places == place
        found.append(
            Bin(int(rows.sum()), float(probability[rows].mean()), float(correct[rows].mean()))
            if rows.any()
            else None
        )
    return tuple(found)
