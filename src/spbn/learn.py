"""From data to a fitted network, in one call."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from spbn.bandwidth import BandwidthRule
from spbn.cpds import CPD
from spbn.data import Missing, Seed, Table, quoted, training_table
from spbn.errors import ArgumentError, FitError
from spbn.graph import Arc
from spbn.independence import CMIknn, IndependenceTest, PartialCorrelation, RCoT
from spbn.network import BayesianNetwork, fit_cpd
from spbn.pc import PCResult, pc
from spbn.progress import search_progress
from spbn.scores import BIC, BGe, Score, ValidatedLikelihood
from spbn.search import SearchResult, hill_climb
from spbn.structure import NodeType, Structure

MODELS = ("spbn", "gbn", "kdebn")
ALGORITHMS = ("hc", "pc")
TESTS = {"plc": PartialCorrelation, "rcot": RCoT, "cmiknn": CMIknn}
SCORES = ("cv", "bic", "bge")


def learn(
    data: Any,
    *,
    model: str = "spbn",
    algorithm: str = "hc",
    test: str = "rcot",
    start: NodeType | str | Structure = NodeType.CKDE,
    score: str | None = None,
    folds: int = 10,
    validation: Any = 0.2,
    patience: int = 5,
    epsilon: float = 0.0,
    alpha: float = 0.05,
    max_parents: int | None = None,
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    bandwidth: BandwidthRule = "scott",
    seed: Seed = 0,
    progress: bool = False,
    missing: Missing = "error",
    engine: str = "auto",
) -> BayesianNetwork:
    """Learn the structure and the node types of a network from data, and fit it to all rows.

    Parameters
    ----------
    data
        A data frame (pandas, polars, pyarrow, ...) or a dict of columns; every column is a node.
    model
        "spbn": the type of every node is learned. "gbn": all nodes are linear Gaussian.
        "kdebn": all are CKDE.
    algorithm
        "hc": hill climbing on a score. "pc": the graph by tests of independence, then
        the node types by hill climbing.
    test
        For "pc": "plc" (partial correlation), "rcot" or "cmiknn".
    start
        Type of all nodes at the start of an SPBN search; or a structure to begin with.
    score
        For "hc": "cv" (cross-validated likelihood with a validation set), the default; for
        a GBN also "bic", the default there, and "bge".
    folds, validation, patience, epsilon, max_parents, required_arcs, forbidden_arcs
        As for `ValidatedLikelihood` and `hill_climb`.
    alpha
        For "pc": level of the tests.
    progress
        Show a progress line on the terminal.
    missing
        "error" refuses missing and infinite values, "drop" leaves their rows out.

    Returns
    -------
    A network fitted on all rows; its `search` is the `SearchResult` or the `PCResult`. Behind PC, its
    `type_search` is the `SearchResult` of the node types.
    """
    _require_choice("model", model, MODELS)
    _require_choice("algorithm", algorithm, ALGORITHMS)
    _require_choice("test", test, tuple(TESTS))
    table = training_table(data, missing)
    begin = _start(table, model, start)
    likelihood = {
        "folds": folds,
        "validation": validation,
        "seed": seed,
        "bandwidth": bandwidth,
        "missing": missing,
        "engine": engine,
    }
    climbing: dict[str, Any] = {"patience": patience, "epsilon": epsilon}
    search: SearchResult | PCResult
    type_search: SearchResult | None = None
    if algorithm == "hc":
        criterion = _score(table, model, score, likelihood)
        with search_progress(progress, patience) as on_step:
            search = hill_climb(
                criterion,
                begin,
                operators=("arcs", "types") if model == "spbn" else ("arcs",),
                max_parents=max_parents,
                required_arcs=required_arcs,
                forbidden_arcs=forbidden_arcs,
                on_step=on_step,
                **climbing,
            )
        structure = search.structure
    else:
        _refuse_for_pc(score=score, max_parents=max_parents, start=start)
        # Made first, so that what is wrong with its arguments shows before the tests are run.
        validated = ValidatedLikelihood(table, **likelihood) if model == "spbn" else None
        search = pc(
            _test(test, table, seed),
            alpha=alpha,
            required_arcs=required_arcs,
            forbidden_arcs=forbidden_arcs,
            progress=progress,
        )
        structure = begin.with_dag(search.pdag.to_dag())
        if validated is not None:
            with search_progress(progress, patience) as on_step:
                type_search = hill_climb(
                    validated, structure, operators=("types",), on_step=on_step, **climbing
                )
            structure = type_search.structure
    structure, cpds = _fit(structure, table, bandwidth=bandwidth, engine=engine)
    return BayesianNetwork(structure, cpds, search=search, type_search=type_search)


def _score(table: Table, model: str, score: str | None, likelihood: dict[str, Any]) -> Score:
    chosen = score or ("bic" if model == "gbn" else "cv")
    _require_choice("score", chosen, SCORES)
    if chosen == "cv":
        return ValidatedLikelihood(table, **likelihood)
    if model != "gbn":
        raise ArgumentError(f"score={chosen!r} is for model='gbn' only. Got model={model!r}: use score='cv'.")
    return BIC(table) if chosen == "bic" else BGe(table)


def _test(test: str, table: Table, seed: Seed) -> IndependenceTest:
    return PartialCorrelation(table) if test == "plc" else TESTS[test](table, seed=seed)


def _refuse_for_pc(*, score: object, max_parents: object, start: object) -> None:
    """Refuse what only hill climbing can heed, rather than pass over it."""
    given = {"score": score, "max_parents": max_parents}
    unheeded = [name for name, value in given.items() if value is not None]
    if isinstance(start, Structure):
        unheeded.append("start (as a structure)")
    if unheeded:
        raise ArgumentError(f"{' and '.join(unheeded)} can be given with algorithm='hc' only, not with 'pc'.")


def _start(table: Table, model: str, start: NodeType | str | Structure) -> Structure:
    only = {"gbn": NodeType.LG, "kdebn": NodeType.CKDE}
    if not isinstance(start, Structure):
        return Structure(table.names, types=only.get(model, NodeType.parse(start)))
    if set(start.nodes) != set(table.names):
        raise ArgumentError(
            f"the nodes of start must be the columns of the data. Got {quoted(start.nodes)}, "
            f"and the columns {quoted(table.names)}."
        )
    if model in only and set(start.types.values()) != {only[model]}:
        raise ArgumentError(f"all nodes of a {model} are of type {only[model]}, but start has others.")
    return start


def _fit(
    structure: Structure, table: Table, *, bandwidth: BandwidthRule, engine: str
) -> tuple[Structure, dict[str, CPD]]:
    """Fit every node to all rows; arcs that they do not bear are left out, with a warning.

    A search looks at parts of the rows, and PC at none of the densities: all rows
    together can have columns that are collinear where a part of them has not.
    """
    cpds: dict[str, CPD] = {}
    for family in structure.families():
        while True:
            try:
                cpds[family.node] = fit_cpd(table, family, bandwidth=bandwidth, engine=engine)
                break
            except FitError as error:
                if not family.parents:
                    raise
                *kept, dropped = family.parents
                family = family._replace(parents=tuple(kept))
                structure = structure.with_dag(structure.dag.without_arc(dropped, family.node))
                warnings.warn(f"the arc {dropped} → {family.node} is left out: {error}", stacklevel=3)
    return structure, cpds


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead.")
