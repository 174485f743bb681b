"""Estimators for scikit-learn: a density and a classifier."""

from spbn.sklearn.classifier import SPBNClassifier
from spbn.sklearn.density import SPBNDensity

__all__ = ["SPBNClassifier", "SPBNDensity"]
