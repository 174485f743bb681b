"""Sums of standard normal kernels as Fourier coefficients: what remains of rows when they are not kept.

The kernel's transform exp(-ω²/2) leaves few coefficients that matter, fewer still where there are many rows:
their sum is smooth, and what is left of it at high frequencies is noise. All coefficients up to one `cutoff`
are kept, the least for which those that are left out make less than a given error. What is kept is rounded to
multiples of a `step`: that is most of it at high frequencies, where numbers are many and small, so that they
take few bytes.

Both errors are sums of very many small ones of either sign, all over the box: seven standard deviations of
them are allowed for. Those that are left out are of one sign at a row itself, where the transform of its own
kernel lacks what is beyond the cutoff; that is allowed for, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, equal_fields, frozen
from spbn.errors import ArgumentError
from spbn.kernels.spectral.gridding import ComplexArray, Grid
from spbn.kernels.spectral.tables import Lattice, RowTable, TabledDensity, readable

#: Cutoffs that a table can have, in radians per width of a kernel. A box may need a grid of many cells, and
#: with the least cutoff the coefficients are still a good part of that.
LEAST_CUTOFF, GREATEST_CUTOFF = 4.0, 16.0
STEP = 0.05  # between cutoffs that are tried
DEVIATIONS = 7.0  # of an error that is a sum of many
LEFT_OUT = 0.2  # share of the error due to coefficients beyond the cutoff; the rest is due to rounding
MOST = 2.0**62  # steps in a number


@dataclass(frozen=True, eq=False)
class Coefficients:
    """A sum of standard normal kernels, each of height 1, that is right in a box."""

    low: FloatArray
    high: FloatArray
    rows: int  # how many kernels there are
    cutoff: float  # the greatest frequency that is kept
    numbers: FloatArray  # both parts of every coefficient in turn, in the order of a real transform
    step: float  # what all numbers are multiples of
    threshold: float  # the least sum that is precise enough

    def __post_init__(self) -> None:
        if not LEAST_CUTOFF <= self.cutoff <= GREATEST_CUTOFF:
            raise ArgumentError(
                f"the cutoff must be between {LEAST_CUTOFF} and {GREATEST_CUTOFF}. Got {self.cutoff}."
            )
        expected = 2 * int(np.count_nonzero(self._kept))
        if self.numbers.shape != (expected,):
            raise ArgumentError(f"the box needs {expected} numbers. Got {self.numbers.size}.")

    @classmethod
    def of(cls, table: RowTable, threshold: float, error: float) -> Coefficients:
        """Keep what matters of a table where sums reach a threshold, with this error relative to them."""
        lattice, error = table.lattice, error * threshold
        spectrum = table.spectrum(lattice.whitener)
        cutoff = Rings.of(spectrum, lattice.grid).cutoff(LEFT_OUT * error)
        kept = spectrum[_within(lattice.grid, cutoff)].view(np.float64)
        step = _step(len(kept) // 2, math.prod(lattice.grid.shape), (1.0 - LEFT_OUT) * error)
        step = max(step, float(np.abs(kept).max()) / MOST)
        numbers = np.rint(kept / step) * step
        return cls(lattice.low, lattice.high, table.rows, cutoff, numbers, step, threshold)

    def reordered(self) -> Coefficients:
        """Return the same coefficients, of numbers that were in the order of `integers`."""
        pairs = np.empty((len(self.numbers) // 2, 2))
        pairs[self._by_frequency] = self.numbers.reshape(-1, 2)
        return replace(self, numbers=pairs.ravel())

    @property
    def integers(self) -> FloatArray:
        """The numbers in steps, those of low frequencies first: the greatest ones."""
        integers: FloatArray = np.rint(self.numbers.reshape(-1, 2)[self._by_frequency].ravel() / self.step)
        return integers

    @cached_property
    def lattice(self) -> Lattice:
        return Lattice.whitened(self.low, self.high)

    @cached_property
    def density(self) -> TabledDensity:
        spectrum = np.zeros(self._kept.shape, dtype=np.complex128)
        spectrum[self._kept] = np.ascontiguousarray(self.numbers).view(np.complex128)
        field = frozen(readable(spectrum, self.lattice.grid))
        return TabledDensity(self.lattice, np.eye(len(self.low)), self.rows, field)

    def sums(self, points: FloatArray) -> FloatArray:
        """Return the sums at variables × rows; 0 outside the box."""
        return self.density.heights(points) * self.rows

    @property
    def _by_frequency(self) -> IntArray:
        """The order of coefficients by the length of their frequency."""
        return np.argsort(_squares(self.lattice.grid)[self._kept], kind="stable")

    @property
    def _kept(self) -> BoolArray:
        return _within(self.lattice.grid, self.cutoff)

    __eq__ = equal_fields
    __hash__ = None  # type: ignore[assignment]  # arrays have no hash


def _squares(grid: Grid) -> FloatArray:
    """Return the squared length of every frequency of a real transform."""
    u, v, w = grid.frequencies
    squares: FloatArray = (u**2)[:, None, None] + (v**2)[:, None] + w**2
    return squares


def _within(grid: Grid, cutoff: float) -> BoolArray:
    return _squares(grid) <= cutoff**2


@dataclass(frozen=True, eq=False)
class Rings:
    """How large the coefficients of a transform are, by the length of their frequency in `STEP`s."""

    d: int  # of the grid
    cells: int
    counts: FloatArray  # of coefficients
    powers: FloatArray  # the sums of their squares

    @classmethod
    def of(cls, spectrum: ComplexArray, grid: Grid) -> Rings:
        """Look at all coefficients of a real transform."""
        places = (np.sqrt(_squares(grid)) / STEP).astype(np.int64).ravel()
        counts: FloatArray = np.bincount(places).astype(np.float64)
        powers: FloatArray = np.bincount(places, weights=np.abs(spectrum).ravel() ** 2).astype(np.float64)
        return cls(len(grid.low), math.prod(grid.shape), counts, powers)

    def cutoff(self, error: float) -> float:
        """Return the least cutoff beyond which all coefficients together make no more than an error."""
        # Most stand for two, of opposite frequencies, and half of that is the mean square of a wave.
        by_place = 0.5 * (2.0 / self.cells) ** 2 * self.powers
        beyond = np.cumsum(by_place[::-1])[::-1]  # with the place itself
        enough = int(np.count_nonzero(DEVIATIONS * np.sqrt(beyond) > error))
        cutoff = max(enough * STEP, _cutoff_of_one(self.d, error))
        return float(np.clip(cutoff, LEAST_CUTOFF, GREATEST_CUTOFF))

    def bytes(self, error: float, share: float) -> float:
        """Return about how many bytes `Coefficients` take in a file, if made for this share of the grid.

        Waves that are nowhere else are as large on a smaller one.
        """
        places = math.ceil(self.cutoff(LEFT_OUT * error) / STEP)
        counts, powers = self.counts[:places], self.powers[:places]
        step = _step(share * counts.sum(), share * self.cells, (1.0 - LEFT_OUT) * error)
        deviations = np.sqrt(0.5 * powers / np.maximum(counts, 1.0)) / step
        bits = np.log2(np.maximum(deviations, 0.5)) + 0.5 * math.log2(2.0 * math.pi * math.e)
        return float(share * (counts * bits).sum() / 4.0)


def _cutoff_of_one(d: int, error: float) -> float:
    """Return the cutoff beyond which the transform of a single kernel makes no more than an error."""
    from scipy.special import gammaincc

    cutoffs = np.arange(LEAST_CUTOFF, GREATEST_CUTOFF, STEP)
    return float(cutoffs[np.argmax(gammaincc(0.5 * d, 0.5 * cutoffs**2) <= error)])


def _step(count: float, cells: float, error: float) -> float:
    """Return what so many coefficients of a grid may be rounded to multiples of for an error."""
    deviation = 2.0 / cells * math.sqrt(count / 12.0)  # for a step of 1
    return error / (DEVIATIONS * deviation)
