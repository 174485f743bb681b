"""Random graphs, structures and tables for property-based tests."""

import zlib

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from spbn import NodeType
from spbn.nodes.families import families_of
from spbn.scores import Score

NAMES = "abcdefghijklmno"


@st.composite
def arcs_of_dag(draw, min_nodes=1, max_nodes=7):
    """Nodes in a shuffled order, and arcs without a cycle."""
    n = draw(st.integers(min_nodes, max_nodes))
    order = draw(st.permutations(range(n)))
    pairs = [(i, j) for i in range(n) for j in range(i)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    nodes = list(NAMES[:n])
    return nodes, [(nodes[order[j]], nodes[order[i]]) for i, j in chosen]


def nonlinear_frame(rows, columns, seed=0):
    """Columns that depend on each other in curved ways."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        data[:, j] += np.sin(2 * data[:, j - 1]) + 0.3 * data[:, rng.integers(j)]
    return pd.DataFrame(data, columns=list(NAMES[:columns]))


def mixed_frame(rows, seed=0, *, rare=0):
    """Three columns of numbers, and three of levels, which they depend on; `rare` rows have another level.

    The levels of `u`, `v` and `w` are three, two and four; `v` depends on `u`.
    """
    rng = np.random.default_rng(seed)
    u = rng.choice(list("xyz"), size=rows, p=[0.5, 0.3, 0.2]).astype(object)
    v = np.where(rng.random(rows) < np.where(u == "x", 0.8, 0.3), "no", "yes")
    w = rng.choice(list("klmn"), size=rows)
    u[rng.permutation(rows)[:rare]] = "rare"
    frame = nonlinear_frame(rows, 3, seed)
    frame["a"] += 2.0 * (u == "y")
    frame["b"] *= np.where(v == "yes", 2.0, 0.5)
    return frame.assign(u=u, v=v, w=w)


class ScoreOf(Score):
    """A score whose local scores are what a function of the family says; everything else is the library's."""

    def __init__(self, nodes, local, *, types=NodeType, validation=None):
        super().__init__(nodes, map(NodeType.parse, types))
        self.validation = None if validation is None else ScoreOf(nodes, validation, types=types)
        self._local = local

    def _compute(self, batch):
        return np.array([self._local(family) for family in families_of(batch)], dtype=float)


def random_local(seed):
    """Local scores without rhyme or reason, in which every arc and every type matters."""

    def local(family):
        named = f"{seed} {family.node} {sorted(family.parents)} {family.type}"
        return np.random.default_rng(zlib.crc32(named.encode())).normal()

    return local
