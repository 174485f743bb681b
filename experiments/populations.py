"""Do rows come from populations? Networks with a hidden class, beside mixtures and what finds clusters.

Densities are compared on the 28 UCI tables of the paper and on ten tables that come with statsmodels and
scikit-learn, all without ties, as in `densities`. Where a table has a class column, which nobody sees, the
classes that are found are compared with it by the adjusted Rand index. Whatever a method chooses, it chooses
on training rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

import spbn
from experiments.densities import without_ties
from experiments.density_peers import gaussian_mixture
from experiments.sources import outer_folds, uci_classes, uci_names, uci_table
from spbn.tables.reader import as_table
from spbn.transforms import Margins, MarginsPlan

#: Networks, by the arguments of `spbn.learn`.
NETWORKS = {
    "without a class": {"model": "auto", "margins": "auto"},
    "hidden class": {"model": "auto", "margins": "auto", "hidden": "auto"},
}
PEERS = ("Gaussian mixture", "Gaussian mixture, margins", "Bayesian Gaussian mixture")
CLUSTERS = ("k-means", "HDBSCAN")
METHODS = (*NETWORKS, *PEERS, *CLUSTERS)
FOLDS = (0, 1)
#: Tables of statsmodels, but for one of scikit-learn.
PACKAGED = (
    "anes96",
    "ccard",
    "diabetes",
    "engel",
    "fair",
    "heart",
    "macrodata",
    "modechoice",
    "randhie",
    "star98",
)
MOST_ROWS = 5_000  # of a table from a package
LEAST_LEVELS = 6  # values of a column, for it to be taken for a number
MOST_COMPONENTS = 20
QUICK = "Iris"


@dataclass(frozen=True)
class Cell:
    """One method on the training rows of one outer fold of a table."""

    data: str
    fold: int
    method: str


def cells(data: Path, quick: bool) -> list[Cell]:
    """Return all cells, small tables first."""
    names = (
        [QUICK] if quick else sorted((*uci_names(data), *PACKAGED), key=lambda name: rows_of(data, name).size)
    )
    return [
        Cell(name, fold, method)
        for name in names
        for fold in FOLDS
        for method in METHODS
        if method not in CLUSTERS or classes_of(data, name) is not None
    ]


def run(cell: Cell, data: Path) -> dict[str, float | int | str]:
    """Learn on the training rows; return the log-density of the test rows, and how well classes are found."""
    frame, truth = rows_of(data, cell.data), classes_of(data, cell.data)
    train_rows, test_rows = outer_folds(len(frame))[cell.fold]
    train, test = frame.iloc[train_rows], frame.iloc[test_rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log_density, labels = FUNCTIONS[cell.method](train, test)
    known = None if truth is None or labels is None else truth.iloc[train_rows]
    return {
        "loglik": np.nan if log_density is None else float(np.sum(log_density)),
        "rows": len(test),
        "nodes": frame.shape[1],
        "classes": 0 if labels is None else len(np.unique(labels)),
        "rand": np.nan if known is None else float(adjusted_rand_score(known, labels)),
    }


Found = tuple[np.ndarray | None, np.ndarray | None]


def network(train: pd.DataFrame, test: pd.DataFrame, **options: object) -> Found:
    """Learn a network, with a hidden class or without."""
    found = spbn.learn(train, **options)
    one = np.zeros(len(train), dtype=int)
    labels = one if found.hidden is None else found.classes(train)["class"].cat.codes.to_numpy()
    return np.asarray(found.logpdf(test)), labels


def mixture(train: pd.DataFrame, test: pd.DataFrame) -> Found:
    """Fit a Gaussian mixture whose components predict a fifth of the training rows best."""
    return gaussian_mixture(train.to_numpy(), test.to_numpy()), None


def mixture_with_margins(train: pd.DataFrame, test: pd.DataFrame) -> Found:
    """Fit the same to columns that are transformed as those of the networks are."""
    rows, new = as_table(train, training=True), as_table(test, training=True)
    margins = MarginsPlan("auto").fit(rows) or Margins({})
    moved, slopes = margins.transformed(rows), margins.log_slopes(new, new.names).sum(axis=0)
    return gaussian_mixture(moved.columns.T, margins.transformed(new).columns.T) + slopes, None


def bayesian_mixture(train: pd.DataFrame, test: pd.DataFrame) -> Found:
    """Fit scikit-learn's mixture that chooses the number of its components by a Dirichlet process."""
    centre, scale = train.mean(), train.std()
    a, b = ((rows - centre) / scale for rows in (train, test))
    most = min(MOST_COMPONENTS, len(train) // 5)
    found = BayesianGaussianMixture(n_components=most, random_state=0, max_iter=500).fit(a.to_numpy())
    return found.score_samples(b.to_numpy()) - np.log(scale).sum(), found.predict(a.to_numpy())


def k_means(train: pd.DataFrame, test: pd.DataFrame) -> Found:
    """Find the number of clusters with the best mean silhouette."""
    from sklearn.metrics import silhouette_score

    a = ((train - train.mean()) / train.std()).to_numpy()
    some = np.random.default_rng(0).permutation(len(a))[:MOST_ROWS]
    fits = [KMeans(k, n_init=5, random_state=0).fit(a) for k in range(2, 9)]
    best = max(fits, key=lambda fit: silhouette_score(a[some], fit.labels_[some]))
    return None, best.labels_


def hdbscan(train: pd.DataFrame, test: pd.DataFrame) -> Found:
    """Find clusters by density; rows that are in none are a cluster of their own."""
    a = ((train - train.mean()) / train.std()).to_numpy()
    return None, HDBSCAN(min_cluster_size=max(5, len(a) // 50), copy=True).fit_predict(a)


def _network(options: dict[str, str]) -> Callable[[pd.DataFrame, pd.DataFrame], Found]:
    return lambda train, test: network(train, test, **options)


FUNCTIONS: dict[str, Callable[[pd.DataFrame, pd.DataFrame], Found]] = {
    **{name: _network(options) for name, options in NETWORKS.items()},
    "Gaussian mixture": mixture,
    "Gaussian mixture, margins": mixture_with_margins,
    "Bayesian Gaussian mixture": bayesian_mixture,
    "k-means": k_means,
    "HDBSCAN": hdbscan,
}


@lru_cache(maxsize=64)
def rows_of(data: Path, name: str) -> pd.DataFrame:
    """Return a table without ties and without its class."""
    frame = packaged(name) if name in PACKAGED else uci_table(data, name)
    return without_ties(frame, name)


def classes_of(data: Path, name: str) -> pd.Series | None:
    """Return the class column of a table; None if there is none, or it has too many values."""
    found = None if name in PACKAGED else uci_classes(data, name)
    return found if found is not None and found.nunique() <= len(found) // 10 else None


def packaged(name: str) -> pd.DataFrame:
    """Return the numeric columns of a table that comes with a package, and at most some of its rows."""
    if name == "diabetes":
        from sklearn.datasets import load_diabetes

        frame = load_diabetes(as_frame=True).data
    else:
        frame = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    frame = frame.select_dtypes("number").dropna().astype(float)
    frame = frame.loc[:, frame.nunique() >= LEAST_LEVELS]
    if len(frame) > MOST_ROWS:
        frame = frame.sample(MOST_ROWS, random_state=0)
    return frame.reset_index(drop=True)


def render(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write the tables and figures."""
    from experiments.figures.populations import draw

    draw(results, out)
