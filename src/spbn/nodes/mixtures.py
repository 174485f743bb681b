"""Mixtures of a linear Gaussian and of kernels: what blends have in common, with their rows or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import FloatArray, Seed, generator
from spbn.nodes.base import parent_columns
from spbn.nodes.regions import Region
from spbn.tables.reader import as_table
from spbn.tables.table import Table

if TYPE_CHECKING:
    from spbn.nodes.blend import Blend
    from spbn.nodes.compact_blend import CompactBlend

#: What the components are called: the kernels by scale, then the line.
COMPONENTS = ("very narrow kernels", "narrow kernels", "kernels", "wide kernels", "linear Gaussian")
LEGEND = "A blend mixes kernels of several widths and a line, with the weights that predict best."


def mixed_cdf(cpd: Blend | CompactBlend, data: Any) -> FloatArray:
    """Return P(X ≤ x | parents) under a mixture, for every row."""
    table = as_table(data, names=[*cpd.parents, cpd.node])
    total = np.zeros(table.rows)
    for k, part in cpd.parts.items():
        total += cpd.mixture[k] * part.cdf(table)
    return total


def mixed_sample(cpd: Blend | CompactBlend, n: int, given: Any, seed: Seed) -> FloatArray:
    """Draw n values from a mixture: a component by its weight, then a value from it."""
    parents = parent_columns(cpd.node, cpd.parents, n, given)
    rng = generator(seed)
    chosen = rng.choice(len(COMPONENTS), size=n, p=cpd.mixture)
    out = np.empty(n)
    for k, source in cpd.parts.items():
        mine = np.flatnonzero(chosen == k)
        if len(mine):
            values = {name: parents[i, mine] for i, name in enumerate(cpd.parents)}
            out[mine] = source.sample(len(mine), given=values or None, seed=rng)
    return out


def mixed_log_masses(cpd: Blend | CompactBlend, region: Region, parents: Table) -> FloatArray:
    """Return what every part of a mixture adds to the probability of a region, in logs: parts × rows."""
    masses = np.stack([part.type.log_mass(part, region, parents) for part in cpd.parts.values()])
    weights: FloatArray = np.log([cpd.mixture[k] for k in cpd.parts])[:, None]
    return masses + weights


def in_words(weights: Mapping[str, float]) -> str:
    """Write weights as people say them: "61 % narrow kernels, 35 % kernels, 4 % linear Gaussian"."""
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    shown = [f"{100 * weight:.0f} % {name}" for name, weight in ordered if weight >= 0.005]
    return ", ".join(shown)
