"""What a hidden class stands for: how large the populations are, and what is different about each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.diagnostics.blame import value_of
from spbn.diagnostics.rows import Evidence, gather_rows
from spbn.errors import ArgumentError, setting
from spbn.inference.batch import class_probabilities
from spbn.network import BayesianNetwork
from spbn.tables.table import Variable

EXAMPLES = 3  # rows of a population that are shown
LEAST_DISTANCE = 0.1  # between the distribution of a variable in a population and in all rows


@dataclass(frozen=True)
class Difference:
    """A variable that is different in a population: how much, from 0 to 1, and in which way.

    Examples
    --------
    >>> import numpy as np, pandas as pd, spbn
    >>> rng = np.random.default_rng(0)
    >>> group = rng.random(300) < 0.3
    >>> data = pd.DataFrame({"x": rng.normal(np.where(group, 8.0, 0.0)), "y": rng.normal(size=300)})
    >>> network = spbn.learn(data, model="gbn", hidden=2)
    >>> difference = spbn.explain.populations(network, data)[1].differences[0]
    >>> print(difference.node, round(difference.distance, 1))
    x 0.7
    """

    node: str
    distance: float  # of Kolmogorov and Smirnov; for levels, half the sum of the differences
    words: str


@dataclass(frozen=True)
class Population:
    """One class of rows.

    Attributes
    ----------
    level
        The class.
    share
        How much of all rows belongs to it.
    certainty
        The mean probability of the class, over the rows for which it is the most probable; 0 without such.
    differences
        The variables that tell it from all rows, the most different first.
    examples
        The labels of rows that are typical of it.

    Examples
    --------
    >>> import numpy as np, pandas as pd, spbn
    >>> rng = np.random.default_rng(0)
    >>> group = rng.random(300) < 0.3
    >>> data = pd.DataFrame({"x": rng.normal(np.where(group, 8.0, 0.0)), "y": rng.normal(size=300)})
    >>> network = spbn.learn(data, model="gbn", hidden=2)
    >>> print(spbn.explain.populations(network, data)[1].differences[0].node)
    x
    """

    level: str
    share: float
    certainty: float
    differences: tuple[Difference, ...]
    examples: tuple[str, ...]


def populations(network: BayesianNetwork, data: Any) -> tuple[Population, ...]:
    """Describe the classes of a network with a hidden class by the rows that belong to them.

    Examples
    --------
    >>> import numpy as np, pandas as pd, spbn
    >>> rng = np.random.default_rng(0)
    >>> group = rng.random(300) < 0.3
    >>> data = pd.DataFrame({"x": rng.normal(np.where(group, 8.0, 0.0)), "y": rng.normal(size=300)})
    >>> network = spbn.learn(data, model="gbn", hidden=2)
    >>> for population in spbn.explain.populations(network, data):
    ...     print(population.level, f"{population.share:.0%}", population.differences[0].node)
    1 75% x
    2 25% x
    """
    return describe_populations(network, gather_rows(network, data))


def describe_populations(network: BayesianNetwork, evidence: Evidence) -> tuple[Population, ...]:
    """Do what `populations` says for rows that have been read already."""
    if network.class_variable is None or evidence.table is None:
        raise ArgumentError(f"there is no hidden class: learn one with {setting('hidden', 'auto')}.")
    table = evidence.table
    weights = class_probabilities(network, table)
    logpdf, best = network.contributions(table).sum(axis=1), weights.argmax(axis=1)
    labels = evidence.labels or tuple(map(str, range(table.rows)))
    found = []
    for k, level in enumerate(network.class_variable.levels):
        mine = np.flatnonzero(best == k)
        differences = [
            difference(variable, column, weights[:, k])
            for variable, column in zip(table.variables, table.columns, strict=True)
        ]
        differences = [each for each in differences if each.distance >= LEAST_DISTANCE]
        typical = mine[np.argsort(-(logpdf + np.log(weights[:, k] + 1e-300))[mine], kind="stable")]
        found.append(
            Population(
                level,
                float(weights[:, k].mean()),
                float(weights[mine, k].mean()) if len(mine) else 0.0,
                tuple(sorted(differences, key=lambda each: -each.distance)),
                tuple(labels[row] for row in typical[:EXAMPLES].tolist()),
            )
        )
    return tuple(found)


def difference(variable: Variable, column: FloatArray, weights: FloatArray) -> Difference:
    """Compare a variable in rows with weights with the same in all rows."""
    total = max(float(weights.sum()), 1e-300)
    if variable.is_discrete:
        codes, size = column.astype(np.int64), len(variable.levels)
        here = np.bincount(codes, weights=weights, minlength=size) / total
        everywhere = np.bincount(codes, minlength=size) / len(codes)
        level = int(np.argmax(here - everywhere))
        words = (
            f"{value_of(variable, float(level))} in {here[level]:.0%} of rows instead of "
            f"{everywhere[level]:.0%}"
        )
        return Difference(variable.name, float(0.5 * np.abs(here - everywhere).sum()), words)
    order = np.argsort(column, kind="stable")
    ranked = column[order]
    last = np.append(ranked[1:] != ranked[:-1], True)  # of equal values
    here, everywhere = np.cumsum(weights[order]) / total, np.arange(1, len(column) + 1) / len(column)
    mean = float(column @ weights) / total
    spread = float(np.sqrt(np.maximum((column - mean) ** 2 @ weights / total, 0.0)))
    words = f"{mean:.3g} ± {spread:.3g} instead of {column.mean():.3g} ± {column.std():.3g}"
    return Difference(variable.name, float(np.abs(here - everywhere)[last].max()), words)


def most_different(found: Sequence[Population], most: int) -> list[str]:
    """Return the variables that differ most between populations, the most different first."""
    greatest: dict[str, float] = {}
    for population in found:
        for each in population.differences:
            greatest[each.node] = max(greatest.get(each.node, 0.0), each.distance)
    return sorted(greatest, key=lambda node: -greatest[node])[:most]
