"""Counting neighbours, compiled.

Columns are integers, ranks or points of a fine grid, so that distances are
exact and a neighbour's distance is found by counting, in ever smaller intervals:
a loop without branches, which the compiler turns into vector instructions. With
k a share of the rows, any search visits O(rows²) pairs; this one visits
several per nanosecond.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spbn.numerics.arrays import FloatArray, IntArray
from spbn.numerics.compiling import compiled

#: Columns of integers.
Grid = npt.NDArray[np.int32]

ONE, NONE = np.uint32(1), np.uint32(0)


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

    where n counts the rows nearer than the k-th neighbour, itself included, in a
    part of the variables.

    Parameters
    ----------
    x
        Versions × rows.
    to_z, to_yz
        `distances` of these rows in the condition, and in y and the condition.
    order
        For each of these rows, all rows by their distance in y and the condition.
    digamma
        ψ of 1, 2, ..., from place 1 on.
    terms
        One for each version.
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

    Parameters
    ----------
    order, sorted_yz
        The rows by their distance in the other variables, and that distance.
    to_xyz
        Room for the distances of the rows that are visited.
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

    In a random order, each row takes the value of one of its neighbours at
    random that no other row has taken; if all are taken, the last of them again
    (Runge, 2018, algorithm 1).
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
