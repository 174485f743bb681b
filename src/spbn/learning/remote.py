"""Rows that are not read into memory: a Dask DataFrame, or Parquet files given by name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spbn._base import checks
from spbn._base.arrays import generator
from spbn.errors import ArgumentError, DataError, argument, quoted, setting
from spbn.learning.settings import OPTIONS, LearnSettings
from spbn.structure import Structure

if TYPE_CHECKING:
    from spbn.dask.plan import FoldAssignment
    from spbn.dask.rowstore import DaskRows
    from spbn.dask.shards import Shards
    from spbn.transforms import Margins

RULES = ("scott", "silverman")
MISSING = ("error", "drop")
MOST_FOLDS = 100


def is_remote(data: object) -> bool:
    """Tell whether rows are elsewhere: a Dask DataFrame, or the names of files."""
    from spbn.dask.sources import is_dask_frame

    given = data if isinstance(data, list | tuple) else [data]
    return is_dask_frame(data) or (bool(given) and all(isinstance(path, str | os.PathLike) for path in given))


def most_parents(settings: LearnSettings) -> int | None:
    """Return how many parents a node can have at most; None if there is no limit."""
    limits = [t.most_remote_parents for t in settings.node_types if t.most_remote_parents is not None]
    return min(limits, default=None)


def remote_settings(settings: LearnSettings) -> LearnSettings:
    """Refuse settings that are for tables in memory, and limit the number of parents if nobody has."""
    checks.choice("bandwidth", settings.bandwidth, RULES)
    checks.choice("missing", settings.missing, MISSING)
    for name in ("algorithm", "engine", "checkpoint"):
        if getattr(settings, name) != OPTIONS[name].default:
            raise ArgumentError(f"{argument(name)} can be given for tables in memory only: leave it out.")
    if isinstance(settings.start, Structure):
        raise ArgumentError(
            f"{argument('start')} must be a node type where rows are over workers, not a structure."
        )
    most = most_parents(settings)
    if most is not None and settings.max_parents is None:
        return settings.replace(max_parents=most)
    if most is not None and settings.max_parents is not None and settings.max_parents > most:
        label = next(t.appearance.label for t in settings.node_types if t.most_remote_parents == most)
        raise ArgumentError(
            f"{argument('max_parents')} must be at most {most} where rows are over workers and nodes may be "
            f"{label}. Got {settings.max_parents!r} instead."
        )
    return settings


def open_rows(
    data: object, settings: LearnSettings, *, columns: Sequence[str] | None = None
) -> tuple[DaskRows, Margins | None]:
    """Look at all rows once, and refuse what cannot be learned from.

    Parameters
    ----------
    columns
        The columns to use; all by default.

    Returns
    -------
    The rows, transformed by the margins if there are to be any, and these.
    """
    from spbn.dask.levels import with_levels
    from spbn.dask.margins import fit_margins
    from spbn.dask.rowstore import DaskRows
    from spbn.dask.shards import Shards
    from spbn.dask.sources import open_source

    assignment = _assignment(settings)
    source = open_source(
        data, drop=settings.drop, only=columns, discrete=settings.discrete, client=settings.client
    )
    if settings.score_name == "bge" and source.discrete:
        are = "is" if len(source.discrete) == 1 else "are"
        raise DataError(
            f"BGe takes continuous columns only. {quoted(source.discrete)} {are} discrete: use BIC, or leave "
            f"them out."
        )
    named = [settings.discrete] if isinstance(settings.discrete, str) else list(settings.discrete)
    source = with_levels(source, named, settings.client)
    shards = Shards.of(source, assignment, settings.client, missing=settings.missing)
    _require_rows(shards, settings)
    margins = None
    if settings.margins == "yeo-johnson":
        margins = fit_margins(shards)
        shards = shards.again(assignment, margins=margins)
    fit_settings = settings.fit_settings
    if settings.score_name == "bic":  # which compares the greatest likelihoods
        fit_settings = replace(fit_settings, smoothing=0.0)
    return DaskRows.folds(shards, fit_settings), margins


def _assignment(settings: LearnSettings) -> FoldAssignment:
    """Say which rows are in which fold; all are in one for a score that needs none."""
    from spbn.dask.plan import FoldAssignment

    seed, folds, validation = settings.seed, settings.folds, settings.validation
    root = int(seed) if isinstance(seed, int | np.integer) else int(generator(seed).integers(1 << 62))
    if not isinstance(folds, int | np.integer) or not checks.is_whole(folds, 2, MOST_FOLDS):
        checks.refuse("folds", f"between 2 and {MOST_FOLDS}", folds)
    if not isinstance(validation, float | int | np.floating) or not 0 < validation < 1:
        checks.refuse("validation", "a fraction between 0 and 1", validation)
    if settings.score_name != "cv":
        return FoldAssignment(root, 1, 0.0)
    return FoldAssignment(root, int(folds), float(validation))


def _require_rows(shards: Shards, settings: LearnSettings) -> None:
    fewest = min(moments.count for moments in shards.by_label)
    if shards.every.count < 2 or (settings.score_name == "cv" and fewest < 1):
        raise DataError(
            f"there are too few rows: {shards.every.count}, which leaves a fold or the validation set empty. "
            f"Use fewer folds, or a table in memory."
        )


def require_limit(max_parents: object, settings: LearnSettings) -> None:
    """Refuse to have no limit on the number of parents where there has to be one."""
    most = most_parents(settings)
    if max_parents is None and most is not None:
        raise ArgumentError(
            f"{argument('max_parents')} must be at most {most} where rows are over workers and nodes may be "
            f"kernels: {setting('max_parents', most)}. Got None instead."
        )
