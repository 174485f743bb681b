"""Orders and orientations of graphs given as boolean matrices.

``directed[i, j]`` is an arc from i to j; ``undirected`` is symmetric.
"""

from __future__ import annotations

import numpy as np

from spbn.data import BoolArray


def topological_order(directed: BoolArray) -> list[int]:
    """Return the nodes with parents before children, the lowest number first where there is a choice.

    Nodes on a cycle, or below one, are left out.
    """
    waiting = directed.sum(axis=0)
    order: list[int] = []
    ready = sorted(np.flatnonzero(waiting == 0).tolist(), reverse=True)
    while ready:
        i = ready.pop()
        order.append(i)
        waiting = waiting - directed[i]
        freed = np.flatnonzero(directed[i] & (waiting == 0)).tolist()
        if freed:
            ready = sorted(ready + freed, reverse=True)
    return order
