"""Log-densities of training rows under parameters that were fitted without them.

A row that a network was fitted to sits on a kernel of its own, so the network finds it more likely than it
would find a new row like it. Left out of the fit, it is judged like any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray
from spbn.diagnostics.settings import settings_of
from spbn.errors import ArgumentError
from spbn.kernels.estimates import BandwidthRule
from spbn.network import BayesianNetwork
from spbn.nodes.base import FitSettings
from spbn.nodes.families import Family, FamilyBatch
from spbn.nodes.partition import Partition
from spbn.nodes.workbench import Workbench
from spbn.tables.frames import as_table
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

FOLDS = 10
FEWEST_ROWS = 3


def leave_one_out(
    network: BayesianNetwork,
    data: Any,
    rows: npt.ArrayLike | None = None,
    *,
    bandwidth: BandwidthRule | None = None,
) -> FloatArray:
    """Return the log-densities of training rows, each under parameters fitted to all other rows.

    The time grows with the number of rows asked for times that of all rows.

    Parameters
    ----------
    data
        The rows that the network was fitted to.
    rows
        The numbers of the rows to score; all by default.
    bandwidth
        The rule that the network was fitted with, if that was a function: a record cannot hold one.

    Returns
    -------
    Nodes × rows. A node that cannot be fitted without a row has its log-density under the network there.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> left_out = spbn.explain.leave_one_out(network, data).sum(axis=0)  # over nodes
    >>> bool(left_out.mean() < network.logpdf(data).mean())
    True
    """
    table = as_table(data, variables=network.variables, min_rows=FEWEST_ROWS)
    settings = _required_settings(network, bandwidth)
    asked = np.arange(table.rows) if rows is None else np.asarray(rows)
    if (
        asked.ndim != 1
        or (len(asked) and asked.dtype.kind not in "iu")
        or not ((asked >= 0) & (asked < table.rows)).all()
    ):
        raise ArgumentError(f"rows must be row numbers from 0 to {table.rows - 1}. Got {rows!r:.100}.")
    if len(asked) == 0:
        return np.empty((len(network.nodes), 0))
    distinct, places = np.unique(asked.astype(np.int64), return_inverse=True)
    transformed = network.transformed(table)
    by_node = np.stack(
        [
            _family_without(network, family, transformed, distinct, settings)
            for family in network.structure.families()
        ]
    )
    return (by_node + network.log_slopes(table.take(distinct), network.nodes))[:, places]


def out_of_fold(network: BayesianNetwork, data: Any, *, bandwidth: BandwidthRule | None = None) -> FloatArray:
    """Return the log-densities of all training rows, each fold under parameters fitted to the other nine.

    Much quicker than `leave_one_out` for many rows, and nearly the same there. A node that cannot be fitted
    without one of the folds has its log-densities under the network.
    """
    table = as_table(data, variables=network.variables, min_rows=FEWEST_ROWS)
    settings = _required_settings(network, bandwidth)
    labels = fold_labels(table.rows, min(FOLDS, table.rows), 0, discrete=table.level_codes)
    out = []
    rows = network.transformed(table)
    for family in network.structure.families():
        part = rows.select((*family.parents, family.node))
        found = _scored(Partition.folds(part, labels), family, settings)
        out.append(found if np.isfinite(found).all() else network.cpds[family.node].logpdf(part))
    return np.stack(out) + network.log_slopes(table, network.nodes)


def _required_settings(network: BayesianNetwork, bandwidth: BandwidthRule | None) -> FitSettings:
    settings = settings_of(network, bandwidth)
    if settings is None:
        raise ArgumentError(
            "the bandwidth rule of this network is not on record: pass the one that it was fitted with, "
            "bandwidth='scott' for example."
        )
    return settings


def _family_without(
    network: BayesianNetwork, family: Family, table: Table, rows: IntArray, settings: FitSettings
) -> FloatArray:
    """Score a node at some rows, each left out in turn."""
    # Only the family's columns: the moments of every group then are a small matrix.
    part = table.select((*family.parents, family.node))
    found = _scored(Partition.leave_one_out(part, rows), family, settings)
    if np.isfinite(found).all():
        return found
    if len(rows) == 1:
        return network.cpds[family.node].logpdf(part.take(rows))
    # One row that cannot be left out makes the whole batch -inf: find it.
    halves = np.array_split(rows, 2)
    return np.concatenate([_family_without(network, family, table, half, settings) for half in halves])


def _scored(partition: Partition, family: Family, settings: FitSettings) -> FloatArray:
    batch = FamilyBatch.named(partition.table.names, [family])
    return Workbench(partition, settings).rows(batch)[0]
