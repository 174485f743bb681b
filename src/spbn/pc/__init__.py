"""PC-stable: a partially directed graph from tests of conditional independence.

Three steps (Colombo and Maathuis, 2014):

1. *Skeleton.* Start with every pair joined, and remove an edge once a
   condition is found that makes its ends independent. Conditions grow level by
   level, and within a level the adjacencies are frozen.
2. *Colliders.* Decide for every unshielded triple whether it is x → z ← y.
3. *Meek's rules* orient what follows from those (`spbn.graphs.orientation`).

Internally, nodes are numbered alphabetically (``test.names``), so ties are broken
by name, and the order of the columns makes no difference.
"""

from spbn.search.pc_stable import PCResult, pc

__all__ = ["PCResult", "pc"]
