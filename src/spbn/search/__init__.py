"""Searching for a structure: hill climbing and order search on a score, and PC from tests of independence."""

from spbn.search.directions import open_directions
from spbn.search.hill_climbing import SearchInterrupted, SearchResult, Step, hill_climb
from spbn.search.operators import AddArc, ChangeType, Operator, RemoveArc, ReverseArc
from spbn.search.orders import Sweep, order_search
from spbn.search.pc_stable import PCResult, pc

__all__ = [
    "AddArc",
    "ChangeType",
    "Operator",
    "PCResult",
    "RemoveArc",
    "ReverseArc",
    "SearchInterrupted",
    "SearchResult",
    "Step",
    "Sweep",
    "hill_climb",
    "open_directions",
    "order_search",
    "pc",
]
