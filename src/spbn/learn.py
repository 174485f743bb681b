"""From data to a fitted network, in one call."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from spbn.app.progress import search_progress
from spbn.errors import ArgumentError, SpbnError, quoted
from spbn.files.checkpoint import Checkpoint, Notes
from spbn.fitting import fit_what_can_be, pooled_over, typical_logpdf
from spbn.graphs.dag import Arc
from spbn.independence import CMIknn, IndependenceTest, PartialCorrelation, RCoT
from spbn.kernels.bandwidth import BandwidthRule
from spbn.margins import fitted as fitted_margins
from spbn.margins import require_kind
from spbn.network import BayesianNetwork
from spbn.nodes.admission import impossible_arcs, refuse_impossible
from spbn.nodes.base import FitSettings, NodeType
from spbn.numerics.random import Seed, generator
from spbn.pc import PCResult, pc
from spbn.record import Record, current_versions, plain_settings
from spbn.scores import BIC, BGe, Score, ValidatedLikelihood
from spbn.scores.averaged import Averaged
from spbn.search import SearchInterrupted, SearchResult, Step, hill_climb
from spbn.search.constraints import arcs_into, require_seconds
from spbn.search.hill_climbing import Trail
from spbn.search.records import step_of, step_record
from spbn.structure import Structure
from spbn.tables.completions import Completions
from spbn.tables.frames import Missing, as_table, require_distinct, training_table, training_table_with_holes
from spbn.tables.splits import Split
from spbn.tables.table import Table

#: The models, and the types that their nodes may have.
MODELS = {
    "spbn": (NodeType.LG, NodeType.CKDE),
    "gbn": (NodeType.LG,),
    "kdebn": (NodeType.CKDE,),
    "blend": (NodeType.BLEND,),
}
ALGORITHMS = ("hc", "pc")
TESTS = {"plc": PartialCorrelation, "rcot": RCoT, "cmiknn": CMIknn}
SCORES = ("cv", "bic", "bge")
MISSING = ("error", "drop", "impute")
#: Arguments of `learn` that decide when it stops and what it shows, and not what it looks for.
WITHOUT_EFFECT = ("data", "progress", "checkpoint", "max_seconds", "client")


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
        `spbn.margins`); densities and samples are still in the units of the data.
    progress
        Show a progress line on the terminal.
    missing
        "error" refuses missing and infinite values, "drop" leaves out rows that have them, and "impute"
        learns from all values that are present, by alternating searches and draws for missing values (see
        `spbn.structural_em`).
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
        from spbn.distributed.clients import require_client

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
    began = time.perf_counter()
    settings = _settings(given)
    _require_choice("missing", given["missing"], MISSING)
    require_seconds(given["max_seconds"])
    complete: Missing = "drop" if given["missing"] == "drop" else "error"
    model, algorithm, score, seed = given["model"], given["algorithm"], given["score"], given["seed"]
    bandwidth, engine, smoothing = given["bandwidth"], given["engine"], given["smoothing"]
    folds, validation, epsilon, start = given["folds"], given["validation"], given["epsilon"], given["start"]
    margins, alpha, drop, discrete = given["margins"], given["alpha"], given["drop"], given["discrete"]
    _require_choice("model", model, tuple(MODELS))
    _require_choice("algorithm", algorithm, ALGORITHMS)
    _require_choice("test", given["test"], tuple(TESTS))
    required_arcs, forbidden_arcs = list(given["required_arcs"]), list(given["forbidden_arcs"])
    max_parents, max_seconds, patience = given["max_parents"], given["max_seconds"], given["patience"]
    checkpoint, progress, client = given["checkpoint"], given["progress"], given["client"]
    fit_settings = FitSettings(bandwidth, engine, smoothing)
    require_kind(margins)
    choices = _choices(model, given["types"])
    _require_use(bandwidth, choices)
    data = given["data"]
    completions = data.others if isinstance(data, Completions) else ()
    data = data.table if isinstance(data, Completions) else data
    table = training_table(data, complete, drop=drop, discrete=discrete)
    require_distinct(table)
    original, transforms = table, fitted_margins(margins, table)
    if transforms is not None:
        table = transforms.transformed(table)
        completions = tuple(map(transforms.transformed, completions))
    begin = _start(table, model, choices, start, inputs)
    likelihood = {
        "folds": folds,
        "validation": validation,
        "seed": seed,
        "bandwidth": bandwidth,
        "missing": complete,
        "engine": engine,
        "smoothing": smoothing,
    }
    climbed_rows = table
    if split is not None:
        climbed_rows = table.take(split.training)
        likelihood |= {"folds": split.folds, "validation": table.take(split.validation)}
    refuse_impossible(impossible_arcs(table.variables), required_arcs)
    climbing: dict[str, Any] = {"types": choices, "patience": patience, "epsilon": epsilon}

    def fitted(
        search: SearchResult | PCResult, found: Structure, type_search: SearchResult | None = None
    ) -> BayesianNetwork:
        """Fit a structure that was found to all rows."""
        structure, cpds, left_out = fit_what_can_be(found, table, fit_settings, required_arcs=required_arcs)
        for (source, target), reason in left_out:
            warnings.warn(f"the arc {source} → {target} is left out: {reason}", stacklevel=4)
        cpds = pooled_over(completions, structure, cpds, fit_settings)
        record = Record(
            settings=settings,
            versions=current_versions(),
            rows=original.rows,
            columns=original.names,
            data_hash=original.digest,
            typical=typical_logpdf(structure, original, fit_settings, transforms),
            seconds=time.perf_counter() - began,
            search=search,
            type_search=type_search,
        )
        return BayesianNetwork(structure, cpds, margins=transforms, record=record)

    if algorithm == "hc":
        recipe = partial(_score, model=model, score=score)
        first = climbed_rows if _chosen_score(model, score) == "cv" else table
        scores = [_prepared(client, filled, recipe, likelihood) for filled in (first, *completions)]
        criterion = Averaged(scores) if completions else scores[0]
        taken, note = _noted_steps(
            checkpoint if notes is None else notes(),
            original,
            given | {"required_arcs": required_arcs, "forbidden_arcs": forbidden_arcs},
            begin,
        )
        left = None if max_seconds is None else max(0.0, max_seconds - (time.perf_counter() - began))
        try:
            with search_progress(progress, patience) as show:
                climbed = hill_climb(
                    criterion,
                    begin,
                    operators=("arcs", "types") if len(choices) > 1 else ("arcs",),
                    max_parents=max_parents,
                    max_seconds=left,
                    required_arcs=required_arcs,
                    forbidden_arcs=forbidden_arcs,
                    on_step=_both(note, show),
                    taken=taken,
                    **climbing,
                )
        except SearchInterrupted as stop:
            so_far = stop.result
            raise LearningInterrupted(so_far, lambda: fitted(so_far, so_far.structure)) from None
        return fitted(climbed, climbed.structure)
    _refuse_for_pc(
        score=score,
        max_parents=max_parents,
        max_seconds=max_seconds,
        checkpoint=checkpoint,
        start=start,
    )
    # Made first, so that wrong arguments are reported before the tests are run.
    validated = _prepared(client, climbed_rows, _validated, likelihood) if len(choices) > 1 else None
    search = pc(
        _test(given["test"], table, seed),
        alpha=alpha,
        required_arcs=required_arcs,
        forbidden_arcs=[*forbidden_arcs, *arcs_into(inputs, table.names)],
        progress=progress,
    )
    structure = begin.with_dag(search.pdag.to_dag())
    if validated is None:
        return fitted(search, structure)
    try:
        with search_progress(progress, patience) as show:
            climbed = hill_climb(validated, structure, operators=("types",), on_step=show, **climbing)
    except SearchInterrupted as stop:
        so_far = stop.result
        raise LearningInterrupted(so_far, lambda: fitted(search, so_far.structure, so_far)) from None
    return fitted(search, climbed.structure, climbed)


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `learn` as plain data, for the record."""
    settings = plain_settings(given | {"data": None})
    del settings["data"], settings["progress"], settings["checkpoint"], settings["client"]
    return settings


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
    from spbn.structural_em import best_filler, by_networks, by_normal, fill_holes, require_values

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
        settings=_settings(given),
        data_hash=table.digest,
        seconds=time.perf_counter() - began,
        rounds=tuple(scores),
    )
    return BayesianNetwork(network.structure, network.cpds, margins=network.margins, record=record)


def _choices(model: str, types: Iterable[NodeType | str] | None) -> tuple[NodeType, ...]:
    """Return the types that nodes may have."""
    if types is None:
        return MODELS[model]
    if model != "spbn":
        raise ArgumentError(f"types can be given with model='spbn' only. Got model={model!r}.")
    chosen = tuple(dict.fromkeys(map(NodeType.parse, (types,) if isinstance(types, str) else types)))
    if not chosen:
        raise ArgumentError("types must name at least one node type.")
    return chosen


def _require_use(bandwidth: BandwidthRule, choices: tuple[NodeType, ...]) -> None:
    """Refuse to choose the scale of CKDE nodes where there will be none."""
    if bandwidth == "cv" and NodeType.CKDE not in choices:
        types = " or ".join(node_type.label for node_type in choices)
        raise ArgumentError(
            f"bandwidth='cv' chooses the scale of CKDE nodes, and all nodes will be {types}: leave it out."
        )


def _prepared(client: Any, table: Table, recipe: Callable[..., Score], likelihood: dict[str, Any]) -> Score:
    """Make a score of a table from the settings of likelihoods; workers compute it if there is a client."""
    if client is None:
        return recipe(table, likelihood=likelihood)
    from spbn.distributed.families import spread

    if likelihood["seed"] is None:
        likelihood = likelihood | {"seed": generator(None)}  # all workers have to deal the rows alike
    copy = deepcopy(likelihood)  # making a score takes something from a generator
    return spread(client, table, recipe(table, likelihood=likelihood), partial(recipe, likelihood=copy))


def _validated(table: Table, likelihood: dict[str, Any]) -> Score:
    return ValidatedLikelihood(table, **likelihood)


def _chosen_score(model: str, score: str | None) -> str:
    return score or ("bic" if model == "gbn" else "cv")


def _score(table: Table, model: str, score: str | None, likelihood: dict[str, Any]) -> Score:
    chosen = _chosen_score(model, score)
    _require_choice("score", chosen, SCORES)
    if chosen == "cv":
        return ValidatedLikelihood(table, **likelihood)
    if model != "gbn":
        raise ArgumentError(f"score={chosen!r} is for model='gbn' only. Got model={model!r}: use score='cv'.")
    return BIC(table) if chosen == "bic" else BGe(table)


def _test(test: str, table: Table, seed: Seed) -> IndependenceTest:
    return PartialCorrelation(table) if test == "plc" else TESTS[test](table, seed=seed)


def _refuse_for_pc(*, start: object, **given: object) -> None:
    """Refuse arguments that only hill climbing uses, instead of ignoring them."""
    unused = [name for name, value in given.items() if value is not None]
    if isinstance(start, Structure):
        unused.append("start (as a structure)")
    if unused:
        raise ArgumentError(f"{' and '.join(unused)} can be given with algorithm='hc' only, not with 'pc'.")


def _refuse_with_holes(**given: object) -> None:
    """Refuse what one search alone can do: holes take several."""
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        raise ArgumentError(f"{' and '.join(unused)} cannot be given with missing='impute'.")


def work_of(given: dict[str, Any], table: Table) -> dict[str, Any]:
    """Describe everything that a result depends on, for its checkpoint, from the arguments of `learn`."""
    seed = given["seed"]
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise ArgumentError(
            f"a checkpoint needs a seed that is a whole number, or the work that is resumed would not be "
            f"the same. Got {seed!r}."
        )
    settings = {name: value for name, value in given.items() if name not in WITHOUT_EFFECT}
    if "folds" in settings and not np.isscalar(settings["folds"]):
        settings["folds"] = np.asarray(settings["folds"]).tolist()
    if "validation" in settings and not np.isscalar(settings["validation"]):
        settings["validation"] = as_table(settings["validation"], variables=table.variables).digest
    versions = current_versions()
    return {
        "spbn": versions["spbn"],
        "data": table.digest,
        "columns": list(table.names),
        "settings": plain_settings(settings),
    }


def _noted_steps(
    notes: str | os.PathLike[str] | Notes | None, table: Table, given: dict[str, Any], start: Structure
) -> tuple[list[Step], Callable[[Step], None] | None]:
    """Return the steps that a checkpoint has, and what notes further ones in it."""
    if notes is None:
        return [], None
    if isinstance(notes, str | os.PathLike):
        checkpoint: Notes = Checkpoint(notes, {"work": "search", **work_of(given, table)})
    else:
        checkpoint = notes
    trail = Trail(start)
    try:
        steps = [step_of(entry, number, trail) for number, entry in enumerate(checkpoint.found, 1)]
    except (SpbnError, KeyError, TypeError, ValueError) as error:
        raise checkpoint.refuse(error) from error
    return steps, lambda step: checkpoint.append(step_record(step))


def _both(
    first: Callable[[Step], None] | None, second: Callable[[Step], None] | None
) -> Callable[[Step], None]:
    def call(step: Step) -> None:
        for function in (first, second):
            if function is not None:
                function(step)

    return call


def _start(
    table: Table,
    model: str,
    choices: tuple[NodeType, ...],
    start: NodeType | str | Structure,
    inputs: Sequence[str],
) -> Structure:
    if not isinstance(start, Structure):
        first = NodeType.parse(start)
        if first not in (*choices, NodeType.CKDE):  # CKDE is the default, and stands for the only choice too
            raise ArgumentError(
                f"start must be a type that nodes of a {model} can have: "
                f"{' or '.join(choice.name for choice in choices)}. Got {first.name!r} instead."
            )
        common = first if first in choices else choices[0]
        nodes = [variable for variable in table.variables if variable.name not in inputs]
        types = {v.name: NodeType.DISCRETE if v.is_discrete else common for v in nodes}
        return Structure(types, types=types, inputs=inputs)
    if set(start.nodes) != set(table.names) - set(inputs) or set(start.inputs) != set(inputs):
        raise ArgumentError(
            f"the nodes of start must be the columns of the data. Got {quoted(start.nodes)}, "
            f"and the columns {quoted(table.names)}."
        )
    given = {start.type(v.name) for v in table.variables if not v.is_discrete and v.name not in inputs}
    if len(choices) == 1 and given - set(choices):
        raise ArgumentError(f"all nodes of a {model} are of type {choices[0]}, but start has other types.")
    return start


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(f"{name} must be one of {', '.join(map(repr, choices))}. Got {value!r} instead.")
