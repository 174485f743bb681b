"""Node types by a test: a node is linear Gaussian unless the residuals of the line are clearly not normal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.checks import fraction
from spbn.errors import ArgumentError, argument
from spbn.nodes.base import NodeType
from spbn.structure import Structure
from spbn.tables.reader import TableLike, as_table
from spbn.tables.table import Table

MOST_RESIDUALS = 5_000  # for which scipy knows the distribution of the statistic
FEWEST_RESIDUALS = 3


def types_by_normality(
    structure: Structure,
    data: TableLike,
    *,
    types: Iterable[NodeType | str] = ("lg", "ckde"),
    level: float = 0.05,
) -> Structure:
    """Choose the types of continuous nodes by the Shapiro-Wilk test, for a graph that is given.

    A node is linear Gaussian if the test does not reject that the residuals of its regression on its parents
    are normal, and otherwise of the richest type. With many rows the test sees the slightest departure from a
    normal distribution, whether that matters for predictions or not.

    Parameters
    ----------
    structure
        The graph; its types do not matter.
    types
        The types to choose from: "lg" and others, of which the last one is the richest.
    level
        The probability that any node of a Gaussian network is not found to be one: every test has this level,
        divided by the number of continuous nodes.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(2000, seed=0)
    >>> found = spbn.learning.types_by_normality(spbn.datasets.synthetic_structure(), data)
    >>> print(found.type("A"), found.type("C"))
    lg ckde
    """
    table = as_table(data, levels="infer")
    choices = list(dict.fromkeys(map(NodeType.parse, types)))
    others = [choice for choice in choices if choice != NodeType.LG]
    if NodeType.LG not in choices or not others:
        raise ArgumentError(
            f"{argument('types')} must be 'lg' and at least one more, to choose between them. "
            f"Got {[choice.name for choice in choices]}."
        )
    fraction("level", level)
    nodes = [node for node in structure.nodes if node not in table.levels]
    for node in nodes:
        p_value = normality_p_value(table, node, structure.parents(node))
        structure = structure.with_type(node, others[-1] if p_value < level / len(nodes) else NodeType.LG)
    return structure


def normality_p_value(table: Table, node: str, parents: Sequence[str]) -> float:
    """Return the p-value of the Shapiro-Wilk test of the residuals; 1 if there is nothing to test."""
    from scipy.stats import shapiro

    residuals = line_residuals(table, node, parents)
    if len(residuals) < FEWEST_RESIDUALS or np.ptp(residuals) == 0.0:
        return 1.0
    if len(residuals) > MOST_RESIDUALS:  # evenly, since rows may be in an order
        residuals = residuals[np.linspace(0, len(residuals) - 1, MOST_RESIDUALS).astype(np.int64)]
    return float(shapiro(residuals).pvalue)


def line_residuals(table: Table, node: str, parents: Sequence[str]) -> FloatArray:
    """Return the residuals of a least-squares line, in units of their standard deviation.

    There is a line for every configuration of the discrete parents that has enough rows for one.
    """
    continuous = [parent for parent in parents if parent not in table.levels]
    codes = [table.column(parent) for parent in parents if parent in table.levels]
    predictors = np.stack([np.ones(table.rows), *(table.column(parent) for parent in continuous)])
    predictors[1:] -= predictors[1:].mean(axis=1, keepdims=True)  # large offsets cost digits
    values = table.column(node)
    labels = np.zeros(table.rows, dtype=np.int64)
    if codes:
        labels = np.unique(np.stack(codes), axis=1, return_inverse=True)[1].ravel()
    found = np.full(table.rows, np.nan)
    for label in range(labels.max() + 1):
        rows = np.flatnonzero(labels == label)
        free = len(rows) - len(predictors)
        if free < 1:
            continue
        design = predictors[:, rows].T
        coefficients = np.linalg.lstsq(design, values[rows], rcond=None)[0]
        residuals = values[rows] - design @ coefficients
        scale = np.sqrt(np.sum(residuals**2) / free)
        found[rows] = residuals / scale if scale > 0.0 else 0.0
    return found[~np.isnan(found)]
