"""A density estimator for scikit-learn, and what all estimators share: the arguments of `learn`."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from spbn._base.arrays import FloatArray, Seed
from spbn._base.checks import either
from spbn.learning.learn import learn_network
from spbn.learning.settings import OPTIONS, LearnSettings, require_known, write_docstring
from spbn.network import BayesianNetwork
from spbn.tables.reader import has_categories

if TYPE_CHECKING:
    import pandas as pd

#: Arguments of `learn` whose names are methods here.
RENAMED = {"score": "score_function"}


class NetworkEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters are arguments of `learn`, and perhaps some of its own.

    The constructor stores its parameters and does nothing else. scikit-learn reads its signature, which is
    made from the settings of `learn`, and so are the descriptions of the parameters in the docstring.
    """

    #: Parameters that are not arguments of `learn`, and their defaults.
    _own: ClassVar[Mapping[str, object]] = {}
    #: Defaults that differ from those of `learn`.
    _defaults: ClassVar[Mapping[str, object]] = {}
    #: Arguments of `learn` that are not parameters.
    _without: ClassVar[Collection[str]] = ()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "__init__" in vars(cls):
            return
        options = cls._options()
        defaults = {**{RENAMED.get(name, name): default for name, default in options.items()}, **cls._own}

        def __init__(self: NetworkEstimator, **parameters: object) -> None:  # noqa: N807
            require_known(cls.__name__, parameters, defaults)
            for name, default in defaults.items():
                setattr(self, name, parameters.get(name, default))

        kinds = inspect.Parameter
        own = [kinds(name, kinds.KEYWORD_ONLY, default=default) for name, default in defaults.items()]
        signature = inspect.Signature([kinds("self", kinds.POSITIONAL_OR_KEYWORD), *own])
        __init__.__signature__ = signature  # type: ignore[attr-defined]
        type.__setattr__(cls, "__init__", __init__)
        write_docstring(cls, options, RENAMED)

    @classmethod
    def _options(cls) -> dict[str, object]:
        """Return the arguments of `learn` that are parameters, and their defaults."""
        return {
            name: cls._defaults.get(name, option.default)
            for name, option in OPTIONS.items()
            if option.in_estimators and name not in cls._without
        }

    def _settings(self) -> LearnSettings:
        """Return the settings of `learn`, checked."""
        options = {name: getattr(self, RENAMED.get(name, name)) for name in self._options()}
        return LearnSettings.of(type(self).__name__, options)


def settings_for(settings: LearnSettings, rows: int) -> LearnSettings:
    """Return settings for so many rows: with fewer training rows than folds, every row is a fold."""
    folds, validation = settings.folds, settings.validation
    if not isinstance(folds, int) or not isinstance(validation, int | float):
        return settings
    return settings.replace(folds=min(folds, rows - round(rows * validation)))


class SPBNDensity(DensityMixin, NetworkEstimator):  # type: ignore[misc]
    """The joint density of the features, as a semiparametric Bayesian network.

    Leaving out rows and columns (`missing` and `drop` of `spbn.learn`) is left to the pipeline, and there is
    no `checkpoint`, which all clones in a grid search would share. Features are named as in the frame that
    the estimator is fitted to, and ``x0``, ``x1``, ... if that is an array. Columns of a frame that hold
    text, categories or truth values are discrete nodes. If there are fewer training rows than folds, every
    training row is a fold of its own.

    Parameters
    ----------
    {options}
    missing
        "error" refuses rows to score that have holes. With "integrate", they get the log-density of the
        values that are present.

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
    >>> density = spbn.sklearn.SPBNDensity(model="gbn").fit(data)
    >>> density.score_samples(data).shape
    (200,)
    """

    _own: ClassVar[Mapping[str, object]] = {"missing": "error"}

    missing: str
    seed: Seed
    network_: BayesianNetwork
    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> SPBNDensity:
        """Learn the network; `y` is ignored."""
        features = self._features(X, reset=True)
        either("missing", self.missing, ("error", "integrate"))
        self.network_ = learn_network(features, settings_for(self._settings(), _num_samples(X)))
        return self

    def score_samples(self, X: Any) -> FloatArray:
        """Log-density of every row, or of the values that are present in it."""
        check_is_fitted(self)
        features = self._features(X, reset=False)
        return np.asarray(self.network_.logpdf(features, missing=self.missing, seed=self.seed))

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
