"""Searching for a structure that scores well."""

from spbn.search.hill_climbing import SearchInterrupted, SearchResult, Step, hill_climb
from spbn.search.operators import AddArc, ChangeType, Operator, RemoveArc, ReverseArc

__all__ = [
    "AddArc",
    "ChangeType",
    "Operator",
    "RemoveArc",
    "ReverseArc",
    "SearchInterrupted",
    "SearchResult",
    "Step",
    "hill_climb",
]
