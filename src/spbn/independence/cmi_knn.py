"""CMIknn: conditional mutual information by nearest neighbours, tested by local permutation.

Neighbours are counted in compiled loops. Columns are integers, ranks or points of a fine grid, so that
distances are exact and a neighbour's distance is found by counting, in ever smaller intervals: a loop without
branches, which the compiler turns into vector instructions. With k a share of the rows, any search visits
O(rows²) pairs; this one visits several per nanosecond.
"""

from __future__ import annotations

from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import FloatArray, IntArray, Seed
from spbn._base.checks import either
from spbn._base.jit import compiled, run_tasks
from spbn.errors import ArgumentError, argument
from spbn.independence.base import IndependenceTest, require_positive, require_rows, root_seed, stream
from spbn.tables.reader import Missing
from spbn.tables.table import Table

#: Rows whose terms one thread adds up; fixed, so that the sum does not depend on the number of threads.
ROWS_A_TASK = 8
#: Distances on the grid must fit into 32 bits.
GRID = 2.0**30
#: Ties are broken by noise with this share of the standard deviation.
JITTER = 1e-6
#: Columns of integers.
Grid = npt.NDArray[np.int32]

ONE, NONE = np.uint32(1), np.uint32(0)


@final
class CMIknn(IndependenceTest):
    """Nearest-neighbour test of conditional mutual information (Runge, 2018).

    The conditional mutual information of x and y is estimated from the distance of every row to its k-th
    neighbour (Frenzel and Pompe, 2007; maximum norm), and compared with its values after x has been permuted
    among rows whose conditions are close, so that x keeps its dependence on the condition but loses that on
    y. Without a condition, x is permuted among all rows. The p-value is (1 + b) / (1 + B), if b of B
    permutations reach the estimate.

    It assumes independent rows and nothing about the form of the dependence. It costs O(permutations ×
    rows²): see docs/independence-tests.md for how long that takes. If the condition determines x or y,
    permutation changes next to nothing and the p-value is large.

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
        Fixes ties and permutations: those of a question depend on the seed and on its names alone.
    missing
        Refuse rows with missing or infinite values ("error") or leave them out ("drop").

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> test = spbn.independence.CMIknn(data.head(100), seed=0)
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
        self.permutation_neighbours = require_positive("permutation_neighbours", permutation_neighbours)
        self.permutations = require_positive("permutations", permutations)
        either("transform", transform, ("ranks", "standardise"))
        table = self._read(data, missing)
        self.neighbours = _count_of_neighbours(neighbours, table.rows)
        self._seed = root_seed(seed)
        noise = [stream(self._seed, "ties", name).random(table.rows) for name in table.names]
        to_grid = _ranks if transform == "ranks" else _standardised
        self._grid = to_grid(table, np.stack(noise))
        from scipy.special import digamma  # not at the top: it takes a third of a second

        self._digamma = np.concatenate([[0.0], digamma(np.arange(1, table.rows + 1))])

    def answer(self, x: IntArray, y: IntArray, sets: IntArray) -> FloatArray:
        require_rows(self.rows, self.permutation_neighbours + 1, sets.shape[1])
        questions = zip(x.tolist(), y.tolist(), sets, strict=True)
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

        def add_rows(start: int, terms: FloatArray) -> None:
            end = min(start + ROWS_A_TASK, self.rows)
            to_z = distances(given, start, end)
            to_yz = np.maximum(to_z, distances(y[None], start, end))
            order = np.argsort(to_yz, axis=1)
            add_information(x, to_z, to_yz, order, self.neighbours, self._digamma, start, terms)

        run_tasks(add_rows, list(zip(starts, terms, strict=True)))
        return terms.sum(axis=0)


def _count_of_neighbours(neighbours: float, rows: int) -> int:
    if not isinstance(neighbours, float | int) or not neighbours > 0:
        raise ArgumentError(
            f"{argument('neighbours')} must be a share of the rows or a count. Got {neighbours!r} instead."
        )
    count = max(1, int(neighbours * rows)) if neighbours < 1 else int(neighbours)
    if count >= rows:
        raise ArgumentError(
            f"{argument('neighbours')} must be fewer than the {rows} rows. Got {neighbours!r} instead."
        )
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
    return np.rint(columns * (GRID / columns.max())).astype(np.int32)


@compiled()
def distances(columns: Grid, first: int, end: int) -> Grid:
    """Return the distances of the rows from `first` to `end` to all rows; 0 if there are no columns."""
    found = np.zeros((end - first, columns.shape[1]), dtype=np.int32)
    for row in range(first, end):
        for column in columns:
            for j in range(len(column)):
                found[row - first, j] = max(found[row - first, j], _distance(column[j], column[row]))
    return found


@compiled()
def add_information(
    x: Grid,
    to_z: Grid,
    to_yz: Grid,
    order: IntArray,
    neighbours: int,
    digamma: FloatArray,
    first: int,
    terms: FloatArray,
) -> None:
    """Add to `terms` what some rows, from `first` on, contribute to the information of x and y.

    The estimate of Frenzel and Pompe is ψ(k) plus the mean over the rows of

        ψ(n_z) - ψ(n_xz) - ψ(n_yz),

    where n counts the rows nearer than the k-th neighbour, itself included, in a part of the variables.

    `x`: versions × rows.
    `to_z`, `to_yz`: `distances` of these rows in the condition, and in y and the condition.
    `order`: for each of these rows, all rows by their distance in y and the condition.
    `digamma`: ψ of 1, 2, ..., from place 1 on.
    `terms`: one for each version.
    """
    rows = x.shape[1]
    sorted_yz = np.empty_like(to_yz)
    ordered = order.astype(np.uint32)  # no index is negative: this is faster
    for i in range(len(to_yz)):
        sorted_yz[i] = to_yz[i][order[i]]
    radius = sorted_yz[:, min(3 * neighbours, rows - 1)].copy()
    to_xyz = np.empty(rows, dtype=np.int32)
    for version in range(len(x)):
        of_version = x[version]
        for i in range(len(to_yz)):
            centre = of_version[first + i]
            radius[i] = _radius(of_version, centre, ordered[i], sorted_yz[i], neighbours, radius[i], to_xyz)
            beyond = max(radius[i], np.int32(1))
            near_yz = np.searchsorted(sorted_yz[i], beyond)
            near_z, near_xz = _count_nearer(of_version, centre, to_z[i], beyond)
            terms[version] += digamma[near_z] - digamma[near_xz] - digamma[near_yz]


@compiled()
def _radius(
    x: Grid,
    centre: np.int32,
    order: npt.NDArray[np.uint32],
    sorted_yz: Grid,
    neighbours: int,
    guess: np.int32,
    to_xyz: Grid,
) -> np.int32:
    """Return the distance that `neighbours` other rows do not exceed, not counting the row itself.

    x only adds to a distance: rows are visited in order of the distance without x, and only as
    far as a radius goes. The search begins at a guess, the radius of a similar x.

    `order`, `sorted_yz`: the rows by their distance in the other variables, and that distance.
    `to_xyz`: room for the distances of the rows that are visited.
    """
    low, high, visited = sorted_yz[neighbours], max(guess, sorted_yz[neighbours]), 0
    while True:
        within = np.searchsorted(sorted_yz, high, side="right")
        for j in range(visited, within):
            to_xyz[j] = max(sorted_yz[j], _distance(x[order[j]], centre))
        visited = max(visited, within)
        if _count_within(to_xyz[:within], high) > neighbours:
            break
        low, high = np.int32(high + 1), np.int32(high + high // 8 + 1)
    step = np.int32(high // 32 + 1)  # down in growing steps, then by halves once one goes too far
    while low < high:
        middle = max(low, np.int32(high - step)) if step > 0 else np.int32(low + (high - low) // 2)
        within = np.searchsorted(sorted_yz, middle, side="right")
        if _count_within(to_xyz[:within], middle) > neighbours:
            high, step = middle, np.int32(2 * step)
        else:
            low, step = np.int32(middle + 1), np.int32(0)
    return high


# A sum or difference of 32 bits has 64 in compiled code, which halves the speed: hence the casts.


@compiled()
def _distance(a: np.int32, b: np.int32) -> np.int32:
    difference = np.int32(a - b)
    return max(difference, np.int32(-difference))


@compiled()
def _count_within(distances: Grid, radius: np.int32) -> np.uint32:
    """Count the distances that are not greater than the radius."""
    count = NONE
    for j in range(len(distances)):
        count = np.uint32(count + (ONE if distances[j] <= radius else NONE))
    return count


@compiled()
def _count_nearer(
    column: Grid, centre: np.int32, to_others: Grid, radius: np.int32
) -> tuple[np.uint32, np.uint32]:
    """Count the rows nearer than the radius in the other variables, and those nearer in the column too."""
    in_others, in_all = NONE, NONE
    for j in range(len(to_others)):
        both = max(to_others[j], _distance(column[j], centre))
        in_others = np.uint32(in_others + (ONE if to_others[j] < radius else NONE))
        in_all = np.uint32(in_all + (ONE if both < radius else NONE))
    return in_others, in_all


@compiled()
def nearest(given: Grid, neighbours: int) -> IntArray:
    """Return the nearest rows of every row, itself first; ties are in the order of their numbers."""
    rows = given.shape[1]
    found = np.empty((rows, neighbours), dtype=np.int64)
    kept = np.empty(neighbours, dtype=np.int64)
    for row in range(rows):
        to_others = distances(given, row, row + 1)[0]
        to_others[row] = -1
        kept[:] = np.iinfo(np.int32).max
        for j in range(rows):
            place = neighbours
            while place > 0 and to_others[j] < kept[place - 1]:
                place -= 1
            if place < neighbours:
                for k in range(neighbours - 1, place, -1):
                    kept[k], found[row, k] = kept[k - 1], found[row, k - 1]
                kept[place], found[row, place] = to_others[j], j
    return found


@compiled()
def local_permutations(rng: np.random.Generator, near: IntArray, out: IntArray) -> None:
    """Fill every row of `out` with a random permutation that moves values to near rows only.

    In a random order, each row takes the value of one of its neighbours at random that no other row has
    taken; if all are taken, the last of them again (Runge, 2018, algorithm 1).
    """
    rows, neighbours = near.shape
    for permutation in range(len(out)):
        taken = np.zeros(rows, dtype=np.bool_)
        order = np.arange(rows)
        for i in range(rows):  # shuffle while walking
            swap = i + int(rng.random() * (rows - i))
            order[i], order[swap] = order[swap], order[i]
            row = order[i]
            candidates = near[row].copy()
            for k in range(neighbours):
                swap = k + int(rng.random() * (neighbours - k))
                candidates[k], candidates[swap] = candidates[swap], candidates[k]
                if not taken[candidates[k]]:
                    break
            out[permutation, row] = candidates[k]
            taken[candidates[k]] = True
