"""Local lines: many lines, each of which holds for some values of the parents.

    f(x | pa) = g(pa, x) / g(pa),

where g is a small Gaussian mixture of parents and node (`numerics.local_mixtures`). Given the parents, that
is a mixture of lines with normal noise, whose weights depend on the parents. It is a component of blends:
thin bent sheets, several branches and noise that changes with the parents are close to a line locally.

A mixture belongs to a set of columns, whichever of them is the node. Nothing is fitted to rows that are far
out in any of them, and beyond these parents count as if they were at the edge.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, equal_fields, frozen, relative_weights
from spbn._base.files import ArrayReader, ArrayWriter, family_of, numbers, refuse
from spbn._base.jit import run_tasks
from spbn.nodes.base import ComponentMixture
from spbn.numerics.local_mixtures import (
    LineArrays,
    LocalMixtures,
    fit_mixtures,
    lines_of,
    local_log_densities,
    rounding_error,
)
from spbn.numerics.spreads import FAR_OUT, Spreads, spreads_of
from spbn.numerics.student import Component
from spbn.rows.families import FamilyBatch
from spbn.rows.store import Columns, RowStore, SumRequest

MOST_ROWS = 10_000  # that mixtures are fitted to
MOST_GROUPS = 10  # that are left out; if there are more, several at a time
KEPT_BYTES = 1 << 26  # of mixtures, by set of columns
MOST_IN_A_FILE = 1 << 12  # lines of one node


@final
@dataclass(frozen=True, eq=False)
class LocalLines(ComponentMixture):
    """A mixture of lines whose weights depend on the parents.

    Attributes
    ----------
    parents
        Their names.
    bounds
        The least and the greatest values of the parents, within which these are held: 2 × parents.
    logs
        Logarithms of the weights times the greatest densities of the parents, by line.
    means
        Where each line holds: lines × parents and, last, node.
    whiteners
        Inverse Cholesky factors of the covariances there: lines × columns × columns.
    """

    parents: tuple[str, ...]
    bounds: FloatArray
    logs: FloatArray
    means: FloatArray
    whiteners: FloatArray

    __eq__ = equal_fields
    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def logpdf_of_columns(self, columns: FloatArray) -> FloatArray:
        """Log-density of every row of the parents and, last, the node."""
        logs, means, whiteners = (frozen(each[None]) for each in (self.logs, self.means, self.whiteners))
        ends = np.array([0, columns.shape[1]])
        return local_log_densities(frozen(columns), ends, logs, means, whiteners, self.bounds)

    def pool(self, others: Sequence[LocalLines]) -> LocalLines:
        """Return all of their lines."""
        if all(lines == self for lines in others):
            return self
        every = (self, *others)
        low, high = (np.stack([lines.bounds[end] for lines in every]) for end in (0, 1))
        return LocalLines(
            self.parents,
            frozen(np.stack([low.min(axis=0), high.max(axis=0)])),
            frozen(np.concatenate([lines.logs for lines in every]) - np.log(len(every))),
            frozen(np.concatenate([lines.means for lines in every])),
            frozen(np.concatenate([lines.whiteners for lines in every])),
        )

    def to_record(self, arrays: ArrayWriter) -> dict[str, Any]:
        lower = np.tril_indices(self.means.shape[1])
        columns = [self.logs, *self.means.T, *self.whiteners[:, lower[0], lower[1]].T]
        return {
            "bounds": self.bounds.tolist(),
            "lines": [arrays.add(frozen(column)) for column in columns],
        }

    @staticmethod
    def from_record(record: Mapping[str, Any], arrays: ArrayReader) -> LocalLines:
        node, parents = family_of(record)
        d = len(parents) + 1
        bounds = numbers(record, "bounds", (2, len(parents)))
        rows, columns = np.tril_indices(d)
        found = np.array(arrays.columns(record, "lines", 1 + d + len(rows)))
        count = found.shape[1]
        if not 0 < count <= MOST_IN_A_FILE:
            refuse(f"{node!r} must have 1 to {MOST_IN_A_FILE} local lines. Got {count}.")
        whiteners = np.zeros((count, d, d))
        whiteners[:, rows, columns] = found[1 + d :].T
        if not np.isfinite(found).all() or not (np.diagonal(whiteners, axis1=1, axis2=2) > 0.0).all():
            refuse(f"the local lines of {node!r} must have finite numbers and positive widths.")
        if (bounds[0] > bounds[1]).any():
            refuse(f"the bounds of the parents of {node!r} must be in order. Got {bounds.tolist()}.")
        means = frozen(found[1 : 1 + d].T)
        return LocalLines(parents, frozen(bounds), frozen(found[0]), means, frozen(whiteners))

    def _components(self, parents: FloatArray) -> list[Component]:
        """Return the lines and their weights, for every row of the parents."""
        held = np.clip(parents, *self.bounds[:, :, None]) if len(parents) else parents
        logs, centres = [], []
        for log, mean, whitener in zip(self.logs, self.means, self.whiteners, strict=True):
            apart = held - mean[:-1, None]
            logs.append(log - 0.5 * ((whitener[:-1, :-1] @ apart) ** 2).sum(axis=0))
            centres.append(mean[-1] - whitener[-1, :-1] @ apart / whitener[-1, -1])
        weights = relative_weights(np.stack(logs), axis=0)
        weights /= weights.sum(axis=0)
        widths = 1.0 / self.whiteners[:, -1, -1]
        return [
            Component(weight, None, centre, np.full(len(centre), width))
            for weight, centre, width in zip(weights, centres, widths.tolist(), strict=True)
        ]


@final
class LocalScorer:
    """Scores families by local lines: families of the same columns share a mixture."""

    function = staticmethod(local_log_densities)

    def __init__(self, rows: RowStore) -> None:
        self._rows = rows
        self._known: OrderedDict[Columns, LocalMixtures | None] = OrderedDict()
        self._size = 0  # of what is known, in bytes

    def totals(self, families: FamilyBatch) -> FloatArray:
        return self.rows(families).sum(axis=1)

    def rows(self, families: FamilyBatch) -> FloatArray:
        if self._rows.inner_folds is None:
            return np.stack([self._fold_by_fold(columns) for columns in families.column_tuples])
        out = np.full((len(families), self._rows.pieces), -np.inf)
        found = list(self.parameters(families.column_tuples))
        if found:
            values = self._rows.values(local_log_densities, [request for _, request in found])
            out[[number for number, _ in found]] = values
        return out

    def parameters(self, families: Sequence[Columns]) -> Iterator[tuple[int, SumRequest]]:
        """Yield the numbers of families, and what `local_log_densities` needs for them."""
        fitted_by, folds = self._rows.fitted_by, self._rows.inner_folds
        assert fitted_by is not None
        assert folds is not None
        chooser = local_scorer(fitted_by)
        fits = chooser._fits({tuple(sorted(columns)) for columns in families})
        for number, columns in enumerate(families):
            mixtures = fits[tuple(sorted(columns))]
            if mixtures is not None:
                lines, bounds = _lines(mixtures, columns, chooser._rows.spreads)
                chosen = np.append(chooser._left_out, -1)[list(folds)]
                yield number, SumRequest(columns, tuple(values[chosen] for values in lines), (bounds,))

    def fit(self, columns: Columns) -> LocalLines | None:
        """Return the lines of the last of some columns in all rows; None if there are too few rows."""
        (mixtures,) = self._fits({tuple(sorted(columns))}).values()
        names = tuple(self._rows.variables[column].name for column in columns[:-1])
        return None if mixtures is None else _lines_of_all(mixtures, columns, self._rows.spreads, names)

    def _fold_by_fold(self, columns: Columns) -> FloatArray:
        names = [self._rows.variables[column].name for column in columns]
        by_group, every = [], tuple(range(len(columns)))
        for train, test in self._rows.fold_tables(names):
            spreads = spreads_of(train.columns)
            sample = _Sample(train.columns, np.array([0, train.rows]), spreads)
            mixtures = sample.fit(every)
            if mixtures is None:
                return np.full(self._rows.pieces, -np.inf)
            lines = _lines_of_all(mixtures, every, spreads, tuple(names[:-1]))
            by_group.append(lines.logpdf_of_columns(test.columns))
        return self._rows.by_piece(by_group)

    @cached_property
    def _left_out(self) -> IntArray:
        """For every group, which of at most `MOST_GROUPS` runs of groups it is in, that are left out."""
        groups = len(self._rows.test.counts)
        return np.arange(groups) * min(groups, MOST_GROUPS) // groups

    @cached_property
    def _sample(self) -> _Sample:
        rows, starts = self._rows.sample(MOST_ROWS)
        first = np.searchsorted(self._left_out, np.arange(self._left_out[-1] + 1))
        return _Sample(rows, starts[np.append(first, len(starts) - 1)], self._rows.spreads)

    def _fits(self, sets: set[Columns]) -> dict[Columns, LocalMixtures | None]:
        """Return the mixtures of some sets of columns, in ascending order; None for those without any."""
        found = {columns: self._known[columns] for columns in sets if columns in self._known}
        unknown = sorted(sets - found.keys())
        if len(self._rows.test.counts) < 2:
            return dict.fromkeys(sets)

        def fit(columns: Columns) -> None:
            found[columns] = self._sample.fit(columns)

        if unknown:
            self._sample.is_near  # noqa: B018 -- before threads ask for it
        run_tasks(fit, [(columns,) for columns in unknown])
        for columns in sorted(sets):
            self._known[columns] = found[columns]
            self._known.move_to_end(columns)
        self._size += sum(_bytes(found[columns]) for columns in unknown)
        while self._size > KEPT_BYTES and len(self._known) > 1:
            self._size -= _bytes(self._known.popitem(last=False)[1])
        return found


@final
class LocalLinesType:
    """By this name a store of rows remembers the scorer, and with it the mixtures."""

    name = "local lines"

    def scorer(self, rows: RowStore) -> LocalScorer:
        return LocalScorer(rows)


def local_scorer(rows: RowStore) -> LocalScorer:
    """Return the scorer of local lines on some rows."""
    scorer = rows.scorer(LocalLinesType())
    assert isinstance(scorer, LocalScorer)
    return scorer


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows that mixtures are fitted to, in groups that are left out one at a time."""

    rows: FloatArray
    starts: IntArray
    spreads: Spreads

    @cached_property
    def is_near(self) -> BoolArray:
        """Columns × rows: where values are not far out."""
        low, high = self.spreads.bounds(FAR_OUT)
        return (self.rows >= low[:, None]) & (self.rows <= high[:, None])

    @cached_property
    def rounding(self) -> FloatArray:
        """The standard deviation that rounding adds to each column."""
        return np.array([rounding_error(column) for column in self.rows])

    def fit(self, columns: Columns) -> LocalMixtures | None:
        """Fit mixtures to some columns; None if there are too few rows, or a column is constant."""
        chosen = list(columns)
        centre, scale = self.spreads.centre[chosen, None], self.spreads.scale[chosen, None]
        if not (scale > 0.0).all():
            return None
        near = np.flatnonzero(self.is_near[chosen].all(axis=0))
        standard = (self.rows[chosen][:, near] - centre) / scale
        if not np.isfinite(standard).all():
            return None
        floors = (self.rounding[chosen] / scale[:, 0]) ** 2
        return fit_mixtures(standard, np.searchsorted(near, self.starts), floors)


def _lines(mixtures: LocalMixtures, columns: Columns, spreads: Spreads) -> tuple[LineArrays, FloatArray]:
    """Return the lines of the last of some columns, by group, and the bounds of the others."""
    chosen = list(columns)
    order = np.searchsorted(np.sort(chosen), chosen)
    bounds = np.stack(spreads.bounds(FAR_OUT))[:, chosen[:-1]]
    return lines_of(mixtures, order, spreads.centre[chosen], spreads.scale[chosen]), frozen(bounds)


def _lines_of_all(
    mixtures: LocalMixtures, columns: Columns, spreads: Spreads, parents: tuple[str, ...]
) -> LocalLines:
    """Return the lines of the last of some columns in all rows."""
    lines, bounds = _lines(mixtures, columns, spreads)
    return LocalLines(parents, bounds, *(frozen(values[-1]) for values in lines))


def _bytes(mixtures: LocalMixtures | None) -> int:
    return 0 if mixtures is None else sum(values.nbytes for values in mixtures)
