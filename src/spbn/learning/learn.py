"""From data to a fitted network, in one call."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np

from spbn._base.arrays import Seed, generator
from spbn._base.progress import search_progress
from spbn.errors import ArgumentError
from spbn.fitting import fit_what_can_be, pooled_over, typical_logpdf
from spbn.graphs.dag import Arc
from spbn.io.checkpoint import Notes, noted_steps
from spbn.kernels.estimates import BandwidthRule
from spbn.learning.task import (
    Task,
    chosen_score,
    independence_test,
    prepared_score,
    prepared_task,
    refuse_for_pc,
    score_of,
    settings_of,
    validated_likelihood,
)
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType
from spbn.record import Record, current_versions
from spbn.scores import Score
from spbn.scores.base import Averaged
from spbn.search import PCResult, SearchInterrupted, SearchResult, Step, hill_climb, pc
from spbn.search.operators import arcs_into, require_seconds
from spbn.structure import Structure
from spbn.tables.frames import training_table_with_holes
from spbn.tables.splits import Split
from spbn.tables.table import Table


class LearningInterrupted(KeyboardInterrupt):
    """Ctrl-C during `learn`: `network()` fits what the search had found by then.

    `search` is the search so far, with "interrupted" as its `stop_reason`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> try:
    ...     network = spbn.learn(data, model="gbn")
    ... except spbn.LearningInterrupted as stop:  # Ctrl-C
    ...     network = stop.network()
    """

    def __init__(self, search: SearchResult, network: Callable[[], BayesianNetwork]) -> None:
        super().__init__(f"learning was interrupted after {len(search.steps)} steps")
        self.search = search
        self.network = network


def learn(
    data: Any,
    *,
    model: str = "spbn",
    algorithm: str = "hc",
    test: str = "rcot",
    start: NodeType | str | Structure = NodeType.CKDE,
    types: Iterable[NodeType | str] | None = None,
    score: str | None = None,
    folds: int = 10,
    validation: Any = 0.2,
    patience: int = 5,
    epsilon: float = 0.0,
    max_seconds: float | None = None,
    alpha: float = 0.05,
    max_parents: int | None = None,
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    bandwidth: BandwidthRule = "scott",
    margins: str = "none",
    seed: Seed = 0,
    progress: bool = False,
    missing: str = "error",
    drop: Sequence[str] = (),
    discrete: Sequence[str] = (),
    smoothing: float = 1.0,
    engine: str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    client: Any = None,
) -> BayesianNetwork:
    """Learn the structure and the node types of a network from data, and fit it to all rows.

    Parameters
    ----------
    data
        A data frame (pandas, polars, pyarrow, ...) or a dict of columns; every column is a node. Columns of
        text, categories or truth values become discrete nodes, which can have only discrete parents.
    model
        Types of the continuous nodes. "spbn": the type of every node is learned. "gbn": all are linear
        Gaussian. "kdebn": all are CKDE. "blend": all are blends, which often predict best.
    algorithm
        "hc": hill climbing on a score. "pc": independence tests for the graph, then hill climbing for the
        node types.
    test
        For "pc": "plc" (partial correlation), "rcot" or "cmiknn".
    start
        Type of all nodes at the start of an SPBN search, or a structure to start from.
    types
        The node types to choose from, instead of the model's own: for example
        ``("lg", "ckde", "laplace")`` with a type of your own.
    score
        For "hc": "cv" (cross-validated likelihood with a validation set), the default; for
        a GBN also "bic", the default there, and "bge".
    folds, validation, patience, epsilon, max_parents, required_arcs, forbidden_arcs
        As for `ValidatedLikelihood` and `hill_climb`.
    max_seconds
        For "hc": stop the search after the first step that ends later than this many seconds, and fit the
        best structure found so far.
    alpha
        For "pc": significance level of the tests.
    margins
        "yeo-johnson" transforms every column before anything else, which reduces skew and heavy tails (see
        `spbn.transforms`); densities and samples are still in the units of the data.
    progress
        Show a progress line on the terminal.
    missing
        "error" refuses missing and infinite values, "drop" leaves out rows that have them, and "impute"
        learns from all values that are present, by alternating searches and draws for missing values (see
        `spbn.learning.structural_em`).
    drop
        Columns to leave out.
    discrete
        Numeric columns that stand for categories.
    smoothing
        How many rows are added to every configuration of a discrete node's parents, spread evenly over its
        levels, so that nothing is impossible just because it has not been seen.
    checkpoint
        For "hc": a file in which every step is recorded. If it has steps of the same search, which was killed
        or stopped by `max_seconds`, the search resumes after them. A file about other data or settings is
        refused.
    client
        A `dask.distributed.Client` whose workers score the families of the search, each with the whole table.
        The network is the same as without. The tests of "pc" run in this process.

    Returns
    -------
    A network fitted to all rows. Its `record` says how it was learned; `search` is the `SearchResult` or the
    `PCResult`, and after PC `type_search` is the `SearchResult` of the node types.

    Raises
    ------
    LearningInterrupted
        A `KeyboardInterrupt` that can give you the best network so far.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(2000, seed=0)
    >>> network = spbn.learn(data)
    >>> print(network.structure.arcs)
    (('A', 'C'), ('B', 'C'), ('C', 'D'), ('D', 'E'))
    """
    given = dict(locals())
    if client is not None:
        from spbn.dask.client import require_client

        require_client(client)
    if missing == "impute":
        return _learn_from_holes(given)
    return learn_with(given)


def learn_with(
    given: dict[str, Any],
    *,
    inputs: Sequence[str] = (),
    split: Split | None = None,
    notes: Callable[[], Notes] | None = None,
) -> BayesianNetwork:
    """Learn from complete rows, or without those that are not, with the arguments of `learn`.

    Parameters
    ----------
    given
        All arguments of `learn`.
    inputs
        Columns that get no density, and can only be parents.
    split
        Which rows the search validates with, and the folds of the others, where that is not left to chance.
    notes
        Opens what the steps of the search are noted in, where that is not a checkpoint of its own.
    """
    task = prepared_task(given, inputs, split)
    return _fitted(task, *_found(task, notes))


def learn_structure(data: Any, **settings: Any) -> Structure:
    """Return the structure that `learn` would, without anything else that a network has, which takes time."""
    arguments = signature(learn).bind(data, **settings)
    arguments.apply_defaults()
    if settings.get("missing") == "impute":
        return learn(data, **settings).structure
    task = prepared_task(dict(arguments.arguments))
    return fit_what_can_be(
        _found(task).structure, task.table, task.fit_settings, required_arcs=task.given["required_arcs"]
    )[0]


class _Found(NamedTuple):
    """What the searches found."""

    search: SearchResult | PCResult
    structure: Structure
    type_search: SearchResult | None = None


def _found(task: Task, notes: Callable[[], Notes] | None = None) -> _Found:
    """Search for a structure."""
    return _by_score(task, notes) if task.given["algorithm"] == "hc" else _by_tests(task)


def _by_score(task: Task, notes: Callable[[], Notes] | None) -> _Found:
    """Climb to the arcs, and to the node types if there is a choice, that a score prefers."""
    given = task.given
    recipe = partial(score_of, model=given["model"], score=given["score"])
    first = task.climbed if chosen_score(given["model"], given["score"]) == "cv" else task.table
    scores = [
        prepared_score(given["client"], rows, recipe, task.likelihood) for rows in (first, *task.completions)
    ]
    criterion = Averaged(scores) if task.completions else scores[0]
    noted = given["checkpoint"] if notes is None else notes()
    taken, note = noted_steps(noted, task.original, given, task.begin)
    left = given["max_seconds"]
    if left is not None:
        left = max(0.0, left - (time.perf_counter() - task.began))
    climbed = _climbed(
        task,
        criterion,
        task.begin,
        lambda so_far: _Found(so_far, so_far.structure),
        note=note,
        operators=("arcs", "types") if len(task.choices) > 1 else ("arcs",),
        max_parents=given["max_parents"],
        max_seconds=left,
        required_arcs=given["required_arcs"],
        forbidden_arcs=given["forbidden_arcs"],
        taken=taken,
    )
    return _Found(climbed, climbed.structure)


def _by_tests(task: Task) -> _Found:
    """Find arcs by tests of independence, and climb to the node types if there is a choice."""
    given = task.given
    only_for_climbing = ("score", "max_parents", "max_seconds", "checkpoint", "start")
    refuse_for_pc(**{name: given[name] for name in only_for_climbing})
    score = None
    if len(task.choices) > 1:  # made first, so that wrong arguments are reported before the tests are run
        score = prepared_score(given["client"], task.climbed, validated_likelihood, task.likelihood)
    search = pc(
        independence_test(given["test"], task.table, given["seed"]),
        alpha=given["alpha"],
        required_arcs=given["required_arcs"],
        forbidden_arcs=[*given["forbidden_arcs"], *arcs_into(task.begin.inputs, task.table.names)],
        progress=given["progress"],
    )
    structure = task.begin.with_dag(search.pdag.to_dag())
    if score is None:
        return _Found(search, structure)
    climbed = _climbed(
        task,
        score,
        structure,
        lambda so_far: _Found(search, so_far.structure, so_far),
        operators=("types",),
    )
    return _Found(search, climbed.structure, climbed)


def _climbed(
    task: Task,
    score: Score,
    start: Structure,
    found: Callable[[SearchResult], _Found],
    *,
    note: Callable[[Step], None] | None = None,
    **options: Any,
) -> SearchResult:
    """Climb, and offer what was `found` by then if that is interrupted."""
    patience, epsilon = task.given["patience"], task.given["epsilon"]
    try:
        with search_progress(task.given["progress"], patience) as show:
            return hill_climb(
                score,
                start,
                types=task.choices,
                patience=patience,
                epsilon=epsilon,
                on_step=_both(note, show),
                **options,
            )
    except SearchInterrupted as stop:
        so_far = stop.result
        raise LearningInterrupted(so_far, lambda: _fitted(task, *found(so_far))) from None


def _both(
    first: Callable[[Step], None] | None, second: Callable[[Step], None] | None
) -> Callable[[Step], None]:
    def call(step: Step) -> None:
        for function in (first, second):
            if function is not None:
                function(step)

    return call


def _fitted(
    task: Task, search: SearchResult | PCResult, found: Structure, type_search: SearchResult | None
) -> BayesianNetwork:
    """Fit a structure that was found to all rows."""
    settings = task.fit_settings
    required_arcs = task.given["required_arcs"]
    structure, cpds, left_out = fit_what_can_be(found, task.table, settings, required_arcs=required_arcs)
    for (source, target), reason in left_out:
        warnings.warn(f"the arc {source} → {target} is left out: {reason}", stacklevel=4)
    cpds = pooled_over(task.completions, structure, cpds, settings)
    record = Record(
        settings=task.settings,
        versions=current_versions(),
        rows=task.original.rows,
        columns=task.original.names,
        data_hash=task.original.digest,
        typical=typical_logpdf(structure, task.original, settings, task.margins),
        seconds=time.perf_counter() - task.began,
        search=search,
        type_search=type_search,
    )
    return BayesianNetwork(structure, cpds, margins=task.margins, record=record)


def _learn_from_holes(given: dict[str, Any]) -> BayesianNetwork:
    """Learn from what is there, with the arguments of `learn`.

    The holes of a Gaussian network are filled by Gaussian networks. For all others they are filled by
    whichever predicts hidden values best: those, semiparametric networks, or, if all columns are continuous,
    a normal distribution of them. Blends and KDE networks do not fill holes themselves: draws from narrow
    kernels are nearly copies of other rows, for which a cross-validated score would fall.
    """
    began = time.perf_counter()
    require_seconds(given["max_seconds"])
    _refuse_with_holes(max_seconds=given["max_seconds"], checkpoint=given["checkpoint"])
    from spbn.learning.structural_em import best_filler, by_networks, by_normal, fill_holes, require_values

    table = training_table_with_holes(given["data"], drop=given["drop"], discrete=given["discrete"])
    options = {**given, "missing": "error", "drop": (), "discrete": ()}
    del options["data"]
    if not np.isnan(table.columns).any():
        return learn(table, **options)
    require_values(table)
    smooth = options | ({"model": "spbn"} if given["model"] in ("blend", "kdebn") else {})

    def learn_smooth(filled: Table, structure: Structure | None) -> BayesianNetwork:
        goes_on = structure is not None and given["algorithm"] == "hc"
        return learn(filled, **(smooth | {"start": structure} if goes_on else smooth))

    def learn_lines(filled: Table, structure: Structure | None = None) -> BayesianNetwork:
        kept = ("max_parents", "required_arcs", "forbidden_arcs", "margins", "seed", "smoothing")
        return learn(filled, model="gbn", **{name: given[name] for name in kept})

    learned = [learn_smooth] if given["model"] == "gbn" else [learn_smooth, learn_lines]
    fillers = [by_networks(way, learn_lines, given["margins"]) for way in learned]
    if not table.discrete.any() and given["model"] != "gbn":
        fillers.append(by_normal(given["margins"]))
    # Of its own: data that were drawn with the same seed would have to do with what is hidden and drawn.
    (rng,) = generator(given["seed"]).spawn(1)
    try:
        filler = best_filler(table, fillers, rng)
        filled, scores = fill_holes(table, filler, rng)
        network = learn(filled, **options)
    except LearningInterrupted:  # of one search among several
        raise KeyboardInterrupt from None
    record = replace(
        network.record,
        settings=settings_of(given),
        data_hash=table.digest,
        seconds=time.perf_counter() - began,
        rounds=tuple(scores),
    )
    return BayesianNetwork(network.structure, network.cpds, margins=network.margins, record=record)


def _refuse_with_holes(**given: object) -> None:
    """Refuse what one search alone can do: holes take several."""
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        raise ArgumentError(f"{' and '.join(unused)} cannot be given with missing='impute'.")
