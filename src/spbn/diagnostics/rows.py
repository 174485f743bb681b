"""Rows that a network is asked about: how likely each is, and which nodes make the least likely ones so.

A row that a network was fitted to sits on a kernel of its own, so the network finds it more likely than it
would find a new row like it. Left out of the fit (`leave_one_out`, `out_of_fold`), it is judged like any
other. Which cells are to blame, `spbn.diagnostics.blame` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

from spbn._base import display
from spbn._base.arrays import FloatArray, IntArray, finite_log_density
from spbn._base.checks import whole
from spbn._deprecated import renamed
from spbn.diagnostics.blame import Blame, Reason
from spbn.errors import ArgumentError
from spbn.inference.batch import class_probabilities
from spbn.joint import average_over_classes
from spbn.kernels.estimates import BandwidthRule
from spbn.network import BayesianNetwork
from spbn.nodes.families import Family, FamilyScorer, named_batch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings
from spbn.scores.by_class import ByClass
from spbn.tables.lags import lag_name, lagged_table
from spbn.tables.reader import as_table, frame_index
from spbn.tables.splits import fold_labels
from spbn.tables.table import Table
from spbn.timeseries.network import DynamicNetwork

FOLDS = 10
FEWEST_ROWS = 3  # of which one can be left out
SHOWN_ROWS = 10
ONE_BY_ONE = 1_000  # training rows up to which each is left out alone; beyond, a tenth at a time


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

    @property
    def rows(self) -> int:
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
        labels = range(table.rows) if index is None else index.tolist()
        return Evidence(Source.GIVEN, table, tuple(map(str, labels)))
    columns = _training_columns(network)
    if not columns:
        return Evidence(Source.NONE, None)
    names = tuple(variable.name for variable in network.variables if variable.name in columns)
    return Evidence(Source.TRAINING, Table(names, np.stack([columns[name] for name in names])))


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
    """Return the settings of the network's fit, with a bandwidth rule that is known from elsewhere, if any.

    None if they are not known.
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
    if network.hidden is not None:  # whose classes would have to be found anew without every row
        by_row = out_of_fold(network, table, bandwidth=bandwidth)
        return by_row if rows is None else by_row[np.asarray(rows)]
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
    families = network.structure.families()
    by_node = np.stack([_family_without(network, f, transformed, distinct, settings) for f in families])
    return (by_node + network.log_slopes(table.take(distinct), network.nodes))[:, places].T


def out_of_fold(network: BayesianNetwork, data: Any, *, bandwidth: BandwidthRule | None = None) -> FloatArray:
    """Return the log-densities of all training rows, each fold under parameters fitted to the other nine.

    Rows × nodes. Much quicker than `leave_one_out` for many rows, and nearly the same there. A node that
    cannot be fitted without one of the folds has its log-densities under the network.
    """
    table = as_table(data, variables=network.variables, min_rows=FEWEST_ROWS)
    settings = _required_settings(network, bandwidth)
    if network.hidden is not None:
        return _out_of_fold_by_class(network, table, settings)
    labels = fold_labels(table.rows, min(FOLDS, table.rows), 0, discrete=table.level_codes)
    out = []
    rows = network.transformed(table)
    for family in network.structure.families():
        part = rows.select((*family.parents, family.node))
        found = _scored(Partition.folds(part, labels), family, settings)
        out.append(found if np.isfinite(found).all() else network.cpds[family.node].logpdf(part))
    return (np.stack(out) + network.log_slopes(table, network.nodes)).T


def _out_of_fold_by_class(network: BayesianNetwork, table: Table, settings: FitSettings) -> FloatArray:
    """Do what `out_of_fold` says where there is a hidden class: all rows have their most probable ones."""
    codes = class_probabilities(network, table).argmax(axis=1)
    assert network.class_variable is not None
    sizes = np.bincount(codes, minlength=len(network.class_variable.levels))
    if sizes.min() < 2:  # rows that lack a class are not those it was fitted to
        return network.contributions(table)
    score = ByClass(
        network.transformed(table), codes, folds=min(FOLDS, int(sizes.min())), settings=settings, penalty=0.0
    )
    terms = []
    for family in network.structure.families()[:-1]:
        parents = tuple(parent for parent in family.parents if parent != network.hidden)
        plain = [Family(family.node, parents, family.type)]
        by_class = score.by_class(plain)[:, 0] if len(parents) < len(family.parents) else score.whole(plain)
        terms.append(np.broadcast_to(by_class, (len(sizes), table.rows)))
    by_node = average_over_classes(np.stack([*terms, score.log_prior()], axis=1))
    return (by_node + network.log_slopes(table, network.nodes)).T


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


class Scoring(Enum):
    """How rows were scored."""

    AS_GIVEN = "by the network as it is"
    LEFT_OUT_ALONE = "by the network fitted to all other rows"
    LEFT_OUT_BY_FOLD = "by the network fitted to the other nine tenths of the rows"


@dataclass(frozen=True)
class UnusualRow:
    """A row with a low log-density."""

    position: int  # in the data, counted from 0
    label: str  # what it is called: by the index of a pandas frame, else by its position
    logpdf: float
    reasons: tuple[Reason, ...]  # the nodes to blame, the worst first; none if no node stands out


@dataclass(frozen=True, eq=False)
class UnusualRows:
    """The least likely rows of a table, and the scores of all of them.

    Attributes
    ----------
    rows
        The least likely rows, the most unusual first.
    nodes
        Names of the nodes.
    contributions
        Rows × nodes: what every node adds to the log-density of every row.
    typical
        What every node adds to that of a typical row.
    scoring
        How the rows were scored: training rows are left out of the fit.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> found = spbn.explain.unusual_rows(network, data, top=3)
    >>> print(len(found.rows), round(found.alarm(0.01), 1))
    3 -13.4
    """

    rows: tuple[UnusualRow, ...]
    nodes: tuple[str, ...]
    contributions: FloatArray
    typical: Mapping[str, float]
    scoring: Scoring

    @property
    def logpdf(self) -> FloatArray:
        """Log-density of every row."""
        return self.contributions.sum(axis=1)

    @property
    def left_out(self) -> bool:
        """Whether these are the training rows, each scored by parameters that were fitted without it."""
        return self.scoring is not Scoring.AS_GIVEN

    @property
    def mean(self) -> float:
        """Mean log-density of a row."""
        return float(self.logpdf.mean())

    @property
    def median(self) -> float:
        """Log-density of the row in the middle."""
        return float(np.median(self.logpdf))

    @renamed(share="rate")
    def alarm(self, rate: float) -> float | None:
        """Return the log-density below which a new row is among the most unusual.

        If new rows come from where these came from, and these were scored as new ones are, at most this share
        of new rows is below it: of n rows and a new one, each is equally likely to be the k-th most unusual,
        so it is the log-density of row k = rate · (n + 1), rounded down. (Of discrete variables, many rows
        may have exactly this log-density.) None if there are too few rows to tell.

        Parameters
        ----------
        rate
            The share of new rows that raise a false alarm, such as 0.01.
        """
        place = int(rate * (len(self.logpdf) + 1) + 1e-9)
        return float(np.sort(self.logpdf)[place - 1]) if place >= 1 else None

    _repr_html_ = display.repr_html

    def __repr__(self) -> str:
        return f"UnusualRows({len(self.rows)} of {len(self.logpdf)} rows, scored {self.scoring.value})"

    def __str__(self) -> str:
        lines = [f"{len(self.logpdf)} rows, scored {self.scoring.value}; the least likely:"]
        for row in self.rows:
            blamed = ", ".join(f"{reason.node} ({-reason.drop:.1f})" for reason in row.reasons)
            lines.append(f"{row.label}: {row.logpdf:.1f}{f', because of {blamed}' if blamed else ''}")
        return "\n".join(lines)


def unusual_rows(network: BayesianNetwork, data: Any, *, top: int = SHOWN_ROWS) -> UnusualRows:
    """Score rows, and say which are the least likely and why.

    Training rows are left out of the fit when they are scored: one by one if there are up to 1,000, otherwise
    a tenth at a time. The training table is recognised by its hash, so it must be complete and in its order;
    any other rows are scored as new ones.

    Parameters
    ----------
    data
        A table with the columns of the network.
    top
        How many rows to return.

    Examples
    --------
    >>> import spbn
    >>> structure = spbn.datasets.synthetic_structure()
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.BayesianNetwork.fit(structure, data)
    >>> rows = data.copy()
    >>> rows.loc[7, "D"] += 9.0
    >>> found = spbn.explain.unusual_rows(network, rows, top=1)
    >>> print(found.rows[0].label, found.rows[0].reasons[0].node)
    7 D
    """
    return find_unusual(network, gather_rows(network, data), top=top)


def find_unusual(network: BayesianNetwork, evidence: Evidence, *, top: int = SHOWN_ROWS) -> UnusualRows:
    """Do what `unusual_rows` says for rows that have been read already."""
    whole("top", top)
    table = evidence.table
    if table is None or table.names != tuple(variable.name for variable in network.variables):
        raise ArgumentError("rows can be scored only if they have a value for every node: give data.")
    scoring = Scoring.AS_GIVEN
    known = network.record
    is_training_table = (
        known.data_hash is not None
        and table.rows >= FEWEST_ROWS
        and table.rows == known.rows
        and table.digest == known.data_hash
    )
    if is_training_table and settings_of(network) is not None:
        scoring = Scoring.LEFT_OUT_ALONE if table.rows <= ONE_BY_ONE else Scoring.LEFT_OUT_BY_FOLD
    left_out = {Scoring.LEFT_OUT_ALONE: leave_one_out, Scoring.LEFT_OUT_BY_FOLD: out_of_fold}
    with np.errstate(over="ignore"):
        # A square that overflows is -inf: finite numbers can be added and compared.
        contributions = finite_log_density(
            left_out[scoring](network, table) if scoring in left_out else network.contributions(table)
        )
    blame = Blame(network)

    def explain(row: int) -> tuple[Reason, ...]:
        return blame.reasons(table.take([row]), contributions[row], left_out=scoring in left_out)

    rows = _least_likely(contributions, top, evidence.labels, explain)
    return UnusualRows(rows, network.nodes, contributions, blame.typical, scoring)


def unusual_in_time(network: DynamicNetwork, data: Any, *, top: int = SHOWN_ROWS) -> UnusualRows:
    """Score rows given those before them in their series, and say which are the least likely and why.

    Rows that the network was fitted to are left out of the fit when they are scored, as by `unusual_rows`;
    but for the first ones of a series, which the static network scores as it is.
    """
    whole("top", top)
    table, runs = network.read(data)
    contributions = finite_log_density(network.contributions(data))
    evidence = gather_rows(network.transition, network.lagged(data))
    found = find_unusual(network.transition, evidence, top=0)
    scoring = Scoring.AS_GIVEN if network.hidden is not None else found.scoring
    later = runs.windows(network.lags + 1)[:, 0]
    if network.hidden is None:  # a class depends on other rows too
        contributions[later] = found.contributions
    blame, first = Blame(network.transition), Blame(network.static)
    transition_rows = evidence.table
    assert transition_rows is not None
    lagged = {row: place for place, row in enumerate(later.tolist())}
    windows = [window for width in range(1, network.lags + 1) for window in runs.beginnings(width)]
    beginnings = {int(window[0]): window for window in windows}

    def explain(row: int) -> tuple[Reason, ...]:
        if row in lagged:
            rows, left_out = transition_rows.take([lagged[row]]), scoring is not Scoring.AS_GIVEN
            return blame.reasons(rows, contributions[row], left_out=left_out)
        window = beginnings[row]
        lag = network.lags - len(window)
        # Rows to come have any value, and say nothing.
        padded = np.concatenate([np.repeat(window[:1], lag), window])
        names = {n if n == network.hidden else lag_name(n, lag): n for n in network.nodes}
        own = dict(zip(names, contributions[row].tolist(), strict=True))
        by_node = np.array([own.get(node, np.nan) for node in network.static.nodes])
        rows = lagged_table(table, padded[None], range(network.lags)).select(
            [v.name for v in network.static.variables]
        )
        return tuple(replace(reason, node=names[reason.node]) for reason in first.reasons(rows, by_node))

    index = frame_index(data)
    rows = _least_likely(contributions, top, () if index is None else index, explain)
    return UnusualRows(rows, network.nodes, contributions, found.typical, scoring)


def _least_likely(
    contributions: FloatArray, top: int, labels: Sequence[Any], explain: Callable[[int], tuple[Reason, ...]]
) -> tuple[UnusualRow, ...]:
    """Return the least likely rows, the most unusual first."""
    total = contributions.sum(axis=1)
    return tuple(
        UnusualRow(i, str(labels[i]) if len(labels) else str(i), float(total[i]), explain(i))
        for i in np.argsort(total, kind="stable")[:top].tolist()
    )


def reasons(network: BayesianNetwork, data: Any) -> list[tuple[Reason, ...]]:
    """Return for every row the cells that make it unusual, the worst first; none if no cell stands out.

    They are the fewest whose repair, by what the rest of the row makes plausible, leaves the row as likely as
    is typical. Missing values are filled by draws.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(500, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> row = data.head(1).assign(D=99.0, E=float("nan"))
    >>> spbn.explain.reasons(network, row)[0][0].node
    'D'
    """
    table, blame = as_table(data, variables=network.variables, missing="keep"), Blame(network)
    return [blame.reasons(table.take([row])) for row in range(table.rows)]
