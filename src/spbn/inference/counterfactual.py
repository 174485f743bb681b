"""What rows would have been, had some of their values been set to others (Pearl, 2009, chapter 7).

1. Abduction: what every node of a row owes to noise, given its parents, is read off the row (`CPD.to_noise`).
   For a line or a curve that is the distance from it, in the width of the noise there. For other densities it
   is the place in their distribution, P(X ≤ x | parents). For a discrete node it is a point on the step of
   its level, which is drawn.
2. Action: nodes are set.
3. Prediction: what is below them has the same noise (`CPD.from_noise`), but new parents.

All other nodes keep their values, and so do those whose parents have not changed. Holes are drawn given the
rest of the row, and rows of a hidden class count for every class, as probable as it is given the row. Where
nothing has to be drawn, nothing is random.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn._base.checks import whole
from spbn._base.lazy import pd
from spbn.errors import ArgumentError, argument
from spbn.graphs.dag import Arc
from spbn.inference.batch import MOST_AT_ONCE, class_probabilities, impute_table
from spbn.inference.problem import read_interventions
from spbn.inference.query import equal_tails
from spbn.joint import Joint
from spbn.tables.reader import as_table, frame_index
from spbn.tables.rows import as_dict
from spbn.tables.table import Table


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactual:
    """What rows would have been.

    Attributes
    ----------
    do
        What was set.
    rows
        A frame like the data: means, and the most probable levels.
    low, high
        Frames with the ends of intervals for numbers. Where nothing is open, they are the value itself.
    level
        How probable it is that a value is between them.
    probabilities
        The probabilities of levels, by discrete variable: rows × levels.
    open_directions
        The arcs whose direction is open, and on which the answer depends (`BayesianNetwork.open_directions`).

    Examples
    --------
    >>> import spbn
    >>> line = spbn.nodes.LinearGaussian("y", ["x"], 1.0, [2.0], 0.25)
    >>> cause = spbn.nodes.LinearGaussian("x", [], 0.0, [], 1.0)
    >>> structure = spbn.Structure("xy", [("x", "y")])
    >>> network = spbn.BayesianNetwork(structure, {"x": cause, "y": line})
    >>> network.counterfactual({"x": 1.0, "y": 3.5}, do={"x": 0.0}).rows
         x    y
    0  0.0  1.5
    """

    do: Mapping[str, object]
    rows: pd.DataFrame
    low: pd.DataFrame
    high: pd.DataFrame
    level: float
    probabilities: Mapping[str, pd.DataFrame]
    open_directions: tuple[Arc, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return the values, followed by intervals and probabilities where something is open."""
        frame = self.rows.copy()
        for name in self.low:
            if not self.low[name].equals(self.high[name]):
                frame[f"{name} low"], frame[f"{name} high"] = self.low[name], self.high[name]
        for name, shares in self.probabilities.items():
            if (shares.max(axis=1) < 1.0).any():
                frame[f"{name} probability"] = shares.max(axis=1)
        return frame

    def __repr__(self) -> str:
        return repr(self.to_frame())


def counterfactual(
    network: Joint,
    data: Any,
    do: Mapping[str, object],
    *,
    n: int = 100,
    level: float = 0.9,
    seed: Seed = 0,
) -> Counterfactual:
    """Return what rows would have been; see `BayesianNetwork.counterfactual`."""
    whole("n", n, 1)
    tails, set_to = equal_tails(level), read_interventions(network, do)
    if not set_to:
        raise ArgumentError(f"{argument('do')} must set at least one variable.")
    data = as_dict(data)
    if isinstance(data, Mapping) and all(np.ndim(value) == 0 for value in data.values()):
        data = {name: [value] for name, value in data.items()}  # a single row
    table = as_table(data, variables=network.variables, missing="keep", absent=True)
    moving = {node for name in set_to for node in network.structure.dag.descendants(name)} - set(set_to)
    has_levels = any(variable.is_discrete and variable.name in moving for variable in network.all_variables)
    classes = 1 if network.class_variable is None else len(network.class_variable.levels)
    holed = np.asarray(np.isnan(table.columns).any(axis=0))
    shape = (len(network.variables), table.rows)
    means, low, high = np.empty(shape), np.empty(shape), np.empty(shape)
    shares = {v.name: np.empty((table.rows, len(v.levels))) for v in network.variables if v.is_discrete}
    rng = generator(seed)
    for rows, copies in ((np.flatnonzero(~holed), n if has_levels else 1), (np.flatnonzero(holed), n)):
        step = max(1, MOST_AT_ONCE // (copies * classes))
        for some in (rows[first : first + step] for first in range(0, len(rows), step)):
            filled = [table.take(some)] * copies
            if holed[some[0]]:
                filled = impute_table(network, filled[0], draws=copies, seed=rng, warn=True)
            columns = np.stack([part.columns for part in filled], axis=2)
            values, weights = _moved(network, columns, set_to, rng)
            total = weights.sum(axis=1)
            for k, variable in enumerate(network.variables):
                if variable.is_discrete:
                    for code in range(len(variable.levels)):
                        shares[variable.name][some, code] = (weights * (values[k] == code)).sum(
                            axis=1
                        ) / total
                    means[k, some] = shares[variable.name][some].argmax(axis=1)
                else:
                    means[k, some], low[k, some], high[k, some] = _summary(values[k], weights, tails)
    index = frame_index(data)
    numbers = [k for k, variable in enumerate(network.variables) if not variable.is_discrete]
    low_frame, high_frame = (
        pd.DataFrame({network.variables[k].name: ends[k] for k in numbers}, index=index)
        for ends in (low, high)
    )
    near = moving | set(set_to)
    values_of = zip(network.variables, means, strict=True)
    found = {v.name: column if not v.is_discrete else network.as_data(v, column) for v, column in values_of}
    levels = {variable.name: list(variable.levels) for variable in network.variables}
    return Counterfactual(
        dict(do),
        pd.DataFrame(found, index=index),
        low_frame,
        high_frame,
        level,
        {name: pd.DataFrame(p, index=index, columns=levels[name]) for name, p in shares.items()},
        tuple(arc for arc in network.open_directions() if near & set(arc)),
    )


def _moved(
    network: Joint, columns: FloatArray, set_to: Mapping[str, float], rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return what complete rows would have been, and weights: variables × rows × copies, and rows × copies.

    Columns are the same for rows as they are, in the units of the data. There are as many copies of each of
    these as there are hidden classes.
    """
    variables, rows, copies = columns.shape
    table = Table.of(network.variables, columns.reshape(variables, -1))
    weights = np.full((rows, copies, 1), 1.0 / copies)
    moved = network.transformed(table)
    known = dict(zip(moved.names, moved.columns, strict=True))
    if network.hidden is not None:
        weights = weights * class_probabilities(network, table).reshape(rows, copies, -1)
        number = weights.shape[2]
        known = {name: np.repeat(column, number) for name, column in known.items()}
        known[network.hidden] = np.tile(np.arange(number, dtype=np.float64), rows * copies)
    new = dict(known)
    for node in network.order:
        if node in set_to:
            new[node] = np.full_like(known[node], set_to[node])
        elif node in network.cpds:
            new[node] = _with_same_noise(network, node, known, new, rng, (rows, -1))
    out = np.empty((variables, *weights.shape))
    for k, name in enumerate(table.names):
        old = np.repeat(columns[k][:, :, None], weights.shape[2], axis=2)
        values = new[name].reshape(old.shape)
        is_same = values == known[name].reshape(old.shape)
        out[k] = np.where(is_same, old, network.in_data_units(name, values))
    return out.reshape(variables, rows, -1), weights.reshape(rows, -1)


def _with_same_noise(
    network: Joint,
    node: str,
    known: Mapping[str, FloatArray],
    new: Mapping[str, FloatArray],
    rng: np.random.Generator,
    shape: tuple[int, int],
) -> FloatArray:
    """Return the values of a node, given new values of its parents."""
    cpd, values = network.cpds[node], known[node].copy()
    before, after = (
        np.array([each[parent] for parent in cpd.parents]).reshape(len(cpd.parents), len(values))
        for each in (known, new)
    )
    moved: IntArray = np.flatnonzero((before != after).any(axis=0))
    if len(moved):
        uniforms = np.zeros(len(values))
        # The copies of a row divide the step of its level evenly.
        if cpd.variable.is_discrete or node in network.atoms:
            places = np.tile(np.arange(values.reshape(shape).shape[1]), (shape[0], 1))
            drawn = rng.permuted(places, axis=1) + rng.random(places.shape)
            uniforms = (drawn / places.shape[1]).ravel()
        noise = cpd.to_noise(np.vstack([before, values])[:, moved], uniforms[moved])
        values[moved] = cpd.from_noise(np.ascontiguousarray(after[:, moved]), noise)
    return values


def _summary(
    values: FloatArray, weights: FloatArray, tails: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return means and quantiles, from rows × copies; exactly the value where all copies have the same."""
    first, last = values.min(axis=1), values.max(axis=1)
    if (first == last).all():
        return first, first, first
    mean = np.where(first == last, first, (weights * values).sum(axis=1) / weights.sum(axis=1))
    low, high = np.quantile(values, tails, axis=1, weights=weights, method="inverted_cdf")
    return mean, low, high
