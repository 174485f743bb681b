"""Estimators for scikit-learn: a density and a classifier."""

from spbn.sklearn.estimators import SPBNClassifier, SPBNDensity

__all__ = ["SPBNClassifier", "SPBNDensity"]
