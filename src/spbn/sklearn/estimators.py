"""Estimators for scikit-learn: a density, a classifier, and what they share: the arguments of `learn`."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn._base.checks import either
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, DataError, argument, quoted
from spbn.graphs.patterns import is_pattern
from spbn.learning.learn import learn_network
from spbn.learning.settings import OPTIONS, LearnSettings, require_known, write_docstring
from spbn.network import BayesianNetwork
from spbn.sklearn.class_densities import STRUCTURES, Calibration, ClassDensities, informative, settings_for
from spbn.tables.reader import as_table, frame_like, has_categories
from spbn.tables.table import Table

#: Arguments of `learn` whose names are methods here.
RENAMED = {"score": "score_function"}
CALIBRATION_FOLDS = 5


class NetworkEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters are arguments of `learn`, and perhaps some of its own.

    The constructor stores its parameters and does nothing else. scikit-learn reads its signature, which is
    made from the settings of `learn`, and so are the descriptions of the parameters in the docstring.
    """

    #: Parameters that are not arguments of `learn`, and those with another default.
    _own: ClassVar[Mapping[str, object]] = {}
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
            name: option.default
            for name, option in OPTIONS.items()
            if option.in_estimators and name not in cls._without
        }

    def _settings(self) -> LearnSettings:
        """Return the settings of `learn`, checked."""
        options = {name: getattr(self, RENAMED.get(name, name)) for name in self._options()}
        return LearnSettings.of(type(self).__name__, options)

    def _columns(self, features: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of an array by the names of the features."""
        names = getattr(self, "feature_names_in_", [f"x{i}" for i in range(features.shape[1])])
        return dict(zip(names, features.T, strict=True))


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
        settings = settings_for(self._settings(), _num_samples(X))
        if settings.prepare == "none":  # holes are refused, and not with advice to `learn`
            as_table(features, training=True, drop=settings.drop, discrete=settings.discrete)
        self.network_ = learn_network(features, settings)
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
        return self._columns(features)


class SPBNMixture(SPBNDensity):
    """Populations that rows come from: a density of the features with a hidden class.

    It is an `SPBNDensity` that also says to which class a row belongs. By default the number of classes is
    the one that predicts rows best, which may be one. Classes are numbered by size, from 0 on.

    Parameters
    ----------
    {options}
    missing
        "error" refuses rows to score that have holes. With "integrate", they get the log-density of the
        values that are present.

    Attributes
    ----------
    network_
        The fitted `BayesianNetwork`; its node "class" is hidden.
    n_classes_
        How many classes there are.
    selection_
        The out-of-fold log-likelihood of a row, less what arcs and classes cost, by the number of classes,
        for all that were tried: greater is better.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn; there is no `feature_names_in_` for an array.

    Examples
    --------
    >>> import spbn
    >>> from sklearn.datasets import load_iris
    >>> rows = load_iris().data
    >>> mixture = spbn.sklearn.SPBNMixture(model="gbn", hidden=3).fit(rows)
    >>> mixture.predict_proba(rows).shape
    (150, 3)
    """

    _own: ClassVar[Mapping[str, object]] = {**SPBNDensity._own, "hidden": "auto"}

    @property
    def n_classes_(self) -> int:
        """How many classes there are."""
        check_is_fitted(self)
        found = self.network_.class_variable
        return 1 if found is None else len(found.levels)

    @property
    def selection_(self) -> dict[int, float]:
        """What every number of classes that was tried is worth, for a row."""
        check_is_fitted(self)
        return {int(number): value for number, value in self.network_.record.classes.items()}

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes: rows × classes."""
        check_is_fitted(self)
        features = self._features(X, reset=False)
        if self.network_.class_variable is None:
            return np.ones((_num_samples(X), 1))
        found = self.network_.classes(features, seed=self.seed)
        return found[list(self.network_.class_variable.levels)].to_numpy()

    def predict(self, X: Any) -> IntArray:
        """Return the most probable class of every row, counted from 0."""
        return self.predict_proba(X).argmax(axis=1)

    def fit_predict(self, X: Any, y: Any = None) -> IntArray:
        """Learn the network, and return the most probable class of every row; `y` is ignored."""
        self.fit(X)
        return self.predict(X)


class SPBNClassifier(ClassifierMixin, NetworkEstimator):  # type: ignore[misc]
    """A classifier that knows the density of the features within every class.

    The probability of a class follows from Bayes' rule, P(class | row) ∝ P(class) f(row | class), and
    `explain` says which features speak for it. Features may be numbers, text, categories and truth values.
    The class does not count as one of the `max_parents`. A class with fewer rows than folds has fewer folds,
    and classes or features that no network can be learned from have simpler densities.

    Parameters
    ----------
    {options}
    structure
        "multinet": every class has a network of its own, learned from its rows. "augmented": one
        network for all classes, in which the class is a parent of every feature.
    calibrate
        Divide all log-odds by a temperature, and mix the probabilities with the class frequencies; both
        amounts are found by cross-validation (see `spbn.sklearn.class_densities`). Without this, products of
        densities are too confident.

    Attributes
    ----------
    classes_
        The classes, sorted.
    networks_
        The network of every class, by class; or, if `structure` is "augmented", the one network under
        the name of every class.
    priors_
        The probability of every class before any feature is seen.
    temperature_, doubt_
        The divisor of the log-odds, and the weight of the class frequencies; 1 and 0 without calibration.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn; there is no `feature_names_in_` for an array, whose features are
        called ``x0``, ``x1``, ...

    Examples
    --------
    >>> import spbn
    >>> from sklearn.datasets import load_iris
    >>> rows, species = load_iris(as_frame=True, return_X_y=True)
    >>> model = spbn.sklearn.SPBNClassifier(model="gbn", calibrate=False).fit(rows, species)
    >>> bool(model.score(rows, species) > 0.9)
    True
    """

    _own: ClassVar[Mapping[str, object]] = {"structure": "multinet", "calibrate": True}
    _without: ClassVar[Collection[str]] = ("max_seconds", "hidden", "atoms")

    structure: str
    calibrate: bool
    discrete: Sequence[str]
    classes_: npt.NDArray[Any]
    n_features_in_: int
    priors_: FloatArray
    temperature_: float
    doubt_: float

    def fit(self, X: Any, y: Any) -> SPBNClassifier:
        """Learn the densities of the features within the classes `y`."""
        densities = STRUCTURES[either("structure", self.structure, STRUCTURES)]
        settings = self._settings().replace(discrete=())  # rows are read here
        table, target = self._training_table(X, y)
        self.classes_, labels = np.unique(target, return_inverse=True)
        self._variables = table.variables
        # A column that is constant, or a copy of another, says nothing about the class.
        self._used = informative(table)
        if not self._used:
            raise DataError("no feature varies, which leaves nothing to predict the classes from.")
        for name in ("required_arcs", "forbidden_arcs"):
            ends = dict.fromkeys(end for arc in getattr(settings, name) for end in arc)
            unknown = [end for end in ends if end not in table.names and not is_pattern(end)]
            if unknown:
                raise ArgumentError(f"{argument(name)} names unknown features: {quoted(unknown)}.")
        settings = settings.without_patterns(table.names)
        rows = table.select(self._used)
        self._densities: ClassDensities = densities.learn(rows, labels, len(self.classes_), settings)
        calibrated = self.calibrate and len(self.classes_) > 1
        self._calibration = self._calibrate(rows, labels, settings) if calibrated else Calibration()
        self.temperature_, self.doubt_ = self._calibration.temperature, self._calibration.doubt
        self.priors_ = np.exp(self._densities.log_priors)
        self.networks_: dict[Any, BayesianNetwork] = dict(
            zip(self.classes_.tolist(), self._densities.by_class, strict=True)
        )
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the most likely class of every row."""
        most_likely = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[most_likely])

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of the classes: rows × classes."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the probabilities of the classes: rows × classes."""
        return self._log_probabilities(self._contributions(X)).T

    def predict_joint_log_proba(self, X: Any) -> FloatArray:
        """Return log P(class) f(row | class), rows × classes; not calibrated."""
        return (self._contributions(X).sum(axis=1) + self._densities.log_priors[:, None]).T

    def explain(self, X: Any) -> pd.DataFrame:
        """Say for every row which features speak for the predicted class.

        Returns
        -------
        One row per row of `X`: the class `predicted`, its `probability`, the `runner_up`, what `(prior)` says
        for the predicted class against the runner-up, and what every feature says: the difference of its
        log-densities, given its parents, under the two classes. Their sum is the log-odds before calibration:
        positive numbers speak for the predicted class, and negative ones for the runner-up.
        """
        contributions = self._contributions(X)
        log_probabilities = self._log_probabilities(contributions)
        rows = np.arange(log_probabilities.shape[1])
        priors = self._densities.log_priors
        joint = contributions.sum(axis=1) + priors[:, None]
        # Calibrated, classes that are all but impossible are equally probable: then the densities decide.
        order = np.lexsort((-joint, -log_probabilities), axis=0)
        first, second = order[0], order[min(1, len(order) - 1)]
        ratios = contributions[first, :, rows] - contributions[second, :, rows]
        by_feature = dict(zip(self._used, ratios.T, strict=True))
        names = [variable.name for variable in self._variables]
        return frame_like(
            X,
            {
                "predicted": self.classes_[first],
                "probability": np.exp(log_probabilities[first, rows]),
                "runner_up": self.classes_[second],
                "(prior)": priors[first] - priors[second],
                **{name: by_feature.get(name, np.zeros(len(rows))) for name in names},
            },
        )

    def _calibrate(self, table: Table, labels: IntArray, settings: LearnSettings) -> Calibration:
        """Fit the calibration to rows that are left out.

        The structures stay, and their densities are fitted again: learning them again takes
        several times as long and leads to the same temperatures.
        """
        folds = _stratified_folds(labels, CALIBRATION_FOLDS, generator(settings.seed))
        joint = np.zeros((len(self.classes_), len(labels)))
        log_priors = np.full_like(joint, -np.inf)
        for fold in np.unique(folds):
            train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
            rows = table.take(train)
            names = informative(rows)  # some columns vary only in the rows that are left out
            if not names:
                continue
            fitted = self._densities.refit(rows.select(names), labels[train], settings)
            log_priors[:, test] = fitted.log_priors[:, None]
            joint[:, test] = fitted.contributions(table.take(test).select(names)).sum(axis=1)
        # Without smoothing, a class is impossible that no training row has: nothing can be learned from that.
        possible = np.isfinite(log_priors[labels, np.arange(len(labels))])
        return Calibration.fit((joint + log_priors)[:, possible], log_priors[:, possible], labels[possible])

    def _contributions(self, X: Any) -> FloatArray:
        """Return what every feature contributes to the log-density: classes × features × rows."""
        check_is_fitted(self)
        return self._densities.contributions(self._table(X).select(self._used))

    def _log_probabilities(self, contributions: FloatArray) -> FloatArray:
        log_priors = self._densities.log_priors[:, None]
        return self._calibration.log_probabilities(contributions.sum(axis=1) + log_priors, log_priors)

    def _training_table(self, X: Any, y: Any) -> tuple[Table, npt.NDArray[Any]]:
        if len(self.discrete) or has_categories(X):
            validate_data(self, X, skip_check_array=True)
            table = as_table(self._named(X), levels="infer", discrete=self.discrete, min_rows=2)
            target = column_or_1d(y, warn=True)
            assert_all_finite(target, estimator_name=type(self).__name__, input_name="y")
            check_consistent_length(table.columns[0], target)
        else:
            features, target = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
            table = self._numbers(features)
        check_classification_targets(target)
        return table, target

    def _table(self, X: Any) -> Table:
        if any(variable.is_discrete for variable in self._variables):
            validate_data(self, X, skip_check_array=True, reset=False)
            return as_table(self._named(X), variables=self._variables)
        numbers = self._numbers(validate_data(self, X, dtype=np.float64, reset=False))
        return as_table(numbers, variables=self._variables)

    def _numbers(self, features: FloatArray) -> Table:
        return Table(tuple(self._columns(features)), np.ascontiguousarray(features.T))

    def _named(self, X: Any) -> Any:
        """Return a frame as it is, and an array as columns with names."""
        return self._columns(X) if isinstance(X, np.ndarray) and X.ndim == 2 else X


def _stratified_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of every row, so that the rows of every class are spread evenly."""
    found = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        found[rows] = np.arange(len(rows)) % folds
    return found
