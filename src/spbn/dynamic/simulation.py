"""Drawing what comes next, for many paths at once.

A path is extended row by row: the transition network draws the next row given the last ones. All paths are
drawn together, node by node, and every value gets noise of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from spbn.network import BayesianNetwork
from spbn.numerics.arrays import FloatArray
from spbn.tables.lags import lag_name

LARGEST = 1e150  # beyond, numbers cannot be squared


def continued(
    transition: BayesianNetwork,
    past: FloatArray,
    steps: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return draws of what follows.

    Parameters
    ----------
    past
        Variables × lags × paths, the oldest row first, in the units of the data; levels as codes. The
        variables are the nodes of the transition network, in their order.
    steps
        How many rows to draw.

    Returns
    -------
    Variables × steps × paths, in the same units.
    """
    names, (_, lags, paths) = transition.nodes, past.shape
    rows = np.concatenate([past, np.empty((len(names), steps, paths))], axis=1)
    inputs = inputs_by_place(transition, names, lags)
    diverged = False
    for now in range(lags, lags + steps):
        given = {
            name: _in_density_units(transition, name, rows[place, now - lag]) for name, place, lag in inputs
        }
        drawn = transition.draw(paths, rng, given=given)
        for place, name in enumerate(names):
            values = transition.in_data_units(name, drawn[name])
            diverged |= bool(np.abs(values).max(initial=0.0) > LARGEST)
            rows[place, now] = np.clip(values, -LARGEST, LARGEST)
    if diverged:
        warnings.warn(
            "some paths grow beyond all bounds: the network is unstable, and its forecasts make sense for "
            "fewer steps only.",
            stacklevel=4,
        )
    return rows[:, lags:]


def inputs_by_place(
    transition: BayesianNetwork, names: Sequence[str], lags: int
) -> list[tuple[str, int, int]]:
    """Return the inputs that a transition network needs, each with the place of its variable and its lag."""
    known = {
        lag_name(name, lag): (place, lag) for place, name in enumerate(names) for lag in range(1, lags + 1)
    }
    return [(name, *known[name]) for name in transition.inputs]


def _in_density_units(network: BayesianNetwork, name: str, values: FloatArray) -> FloatArray:
    if network.margins is None or name not in network.margins.columns:
        return values
    with np.errstate(over="ignore"):
        moved = network.margins.columns[name].forward(values)
    return np.clip(moved, -LARGEST, LARGEST)
