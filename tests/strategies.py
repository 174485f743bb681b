"""Random graphs, structures and tables for property-based tests."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

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
