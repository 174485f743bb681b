"""Graphs: DAG and PDAG, their orders and orientations, what is known about them, and what to adjust for."""

from spbn.graphs.adjustment import adjustment_sets
from spbn.graphs.dag import DAG, PDAG, Arc, Knowledge

__all__ = ["DAG", "PDAG", "Arc", "Knowledge", "adjustment_sets"]
