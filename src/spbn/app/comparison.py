"""Gaussian, KDE and semiparametric networks side by side, on rows that they have not seen."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn.app.progress import counting_progress
from spbn.errors import ArgumentError
from spbn.learn import MODELS, learn
from spbn.nodes.base import NodeType
from spbn.numerics.arrays import FloatArray
from spbn.numerics.random import Seed, generator
from spbn.tables.frames import Missing, require_distinct, training_table
from spbn.tables.splits import fold_labels

if TYPE_CHECKING:
    import pandas as pd


def compare_models(
    data: Any,
    *,
    folds: int = 10,
    seed: Seed = 0,
    missing: Missing = "error",
    drop: Sequence[str] = (),
    progress: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Learn each model without a fold and evaluate it there, for every fold.

    Parameters
    ----------
    folds
        The number of outer folds. Inside of `learn`, the cross-validated likelihood has its own 10.
    seed
        Decides which row goes into which fold, and is the seed of `learn` in every fold.
    missing, drop
        Rows and columns to leave out, as in `learn`.
    options
        Further arguments of `learn`, for all models and folds.

    Returns
    -------
    One row per model: the mean log-density of a row and its standard error over the folds, the mean
    number of arcs and the share of CKDE nodes, and the seconds it took. The best model comes first.
    """
    import pandas as pd

    if "model" in options:
        raise ArgumentError(f"compare_models learns every model. Leave out model={options['model']!r}.")
    # What can be read only once is needed for every model and fold.
    options = {name: list(o) if isinstance(o, Iterator) else o for name, o in options.items()}
    table = training_table(data, missing, drop=drop)
    require_distinct(table)
    labels = fold_labels(table.rows, folds, generator(seed))
    rows = []
    with counting_progress(progress, "learning", total=folds * len(MODELS)) as advance:
        for model in MODELS:
            start = time.perf_counter()
            means, arcs, kernels = [], [], []
            for fold in range(folds):
                train, test = (
                    table.take(np.flatnonzero(labels != fold)),
                    table.take(np.flatnonzero(labels == fold)),
                )
                network = learn(train, model=model, seed=seed, **options)
                means.append(network.logpdf(test).mean())
                arcs.append(len(network.structure.arcs))
                kernels.append(np.mean([t is NodeType.CKDE for t in network.structure.types.values()]))
                advance()
            rows.append(
                {
                    "model": model,
                    "log-density": np.mean(means),
                    "standard error": _standard_error(np.array(means)),
                    "arcs": np.mean(arcs),
                    "CKDE share": np.mean(kernels),
                    "seconds": time.perf_counter() - start,
                }
            )
    return pd.DataFrame(rows).sort_values("log-density", ascending=False, ignore_index=True)


def _standard_error(values: FloatArray) -> float:
    return float(values.std(ddof=1) / math.sqrt(len(values)))
