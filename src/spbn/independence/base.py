"""What every independence test has in common: names in, p-values out.

A question is "are x and y independent, given these?". Answers must not depend on how they are asked for:
neither on which of x and y comes first, nor on the order of the condition or of the columns, nor on what was
asked before. So the variables are numbered alphabetically, not by column, the numbers in a question are
sorted before a test sees it, and a test draws its random numbers from a `stream` named after the question.

`Oracle` is the test that knows the answer: d-separation in a given DAG.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, ClassVar, final

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, Seed, generator
from spbn._base.checks import whole
from spbn.errors import ArgumentError, DataError, in_python, quoted, setting
from spbn.graphs.dag import DAG
from spbn.structure import Structure
from spbn.tables.reader import Missing, as_table
from spbn.tables.table import Table, Variable, require_continuous, require_variation


class IndependenceTest(ABC):
    """A test of conditional independence.

    A new test sets `nodes` by calling ``super().__init__`` and writes
    `answer`; checks and the order of names are taken care of.

    Parameters
    ----------
    nodes
        The variables, in the order of the columns, or their names if all are continuous.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> test = spbn.independence.PartialCorrelation(data)
    >>> test.nodes
    ('A', 'B', 'C', 'D', 'E')
    >>> bool(test.pvalue("C", "D") < 0.05)
    True
    """

    #: How many questions are worth asking at once. PC asks ahead, for answers that it may not
    #: need, until a batch has this size: 1 for tests that are expensive.
    batch_size: ClassVar[int] = 1
    #: How much further PC asks about a pair that is not separated yet, as a share of what it has asked
    #: already: for tests to which further questions with the same condition cost little.
    ask_ahead: ClassVar[float] = 0.0

    #: Names of the variables, in the order of the columns.
    nodes: tuple[str, ...]
    #: The same names in alphabetical order, which is how `answer` numbers them.
    names: tuple[str, ...]
    #: The variables, in the order of the columns.
    variables: tuple[Variable, ...]
    #: The number of rows, for tests that take data.
    rows: int

    def __init__(self, nodes: Iterable[str | Variable]) -> None:
        self.variables = tuple(node if isinstance(node, Variable) else Variable(node) for node in nodes)
        self.nodes = tuple(variable.name for variable in self.variables)
        self.names = tuple(sorted(self.nodes))
        self._number = {name: i for i, name in enumerate(self.names)}

    def _read(self, data: Any, missing: Missing, *, discrete: bool = False) -> Table:
        """Read what is tested, and return it in alphabetical order; for tests that take data."""
        table = as_table(data, levels="infer", missing=missing, min_rows=3)
        if len(table.names) < 2:
            raise DataError(f"an independence test needs at least 2 columns. Got {quoted(table.names)}.")
        require_variation(table)
        if not discrete:
            require_continuous(table, type(self).__name__, "use RCoT, or leave them out")
        IndependenceTest.__init__(self, table.variables)
        self.rows = table.rows
        return table.select(sorted(table.names))

    @abstractmethod
    def answer(self, x: IntArray, y: IntArray, sets: IntArray) -> FloatArray:
        """Return the p-values of questions whose conditions have the same size.

        Variables are positions in `names`. Row i asks about ``x[i]`` and
        ``y[i]``, ``x[i] < y[i]``, given those in ``sets[i]``, in ascending order.
        """

    def pvalue(self, x: str, y: str, given: Iterable[str] = ()) -> float:
        """Return the probability of data at least this dependent if x and y are independent given `given`."""
        return float(self.pvalues([(x, y, given)])[0])

    def pvalues(self, questions: Iterable[tuple[str, str, Iterable[str]]]) -> FloatArray:
        """Answer many questions (x, y, given) at once; the same numbers as one by one, but faster."""
        numbers = [self._numbers(question) for question in questions]
        by_size: dict[int, list[int]] = defaultdict(list)
        for place, question in enumerate(numbers):
            by_size[len(question)].append(place)
        pvalues = np.empty(len(numbers))
        for places in by_size.values():
            columns = np.array([numbers[place] for place in places], dtype=np.int64)
            pvalues[places] = self.answer(columns[:, 0], columns[:, 1], columns[:, 2:])
        return pvalues

    def _numbers(self, question: tuple[str, str, Iterable[str]]) -> list[int]:
        """Write a question as numbers (x, y, given), in an order that does not depend on how it was asked."""
        x, y, given = question
        asked = [x, y, *((given,) if isinstance(given, str) else given)]
        for name in asked:
            if name not in self._number:
                raise ArgumentError(f"there is no variable {name!r}. The variables are {quoted(self.nodes)}.")
        if len(set(asked)) < len(asked):
            raise ArgumentError(
                f"x, y and given must be different variables. Got {x!r}, {y!r} and {asked[2:]}."
            )
        numbers = [self._number[name] for name in asked]
        return [*sorted(numbers[:2]), *sorted(numbers[2:])]


def require_positive(name: str, count: object) -> int:
    """Refuse anything that is not a count, 1 or more."""
    return whole(name, count, 1, requirement="a count, 1 or more")


def root_seed(seed: Seed) -> int:
    """Return the number that a test derives all its random streams from."""
    return int(generator(seed).integers(2**63))


def stream(seed: int, purpose: str, *names: str) -> np.random.Generator:
    """Return the random generator for a seed, a purpose and some names, the same on every machine."""
    digest = hashlib.blake2b(repr((purpose, names)).encode(), digest_size=16).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])


def require_rows(rows: int, needed: int, size: int) -> None:
    """Refuse a condition that is too large for the rows."""
    if rows < needed:
        remedy = in_python(
            "limit the condition (max_conditioning in pc)", elsewhere=f"use {setting('algorithm', 'hc')}"
        )
        raise DataError(
            f"a condition of {size} variable{'s' if size != 1 else ''} needs at least {needed} rows. "
            f"Got {rows}: add rows, or {remedy}."
        )


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
    >>> test = spbn.independence.Oracle(spbn.DAG("ABC", [("A", "B"), ("B", "C")]))
    >>> test.pvalue("A", "C"), test.pvalue("A", "C", ["B"])
    (0.0, 1.0)
    """

    def __init__(self, dag: DAG | Structure) -> None:
        if not isinstance(dag, DAG | Structure):
            raise ArgumentError(f"dag must be a DAG or a Structure. Got {type(dag).__name__} instead.")
        self.dag = dag.dag if isinstance(dag, Structure) else dag
        super().__init__(self.dag.nodes)
        self._known: dict[tuple[int, ...], float] = {}

    def answer(self, x: IntArray, y: IntArray, sets: IntArray) -> FloatArray:
        questions = np.column_stack([x, y, sets]).tolist()
        return np.array([self._separated(tuple(question)) for question in questions], dtype=np.float64)

    def _separated(self, question: tuple[int, ...]) -> float:
        if question not in self._known:
            x, y, *given = (self.names[i] for i in question)
            self._known[question] = float(self.dag.d_separated(x, y, given))
        return self._known[question]
