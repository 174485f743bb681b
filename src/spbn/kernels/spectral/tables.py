"""Tables of rows that sums of Gaussians can be read from, without the rows: additive, plain arrays.

The engine does everything in one go: it spreads rows on a grid, filters the grid and reads off the sums. Here
these are three steps, so that they can be done in different places:

1. A `Lattice` says where rows go: coordinates and a grid. Whoever takes part uses the same one.
2. A `RowTable` is what some rows leave on it. Tables of different rows add up, and the rows of a fold are
   taken out by subtraction. It is a plain array, as large as the grid, whatever the number of rows.
3. A `TabledDensity` is the density of kernels of one bandwidth on all of these rows. It has no rows, so it
   cannot compute isolated queries pair by pair, as the engine does: it says which queries it can answer.

Errors are those of the engine: log-densities within 1e-6 where the sum of the Gaussians, each of height 1,
is at least `engine.THRESHOLD` times the number of rows, and mostly some 1e-10.

>>> import numpy as np
>>> from spbn.kernels.spectral.tables import Lattice, RowTable
>>> rows = np.random.default_rng(0).normal(size=(2, 1000))
>>> lattice = Lattice.whitened(rows.min(axis=1), rows.max(axis=1))
>>> table = RowTable.of(rows[:, :300], lattice) + RowTable.of(rows[:, 300:], lattice)
>>> bool((table.density(np.eye(2)).heights(rows) > 1e-7).all())
True

Integrals of a tabled sum along its last variable: what distribution functions and draws are made of.

A field is read through windows: S(x) = Σ_m c_m ψ(m - x) along every axis. For given values of the other
variables that leaves a line of numbers c_m along the last axis, and its integral up to x is Σ_m c_m ∫ψ. The
window is made of polynomials, and so is its integral.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property, reduce
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, equal_fields, frozen
from spbn._base.jit import REORDER, compiled, run_tasks, thread_count
from spbn.errors import ArgumentError
from spbn.kernels import spectral
from spbn.kernels.estimates import log_peak, whitened
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import DEGREE, WIDTH, ComplexArray, Grid, stencil, wrapped

ROWS_AT_A_TIME = 1 << 18  # so that no loop keeps an interrupt waiting for long
ROUNDING = 1e-9  # by how much a bandwidth may be narrower than the narrowest that a lattice is made for
LINES_A_CALL = 256
BISECTIONS = 50

#: The field with the last variable on the last axis; where queries are along the other axes, and the two ends
#: of each along the last; the polynomials of the window, and those of its integral.
Lines = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Lattice:
    """Where rows are put: coordinates in which the narrowest kernel is a standard normal, and their grid."""

    centre: FloatArray  # what is subtracted from the variables, so that large offsets cost no digits
    whitener: FloatArray  # the inverse Cholesky factor of the narrowest bandwidth matrix
    low: FloatArray  # the box, in the lattice's coordinates, in which queries can be answered
    high: FloatArray
    widest: float = 1.0  # how much wider than the narrowest the kernels may be, in any direction

    def __post_init__(self) -> None:
        d = len(self.whitener)
        if not 1 <= d <= spectral.DIMENSIONS:
            raise ArgumentError(f"tables have 1 to {spectral.DIMENSIONS} dimensions. Got {d}.")
        if self.grid.cells > gridding.MAX_CELLS:
            raise ArgumentError(
                f"the table would need {self.grid.cells:.2g} cells, and at most {gridding.MAX_CELLS:.2g} "
                f"fit: use a smaller box or a wider kernel."
            )

    @classmethod
    def whitened(cls, low: FloatArray, high: FloatArray) -> Lattice:
        """Make a lattice over a box for rows that are whitened already."""
        return cls(np.zeros(len(low)), np.eye(len(low)), low, high)

    @cached_property
    def grid(self) -> Grid:
        return Grid(self.low, self.high, spectral.REACH * self.widest)

    @property
    def without_last(self) -> Lattice:
        """The lattice of all variables but the last, with the same box."""
        return Lattice(self.centre[:-1], self.whitener[:-1, :-1], self.low[:-1], self.high[:-1], self.widest)

    @property
    def nodes(self) -> list[FloatArray]:
        """Coordinates of the grid's nodes along every variable."""
        axes = zip(self.grid.axes, self.low - self.grid.reach, strict=True)
        return [low + gridding.SPACING * np.arange(self.grid.shape[axis]) for axis, low in axes]

    def coordinates(self, points: FloatArray) -> FloatArray:
        """Put variables × rows into the coordinates of the lattice."""
        return whitened(points - self.centre.reshape(-1, 1), self.whitener)

    def spread(self, points: FloatArray, windows: FloatArray) -> None:
        """Add the windows of variables × rows to those on the grid."""
        gridding.spread(self.grid.bin(self.coordinates(points)), windows)

    __eq__ = equal_fields
    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


@dataclass(frozen=True, eq=False)
class RowTable:
    """What some rows leave on a lattice. Tables on the same lattice can be added and subtracted."""

    lattice: Lattice
    rows: int  # how many there are, those included that lie too far from the box to matter in it
    windows: FloatArray  # of the rows, added up, cell by cell

    @classmethod
    def of(cls, points: FloatArray, lattice: Lattice) -> RowTable:
        windows = np.zeros(lattice.grid.shape)
        for first in range(0, points.shape[1], ROWS_AT_A_TIME):
            lattice.spread(points[:, first : first + ROWS_AT_A_TIME], windows)
        return cls(lattice, points.shape[1], windows)

    @classmethod
    def total(cls, tables: Iterable[RowTable]) -> RowTable:
        return reduce(RowTable.__add__, tables)

    def __add__(self, other: RowTable) -> RowTable:
        return self._combined(other, np.add)

    def __sub__(self, other: RowTable) -> RowTable:
        """Return the table without the rows of another, which must be among its own."""
        return self._combined(other, np.subtract)

    def density(self, whitener: FloatArray) -> TabledDensity:
        """Return the density of kernels on the rows, given the inverse Cholesky factor of their bandwidth."""
        field = readable(self.spectrum(whitener), self.lattice.grid)
        return TabledDensity(self.lattice, whitener, self.rows, field)

    def sums(self, whitener: FloatArray) -> FloatArray:
        """Return the sums of kernels of height 1 at the nodes of the grid (see `Lattice.nodes`)."""
        return _back(self.spectrum(whitener), self.lattice.grid)

    def spectrum(self, whitener: FloatArray) -> ComplexArray:
        """Return the transform of the sums of kernels of height 1 at the nodes of the grid."""
        from scipy.fft import rfftn  # takes a while to import

        grid, covariance = self.lattice.grid, self._covariance(whitener)
        transformed: ComplexArray = rfftn(self.windows, workers=thread_count())
        out = grid.filter(transformed, covariance, grid.gains_at_nodes)
        out *= math.sqrt(np.linalg.det(covariance))  # of the Gaussian's transform
        return out

    def _covariance(self, whitener: FloatArray) -> FloatArray:
        """Return the bandwidth matrix in the lattice's coordinates."""
        relative = self.lattice.whitener @ np.linalg.inv(whitener)
        widths = np.linalg.svd(relative, compute_uv=False)
        if widths.min() < 1.0 - ROUNDING or widths.max() > self.lattice.widest * (1.0 + ROUNDING):
            raise ArgumentError(
                f"kernels here must be 1 to {self.lattice.widest:.4g} times as wide as the narrowest. "
                f"Got {widths.min():.4g} to {widths.max():.4g} times."
            )
        product: FloatArray = relative @ relative.T
        return product

    def _combined(self, other: RowTable, operation: Callable[[Any, Any], Any]) -> RowTable:
        if self.lattice != other.lattice:
            raise ArgumentError("tables can be added or subtracted only if they are on the same lattice.")
        rows, windows = int(operation(self.rows, other.rows)), operation(self.windows, other.windows)
        return RowTable(self.lattice, rows, windows)


def readable(spectrum: ComplexArray, grid: Grid) -> FloatArray:
    """Return sums in a form to be read through windows, from the transform of those at the nodes."""
    u, v, w = (both / once for both, once in zip(grid.gains, grid.gains_at_nodes, strict=True))
    return _back(spectrum * u[:, None, None] * v[:, None] * w, grid)


def _back(spectrum: ComplexArray, grid: Grid) -> FloatArray:
    from scipy.fft import irfftn

    field: FloatArray = irfftn(spectrum, grid.shape, workers=thread_count())
    return field


@dataclass(frozen=True, eq=False)
class TabledDensity:
    """The density of kernels on rows that are not there any more: prepared once, asked many times."""

    lattice: Lattice
    whitener: FloatArray  # the inverse Cholesky factor of the kernels' bandwidth matrix
    rows: int
    field: FloatArray  # the sums of kernels of height 1, in a form to be read through windows

    @property
    def log_peak(self) -> float:
        """Log-density at the peak if all rows lie at one place."""
        return log_peak(self.whitener)

    def heights(self, points: FloatArray) -> FloatArray:
        """Return the density of variables × rows divided by its peak if all rows lie at one place.

        It is 0 outside the box, and keeps the promise of the engine from `spectral.THRESHOLD` on.
        """
        out = np.zeros(points.shape[1])
        for first in range(0, len(out), ROWS_AT_A_TIME):
            coordinates = self.lattice.coordinates(points[:, first : first + ROWS_AT_A_TIME])
            binned = self.lattice.grid.bin(coordinates, first, rim=False)
            out[binned.rows] = gridding.interpolate(binned, self.field)
        out /= max(1, self.rows)
        return out


def integrals(density: TabledDensity, given: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the integrals of the sums over the last variable, from low to high, inside the box.

    `given`: the other variables × queries, in the box.
    """
    out, _ = _along_lines(_integrate, density, given, low, high)
    out *= gridding.SPACING
    return out


def inverses(
    density: TabledDensity, given: FloatArray, low: FloatArray, high: FloatArray, wanted: FloatArray
) -> FloatArray:
    """Return the values between low and high up to which the integral from low is what is wanted."""
    out, starts = _along_lines(_invert, density, given, low, high, frozen(wanted / gridding.SPACING))
    return low + (out - starts) * gridding.SPACING


def _along_lines(
    loop: Callable[..., None],
    density: TabledDensity,
    given: FloatArray,
    low: FloatArray,
    high: FloatArray,
    *others: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Run a loop over queries; return what it finds, and where the low ends are, both in cells."""
    grid, field, out = density.lattice.grid, density.field, np.empty(len(low))
    places = [grid.positions(np.vstack([given, end])) for end in (low, high)]
    last = grid.axes[-1]  # the loops have the last variable on the last axis
    ends = frozen(np.stack([place[last] for place in places]))
    beside = frozen(np.delete(places[0], last, axis=0))
    lines = (frozen(np.moveaxis(field, last, 2)), beside, ends, *_polynomials())
    cuts = range(0, len(out), LINES_A_CALL)
    run_tasks(loop, [(first, min(first + LINES_A_CALL, len(out)), lines, *others, out) for first in cuts])
    return out, ends[0]


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
def _read_line(lines: Lines, query: int, x: FloatArray, y: FloatArray, line: FloatArray) -> None:
    """Put the line of a query, and in front of every number the sum of those before it."""
    field, places, _, pieces, _ = lines
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
def _integrate(first: int, end: int, lines: Lines, out: FloatArray) -> None:
    field, _, ends, _, integrals = lines
    x, y, line = np.empty(WIDTH), np.empty(WIDTH), np.empty(2 * field.shape[2])
    for query in range(first, end):
        _read_line(lines, query, x, y, line)
        out[query] = _up_to(ends[1, query], line, integrals) - _up_to(ends[0, query], line, integrals)


@compiled()
def _invert(first: int, end: int, lines: Lines, wanted: FloatArray, out: FloatArray) -> None:
    field, _, ends, _, integrals = lines
    x, y, line = np.empty(WIDTH), np.empty(WIDTH), np.empty(2 * field.shape[2])
    for query in range(first, end):
        _read_line(lines, query, x, y, line)
        low, high = ends[0, query], ends[1, query]
        target = _up_to(low, line, integrals) + wanted[query]
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            if _up_to(middle, line, integrals) < target:
                low = middle
            else:
                high = middle
        out[query] = 0.5 * (low + high)
