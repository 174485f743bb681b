"""Which arcs to believe: the search is repeated on random halves of the rows, and what it finds again counts.

A replicate is half of the rows, drawn without replacement, with its columns in an order of their own, and a
search with folds and validation rows of its own. The order of the columns decides between arcs that score the
same, such as both directions of an arc: if it were always the same, so would be the direction.

Why half of the rows, and not a bootstrap sample as large as the table? Anything that varies like a mean
varies over half-samples as much as it does over bootstrap samples (Buja and Stuetzle, *Observations on
bagging*, 2006; Meinshausen and Bühlmann select variables by half-samples, *Stability selection*, 2010), and
half-samples have three advantages:

- No row is there twice. A copy of a training row among the rows that score it would make narrow kernels look
  good, and copies make a penalty like BIC's too small for what the rows can tell, so that arcs are added.
- Nothing has to know about weights or copies: every score, test and node type works as it is.
- Sums over pairs of rows cost a quarter.

The price is that a replicate sees fewer rows than the search on the whole table: an arc which half of the
rows are too few to show has a low strength.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base import display
from spbn._base.arrays import IntArray, Seed, generator
from spbn._base.checks import is_number, refuse, whole
from spbn._base.display import counting_progress
from spbn._base.lazy import pd
from spbn.dask.client import Executor, is_dask_client
from spbn.errors import ArgumentError, SpbnError, argument
from spbn.graphs.dag import DAG, Arc
from spbn.io.checkpoint import Checkpoint, describe_work
from spbn.joint import EQUIVALENT
from spbn.learning.hidden import NAME as CLASS
from spbn.learning.learn import learn_structure, open_directions_in, read_table
from spbn.learning.settings import LearnSettings, shows_options
from spbn.nodes.base import NodeType, place_of
from spbn.structure import Structure
from spbn.tables.reader import TableLike
from spbn.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


DRAWN = 0.5  # of the rows, for every replicate
DRAWS = 100  # of rows, until no column is constant
CLEAR_DIRECTION = 0.75  # of the replicates that join two nodes
OVER_TIME = {"lags", "series", "time"}  # arguments of `learn_dynamic`
DISPUTED = "replicates disagree"


def learn_replicates(
    client: object, table: Table, tasks: Sequence[tuple[int, int, LearnSettings]]
) -> Iterator[dict[str, Any]]:
    """Learn replicates, here or elsewhere."""
    if client is None or is_dask_client(client):
        yield from (record for _, record in Executor(client, table).map(learn_replicate, tasks))
        return
    submit = getattr(client, "submit", None)
    if not callable(submit):
        raise ArgumentError(
            f"{argument('client')} must be a dask.distributed.Client, or have a method submit. "
            f"Got {type(client).__name__}."
        )
    futures = [submit(learn_replicate, table, *task) for task in tasks]
    try:
        for future in futures:
            yield future.result()
    finally:
        for future in futures:
            future.cancel()


def learn_replicate(table: Table, number: int, root: int, settings: LearnSettings) -> dict[str, Any]:
    """Learn from some of the rows, and return the structure as plain data.

    The number of the replicate and the seed of all of them, `root`, decide which rows are drawn.
    """
    rng = np.random.default_rng(np.random.SeedSequence(root, spawn_key=(number,)))
    rows = draw_rows(table, rng)
    order = rng.permutation(np.array(table.names, dtype=object)).tolist()
    own = settings.replace(seed=int(rng.integers(1 << 31)))
    if not np.isscalar(settings.folds):
        own = own.replace(folds=np.asarray(settings.folds)[rows])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about some rows only
            found = learn_structure(table.take(rows).select(order), own)
    except SpbnError as error:
        raise type(error)(
            f"{error.message} (This is about replicate {number + 1}, with half of the rows.)"
        ) from error
    types = {node: node_type.name for node, node_type in found.types.items()}
    if settings.has_class:  # which may not help in this half
        types.setdefault(CLASS, NodeType.DISCRETE.name)
    return {"replicate": number, "arcs": [list(arc) for arc in found.arcs], "types": types}


def draw_rows(table: Table, rng: np.random.Generator) -> IntArray:
    """Draw half of the rows, in order and each once, in which no column is constant if that is possible."""
    for _ in range(DRAWS):
        rows = np.sort(rng.permutation(table.rows)[: max(2, round(DRAWN * table.rows))])
        columns = table.columns[:, rows]
        if (np.fmin.reduce(columns, axis=1) < np.fmax.reduce(columns, axis=1)).all():
            break
    return rows


def structure_of(record: Mapping[str, Any], nodes: Sequence[str]) -> Structure:
    """Return the structure that `learn_replicate` described."""
    return Structure(nodes, [(source, target) for source, target in record["arcs"]], record["types"])


@dataclass(frozen=True, eq=False)
class Confidence:
    """How often replicates of a search agree on an arc, its direction and the type of a node.

    Attributes
    ----------
    structures
        What every replicate found.
    settings
        The arguments of `learn`, the model and its margins, and the seed, as plain data.
    rows, data_hash
        The size of the table, and its SHA-256.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> found = spbn.confidence(data, replicates=5, model="gbn")
    >>> network = spbn.BayesianNetwork.fit(found.structure(), data)
    """

    structures: tuple[Structure, ...]
    settings: Mapping[str, Any]
    rows: int
    data_hash: str
    #: Which arcs of a structure have a direction that neither background knowledge nor the score decides.
    undecided: Callable[[Structure], Iterable[Arc]] = field(default=Structure.undecided_arcs, repr=False)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes, by column order."""
        return self.structures[0].nodes

    @property
    def arcs(self) -> pd.DataFrame:
        """One row for every two nodes that some replicate joins, the strongest first.

        "strength" is the share of replicates that join the two, in either direction; "direction" is the share
        of these in which the arc leads from "source" to "target": at least a half, since every
        pair is listed in the direction that more replicates have.
        """
        columns = ["source", "target", "strength", "direction"]
        return pd.DataFrame([(*arc, *shares) for arc, shares in self._arcs.items()], columns=columns)

    @property
    def types(self) -> pd.DataFrame:
        """The share of replicates in which a node has a type, for every type that occurs, largest first."""
        found = [
            (node, node_type.name, share)
            for node, shares in self._types.items()
            for node_type, share in shares.items()
        ]
        return pd.DataFrame(found, columns=["node", "type", "share"])

    @cached_property
    def threshold(self) -> float:
        """The strength that an arc must exceed to be believed; see `l1_threshold`."""
        joined = (self._counts + self._counts.T)[np.triu_indices(len(self.nodes), k=1)]
        return l1_threshold(joined, len(self.structures))

    def structure(self, threshold: float | None = None) -> Structure:
        """Return the averaged network: the arcs that are stronger than a threshold, and the most frequent
        types.

        Arcs are added in the order of their strength, then of how clear their direction is. One that would
        close a cycle, or exceed the `max_parents` of the searches, is left out.

        Parameters
        ----------
        threshold
            By default, `threshold`.
        """
        least = self.threshold if threshold is None else threshold
        if not is_number(least) or not 0 <= least <= 1:
            refuse("threshold", "between 0 and 1", threshold)
        most = self.settings.get("max_parents")
        dag = DAG(self.nodes)
        for (source, target), (strength, _) in self._arcs.items():
            if strength <= least:
                break
            closes_cycle = source in dag.descendants(target)
            if not closes_cycle and (most is None or len(dag.parents(target)) < most):
                dag = dag.with_arc(source, target)
        return Structure.from_dag(dag, {node: next(iter(shares)) for node, shares in self._types.items()})

    def open_directions(self, threshold: float | None = None) -> dict[Arc, str]:
        """Return the arcs of the averaged network whose direction is open, and why.

        It is open if a graph with the arc reversed implies the same independences and, on all rows, scores
        nearly as well (as for `BayesianNetwork.open_directions`), or if fewer than three quarters of the
        replicates that join the two nodes agree on it. What background knowledge decides is not open.
        """
        structure = self.structure(threshold)
        if structure not in self._undecided:
            self._undecided[structure] = frozenset(self.undecided(structure))
        undecided = self._undecided[structure]
        reasons: dict[Arc, str] = {}
        for arc in structure.arcs:
            found = [EQUIVALENT] if arc in undecided else []
            found += [DISPUTED] if self._arcs[arc][1] < CLEAR_DIRECTION else []
            if found:
                reasons[arc] = "; ".join(found)
        return reasons

    def strengths(self, threshold: float | None = None) -> dict[Arc, float]:
        """Return the strength of every arc of the averaged network."""
        return {arc: self._arcs[arc][0] for arc in self.structure(threshold).arcs}

    def plot(self, ax: Axes | None = None, *, threshold: float | None = None) -> Axes:
        """Draw the averaged network: stronger arcs are wider, and those with an open direction are dashed."""
        drawn: Axes = display.plot(
            self.structure(threshold),
            ax,
            strengths=self.strengths(threshold),
            open_directions=self.open_directions(threshold),
        )
        return drawn

    _repr_html_ = display.repr_html

    def __repr__(self) -> str:
        believed = len(self.strengths())
        return (
            f"Confidence({len(self.structures)} replicates of {len(self.nodes)} nodes, {believed} "
            f"arc{'' if believed == 1 else 's'} stronger than {self.threshold:.2f})"
        )

    def __str__(self) -> str:
        open_ones = self.open_directions()
        lines = [f"{len(self.structures)} replicates; arcs stronger than {self.threshold:.2f} are believed"]
        for (source, target), strength in self.strengths().items():
            reason = open_ones.get((source, target))
            direction = (
                f"direction {self._arcs[source, target][1]:.2f}{f', open: {reason}' if reason else ''}"
            )
            lines.append(f"{source} → {target}: strength {strength:.2f}, {direction}")
        return "\n".join(lines)

    @cached_property
    def _undecided(self) -> dict[Structure, frozenset[Arc]]:
        """What `undecided` has found, since it takes time."""
        return {}

    @cached_property
    def _counts(self) -> IntArray:
        """How many replicates have an arc, sources × targets."""
        return np.sum([structure.dag.matrix for structure in self.structures], axis=0, dtype=np.int64)

    @cached_property
    def _arcs(self) -> Mapping[Arc, tuple[float, float]]:
        """Strength and direction of every pair that is joined, in its usual direction and in order."""
        nodes, counts = self.nodes, self._counts
        joined = counts + counts.T
        found = [
            (-int(joined[i, j]), -int(counts[i, j]), i, j)
            for i, j in np.argwhere(joined).tolist()
            if counts[i, j] > counts[j, i] or (counts[i, j] == counts[j, i] and i < j)
        ]
        replicates = len(self.structures)
        return {(nodes[i], nodes[j]): (-both / replicates, one / both) for both, one, i, j in sorted(found)}

    @cached_property
    def _types(self) -> Mapping[str, Mapping[NodeType, float]]:
        """The types of every node and their shares, the largest first."""
        found = {}
        for node in self.nodes:
            types = [structure.type(node) for structure in self.structures]
            order = sorted(set(types), key=lambda t: (-types.count(t), place_of(t)))
            found[node] = {t: types.count(t) / len(types) for t in order}
        return found


@shows_options
def confidence(
    data: TableLike,
    *,
    replicates: int = 100,
    seed: Seed = 0,
    client: object = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
    **options: object,
) -> Confidence:
    """Find out which arcs, directions and node types of a learned network to believe.

    The search is repeated on halves of the rows, drawn at random without replacement, each time with the
    columns in a different order, which breaks ties, and with different folds and validation rows.
    Half-samples vary as much as bootstrap samples do, but contain no row twice: copies would make
    cross-validation too optimistic, and penalties for arcs too small. They also take less time.

    Parameters
    ----------
    data, options
        As for `learn`.
    replicates
        How many searches. A strength of 0.9 has a standard error of 0.03 with 100 of them.
    seed
        The same seed gives the same result, wherever and in whatever order replicates are learned.
    client
        Whatever learns replicates in other processes: a `dask.distributed.Client`, or anything else with
        ``submit(function, *arguments)`` that returns futures, such as a
        `concurrent.futures.ProcessPoolExecutor`.
    checkpoint
        A file in which every replicate is recorded. Replicates that it already has are not learned again. A
        file about other data or settings is refused.
    progress
        Show a progress bar on the terminal.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> found = spbn.confidence(data, replicates=5, model="gbn")
    >>> print(found.arcs.iloc[0].to_dict())
    {'source': 'C', 'target': 'B', 'strength': 1.0, 'direction': 1.0}
    """
    whole("replicates", replicates, 1)
    settings = _settings(options, seed)
    settings.require_unprepared()
    table = read_table(data, settings)
    settings.resolve(table.names)  # refuses what is wrong before the first replicate does
    root = int(seed) if isinstance(seed, int | np.integer) else int(generator(seed).integers(1 << 62))
    known, note = _open_checkpoint(checkpoint, table, settings, replicates)
    missing = "impute" if settings.missing == "impute" else "error"
    nodes = (*table.names, CLASS) if settings.has_class else table.names
    shared = settings.replace(drop=(), discrete=(), missing=missing, seed=None)
    with counting_progress(progress, "learning replicates", total=replicates) as advance:
        for _ in known:
            advance()
        left = [number for number in range(replicates) if number not in known]
        for record in learn_replicates(client, table, [(number, root, shared) for number in left]):
            known[record["replicate"]] = structure_of(record, nodes)
            note(record)
            advance()
    structures = tuple(known[number] for number in range(replicates))
    plain = settings.plain()
    shown = ("model", "margins", *options, "seed")
    described = MappingProxyType({name: plain[name] for name in shown if name in plain})
    undecided = partial(open_directions_in, table, shared.replace(seed=root))
    return Confidence(structures, described, table.rows, table.digest, undecided)


def l1_threshold(joined: IntArray, replicates: int) -> float:
    """Return the strength that an arc must exceed to be believed.

    By the rule of Scutari and Nagarajan (*Identifying significant edges in graphical models of molecular
    networks*, 2013): were the searches sure of everything, a share t of all pairs would have strength 0 and
    the others 1. The distribution function of the strengths, F, would then be t on [0, 1). The rule takes
    the t that minimises ∫ |F(x) - t| dx over [0, 1], and as threshold the t-quantile of the strengths. The
    integral is least where t is the median of F(x), which is F(½) because F rises: the threshold is the
    greatest strength that is not above ½, and 0 if there is none.

    `joined`: how many of the replicates join the two nodes, for every pair of nodes.
    """
    return float(joined[2 * joined <= replicates].max(initial=0) / replicates)


def _settings(options: Mapping[str, object], seed: Seed) -> LearnSettings:
    """Return the settings of the replicates, and refuse what makes no sense for several of them."""
    if OVER_TIME & set(options):
        raise ArgumentError(
            "confidence is for rows that do not depend on each other: halves drawn at random would tear "
            "apart rows that follow each other. Learn from different stretches of time with learn_dynamic, "
            "and see what their networks have in common."
        )
    settings = LearnSettings.of("confidence", {**options, "seed": seed})
    settings.refuse_atoms("halves of the rows may have others than the whole table")
    if settings.max_seconds is not None:
        raise ArgumentError(
            f"{argument('max_seconds')} cannot be given: how far a replicate comes in a time is not the same "
            f"on every run. Limit the search by {argument('max_parents')} instead, or use fewer replicates."
        )
    return settings


def _open_checkpoint(
    path: str | os.PathLike[str] | None, table: Table, settings: LearnSettings, replicates: int
) -> tuple[dict[int, Structure], Callable[[Mapping[str, Any]], None]]:
    """Return the replicates that a checkpoint has, and what notes further ones in it."""
    if path is None:
        return {}, lambda record: None
    checkpoint = Checkpoint(path, describe_work("confidence", settings.affecting_result(), table))
    try:
        nodes = (*table.names, CLASS) if settings.has_class else table.names
        known = {int(record["replicate"]): structure_of(record, nodes) for record in checkpoint.found}
    except (SpbnError, KeyError, TypeError, ValueError) as error:
        raise checkpoint.refuse(error) from error
    return {number: known[number] for number in known if 0 <= number < replicates}, checkpoint.append
