"""Mixtures of kernels and a line over rows that workers hold: their weights and log-likelihoods, from sums.

The workers cache the log-densities of the sets of columns that some families need, at all scales
(`kernel_passes`), and add up the likelihood of a mixture and its derivatives. Newton's method
(`numerics.mixture_weights.WeightSearch`) finds the weights from these: a pass over what is cached for each of
its ten or so steps, for all of these families at a time.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import TypeVar, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.dask.densities import PAIRWISE, GridDensities, Groups
from spbn.dask.kernel_passes import (
    Gaps,
    Key,
    LostError,
    MixtureRequest,
    PairwiseRequest,
    cache_pairwise,
    evict,
    fill_gaps,
    line_log_densities,
    mixture_sums,
    rows_at_a_time,
)
from spbn.dask.mapreduce import GroupRequest
from spbn.dask.shards import Shards
from spbn.errors import ClusterError, quoted
from spbn.kernels import SHARED_GRID
from spbn.kernels.estimates import Estimate
from spbn.kernels.multiscale import SCALES
from spbn.numerics.mixture_weights import MixtureSums, WeightSearch
from spbn.numerics.moments import residual_directions
from spbn.rows.families import VariableSet
from spbn.rows.store import Columns

TIMES = 4  # that densities are made again if workers that cached them die
MOST_STEPS = 100
MOST_PAIRS = 2e11  # that are added up for wider kernels if no grid fits: some minutes on one core

Result = TypeVar("Result")


@final
class CachedDensities:
    """The log-densities that workers have cached for the same plan, and those that cannot be had."""

    def __init__(self, rule: str) -> None:
        self._rule = rule
        self._bytes: dict[Key, int] = {}  # of one worker, at most; those asked for last are at the end
        self._impossible: set[Key] = set()

    def keys(self, groups: Groups, members: Columns) -> list[tuple[Key, ...]]:
        """Return, for every scale, what is needed of a family: all columns, and the parents if it has any."""
        sets = [tuple(sorted(members)), *([members[:-1]] if len(members) > 1 else [])]
        return [
            tuple(Key(columns, len(members), scale, groups.labels, groups.within) for columns in sets)
            for scale in SCALES
        ]

    def batches(self, groups: Groups, families: Sequence[Columns]) -> Iterator[list[int]]:
        """Yield families that fit into memory together, by their numbers; those of the same columns first."""
        rows = groups.queries.most_rows
        room = int(groups.training.table_bytes // (8 * rows))
        together: list[int] = []
        keys: set[Key] = set()
        for number in sorted(range(len(families)), key=lambda n: (len(families[n]), sorted(families[n]))):
            mine = set(self._needed(groups, families[number]))
            if len(mine) > room:
                raise ClusterError(
                    f"blends need {8 * len(mine)} bytes for every row that a worker has, and one has "
                    f"{rows} rows: use more workers, or workers with more memory."
                )
            if together and len(keys | mine) > room:
                yield together
                together, keys = [], set()
            together.append(number)
            keys |= mine
        if together:
            yield together

    def retry(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call a function again if workers that had cached densities died."""
        for _ in range(TIMES):
            try:
                return function(*arguments)
            except LostError:
                self._bytes.clear()
        raise ClusterError(
            f"workers lost the densities that they should keep {TIMES} times: look at their logs. They may "
            f"need more memory."
        )

    def usable(self, groups: Groups, members: Columns) -> BoolArray:
        """Tell which kernels of a family can be fitted, by scale."""
        return np.array([self._impossible.isdisjoint(keys) for keys in self.keys(groups, members)])

    def require(self, groups: Groups, families: Sequence[Columns]) -> None:
        """Have the workers cache what some families need."""
        needed = dict.fromkeys(key for members in families for key in self._needed(groups, members))
        missing = [key for key in needed if key not in self._bytes and key not in self._impossible]
        size = 8 * groups.queries.most_rows
        excess = sum(self._bytes.values()) + size * len(missing) - groups.training.table_bytes
        for key in [key for key in self._bytes if key not in needed]:
            if excess > 0:
                excess -= self._bytes.pop(key)
        if not missing:
            return
        groups.queries.map(evict, frozenset([*self._bytes, *missing]), pinned=True)
        densities = GridDensities(groups, self._rule)
        found: dict[Key, list[Estimate]] = {}
        for number, key in enumerate(missing):
            variables = VariableSet(key.columns, key.dimension)
            estimates = densities.estimates(number, variables, key.scale)
            if len(estimates) == len(groups.labels):
                found[key] = estimates
            else:
                self._impossible.add(key)
        pairwise = [key for key in found if len(key.columns) >= PAIRWISE and key.scale < 1.0]
        by_columns: dict[Columns, list[Estimate]] = {}
        for key in [key for key in found if key not in pairwise]:
            by_columns.setdefault(key.columns, []).extend(found[key])
        jobs, without_grid = densities.jobs(by_columns, SHARED_GRID)
        refused = {missing[estimate.number] for _, estimates in without_grid for estimate in estimates}
        pairwise += [key for key in found if key in refused and self._has_few_pairs(groups, key)]
        for units in densities.units(jobs):
            gaps = []
            for _, one, read, isolated in densities.read(units, missing):
                assert one.key is not None
                if isolated is None:
                    self._impossible.add(one.key)
                elif len(isolated):
                    gaps.append(Gaps(one.key, read.places, isolated))
            if gaps:
                groups.queries.map(fill_gaps, gaps, pinned=True)
        for asked in _pairwise_requests(groups, {key: found[key] for key in pairwise}):
            groups.queries.map(cache_pairwise, asked, pinned=True)
        self._bytes.update({key: size for key in missing if key not in self._impossible})

    def _needed(self, groups: Groups, members: Columns) -> list[Key]:
        return [key for keys in self.keys(groups, members) for key in keys]

    def _has_few_pairs(self, groups: Groups, key: Key) -> bool:
        """Tell whether a density that no grid fits can be added up pair by pair; else it is impossible."""
        pairs = float(groups.queries.queried.counts[list(groups.labels)].sum())
        pairs *= float(groups.training.training.counts.max())
        if key.scale < 1.0 or pairs <= MOST_PAIRS:
            return True
        self._impossible.add(key)
        names = quoted(groups.training.names[c] for c in key.columns)
        warnings.warn(
            f"the density of {names} needs a grid that does not fit into memory: blends of these columns go "
            f"without some of their kernels.",
            stacklevel=2,
        )
        return False


@dataclass(frozen=True, eq=False)
class DaskMixtures:
    """The mixtures of some families, in groups of rows that workers hold; see `rows.store.Mixtures`."""

    cached: CachedDensities
    parts: tuple[Groups, ...]  # whose values follow each other
    families: tuple[Columns, ...]  # the columns of each, the node last
    #: By family, the components that are not kernels, of each of the parts; None for those that it lacks.
    others: tuple[tuple[Sequence[GroupRequest] | None, ...], ...]

    @property
    def components(self) -> int:
        return len(SCALES) + len(self.others[0])

    def best(self, usable: BoolArray | None = None) -> list[tuple[FloatArray, float]]:
        (groups,) = self.parts
        wanted = np.ones(self.components, dtype=np.bool_) if usable is None else usable
        return self.cached.retry(self._search, groups, wanted)

    def values(self, weights: FloatArray) -> FloatArray:
        found = [self.cached.retry(self._under, groups, weights) for groups in self.parts]
        return np.concatenate(found, axis=1)

    def _search(self, groups: Groups, wanted: BoolArray) -> list[tuple[FloatArray, float]]:
        self.cached.require(groups, self.families)
        rows = int(groups.queries.queried.counts[list(groups.labels)].sum())
        usable = [wanted & self._usable(groups, number) for number in range(len(self.families))]
        searches = {i: WeightSearch(int(some.sum()), rows) for i, some in enumerate(usable) if some.any()}
        for _ in range(MOST_STEPS):
            left = [i for i, search in searches.items() if not search.is_done]
            if not left:
                break
            asked = [self._request(groups, i, usable[i], searches[i].trial, groups.labels) for i in left]
            for i, found in zip(left, _sums(groups.queries, asked), strict=True):
                if found.usable.all():
                    searches[i].update(found)
                    continue
                places = np.flatnonzero(usable[i])
                usable[i][places[~found.usable]] = False
                searches[i] = WeightSearch(max(1, int(usable[i].sum())), rows)
                searches[i].is_done = not usable[i].any()
        out = []
        for i, some in enumerate(usable):
            weights, total = np.zeros(self.components), -math.inf
            if some.any() and i in searches:
                weights[some], total = searches[i].trial, searches[i].total
            out.append((weights, total))
        return out

    def _under(self, groups: Groups, trial: FloatArray) -> FloatArray:
        self.cached.require(groups, self.families)
        out = np.full((len(self.families), len(groups.labels)), -np.inf)
        asked, places = [], []
        for number in range(len(self.families)):
            weights = np.where(self._usable(groups, number), trial[number], 0.0)
            if weights.sum() > 0.0:
                shares = (weights / weights.sum())[weights > 0.0]
                for place, label in enumerate(groups.labels):
                    asked.append(self._request(groups, number, weights > 0.0, shares, (label,)))
                    places.append((number, place))
        for (number, place), found in zip(places, _sums(groups.queries, asked), strict=True):
            out[number, place] = found.total if found.usable.all() else -np.inf
        return out

    def _usable(self, groups: Groups, number: int) -> BoolArray:
        """Tell which components of a family can be fitted."""
        kernels = self.cached.usable(groups, self.families[number])
        return np.array([*kernels, *(other is not None for other in self.others[number])])

    def _request(
        self,
        groups: Groups,
        number: int,
        usable: BoolArray,
        weights: FloatArray,
        labels: tuple[int, ...],
    ) -> MixtureRequest:
        """Describe a mixture of the usable components, with their weights, at the rows with some labels."""
        members, part = self.families[number], self.parts.index(groups)
        kernels = list(compress(self.cached.keys(groups, members), usable))
        others = [other[part] for other in compress(self.others[number], usable[len(SCALES) :]) if other]
        if labels != groups.labels:
            places = [groups.labels.index(label) for label in labels]
            others = [other.only(places) for other in others]
        return MixtureRequest(members, kernels, others, weights, labels)


def _sums(queries: Shards, asked: Sequence[MixtureRequest]) -> list[MixtureSums]:
    """Have sums over all rows added up."""
    return queries.gather(mixture_sums, asked, MixtureSums.add, pinned=True) if asked else []


def lines(parts: Sequence[Groups], members: Columns) -> Sequence[GroupRequest] | None:
    """Return the linear Gaussians of a family, for each of several parts; None if one cannot be fitted."""
    found = []
    for groups in parts:
        columns = np.array(members)
        training = groups.training.training.only(np.array(groups.labels))
        directions, variances, share = residual_directions(training.counts, training.scatters, columns)
        if share == 0.0:
            return None
        means = training.means[:, columns] + groups.training.centre[columns]
        arguments = (directions, means, variances)
        found.append(GroupRequest(members, groups.labels, line_log_densities, arguments, ()))
    return found


def _pairwise_requests(groups: Groups, found: Mapping[Key, Sequence[Estimate]]) -> Iterator[PairwiseRequest]:
    """Put densities of the same columns together, whose rows are read and sorted once."""
    shards = groups.training
    everything = 8 * shards.rows * len(shards.names)
    for columns in dict.fromkeys(key.columns for key in found):
        keys = tuple(key for key in found if key.columns == columns)
        estimates = [found[key] for key in keys]
        counts = [[shards.training.counts[one.span] for one in some] for some in estimates]
        yield PairwiseRequest(
            columns,
            shards.centre[list(columns)],
            keys,
            np.array([[one.whitener for one in some] for some in estimates]),
            np.array([[one.log_peak for one in some] for some in estimates]) - np.log(counts),
            rows_at_a_time(shards.table_bytes),
            everything <= shards.plan.cache_bytes,
            groups.labels,
            shards.where,
        )
