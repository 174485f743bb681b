"""Tables with holes, filled to be learned from: stochastic structural EM.

The holes are first filled with draws from networks of the complete rows, if these are enough; otherwise with
draws from a normal distribution of the columns, which needs no complete rows. From there on a search, which
begins at the last structure, and fresh draws for all holes take turns. At the end the holes are drawn several
times, so that the network itself can be searched for by the mean of its score over all of these tables, and
fitted to all of them.

What fills the holes, networks of one kind or another or the normal distribution itself, is decided by hiding
values that are known (`best_filler`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.errors import DataError, SpbnError, in_python, quoted, setting
from spbn.inference.batch import gibbs_sweeps, impute_table, without_themselves
from spbn.network import BayesianNetwork
from spbn.numerics.gaussian import normal_of
from spbn.structure import Structure
from spbn.tables.table import Table, require_spread
from spbn.transforms import MarginsPlan

ROUNDS, COMPLETIONS = 4, 5
HIDDEN, TRIAL_ROWS, TRIAL_ROUNDS, TRIAL_DRAWS = 0.1, 2_000, 2, 10  # to choose what fills the holes
FEWEST_ROWS, ROWS_A_COLUMN = 30, 5  # complete rows needed to begin with a network of these alone
NORMAL_ROWS, NORMAL_COLUMNS = 2_000, 100  # that a normal distribution is estimated from, at most
LARGEST_SHARE = 0.5  # of a column, that may be missing without a warning

#: Learns from a complete table, from a structure on if there is one.
Learn = Callable[[Table, Structure | None], BayesianNetwork]


#: Fills the holes of a table, NaN: in that many rounds, and then several times. Returns the completed tables,
#: and the score that the search of every round reached.
Filler = Callable[[Table, np.random.Generator, int, int], tuple[list[Table], list[float]]]


def by_networks(
    learn: Learn, learn_lines: Callable[[Table], BayesianNetwork], margins: MarginsPlan
) -> Filler:
    """Return what fills holes with draws from networks, while these are being learned.

    It begins with Gaussian networks, which `learn_lines` learns, and with a normal distribution that has
    these margins.
    """

    def filler(
        table: Table, rng: np.random.Generator, rounds: int, draws: int
    ) -> tuple[list[Table], list[float]]:
        holes = np.isnan(table.columns)
        filled, structure = _first(table, holes, learn, learn_lines, margins, rng)
        scores = []
        for _ in range(rounds):
            network = learn(filled, structure)
            scores.append(_score(network))
            filled, structure = _refreshed(network, filled, holes, rng), network.structure
        tables = [filled]
        while len(tables) < draws:
            tables.append(_refreshed(network, tables[-1], holes, rng))
        return tables, scores

    return filler


def by_normal(margins: MarginsPlan) -> Filler:
    """Return what fills the holes of continuous columns with draws from a normal distribution of them all."""
    return lambda table, rng, rounds, draws: (_from_normal(table, margins, draws, rng), [])


def best_filler(table: Table, fillers: Sequence[Filler], rng: np.random.Generator) -> Filler:
    """Return the filler whose draws are nearest to values that are known, but hidden from it."""
    if len(fillers) == 1:
        return fillers[0]
    if table.rows > TRIAL_ROWS:
        table = table.take(np.sort(rng.choice(table.rows, TRIAL_ROWS, replace=False)))
    hidden = ~np.isnan(table.columns) & (rng.random(table.columns.shape) < HIDDEN)
    hidden[(np.isnan(table.columns) | hidden).sum(axis=1) > table.rows // 2] = False
    if not hidden.any():
        return fillers[0]
    masked = table.with_columns(np.where(hidden, np.nan, table.columns))
    losses = []
    for filler in fillers:
        try:
            draws, _ = filler(masked, rng, TRIAL_ROUNDS, TRIAL_DRAWS)
        except SpbnError:  # too few values are left: the filler itself may still do
            losses.append(np.inf)
            continue
        losses.append(_loss(table, hidden, np.stack([drawn.columns for drawn in draws])))
    return fillers[int(np.argmin(losses))]


def _loss(table: Table, hidden: BoolArray, draws: FloatArray) -> float:
    """Return the mean energy score of draws of hidden values: E d(X, x) - E d(X, X') / 2.

    The distance d of two numbers is in standard deviations of their column; that of two levels is 0 or 1.
    For numbers this is the continuous ranked probability score.
    """
    total = 0.0
    for k, mine in enumerate(hidden):
        truth, found = table.columns[k, mine], draws[:, k, mine]
        if table.discrete[k]:
            apart = [found != other for other in (truth, *found)]
        else:
            scale = float(np.nanstd(table.columns[k])) or 1.0
            apart = [np.abs(found - other) / scale for other in (truth, *found)]
        pairs = len(found) * (len(found) - 1)
        total += float(np.mean(apart[0], axis=0).sum() - 0.5 * np.sum(apart[1:], axis=(0, 1)).sum() / pairs)
    return total / float(hidden.sum())


def _first(
    table: Table,
    holes: BoolArray,
    learn: Learn,
    learn_lines: Callable[[Table], BayesianNetwork],
    margins: MarginsPlan,
    rng: np.random.Generator,
) -> tuple[Table, Structure | None]:
    """Fill the holes for the first time; also return a structure to begin with, if there is one."""
    whole = np.flatnonzero(~holes.any(axis=0))
    if len(whole) >= max(FEWEST_ROWS, ROWS_A_COLUMN * len(table.names)):
        with suppress(SpbnError):  # some columns may not vary in these rows
            network = learn(table.take(whole), None)
            filled = impute_table(learn_lines(table.take(whole)), table, seed=rng)[0]
            return _refreshed(network, filled, holes, rng), network.structure
    filled = _from_normal(_from_columns(table, holes & table.discrete[:, None], rng), margins, 1, rng)[0]
    if table.discrete.any():
        filled = _like_the_columns(impute_table(learn_lines(filled), table, seed=rng)[0], holes)
    return filled, None


def _from_normal(table: Table, margins: MarginsPlan, draws: int, rng: np.random.Generator) -> list[Table]:
    """Fill the holes of continuous columns with draws from a normal distribution of those that vary."""
    holes = np.isnan(table.columns)
    rows = slice(None) if table.rows <= NORMAL_ROWS else rng.choice(table.rows, NORMAL_ROWS, replace=False)
    varied = np.fmin.reduce(table.columns[:, rows], axis=1) < np.fmax.reduce(table.columns[:, rows], axis=1)
    numbers = np.flatnonzero(~table.discrete & varied)
    if not 0 < len(numbers) <= NORMAL_COLUMNS:  # more would take long, and hang on few rows for every number
        return [_like_the_columns(_from_columns(table, holes, rng), holes) for _ in range(draws)]
    table = _from_columns(table, holes & ~(table.discrete | varied)[:, None], rng)
    there = [(table.names[k], table.columns[k]) for k in numbers]
    moves = [margins.transform(name, column[~np.isnan(column)]) for name, column in there]
    moved = np.stack(
        [c if m is None else m.forward(c) for m, c in zip(moves, table.columns[numbers], strict=True)]
    )
    tables = []
    for drawn in normal_of(moved[:, rows]).draw(moved, draws, rng):
        columns = table.columns.copy()
        for k, values, move in zip(numbers, drawn, moves, strict=True):
            columns[k, holes[k]] = values[holes[k]] if move is None else move.inverse(values[holes[k]])
        tables.append(_like_the_columns(table.with_columns(columns), holes))
    return tables


def _refreshed(network: BayesianNetwork, filled: Table, holes: BoolArray, rng: np.random.Generator) -> Table:
    """Draw all holes anew, each row by a network that does not know what it was filled with before."""
    columns = filled.columns.copy()
    for others, rows in without_themselves(network, filled):
        columns[:, rows] = gibbs_sweeps(others, filled.take(rows), holes[:, rows], rng).columns
    return _like_the_columns(filled.with_columns(columns), holes)


def _like_the_columns(filled: Table, holes: BoolArray) -> Table:
    """Let draws have as many values that occur several times as their columns have.

    Counts, and measurements that were rounded, have such values, and networks of kernels see them. The draws
    that are nearest to them are moved there.
    """
    columns = filled.columns.copy()
    for column, hole, discrete in zip(columns, holes, filled.discrete, strict=True):
        values, counts = np.unique(column[~hole], return_counts=True)
        common = values[counts > 1]
        if discrete or not hole.any() or not len(common):
            continue
        drawn = column[hole]
        place = np.searchsorted(0.5 * (common[1:] + common[:-1]), drawn)
        moved = round(len(drawn) * counts[counts > 1].sum() / counts.sum())
        nearest = np.argsort(np.abs(drawn - common[place]), kind="stable")[:moved]
        drawn[nearest] = common[place[nearest]]
        column[hole] = drawn
    return filled.with_columns(columns)


def _score(network: BayesianNetwork) -> float:
    """Return what the search climbed to; after PC, what the search for node types did."""
    for search in (network.search, network.type_search):
        score: Any = getattr(search, "score", None)
        if score is not None:
            return float(score)
    return float("nan")


def _from_columns(table: Table, holes: BoolArray, rng: np.random.Generator) -> Table:
    """Fill holes with values of other rows."""
    columns = table.columns.copy()
    for column, hole in zip(columns, holes, strict=True):
        if hole.any():
            column[hole] = rng.choice(column[~hole], size=int(hole.sum()))
    return table.with_columns(columns)


def require_values(table: Table) -> None:
    """Refuse columns without values, or with one value only, and warn of those with few."""
    holes = np.isnan(table.columns)
    empty = [name for name, hole in zip(table.names, holes, strict=True) if hole.sum() > table.rows - 2]
    if empty:
        raise DataError(
            f"{quoted(empty)} {'has' if len(empty) == 1 else 'have'} no values to learn from: leave it out "
            f"({setting('drop', empty)}{in_python(' in learn')})."
        )
    low, high = np.nanmin(table.columns, axis=1), np.nanmax(table.columns, axis=1)
    require_spread(table.names, low, high, 0.5 * low + 0.5 * high)
    many = [name for name, hole in zip(table.names, holes, strict=True) if hole.mean() > LARGEST_SHARE]
    if many:
        what = "column" if len(many) == 1 else "columns"
        warnings.warn(
            f"more than half of the values of {what} {quoted(many)} are missing: what is learned about "
            f"{'it' if len(many) == 1 else 'them'} rests on few rows.",
            stacklevel=6,
        )
