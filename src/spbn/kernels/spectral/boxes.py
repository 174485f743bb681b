"""Where the grid of the spectral engine lies, and the rows on it.

A grid over all rows is wasteful when tails are long: a few distant rows would make
it cover mostly empty space. So the box of rows that are looked up in the grid
may cut off rows at each of its faces; those are computed directly, one by one.
The box is chosen so that the grid and the rows cut off cost least together.

Around the box the grid has a rim as wide as a Gaussian reaches. Rows in the rim
are spread on the grid, rows beyond it cannot matter inside the box, and
nothing reaches the box around the periodic end of the grid either.

A `Field` is prepared once, and asked for the sums over many ranges of rows and bandwidths. Every row is
spread once into the grid of all training rows. The grid of some of
them is that of all, minus the others: in cross-validation, minus one fold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.threads import Threads
from spbn.kernels.estimates import Spans
from spbn.kernels.spectral import gridding
from spbn.kernels.spectral.gridding import WIDTH, Binned, ComplexArray, Shape

SECONDS_A_RANK = 40e-9  # to find the order statistics, per point and axis
GRAIN = 0.25  # to which boxes that are kept are rounded, in widths of a Gaussian
MAX_CELLS = 16_000_000  # some 700 MB, with all that comes with a cell
ROWS_A_SEGMENT = 1 << 18  # at most, so that no loop keeps an interrupt waiting for long


@dataclass(frozen=True, eq=False)
class Grid:
    """A periodic grid over a box, in coordinates where the narrowest Gaussian has width 1."""

    low: FloatArray
    high: FloatArray
    reach: float

    @property
    def cells(self) -> float:
        """Number of cells, before it is rounded up to what is quick to transform."""
        return float(np.prod((self.high - self.low + 2.0 * self.reach) / gridding.SPACING))

    @property
    def axes(self) -> list[int]:
        """Axes for the dimensions. The first is shared out among threads, the last is contiguous."""
        return [[0], [0, 2], [0, 1, 2]][len(self.low) - 1]

    @cached_property
    def shape(self) -> Shape:
        """Cells along three axes; those that are not needed have one."""
        from scipy.fft import next_fast_len

        needed = np.ceil((self.high - self.low + 2.0 * self.reach) / gridding.SPACING).astype(int)
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
        offset = (self.reach - self.low) / gridding.SPACING - WIDTH / 2
        placed[self.axes] = coordinates / gridding.SPACING + offset[:, None]
        return placed

    @cached_property
    def frequencies(self) -> list[FloatArray]:
        """Angular frequencies of the modes of a real transform, along each axis."""
        cycles = [np.fft.fftfreq(cells) for cells in self.shape[:2]] + [np.fft.rfftfreq(self.shape[2])]
        return [np.float64(2.0 * math.pi / gridding.SPACING) * axis for axis in cycles]

    @cached_property
    def gains(self) -> list[FloatArray]:
        """What the modes are multiplied by, along each axis, in addition to exp(-ω²/2).

        The transform of a Gaussian of unit width and height has the factor √(2π);
        the window is taken out twice; the rest is the scaling of the discrete transforms.
        """
        return self._gains(readings=2)

    @cached_property
    def gains_at_nodes(self) -> list[FloatArray]:
        """The same for sums at the nodes of the grid, which are not read through a window."""
        return self._gains(readings=1)

    @cached_property
    def reading_gains(self) -> list[FloatArray]:
        """What the transform of sums at the nodes is multiplied by to read them through windows."""
        return [both / once for both, once in zip(self.gains, self.gains_at_nodes, strict=True)]

    def _gains(self, readings: int) -> list[FloatArray]:
        """The window is taken out once for spreading, and once more if sums are read through it."""
        return [
            math.sqrt(2.0 * math.pi)
            / gridding.SPACING
            / gridding.transform(axis * gridding.SPACING) ** readings
            if cells > 1
            else np.ones(1)
            for axis, cells in zip(self.frequencies, self.shape, strict=True)
        ]


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
    threads: Threads

    @classmethod
    def of(cls, coordinates: FloatArray, spans: Spans, grid: Grid, threads: Threads) -> Field:
        """Put rows on a grid that some spans train on or query."""
        pieces = [
            (start, min(start + ROWS_A_SEGMENT, end))
            for first, end in pairwise(np.unique(spans.array).tolist())
            for start in range(first, end, ROWS_A_SEGMENT)
        ]
        segments = [
            Segment(first, end, _binned(coordinates[:, first:end], first, grid)) for first, end in pieces
        ]
        training = [segment for segment in segments if segment.lies_in(spans.training.ravel())]
        total = np.zeros(grid.shape)
        for segment in training:
            gridding.spread(segment.binned, gridding.coefficients(), total, threads)
        return cls(grid, segments, training, total, threads)

    def spectrum(self, ranges: IntArray) -> ComplexArray:
        """Return the transform of the grid of the training rows in these ranges."""
        from scipy.fft import rfftn  # takes a while to import, and small data does without

        grid = self.total.copy()
        for segment in self.training:
            if not segment.lies_in(ranges):
                gridding.spread(segment.binned, gridding.coefficients(), grid, self.threads, weight=-1.0)
        spectrum: ComplexArray = rfftn(grid, workers=self.threads.count, overwrite_x=True)
        return spectrum

    def sums(self, queries: IntArray, spectrum: ComplexArray, covariance: FloatArray) -> FloatArray:
        """Return the sums of Gaussians of height 1 at the rows of a range; zero if a row is off the grid."""
        from scipy.fft import irfftn

        matrix = np.zeros((3, 3))
        matrix[np.ix_(self.grid.axes, self.grid.axes)] = covariance
        product = gridding.filtered(spectrum, self.grid.frequencies, self.grid.gains, matrix, self.threads)
        field = irfftn(product, self.grid.shape, workers=self.threads.count, overwrite_x=True)
        first, end = queries
        out = np.zeros(end - first)
        for segment in self.segments:
            if segment.lies_in(queries):
                values = gridding.interpolate(segment.binned, gridding.coefficients(), field, self.threads)
                out[segment.binned.rows - first] = values
        out *= math.sqrt(np.linalg.det(covariance))  # of the Gaussian's transform
        return out


def _binned(coordinates: FloatArray, first: int, grid: Grid) -> Binned:
    """Bin those rows that lie on the grid."""
    near = np.flatnonzero(grid.covers(coordinates, rim=True))
    return gridding.bin_rows(first + near, grid.positions(coordinates[:, near]), grid.shape)
