"""All models side by side, on rows that they have not seen."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import pandas as pd

from spbn._base import display
from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn._base.checks import choice
from spbn._base.display import counting_progress
from spbn.dask.client import Executor, require_client
from spbn.errors import ArgumentError, argument, setting
from spbn.learning.learn import learn_network
from spbn.learning.settings import MODELS, OPTIONS, LearnSettings, MarginsName, Model, shows_options
from spbn.nodes.base import NodeType
from spbn.structure import Structure
from spbn.tables.reader import Missing, TableLike, as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table, require_distinct
from spbn.transforms import require_kind

#: A model that is learned with margins too, unless margins are asked for.
ALSO: tuple[Model, MarginsName] = ("blend", "yeo-johnson")


@dataclass(frozen=True, eq=False)
class Trial:
    """What became of one model: the log-density of every row by the network learned without its fold."""

    model: str
    margins: str
    logpdf: FloatArray
    structures: tuple[Structure, ...]
    seconds: float

    def share(self, node_type: NodeType) -> float:
        """Return which part of the nodes is of a type, over all folds."""
        types = Counter(t for structure in self.structures for t in structure.types.values())
        return types[node_type] / types.total()


@shows_options
def compare_models(
    data: TableLike,
    *,
    models: Model | Sequence[Model] = tuple(MODELS),
    folds: int = 10,
    margins: MarginsName | None = None,
    seed: Seed = 0,
    missing: Missing = "error",
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
    progress: bool = False,
    client: object = None,
    **options: object,
) -> pd.DataFrame:
    """Compare models by cross-validation: learn each without a fold, and score that fold.

    Parameters
    ----------
    models
        The models to compare; all by default.
    folds
        The number of outer folds. The cross-validated likelihood in `learn` has 10 folds of its own.
    margins
        The margins of all models, "none", "yeo-johnson" or "auto". By default they are those of the model,
        "auto" for auto and "none" for the others, and blend is also learned with "yeo-johnson".
    seed
        Decides which row goes into which fold, and is the seed of `learn` in every fold.
    missing, drop, discrete
        Rows and columns to leave out, and columns to take as discrete, as in `learn`.
    client
        A `dask.distributed.Client` whose workers learn the models of the folds, each with the whole table.
    options
        Further arguments of `learn`, for all folds and for all models that have a use for them.

    Returns
    -------
    One row per model, the best first:

    "log-density" is its mean over all rows, each scored by a network that was learned without it, with its
    "standard error". "difference" is how far that is from the best model, and "difference error" is the
    standard error of the row-by-row differences, which is often far smaller than that of either model, since
    rows that are unlikely under one are mostly unlikely under the other. Then there are the mean number of
    "arcs", the share of every node type, and the time taken in "seconds", summed over workers if there are
    any.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> table = spbn.compare_models(data, models=["auto", "spbn", "gbn"], folds=2)
    >>> print(table[["model", "margins"]].to_string(index=False))
    model margins
     auto    auto
     spbn    none
      gbn    none
    """
    if client is not None:
        require_client(client)
    if "model" in options:
        raise ArgumentError(
            f"compare_models learns several models: give {argument('models')} to choose some of them, and "
            f"leave out {setting('model', options['model'])}."
        )
    settings = LearnSettings.of("compare_models", options)
    settings.refuse_atoms("probabilities and densities cannot be compared")
    candidates = _candidates(models, margins, settings)
    for candidate in candidates:
        candidate.require_unprepared()
    table = as_table(data, training=True, missing=missing, drop=drop, discrete=discrete)
    require_distinct(table)
    labels = fold_labels(table.rows, folds, generator(seed), discrete=table.level_codes)
    folds_of_rows = [np.flatnonzero(labels == fold) for fold in range(labels.max() + 1)]
    asked = [(candidate, test) for candidate in candidates for test in folds_of_rows]
    # A generator gives every task one of its own, so that the order in which they are done does not matter.
    numbered = seed is None or isinstance(seed, int | np.integer)
    seeds = [seed] * len(asked) if numbered else generator(seed).spawn(len(asked))
    tasks = [(test, candidate.replace(seed=own)) for (candidate, test), own in zip(asked, seeds, strict=True)]
    learned: dict[int, tuple[FloatArray, Structure, float]] = {}
    with counting_progress(progress, "learning", total=len(tasks)) as advance:
        for number, found in Executor(client, table).map(_learn_without, tasks):
            learned[number] = found
            advance()
    trials = []
    for place, candidate in enumerate(candidates):
        first = place * len(folds_of_rows)
        values, structures, seconds = zip(
            *(learned[first + fold] for fold in range(len(folds_of_rows))), strict=True
        )
        logpdf = np.empty(table.rows)
        logpdf[np.concatenate(folds_of_rows)] = np.concatenate(values)
        kind = candidate.margins_name
        trials.append(Trial(candidate.model_name, kind, logpdf, structures, sum(seconds)))
    impossible = ~np.isfinite([trial.logpdf for trial in trials]).all(axis=0)
    if impossible.any():
        warnings.warn(
            f"impossible rows: {impossible.sum()}. Without smoothing, levels are impossible that the rows a "
            f"model was learned from do not have. The models can be compared if smoothing is more than 0.",
            stacklevel=2,
        )
    trials.sort(key=lambda trial: -trial.logpdf.mean())
    return Comparison(_rows(trials))


def _learn_without(
    table: Table, test: IntArray, settings: LearnSettings
) -> tuple[FloatArray, Structure, float]:
    """Learn from all rows but some and score these: log-densities, the structure, and how long it took."""
    start = time.perf_counter()
    train = np.setdiff1d(np.arange(table.rows), test)
    network = learn_network(table.take(train), settings)
    return np.asarray(network.logpdf(table.take(test))), network.structure, time.perf_counter() - start


def _candidates(
    models: Model | Sequence[Model], margins: MarginsName | None, settings: LearnSettings
) -> list[LearnSettings]:
    """Return the settings of every model to learn."""
    if margins is not None:
        require_kind(margins)
    compared = list(dict.fromkeys([models] if isinstance(models, str) else models))
    if not compared:
        raise ArgumentError(f"{argument('models')} must name at least one of {', '.join(MODELS)}.")
    for model in compared:
        choice("models", model, tuple(MODELS))
    chosen = [(model, margins) for model in compared]
    if margins is None and ALSO[0] in compared:
        chosen.append(ALSO)
    return [
        settings.replace(model=model, margins=kind, **{name: OPTIONS[name].default for name in unused})
        for model, kind in chosen
        for unused in [_unused_by(model, settings)]
    ]


def _unused_by(model: Model, settings: LearnSettings) -> list[str]:
    """Return the settings that others may have a use for, and this model does not."""
    is_validated = model != "auto" and settings.algorithm != "boss" and settings.validation is not None
    is_crossed = settings.score == "cv" or (settings.score is None and model != "gbn")
    has_use = {
        "bandwidth": settings.bandwidth != "cv" or "ckde" in MODELS[model],  # whose scale is chosen
        "type_selection": len(MODELS[model]) > 1,
        "validation": model != "auto",
        "penalty": is_crossed and not is_validated,
    }
    return [name for name, is_used in has_use.items() if not is_used]


@np.errstate(invalid="ignore")
def _rows(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Describe trials, the best first."""
    types = [t for t in NodeType if any(trial.share(t) for trial in trials)]
    return [
        {
            "model": trial.model,
            "margins": trial.margins,
            "log-density": trial.logpdf.mean(),
            "standard error": _standard_error(trial.logpdf),
            "difference": (trial.logpdf - trials[0].logpdf).mean(),
            "difference error": _standard_error(trial.logpdf - trials[0].logpdf),
            "arcs": np.mean([len(structure.arcs) for structure in trial.structures]),
            **{f"{t.appearance.short_label} share": trial.share(t) for t in types},
            "seconds": trial.seconds,
        }
        for trial in trials
    ]


@np.errstate(invalid="ignore")  # where rows are impossible, of which a warning tells
def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))


@final
class Comparison(pd.DataFrame):
    """A data frame that notebooks show with bars; whatever is taken out of it is an ordinary one."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    _repr_html_ = display.repr_html
