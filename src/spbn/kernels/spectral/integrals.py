"""Integrals of a tabled sum along its last variable: what distribution functions and draws are made of.

A field is read through windows: S(x) = Σ_m c_m ψ(m - x) along every axis. For given values of the other
variables that leaves a line of numbers c_m along the last axis, and its integral up to x is Σ_m c_m ∫ψ. The
window is made of polynomials, and so is its integral.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from spbn._base.arrays import FloatArray, frozen
from spbn._base.jit import REORDER, compiled
from spbn._base.threads import available_threads
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import DEGREE, WIDTH, stencil, wrapped
from spbn.kernels.spectral.tables import TabledDensity

LINES_A_CALL = 256
BISECTIONS = 50


def integrals(density: TabledDensity, given: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the integrals of the sums over the last variable, from low to high, inside the box.

    Parameters
    ----------
    given
        The other variables × queries, in the box.
    """
    out = np.empty(len(low))
    field, places, ends = _prepared(density, given, low, high)
    _run(_integrate, field, places, ends, out)
    out *= gridding.SPACING
    return out


def inverses(
    density: TabledDensity, given: FloatArray, low: FloatArray, high: FloatArray, wanted: FloatArray
) -> FloatArray:
    """Return the values between low and high up to which the integral from low is what is wanted."""
    out = np.empty(len(low))
    field, places, ends = _prepared(density, given, low, high)
    _run(_invert, field, places, ends, frozen(wanted / gridding.SPACING), out)
    return low + (out - ends[0]) * gridding.SPACING


def _prepared(
    density: TabledDensity, given: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the field, the last variable on its last axis, and where others and both ends are in it."""
    grid, field = density.lattice.grid, density.field
    places = [grid.positions(np.vstack([given, ends])) for ends in (low, high)]
    last = grid.axes[-1]
    ends = np.stack([place[last] for place in places])
    others = np.delete(places[0], last, axis=0)
    return frozen(np.moveaxis(field, last, 2)), frozen(others), frozen(ends)


def _run(
    function: object, field: FloatArray, places: FloatArray, ends: FloatArray, *arrays: FloatArray
) -> None:
    queries = ends.shape[1]
    threads = available_threads()
    threads.run(
        function,  # type: ignore[arg-type]
        [
            (first, min(first + LINES_A_CALL, queries), field, places, ends, *_polynomials(), *arrays)
            for first in range(0, queries, LINES_A_CALL)
        ],
    )


@cache
def _polynomials() -> tuple[FloatArray, FloatArray]:
    """The window's polynomials, and those of its integral from a place to its end, (DEGREE + 2) × WIDTH."""
    pieces = gridding.coefficients()
    integrals = np.zeros((DEGREE + 2, WIDTH))
    integrals[1:] = -pieces / np.arange(1, DEGREE + 2)[:, None]
    whole = -integrals.sum(axis=0)  # from 0 to 1
    integrals[0] = np.cumsum(whole[::-1])[::-1]
    return frozen(pieces), frozen(integrals)


@compiled(fastmath=REORDER)
def _read_line(
    field: FloatArray,
    places: FloatArray,
    query: int,
    pieces: FloatArray,
    x: FloatArray,
    y: FloatArray,
    line: FloatArray,
) -> None:
    """Put the line of a query, and in front of every number the sum of those before it."""
    i0, depth = stencil(places[0, query], field.shape[0], pieces, x)
    j0, height = stencil(places[1, query], field.shape[1], pieces, y)
    cells = field.shape[2]
    line[0] = 0.0
    for k in range(cells):
        line[cells + k] = 0.0
    for i in range(depth):
        plane = wrapped(i0 + i, field.shape[0])
        for j in range(height):
            row = wrapped(j0 + j, field.shape[1])
            factor = x[i] * y[j]
            for k in range(cells):
                line[cells + k] += factor * field[plane, row, k]
    for k in range(1, cells):
        line[k] = line[k - 1] + line[cells + k - 1]


@compiled(fastmath=REORDER)
def _up_to(place: float, line: FloatArray, integrals: FloatArray) -> float:
    """Integral of a line up to a place, in cells."""
    cells = len(line) // 2
    first = int(np.ceil(place))
    t = first - place
    whole = integrals[0, 0]  # of a window
    total = whole * line[first]
    for k in range(WIDTH):
        value = integrals[DEGREE + 1, k]
        for power in range(1, DEGREE + 2):
            value = value * t + integrals[DEGREE + 1 - power, k]
        total += value * line[cells + first + k]
    return total


@compiled()
def _integrate(
    first: int,
    end: int,
    field: FloatArray,
    places: FloatArray,
    ends: FloatArray,
    pieces: FloatArray,
    integrals: FloatArray,
    out: FloatArray,
) -> None:
    x, y, line = np.empty(WIDTH), np.empty(WIDTH), np.empty(2 * field.shape[2])
    for query in range(first, end):
        _read_line(field, places, query, pieces, x, y, line)
        out[query] = _up_to(ends[1, query], line, integrals) - _up_to(ends[0, query], line, integrals)


@compiled()
def _invert(
    first: int,
    end: int,
    field: FloatArray,
    places: FloatArray,
    ends: FloatArray,
    pieces: FloatArray,
    integrals: FloatArray,
    wanted: FloatArray,
    out: FloatArray,
) -> None:
    x, y, line = np.empty(WIDTH), np.empty(WIDTH), np.empty(2 * field.shape[2])
    for query in range(first, end):
        _read_line(field, places, query, pieces, x, y, line)
        low, high = ends[0, query], ends[1, query]
        target = _up_to(low, line, integrals) + wanted[query]
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if _up_to(middle, line, integrals) < target:
                low = middle
            else:
                high = middle
        out[query] = 0.5 * (low + high)
