"""Blends over rows that workers hold: their weights and scores, from sums over rows.

The counterpart of `nodes.blend.BlendScorer`. The workers keep the log-densities of the sets of columns that
some families need, at all scales (`kept`), and add up the likelihood of a mixture and its derivatives.
Newton's method, as in `numerics.mixing`, finds the weights from these: a pass over what is kept for each of
its ten or so steps, for all of these families at a time.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, final

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray
from spbn.dask.densities import HeldDensities, Unit
from spbn.dask.near import Near, add_near, rows_at_a_time
from spbn.dask.row_cache import (
    Filling,
    Keeping,
    Key,
    Left,
    Line,
    Mixed,
    Mixing,
    added,
    fill,
    joined,
    keep,
    mix,
)
from spbn.dask.tables import worst_height
from spbn.errors import ClusterError, quoted
from spbn.kernels import SHARED_GRID
from spbn.kernels.estimates import Estimate
from spbn.kernels.multiscale import SCALES
from spbn.kernels.spectral.engine import ATTEMPTS, DIMENSIONS
from spbn.nodes.blend import COMPONENTS
from spbn.numerics.regression import residual_directions
from spbn.rows.families import FamilyBatch, VariableSet

TIMES = 4  # that densities are made again if workers that kept them die
#: A step that would gain less than this share of a row's log-density is the last, and is not checked.
NEARLY_THERE = 1e-10
MOST_STEPS = 100

#: In so many dimensions narrower kernels than CKDE's own would need grids of hundreds of millions of cells
#: for every fold, while few rows are within their reach: they are added up pair by pair.
PAIRWISE = DIMENSIONS
MOST_PAIRS = 2e11  # that are added up for wider kernels if no grid fits: some minutes on one core

#: The columns of a family: its parents and, last, its node.
Members = tuple[int, ...]


Result = TypeVar("Result")


class _LostError(Exception):
    """A worker does not have what it should keep."""


@dataclass
class _Climb:
    """The way to the weights that make rows most likely: where it is, and where it looks next."""

    rows: int
    trial: FloatArray
    at: FloatArray = field(default_factory=lambda: np.empty(0))
    step: FloatArray = field(default_factory=lambda: np.empty(0))
    value: float = -math.inf
    decrement: float = math.inf
    size: float = 1.0
    total: float = math.nan
    is_done: bool = False

    @classmethod
    def of(cls, components: int, rows: int) -> _Climb:
        """Begin with equal weights."""
        return cls(rows, np.full(components, 1.0 / components))

    def learn(self, found: Mixed) -> None:
        """Take note of the sums at the trial, and choose the next one."""
        prior = 1.0 / len(self.trial)
        value = found.total + prior * float(np.log(self.trial).sum()) - (self.rows + 1.0) * self.trial.sum()
        is_better = value >= self.value + 1e-4 * self.size * self.decrement
        if self.value > -math.inf and not is_better and self.size > 1e-10:
            self.size *= 0.5
            self.trial = self.at + self.size * self.step
            return
        self.at, self.value = self.trial, value
        gradient = found.gradient + prior / self.at - (self.rows + 1.0)
        bent = found.curvature + np.diag(prior / self.at**2)
        self.step = np.linalg.solve(bent, gradient).astype(np.float64)
        self.decrement = float(self.step @ gradient)
        if len(self.at) == 1 or self.decrement < NEARLY_THERE * self.rows:
            self._finish(found)
            return
        shrinking = self.step < 0.0
        room = -0.99 * self.at[shrinking] / self.step[shrinking]
        self.size = float(min(1.0, room.min(initial=1.0)))
        self.trial = self.at + self.size * self.step

    def _finish(self, found: Mixed) -> None:
        """Take the last step, of which the sums are known well enough from those before it."""
        last = np.maximum(self.at + self.step, 0.01 * self.at) - self.at
        total = found.total + found.gradient @ last - 0.5 * last @ found.curvature @ last
        weights = self.at + last
        self.trial = weights / weights.sum()
        self.total = float(total - self.rows * math.log(weights.sum()))
        self.is_done = True


@final
class HeldBlends:
    """The weights of blends, and their log-likelihoods: prepared once, asked many times.

    Parameters
    ----------
    folds
        The labels of the rows that count, besides those of validation rows; all by default.
    """

    def __init__(self, densities: HeldDensities, folds: Sequence[int] | None = None) -> None:
        self._densities = densities
        self._holdings = densities.holdings
        self._queries = densities.queries
        self._folds = tuple(range(self._holdings.folds) if folds is None else folds)
        self._kept: dict[Key, None] = {}  # by all workers, those asked for last at the end
        self._impossible: set[Key] = set()
        self._found: dict[Members, tuple[FloatArray, float]] = {}

    def totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of all rows of the folds; -inf where no component can be fitted."""
        self._require([tuple(members.tolist()) for members in families.each])
        return np.array([self._found[tuple(members.tolist())][1] for members in families.each])

    def weights(self, members: Members, usable: BoolArray | None = None) -> FloatArray:
        """Return the weights of `COMPONENTS`; 0 for those that cannot be fitted, or are not wanted.

        Parameters
        ----------
        usable
            The components that may have a weight; all by default.
        """
        if usable is None or usable.all():
            self._require([members])
            return self._found[members][0]
        return self._climbed([members], [usable])[0][0]

    def weights_of(self, families: FamilyBatch) -> FloatArray:
        """Families × components: their weights."""
        asked = [tuple(members.tolist()) for members in families.each]
        self._require(asked)
        return np.stack([self._found[members][0] for members in asked])

    def validation_totals(self, families: FamilyBatch) -> FloatArray:
        """Log-likelihood of the validation rows, with the weights that the others give."""
        asked = [tuple(members.tolist()) for members in families.each]
        self._require(asked)
        return self.totals_under(asked, [self._found[members][0] for members in asked], validation=True)

    def totals_under(
        self, families: Sequence[Members], weights: Sequence[FloatArray], *, validation: bool
    ) -> FloatArray:
        """Log-likelihood of the validation rows, or of the others, with weights that are known."""
        out = np.full(len(families), -np.inf)
        for some in self._batches(range(len(families)), families, validation=validation):
            chosen, given = [families[i] for i in some], [weights[i] for i in some]
            out[some] = self._retried(self._under, chosen, given, validation)
        return out

    def let_go(self) -> None:
        """Count on nothing that workers keep: others have them keep something else."""
        self._kept.clear()

    def _under(
        self, families: Sequence[Members], given: Sequence[FloatArray], validation: bool
    ) -> FloatArray:
        self._keep(families, validation=validation)
        out = np.full(len(families), -np.inf)
        mixings, numbers = [], []
        for number, (members, known) in enumerate(zip(families, given, strict=True)):
            weights = np.where(self._components(members, validation=validation), known, 0.0)
            if weights.sum() > 0.0:
                shares = weights / weights.sum()
                mixings.append(self._mixing(members, weights > 0.0, shares, validation=validation))
                numbers.append(number)
        for number, found in zip(numbers, self._mixed(mixings), strict=True):
            out[number] = found.total if found.usable.all() else -np.inf
        return out

    def _require(self, families: Sequence[Members]) -> None:
        """Find the weights that are not known yet."""
        missing = [members for members in dict.fromkeys(families) if members not in self._found]
        for some in self._batches(range(len(missing)), missing, validation=False):
            asked = [missing[i] for i in some]
            found = self._climbed(asked, [np.ones(len(COMPONENTS), dtype=np.bool_)] * len(asked))
            self._found.update(zip(asked, found, strict=True))

    def _climbed(
        self, families: Sequence[Members], wanted: Sequence[BoolArray]
    ) -> list[tuple[FloatArray, float]]:
        return self._retried(self._climb, families, wanted)

    def _climb(
        self, families: Sequence[Members], wanted: Sequence[BoolArray]
    ) -> list[tuple[FloatArray, float]]:
        """Return weights and log-likelihoods of families that fit into memory together."""
        self._keep(families, validation=False)
        rows = int(self._queries.queried.counts[list(self._folds)].sum())
        usable = [
            some & self._components(members, validation=False)
            for members, some in zip(families, wanted, strict=True)
        ]
        climbs = {i: _Climb.of(int(some.sum()), rows) for i, some in enumerate(usable) if some.any()}
        for _ in range(MOST_STEPS):
            left = [i for i, climb in climbs.items() if not climb.is_done]
            if not left:
                break
            mixings = [self._mixing(families[i], usable[i], climbs[i].trial, validation=False) for i in left]
            for i, found in zip(left, self._mixed(mixings), strict=True):
                if found.usable.all():
                    climbs[i].learn(found)
                    continue
                places = np.flatnonzero(usable[i])
                usable[i][places[~found.usable]] = False
                climbs[i] = _Climb.of(max(1, int(usable[i].sum())), rows)
                climbs[i].is_done = not usable[i].any()
        out = []
        for i, some in enumerate(usable):
            weights, total = np.zeros(len(COMPONENTS)), -math.inf
            if some.any() and i in climbs:
                weights[some], total = climbs[i].trial, climbs[i].total
            out.append((weights, total))
        return out

    def _mixed(self, asked: Sequence[Mixing]) -> list[Mixed]:
        """Have sums over all rows added up."""
        if not asked:
            return []
        found = self._queries.go_over(mix, asked, pinned=True)
        if any(one is None for one in found):
            raise _LostError
        return [added(parts) for parts in zip(*found, strict=True)]

    def _retried(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Call a function again if workers that kept densities died."""
        for _ in range(TIMES):
            try:
                return function(*arguments)
            except _LostError:
                self._kept.clear()
        raise ClusterError(
            f"workers lost the densities that they should keep {TIMES} times: look at their logs. They may "
            f"need more memory."
        )

    def _batches(
        self, numbers: Sequence[int], families: Sequence[Members], *, validation: bool
    ) -> Iterator[list[int]]:
        """Yield families that fit into memory together, by their numbers; those of the same columns first."""
        room = int(self._holdings.table_bytes // (8 * self._holdings.most_rows))
        together: list[int] = []
        keys: set[Key] = set()
        for number in sorted(numbers, key=lambda n: (len(families[n]), sorted(families[n]))):
            mine = set(self._keys(families[number], validation))
            if len(mine) > room:
                raise ClusterError(
                    f"blends need {8 * len(mine)} bytes for every row that a worker has, and one has "
                    f"{self._holdings.most_rows} rows: use more workers, or workers with more memory."
                )
            if together and len(keys | mine) > room:
                yield together
                together, keys = [], set()
            together.append(number)
            keys |= mine
        if together:
            yield together

    def _keep(self, families: Sequence[Members], *, validation: bool) -> None:
        """Have the workers keep what some families need."""
        needed = dict.fromkeys(key for members in families for key in self._keys(members, validation))
        missing = [key for key in needed if key not in self._kept and key not in self._impossible]
        room = int(self._holdings.table_bytes // (8 * self._holdings.most_rows))
        older = [key for key in self._kept if key not in needed]
        for key in older[: max(0, len(self._kept) + len(missing) - room)]:
            del self._kept[key]
        if not missing:
            return
        labels = self._labels(validation)
        found: dict[Key, list[Estimate]] = {}
        for number, key in enumerate(missing):
            variables = VariableSet(key.columns, key.dimension)
            estimates = self._densities.estimates(number, variables, labels, key.scale)
            if estimates is None:
                self._impossible.add(key)
            else:
                found[key] = estimates
        near = [key for key in found if len(key.columns) >= PAIRWISE and key.scale < 1.0]
        by_columns: dict[tuple[int, ...], list[Estimate]] = {}
        for key in [key for key in found if key not in near]:
            by_columns.setdefault(key.columns, []).extend(found[key])
        jobs = self._densities.jobs(by_columns, SHARED_GRID)
        refused = {missing[e.number] for job in jobs if job.lattice is None for e in job.estimates}
        near += [key for key in found if key in refused and self._has_few_pairs(key)]
        current = frozenset([*self._kept, *missing])
        for units in self._densities.units([job for job in jobs if job.lattice is not None]):
            self._read(units, missing, current)
        for asked in self._near({key: found[key] for key in near}):
            self._queries.go_over(add_near, asked, current, pinned=True)
        self._kept.update(dict.fromkeys(key for key in missing if key not in self._impossible))

    def _has_few_pairs(self, key: Key) -> bool:
        """Tell whether a density that no grid fits can be added up pair by pair; else it is impossible."""
        holdings = self._holdings
        pairs = float(self._queries.queried.counts[list(self._labels(key.validation))].sum())
        pairs *= float(holdings.training.counts.max())
        if key.scale < 1.0 or pairs <= MOST_PAIRS:
            return True
        self._impossible.add(key)
        warnings.warn(
            f"the density of {quoted(holdings.names[c] for c in key.columns)} needs a grid that does not fit "
            f"into memory: blends of these columns go without some of their kernels.",
            stacklevel=2,
        )
        return False

    def _near(self, found: Mapping[Key, Sequence[Estimate]]) -> Iterator[Near]:
        """Put densities of the same columns together, whose rows are read and sorted once."""
        holdings = self._holdings
        everything = 8 * holdings.rows * len(holdings.names)
        for columns in dict.fromkeys(key.columns for key in found):
            keys = tuple(key for key in found if key.columns == columns)
            estimates = [found[key] for key in keys]
            counts = [[holdings.training.counts[one.span] for one in some] for some in estimates]
            yield Near(
                columns,
                holdings.centre[list(columns)],
                keys,
                np.array([[one.whitener for one in some] for some in estimates]),
                np.array([[one.log_peak for one in some] for some in estimates]) - np.log(counts),
                rows_at_a_time(holdings.table_bytes),
                everything <= holdings.plan.cache_bytes,
                self._labels(keys[0].validation),
                holdings.where,
            )

    def _read(self, units: Sequence[Unit], keys: Sequence[Key], current: frozenset[Key]) -> None:
        """Have densities read at all rows and kept; those that tables do not have, too."""
        readings, estimates = self._densities.readings(units)
        asked = [
            Keeping(reading, keys[estimate.number])
            for reading, estimate in zip(readings, estimates, strict=True)
        ]
        for attempt in range(ATTEMPTS + 1):
            found = self._queries.go_over(keep, asked, current, pinned=True)
            left = [joined(parts) for parts in zip(*found, strict=True)]
            values = self._exact(asked, left)
            fillings, again = [], []
            for one, rest, exact in zip(asked, left, values, strict=True):
                few = rest.isolated.shape[1]
                worst = worst_height(one.reading, rest.heights, exact[few:])
                if worst > 0.0 and attempt < ATTEMPTS:
                    again.append(one._replace(reading=one.reading._replace(threshold=2.0 * worst)))
                elif worst > 0.0:
                    self._impossible.add(one.key)
                elif few:
                    fillings.append(Filling(one.key, rest.places, exact[:few]))
            if fillings and not all(self._queries.go_over(fill, fillings, pinned=True)):
                raise _LostError
            asked = again
            if not asked:
                return

    def _exact(self, asked: Sequence[Keeping], left: Sequence[Left]) -> list[FloatArray]:
        points = [np.concatenate([rest.isolated, rest.checks], axis=1) for rest in left]
        return self._densities.exact([one.reading for one in asked], points)

    def _components(self, members: Members, *, validation: bool) -> BoolArray:
        """Tell which components of a family can be fitted."""
        kernels = [
            all(key is None or key not in self._impossible for key in pair)
            for pair in self._pairs(members, validation)
        ]
        return np.array([*kernels, self._line(members, validation) is not None])

    def _mixing(
        self, members: Members, usable: BoolArray, weights: FloatArray, *, validation: bool
    ) -> Mixing:
        """Describe a mixture: weights are those of the usable components, or of all."""
        chosen = weights if len(weights) == usable.sum() else weights[usable]
        kernels = tuple(
            pair if is_usable else None
            for pair, is_usable in zip(self._pairs(members, validation), usable[:-1], strict=True)
        )
        line = self._line(members, validation) if usable[-1] else None
        return Mixing(members, kernels, line, chosen, validation, self._labels(validation))

    def _line(self, members: Members, validation: bool) -> Line | None:
        training, columns = self._holdings.training, np.array(members)
        labels = list(self._labels(validation))
        found = training.only(np.array(labels))
        some, their_variances, share = residual_directions(found.counts, found.scatters, columns)
        if share == 0.0:
            return None
        directions = np.full((len(training.counts), len(columns)), np.nan)
        variances = np.full(len(training.counts), np.nan)
        directions[labels], variances[labels] = some, their_variances
        return Line(directions, training.means[:, columns] + self._holdings.centre[columns], variances)

    def _labels(self, validation: bool) -> tuple[int, ...]:
        return (self._holdings.folds,) if validation else self._folds

    def _pairs(self, members: Members, validation: bool) -> list[tuple[Key, Key | None]]:
        """Return, for every scale, what is needed of a family: all columns, and the parents."""
        d, parents, within = len(members), members[:-1], (self._holdings.where, self._queries.where)
        return [
            (
                Key(tuple(sorted(members)), d, scale, validation, within),
                Key(parents, d, scale, validation, within) if parents else None,
            )
            for scale in SCALES
        ]

    def _keys(self, members: Members, validation: bool) -> list[Key]:
        return [key for pair in self._pairs(members, validation) for key in pair if key is not None]
