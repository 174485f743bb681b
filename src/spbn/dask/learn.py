"""Rows over workers: learning from tables that no machine can hold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from spbn._base.arrays import Seed, generator
from spbn._base.checks import at_least_0, choice, is_number, is_whole, refuse, seconds
from spbn._base.progress import search_progress
from spbn.dask.client import require_client
from spbn.dask.fitting import HeldFits, fitted
from spbn.dask.levels import with_levels
from spbn.dask.mapreduce import Deal
from spbn.dask.margins import fitted as fitted_margins
from spbn.dask.rowstore import Holdings
from spbn.dask.scores import HeldBIC, HeldLikelihood
from spbn.dask.sources import Source, opened
from spbn.dask.tables import SetTotals
from spbn.errors import ArgumentError, DataError, argument, quoted, setting
from spbn.graphs.dag import Arc
from spbn.kernels.spectral.engine import DIMENSIONS
from spbn.learning.learn import LearningInterrupted
from spbn.learning.settings import MODELS, SCORES
from spbn.network import BayesianNetwork
from spbn.nodes.base import NodeType, impossible_arcs, refuse_impossible
from spbn.nodes.blend import FOLDS as BLEND_FOLDS
from spbn.nodes.blend import NODE_TYPE as BLEND
from spbn.record import Record, current_versions, plain_settings
from spbn.scores import BGe, Score
from spbn.search import SearchInterrupted, SearchResult, hill_climb
from spbn.structure import Structure
from spbn.transforms import require_kind

RULES = ("scott", "silverman")
MISSING = ("error", "drop")


def learn(
    data: Any,
    *,
    client: Any = None,
    model: str = "spbn",
    start: NodeType | str = NodeType.CKDE,
    score: str | None = None,
    folds: int = 10,
    validation: float = 0.2,
    patience: int = 5,
    epsilon: float = 0.0,
    max_seconds: float | None = None,
    max_parents: int | None = 2,
    required_arcs: Iterable[Arc] = (),
    forbidden_arcs: Iterable[Arc] = (),
    bandwidth: str = "scott",
    margins: str = "none",
    seed: Seed = 0,
    progress: bool = False,
    missing: str = "error",
    drop: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    discrete: Sequence[str] = (),
    smoothing: float = 1.0,
) -> BayesianNetwork:
    """Learn a network from rows that workers hold: more of them than fit into the memory of any machine.

    The search is that of `spbn.learn` by hill climbing, and its scores are the same numbers, from sums over
    rows that the workers add up. Rows stay where they are, except for those that lie far from all others, a
    few in a million. The network keeps no rows either: its CKDE and blend nodes are compact.

    Parameters
    ----------
    data
        A Dask DataFrame, which may be persisted; or the path of a Parquet file, a pattern such as
        ``"data/*.parquet"``, a folder of Parquet files, or a list of these, which every worker must be able
        to read. Columns of text, categories or truth values become discrete nodes, which can have only
        discrete parents.
    client
        A `dask.distributed.Client`. Without one, this process does the work, a part of the rows at a time.
    model
        "spbn": the type of every node is learned. "gbn": all are linear Gaussian. "kdebn": all are CKDE.
        "blend": all are blends; with two parents, they are scored with all kernels, but fitted without
        narrow ones of which no table fits into memory. A warning says how much weight these had.
    start
        Type of all nodes at the start of an SPBN search.
    score
        "cv" (cross-validated likelihood with a validation set), the default; for a GBN also "bic", the
        default there, and "bge".
    folds, validation
        How many folds, and the fraction of validation rows. Which row is where depends on the part of the
        rows that it is in (a row group of a file, a partition), on its place there and on the seed.
    max_parents
        With kernels at most 2: a grid of four dimensions does not fit into memory.
    bandwidth
        "scott" or "silverman".
    margins
        "none" or "yeo-johnson": every column is transformed first, as by `spbn.learn`; that takes four more
        passes over the rows.
    missing
        "error" refuses missing and infinite values, and "drop" leaves their rows out.
    columns
        The columns to use; all by default.
    patience, epsilon, max_seconds, required_arcs, forbidden_arcs, seed, progress, drop, discrete, smoothing
        As for `spbn.learn`.

    Returns
    -------
    An ordinary network, fitted to all rows.

    Raises
    ------
    LearningInterrupted
        A `KeyboardInterrupt` from which the best network so far can be had.

    Examples
    --------
    >>> with spbn.distributed.local_workers(2, memory="2GB") as client:  # doctest: +SKIP
    ...     network = spbn.distributed.learn("data/*.parquet", client=client)
    """
    settings = plain_settings({**locals(), "data": None})
    for name in ("data", "client", "progress"):
        del settings[name]
    began = time.perf_counter()
    choice("model", model, MODELS)
    choice("bandwidth", bandwidth, RULES)
    choice("missing", missing, MISSING)
    require_kind(margins)
    chosen = score or ("bic" if model == "gbn" else "cv")
    choice("score", chosen, SCORES)
    if chosen != "cv" and model != "gbn":
        raise ArgumentError(
            f"{setting('score', chosen)} is for {setting('model', 'gbn')} only. "
            f"Got {setting('model', model)}: use {setting('score', 'cv')}."
        )
    seconds("max_seconds", max_seconds)
    at_least_0("smoothing", smoothing)
    types = _types(model)
    _require_parents(max_parents, types)
    first = _first_type(model, NodeType.parse(start))
    if client is not None:
        require_client(client)
    required_arcs, forbidden_arcs = list(required_arcs), list(forbidden_arcs)
    deal = _deal(chosen, folds, validation, seed)
    source = opened(data, drop=drop, only=columns, discrete=discrete, client=client)
    _require_use(source, chosen)
    source = with_levels(source, discrete, client)
    holdings = Holdings.of(source, deal, client, missing=missing)
    _require_rows(holdings, chosen)
    refuse_impossible(impossible_arcs(holdings.variables), required_arcs)
    transforms = None
    if margins == "yeo-johnson":
        transforms = fitted_margins(holdings)
        holdings = Holdings.of(source, deal, client, missing=missing, margins=transforms)
    totals = SetTotals(holdings, bandwidth)
    criterion = _score(chosen, holdings, totals, smoothing)

    def network(search: SearchResult) -> BayesianNetwork:
        last = holdings
        if BLEND in types:  # whose weights are found by a cross-validation of all rows
            all_rows = Deal(deal.seed, BLEND_FOLDS, 0.0)
            last = Holdings.of(source, all_rows, client, missing=missing, margins=transforms)
        fits = HeldFits(last, bandwidth, smoothing)
        structure, cpds, left_out = fitted(search.structure, fits, required_arcs)
        for (parent, node), reason in left_out:
            warnings.warn(f"the arc {parent} → {node} is left out: {reason}", stacklevel=3)
        record = Record(
            settings=settings,
            versions=current_versions(),
            rows=holdings.every.count,
            columns=holdings.names,
            seconds=time.perf_counter() - began,
            search=search,
        )
        return BayesianNetwork(structure, cpds, margins=transforms, record=record)

    left = None if max_seconds is None else max(0.0, max_seconds - (time.perf_counter() - began))
    try:
        with search_progress(progress, patience) as show:
            found = hill_climb(
                criterion,
                _start(holdings, first),
                operators=("arcs", "types") if len(types) > 1 else ("arcs",),
                types=types,
                patience=patience,
                epsilon=epsilon,
                max_parents=max_parents,
                max_seconds=left,
                required_arcs=required_arcs,
                forbidden_arcs=forbidden_arcs,
                on_step=show,
            )
    except SearchInterrupted as stop:
        so_far = stop.result
        raise LearningInterrupted(so_far, lambda: network(so_far)) from None
    return network(found)


def _start(holdings: Holdings, first: NodeType) -> Structure:
    types = {v.name: NodeType.DISCRETE if v.is_discrete else first for v in holdings.variables}
    return Structure(holdings.names, types=types)


def _score(chosen: str, holdings: Holdings, totals: SetTotals, smoothing: float) -> Score:
    if chosen == "bic":
        return HeldBIC(holdings)
    if chosen == "bge":
        return BGe.of_moments(holdings.names, holdings.every)
    return HeldLikelihood(holdings, totals, smoothing=smoothing)


def _deal(chosen: str, folds: object, validation: object, seed: Seed) -> Deal:
    """Say which rows are where; all are in one fold for a score that needs none."""
    root = int(seed) if isinstance(seed, int | np.integer) else int(generator(seed).integers(1 << 62))
    generator(root)  # refuses what cannot be a seed
    if not is_whole(folds, 2, 100):
        refuse("folds", "between 2 and 100", folds)
    if not is_number(validation) or not 0 < validation < 1:
        refuse("validation", "a fraction between 0 and 1", validation)
    return Deal(root, int(folds), float(validation)) if chosen == "cv" else Deal(root, 1, 0.0)


def _require_use(source: Source, score: str) -> None:
    """Refuse discrete columns where they are of no use."""
    if score == "bge" and source.discrete:
        are = "is" if len(source.discrete) == 1 else "are"
        raise DataError(
            f"BGe takes continuous columns only. {quoted(source.discrete)} {are} discrete: use BIC, or leave "
            f"them out."
        )


def _require_rows(holdings: Holdings, chosen: str) -> None:
    counts = [moments.count for moments in holdings.by_label]
    if holdings.every.count < 2 or (chosen == "cv" and min(counts) < 1):
        raise DataError(
            f"there are too few rows: {holdings.every.count}, which leaves a fold or the validation set "
            f"empty. Use fewer folds, or spbn.learn."
        )


def _require_parents(max_parents: object, types: Sequence[NodeType]) -> None:
    most = DIMENSIONS - 1
    kernels = [node_type for node_type in types if node_type is not NodeType.LG]
    if kernels and (max_parents is None or (isinstance(max_parents, int) and max_parents > most)):
        raise ArgumentError(
            f"{argument('max_parents')} must be at most {most} where rows are over workers and nodes may be "
            f"{kernels[0].label}. Got {max_parents!r} instead."
        )


def _types(model: str) -> tuple[NodeType, ...]:
    return tuple(NodeType.parse(name) for known, names in MODELS.items() for name in names if known == model)


def _first_type(model: str, start: NodeType) -> NodeType:
    choices = _types(model)
    if start not in (*choices, NodeType.CKDE):
        raise ArgumentError(
            f"{argument('start')} must be a type that nodes of a {model} can have: "
            f"{' or '.join(choice.name for choice in choices)}. Got {start.name!r} instead."
        )
    return start if start in choices else choices[0]
