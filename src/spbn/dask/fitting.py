"""From sums over rows to the densities of a structure's nodes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import final

import numpy as np

from spbn.dask.blends import PAIRWISE, HeldBlends
from spbn.dask.counting import HeldCounts
from spbn.dask.densities import HeldDensities, standing_for
from spbn.dask.groupby import Divisions
from spbn.dask.mapreduce import Keeping, Spreading, Tails, joined_tails, outposts, spread, tails
from spbn.dask.rowstore import Holdings
from spbn.errors import FitError, quoted
from spbn.graphs.dag import Arc
from spbn.kernels import estimates as bandwidths
from spbn.kernels.compressed import CompactKernels, CompactScales
from spbn.kernels.compression import (
    FEW_ROWS,
    LEAST_TOLERANCE,
    assemble,
    box_around,
    compact_rows,
    extent_of,
    grain_of,
    rounded_centre,
    rounded_outposts,
)
from spbn.kernels.multiscale import SCALES
from spbn.kernels.spectral.boxes import MAX_CELLS
from spbn.kernels.spectral.engine import THRESHOLD
from spbn.kernels.spectral.tables import Lattice, RowTable
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.blend import COMPONENTS, Blend, in_words
from spbn.nodes.blend import NODE_TYPE as BLEND
from spbn.nodes.by_configuration import ByConfiguration
from spbn.nodes.ckde import CKDE
from spbn.nodes.families import Family
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.nodes.scorers import FEWEST_TO_BLEND as FEWEST_BLENDED
from spbn.numerics import gaussian
from spbn.numerics.regression import residual_directions
from spbn.rows.memory import FEWEST_ROWS
from spbn.structure import Structure

LEAST_LOSS = 0.005  # of the weight of a blend, that is worth a warning


@final
class HeldFits:
    """How nodes are fitted to all rows that workers hold."""

    def __init__(self, holdings: Holdings, bandwidth: str, smoothing: float = 1.0) -> None:
        self._holdings = holdings
        self._bandwidth = bandwidth
        self._counts = HeldCounts(holdings, smoothing)
        self._divisions = Divisions(holdings)

    def fitted(self, family: Family) -> CPD:
        """Fit a node; raise a `FitError` if that is impossible."""
        names, levels = self._holdings.names, self._holdings.plan.levels
        if family.type is NodeType.DISCRETE:
            return self._counts.fitted(tuple(names.index(name) for name in (*family.parents, family.node)))
        discrete = tuple(names.index(name) for name in family.parents if name in levels)
        if discrete:
            return self._by_configuration(family, discrete)
        return self._plain(family, self._holdings)

    def _plain(self, family: Family, holdings: Holdings) -> CPD:
        """Fit a continuous node with continuous parents to some rows."""
        if family.type is NodeType.LG:
            return line(family, holdings)
        if family.type is BLEND:
            return blend(family, holdings, self._bandwidth)
        return CKDE(family.node, family.parents, kernels(family, holdings, self._bandwidth))

    def _by_configuration(self, family: Family, discrete: tuple[int, ...]) -> ByConfiguration:
        """Fit a density to the rows of every configuration, as `ByConfiguration.fit` does."""
        levels = self._holdings.plan.levels
        continuous = family._replace(parents=tuple(name for name in family.parents if name not in levels))
        found, parts = self._divisions.of(discrete)
        densities: dict[int, CPD] = {}
        for place, part in enumerate(parts):
            if part.every.count >= FEWEST_ROWS:
                with suppress(FitError):
                    densities[place] = self._plain(continuous, part)
        configurations = found.only(np.array(list(densities), dtype=np.int64))
        otherwise = None
        if len(configurations) < configurations.possible:
            otherwise = self._plain(continuous, self._holdings)
        return ByConfiguration(
            family.node, family.parents, configurations, tuple(densities.values()), otherwise
        )


def fitted(
    structure: Structure, fits: HeldFits, required_arcs: Collection[Arc]
) -> tuple[Structure, dict[str, CPD], list[tuple[Arc, str]]]:
    """Fit every node to all rows, as `spbn.fitting.fit_what_can_be` does.

    Returns
    -------
    The remaining structure, its densities, and the arcs that were left out, each with the reason.
    """
    cpds: dict[str, CPD] = {}
    left_out: list[tuple[Arc, str]] = []
    for family in structure.families():
        kept: list[str] = []
        order = sorted(family.parents, key=lambda name: (name, family.node) not in required_arcs)
        try:
            cpds[family.node] = fits.fitted(family)
            continue
        except FitError:
            cpds[family.node] = fits.fitted(family._replace(parents=()))
        for parent in order:
            parents = tuple(name for name in family.parents if name in {*kept, parent})
            try:
                cpds[family.node] = fits.fitted(family._replace(parents=parents))
                kept.append(parent)
            except FitError as error:
                arc = (parent, family.node)
                if arc in required_arcs:
                    raise FitError(
                        f"the required arc {parent} → {family.node} cannot be fitted: {error} "
                        f"Require fewer arcs, or leave out a column."
                    ) from None
                structure = structure.with_dag(structure.dag.without_arc(*arc))
                left_out.append((arc, str(error)))
    return structure, cpds, left_out


def blend(family: Family, holdings: Holdings, bandwidth: str) -> Blend:
    """Fit a compact blend: its components to all rows, and their weights by the folds of the holdings.

    It goes without components that cannot be fitted, or whose tables would be too large, and warns of the
    latter if they would have a weight.
    """
    folds = holdings.answerable(range(holdings.folds))
    if holdings.every.count < FEWEST_BLENDED or not folds:
        raise FitError(
            f"a blend needs at least {FEWEST_BLENDED} rows. {family.node!r} has {holdings.every.count}."
        )
    tables: dict[int, CompactKernels] = {}
    straight: LinearGaussian | None = None
    too_large = []
    for k, scale in enumerate(SCALES):
        try:
            tables[k] = kernels(family, holdings, bandwidth, scale=scale)
        except _TooLargeError:
            too_large.append(k)
        except FitError:
            pass
    with suppress(FitError):
        straight = line(family, holdings)
    blends = HeldBlends(HeldDensities(holdings, bandwidth), folds)
    members = _ordered(tuple(holdings.names.index(name) for name in (*family.parents, family.node)))
    if too_large:
        _warn_of_lost(family, {COMPONENTS[k]: float(blends.weights(members)[k]) for k in too_large})
    usable = [*(k in tables for k in range(len(SCALES))), straight is not None]
    weights = blends.weights(members, np.array(usable))
    if not weights.sum() > 0.0:
        raise FitError(
            f"neither a line nor kernels can be fitted to {family.node!r} given "
            f"{quoted(family.parents) or 'nothing'}: its parents are linearly dependent, or determine it. "
            f"Remove one of them."
        )
    by_scale = CompactScales(tuple(tables[k] if weights[k] > 0.0 else None for k in range(len(SCALES))))
    straight = straight if weights[-1] > 0.0 else None
    return Blend(family.node, family.parents, straight, by_scale, tuple(weights.tolist()))


class _TooLargeError(FitError):
    """No table of a density fits into memory."""


def _warn_of_lost(family: Family, weights: Mapping[str, float]) -> None:
    """Warn of components that have a weight in the score of a family, but not in the network."""
    if sum(weights.values()) >= LEAST_LOSS:
        warnings.warn(
            f"the blend of {family.node!r} given {quoted(family.parents)} is fitted without some of the "
            f"kernels that it is scored with, of which no table fits into memory: {in_words(weights)}. Its "
            f"other components take their share, so its log-densities are a little lower.",
            stacklevel=2,
        )


def _ordered(members: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parents in the order of the columns, in which sets of columns are known."""
    return (*sorted(members[:-1]), members[-1])


def kernels(
    family: Family,
    holdings: Holdings,
    bandwidth: str,
    *,
    scale: float = 1.0,
    tolerance: float = LEAST_TOLERANCE,
) -> CompactKernels:
    """Make the compact kernels of a node: from tables that add up, and the few rows on the outskirts.

    Parameters
    ----------
    scale
        Multiplies the bandwidth matrix.
    """
    columns = tuple(holdings.names.index(name) for name in (*family.parents, family.node))
    moments = holdings.every
    factor = scale * bandwidths.factor(bandwidth, moments.count, len(columns))
    whitener = gaussian.whitener(factor * moments.covariance[np.ix_(columns, columns)])
    if whitener is None:
        raise FitError(
            f"the bandwidth matrix of {family.node!r} given {quoted(family.parents) or 'nothing'} is "
            f"singular: its parents are linearly dependent, or determine it. Remove one of them."
        )
    centre = rounded_centre(holdings.centre[list(columns)], whitener)
    everything = tuple(range(holdings.folds + 1))
    if len(columns) >= PAIRWISE and scale < 1.0 and moments.count <= FEW_ROWS:
        # Nearly all of them would be outposts of a large table: see `CompactKernels`.
        everywhere = Keeping(columns, None, centre, whitener)
        rows = np.concatenate(holdings.go_over(outposts, everywhere), axis=1)
        return compact_rows(centre[:, None], whitener, rows, tolerance)
    asked = [Tails(columns, centre, whitener, everything)]
    ends = joined_tails([found[0] for found in holdings.go_over(tails, asked)])
    box = box_around(standing_for(ends), THRESHOLD * moments.count)
    if box.cells > MAX_CELLS:
        raise _TooLargeError(
            f"the density of {family.node!r} given {quoted(family.parents)} needs a grid that does not fit "
            f"into memory: allow fewer parents."
        )
    whole = _table(holdings, columns, Lattice(centre, whitener, box.low, box.high))
    extent = extent_of(whole, tolerance)
    lattice = Lattice(centre, whitener, extent.box.low, extent.box.high)
    joint = _table(holdings, columns, lattice)
    parents = _table(holdings, columns[:-1], lattice.without_last) if family.parents else None
    keeping = Keeping(columns, extent.outskirts, centre, whitener)
    grain = grain_of(tolerance)
    kept = rounded_outposts(np.concatenate(holdings.go_over(outposts, keeping), axis=1), grain)
    return assemble(centre[:, None], whitener, joint, parents, kept, extent.threshold, tolerance, grain)


def _table(holdings: Holdings, columns: tuple[int, ...], lattice: Lattice) -> RowTable:
    """Return the table of all rows, in coordinates in which kernels are standard normals."""
    asked = [Spreading(columns, lattice, (tuple(range(holdings.folds + 1)),))]
    table = RowTable.total([found[0][0] for found in holdings.go_over(spread, asked)])
    d = len(columns)
    return RowTable(Lattice(np.zeros(d), np.eye(d), lattice.low, lattice.high), table.rows, table.windows)


def line(family: Family, holdings: Holdings) -> LinearGaussian:
    """Fit a linear Gaussian from moments."""
    moments = holdings.every
    places = np.array([holdings.names.index(name) for name in (*family.parents, family.node)])
    directions, variances, share = residual_directions(
        np.array([moments.count]), moments.scatter[None], places
    )
    if share == 0.0:
        raise FitError(
            f"the parents of {family.node!r} are linearly dependent, or determine it "
            f"({quoted(family.parents)}): remove one of them."
        )
    coefficients = -directions[0, :-1]
    means = moments.mean[places] + holdings.centre[places]
    return LinearGaussian(
        family.node,
        family.parents,
        float(means[-1] - coefficients @ means[:-1]),
        tuple(coefficients.tolist()),
        float(variances[0]),
    )
