"""Reference rows: what new rows are compared with, scored by parameters that were fitted without them.

Rows that a network was fitted to are left out of the fit when they are scored, one by one or a tenth at a
time, or all new rows would look unusual beside them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from spbn.dynamic.drift import counted
from spbn.dynamic.scoring import LOWEST, Scorer, both_of, contributions_of
from spbn.dynamic.tails import Tail
from spbn.errors import DataError, FitError
from spbn.explain.out_of_sample import leave_one_out, out_of_fold
from spbn.explain.settings import settings_of
from spbn.explain.unusual import ONE_BY_ONE
from spbn.fitting import fitted
from spbn.network import BayesianNetwork
from spbn.nodes.base import FitSettings
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.random import same_uniforms
from spbn.tables.frames import table_with_holes
from spbn.tables.splits import fold_labels, holdout_rows
from spbn.tables.table import Table

FEWEST_ROWS = 50
FOLDS = 10
PLACED_ROWS = 2_000  # whose places are computed: they take longer than densities do
COMPARED_ROWS = 1_000  # that rows with holes are compared with, node by node
CANDIDATES = 31  # values of a variable that are tried when it may be to blame
FARTHEST = 50.0  # nats below the median that count in a mean: a single row must not decide it


@final
@dataclass(frozen=True, eq=False)
class Reference:
    """What is known of reference rows.

    Attributes
    ----------
    tail
        Their log-densities.
    medians, means
        What every node adds to the log-density, by the order of the nodes.
    places
        How many rows have P(X ≤ x | parents) in every bin: nodes × bins.
    candidates
        Variables × quantiles of the columns; the levels of a discrete one, and then NaN.
    by_node
        What every node adds to the log-densities of some rows: nodes × rows. None if rows with holes are not
        compared with it.
    """

    tail: Tail
    medians: FloatArray
    means: FloatArray
    places: FloatArray
    candidates: FloatArray
    by_node: FloatArray | None = None

    @property
    def rows(self) -> int:
        """Number of reference rows."""
        return self.tail.rows


def reference_of(
    network: BayesianNetwork, data: Any, *, trained: bool | None, by_node: bool = False
) -> Reference:
    """Score reference rows.

    Parameters
    ----------
    trained
        Whether the network was fitted to these rows. None: if they are its training table, by its hash.
    by_node
        Whether to remember what nodes add to the log-densities of some rows.
    """
    table = table_with_holes(data, network.variables)
    whole = np.flatnonzero(np.isfinite(table.columns).all(axis=0))
    complete = table.take(whole)
    if len(whole) < FEWEST_ROWS:
        holes = f", of which {len(whole)} have no missing value" if len(whole) < table.rows else ""
        raise DataError(
            f"a monitor needs at least {FEWEST_ROWS} complete reference rows. Got {table.rows}{holes}."
        )
    settings = settings_of(network)
    known = network.record.data_hash
    if trained is None:
        trained = known is not None and known in (table.digest, complete.digest)
    if trained and settings is None:
        warnings.warn(
            "the bandwidth rule of this network is not on record, so its training rows cannot be left out "
            "of the fit when they are scored, and new rows will look more unusual than they are: give "
            "reference rows that it was not fitted to.",
            stacklevel=3,
        )
        trained = False
    if not trained:
        _warn_of_training_rows(network, complete)
    if trained and settings is not None:
        # Rows with holes were left out of the fit, or filled for it.
        if network.inputs or known == complete.digest:
            table, whole = complete, np.arange(complete.rows)
        filled = _filled(network, table)
        contributions = (leave_one_out if filled.rows <= ONE_BY_ONE else out_of_fold)(network, filled)[
            :, whole
        ]
        places = _places_out_of_fold(network, filled, whole, settings)
    else:
        contributions = contributions_of(network, complete)
        some = _thinned(complete)
        places = Scorer(network).scored(some, _uniforms(network, some))[1]
    contributions = np.maximum(contributions, LOWEST)
    return Reference(
        Tail.of(contributions.sum(axis=0)),
        np.median(contributions, axis=1),
        np.mean(np.maximum(contributions, np.median(contributions, axis=1)[:, None] - FARTHEST), axis=1),
        counted(places),
        _candidates(complete),
        contributions[:, _some(complete.rows, COMPARED_ROWS)] if by_node else None,
    )


def _uniforms(network: BayesianNetwork, table: Table) -> FloatArray:
    """Return random numbers for reference rows, nodes × rows, always the same ones."""
    return same_uniforms((len(network.nodes), table.rows))


def _filled(network: BayesianNetwork, table: Table) -> Table:
    """Return a table that was learned from as it is, its holes filled: they count for the fit."""
    if np.isfinite(table.columns).all():
        return table
    from spbn.inference.holes import imputed

    return imputed(network, table, seed=0)[0]


def _places_out_of_fold(
    network: BayesianNetwork, table: Table, wanted: IntArray, settings: FitSettings
) -> FloatArray:
    """Return the places of training rows, or of some if there are many; each under a fit without it."""
    discrete = table.level_codes
    if table.rows <= PLACED_ROWS:
        labels = fold_labels(table.rows, min(FOLDS, table.rows), 0, discrete=discrete)
        parts = [(np.flatnonzero(labels != k), np.flatnonzero(labels == k)) for k in range(labels.max() + 1)]
    else:
        parts = [holdout_rows(table.rows, PLACED_ROWS / table.rows, 0, discrete=discrete)]
    rows, uniforms = network.transformed(table), _uniforms(network, table)
    found = np.full(uniforms.shape, np.nan)
    for kept, asked in parts:
        train, test = rows.take(kept), rows.take(asked)
        for k, family in enumerate(network.structure.families()):
            try:
                cpd = fitted(train, family, settings)
            except FitError:
                cpd = network.cpds[family.node]
            found[k, asked] = both_of(cpd)(test.select((*family.parents, family.node)), uniforms[k, asked])[1]
    return np.clip(found[:, wanted], 0.0, 1.0)


def _thinned(table: Table) -> Table:
    return table if table.rows <= PLACED_ROWS else table.take(_some(table.rows, PLACED_ROWS))


def _some(rows: int, most: int) -> IntArray:
    """Return the numbers of some rows, always the same ones; all if there are not too many."""
    return np.sort(np.random.default_rng(0).permutation(rows)[:most])


def _candidates(table: Table) -> FloatArray:
    out = np.full((len(table.names), CANDIDATES), np.nan)
    for variable, column, values in zip(table.variables, table.columns, out, strict=True):
        if variable.is_discrete:
            count = min(len(variable.levels), CANDIDATES)
            values[:count] = np.arange(count)
        else:
            values[:] = np.quantile(column, (np.arange(CANDIDATES) + 0.5) / CANDIDATES)
    return out


def _warn_of_training_rows(network: BayesianNetwork, table: Table) -> None:
    """Say so if reference rows sit on kernels of their own: they look more likely than new rows do."""
    for cpd in network.cpds.values():
        kept = cpd.kept_rows
        if kept is None:
            continue
        rows = network.transformed(table).select(kept.names)
        known = set(map(bytes, np.ascontiguousarray(kept.columns.T)))
        same = sum(bytes(row) in known for row in np.ascontiguousarray(rows.columns.T))
        if same > 0.5 * table.rows and len(kept.names) > 1:
            warnings.warn(
                f"{same} of the {table.rows} reference rows are among the rows that the network was fitted "
                f"to, so new rows will look more unusual than they are: give other rows or the whole "
                f"training table, which is recognised, or pass trained=True to leave rows out of the fit.",
                stacklevel=4,
            )
            return
