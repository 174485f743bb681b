"""Client-side handle to rows on workers: their moments, passes over them, and margins.

Margins are Yeo-Johnson transforms, fitted in a handful of passes. The exponent of a column makes a normal
density of its transformed values most likely, and that likelihood needs their number, mean and variance
alone. Every pass computes these for some exponents at a time, for all columns, ever closer to the best one;
at last a polynomial through them has its minimum there, to far more digits than anybody needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial, reduce
from operator import add
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.dask.client import Executor, require_workers
from spbn.dask.mapreduce import (
    Block,
    FoldAssignment,
    Plan,
    Survey,
    Where,
    add_by_label,
    collect,
    fold_blocks,
    held_moments,
    only_where,
    require_finite,
    survey,
)
from spbn.dask.order_statistics import order_statistics
from spbn.dask.sources import Source
from spbn.errors import DataError, quoted
from spbn.numerics.moments import Moments, MomentStack, leave_one_out
from spbn.numerics.spreads import FAR_OUT, LEVELS, Spreads, spreads_from_quantiles
from spbn.rows.memory import FEWEST_ROWS
from spbn.rows.store import Columns
from spbn.tables.columns import how_to_drop
from spbn.tables.table import Variable, correlated_pairs, require_spread
from spbn.transforms import GREATEST, LEAST, Margins, YeoJohnson, limits_of, log_density_gain, pays

T = TypeVar("T")

#: What a worker needs to run at all, and what it may have on top of that if it has no limit.
BYTES_AT_REST, BYTES_WITHOUT_LIMIT = 350 << 20, 2 << 30
MOST_COLLECTED_BYTES = 4 << 30  # of rows, for node types that cannot do with sums
NEARLY_ONE = 1.0 - 1e-13  # the correlation of copies, within rounding
EXPONENTS = 9  # of margins that are tried in a pass
PASSES = 3  # in which the interval becomes an eighth of what it was, each time
SHARE = 5  # of what a worker may use, this part is for columns that it keeps, and as much for tables


@dataclass(frozen=True, eq=False)
class Shards:
    """Rows over workers."""

    plan: Plan
    executor: Executor  # the workers, who know the plan
    #: The parts of the rows that one task takes, and where it is done. They are the same from the beginning
    #: to the end, whichever workers come and go, so that sums have the same rounding.
    batches: tuple[tuple[int, ...], ...]
    addresses: tuple[str, ...]
    centre: FloatArray  # what is subtracted from columns, so that large offsets cost no digits
    by_label: tuple[Moments, ...]  # moments of the rows of every fold, and last of the validation rows
    table_bytes: int  # how much the tables of one pass may take
    most_rows: int  # in any of the batches
    rows: int  # how many there are, whether they count or not
    again: Callable[..., Shards]  # makes the same rows with another assignment to folds, or other margins
    where: Where = ()  # discrete columns and level codes: only rows that have all of these count

    @classmethod
    def of(
        cls,
        source: Source,
        assignment: FoldAssignment,
        client: Any = None,
        *,
        missing: str = "error",
        margins: Margins | None = None,
    ) -> Shards:
        """Look at all rows once, transformed by `margins`, and refuse what cannot be learned from."""
        cache_bytes = _bytes_a_worker(client) // SHARE
        moves = {} if margins is None else dict(margins.columns)
        plan = Plan(
            uuid4().hex, source.names, source.chunks, assignment, {}, cache_bytes, moves, source.levels
        )
        executor = Executor(client, plan)
        looked = dict(executor.map(survey, [(part,) for part in range(len(plan.chunks))]))
        seen: dict[int, Survey] = {part: looked[part] for part in sorted(looked) if looked[part] is not None}
        if missing == "error":
            require_finite(plan, seen)
        seen = {part: found for part, found in seen.items() if found.rows}
        if not seen:
            raise DataError("there are no rows to learn from.")
        dropped = {part: found.dropped for part, found in seen.items() if len(found.dropped)}
        plan = replace(plan, dropped=dropped)
        parts = list(seen.values())
        centre: FloatArray = np.median([part.median for part in parts], axis=0)
        low, high = (
            np.min([part.low for part in parts], axis=0),
            np.max([part.high for part in parts], axis=0),
        )
        require_spread(plan.names, low, high, centre)
        moments = tuple(
            _centred(reduce(add, [part.moments[label] for part in parts]), centre)
            for label in range(assignment.folds + 1)
        )
        _require_distinct(plan, reduce(add, moments))
        slots = 1 if client is None else sum(require_workers(client).values())
        batches = _batches({part: found.rows for part, found in seen.items()}, slots)
        addresses = executor.addresses
        return cls(
            plan,
            Executor(client, plan),
            batches,
            tuple(addresses[number % len(addresses)] for number in range(len(batches))),
            centre,
            moments,
            cache_bytes,
            max(sum(seen[part].rows for part in batch) for batch in batches),
            sum(part.rows for part in parts),
            partial(cls.of, source, client=client, missing=missing, margins=margins),
        )

    def map(self, function: Callable[..., Any], *arguments: Any, pinned: bool = False) -> list[Any]:
        """Make a pass over all rows, and return what was found in every batch of parts, in their order.

        If it is `pinned`, every batch is done by the worker that did it before, if that is still there.
        """
        if self.where:
            function = partial(only_where, self.where, function)
        tasks = [(batch,) for batch in self.batches]
        found = dict(self.executor.map(function, tasks, self.addresses, arguments, pinned))
        return [found[number] for number in range(len(tasks))]

    def gather(
        self,
        answer: Callable[..., Any],
        asked: Sequence[Any],
        join: Callable[[Sequence[Any]], Any],
        needed: Sequence[Columns] | None = None,
        *,
        pinned: bool = False,
    ) -> list[Any]:
        """Have blocks of rows answer several requests in one pass, and join the answers to each.

        The columns that are `needed` are those of the requests by default.
        """
        columns = [one.columns for one in asked] if needed is None else needed
        found = self.map(partial(fold_blocks, answer, join, columns), asked, pinned=pinned)
        return [join(parts) for parts in zip(*found, strict=True)]

    @property
    def names(self) -> tuple[str, ...]:
        return self.plan.names

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(Variable(name, self.plan.levels.get(name, ())) for name in self.names)

    @cached_property
    def discrete(self) -> BoolArray:
        return np.array([variable.is_discrete for variable in self.variables])

    def within(self, where: Where, by_label: Sequence[Moments]) -> Shards:
        """Return only the rows that have certain levels, of which the moments are known."""
        centred = tuple(_centred(moments, self.centre) for moments in by_label)
        count = sum(moments.count for moments in by_label)
        return replace(self, where=where, by_label=centred, most_rows=min(self.most_rows, count))

    @cached_property
    def spreads(self) -> Spreads:
        """Order statistics of the rows in folds; those of discrete columns mean nothing."""
        return spreads_from_quantiles(self.quantiles)

    @cached_property
    def quantiles(self) -> FloatArray:
        """Quantiles of the rows in folds at `LEVELS`, levels × columns; 1 for discrete columns."""
        columns = np.flatnonzero(~self.discrete).tolist()
        rows = int(self.queried.counts[:-1].sum())
        ranks = np.quantile(np.arange(rows), LEVELS, method="inverted_cdf").astype(np.int64)
        found = np.ones((len(LEVELS), len(self.names)))
        found[:, columns] = order_statistics(self.gather, columns, ranks, rows).T
        return found

    @cached_property
    def held(self) -> Shards:
        """The same rows, in whose moments values far out count as the median."""
        every = [tuple(range(len(self.names)))]
        (found,) = self.gather(held_moments, [self.spreads], add_by_label, every)
        return replace(self, by_label=tuple(_centred(moments, self.centre) for moments in found))

    def training_labels(self, label: int) -> list[int]:
        """Return the labels of the rows that densities at a label are fitted to: other folds, or all."""
        return [m for m in range(self.folds) if m != label or self.folds == 1]

    def collect(self, columns: Columns, *, step: int = 1) -> tuple[FloatArray, IntArray]:
        """Bring columns of all rows here, in the order of the parts; return them, and the labels of rows.

        `step`: of how many rows of a part one is brought.
        """
        size = 8 * self.every.count * len(columns) // step
        if size > MOST_COLLECTED_BYTES:
            raise DataError(
                f"{quoted(self.names[column] for column in columns)} take {size / (1 << 30):.1f} GB, "
                f"which is more than is collected for a node type that needs all rows: use other node types."
            )
        parts = sorted(
            (one for batch in self.map(collect, columns, step) for one in batch), key=lambda one: one[0]
        )
        return np.concatenate([p[1] for p in parts], axis=1), np.concatenate([p[2] for p in parts])

    def answerable(self, labels: Sequence[int]) -> list[int]:
        """Return those of some labels that have rows, and others to fit something to: two at least."""
        return [m for m in labels if self.queried.counts[m] and self.training.counts[m] >= FEWEST_ROWS]

    @property
    def folds(self) -> int:
        """How many folds there are; validation rows have this label."""
        return self.plan.assignment.folds

    @cached_property
    def every(self) -> Moments:
        return reduce(add, self.by_label)

    @cached_property
    def training(self) -> MomentStack:
        """By label, the moments of the rows that densities are fitted to: the other folds, or all."""
        folds = self.by_label[:-1]
        others = leave_one_out(folds) if len(folds) > 1 else [folds[0]]
        return MomentStack.of([*others, reduce(add, folds)])

    @cached_property
    def queried(self) -> MomentStack:
        """By label, the moments of its rows."""
        return MomentStack.of(self.by_label)


def batched(items: Iterable[T], size: Callable[[T], float], limit: float) -> Iterator[list[T]]:
    """Yield items together, as many at a time as fit within a limit; one that does not fit is alone."""
    together: list[T] = []
    room = limit
    for item in items:
        if together and size(item) > room:
            yield together
            together, room = [], limit
        together.append(item)
        room -= size(item)
    if together:
        yield together


def _centred(moments: Moments, centre: FloatArray) -> Moments:
    return replace(moments, mean=moments.mean - centre if moments.count else moments.mean)


def _batches(rows: dict[int, int], places: int) -> tuple[tuple[int, ...], ...]:
    """Deal parts out so that every place has about the same number of rows, the largest parts first."""
    batches: list[list[int]] = [[] for _ in range(min(places, len(rows)))]
    loads = [0] * len(batches)
    for part in sorted(rows, key=lambda part: (-rows[part], part)):
        place = loads.index(min(loads))
        batches[place].append(part)
        loads[place] += rows[part]
    return tuple(tuple(sorted(batch)) for batch in batches)


def _bytes_a_worker(client: Any) -> int:
    """Return what a worker may use on top of what it needs to run."""
    if client is None:
        return BYTES_WITHOUT_LIMIT
    require_workers(client)
    infos = client.scheduler_info(n_workers=-1)["workers"].values()
    least = min(
        (info["memory_limit"] or 2 * BYTES_WITHOUT_LIMIT) // max(1, info["nthreads"]) for info in infos
    )
    return min(BYTES_WITHOUT_LIMIT, max(least - BYTES_AT_REST, least // 4))


def _require_distinct(plan: Plan, moments: Moments) -> None:
    """Refuse columns that are copies of others, or rescaled copies, as far as moments can tell."""
    names = [name for name in plan.names if name not in plan.levels]
    places = [plan.names.index(name) for name in names]
    scatter = moments.scatter[np.ix_(places, places)]
    for i, j in correlated_pairs(scatter, NEARLY_ONE):
        first, second = names[i], names[j]
        raise DataError(
            f"column {second!r} is a copy of column {first!r}, perhaps rescaled: {how_to_drop([second])}."
        )


class Spread(NamedTuple):
    """Sums of a column under each of some transforms: number, means, squared deviations from these.

    `slopes` is the sum of the logarithms of 1 + |z|, with the sign of z, the standardised values; `least` and
    `greatest` are the ends of these.
    """

    rows: int
    means: FloatArray
    squares: FloatArray
    slopes: float
    least: float
    greatest: float

    def add(self, other: Spread) -> Spread:
        rows = self.rows + other.rows
        share = other.rows / max(1, rows)
        shift = other.means - self.means
        return Spread(
            rows,
            self.means + share * shift,
            self.squares + other.squares + self.rows * share * shift**2,
            self.slopes + other.slopes,
            min(self.least, other.least),
            max(self.greatest, other.greatest),
        )

    def losses(self, exponents: FloatArray) -> FloatArray:
        """Return minus the log-likelihood of every transform, but for a constant."""
        return 0.5 * self.rows * np.log(self.squares / self.rows) - (exponents - 1.0) * self.slopes


class TransformRequest(NamedTuple):
    """A column, transforms of it to try, and bounds beyond which values count as something between them."""

    column: int
    transforms: Sequence[YeoJohnson]
    bounds: tuple[float, float]
    instead: float


def spreads(plan: Plan, block: Block, asked: TransformRequest) -> Spread:
    """Return the sums of a column under some transforms."""
    number, transforms, (low, high), instead = asked
    column = block.rows([number], tuple(range(plan.assignment.folds + 1)))[0]
    column = np.where((column >= low) & (column <= high), column, instead)
    means, squares = np.zeros(len(transforms)), np.zeros(len(transforms))
    if not len(column):
        return Spread(0, means, squares, 0.0, 0.0, 0.0)
    for k, transform in enumerate(transforms):
        moved = transform.forward(column)
        means[k] = moved.mean()
        squares[k] = np.sum((moved - means[k]) ** 2)
    z = (column - transforms[0].centre) / transforms[0].scale
    slopes = float(np.sum(np.sign(z) * np.log1p(np.abs(z))))
    return Spread(len(column), means, squares, slopes, float(z.min()), float(z.max()))


class GainRequest(NamedTuple):
    """A column, a transform, and the quantiles of the column."""

    column: int
    transform: YeoJohnson
    quantiles: FloatArray


def gains(plan: Plan, block: Block, asked: GainRequest) -> float:
    """Return what a transform of a column adds to the log-densities of rows."""
    column = block.rows([asked.column], tuple(range(plan.assignment.folds + 1)))[0]
    return log_density_gain(column, asked.transform, asked.quantiles) if len(column) else 0.0


def choose_margins(shards: Shards) -> Margins:
    """Return the transforms of the columns that are predicted better with them, without bounds."""
    found = fit_margins(shards, near=True).columns
    places = [shards.names.index(name) for name in found]
    asked = [
        GainRequest(c, transform, shards.quantiles[:, c])
        for c, transform in zip(places, found.values(), strict=True)
    ]
    totals = shards.gather(gains, asked, sum, [(c,) for c in places]) if asked else []
    return Margins(
        {
            name: transform
            for (name, transform), gain in zip(found.items(), totals, strict=True)
            if pays(gain, shards.every.count)
        }
    )


def fit_margins(shards: Shards, *, near: bool = False) -> Margins:
    """Return the transforms of the continuous columns that a `MarginsPlan` finds for all rows.

    `near`: values far out count as the median, as they do where margins are chosen.
    """
    every, places = (shards.held if near else shards).every, np.flatnonzero(~shards.discrete)
    if not len(places):
        return Margins({})
    centres = (every.mean + shards.centre)[places]
    scales = np.sqrt(np.diag(every.scatter) / every.count)[places]
    low, high = np.full(len(places), LEAST), np.full(len(places), GREATEST)
    limits, instead = np.full((2, len(shards.names)), np.inf) * [[-1.0], [1.0]], np.zeros(len(shards.names))
    if near:
        limits, instead = np.stack(shards.spreads.bounds(FAR_OUT)), shards.spreads.centre
    special: list[FloatArray] = []
    best = np.ones(len(places))
    for number in range(PASSES):
        exponents = np.stack([np.linspace(a, b, EXPONENTS) for a, b in zip(low, high, strict=True)])
        asked = [
            TransformRequest(
                c,
                [YeoJohnson(float(centres[i]), float(scales[i]), float(e)) for e in exponents[i]],
                (float(limits[0, c]), float(limits[1, c])),
                float(instead[c]),
            )
            for i, c in enumerate(places.tolist())
        ]
        found = shards.gather(spreads, asked, partial(reduce, Spread.add), [(c,) for c, *_ in asked])
        for i, spread in enumerate(found):
            losses = spread.losses(exponents[i])
            if number == 0:  # both ends and the middle, which changes nothing, are tried exactly
                special.append(losses[[0, EXPONENTS // 2, -1]])
            if number < PASSES - 1:
                place = int(np.argmin(losses))
                low[i], high[i] = exponents[i, max(0, place - 1)], exponents[i, min(place + 1, EXPONENTS - 1)]
            else:
                best[i] = _best(exponents[i], losses, special[i])
    return Margins(
        {
            shards.names[c]: YeoJohnson(
                float(centres[i]),
                float(scales[i]),
                float(best[i]),
                *limits_of(found[i].least, found[i].greatest),
            )
            for i, c in enumerate(places.tolist())
        }
    )


def _best(exponents: FloatArray, losses: FloatArray, special: FloatArray) -> float:
    """Return where the polynomial through losses is least, or an end or the middle if that is better."""
    inside = np.polynomial.Polynomial.fit(exponents, losses - losses.min(), EXPONENTS - 1)
    roots = inside.deriv().roots()
    real = roots[np.abs(roots.imag) < 1e-9].real
    candidates = [float(e) for e in real if exponents[0] <= e <= exponents[-1]]
    candidates += [float(exponents[0]), float(exponents[-1])]
    best = min(candidates, key=lambda e: float(inside(e)))
    least = float(inside(best)) + float(losses.min())
    place = int(np.argmin(special))
    known = (LEAST, 0.5 * (LEAST + GREATEST), GREATEST)[place]
    return known if special[place] < least and not math.isclose(known, best) else best
