"""From rows to the densities of a structure's nodes: what can be fitted, and what is typical of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import numpy as np

from spbn.errors import FitError
from spbn.graphs.dag import Arc
from spbn.nodes.atoms import fit_node
from spbn.nodes.base import CPD
from spbn.nodes.families import Family, FamilyScorer, named_batch
from spbn.rows.memory import MemoryRows
from spbn.rows.partition import Partition
from spbn.rows.store import FitSettings, RemoteRows
from spbn.structure import Structure
from spbn.tables.splits import fold_labels, holdout_rows
from spbn.tables.table import Table
from spbn.transforms import Margins

# Unusual values are compared with training rows: all, by cross-validation, or some if there are many.
FEW_ROWS, FOLDS, HELD_OUT = 2_000, 10, 500
MOST_WEIGHED = 20_000  # rows by which weights of mixtures are chosen for that
MOST_POOLED = 2_000  # rows of all fillings of a table


def fit_what_can_be(
    structure: Structure,
    rows: Table | RemoteRows,
    settings: FitSettings,
    *,
    required_arcs: Iterable[Arc] = (),
) -> tuple[Structure, dict[str, CPD], list[tuple[Arc, str]]]:
    """Fit every node, leaving out arcs with which it cannot be fitted.

    A search looks at parts of the rows, and PC at no densities at all, so columns may turn out to be
    collinear once all rows are used. Parents are then added one by one, required ones first, and those
    with which the node cannot be fitted are left out.

    Returns
    -------
    The remaining structure, its densities, and the arcs that were left out, each with the reason.
    """
    required = set(required_arcs)
    cpds: dict[str, CPD] = {}
    left_out: list[tuple[Arc, str]] = []
    for family in structure.families():
        try:
            cpds[family.node] = fitted(rows, family, settings)
            continue
        except FitError:
            pass
        kept: list[str] = []
        cpds[family.node] = fitted(rows, family._replace(parents=()), settings)
        for parent in sorted(family.parents, key=lambda name: (name, family.node) not in required):
            arc = (parent, family.node)
            parents = tuple(name for name in family.parents if name in {*kept, parent})
            try:
                cpds[family.node] = fitted(rows, family._replace(parents=parents), settings)
                kept.append(parent)
            except FitError as error:
                if arc in required:
                    raise FitError(
                        f"the required arc {parent} → {family.node} cannot be fitted: {error} "
                        f"Require fewer arcs, or leave out a column."
                    ) from None
                structure = structure.with_dag(structure.dag.without_arc(*arc))
                left_out.append((arc, str(error)))
    return structure, cpds, left_out


def pooled_over(
    fillings: Sequence[Table], structure: Structure, cpds: Mapping[str, CPD], settings: FitSettings
) -> dict[str, CPD]:
    """Pool the densities of a structure with those that are fitted to other fillings of the same table.

    A filling to which a node cannot be fitted is left out for that node. So are the last ones if there are
    many rows: what their holes were filled with hardly matters then, and every filling has its kernels.
    """
    rows = fillings[0].rows if fillings else 1
    several = {node: [cpd] for node, cpd in cpds.items()}
    for table in fillings[: max(0, MOST_POOLED // rows - 1)]:
        for family in structure.families():
            with suppress(FitError):
                several[family.node].append(fitted(table, family, settings))
    return {node: first.pool(others) for node, (first, *others) in several.items()}


def typical_logpdf(
    structure: Structure, table: Table, settings: FitSettings, margins: Margins | None = None
) -> dict[str, float]:
    """Return the median log-density of every node over rows that its density was not fitted to.

    By cross-validation if there are few rows, otherwise on some held-out rows. Nodes that cannot be fitted
    to part of the rows are left out.
    """
    rows = table if margins is None else margins.transformed(table)
    evaluated, weighed_by = np.arange(table.rows), None
    if table.rows <= FEW_ROWS:
        labels = fold_labels(table.rows, min(FOLDS, table.rows), 0, discrete=table.level_codes)
        partition = Partition.folds(rows, labels)
    else:
        kept, evaluated = holdout_rows(table.rows, HELD_OUT / table.rows, 0, discrete=table.level_codes)
        partition = Partition.holdout(rows.take(kept), rows.take(evaluated))
        if len(kept) > MOST_WEIGHED:
            some = rows.take(kept[:: -(-len(kept) // MOST_WEIGHED)])
            labels = fold_labels(some.rows, FOLDS, 0, discrete=some.level_codes)
            weighed_by = MemoryRows(Partition.folds(some, labels), settings)
    batch = named_batch(rows.names, structure.families())
    by_node = FamilyScorer(MemoryRows(partition, settings, inner=lambda: weighed_by)).rows(batch)
    if margins is not None:
        there = [k for k, node in enumerate(structure.nodes) if node in table.names]
        names = [structure.nodes[k] for k in there]
        by_node[there] += margins.log_slopes(table.take(evaluated), names)
    medians = np.median(by_node, axis=1)
    return {node: float(m) for node, m in zip(structure.nodes, medians, strict=True) if np.isfinite(m)}


def fitted(rows: Table | RemoteRows, family: Family, settings: FitSettings) -> CPD:
    """Fit the density of a node."""
    return fit_node(family.type, rows, family.node, family.parents, settings)
