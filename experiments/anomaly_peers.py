"""What a user would pick instead of a network to find anomalies: neighbours, trees, local densities.

Every method is a function from training and test rows (arrays of standardised columns, rows × columns) and a
seed to the scores of the test rows; the greater, the more unusual.
"""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

NEIGHBOURS = 5
LOCAL_NEIGHBOURS = 20


def nearest_neighbours(train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return the distance to the fifth nearest training row."""
    distances, _ = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(train).kneighbors(test)
    return distances[:, -1]


def isolation_forest(train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return how quickly random splits isolate a row."""
    return -IsolationForest(random_state=seed).fit(train).score_samples(test)


def local_outlier_factor(train: np.ndarray, test: np.ndarray, seed: int) -> np.ndarray:
    """Return how much sparser the surroundings of a row are than those of its neighbours."""
    return -LocalOutlierFactor(n_neighbors=LOCAL_NEIGHBOURS, novelty=True).fit(train).score_samples(test)


PEERS = {
    "k-nearest neighbours": nearest_neighbours,
    "isolation forest": isolation_forest,
    "local outlier factor": local_outlier_factor,
}
