"""Scoring in production: a network prepared to score rows as they come, one by one or in batches.

It works on plain dicts and arrays, and imports neither pandas nor any other package for data frames.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, final

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.diagnostics.blame import Blame, Reason
from spbn.errors import ArgumentError
from spbn.io import load
from spbn.network import Network
from spbn.tables.rows import RowParser
from spbn.tables.table import Table, Variable

REHEARSED = (0.0, 1e6)  # values of variables: where rows are dense, perhaps, and far out


@dataclass(frozen=True)
class RowScore:
    """What a scorer says about one row.

    Attributes
    ----------
    logpdf
        Its log-density.
    by_node
        What every node adds to that.
    blame
        The cells that make it unusual, the worst first: the fewest whose repair makes it plausible (see
        `spbn.explain.reasons`). None if no cell stands out. They are looked for when they are asked for.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> spbn.learn(data, model="gbn").save("model.spbn")
    >>> scorer = spbn.load_scorer("model.spbn")
    >>> score = scorer.score({"A": 6.0, "B": 2.0, "C": 12.0, "D": 90.0, "E": 1.0})
    >>> print(score.blame[0].node)
    D
    """

    logpdf: float
    by_node: Mapping[str, float]
    _explain: Callable[[], tuple[Reason, ...]] = field(repr=False, compare=False)

    @cached_property
    def blame(self) -> tuple[Reason, ...]:
        return self._explain()


@final
class RowScorer:
    """A network that is ready to score rows, one by one or many at a time.

    Its log-densities are those of the network, without the detour through a data frame. Scoring changes
    nothing in it, so threads may share one.

    Rows are a dict with a value for every variable; a list of such dicts; a dict of columns; an array of rows
    × variables, or of one row, in the order of `names`, with discrete variables as the positions of their
    levels; or a data frame. They must be complete. Anything that is not a variable is ignored.

    Parameters
    ----------
    network
        A network, compact or not. If it is dynamic, the transition network scores rows: the rows before are
        further variables, such as ``x[t-1]``, the value of ``x`` in the row before.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(500, seed=0)
    >>> scorer = spbn.RowScorer(spbn.learn(data, model="gbn"))
    >>> row = {"A": 3.0, "B": 0.5, "C": 1.0, "D": 9.0, "E": 2.0}
    >>> score = scorer.score(row)
    >>> bool(score.logpdf == scorer.logpdf(row)[0] == scorer.logpdf_by_node(row).sum())
    True
    """

    #: The variables, in the order of arrays, with the levels of the discrete ones.
    variables: tuple[Variable, ...]
    #: Names of the nodes, which are scored.
    nodes: tuple[str, ...]

    def __init__(self, network: Network) -> None:
        if not isinstance(network, Network):
            raise ArgumentError(
                f"a scorer needs a BayesianNetwork or a DynamicNetwork. Got {type(network).__name__}: "
                f"spbn.load_scorer reads a file."
            )
        if network.is_dynamic and network.row_network.hidden is not None:
            network.row_buffer()  # which says why not
        self._network = network.row_network
        self.variables, self.nodes = self._network.variables, self._network.nodes
        self._parser = RowParser(self.variables)
        self._rehearse()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in the order of arrays."""
        return tuple(variable.name for variable in self.variables)

    @cached_property
    def typical(self) -> Mapping[str, float]:
        """What every node adds to the log-density of a typical row: a median over training rows."""
        return MappingProxyType(dict(self._blame.typical))

    @cached_property
    def _blame(self) -> Blame:
        return Blame(self._network)

    def logpdf(self, rows: Any) -> FloatArray:
        """Return the log-density of every row."""
        return self._network.logpdf_of_columns(self._parser.columns(rows)).sum(axis=0)

    def logpdf_by_node(self, rows: Any) -> FloatArray:
        """Return what every node adds to the log-density of every row: rows × nodes."""
        return np.ascontiguousarray(self._network.logpdf_of_columns(self._parser.columns(rows)).T)

    def score(self, row: Any) -> RowScore:
        """Score one row, and say which nodes make it unusual."""
        found = self.scores(row)
        if len(found) != 1:
            raise ArgumentError(f"score takes one row. Got {len(found)}: use scores, or logpdf.")
        return found[0]

    def scores(self, rows: Any) -> list[RowScore]:
        """Score rows, and say for each which nodes make it unusual."""
        columns = self._parser.columns(rows)
        contributions = self._network.logpdf_of_columns(columns)
        blame = self._blame
        return [
            RowScore(
                float(added.sum()),
                dict(zip(self.nodes, added.tolist(), strict=True)),
                partial(blame.reasons, Table.of(self.variables, columns[:, [k]]), added),
            )
            for k, added in enumerate(contributions.T)
        ]

    def _rehearse(self) -> None:
        """Have densities prepare what they keep, and the compiler do its work, before the first row."""
        with suppress(ArgumentError):  # that is, unless it is unknown
            self.typical  # noqa: B018
        discrete = {v.name for v in self._network.all_variables if v.is_discrete}
        with np.errstate(all="ignore"):
            for part in (part for cpd in self._network.cpds.values() for part in cpd.cases):
                names = (*part.parents, part.node)
                for value in REHEARSED:
                    columns = np.array([[0.0 if name in discrete else value] for name in names])
                    part.logpdf_of_columns(columns)

    def __repr__(self) -> str:
        return f"RowScorer of {len(self.nodes)} nodes ({', '.join(self.names)})"


def load_scorer(path: str | os.PathLike[str]) -> RowScorer:
    """Read a ``.spbn`` file, and prepare its network to score rows.

    Neither pandas nor any other package for data frames is imported. Use it with a compact network
    (`BayesianNetwork.compact`), so that scoring a row takes the same time however many training rows there
    were.

    Examples
    --------
    >>> import spbn, tempfile
    >>> data = spbn.datasets.synthetic(2000, seed=0)
    >>> with tempfile.NamedTemporaryFile(suffix=".spbn") as file:
    ...     spbn.learn(data, max_parents=2).compact().save(file.name)
    ...     scorer = spbn.load_scorer(file.name)
    >>> row = {"A": 3.0, "B": 0.5, "C": 1.0, "D": 9.0, "E": -40.0}
    >>> scorer.score(row).blame[0].node
    'E'
    """
    return RowScorer(load(path))
