"""Classifiers of scikit-learn that a user would pick instead, with their default settings."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

#: QDA as it is, and with covariances that are shrunk; the first that works is taken.
QDA_SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"solver": "eigen", "shrinkage": "auto"},
    {"solver": "eigen", "shrinkage": 0.1},
)

PEERS: dict[str, Callable[[], Any]] = {
    "GaussianNB": GaussianNB,
    "LDA": LinearDiscriminantAnalysis,
    "QDA": lambda: None,
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=5_000)),
    "random forest": lambda: RandomForestClassifier(random_state=0),
    "gradient boosting": lambda: GradientBoostingClassifier(random_state=0),
    "histogram boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def fit_peer(name: str, features: np.ndarray, classes: np.ndarray) -> Any:
    """Fit a classifier."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # collinear columns, classes with few rows
        if name == "QDA":
            return _qda(features, classes)
        return PEERS[name]().fit(features, classes)


def _qda(features: np.ndarray, classes: np.ndarray) -> Any:
    """Fit QDA, shrinking covariances only if it does not work without; one row has no covariance."""
    names, counts = np.unique(classes, return_counts=True)
    several = np.isin(classes, names[counts > 1])
    for settings in QDA_SETTINGS:
        model = make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis(**settings))
        try:
            model.fit(features[several], classes[several])
        except np.linalg.LinAlgError:
            continue
        if np.isfinite(model.predict_proba(features)).all():
            return model
    raise ValueError("QDA cannot be fitted.")
