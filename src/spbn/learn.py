"""From data to a fitted network, in one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from spbn.bandwidth import BandwidthRule
from spbn.data import Missing, Seed, Table, as_table, require_variation
from spbn.errors import ArgumentError
from spbn.graph import Arc
from spbn.network import BayesianNetwork
from spbn.progress import search_progress
from spbn.scores import BIC, BGe, Score, ValidatedLikelihood
from spbn.search import hill_climb
from spbn.structure import NodeType, Structure

MODELS = ("spbn", "gbn", "kdebn")
ALGORITHMS = ("hc", "pc")
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
    A network fitted on all rows; its `search` is the `SearchResult` or the `PCResult`.
    """
    _require_choice("model", model, MODELS)
    _require_choice("algorithm", algorithm, ALGORITHMS)
    table = as_table(data, missing=missing, min_rows=2)
    require_variation(table)
    likelihood = {
        "folds": folds,
        "validation": validation,
        "seed": seed,
        "bandwidth": bandwidth,
        "engine": engine,
    }
    criterion = _score(table, model, score, missing, likelihood)
    with search_progress(progress, patience) as on_step:
        search = hill_climb(
            criterion,
            _start(table, model, start),
            operators=("arcs", "types") if model == "spbn" else ("arcs",),
            patience=patience,
            epsilon=epsilon,
            max_parents=max_parents,
            required_arcs=required_arcs,
            forbidden_arcs=forbidden_arcs,
            on_step=on_step,
        )
    return BayesianNetwork.fit(search.structure, table, bandwidth=bandwidth, engine=engine, search=search)


def _score(
    table: Table, model: str, score: str | None, missing: Missing, likelihood: dict[str, Any]
) -> Score:
    chosen = score or ("bic" if model == "gbn" else "cv")
    _require_choice("score", chosen, SCORES)
    if chosen == "cv":
        return ValidatedLikelihood(table, missing=missing, **likelihood)
    if model != "gbn":
        raise ArgumentError(f"score={chosen!r} is for model='gbn' only. Got model={model!r}: use score='cv'.")
    return BIC(table) if chosen == "bic" else BGe(table)


def _start(table: Table, model: str, start: NodeType | str | Structure) -> Structure:
    if isinstance(start, Structure):
        return start
    only = {"gbn": NodeType.LG, "kdebn": NodeType.CKDE}
    return Structure(table.names, types=only.get(model, NodeType.parse(start)))


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead.")
