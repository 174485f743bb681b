"""The grid of the spectral engine in one to three dimensions: where it lies, rows to it and back.

Grids have three axes; one that is not needed has one cell. A row reaches `WIDTH` cells along every other
axis, with the weights of a window: a Kaiser-Bessel bump,

    ψ(z) = I₀(β √(1 - (2z/w)²)) / I₀(β),    |z| ≤ w/2,    z in cells of the grid.

Rows are spread with ψ, the grid is filtered in Fourier space, and the result is read off through ψ again.
Dividing the spectrum by the transform of ψ twice takes the window out, except for aliases: a grid of spacing
Δ cannot tell a frequency ω from ω + 2πm/Δ. Here the filter is a Gaussian, which damps high frequencies
afterwards and their aliases with them. So the spacing can be about twice that of a non-uniform FFT, which has
to be right at every frequency: in three dimensions an eighth of the cells.

Rows are sorted into tiles of the grid, so that neighbours meet the same cells in the cache. To spread them,
the planes of the grid are divided among threads. Each thread goes through the rows that reach its planes, in
their order, and adds what falls on them: every cell is summed in the order of the rows, whatever the number
of threads.

A grid over all rows is wasteful when tails are long: a few distant rows would make it cover mostly empty
space. So the box of rows that are looked up in the grid may cut off rows at each of its faces; those are
computed directly, one by one. The box is chosen so that the grid and the rows cut off cost least together.
Around the box the grid has a rim as wide as a Gaussian reaches. Rows in the rim are spread on the grid, rows
beyond it cannot matter inside the box, and nothing reaches the box around the periodic end of the grid.

A `Field` is prepared once, and asked for the sums over many ranges of rows and bandwidths. Every row is
spread once into the grid of all training rows. The grid of some of them is that of all, minus the others: in
cross-validation, minus one fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.jit import REORDER, compiled, run_tasks, shares, thread_count
from spbn.kernels.estimates import Spans
from spbn.kernels.inner_loop import exp2_negative

ComplexArray = npt.NDArray[np.complex128]
Shape = tuple[int, int, int]
Axes = tuple[FloatArray, FloatArray, FloatArray]  # something along each axis of a grid

# Compiled into the loops below.
WIDTH = 12  # cells that a row reaches
DEGREE = 15  # of the polynomials that give the weights
TILE = 16  # cells along a side, at least: with its surroundings a tile stays in the L2 cache
_HALF_IN_BASE_2 = 0.5 / math.log(2.0)  # exp(-q/2) = 2^(-q · _HALF_IN_BASE_2)
#: Cells to a standard deviation of the narrowest Gaussian, and the window's shape β that suits them.
#: Of a single source's value at distance r, exp(-r²/2), all but 1.7e-7 is right where that value
#: exceeds 1e-7, and the error is below 1.7e-14 farther out (a test measures it). Wider Gaussians fare better.
SPACING = 0.35
SHAPE = 31.8

SECONDS_A_RANK = 40e-9  # to find the order statistics, per point and axis
GRAIN = 0.25  # to which boxes that are kept are rounded, in widths of a Gaussian
MAX_CELLS = 16_000_000  # some 700 MB, with all that comes with a cell
ROWS_A_SEGMENT = 1 << 18  # at most, so that no loop keeps an interrupt waiting for long


@dataclass(frozen=True, eq=False)
class Binned:
    """Rows in the order of a grid's tiles: `rows[starts[t]:starts[t + 1]]` lie in tile t."""

    rows: IntArray
    #: 3 × rows: where the rows' windows begin, in cells.
    positions: FloatArray
    starts: IntArray


def bin_rows(rows: IntArray, positions: FloatArray, shape: Shape) -> Binned:
    """Sort rows into tiles."""
    order, starts = _sort_into_tiles(positions, shape, _tiles(shape))
    return Binned(rows[order], np.ascontiguousarray(positions[:, order]), starts)


def spread(binned: Binned, grid: FloatArray, *, weight: float = 1.0) -> None:
    """Add the windows of all rows to the grid, each times `weight`."""
    tiles = _tiles(grid.shape)
    rows_before = binned.starts[:: tiles[1] * tiles[2]]
    layers = np.searchsorted(rows_before, shares(len(binned.rows))[1:-1])
    cuts = pairwise(np.unique([0, *layers, tiles[0]]))
    tasks = [(binned.positions, rows_before, *cut, coefficients(), weight, grid) for cut in cuts]
    run_tasks(_spread_on_layers, tasks)


def interpolate(binned: Binned, grid: FloatArray) -> FloatArray:
    """Read the grid through the rows' windows, in their binned order."""
    out = np.empty(len(binned.rows))
    cuts = pairwise(shares(len(out)))
    run_tasks(interpolate_at, [(binned.positions, *cut, coefficients(), grid, out) for cut in cuts])
    return out


def _tiles(shape: tuple[int, ...]) -> Shape:
    """Return the number of tiles along every axis."""
    depth, height, width = (max(1, cells // TILE) for cells in shape)
    return depth, height, width


@compiled()
def _sort_into_tiles(positions: FloatArray, shape: Shape, counts: Shape) -> tuple[IntArray, IntArray]:
    rows = positions.shape[1]
    starts = np.zeros(counts[0] * counts[1] * counts[2] + 1, dtype=np.int64)
    tiles = np.empty(rows, dtype=np.int64)
    for row in range(rows):
        tile = 0
        for axis in range(3):
            cell = math.ceil(positions[axis, row]) % shape[axis]
            tile = tile * counts[axis] + cell * counts[axis] // shape[axis]
        tiles[row] = tile
        starts[tile + 1] += 1
    for tile in range(len(starts) - 1):
        starts[tile + 1] += starts[tile]
    heads = starts.copy()
    order = np.empty(rows, dtype=np.int64)
    for row in range(rows):
        order[heads[tiles[row]]] = row
        heads[tiles[row]] += 1
    return order, starts


@compiled(fastmath=REORDER)
def stencil(position: float, cells: int, coefficients: FloatArray, weights: FloatArray) -> tuple[int, int]:
    """Put the weights of the cells that a row reaches; return the first of them and their number."""
    if cells == 1:  # an unused axis
        weights[0] = 1.0
        return 0, 1
    first = math.ceil(position)
    t = first - position
    for k in range(WIDTH):
        value = coefficients[DEGREE, k]
        for power in range(1, DEGREE + 1):
            value = value * t + coefficients[DEGREE - power, k]
        weights[k] = value
    return first % cells, WIDTH


@compiled()
def wrapped(cell: int, cells: int) -> int:
    """Return a cell that may be beyond the end of the grid, but less than once around."""
    return cell if cell < cells else cell - cells  # a remainder would take longer than all the rest


@compiled()
def _spread_on_layers(
    positions: FloatArray,
    rows_before: IntArray,
    first: int,
    end: int,
    coefficients: FloatArray,
    weight: float,
    grid: FloatArray,
) -> None:
    layers = len(rows_before) - 1
    planes = (_first_plane(first, layers, len(grid)), _first_plane(end, layers, len(grid)))
    # Rows of the layer above reach into these planes too; above the first layer is the last.
    above = rows_before[max(0, first - 1)]
    _spread_rows(positions, above, rows_before[end], planes, coefficients, weight, grid)
    if first == 0 and end < layers:
        _spread_rows(positions, rows_before[-2], rows_before[-1], planes, coefficients, weight, grid)


@compiled()
def _first_plane(layer: int, layers: int, planes: int) -> int:
    return (layer * planes + layers - 1) // layers


@compiled(fastmath=REORDER)
def _spread_rows(
    positions: FloatArray,
    first: int,
    end: int,
    planes: tuple[int, int],
    coefficients: FloatArray,
    weight: float,
    grid: FloatArray,
) -> None:
    """Add rows to a range of planes."""
    x, y, z = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    cells = grid.ravel()
    for row in range(first, end):
        i0, depth = stencil(positions[0, row], grid.shape[0], coefficients, x)
        j0, height = stencil(positions[1, row], grid.shape[1], coefficients, y)
        k0, width = stencil(positions[2, row], grid.shape[2], coefficients, z)
        for i in range(depth):
            plane = wrapped(i0 + i, grid.shape[0])
            if not planes[0] <= plane < planes[1]:
                continue
            for j in range(height):
                line = (plane * grid.shape[1] + wrapped(j0 + j, grid.shape[1])) * grid.shape[2]
                factor = weight * x[i] * y[j]
                if k0 + WIDTH <= grid.shape[2]:
                    for k in range(WIDTH):  # a constant number: vector instructions
                        cells[line + k0 + k] += factor * z[k]
                else:
                    for k in range(width):
                        cells[line + wrapped(k0 + k, grid.shape[2])] += factor * z[k]


@compiled(fastmath=REORDER)
def interpolate_at(
    positions: FloatArray, first: int, end: int, coefficients: FloatArray, grid: FloatArray, out: FloatArray
) -> None:
    """Read the grid through the windows of some rows."""
    x, y, z = np.empty(WIDTH), np.empty(WIDTH), np.empty(WIDTH)
    lanes = np.empty(WIDTH)
    cells = grid.ravel()
    for row in range(first, end):
        i0, depth = stencil(positions[0, row], grid.shape[0], coefficients, x)
        j0, height = stencil(positions[1, row], grid.shape[1], coefficients, y)
        k0, width = stencil(positions[2, row], grid.shape[2], coefficients, z)
        lanes[:] = 0.0
        for i in range(depth):
            plane = wrapped(i0 + i, grid.shape[0]) * grid.shape[1]
            for j in range(height):
                line = (plane + wrapped(j0 + j, grid.shape[1])) * grid.shape[2]
                factor = x[i] * y[j]
                if k0 + WIDTH <= grid.shape[2]:
                    for k in range(WIDTH):
                        lanes[k] += factor * cells[line + k0 + k]
                else:
                    for k in range(width):
                        lanes[k] += factor * cells[line + wrapped(k0 + k, grid.shape[2])]
        total = 0.0
        for k in range(width):
            total += lanes[k] * z[k]
        out[row] = total


@compiled(fastmath=REORDER)
def _filter(
    spectrum: ComplexArray, first: int, end: int, modes: Axes, gains: Axes, a: FloatArray, out: ComplexArray
) -> None:
    (u, v, w), (gain_u, gain_v, gain_w) = modes, gains
    for i in range(first, end):
        for j in range(len(v)):
            constant = a[0, 0] * u[i] ** 2 + 2.0 * a[0, 1] * u[i] * v[j] + a[1, 1] * v[j] ** 2
            linear = 2.0 * (a[0, 2] * u[i] + a[1, 2] * v[j])
            gain = gain_u[i] * gain_v[j]
            for k in range(len(w)):
                q = max(0.0, constant + (linear + a[2, 2] * w[k]) * w[k])
                out[i, j, k] = spectrum[i, j, k] * (gain * gain_w[k] * exp2_negative(q))


@cache
def coefficients() -> FloatArray:
    """Return polynomials for ψ, (DEGREE + 1) × WIDTH: ψ(t + k - w/2) = Σ_p coefficients[p, k] t^p, 0 ≤ t ≤ 1.

    All cells that a row reaches share t, so one pass of Horner's rule gives all
    weights in vector instructions. They are right to 1e-14 of the peak.
    """
    nodes = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
    z = 0.5 * (nodes[:, None] + 1.0) + np.arange(WIDTH) - WIDTH / 2
    values = np.i0(SHAPE * np.sqrt(np.maximum(0.0, 1.0 - (2.0 * z / WIDTH) ** 2))) / np.i0(SHAPE)
    chebyshev = np.polynomial.chebyshev
    to_unit_interval = np.polynomial.Polynomial([-1.0, 2.0])
    result: FloatArray = np.zeros((DEGREE + 1, WIDTH))
    for k, column in enumerate(values.T):
        in_nodes = np.polynomial.Polynomial(chebyshev.cheb2poly(chebyshev.chebfit(nodes, column, DEGREE)))
        powers = in_nodes(to_unit_interval).coef  # fewer, where rounding makes the highest one zero
        result[: len(powers), k] = powers
    result.flags.writeable = False
    return result


def transform(angles: FloatArray) -> FloatArray:
    """Return ψ̂ at frequencies in radians per cell, |angle| ≤ π."""
    root = np.sqrt(SHAPE**2 - (0.5 * WIDTH * angles) ** 2)  # 12 π / 2 < 31.8: never zero
    transformed: FloatArray = WIDTH / np.i0(SHAPE) * np.sinh(root) / root
    return transformed


@dataclass(frozen=True, eq=False)
class Grid:
    """A periodic grid over a box, in coordinates where the narrowest Gaussian has width 1."""

    low: FloatArray
    high: FloatArray
    reach: float

    @property
    def cells(self) -> float:
        """Number of cells, before it is rounded up to what is quick to transform."""
        return float(np.prod((self.high - self.low + 2.0 * self.reach) / SPACING))

    @property
    def axes(self) -> list[int]:
        """Axes for the dimensions. The first is shared out among threads, the last is contiguous."""
        return [[0], [0, 2], [0, 1, 2]][len(self.low) - 1]

    @cached_property
    def shape(self) -> Shape:
        """Cells along three axes; those that are not needed have one."""
        from scipy.fft import next_fast_len

        needed = np.ceil((self.high - self.low + 2.0 * self.reach) / SPACING).astype(int)
        cells = [1, 1, 1]
        for axis, count in zip(self.axes, needed, strict=True):
            cells[axis] = next_fast_len(int(count), real=True)
        return cells[0], cells[1], cells[2]

    def covers(self, coordinates: FloatArray, *, rim: bool = False) -> BoolArray:
        """Tell which points lie in the box, or in the box and its rim."""
        margin = self.reach if rim else 0.0
        inside: BoolArray = np.ones(coordinates.shape[1], dtype=bool)
        for x, low, high in zip(coordinates, self.low - margin, self.high + margin, strict=True):
            inside &= (x >= low) & (x <= high)
        return inside

    def positions(self, coordinates: FloatArray) -> FloatArray:
        """Return where the windows of points begin, in cells: 3 × points."""
        placed = np.zeros((3, coordinates.shape[1]))
        offset = (self.reach - self.low) / SPACING - WIDTH / 2
        placed[self.axes] = coordinates / SPACING + offset[:, None]
        return placed

    def bin(self, coordinates: FloatArray, first: int = 0, *, rim: bool = True) -> Binned:
        """Sort points in the box, or in its rim too, into tiles; `first` is the number of the first point."""
        near = np.flatnonzero(self.covers(coordinates, rim=rim))
        return bin_rows(first + near, self.positions(coordinates[:, near]), self.shape)

    def filter(self, spectrum: ComplexArray, covariance: FloatArray, gains: Axes) -> ComplexArray:
        """Multiply a spectrum by exp(-ωᵀ A ω / 2), and by a gain along every axis."""
        exponent, out = np.zeros((3, 3)), np.empty_like(spectrum)
        exponent[np.ix_(self.axes, self.axes)] = covariance
        exponent *= _HALF_IN_BASE_2
        cuts = pairwise(shares(len(spectrum)))
        tasks = [(spectrum, *cut, self.frequencies, gains, exponent, out) for cut in cuts]
        run_tasks(_filter, tasks)
        return out

    @cached_property
    def frequencies(self) -> Axes:
        """Angular frequencies of the modes of a real transform, along each axis."""
        depth, height, width = self.shape
        unit, fft = np.float64(2.0 * math.pi / SPACING), np.fft
        return unit * fft.fftfreq(depth), unit * fft.fftfreq(height), unit * fft.rfftfreq(width)

    @cached_property
    def gains(self) -> Axes:
        """What the modes are multiplied by, along each axis, in addition to exp(-ω²/2).

        The transform of a Gaussian of unit width and height has the factor √(2π);
        the window is taken out twice; the rest is the scaling of the discrete transforms.
        """
        return self._gains(readings=2)

    @cached_property
    def gains_at_nodes(self) -> Axes:
        """The same for sums at the nodes of the grid, which are not read through a window."""
        return self._gains(readings=1)

    def _gains(self, readings: int) -> Axes:
        """The window is taken out once for spreading, and once more if sums are read through it."""
        depth, height, width = (
            math.sqrt(2.0 * math.pi) / SPACING / transform(axis * SPACING) ** readings
            if cells > 1
            else np.ones(1)
            for axis, cells in zip(self.frequencies, self.shape, strict=True)
        )
        return depth, height, width


def rounded(low: FloatArray, high: FloatArray, reach: float) -> Grid:
    """Return the grid over a box that is rounded outwards, so that its faces do not tell where rows are."""
    return Grid(np.floor(low / GRAIN) * GRAIN, np.ceil(high / GRAIN) * GRAIN, reach)


def cheapest_grid(
    coordinates: FloatArray, reach: float, cell_cost: float, row_cost: float
) -> tuple[Grid, float]:
    """Choose the box of a grid by what a cell costs, and a row that is cut off; return what both cost.

    Every face in turn moves to where the sum of costs is least, until none moves.
    A face may cut off 0, 1, 2, 4, 8, ... points, up to about 1/32 of all.
    """
    points = coordinates.shape[1]
    whole = Grid(coordinates.min(axis=1), coordinates.max(axis=1), reach)
    whole_cost = whole.cells * cell_cost
    if whole.cells <= MAX_CELLS and whole_cost < coordinates.size * SECONDS_A_RANK:
        return whole, whole_cost  # quicker to do than to improve
    cuts = np.array([0, *(2**k for k in range(max(0, points.bit_length() - 5)))])
    ranks = np.concatenate([cuts, points - 1 - cuts])
    order = np.stack([np.partition(x, np.unique(ranks))[ranks] for x in coordinates])
    faces = np.stack([order[:, : len(cuts)], order[:, len(cuts) :]])  # side × axis × cut

    def grid(choice: IntArray) -> Grid:
        low, high = np.take_along_axis(faces, choice[:, :, None], axis=2)[:, :, 0]
        return Grid(low, high, reach)

    def cost(choice: IntArray) -> float:
        cells = grid(choice).cells
        if cells > MAX_CELLS:  # it does not fit: all that counts is to make it smaller
            return cells * 1e12
        return cells * cell_cost + row_cost * float(cuts[choice].sum())

    # Begin with the same number of rows at every face: a face moved alone would move too far.
    chosen = min((np.full(faces.shape[:2], cut) for cut in range(len(cuts))), key=cost)
    best, moved = cost(chosen), True
    while moved:
        moved = False
        for face in np.ndindex(chosen.shape):
            for cut in range(len(cuts)):
                trial = chosen.copy()
                trial[face] = cut
                if (found := cost(trial)) < best:
                    best, chosen, moved = found, trial, True
    return grid(chosen), best


@dataclass(frozen=True, eq=False)
class Segment:
    """Rows first to end, which every span uses as a whole or not at all."""

    first: int
    end: int
    binned: Binned

    def lies_in(self, ranges: IntArray) -> bool:
        """Tell whether one of the ranges (first, end, first, end, ...) holds the segment."""
        return bool(np.any((ranges[::2] <= self.first) & (self.end <= ranges[1::2])))


@dataclass(frozen=True, eq=False)
class Field:
    """Rows on a grid."""

    grid: Grid
    segments: list[Segment]
    #: Those that any span trains on, and their windows added up.
    training: list[Segment]
    total: FloatArray

    @classmethod
    def of(cls, coordinates: FloatArray, spans: Spans, grid: Grid) -> Field:
        """Put rows on a grid that some spans train on or query."""
        pieces = [
            (start, min(start + ROWS_A_SEGMENT, end))
            for first, end in pairwise(np.unique(spans.array).tolist())
            for start in range(first, end, ROWS_A_SEGMENT)
        ]
        segments = [Segment(*piece, grid.bin(coordinates[:, slice(*piece)], piece[0])) for piece in pieces]
        training = [segment for segment in segments if segment.lies_in(spans.training.ravel())]
        total = np.zeros(grid.shape)
        for segment in training:
            spread(segment.binned, total)
        return cls(grid, segments, training, total)

    def spectrum(self, ranges: IntArray) -> ComplexArray:
        """Return the transform of the grid of the training rows in these ranges."""
        from scipy.fft import rfftn  # takes a while to import, and small data does without

        grid = self.total.copy()
        for segment in self.training:
            if not segment.lies_in(ranges):
                spread(segment.binned, grid, weight=-1.0)
        spectrum: ComplexArray = rfftn(grid, workers=thread_count(), overwrite_x=True)
        return spectrum

    def sums(self, queries: IntArray, spectrum: ComplexArray, covariance: FloatArray) -> FloatArray:
        """Return the sums of Gaussians of height 1 at the rows of a range; zero if a row is off the grid."""
        from scipy.fft import irfftn

        product = self.grid.filter(spectrum, covariance, self.grid.gains)
        field = irfftn(product, self.grid.shape, workers=thread_count(), overwrite_x=True)
        first, end = queries
        out = np.zeros(end - first)
        for segment in self.segments:
            if segment.lies_in(queries):
                out[segment.binned.rows - first] = interpolate(segment.binned, field)
        out *= math.sqrt(np.linalg.det(covariance))  # of the Gaussian's transform
        return out
