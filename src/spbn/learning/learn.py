"""From a table to a fitted network: settings → rows → score → search → fit → record.

`prepare_task` is where rows are read and transformed, `make_score` where they become something to maximise;
what follows, `search` and `fit`, does not ask where rows are: in memory, or elsewhere, in a Dask DataFrame or
in Parquet files that are given by name.
"""

from __future__ import annotations

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Literal, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

from spbn._base import checks
from spbn._base.arrays import IntArray, generator
from spbn._base.display import search_progress, sweep_progress
from spbn.dask.sources import is_remote
from spbn.errors import ArgumentError, DataError, argument, quoted
from spbn.fitting import fit_what_can_be, pooled_over, typical_logpdf
from spbn.independence import CMIknn, IndependenceTest, PartialCorrelation, RCoT
from spbn.io.checkpoint import Checkpoint, describe_work, resume, resume_sweeps
from spbn.learning import hidden
from spbn.learning.normality import types_by_normality
from spbn.learning.settings import OPTIONS, LearnSettings, takes
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType, impossible_arcs, refuse_impossible
from spbn.numerics.spreads import ODD, odd_values
from spbn.record import Record, current_versions
from spbn.rows.store import RemoteRows
from spbn.scores import BIC, BestType, BGe, CVLikelihood, Score, ValidatedLikelihood
from spbn.scores.base import Averaged
from spbn.scores.by_class import ByClass
from spbn.scores.likelihood import arc_penalty
from spbn.search import (
    PCResult,
    SearchInterrupted,
    SearchResult,
    hill_climb,
    open_directions,
    order_search,
    pc,
)
from spbn.search.operators import arcs_into
from spbn.structure import Structure
from spbn.tables.preparation import prepare
from spbn.tables.reader import RowsLike, TableLike, as_table
from spbn.tables.splits import Split
from spbn.tables.table import Table, Variable, require_distinct
from spbn.transforms import Margins

if TYPE_CHECKING:
    from spbn.dask.rowstore import DaskRows
    from spbn.graphs.dag import Arc
    from spbn.search import Step

LONG = 1.0  # second, of a search that is worth cleaning up after

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")

RULES = ("scott", "silverman")  # of bandwidths, where rows are elsewhere
MOST_FOLDS = 100  # of such rows


class LearningInterrupted(KeyboardInterrupt):
    """Ctrl-C during `learn`: `network()` fits what the search had found by then.

    `search` is the search so far, with "interrupted" as its `stop_reason`.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> try:
    ...     network = spbn.learn(data, model="gbn")
    ... except spbn.learning.LearningInterrupted as stop:  # Ctrl-C
    ...     network = stop.network()
    """

    def __init__(self, search: SearchResult, network: Callable[[], BayesianNetwork]) -> None:
        super().__init__(f"learning was interrupted after {len(search.steps)} steps")
        self.search = search
        self.network = network


@takes(LearnSettings)
def learn(data: RowsLike, settings: LearnSettings) -> BayesianNetwork:
    """Learn the structure and the node types of a network from data, and fit it to all rows.

    Parameters
    ----------
    data
        A data frame (pandas, polars, pyarrow, ...) or a dict of columns; every column is a node. Columns of
        text, categories or truth values become discrete nodes, which can have only discrete parents. Rows
        that do not fit into memory are a Dask DataFrame, or the path of a Parquet file, a pattern such as
        ``"data/*.parquet"``, a folder of Parquet files, or a list of these (see `spbn.distributed`).
    {options}

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
    return learn_network(data, settings)


class Extras(NamedTuple):
    """What learning depends on besides data and settings, for those who know more about the rows."""

    columns: Sequence[str] | None = None  # those to use of rows that are not in memory; all by default
    #: Other fillings of the holes that the data had: the search maximises the mean of the scores of all.
    completions: Sequence[Table] = ()
    inputs: Sequence[str] = ()  # columns that get no density, and can only be parents
    #: Which rows the search validates with, and the folds of the others, where that is not left to chance.
    split: Split | None = None
    #: Opens what the steps of the search are noted in, where that is not a checkpoint of its own.
    notes: Callable[[], Checkpoint] | None = None
    units: IntArray | None = None  # labels of rows: those with the same one share a hidden class
    classes: IntArray | None = None  # the hidden class of every row, if it is known


NO_EXTRAS = Extras()


def _letting_go(function: Callable[P, R]) -> Callable[P, R]:
    """Free what a long search has remembered: stores of rows and their scorers know each other.

    Python would notice in the end, but counts objects, of which these are few, and not their gigabytes.
    """

    @wraps(function)
    def called(*arguments: P.args, **options: P.kwargs) -> R:
        began = time.perf_counter()
        result = function(*arguments, **options)
        if time.perf_counter() - began > LONG:
            gc.collect()
        return result

    return called


@_letting_go
def learn_network(data: RowsLike, settings: LearnSettings, extras: Extras = NO_EXTRAS) -> BayesianNetwork:
    """Learn a network with settings that have been checked."""
    if settings.prepare != "none":
        return _prepare_and_learn(data, settings)
    if settings.missing == "impute" and not is_remote(data):
        return _impute_and_learn(cast("TableLike", data), settings)
    task = prepare_task(data, settings, extras)
    task.odd.warn()
    return _learn_with_class(task) if settings.has_class else fit(task, search(task))


def _prepare_and_learn(data: RowsLike, settings: LearnSettings) -> BayesianNetwork:
    """Learn from a table as people have it, and let the network read new rows in the same way."""
    if is_remote(data):
        raise ArgumentError(f"{argument('prepare')} can be given for tables in memory only: leave it out.")
    preparation = settings.prepare
    if isinstance(preparation, str):
        prepared = prepare(data, drop=settings.drop, discrete=settings.discrete)
        frame, preparation = prepared.frame, prepared.preparation
        settings = settings.replace(drop=(), discrete=())
    else:
        frame = preparation.frame(data)
    missing = settings.missing
    if missing == "error" and frame.isna().to_numpy().any():
        missing = "impute"
    kept = partial(BayesianNetwork.replace, preparation=preparation)
    try:
        return kept(learn_network(frame, settings.replace(prepare="none", missing=missing)))
    except LearningInterrupted as stop:
        network = stop.network
        raise LearningInterrupted(stop.search, lambda: kept(network())) from None


@_letting_go
def learn_structure(data: TableLike, settings: LearnSettings) -> Structure:
    """Return the structure that `learn` would, without anything else that a network has, which takes time."""
    settings.require_unprepared()
    if settings.missing == "impute" or settings.has_class:
        return learn_network(data, settings).structure
    task = prepare_task(data, settings)
    found = search(task).structure
    structure, *_ = fit_what_can_be(
        found, task.rows, settings.fit_settings, required_arcs=task.settings.required_arcs
    )
    return structure


@dataclass(frozen=True)
class Task:
    """What a search needs to know: settings, and rows that have been read and transformed."""

    given: LearnSettings  # for the record
    settings: LearnSettings  # the same, with background knowledge as arcs between the columns
    extras: Extras  # with completions that are transformed, too
    began: float  # when learning began, by the clock of `time.perf_counter`
    original: Table | None  # all rows in the units of the data, if they are in memory
    odd: OddRows  # rows of these that nothing is learned from
    margins: Margins | None
    rows: Table | RemoteRows  # all others, transformed by the margins
    start: Structure  # where the search starts
    scored: Table | RemoteRows  # the rows that the search scores: all, or those of a split for training
    scoring: LearnSettings  # of the score, with the folds and validation rows of the split

    @property
    def simplest_types(self) -> dict[str, NodeType]:
        """The types of all nodes where a score chooses them: the first one stands for any of them."""
        simplest = self.settings.node_types[0]
        types = self.start.types.items()
        return {node: t if t == NodeType.DISCRETE else simplest for node, t in types}


@dataclass(frozen=True, eq=False)
class OddRows:
    """Rows with a value so far from all others that it must be a mistake: nothing is learned from them.

    They would cost every network alike, but move its parameters, and decide which rows are in which fold.
    """

    numbers: IntArray
    examples: tuple[str, ...] = ()  # one value of each, in words

    @classmethod
    def of(cls, table: Table, settings: LearnSettings) -> OddRows:
        """Find the odd rows of a table, which may have holes.

        There are none for the paper's models, which learn from all rows, nor where folds are labels of
        training rows that are not known yet.
        """
        examples: dict[int, str] = {}
        has_labels = np.ndim(settings.folds) > 0
        if settings.is_published or (has_labels and np.shape(settings.folds) != (table.rows,)):
            return NO_ODD_ROWS
        for variable, column in zip(table.variables, table.columns, strict=True):
            if not variable.is_discrete:
                for row in np.flatnonzero(odd_values(column)).tolist():
                    examples.setdefault(row, f"{variable.name} = {column[row]:.3g} in row {row + 1}")
        ordered = sorted(examples)
        return cls(np.array(ordered, dtype=np.int64), tuple(examples[row] for row in ordered))

    def warn(self) -> None:
        """Say which rows are left out, if any are."""
        if len(self.numbers):
            shown = ", ".join(self.examples[:3]) + (", ..." if len(self.numbers) > 3 else "")
            rows = "1 row is" if len(self.numbers) == 1 else f"{len(self.numbers)} rows are"
            warnings.warn(
                f"{rows} left out, with values over {ODD:,.0f} times as far from the median as most others "
                f"(counted from 1): {shown}.",
                stacklevel=5,
            )

    def leave_out(self, table: Table) -> Table:
        """Return the other rows."""
        return table.take(self._others(table.rows)) if len(self.numbers) else table

    def leave_out_of_split(self, split: Split) -> Split:
        """Return a split of the other rows."""
        if not len(self.numbers):
            return split
        trained = ~np.isin(split.training, self.numbers)
        validated = ~np.isin(split.validation, self.numbers)
        before = np.searchsorted(self.numbers, split.training[trained])
        before_too = np.searchsorted(self.numbers, split.validation[validated])
        return Split(
            split.training[trained] - before, split.folds[trained], split.validation[validated] - before_too
        )

    def leave_out_of_folds(self, settings: LearnSettings) -> LearnSettings:
        """Return settings whose folds, if these are labels of rows, are those of the other rows."""
        if not len(self.numbers) or np.ndim(settings.folds) == 0:
            return settings
        return settings.replace(folds=self.leave_out_of_labels(np.asarray(settings.folds)))

    def leave_out_of_labels(self, labels: IntArray | None) -> IntArray | None:
        """Return the labels of the other rows."""
        return None if labels is None else labels[self._others(len(labels))]

    def _others(self, rows: int) -> IntArray:
        return np.setdiff1d(np.arange(rows), self.numbers)


NO_ODD_ROWS = OddRows(np.array([], dtype=np.int64))


def prepare_task(data: RowsLike, settings: LearnSettings, extras: Extras = NO_EXTRAS) -> Task:
    """Read and transform the rows, and refuse those that nothing can be learned from."""
    began = time.perf_counter()
    original: Table | None = None
    rows: Table | RemoteRows
    completions, split, odd = extras.completions, extras.split, NO_ODD_ROWS
    units, classes = extras.units, extras.classes
    if is_remote(data):
        settings = remote_settings(settings)
        rows, margins = _open_rows(data, settings, extras.columns)
    else:
        original = read_table(cast("TableLike", data), settings)
        if settings.has_class:
            hidden.require_room(original, settings.hidden, extras.inputs)
        odd = OddRows.of(original, settings)
        rows = odd.leave_out(original)
        completions = [odd.leave_out(completion) for completion in completions]
        split = None if split is None else odd.leave_out_of_split(split)
        units, classes = odd.leave_out_of_labels(extras.units), odd.leave_out_of_labels(extras.classes)
        settings = odd.leave_out_of_folds(settings)
        margins = settings.margins_plan.fit(rows)
        if margins is not None:
            rows = margins.transformed(rows)
            completions = [margins.transformed(completion) for completion in completions]
    start = start_structure(rows.variables, settings, extras.inputs)
    resolved = resolve(settings, rows)
    refuse_impossible(impossible_arcs(rows.variables), resolved.required_arcs)
    scored, scoring = rows, settings
    if split is not None:
        assert isinstance(rows, Table)  # only these are split
        scored = rows.take(split.training)
        held_out = rows.take(split.validation) if len(split.validation) else None
        scoring = settings.replace(folds=split.folds, validation=held_out, hidden=None)
    done = extras._replace(completions=tuple(completions), units=units, classes=classes)
    return Task(settings, resolved, done, began, original, odd, margins, rows, start, scored, scoring)


def resolve(settings: LearnSettings, rows: Table | RemoteRows) -> LearnSettings:
    """Return settings with arcs in the place of patterns and tiers.

    What marks atoms is a parent of their column, and what cannot be joined with that cannot be with the mark.
    """
    marks = {} if isinstance(rows, RemoteRows) else rows.marked_by
    names = [variable.name for variable in rows.variables if variable.name not in marks.values()]
    found = settings.resolve(names)
    if not marks:
        return found
    forbidden = [
        (above, below)
        for source, target in found.forbidden_arcs
        for above in (source, marks.get(source, source))
        for below in (target, marks.get(target, target))
    ]
    return found.replace(
        required_arcs=(*found.required_arcs, *((mark, name) for name, mark in marks.items())),
        forbidden_arcs=tuple(dict.fromkeys(forbidden)),
    )


def read_table(data: TableLike, settings: LearnSettings) -> Table:
    """Read a table in memory; refuse columns that are copies, unless there are holes to impute."""
    impute = settings.missing == "impute"
    table = as_table(
        data,
        training=True,
        missing="keep" if impute else settings.missing_rows,
        drop=settings.drop,
        discrete=settings.discrete,
    )
    if not impute:
        require_distinct(table)
    return table


def start_structure(
    variables: Sequence[Variable], settings: LearnSettings, inputs: Sequence[str]
) -> Structure:
    """Return the structure that a search starts from: without arcs, unless another one is given."""
    start, names = settings.start, [variable.name for variable in variables]
    if not isinstance(start, Structure):
        nodes = [variable for variable in variables if variable.name not in inputs]
        types = {v.name: NodeType.DISCRETE if v.is_discrete else settings.start_type for v in nodes}
        return Structure(types, types=types, inputs=inputs)
    if set(start.nodes) != set(names) - set(inputs) or set(start.inputs) != set(inputs):
        raise ArgumentError(
            f"the nodes of {argument('start')} must be the columns of the data. Got {quoted(start.nodes)}, "
            f"and the columns {quoted(names)}."
        )
    types_there = {start.type(v.name) for v in variables if not v.is_discrete and v.name not in inputs}
    choices = settings.node_types
    if len(choices) == 1 and types_there - set(choices):
        raise ArgumentError(
            f"all nodes of a {settings.model_name} are of type {choices[0]}, but {argument('start')} has "
            f"other types."
        )
    return start


def most_parents(settings: LearnSettings) -> int | None:
    """Return how many parents a node can have at most; None if there is no limit."""
    limits = [t.most_remote_parents for t in settings.node_types if t.most_remote_parents is not None]
    return min(limits, default=None)


def remote_settings(settings: LearnSettings) -> LearnSettings:
    """Refuse settings that are for tables in memory, and limit the number of parents if nobody has."""
    checks.choice("bandwidth", settings.bandwidth, RULES)
    checks.choice("missing", settings.missing, ("error", "drop"))
    is_given = {name: getattr(settings, name) != OPTIONS[name].default for name in ("engine", "checkpoint")}
    has_bounds = not isinstance(settings.bounds, str)
    refused = {
        "algorithm": settings.algorithm_name == "pc",
        "hidden": settings.has_class,
        "bounds": has_bounds,
        "atoms": settings.has_atoms,
    }
    refused |= is_given
    for name, is_refused in refused.items():
        if is_refused:
            raise ArgumentError(
                f"{argument(name)} can be given for tables in memory only: leave it out, or pass some of the "
                f"rows as a table."
            )
    if isinstance(settings.start, Structure):
        raise ArgumentError(
            f"{argument('start')} must be a node type where rows are over workers, not a structure."
        )
    most = most_parents(settings)
    if most is not None and settings.max_parents is None:
        return settings.replace(max_parents=most)
    if most is not None and settings.max_parents is not None and settings.max_parents > most:
        label = next(t.appearance.label for t in settings.node_types if t.most_remote_parents == most)
        raise ArgumentError(
            f"{argument('max_parents')} must be at most {most} where rows are over workers and nodes may be "
            f"{label}. Got {settings.max_parents!r} instead."
        )
    return settings


def _open_rows(
    data: object, settings: LearnSettings, columns: Sequence[str] | None
) -> tuple[DaskRows, Margins | None]:
    """Look at all rows once; return them, transformed by the margins if there are to be any, and these."""
    from spbn.dask.mapreduce import FoldAssignment
    from spbn.dask.rowstore import DaskRows
    from spbn.dask.shards import Shards, choose_margins, fit_margins
    from spbn.dask.sources import open_source, with_levels

    seed, folds = settings.seed, settings.folds
    validation = 0.0 if settings.held_out is None else settings.held_out
    root = int(seed) if isinstance(seed, int | np.integer) else int(generator(seed).integers(1 << 62))
    if not isinstance(folds, int | np.integer) or not checks.is_whole(folds, 2, MOST_FOLDS):
        checks.refuse("folds", f"between 2 and {MOST_FOLDS}", folds)
    if not isinstance(validation, float | int | np.floating) or not 0 <= validation < 1:
        checks.refuse("validation", "a fraction between 0 and 1", validation)
    is_crossed = settings.score_name == "cv"  # all rows are in one fold for a score that needs none
    assignment = FoldAssignment(root, *((int(folds), float(validation)) if is_crossed else (1, 0.0)))
    source = open_source(
        data, drop=settings.drop, only=columns, discrete=settings.discrete, client=settings.client
    )
    if settings.score_name == "bge" and source.discrete:
        are = "is" if len(source.discrete) == 1 else "are"
        raise DataError(
            f"BGe takes continuous columns only. {quoted(source.discrete)} {are} discrete: use BIC, or leave "
            f"them out."
        )
    named = [settings.discrete] if isinstance(settings.discrete, str) else list(settings.discrete)
    source = with_levels(source, named, settings.client)
    shards = Shards.of(source, assignment, settings.client, missing=settings.missing)
    count = shards.every.count
    labels = shards.by_label if validation else shards.by_label[: assignment.folds]
    if count < 2 or (is_crossed and min(moments.count for moments in labels) < 1):
        raise DataError(
            f"there are too few rows: {count}, which leaves a fold or the validation set empty. "
            f"Use fewer folds, or a table in memory."
        )
    margins = None
    if settings.margins_name == "yeo-johnson":
        margins = fit_margins(shards)
    elif settings.margins_name == "auto":
        margins = choose_margins(shards).or_none
    if margins is not None:
        shards = shards.again(assignment, margins=margins)
    fit_settings = settings.fit_settings
    if settings.score_name == "bic":  # which compares the greatest likelihoods
        fit_settings = replace(fit_settings, smoothing=0.0)
    return DaskRows.folds(shards, fit_settings), margins


def make_score(rows: Table | RemoteRows, settings: LearnSettings) -> Score:
    """Make the score that hill climbing maximises; whatever is random in it is drawn here."""
    if isinstance(rows, RemoteRows):
        if settings.score_name == "bic":
            return BIC.of_rows(rows)
        if settings.score_name == "bge":
            return BGe.of_moments([variable.name for variable in rows.variables], rows.moments)
        if settings.held_out is None:
            return CVLikelihood.of_rows(rows, penalty=settings.penalty)
        return ValidatedLikelihood.of_rows(rows, rows.validation)
    if settings.score_name == "bic":
        return BIC(rows)
    if settings.score_name == "bge":
        return BGe(rows)
    make: Callable[..., Score] = partial(ValidatedLikelihood, validation=settings.held_out)
    if settings.held_out is None:
        make = partial(CVLikelihood, penalty=settings.penalty, centres=settings.score_settings.centres)
    return make(
        rows,
        folds=settings.folds,
        seed=settings.seed,
        bandwidth=settings.bandwidth,
        missing=settings.missing_rows,
        engine=settings.engine,
        smoothing=settings.smoothing,
    )


def _make_score_anywhere(rows: Table | RemoteRows, settings: LearnSettings) -> Score:
    """Make a score that the workers of a client compute, if there is one."""
    if settings.client is None or isinstance(rows, RemoteRows):  # which workers have already
        return make_score(rows, settings)
    from spbn.dask.families import spread

    alone = settings.replace(client=None, checkpoint=None, progress=False, start="ckde", types=None)
    if settings.seed is None:
        alone = alone.replace(seed=generator(None))  # all workers have to deal the rows alike
    recipe = partial(make_score, settings=deepcopy(alone))  # making a score takes something from a generator
    return spread(settings.client, rows, make_score(rows, alone), recipe)


class Found(NamedTuple):
    """What the searches found."""

    search: SearchResult | PCResult
    structure: Structure
    type_search: SearchResult | None = None
    score: Score | None = None  # that decided on the arcs


def search(task: Task) -> Found:
    """Search for a structure."""
    return _search_by_tests(task) if task.settings.algorithm_name == "pc" else _search_by_score(task)


def _search_by_score(task: Task, criterion: Score | None = None) -> Found:
    """Find the arcs, and the node types if there is a choice, that a score prefers: by default the task's."""
    settings = task.settings
    criterion, start = _criterion(task) if criterion is None else (criterion, task.start)
    left = settings.max_seconds
    if left is not None:
        left = max(0.0, left - (time.perf_counter() - task.began))
    notes = None
    if task.extras.notes is not None:
        notes = task.extras.notes()
    elif settings.checkpoint is not None:
        assert task.original is not None  # there are no checkpoints of rows that are elsewhere
        notes = Checkpoint(
            settings.checkpoint, describe_work("search", task.given.affecting_result(), task.original)
        )
    limited = partial(
        order_search if settings.algorithm_name == "boss" else hill_climb,
        criterion,
        start,
        max_parents=settings.max_parents,
        max_seconds=left,
        required_arcs=settings.required_arcs,
        forbidden_arcs=settings.forbidden_arcs,
    )

    def found(so_far: SearchResult) -> Found:
        return Found(so_far, so_far.structure, score=criterion)

    if settings.algorithm_name == "boss":
        swept, note_sweep = ([], None) if notes is None else resume_sweeps(notes)
        with _offering(task, found), sweep_progress(settings.progress) as show:
            return found(limited(seed=settings.seed, on_sweep=_both(note_sweep, show), taken=swept))
    has_types = len(settings.node_types) > 1 and not settings.chooses_types
    taken, note = ([], None) if notes is None else resume(notes, start)
    run = partial(limited, operators=("arcs", "types") if has_types else ("arcs",), taken=taken)
    return found(_climb(task, run, found, note))


def _criterion(task: Task) -> tuple[Score, Structure]:
    """Return the score to maximise, and a start whose types it is defined for."""
    settings, start = task.settings, task.start
    scores = [_make_score_anywhere(rows, task.scoring) for rows in (task.scored, *task.extras.completions)]
    score = Averaged(scores) if task.extras.completions else scores[0]
    if not settings.chooses_types:
        return score, start
    start = Structure(start.nodes, start.arcs, task.simplest_types, inputs=start.inputs)
    return BestType(score, settings.node_types, cost=_cost_of_arc(task, settings.penalty)), start


def _cost_of_arc(task: Task, penalty: float | Literal["auto"]) -> float:
    """Return what an arc costs, in nats, given the size of the table."""
    rows = task.scored.rows if isinstance(task.scored, Table) else task.scored.count
    return arc_penalty(penalty, rows, len(task.scored.variables))


def find_open_directions(task: Task, structure: Structure, score: Score | None) -> tuple[Arc, ...]:
    """Return the arcs of a structure whose direction neither background knowledge nor the score decides.

    BIC and BGe are the same for all equivalent graphs, and tests of independence cannot tell these apart. A
    predictive score may: by what an arc costs, or would cost if the search were not validated.
    """
    settings = task.settings
    forbidden = _impossible(settings, task.rows.variables)
    if score is None or settings.score_name != "cv":
        return structure.undecided_arcs(forbidden)
    if settings.chooses_types:  # the score does
        structure = Structure(structure.nodes, structure.arcs, task.simplest_types, inputs=structure.inputs)
    # A penalty of 0 does not say what a difference is worth.
    penalty = settings.penalty if settings.is_penalised and settings.penalty else "auto"
    return open_directions(
        score,
        structure,
        _cost_of_arc(task, penalty),
        types=settings.node_types,
        forbidden_arcs=forbidden,
    )


def open_directions_in(table: Table, settings: LearnSettings, structure: Structure) -> tuple[Arc, ...]:
    """Return the arcs of a structure whose direction is open, by the score that `learn` would maximise.

    No score decides anything if the table has holes, or rows have classes that are not known.
    """
    if np.isnan(table.columns).any() or settings.has_class:
        structure = _of_columns(structure) if settings.has_class else structure
        return structure.undecided_arcs(_impossible(settings.resolve(table.names), table.variables))
    task = prepare_task(table, settings.replace(missing="error"))
    score = None if settings.algorithm_name == "pc" else _criterion(task)[0]
    return find_open_directions(task, structure, score)


def _of_columns(structure: Structure) -> Structure:
    """Return a structure without its hidden class."""
    arcs = [arc for arc in structure.arcs if hidden.NAME not in arc]
    types = {node: node_type for node, node_type in structure.types.items() if node != hidden.NAME}
    return Structure(list(types), arcs, types, inputs=structure.inputs)


def _impossible(settings: LearnSettings, variables: Sequence[Variable]) -> list[Arc]:
    """Return the arcs that background knowledge rules out, given settings in which it is arcs."""
    turned = [(target, source) for source, target in settings.required_arcs]
    return [*settings.forbidden_arcs, *turned, *impossible_arcs(variables)]


def _search_by_tests(task: Task) -> Found:
    """Find arcs by tests of independence, and node types by a score if there is a choice."""
    settings = task.settings
    assert isinstance(task.rows, Table)  # tests of independence need all rows
    score, start = None, task.start
    by_score = settings.type_selection == "score"
    if by_score and len(settings.node_types) > 1:
        score, start = _criterion(task)  # wrong arguments are reported before the tests are run
    found = pc(
        _independence_test(task.rows, settings),
        alpha=settings.alpha,
        required_arcs=settings.required_arcs,
        forbidden_arcs=[*settings.forbidden_arcs, *arcs_into(task.start.inputs, task.rows.names)],
        progress=settings.progress,
    )
    structure = start.with_dag(found.pdag.to_dag())
    if not by_score:
        structure = types_by_normality(structure, task.rows, types=settings.node_types, level=settings.alpha)
    if score is None:
        return Found(found, structure)
    if settings.chooses_types:
        return Found(found, score.best_types(structure))
    run = partial(hill_climb, score, structure, operators=("types",))
    climbed = _climb(task, run, lambda so_far: Found(found, so_far.structure, so_far))
    return Found(found, climbed.structure, climbed)


def _independence_test(table: Table, settings: LearnSettings) -> IndependenceTest:
    if settings.test == "plc":
        return PartialCorrelation(table)
    return RCoT(table, seed=settings.seed) if settings.test == "rcot" else CMIknn(table, seed=settings.seed)


def _climb(
    task: Task,
    run: Callable[..., SearchResult],
    found: Callable[[SearchResult], Found],
    note: Callable[[Step], None] | None = None,
) -> SearchResult:
    """Run a hill climbing, and offer what it `found` by then if that is interrupted."""
    settings = task.settings
    with _offering(task, found), search_progress(settings.progress, settings.patience) as show:
        return run(
            types=settings.node_types,
            patience=settings.patience,
            epsilon=settings.epsilon,
            on_step=_both(note, show),
        )


def _both(*functions: Callable[[T], object] | None) -> Callable[[T], None]:
    """Return a function that calls some others, of which there may be none."""

    def call(value: T) -> None:
        for function in functions:
            if function is not None:
                function(value)

    return call


@contextmanager
def _offering(task: Task, found: Callable[[SearchResult], Found]) -> Iterator[None]:
    """Let a search that is interrupted offer what it `found` by then."""
    try:
        yield
    except SearchInterrupted as stop:
        so_far = stop.result
        raise LearningInterrupted(so_far, lambda: fit(task, found(so_far))) from None


def _learn_with_class(task: Task) -> BayesianNetwork:
    """Learn a network with a hidden class, or without one if that is how many classes help."""
    settings, rows = task.settings, task.original
    assert rows is not None  # classes are found in memory
    rows = task.odd.leave_out(rows)
    quick = partial(
        order_search,
        restarts=1,
        patience=0,
        max_parents=settings.max_parents,
        required_arcs=settings.required_arcs,
        forbidden_arcs=settings.forbidden_arcs,
    )
    (rng,) = generator(settings.seed).spawn(1)
    model = hidden.Model(
        settings.node_types,
        settings.score_settings,
        settings.penalty,
        int(cast("int", settings.folds)),
        settings.margins_plan.within([v.name for v in rows.variables if not v.is_discrete], task.margins),
        int(rng.integers(1 << 31)),
        lambda score, start: quick(score, start).structure,
    )
    units, known, worth = hidden.Rows.of(rows, task.extras.units), task.extras.classes, dict[int, float]()
    alone: Found | None = None
    codes, margins = known, task.margins
    try:
        if known is None:
            # Without a class, which numbers of classes are compared with; if there are many rows, by some.
            is_compared = settings.hidden == "auto" and rows.rows <= hidden.MOST_ROWS
            alone = search(task) if is_compared else None
            start = task.start if alone is None else alone.structure
            chosen, worth = hidden.choose(units, settings.hidden, model, start, task.margins, rng)
            if chosen is not None:
                codes, margins = chosen.codes, chosen.margins
        if codes is not None:
            moved = rows if margins is None else margins.transformed(rows)
            score = _spread(model.score(units, codes, margins), moved, settings)
            simple = hidden.simplest(task.start, settings.node_types[0])
            alone_filled = task.extras._replace(completions=())  # classes are those of one filling of holes
            again = replace(task, margins=margins, rows=moved, start=simple, extras=alone_filled)
            found = _search_by_score(again, BestType(score, settings.node_types, cost=model.cost(rows)))
            structure = found.structure
            division = hidden.finish(units, codes, structure, model, margins, rng, is_known=known is not None)
            return fit(again, found._replace(structure=division.structure), division, worth)
    except LearningInterrupted:  # of one search among several
        raise KeyboardInterrupt from None
    return fit(task, search(task) if alone is None else alone, worth=worth)


def _spread(score: ByClass, rows: Table, settings: LearnSettings) -> Score:
    """Return a score that the workers of a client compute, if there is one."""
    if settings.client is None:
        return score
    from spbn.dask.families import spread

    return spread(settings.client, rows, score, score.recipe)


def fit(
    task: Task,
    found: Found,
    division: hidden.Division | None = None,
    worth: Mapping[int, float] | None = None,
) -> BayesianNetwork:
    """Fit a structure that was found to all rows, perhaps with a hidden class.

    `worth`: what numbers of classes are worth, for the record.
    """
    settings, fit_settings = task.settings, task.settings.fit_settings
    original, searched = task.original, task
    if division is not None:
        assert isinstance(task.rows, Table)
        assert original is not None
        task = replace(task, rows=division.with_class(task.rows))
        found = found._replace(structure=division.structure_with_class)
    structure, cpds, left_out = fit_what_can_be(
        found.structure, task.rows, fit_settings, required_arcs=settings.required_arcs
    )
    for (source, target), reason in left_out:
        warnings.warn(f"the arc {source} → {target} is left out: {reason}", stacklevel=5)
    if division is not None:
        assert isinstance(task.rows, Table)
        if task.extras.classes is None:
            units = task.extras.units
            cpds = hidden.refine(
                structure, cpds, task.rows, division.probabilities, fit_settings, units=units
            )
    if task.extras.completions:
        cpds = pooled_over(task.extras.completions, structure, cpds, fit_settings)
    typical = dict[str, float]()
    if original is not None:
        table = task.odd.leave_out(original)
        table = table if division is None else division.with_class(table)
        typical = typical_logpdf(structure, table, fit_settings, task.margins)
    marks = task.rows.marked_by.values()
    record = Record(
        settings=task.given.plain(),
        versions=current_versions(),
        rows=task.rows.rows if isinstance(task.rows, Table) else task.rows.count,
        left_out=len(task.odd.numbers),
        columns=tuple(
            v.name
            for v in task.rows.variables
            if (division is None or v.name != hidden.NAME) and v.name not in marks
        ),
        data_hash=None if original is None else original.digest,
        typical=typical,
        open_directions=find_open_directions(
            searched, structure if division is None else _of_columns(structure), found.score
        ),
        seconds=time.perf_counter() - task.began,
        search=found.search,
        type_search=found.type_search,
        classes={str(number): value for number, value in (worth or {}).items()},
    )
    named = None if division is None else hidden.NAME
    return BayesianNetwork(structure, cpds, margins=task.margins, record=record, hidden=named)


def _impute_and_learn(data: TableLike, settings: LearnSettings) -> BayesianNetwork:
    """Learn from the values that are present.

    The holes of a Gaussian network are filled by Gaussian networks. For all others they are filled by
    whichever predicts hidden values best: those, semiparametric networks, or, if all columns are continuous,
    a normal distribution of them. Blends and KDE networks do not fill holes themselves: draws from narrow
    kernels are nearly copies of other rows, for which a cross-validated score would fall.
    """
    from spbn.learning import structural_em

    began = time.perf_counter()
    every = read_table(data, settings)
    complete = settings.replace(missing="error", drop=(), discrete=())
    if not np.isnan(every.columns).any():
        return learn_network(every, complete)
    odd = OddRows.of(every, settings)
    odd.warn()
    table, complete = odd.leave_out(every), odd.leave_out_of_folds(complete)
    structural_em.require_values(table)
    plan = settings.replace(atoms="none").margins_plan
    smooth = complete.replace(hidden=None, atoms="none")  # what fills holes does without
    if settings.model_name in ("blend", "kdebn", "auto"):
        start = settings.start if isinstance(settings.start, Structure) else "ckde"
        penalty = OPTIONS["penalty"].default  # which a search with validation rows does not have
        smooth = smooth.replace(
            model="spbn", start=start, types=None, margins=settings.margins_name, penalty=penalty
        )
    lines = LearnSettings(
        model="gbn",
        max_parents=settings.max_parents,
        required_arcs=settings.required_arcs,
        forbidden_arcs=settings.forbidden_arcs,
        tiers=settings.tiers,
        margins=settings.margins_name,
        bounds=settings.bounds,
        seed=settings.seed,
        smoothing=settings.smoothing,
    )

    def learn_smooth(filled: Table, structure: Structure | None) -> BayesianNetwork:
        goes_on = structure is not None and smooth.algorithm_name == "hc"
        return learn_network(filled, smooth.replace(start=structure) if goes_on else smooth)

    def learn_lines(filled: Table, structure: Structure | None = None) -> BayesianNetwork:
        return learn_network(filled, lines)

    is_gaussian = settings.model_name == "gbn"
    learners = [learn_smooth] if is_gaussian else [learn_smooth, learn_lines]
    fillers = [structural_em.by_networks(learner, learn_lines, plan) for learner in learners]
    if not table.discrete.any() and not is_gaussian:
        fillers.append(structural_em.by_normal(plan))
    # A generator of its own: the data may have been simulated with the same seed.
    (rng,) = generator(settings.seed).spawn(1)
    try:
        filler = structural_em.best_filler(table, fillers, rng)
        (filled, *others), scores = filler(table, rng, structural_em.ROUNDS, structural_em.COMPLETIONS)
        network = learn_network(filled, complete, Extras(completions=others))
    except LearningInterrupted:  # of one search among several
        raise KeyboardInterrupt from None
    record = replace(
        network.record,
        settings=settings.plain(),
        data_hash=every.digest,
        left_out=len(odd.numbers),
        seconds=time.perf_counter() - began,
        rounds=tuple(scores),
    )
    return network.replace(record=record)
