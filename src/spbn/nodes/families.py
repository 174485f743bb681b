"""Families by name: a node, its parents and its type."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spbn._base.arrays import BoolArray
from spbn.errors import GraphError, quoted
from spbn.nodes.base import NodeType, place_of, registered
from spbn.nodes.linear_gaussian import NODE_TYPE as LG_TYPE
from spbn.rows.families import FamilyBatch


class Family(NamedTuple):
    """A node, its parents and its type: all that a local score depends on.

    Examples
    --------
    >>> import spbn
    >>> family = spbn.nodes.Family("C", ("A", "B"), spbn.NodeType.CKDE)
    >>> print(family)
    C | A, B (ckde)
    """

    node: str
    parents: tuple[str, ...] = ()
    type: NodeType = LG_TYPE

    def __str__(self) -> str:
        return f"{self.node} | {', '.join(self.parents) or '∅'} ({self.type})"


#: What is accepted as a family: one, or a tuple like it.
AnyFamily = Family | tuple[str, Iterable[str], NodeType | str]


def named_batch(columns: tuple[str, ...], families: Sequence[AnyFamily]) -> FamilyBatch:
    """Read families of some columns that are given by name, and refuse anything else."""
    place = {name: i for i, name in enumerate(columns)}
    nodes = np.empty(len(families), dtype=np.int64)
    parents = np.zeros((len(families), len(columns)), dtype=bool)
    types = np.empty(len(families), dtype=np.int8)
    for f, family in enumerate(families):
        try:
            node, given, node_type = _completed(*family)
            given = tuple(given)
            nodes[f] = place[node]
            parents[f, [place[name] for name in given]] = True
        except (TypeError, ValueError):
            raise GraphError(f"a family is (node, parents, type), by name. Got {family!r:.200}.") from None
        except KeyError as error:
            raise GraphError(
                f"the score's data has no column {error.args[0]!r}. It has {quoted(columns)}."
            ) from None
        if parents[f].sum() < len(given) or parents[f, nodes[f]]:
            raise GraphError(f"the parents of {node!r} must be distinct other nodes. Got {quoted(given)}.")
        types[f] = place_of(NodeType.parse(node_type))
    return FamilyBatch(columns, nodes, parents, types)


def families_of(batch: FamilyBatch) -> list[Family]:
    """Return the families of a batch by name, parents in column order."""
    names, types = batch.columns, registered()
    return [
        Family(names[members[-1]], tuple([names[i] for i in members[:-1]]), types[node_type])
        for members, node_type in zip(batch.column_tuples, batch.types.tolist(), strict=True)
    ]


def of_type(batch: FamilyBatch, node_type: NodeType) -> BoolArray:
    """Tell which families of a batch have a node of this type."""
    return batch.types == place_of(node_type)


def _completed(
    node: str, parents: Iterable[str] = (), node_type: NodeType | str = LG_TYPE
) -> tuple[str, Iterable[str], NodeType | str]:
    return node, parents, node_type
