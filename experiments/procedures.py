"""The learning procedures that the paper compares, on one table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

import spbn
from spbn.fitting import fit_what_can_be
from spbn.nodes import FitSettings
from spbn.tables import as_table

#: Type of the nodes that a model starts with.
START = {"GBN": "lg", "KDEBN": "ckde", "SPBN-LG": "lg", "SPBN-CKDE": "ckde"}

#: Scores that are the same for all DAGs of an equivalence class; they need no validation rows.
EQUIVALENT_SCORES = {"HC-BIC": spbn.scores.BIC, "HC-BGe": spbn.scores.BGe}
TESTS: dict[str, Callable[[pd.DataFrame, int], Any]] = {
    "PC-PLC": lambda data, seed: spbn.independence.PartialCorrelation(data),
    "PC-RCoT": lambda data, seed: spbn.independence.RCoT(data, seed=seed),
}


@dataclass(frozen=True)
class Procedure:
    """How a network is learned.

    Attributes
    ----------
    algorithm
        "HC" (validated likelihood), "HC-BIC", "HC-BGe", "PC-PLC" or "PC-RCoT".
    model
        "GBN", "KDEBN", or an SPBN by the type that its nodes start with: "SPBN-LG", "SPBN-CKDE".
    patience
        That of the search; 0 where there is no validation.
    """

    algorithm: str
    model: str
    patience: int = 0

    @property
    def semiparametric(self) -> bool:
        """Whether node types are learned."""
        return self.model.startswith("SPBN")


class Workbench:
    """Learns structures from one table by any procedure, and computes what they share only once.

    Parameters
    ----------
    seed
        Decides the validation rows, the folds, and the random features of RCoT.
    largest_condition
        Maximum number of variables in a condition of PC with RCoT; None for no limit.
    """

    def __init__(self, data: pd.DataFrame, *, seed: int = 0, largest_condition: int | None = None) -> None:
        self.data = data
        self._seed = seed
        self._largest_condition = {"PC-RCoT": largest_condition}
        self._searches: dict[tuple[spbn.Structure, tuple[str, ...]], spbn.SearchResult] = {}
        self._graphs: dict[str, spbn.DAG] = {}

    def structure(self, procedure: Procedure) -> spbn.Structure:
        """Return the structure that a procedure finds."""
        begin = spbn.Structure(list(self.data.columns), types=START[procedure.model])
        if procedure.algorithm in EQUIVALENT_SCORES:
            score = EQUIVALENT_SCORES[procedure.algorithm](self.data)
            return spbn.search.hill_climb(score, begin).structure
        operators = ("arcs", "types") if procedure.semiparametric else ("arcs",)
        if procedure.algorithm.startswith("PC-"):
            begin, operators = begin.with_dag(self.graph(procedure.algorithm)), operators[1:]
        return (
            within_patience(begin, self._climb(begin, operators), procedure.patience) if operators else begin
        )

    @cached_property
    def score(self) -> spbn.scores.ValidatedLikelihood:
        """The score that all searches climb: what one has computed, the others find in its cache."""
        return spbn.scores.ValidatedLikelihood(self.data, folds=10, validation=0.2, seed=self._seed)

    def graph(self, algorithm: str) -> spbn.DAG:
        """Return the graph that PC finds, as a DAG."""
        if algorithm not in self._graphs:
            test = TESTS[algorithm](self.data, self._seed)
            with warnings.catch_warnings():  # PDAGs without a consistent extension are expected here
                warnings.simplefilter("ignore")
                found = spbn.search.pc(test, max_conditioning=self._largest_condition.get(algorithm))
                self._graphs[algorithm] = found.pdag.to_dag()
        return self._graphs[algorithm]

    def _climb(self, begin: spbn.Structure, operators: tuple[str, ...]) -> spbn.SearchResult:
        """Return a search with patience 5."""
        key = (begin, operators)
        if key not in self._searches:
            self._searches[key] = spbn.search.hill_climb(self.score, begin, operators=operators, patience=5)
        return self._searches[key]


def within_patience(begin: spbn.Structure, search: spbn.SearchResult, patience: int) -> spbn.Structure:
    """Return what a search with less patience would have found: it takes the same steps, and fewer."""
    best = begin
    for step in search.steps:
        if step.misses > patience:
            break
        if step.misses == 0:
            best = step.structure
    return best


def fit(structure: spbn.Structure, data: pd.DataFrame) -> tuple[spbn.BayesianNetwork, int]:
    """Fit a network; arcs that cannot be fitted are left out and counted."""
    structure, cpds, left_out = fit_what_can_be(structure, as_table(data), FitSettings())
    return spbn.BayesianNetwork(structure, cpds), len(left_out)


def with_patience(algorithm: str, models: Iterable[str]) -> list[Procedure]:
    """Return the procedures of an algorithm that has patience 0 and 5."""
    return [Procedure(algorithm, model, patience) for model in models for patience in (0, 5)]
