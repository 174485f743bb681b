"""Graphs: DAG and PDAG, their orders and orientations, and what is known about them beforehand."""

from spbn.graphs.dag import DAG, PDAG, Arc, Knowledge

__all__ = ["DAG", "PDAG", "Arc", "Knowledge"]
