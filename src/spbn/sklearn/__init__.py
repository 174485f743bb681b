"""Estimators for scikit-learn: a density, populations, and a classifier."""

from spbn.sklearn.estimators import SPBNClassifier, SPBNDensity, SPBNMixture

__all__ = ["SPBNClassifier", "SPBNDensity", "SPBNMixture"]
