"""A density estimator for scikit-learn: pipelines, grid searches, clones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from spbn._base.arrays import FloatArray, Seed
from spbn.errors import ArgumentError
from spbn.graphs.dag import Arc
from spbn.kernels.estimates import BandwidthRule
from spbn.learning.learn import learn
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.structure import Structure
from spbn.tables.frames import has_categories

if TYPE_CHECKING:
    import pandas as pd


class SPBNDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """The joint density of the features, as a semiparametric Bayesian network.

    The parameters are those of `spbn.learn`, but its `score` is called `score_function`, because `score` is a
    method here. Leaving out rows and columns (`missing` and `drop`) is left to the pipeline, and there is no
    `checkpoint`, which all clones in a grid search would share. With ``missing="integrate"``, rows to score
    may have holes, and get the log-density of the values that are present. Features are named as in the frame
    that the estimator is fitted to, and ``x0``, ``x1``, ... if that is an array. Columns of a frame that hold
    text, categories or truth values are discrete nodes. If there are fewer training rows than folds, every
    training row is a fold of its own.

    Attributes
    ----------
    network_
        The fitted `BayesianNetwork`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn; there is no `feature_names_in_` for an array.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> density = spbn.SPBNDensity(model="gbn").fit(data)
    >>> density.score_samples(data).shape
    (200,)
    """

    network_: BayesianNetwork
    n_features_in_: int

    def __init__(
        self,
        *,
        model: str = "spbn",
        algorithm: str = "hc",
        test: str = "rcot",
        start: NodeType | str | Structure = "ckde",
        types: Iterable[NodeType | str] | None = None,
        score_function: str | None = None,
        folds: Any = 10,
        validation: Any = 0.2,
        patience: int = 5,
        epsilon: float = 0.0,
        max_seconds: float | None = None,
        alpha: float = 0.05,
        max_parents: int | None = None,
        required_arcs: Iterable[Arc] = (),
        forbidden_arcs: Iterable[Arc] = (),
        bandwidth: BandwidthRule = "scott",
        margins: str = "none",
        discrete: Sequence[str] = (),
        smoothing: float = 1.0,
        missing: str = "error",
        seed: Seed = 0,
        engine: str = "auto",
    ) -> None:
        self.model = model
        self.algorithm = algorithm
        self.test = test
        self.start = start
        self.types = types
        self.score_function = score_function
        self.folds = folds
        self.validation = validation
        self.patience = patience
        self.epsilon = epsilon
        self.max_seconds = max_seconds
        self.alpha = alpha
        self.max_parents = max_parents
        self.required_arcs = required_arcs
        self.forbidden_arcs = forbidden_arcs
        self.bandwidth = bandwidth
        self.margins = margins
        self.discrete = discrete
        self.smoothing = smoothing
        self.missing = missing
        self.seed = seed
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> SPBNDensity:
        """Learn the network; `y` is ignored."""
        features = self._features(X, reset=True)
        options = self.get_params(deep=False)
        options["score"] = options.pop("score_function")
        if options.pop("missing") not in ("error", "integrate"):
            raise ArgumentError(f"missing must be 'error' or 'integrate'. Got {self.missing!r} instead.")
        if isinstance(self.folds, int) and isinstance(self.validation, int | float):
            rows = _num_samples(X)
            options["folds"] = min(self.folds, rows - round(rows * self.validation))
        self.network_ = learn(features, **options)
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of every row, or of the values that are present in it."""
        check_is_fitted(self)
        features = self._features(X, reset=False)
        return self.network_.logpdf(features, missing=self.missing, seed=self.seed)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the log-likelihood of all rows together."""
        return float(self.score_samples(X).sum())

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> pd.DataFrame:
        """Draw rows, with the features named as in `fit`."""
        check_is_fitted(self)
        return self.network_.sample(n_samples, seed=random_state)

    def _features(self, X: Any, *, reset: bool) -> Any:
        """Return the features by name: as they are if they are a frame with categories, else as numbers."""
        if has_categories(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        checks: dict[str, Any] = {"ensure_min_samples": 4} if reset else {}
        if not reset and self.missing == "integrate":
            checks = {"ensure_all_finite": "allow-nan"}
        features = validate_data(self, X, dtype=np.float64, reset=reset, **checks)
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(features.shape[1])])
        return dict(zip(names, features.T, strict=True))
