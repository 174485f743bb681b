"""The learning procedures that the paper compares, on one table."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

import spbn
from spbn.data import as_table
from spbn.errors import FitError
from spbn.network import fit_cpd

#: Type of the nodes that a model starts with.
START = {"GBN": "lg", "KDEBN": "ckde", "SPBN-LG": "lg", "SPBN-CKDE": "ckde"}


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
    """Learns structures from one table by any procedure, and computes only once what they share.

    Parameters
    ----------
    seed
        Decides the validation rows, the folds, and the random features of RCoT.
    """

    def __init__(self, data: pd.DataFrame, *, seed: int = 0) -> None:
        self.data = data
        self._seed = seed
        self._searches: dict[tuple[spbn.Structure, tuple[str, ...]], spbn.SearchResult] = {}
        self._graphs: dict[str, spbn.DAG] = {}

    def structure(self, procedure: Procedure) -> spbn.Structure:
        """Return the structure that a procedure finds."""
        nodes, types = list(self.data.columns), START[procedure.model]
        if procedure.algorithm.startswith("PC-"):
            begin = spbn.Structure(nodes, types=types).with_dag(self.graph(procedure.algorithm))
            if not procedure.semiparametric:
                return begin
            return within_patience(begin, self._climb(begin, ("types",)), procedure.patience)
        begin = spbn.Structure(nodes, types=types)
        if procedure.algorithm == "HC":
            return within_patience(begin, self.search(procedure.model), procedure.patience)
        score = {"HC-BIC": spbn.BIC, "HC-BGe": spbn.BGe}[procedure.algorithm](self.data)
        return spbn.hill_climb(score, begin).structure

    @cached_property
    def score(self) -> spbn.ValidatedLikelihood:
        """The score that all searches climb: what one has computed, the others find in its cache."""
        return spbn.ValidatedLikelihood(self.data, folds=10, validation=0.2, seed=self._seed)

    def search(self, model: str) -> spbn.SearchResult:
        """Return the hill climbing search with patience 5."""
        operators = ("arcs", "types") if model.startswith("SPBN") else ("arcs",)
        return self._climb(spbn.Structure(list(self.data.columns), types=START[model]), operators)

    def graph(self, algorithm: str) -> spbn.DAG:
        """Return the graph that PC finds, as a DAG."""
        if algorithm not in self._graphs:
            test = (
                spbn.PartialCorrelation(self.data)
                if algorithm == "PC-PLC"
                else spbn.RCoT(self.data, seed=self._seed)
            )
            with warnings.catch_warnings():  # a PDAG without a consistent extension is to be expected here
                warnings.simplefilter("ignore")
                self._graphs[algorithm] = spbn.pc(test).pdag.to_dag()
        return self._graphs[algorithm]

    def _climb(self, begin: spbn.Structure, operators: tuple[str, ...]) -> spbn.SearchResult:
        key = (begin, operators)
        if key not in self._searches:
            self._searches[key] = spbn.hill_climb(self.score, begin, operators=operators, patience=5)
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
    """Fit a network; arcs that the rows do not bear are left out and counted."""
    table, cpds, dropped = as_table(data), {}, 0
    for family in structure.families():
        while family.node not in cpds:
            try:
                cpds[family.node] = fit_cpd(table, family, bandwidth="scott", engine="auto")
            except FitError:
                if not family.parents:
                    raise
                structure = structure.with_dag(structure.dag.without_arc(family.parents[-1], family.node))
                family = family._replace(parents=family.parents[:-1])
                dropped += 1
    return spbn.BayesianNetwork(structure, cpds), dropped


def with_patience(algorithm: str, models: Iterable[str]) -> list[Procedure]:
    """Return the procedures of an algorithm that has patience 0 and 5."""
    return [Procedure(algorithm, model, patience) for model in models for patience in (0, 5)]
