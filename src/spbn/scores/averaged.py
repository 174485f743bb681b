"""The mean of a score over several tables that are the same but for what was missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from spbn.nodes.families import FamilyBatch
from spbn.numerics.arrays import FloatArray
from spbn.scores.base import Score


@final
class Averaged(Score):
    """The mean of scores of the same columns.

    A search that climbs it does not fall for what one way to fill the holes of a table happens to show.
    """

    def __init__(self, scores: Sequence[Score]) -> None:
        self._scores = tuple(scores)
        super().__init__(scores[0].variables, scores[0].node_types)
        validations = [score.validation for score in scores if score.validation is not None]
        self.validation = Averaged(validations) if validations else None

    def _compute(self, batch: FamilyBatch) -> FloatArray:
        mean: FloatArray = np.mean([score._compute(batch) for score in self._scores], axis=0)
        return mean
