"""From sums over rows to the densities of a structure's nodes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from spbn.distributed.holdings import Holdings
from spbn.errors import FitError, quoted
from spbn.graphs.dag import Arc
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.families import Family
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.numerics.regression import residual_directions
from spbn.structure import Structure


def fitted(
    structure: Structure, holdings: Holdings, bandwidth: str, required_arcs: Collection[Arc]
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
            cpds[family.node] = _fitted(family, holdings, bandwidth)
            continue
        except FitError:
            cpds[family.node] = _fitted(family._replace(parents=()), holdings, bandwidth)
        for parent in order:
            parents = tuple(name for name in family.parents if name in {*kept, parent})
            try:
                cpds[family.node] = _fitted(family._replace(parents=parents), holdings, bandwidth)
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


def _fitted(family: Family, holdings: Holdings, bandwidth: str) -> CPD:
    if family.type is NodeType.LG:
        return line(family, holdings)
    raise NotImplementedError


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
