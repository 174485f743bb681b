"""Replicates of a search: the same one on random halves of the rows.

A replicate is half of the rows, drawn without replacement, with its columns in an order of their own, and a
search with folds and validation rows of its own. The order of the columns decides between arcs that score the
same, such as both directions of an arc: if it were always the same, so would be the direction.

Why half of the rows, and not a bootstrap sample as large as the table? Anything that varies like a mean
varies over half-samples as much as it does over bootstrap samples (Buja and Stuetzle, *Observations on
bagging*, 2006; Meinshausen and Bühlmann select variables by half-samples, *Stability selection*, 2010), and
half-samples have three advantages:

- No row is there twice. A copy of a training row among the rows that score it would make narrow kernels look
  good, and copies make a penalty like BIC's too small for what the rows can tell, so that arcs are added.
- Nothing has to know about weights or copies: every score, test and node type works as it is.
- Sums over pairs of rows cost a quarter.

The price is that a replicate sees fewer rows than the search on the whole table: an arc which half of the
rows are too few to show has a low strength.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from spbn.errors import ArgumentError, SpbnError
from spbn.learn import learn_structure
from spbn.numerics.arrays import IntArray
from spbn.structure import Structure
from spbn.tables.table import Table

DRAWN = 0.5  # of the rows, for every replicate
DRAWS = 100  # of rows, until no column is constant


def learned_replicates(
    client: Any, table: Table, tasks: Sequence[tuple[Any, ...]]
) -> Iterator[dict[str, Any]]:
    """Learn replicates, here or elsewhere."""
    if client is None:
        for task in tasks:
            yield learn_replicate(table, *task)
        return
    from spbn.distributed.clients import is_dask_client
    from spbn.distributed.crew import DaskCrew

    if is_dask_client(client):
        yield from (record for _, record in DaskCrew(client, table).map(learn_replicate, tasks))
        return
    if not callable(getattr(client, "submit", None)):
        raise ArgumentError(
            f"client must be a dask.distributed.Client, or have a method submit. Got {type(client).__name__}."
        )
    futures = [client.submit(learn_replicate, table, *task) for task in tasks]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def learn_replicate(table: Table, number: int, root: int, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Learn from some of the rows, and return the structure as plain data.

    Parameters
    ----------
    number, root
        Which replicate it is, and the seed of all of them: together they decide which rows are drawn.
    """
    rng = np.random.default_rng(np.random.SeedSequence(root, spawn_key=(number,)))
    rows = drawn_rows(table, rng)
    order = rng.permutation(np.array(table.names, dtype=object)).tolist()
    own = dict(settings)
    if "folds" in own and not np.isscalar(own["folds"]):
        own["folds"] = np.asarray(own["folds"])[rows]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about some rows only
            found = learn_structure(table.take(rows).select(order), seed=int(rng.integers(1 << 31)), **own)
    except SpbnError as error:
        raise type(error)(
            f"{error} (This is about replicate {number + 1}, with half of the rows.)"
        ) from error
    types = {node: node_type.name for node, node_type in found.types.items()}
    return {"replicate": number, "arcs": [list(arc) for arc in found.arcs], "types": types}


def drawn_rows(table: Table, rng: np.random.Generator) -> IntArray:
    """Draw half of the rows, in order and each once, in which no column is constant if that is possible."""
    for _ in range(DRAWS):
        rows = np.sort(rng.permutation(table.rows)[: max(2, round(DRAWN * table.rows))])
        columns = table.columns[:, rows]
        if (np.fmin.reduce(columns, axis=1) < np.fmax.reduce(columns, axis=1)).all():
            break
    return rows


def structure_of(record: Mapping[str, Any], nodes: Sequence[str]) -> Structure:
    """Return the structure that `learn_replicate` described."""
    return Structure(nodes, [(source, target) for source, target in record["arcs"]], record["types"])
