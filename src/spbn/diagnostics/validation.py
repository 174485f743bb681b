"""What rows say about a network: which rows there are, how likely each is without itself, whether nodes fit.

A row that a network was fitted to sits on a kernel of its own, so the network finds it more likely than it
would find a new row like it. Left out of the fit (`leave_one_out`, `out_of_fold`), it is judged like any
other.

A node's density fits if the probability integral transform of its values is uniform (`check_fit`). The
distribution function of a discrete node has steps: a random point on the step of every row is uniform again,
if the probabilities are right.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray, same_uniforms
from spbn.errors import ArgumentError
from spbn.kernels.estimates import BandwidthRule
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD
from spbn.nodes.families import Family, FamilyScorer, named_batch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.tables.reader import as_table, frame_index
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table

FOLDS = 10
FEWEST_ROWS = 3  # of which one can be left out
CHECKED_ROWS = 2_000  # for the fit
GOOD = 0.05  # distance up to which a fit is good, whatever the number of rows; up to twice that it is fair


class Source(Enum):
    """Where rows come from."""

    GIVEN = "the given rows"
    TRAINING = "the training rows that nodes keep"
    NONE = "no rows"


@dataclass(frozen=True, eq=False)
class Evidence:
    """Rows, where they come from, and what each is called."""

    source: Source
    table: Table | None
    labels: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  #: nodes without values

    @property
    def rows(self) -> int:
        """Number of rows."""
        return 0 if self.table is None else self.table.rows

    def covers(self, names: Iterable[str]) -> bool:
        """Tell whether there are values of all these nodes."""
        return self.table is not None and set(names) <= set(self.table.names)

    def thinned(self, limit: int) -> Table | None:
        """Return at most `limit` rows, the same ones every time."""
        if self.table is None or self.table.rows <= limit:
            return self.table
        return self.table.take(np.sort(np.random.default_rng(0).permutation(self.table.rows)[:limit]))


def gather_rows(network: BayesianNetwork, data: Any) -> Evidence:
    """Read the data or, without any, collect the rows that the network itself carries."""
    if data is not None:
        table = as_table(data, variables=network.variables)
        index = frame_index(data)
        return Evidence(
            Source.GIVEN, table, tuple(map(str, range(table.rows) if index is None else index.tolist()))
        )
    columns = _training_columns(network)
    absent = tuple(node for node in network.nodes if node not in columns)
    if not columns:
        return Evidence(Source.NONE, None, absent=absent)
    names = tuple(variable.name for variable in network.variables if variable.name in columns)
    return Evidence(Source.TRAINING, Table(names, np.stack([columns[name] for name in names])), absent=absent)


def _training_columns(network: BayesianNetwork) -> dict[str, FloatArray]:
    """Return the columns that nodes keep; none if they were fitted to different rows."""
    columns: dict[str, FloatArray] = {}
    for cpd in network.cpds.values():
        if (kept := cpd.kept_rows) is not None:
            for name, column in zip(kept.names, kept.columns, strict=True):
                if not np.array_equal(columns.setdefault(name, column), column):
                    return {}
    if len({len(column) for column in columns.values()}) != 1:
        return {}
    return {name: network.in_data_units(name, column) for name, column in columns.items()}


def settings_of(network: BayesianNetwork, bandwidth: BandwidthRule | None = None) -> FitSettings | None:
    """Return the settings of the network's fit; None if they are not known.

    Parameters
    ----------
    bandwidth
        The bandwidth rule, if it is known from elsewhere.
    """
    settings = network.record.settings
    rule = settings.get("bandwidth") if bandwidth is None else bandwidth
    if rule is None:
        return None
    try:
        return FitSettings(rule, settings.get("engine", "auto"), settings.get("smoothing", 1.0))
    except ArgumentError:
        if bandwidth is not None:
            raise
        return None  # a function, which the record can only name


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
    Rows × nodes. A node that cannot be fitted without a row has its log-density under the network there.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> left_out = spbn.explain.leave_one_out(network, data).sum(axis=1)  # over nodes
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
        return np.empty((0, len(network.nodes)))
    distinct, places = np.unique(asked.astype(np.int64), return_inverse=True)
    transformed = network.transformed(table)
    by_node = np.stack(
        [
            _family_without(network, family, transformed, distinct, settings)
            for family in network.structure.families()
        ]
    )
    return (by_node + network.log_slopes(table.take(distinct), network.nodes))[:, places].T


def out_of_fold(network: BayesianNetwork, data: Any, *, bandwidth: BandwidthRule | None = None) -> FloatArray:
    """Return the log-densities of all training rows, each fold under parameters fitted to the other nine.

    Rows × nodes. Much quicker than `leave_one_out` for many rows, and nearly the same there. A node that
    cannot be fitted without one of the folds has its log-densities under the network.
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
    return (np.stack(out) + network.log_slopes(table, network.nodes)).T


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
    batch = named_batch(partition.table.names, [family])
    return FamilyScorer(MemoryRows(partition, settings)).rows(batch)[0]


@dataclass(frozen=True)
class FitCheck:
    """The histogram of P(X ≤ x | parents) over rows, and how far it is from uniform.

    `distance` is that of Kolmogorov and Smirnov: the greatest difference of the
    two distribution functions.
    """

    counts: tuple[int, ...]
    distance: float
    rows: int

    @property
    def chance(self) -> float:
        """The distance that 1 in 20 samples of a correct model would exceed."""
        return 1.358 / sqrt(self.rows)

    @property
    def limits(self) -> tuple[float, float]:
        """Up to which distance a fit is good, and up to which it is fair, to three decimals.

        Few rows allow for more: a distance that is likely by chance says nothing against a model.
        """
        good = round(max(GOOD, self.chance), 3)
        return good, 2.0 * good

    @property
    def verdict(self) -> str:
        """One word for the distance: it agrees with the limits as they are written."""
        good, fair = self.limits
        distance = round(self.distance, 3)
        return "good" if distance <= good else "fair" if distance <= fair else "poor"

    @property
    def band(self) -> tuple[float, float]:
        """The counts between which 19 of 20 bars of a correct model lie."""
        share = 1.0 / len(self.counts)
        spread = 1.96 * sqrt(self.rows * share * (1.0 - share))
        return max(0.0, self.rows * share - spread), self.rows * share + spread


def check_fit(network: BayesianNetwork, evidence: Evidence) -> dict[str, FitCheck]:
    """Check every node that has values, for itself and for its parents."""
    table = evidence.thinned(CHECKED_ROWS)
    if table is None:
        return {}
    checks = {}
    for node, cpd in network.cpds.items():
        if evidence.covers((node, *cpd.parents)):
            uniform = np.sort(np.clip(_transform(cpd, network.transformed(table)), 0.0, 1.0))
            rows = len(uniform)
            steps = np.arange(rows + 1) / rows
            distance = max(np.max(steps[1:] - uniform), np.max(uniform - steps[:-1]))
            counts = np.histogram(uniform, bins=20 if rows >= 400 else 10, range=(0.0, 1.0))[0]
            checks[node] = FitCheck(tuple(counts.tolist()), float(distance), rows)
    return checks


def _transform(cpd: CPD, table: Table) -> FloatArray:
    """Return P(X ≤ x | parents) of every row; a point on its step, always the same one, if X has steps."""
    return cpd.randomised_cdf(table, same_uniforms(table.rows))
