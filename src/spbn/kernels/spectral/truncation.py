"""How far a table reaches that is to be kept: down to which sum, and therefore in which box.

Where the sum of the kernels is below a threshold, outposts answer instead of the table (`outskirts`). The
least threshold that a table is precise enough for is `engine.THRESHOLD` of the number of rows. A greater one
makes for a smaller table: its numbers may be rounded to larger steps, fewer frequencies matter, and the box
in which it is needed at all is smaller. But it makes for more outposts, and these are rows, and for more rows
that are scored by adding up outposts. So it is raised only as long as that saves many bytes for each outpost,
makes for few more of them, and takes next to no time.

Beyond the box there is nothing but outskirts, so that a smaller box costs no outposts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.kernels.spectral import boxes, engine
from spbn.kernels.spectral.boxes import Grid
from spbn.kernels.spectral.coefficients import Rings
from spbn.kernels.spectral.outposts import Outskirts, least_around, reach_of, rows_at
from spbn.kernels.spectral.tables import Lattice, RowTable

RAISE = 4.0  # what a threshold is multiplied by if that pays
BYTES_AN_OUTPOST = 150.0  # that a row within reach of the outskirts is deemed to cost
MORE_OUTPOSTS = 1.1  # times as many as there have to be, at most
MOST_PAIRS = 300.0  # of a row and outposts, in the mean of all rows: some 0.1 µs
SMALL = 20_000.0  # bytes of a table that need not be saved
COARSE_CELLS = 500_000  # of the grid of distances, to estimate how many outposts there are


@dataclass(frozen=True, eq=False)
class Extent:
    """What of a table is kept.

    Attributes
    ----------
    threshold
        The least sum that is read from the table.
    box
        Where there are such sums.
    outskirts
        Tells which rows are outposts.
    """

    threshold: float
    box: Grid
    outskirts: Outskirts

    @classmethod
    def of(
        cls,
        table: RowTable,
        coefficients_error: float,
        rows_error: float,
        outposts: Callable[[Outskirts], float] | None = None,
    ) -> Extent:
        """Choose how far a table reaches.

        Parameters
        ----------
        table
            Of all rows, in coordinates in which kernels are standard normals.
        coefficients_error, rows_error
            How far sums may be off because coefficients are rounded, and because rows are no outposts.
        outposts
            Says how many outposts there would be in all; if it is None, that is estimated from the table.
        """
        lattice, rows = table.lattice, table.rows
        sums, threshold = table.sums(lattice.whitener), engine.THRESHOLD * rows
        least_sums = least_around(sums, lattice, threshold)
        rings = Rings.of(table.spectrum(lattice.whitener), lattice.grid)

        def bytes_at(threshold: float) -> float:
            share = box_of(sums, lattice, threshold).cells / lattice.grid.cells
            return rings.bytes(coefficients_error * threshold, share)

        def outskirts_at(threshold: float, **settings: int) -> Outskirts:
            reach = reach_of(rows, threshold, rows_error)
            return Outskirts.of(lattice, least_sums, threshold, reach, **settings)

        def outposts_at(threshold: float) -> tuple[float, bool]:
            """Return how many there would be, and whether adding them up would take long."""
            outskirts = outskirts_at(threshold, most_cells=COARSE_CELLS)
            estimated = outskirts.estimated_rows(table)
            slow = rows_at(table, sums < threshold) / rows * estimated > MOST_PAIRS
            return (estimated if outposts is None else outposts(outskirts)), slow

        size = bytes_at(threshold)
        if size > SMALL:
            fewest, _ = outposts_at(threshold)
            cost = size + BYTES_AN_OUTPOST * fewest
            while size > SMALL:
                size = bytes_at(RAISE * threshold)
                count, slow = outposts_at(RAISE * threshold)
                raised = size + BYTES_AN_OUTPOST * count
                if slow or raised >= cost or count > MORE_OUTPOSTS * fewest:
                    break
                threshold, cost = RAISE * threshold, raised
        return cls(threshold, box_of(sums, lattice, threshold), outskirts_at(threshold))


def box_of(sums: FloatArray, lattice: Lattice, threshold: float) -> Grid:
    """Return the box of the nodes at which sums are large enough; of the greatest one if none are."""
    found = sums >= min(threshold, float(sums.max()))
    low, high = np.empty(len(lattice.low)), np.empty(len(lattice.low))
    for k, axis in enumerate(lattice.grid.axes):
        others = tuple(other for other in range(found.ndim) if other != axis)
        there = lattice.nodes[axis][found.any(axis=others)]
        low[k], high[k] = max(there[0], lattice.low[k]), min(there[-1], lattice.high[k])
    return boxes.rounded(low, high, lattice.grid.reach)
