"""Scores of structures: sums over families, and greater is better."""

from spbn.scores.base import Score
from spbn.scores.best_type import BestType
from spbn.scores.gaussian import BIC, BGe
from spbn.scores.likelihood import CVLikelihood, HoldoutLikelihood, ValidatedLikelihood

__all__ = ["BIC", "BGe", "BestType", "CVLikelihood", "HoldoutLikelihood", "Score", "ValidatedLikelihood"]
