"""Variable elimination: sums over the levels of discrete nodes, of products of tables.

`opt_einsum` finds the order in which tables are multiplied and nodes are summed out. The sums themselves are
taken here, of logarithms: densities of many nodes differ by more powers of ten than numbers have. What comes
of it is a tree of products. One pass upwards gives the sum of everything, one pass downwards the marginal
distribution of the nodes of every table, and the distributions along the tree draw levels of all nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spbn._base.arrays import LOG_ZERO, FloatArray, IntArray, relative_weights

Scope = tuple[int, ...]  # some nodes, in ascending order


@dataclass(frozen=True)
class Step:
    """A product of one or two tables, summed over the nodes that no other table has."""

    parts: tuple[int, ...]
    scope: Scope  # of the product
    left: Scope  # of the sum


@dataclass(frozen=True)
class Order:
    """The steps in which tables become numbers, of tables over no nodes: each step makes one more table."""

    scopes: tuple[Scope, ...]  # of all tables, the given ones first
    steps: tuple[Step, ...]
    cells: int  # of all products together

    @classmethod
    def of(cls, given: Sequence[Scope], sizes: Mapping[int, int]) -> Order:
        """Find an order for tables over some nodes, which have so many levels."""
        from opt_einsum.paths import ssa_greedy_optimize

        scopes, steps = list(given), list[Step]()
        uses = Counter(node for scope in scopes for node in scope)

        def add(*parts: int) -> int:
            scope = tuple(sorted({node for part in parts for node in scopes[part]}))
            uses.subtract(node for part in parts for node in scopes[part])
            left = tuple(node for node in scope if uses[node])
            uses.update(left)
            steps.append(Step(parts, scope, left))
            scopes.append(left)
            return len(scopes) - 1

        # Nodes that only one table has are summed out first, so that no product has them.
        alone = [any(uses[node] == 1 for node in scope) for scope in given]
        places = [add(place) if alone[place] else place for place in range(len(given))]
        numbers = dict(enumerate(place for place in places if scopes[place]))
        sets = [frozenset(scopes[place]) for place in numbers.values()]
        for parts in ssa_greedy_optimize(sets, frozenset(), sizes) if len(sets) > 1 else ():
            together = [numbers[part] for part in parts]
            is_number = not any(scopes[k] for k in together)  # which need no table of their product
            numbers[len(numbers)] = together[0] if is_number else add(*together)
        cells = sum(math.prod(sizes[node] for node in step.scope) for step in steps)
        return cls(tuple(scopes), tuple(steps), cells)


class Elimination:
    """Tables of logarithms, multiplied and summed.

    Tables have an axis for cases, perhaps with a length of one for all of them, and one for each of their
    nodes.
    """

    def __init__(self, order: Order, given: Sequence[FloatArray]) -> None:
        self._order, self._given = order, list(given)
        # Only ratios matter within a table, and small numbers keep more digits.
        tops = [
            np.maximum(logs.max(axis=tuple(range(1, logs.ndim)), keepdims=True), LOG_ZERO) for logs in given
        ]
        self._tables = [logs - top for logs, top in zip(given, tops, strict=True)]
        for step in order.steps:
            self._tables.append(_log_sum(self._product(step), step.scope, step.left))
        single = [table for scope, table in zip(order.scopes, self._tables, strict=True) if not scope]
        #: The logarithm of the sum of everything, for every case.
        self.log_total: FloatArray = np.zeros(1) + sum(part.reshape(len(part)) for part in (*tops, *single))

    def marginal(self, table: int) -> FloatArray:
        """Return the probabilities of all levels of a table's nodes, in the shape of the table."""
        logs = self._tables[table] + self._rest[table]
        weights = relative_weights(logs.reshape(len(logs), -1))
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
        return weights.reshape(logs.shape)

    def times(self, factors: Mapping[int, FloatArray]) -> Elimination:
        """Return the same with some of the tables multiplied: logarithms, by number of the table."""
        given = [logs + factors.get(number, 0.0) for number, logs in enumerate(self._given)]
        return Elimination(self._order, given)

    def draw(self, cases: int, n: int, rng: np.random.Generator) -> dict[int, IntArray]:
        """Draw levels of all nodes, n times for every case: cases × n, by node."""
        drawn: dict[int, IntArray] = {}
        here = np.arange(cases)[:, None]
        for step in reversed(self._order.steps):
            summed = [node for node in step.scope if node not in step.left]
            if not summed:
                continue
            product = self._product(step)
            shape = dict(zip(step.scope, product.shape[1:], strict=True))
            axes = [1 + step.scope.index(node) for node in (*step.left, *summed)]
            logs = product.transpose(0, *axes).reshape(len(product), -1, math.prod(shape[k] for k in summed))
            bounds = np.cumsum(relative_weights(logs), axis=2)
            at = np.zeros((cases, n), dtype=np.int64)
            for node in step.left:
                at = at * shape[node] + drawn[node]
            mine = here if len(bounds) > 1 else 0
            wanted = rng.random((cases, n)) * bounds[mine, at, -1]
            place = _first_above(bounds, mine, at, wanted)
            for node in reversed(summed):
                place, drawn[node] = np.divmod(place, shape[node])
        return drawn

    @cached_property
    def _rest(self) -> list[FloatArray]:
        """The product of everything but a table, summed over all nodes that the table does not have."""
        rest = [np.zeros(1)] * len(self._tables)
        for number, step in reversed(list(enumerate(self._order.steps, start=len(self._given)))):
            above = _expanded(rest[number], step.left, step.scope)
            for part in step.parts:
                others = sum((self._widened(k, step) for k in step.parts if k != part), start=above)
                rest[part] = _log_sum(others, step.scope, self._order.scopes[part])
        return rest

    def _product(self, step: Step) -> FloatArray:
        first, *rest = (self._widened(part, step) for part in step.parts)
        return sum(rest, start=first)

    def _widened(self, table: int, step: Step) -> FloatArray:
        return _expanded(self._tables[table], self._order.scopes[table], step.scope)


def _expanded(table: FloatArray, scope: Scope, wider: Scope) -> FloatArray:
    """Give a table an axis for every node of a wider scope."""
    if scope == wider:
        return table
    lengths = dict(zip(scope, table.shape[1:], strict=True))
    return table.reshape(len(table), *(lengths.get(node, 1) for node in wider))


def _log_sum(logs: FloatArray, scope: Scope, left: Scope) -> FloatArray:
    """Sum over the nodes that are not left."""
    axes = tuple(1 + axis for axis, node in enumerate(scope) if node not in left)
    if not axes:
        return logs
    top = np.maximum(logs.max(axis=axes, keepdims=True), LOG_ZERO)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(logs - top).sum(axis=axes)) + top.reshape(
            [length for axis, length in enumerate(logs.shape) if axis not in axes]
        )


def _first_above(bounds: FloatArray, cases: IntArray | int, rows: IntArray, wanted: FloatArray) -> IntArray:
    """Return the first place in a row of ascending bounds that is above a number; the last one if none is."""
    low, high = np.zeros(rows.shape, dtype=np.int64), np.full(rows.shape, bounds.shape[2] - 1)
    for _ in range(int(bounds.shape[2]).bit_length()):
        middle = (low + high) // 2
        above = bounds[cases, rows, middle] > wanted
        low, high = np.where(above, low, np.minimum(middle + 1, high)), np.where(above, middle, high)
    return low
