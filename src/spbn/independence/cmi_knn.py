"""CMIknn: conditional mutual information by nearest neighbours, tested by local permutation."""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np

from spbn.errors import ArgumentError
from spbn.independence.base import IndependenceTest, require_rows, root_seed, sorted_numbers, stream
from spbn.independence.knn_kernel import Grid, add_information, distances, local_permutations, nearest
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.random import Seed
from spbn.numerics.threads import started_threads
from spbn.tables.frames import Missing
from spbn.tables.table import Table

#: Rows whose terms one thread adds up; fixed, so that the sum does not depend on the number of threads.
ROWS_A_TASK = 8
#: Distances on the grid must fit into 32 bits.
GRID = 2.0**30
#: Ties are broken by noise with this share of the standard deviation.
JITTER = 1e-6


@final
class CMIknn(IndependenceTest):
    """Nearest-neighbour test of conditional mutual information (Runge, 2018).

    The conditional mutual information of x and y is estimated from the distance
    of every row to its k-th neighbour (Frenzel and Pompe, 2007; maximum norm),
    and compared with its values after x has been permuted among rows whose
    conditions are close, so that x keeps its dependence on the condition but
    loses that on y. Without a condition, x is permuted among all rows. The
    p-value is (1 + b) / (1 + B), if b of B permutations reach the estimate.

    It assumes independent rows and nothing about the form of the dependence. It
    costs O(permutations × rows²): see docs/independence-tests.md for how long
    that takes. If the condition determines x or y, permutation changes next to
    nothing and the p-value is large.

    Parameters
    ----------
    data
        A data frame or a dict of columns.
    neighbours
        k of the estimate: a share of the rows (below 1) or a count. More neighbours
        give less variance and more bias, which is what a test wants.
    permutation_neighbours
        Rows among which a value of x may move, itself included.
    permutations
        B. The smallest p-value is 1 / (1 + B).
    transform
        ``"ranks"``, or ``"standardise"`` to divide by the standard deviation; either makes
        the columns comparable. Ties are broken at random.
    seed
        Fixes ties and permutations: those of a question depend on the seed and on
        its names alone.
    missing
        Refuse rows with missing or infinite values ("error") or leave them out ("drop").

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> test = spbn.CMIknn(data.head(100), seed=0)
    >>> bool(test.pvalue("C", "D") < 0.05)
    True
    """

    def __init__(
        self,
        data: Any,
        *,
        neighbours: float = 0.1,
        permutation_neighbours: int = 5,
        permutations: int = 1000,
        transform: Literal["ranks", "standardise"] = "ranks",
        seed: Seed = 0,
        missing: Missing = "error",
    ) -> None:
        for name, count in (
            ("permutation_neighbours", permutation_neighbours),
            ("permutations", permutations),
        ):
            if not isinstance(count, int) or count < 1:
                raise ArgumentError(f"{name} must be a count, 1 or more. Got {count!r} instead.")
        if transform not in ("ranks", "standardise"):
            raise ArgumentError(f"transform must be 'ranks' or 'standardise'. Got {transform!r} instead.")
        variables, table = sorted_numbers(data, missing, "CMIknn")
        super().__init__(variables)
        self.rows = table.rows
        self.neighbours = _count_of_neighbours(neighbours, table.rows)
        self.permutation_neighbours = permutation_neighbours
        self.permutations = permutations
        self._seed = root_seed(seed)
        noise = [stream(self._seed, "ties", name).random(table.rows) for name in table.names]
        to_grid = _ranks if transform == "ranks" else _standardised
        self._grid = to_grid(table, np.stack(noise))
        from scipy.special import digamma  # not at the top: it takes a third of a second

        self._digamma = np.concatenate([[0.0], digamma(np.arange(1, table.rows + 1))])

    def answer(self, x: IntArray, y: IntArray, given: IntArray) -> FloatArray:
        """Return the p-values, question by question."""
        require_rows(self.rows, self.permutation_neighbours + 1, given.shape[1])
        questions = zip(x.tolist(), y.tolist(), given, strict=True)
        return np.array([self._pvalue(i, j, condition) for i, j, condition in questions], dtype=np.float64)

    def _pvalue(self, x: int, y: int, given: IntArray) -> float:
        rng = stream(self._seed, "permutations", *(self.names[i] for i in (x, y, *given)))
        orders = np.empty((1 + self.permutations, self.rows), dtype=np.int64)
        orders[0] = np.arange(self.rows)
        if len(given):
            near = nearest(self._grid[given], self.permutation_neighbours)
            local_permutations(rng, near, orders[1:])
        else:
            orders[1:] = rng.permuted(np.tile(orders[0], (self.permutations, 1)), axis=1)
        information = self._information(self._grid[x][orders], self._grid[y], self._grid[given])
        return float(np.mean(information >= information[0]))  # the first counts itself: (1 + b) / (1 + B)

    def _information(self, x: Grid, y: Grid, given: Grid) -> FloatArray:
        """Estimate the information for each version of x and y, up to a constant that they share."""
        starts = range(0, self.rows, ROWS_A_TASK)
        terms = np.zeros((len(starts), len(x)))
        tasks = [
            (start, min(start + ROWS_A_TASK, self.rows), of_task)
            for start, of_task in zip(starts, terms, strict=True)
        ]
        with started_threads() as threads:
            threads.run(self._add_rows, [(x, y, given, *task) for task in tasks])
        return terms.sum(axis=0)

    def _add_rows(self, x: Grid, y: Grid, given: Grid, start: int, end: int, terms: FloatArray) -> None:
        to_z = distances(given, start, end)
        to_yz = np.maximum(to_z, distances(y[None], start, end))
        order = np.argsort(to_yz, axis=1)
        add_information(x, to_z, to_yz, order, self.neighbours, self._digamma, start, terms)


def _count_of_neighbours(neighbours: float, rows: int) -> int:
    if not isinstance(neighbours, float | int) or not neighbours > 0:
        raise ArgumentError(f"neighbours must be a share of the rows or a count. Got {neighbours!r} instead.")
    count = max(1, int(neighbours * rows)) if neighbours < 1 else int(neighbours)
    if count >= rows:
        raise ArgumentError(f"neighbours must be fewer than the {rows} rows. Got {neighbours!r} instead.")
    return count


def _ranks(table: Table, noise: FloatArray) -> Grid:
    """Return the rank of every value in its column."""
    ranks = np.empty(table.columns.shape, dtype=np.int32)
    for rank, column, ties in zip(ranks, table.columns, noise, strict=True):
        rank[np.lexsort((ties, column))] = np.arange(table.rows)
    return ranks


def _standardised(table: Table, noise: FloatArray) -> Grid:
    """Return columns of standard deviation 1, rounded to a grid much finer than the noise."""
    columns = table.columns - table.columns.min(axis=1, keepdims=True)
    columns = columns / table.columns.std(axis=1, keepdims=True) + JITTER * noise
    grid: Grid = np.rint(columns * (GRID / columns.max())).astype(np.int32)
    return grid
