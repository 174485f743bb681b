"""The test that knows the answer: d-separation in a given DAG."""

from __future__ import annotations

from typing import final

import numpy as np

from spbn.errors import ArgumentError
from spbn.graphs.dag import DAG
from spbn.independence.base import IndependenceTest
from spbn.numerics.arrays import FloatArray, IntArray
from spbn.structure import Structure


@final
class Oracle(IndependenceTest):
    """Answers from the true graph: 1 if it d-separates x and y, else 0.

    With it, PC must return the equivalence class of that graph exactly. It
    assumes nothing and costs a walk over the graph for each question.

    Parameters
    ----------
    dag
        The true graph: a DAG or a Structure.

    Examples
    --------
    >>> import spbn
    >>> test = spbn.Oracle(spbn.DAG("ABC", [("A", "B"), ("B", "C")]))
    >>> test.pvalue("A", "C"), test.pvalue("A", "C", ["B"])
    (0.0, 1.0)
    """

    def __init__(self, dag: DAG | Structure) -> None:
        if not isinstance(dag, DAG | Structure):
            raise ArgumentError(f"dag must be a DAG or a Structure. Got {type(dag).__name__} instead.")
        self.dag = dag.dag if isinstance(dag, Structure) else dag
        super().__init__(self.dag.nodes)
        self._known: dict[tuple[int, ...], float] = {}

    def answer(self, x: IntArray, y: IntArray, given: IntArray) -> FloatArray:
        """Return 1 where x and y are d-separated and 0 where they are not."""
        questions = np.column_stack([x, y, given]).tolist()
        return np.array([self._separated(tuple(question)) for question in questions], dtype=np.float64)

    def _separated(self, question: tuple[int, ...]) -> float:
        if question not in self._known:
            x, y, *given = (self.names[i] for i in question)
            self._known[question] = float(self.dag.d_separated(x, y, given))
        return self._known[question]
