"""A small mixed table, and networks of it, for tests of whatever shows or explains them."""

from functools import cache

import numpy as np
import pandas as pd

import spbn

STRUCTURE = spbn.Structure(
    ["town", "size", "x", "y", "z"],
    [("town", "size"), ("town", "x"), ("town", "y"), ("size", "y"), ("x", "y"), ("x", "z")],
    types={"town": "discrete", "size": "discrete", "x": "lg", "y": "lg", "z": "lg"},
)
MODELS = ("lg", "ckde", "blend")


def mixed_frame(rows=160, seed=0):
    """Return towns that differ in the sizes of their houses and in the numbers x and y; z depends on x."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Leith", "Portobello", "Stockbridge"], rows, p=[0.5, 0.3, 0.2])
    size = np.where(rng.random(rows) < np.where(town == "Leith", 0.8, 0.3), "small", "large")
    x = rng.normal(size=rows) + 2.0 * (town == "Leith")
    y = np.where(size == "small", x, -x) + (town == "Portobello") + 0.5 * rng.normal(size=rows)
    return pd.DataFrame({"town": town, "size": size, "x": x, "y": y, "z": x**2 + rng.normal(size=rows)})


@cache
def mixed_network(kind="lg", margins="none"):
    """Return a network of these columns, whose continuous nodes are all of one kind."""
    types = {node: "discrete" if node in ("town", "size") else kind for node in STRUCTURE.nodes}
    structure = spbn.Structure(STRUCTURE.nodes, STRUCTURE.arcs, types)
    return spbn.BayesianNetwork.fit(structure, mixed_frame(), margins=margins)
