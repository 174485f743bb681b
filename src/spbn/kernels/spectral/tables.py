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
>>> lattice = Lattice.around(rows, whitener=5.0 * np.eye(2))
>>> table = RowTable.of(rows[:, :300], lattice) + RowTable.of(rows[:, 300:], lattice)
>>> values, answered = table.density(5.0 * np.eye(2)).log_density(rows)
>>> bool(answered.all())
True

Integrals of a tabled sum along its last variable: what distribution functions and draws are made of.

A field is read through windows: S(x) = Σ_m c_m ψ(m - x) along every axis. For given values of the other
variables that leaves a line of numbers c_m along the last axis, and its integral up to x is Σ_m c_m ∫ψ. The
window is made of polynomials, and so is its integral.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property, reduce

import numpy as np

from spbn._base.arrays import LOG_2PI, BoolArray, FloatArray, frozen
from spbn._base.jit import REORDER, available_threads, compiled
from spbn.errors import ArgumentError
from spbn.kernels import spectral
from spbn.kernels.estimates import whitened
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import DEGREE, WIDTH, ComplexArray, Grid, stencil, wrapped
from spbn.numerics.moments import centre_of

ROWS_AT_A_TIME = 1 << 18  # so that no loop keeps an interrupt waiting for long
ROUNDING = 1e-9  # by how much a bandwidth may be narrower than the narrowest that a lattice is made for
LINES_A_CALL = 256
BISECTIONS = 50


@dataclass(frozen=True, eq=False)
class Lattice:
    """Where rows are put: coordinates in which the narrowest kernel is a standard normal, and a grid in them.

    Attributes
    ----------
    centre
        What is subtracted from the variables, so that large offsets cost no digits.
    whitener
        The inverse Cholesky factor of the narrowest bandwidth matrix.
    low, high
        The box, in the lattice's coordinates, in which queries can be answered.
    widest
        How much wider than the narrowest the kernels may be, in any direction.
    """

    centre: FloatArray
    whitener: FloatArray
    low: FloatArray
    high: FloatArray
    widest: float = 1.0

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
    def around(cls, points: FloatArray, whitener: FloatArray, *, widest: float = 1.0) -> Lattice:
        """Make a lattice whose box holds all points (variables × rows)."""
        centre = centre_of(points)[:, 0]
        low, high = extent(points, centre, whitener)
        return cls(centre, whitener, low, high, widest)

    @cached_property
    def grid(self) -> Grid:
        """The grid."""
        return Grid(self.low, self.high, spectral.REACH * self.widest)

    @property
    def without_last(self) -> Lattice:
        """The lattice of all variables but the last, with the same box."""
        return Lattice(self.centre[:-1], self.whitener[:-1, :-1], self.low[:-1], self.high[:-1], self.widest)

    @property
    def nodes(self) -> list[FloatArray]:
        """Coordinates of the grid's nodes along its three axes; those that are not needed have one, at 0."""
        nodes = [np.zeros(1), np.zeros(1), np.zeros(1)]
        for axis, low in zip(self.grid.axes, self.low - self.grid.reach, strict=True):
            nodes[axis] = low + gridding.SPACING * np.arange(self.grid.shape[axis])
        return nodes

    def coordinates(self, points: FloatArray) -> FloatArray:
        """Put variables × rows into the coordinates of the lattice."""
        return whitened(points - self.centre.reshape(-1, 1), self.whitener)

    def covers(self, points: FloatArray) -> BoolArray:
        """Tell which of variables × rows lie in the box."""
        return self.grid.covers(self.coordinates(points))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Lattice)
            and self.widest == other.widest
            and all(
                np.array_equal(mine, others)
                for mine, others in (
                    (self.centre, other.centre),
                    (self.whitener, other.whitener),
                    (self.low, other.low),
                    (self.high, other.high),
                )
            )
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def extent(points: FloatArray, centre: FloatArray, whitener: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the box of variables × rows in a lattice's coordinates: what `Lattice` takes as low and high.

    Boxes of parts of the rows combine by `np.minimum` and `np.maximum`.
    """
    coordinates = whitened(points - np.reshape(centre, (-1, 1)), whitener)
    return coordinates.min(axis=1), coordinates.max(axis=1)


@dataclass(frozen=True, eq=False)
class RowTable:
    """What some rows leave on a lattice. Tables on the same lattice can be added and subtracted.

    Attributes
    ----------
    rows
        How many there are, those included that lie too far from the box to matter in it.
    windows
        The rows' windows, added up, cell by cell.
    """

    lattice: Lattice
    rows: int
    windows: FloatArray

    @classmethod
    def of(cls, points: FloatArray, lattice: Lattice) -> RowTable:
        """Put variables × rows on a lattice."""
        grid, rows = lattice.grid, points.shape[1]
        windows = np.zeros(grid.shape)
        threads = available_threads()
        for first in range(0, rows, ROWS_AT_A_TIME):
            coordinates = lattice.coordinates(points[:, first : first + ROWS_AT_A_TIME])
            near = coordinates[:, grid.covers(coordinates, rim=True)]
            binned = gridding.bin_rows(np.arange(near.shape[1]), grid.positions(near), grid.shape)
            gridding.spread(binned, gridding.coefficients(), windows, threads)
        return cls(lattice, rows, windows)

    @classmethod
    def total(cls, tables: Iterable[RowTable]) -> RowTable:
        """Add up some tables, at least one."""
        return reduce(RowTable.__add__, tables)

    def __add__(self, other: RowTable) -> RowTable:
        """Return the table of the rows of both."""
        self._require_same_lattice(other)
        return RowTable(self.lattice, self.rows + other.rows, self.windows + other.windows)

    def __sub__(self, other: RowTable) -> RowTable:
        """Return the table without the rows of another, which must be among its own."""
        self._require_same_lattice(other)
        return RowTable(self.lattice, self.rows - other.rows, self.windows - other.windows)

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
        matrix = np.zeros((3, 3))
        matrix[np.ix_(grid.axes, grid.axes)] = covariance
        threads = available_threads()
        transformed: ComplexArray = rfftn(self.windows, workers=threads.count)
        out = gridding.filtered(transformed, grid.frequencies, grid.gains_at_nodes, matrix, threads)
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

    def _require_same_lattice(self, other: RowTable) -> None:
        if self.lattice != other.lattice:
            raise ArgumentError("tables can be added or subtracted only if they are on the same lattice.")


def readable(spectrum: ComplexArray, grid: Grid) -> FloatArray:
    """Return sums in a form to be read through windows, from the transform of those at the nodes."""
    u, v, w = grid.reading_gains
    return _back(spectrum * u[:, None, None] * v[:, None] * w, grid)


def _back(spectrum: ComplexArray, grid: Grid) -> FloatArray:
    from scipy.fft import irfftn

    threads = available_threads()
    field: FloatArray = irfftn(spectrum, grid.shape, workers=threads.count)
    return field


@dataclass(frozen=True, eq=False)
class TabledDensity:
    """The density of kernels on rows that are not there any more: prepared once, asked many times.

    Attributes
    ----------
    lattice
        Where the rows were put.
    whitener
        The inverse Cholesky factor of the kernels' bandwidth matrix.
    rows
        How many there were.
    field
        The sums of kernels of height 1, in a form to be read through windows.
    """

    lattice: Lattice
    whitener: FloatArray
    rows: int
    field: FloatArray

    @property
    def log_peak(self) -> float:
        """Log-density at the peak if all rows lie at one place."""
        diagonal = np.diag(self.whitener)
        return float(np.log(diagonal).sum() - 0.5 * len(diagonal) * LOG_2PI)

    def heights(self, points: FloatArray) -> FloatArray:
        """Return the density of variables × rows divided by its peak if all rows lie at one place.

        It is 0 outside the box.
        """
        grid, rows = self.lattice.grid, points.shape[1]
        out = np.zeros(rows)
        threads = available_threads()
        for first in range(0, rows, ROWS_AT_A_TIME):
            coordinates = self.lattice.coordinates(points[:, first : first + ROWS_AT_A_TIME])
            inside = np.flatnonzero(grid.covers(coordinates))
            places = grid.positions(coordinates[:, inside])
            binned = gridding.bin_rows(first + inside, places, grid.shape)
            read = gridding.interpolate(binned, gridding.coefficients(), self.field, threads)
            out[binned.rows] = read
        out /= max(1, self.rows)
        return out

    def log_density(
        self, points: FloatArray, *, threshold: float = spectral.THRESHOLD
    ) -> tuple[FloatArray, BoolArray]:
        """Return the log-density of variables × rows, and which of them keep the promise.

        Parameters
        ----------
        threshold
            Least height (see `heights`) that is precise enough.

        Returns
        -------
        Log-densities, -inf where there is no answer; and whether there is one.
        """
        heights = self.heights(points)
        answered = heights >= threshold
        values = np.full(len(heights), -np.inf)
        values[answered] = np.log(heights[answered]) + self.log_peak
        return values, answered


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
