"""Tables with holes, filled to be learned from: stochastic structural EM.

The holes are first filled with draws from a network of the complete rows, if these are enough; otherwise with
draws from the columns themselves and then from a Gaussian network. From there on a search, which begins at
the last structure, and fresh draws for all holes take turns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from spbn.errors import DataError, SpbnError, quoted
from spbn.inference.gibbs import refreshed
from spbn.inference.holes import imputed
from spbn.network import BayesianNetwork
from spbn.numerics.arrays import BoolArray
from spbn.structure import Structure
from spbn.tables.table import Table

ROUNDS = 4
FEWEST_ROWS, ROWS_A_COLUMN = 30, 5  # without holes, for a first network of them alone
LARGEST_SHARE = 0.5  # of a column, that may be missing without a warning

#: Learns from a complete table, from a structure on if there is one.
Learn = Callable[[Table, Structure | None], BayesianNetwork]


def fill_holes(
    table: Table,
    learn: Learn,
    learn_lines: Callable[[Table], BayesianNetwork],
    rng: np.random.Generator,
    *,
    rounds: int = ROUNDS,
) -> tuple[Table, list[float]]:
    """Fill a table in which NaN is missing with draws from networks that are learned from it.

    Parameters
    ----------
    learn_lines
        Learns a Gaussian network from a complete table.

    Returns
    -------
    The table, with the draws of the last round, and the score that every search reached.
    """
    holes = np.isnan(table.columns)
    _require_some(table, holes)
    filled, structure = _first(table, holes, learn, learn_lines, rng)
    scores = []
    for _ in range(rounds):
        network = learn(filled, structure)
        scores.append(_score(network))
        filled, structure = refreshed(network, filled, holes, rng), network.structure
    return filled, scores


def _first(
    table: Table,
    holes: BoolArray,
    learn: Learn,
    learn_lines: Callable[[Table], BayesianNetwork],
    rng: np.random.Generator,
) -> tuple[Table, Structure | None]:
    """Fill the holes for the first time; also return a structure to begin with, if there is one."""
    whole = np.flatnonzero(~holes.any(axis=0))
    if len(whole) >= max(FEWEST_ROWS, ROWS_A_COLUMN * len(table.names)):
        with suppress(SpbnError):  # some columns may not vary in these rows
            network = learn(table.take(whole), None)
            return imputed(network, table, seed=rng)[0], network.structure
    filled = _from_columns(table, holes, rng)
    return imputed(learn_lines(filled), table, seed=rng)[0], None


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
        column[hole] = rng.choice(column[~hole], size=int(hole.sum()))
    return table.with_columns(columns)


def _require_some(table: Table, holes: BoolArray) -> None:
    empty = [name for name, hole in zip(table.names, holes, strict=True) if hole.sum() > table.rows - 2]
    if empty:
        raise DataError(
            f"{quoted(empty)} {'has' if len(empty) == 1 else 'have'} no values to learn from: leave it out "
            f"(drop={empty!r} in learn)."
        )
    many = [name for name, hole in zip(table.names, holes, strict=True) if hole.mean() > LARGEST_SHARE]
    if many:
        what = "column" if len(many) == 1 else "columns"
        warnings.warn(
            f"more than half of the values of {what} {quoted(many)} are missing: what is learned about "
            f"{'it' if len(many) == 1 else 'them'} rests on few rows.",
            stacklevel=4,
        )
