"""From series of rows to a network over time, in one call."""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal, cast

import numpy as np

from spbn._base.arrays import BoolArray, IntArray
from spbn._base.checks import is_whole, whole
from spbn.errors import ArgumentError, DataError, KnowledgeError, argument, in_python, quoted, setting
from spbn.graphs.dag import Arc
from spbn.io.checkpoint import Checkpoint, describe_work
from spbn.joint import class_weights
from spbn.learning import hidden
from spbn.learning.learn import Extras, LearningInterrupted, learn_network
from spbn.learning.settings import LearnSettings, shows_options
from spbn.network import BayesianNetwork
from spbn.structure import Structure
from spbn.tables.columns import columns_of
from spbn.tables.lags import (
    LEAST_SEASON,
    SEASON_INPUTS,
    SEASONS,
    Runs,
    blocked_split,
    is_dated,
    is_season,
    lag_name,
    lagged_table,
    period_of,
    read_times,
    runs_of,
    with_season,
)
from spbn.tables.reader import TableLike, as_table
from spbn.tables.table import Table, require_distinct, require_variation
from spbn.timeseries.network import DynamicNetwork

#: A node of an arc: its name, or a variable and how many rows before.
LaggedNode = str | tuple[str, int]


@shows_options
def learn_dynamic(
    data: TableLike,
    *,
    lags: int = 1,
    series: str | None = None,
    time: str | None = None,
    season: str | float | None = None,
    **options: object,
) -> DynamicNetwork:
    """Learn a network over time: how every row depends on the rows before it in its series.

    Both networks of the result are learned like any other (see `learn`), but folds and validation rows are
    blocks of time: neighbouring rows are alike, so shuffled rows would be predicted from their own
    neighbours. Rows at the beginning of a block whose past is in another block are left out of the search,
    and of nothing else.

    Parameters
    ----------
    data
        A data frame (pandas, polars, pyarrow, ...) or a dict of columns. Rows are in the order of time,
        within their series.
    lags
        How many earlier rows a row may depend on. ``x[t-1]`` is the column x one row before.
    series
        The column that tells several series apart. None: all rows are one series. With `hidden`, every series
        has a class, and there must be several.
    time
        The column with the times of rows: numbers or dates, which increase in equal steps. A
        new series begins after a gap.
    season
        A season that rows depend on: "year", "week", "day" or "hour", if `time` holds dates; or the number of
        rows after which it begins again. Its phase, ``sin(season)`` and ``cos(season)``, is an input of every
        row that has others before it.
    options
        As for `learn`. The arcs in `required_arcs` and `forbidden_arcs` may name lagged columns, ``("x[t-1]",
        "y")``, or give the lag: ``(("x", 1), "y")``. Patterns match lagged columns, too. No arc points into
        the past. `tiers` say in which order columns follow within a row; rows before it come before all of
        them. With ``missing="drop"``, rows that have a missing value, or look back on one, are left out. Both
        searches note their steps in the same `checkpoint`.

    Returns
    -------
    A network fitted to all rows.

    Raises
    ------
    LearningInterrupted
        A `KeyboardInterrupt` that can give you the best network so far.

    Examples
    --------
    >>> import numpy as np, pandas as pd, spbn
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros(300)
    >>> for t in range(1, 300):
    ...     x[t] = 0.8 * x[t - 1] + rng.standard_normal()
    >>> dynamic = spbn.learn_dynamic(pd.DataFrame({"x": x}), model="gbn")
    >>> dynamic.transition.structure.arcs
    (('x[t-1]', 'x'),)
    """
    whole("lags", lags, 1)
    settings = LearnSettings.of("learn_dynamic", options)
    _refuse_unsuited(settings)
    table, runs, good = _read(data, series, time, settings)
    present = [runs.windows(width) for width in (lags + 1, lags)]
    windows, first = (found[good[found].all(axis=1)] for found in present)
    _require_long_series(runs, lags, windows)
    _require_many_series(runs, settings)
    required = [_named(arc, "required_arcs") for arc in settings.required_arcs]
    forbidden = [_named(arc, "forbidden_arcs") for arc in settings.forbidden_arcs]
    settings = settings.replace(required_arcs=required, forbidden_arcs=forbidden)

    rows = lagged_table(table, windows, range(lags + 1))
    period = _period(season, data, time, runs.step, table.names)
    if period is not None and time is not None:
        times = read_times(time, columns_of(data)[time], in_parts=True)
        rows = with_season(rows, times[windows[:, 0]], period)
    resolved = _resolve(settings, table.names, rows.names)
    _require_forward(resolved.required_arcs, table.names, lags)
    _require_news(rows, table.names, lags)
    inputs = rows.names[len(table.names) :]
    began = clock.perf_counter()
    of_row = runs.series_of_rows

    @cache
    def opened() -> tuple[Checkpoint, ...]:
        """Open the checkpoint of both searches, once the first of them is known to be possible."""
        known = settings.affecting_result() | {"lags": lags, "series": series, "time": time}
        known |= {} if season is None else {"season": season}
        beginnings = lagged_table(table, first, range(lags)).digest
        work = describe_work("search over time", known, rows) | {"beginnings": beginnings}
        assert settings.checkpoint is not None  # or nobody would open it
        return Checkpoint(settings.checkpoint, work).parts("transition", "static")

    def combine(static: BayesianNetwork, transition: BayesianNetwork) -> DynamicNetwork:
        static = _with_given(static, settings, "forbidden_arcs", "tiers")
        transition = _with_given(transition, settings, "required_arcs", "forbidden_arcs", "tiers")
        if transition.hidden is not None:  # the share of a class is that of series, not of rows
            static = static.replace(cpds={**static.cpds, hidden.NAME: transition.cpds[hidden.NAME]})
        return DynamicNetwork(
            static, transition, lags, series=series, time=time, step=runs.step, season=season
        )

    def learn_static(max_seconds: float | None, transition: BayesianNetwork | None) -> BayesianNetwork:
        limited, classes = resolved.replace(max_seconds=max_seconds), None
        if transition is None or transition.hidden is None:
            limited = limited.replace(hidden=None)
        else:
            columns = rows.select([variable.name for variable in transition.variables]).columns
            terms = transition.log_joint_of_columns(columns) - transition.log_shares
            weights = class_weights(transition.log_shares, terms, of_row[windows[:, 0]], runs.number)
            classes = weights.argmax(axis=1)[of_row[first[:, 0]]]
        return _learn_static(table, first, lags, limited, lambda: opened()[1], classes)

    try:
        transition = _learn(rows, resolved, windows, inputs, lambda: opened()[0], units=of_row[windows[:, 0]])
    except LearningInterrupted as stop:
        found = stop.network
        at_once = 0.0 if settings.algorithm_name != "pc" else None
        raise LearningInterrupted(
            stop.search,
            lambda: combine(learn_static(at_once, None), found()),  # type: ignore[arg-type, return-value]
        ) from None
    left = settings.max_seconds
    if left is not None:
        left = max(0.0, left - (clock.perf_counter() - began))
    try:
        static = learn_static(left, transition)
    except LearningInterrupted as stop:
        found = stop.network
        raise LearningInterrupted(stop.search, lambda: combine(found(), transition)) from None  # type: ignore[arg-type, return-value]
    return combine(static, transition)


def _period(
    season: str | float | None, data: TableLike, time: str | None, step: float | None, names: Sequence[str]
) -> float | None:
    """Return the length of a season in units of time, if there is one and it makes sense."""
    if season is None:
        return None
    shown = setting("season", season)
    if not is_season(season):
        raise ArgumentError(
            f"{argument('season')} must be one of {quoted(SEASONS)}, or a number of rows, {LEAST_SEASON} or "
            f"more. Got {season!r:.60}."
        )
    if time is None:
        raise ArgumentError(
            f"{shown} needs the times of rows, which say where in the season each is: name their column "
            f"({setting('time', ...)}). A column that counts rows will do for a number of rows."
        )
    if isinstance(season, str) and not is_dated(columns_of(data)[time]):
        raise ArgumentError(
            f"{shown} needs dates, and column {time!r} holds numbers: give the number of rows in a season."
        )
    period, taken = period_of(season, step), {variable.name for variable in SEASON_INPUTS} & set(names)
    if step is None or period < LEAST_SEASON * step:
        raise ArgumentError(f"{shown} has no phase: rows are {step} seconds apart, which is too far.")
    if taken:
        raise DataError(f"a column is called {taken.pop()!r}, as the phase of the season is: rename it.")
    return period


def _refuse_unsuited(settings: LearnSettings) -> None:
    """Refuse what makes no sense, or is not there yet, for rows that follow each other."""
    settings.require_unprepared()
    if settings.missing == "impute":
        raise ArgumentError(
            f"{setting('missing', 'impute')} is for rows that do not depend on each other. Use "
            f"{setting('missing', 'drop')}, which leaves out rows that look back on a hole, or fill the "
            f"holes first, for example by interpolation."
        )
    settings.refuse_atoms("rows over time have none yet")
    if isinstance(settings.start, Structure):
        raise ArgumentError(f"{argument('start')} must be a node type here, not a structure.")


def _read(
    data: TableLike, series: str | None, time: str | None, settings: LearnSettings
) -> tuple[Table, Runs, BoolArray]:
    """Return the variables, which rows follow each other, and which of them have no holes."""
    runs = runs_of(data, series=series, time=time)
    keys = [name for name in (series, time) if name is not None]
    dropped = [settings.drop] if isinstance(settings.drop, str) else list(settings.drop)
    drop = [*dropped, *(name for name in keys if name not in dropped)]
    if not set(columns_of(data)) - set(drop):
        raise DataError(f"the data has no columns besides {quoted(drop)}, which leaves nothing to learn.")
    has_holes = settings.missing == "drop"
    missing: Literal["keep", "error"] = "keep" if has_holes else "error"
    table = as_table(data, training=True, missing=missing, drop=drop, discrete=settings.discrete)
    good: BoolArray = np.isfinite(table.columns).min(axis=0)
    if has_holes:
        require_variation(table.take(np.flatnonzero(good)))
    return table, runs, good


def _require_long_series(runs: Runs, lags: int, windows: IntArray) -> None:
    """Refuse series that are too short to have a past, and mention runs between gaps that are."""
    longest: dict[str, int] = {}
    for name, length in zip(runs.series, runs.lengths.tolist(), strict=True):
        longest[name] = max(longest.get(name, 0), length)
    short = [name for name, length in longest.items() if length <= lags]
    if short:
        what = f"series {quoted(short)}" if short != [""] else "the data"
        has = "have" if len(short) > 1 else "has"
        raise DataError(
            f"{what} {has} no more than {lags} rows in a row, and with {lags} lags {lags + 1} are needed at "
            f"least: use fewer lags, or leave {'them' if len(short) > 1 else 'it'} out."
        )
    lost = int((runs.lengths <= lags).sum())
    if lost:
        warnings.warn(
            f"{lost} of {len(runs.lengths)} stretches between gaps in time have no more than {lags} rows, "
            f"too few to learn from.",
            stacklevel=3,
        )
    if len(windows) < 2:
        raise DataError(f"at least 2 rows with {lags} rows before them are needed. Got {len(windows)}.")


def _require_many_series(runs: Runs, settings: LearnSettings) -> None:
    """Refuse classes of series where there are too few."""
    least = 2 * settings.hidden if isinstance(settings.hidden, int) else 2
    if settings.has_class and runs.number < least:
        raise DataError(
            f"with {setting('hidden', settings.hidden)}, every series has a class, and at least {least} are "
            f"needed, told apart by the column {argument('series')}. Got {runs.number}."
        )


def _named(arc: object, what: str) -> Arc:
    """Return an arc by the names of its columns."""
    try:
        source, target = cast("tuple[LaggedNode, LaggedNode]", arc)
        return _name_of(source), _name_of(target)
    except (TypeError, ValueError):
        raise KnowledgeError(
            f"{argument(what)} must hold pairs (parent, child), each the name of a column or (name, lag). "
            f"Got {arc!r}."
        ) from None


def _name_of(node: LaggedNode) -> str:
    if isinstance(node, str):
        return node
    name, lag = node
    if not isinstance(name, str) or not is_whole(lag, 0):
        raise TypeError(node)
    return lag_name(name, lag)


def _resolve(settings: LearnSettings, names: Sequence[str], lagged: Sequence[str]) -> LearnSettings:
    """Return settings with arcs in the place of patterns, which match lagged columns too, and of tiers."""
    resolved = settings.replace(tiers=()).resolve(lagged)
    current = set(names)
    within = [arc for arc in resolved.required_arcs if current.issuperset(arc)]
    back = settings.replace(required_arcs=within, forbidden_arcs=()).resolve(names).forbidden_arcs
    return resolved.replace(forbidden_arcs=[*resolved.forbidden_arcs, *back])


def _require_forward(required: Iterable[Arc], names: Sequence[str], lags: int) -> None:
    past = {lag_name(name, lag) for name in names for lag in range(1, lags + 1)}
    for source, target in required:
        if target in past:
            raise KnowledgeError(
                f"{argument('required_arcs')} has {source} → {target}, and no arc points into the past: its "
                f"child must be one of {quoted(names)}."
            )


def _require_news(rows: Table, names: Sequence[str], lags: int) -> None:
    """Refuse variables of which the past says everything."""
    require_variation(rows)
    for name in names:
        if name in rows.levels:
            continue
        changes = rows.column(name) - rows.column(lag_name(name, 1))
        if np.ptp(changes) <= 1e-9 * np.ptp(rows.column(name)):
            is_constant = np.abs(changes).max() == 0
            how = "never changes within a series" if is_constant else "always changes by the same"
            raise DataError(
                f"column {name!r} {how}, so that the row before says all about it: leave it out "
                f"({setting('drop', [name])}{in_python(' in learn')})."
            )
    origin = {lag_name(name, lag): name for name in names for lag in range(lags + 1)}
    require_distinct(rows, origin=origin)


def _learn(
    rows: Table,
    settings: LearnSettings,
    windows: IntArray,
    inputs: Sequence[str],
    notes: Callable[[], Checkpoint],
    *,
    units: IntArray | None = None,
    classes: IntArray | None = None,
) -> BayesianNetwork:
    """Learn one of the two networks, with blocks of time as folds; where series have classes, with series."""
    split = None
    if settings.score_name == "cv":  # the search looks at folds and validation rows
        split = blocked_split(windows, folds=settings.folds, validation=settings.held_out, seed=settings.seed)
    own = settings.replace(drop=(), discrete=(), missing="error")
    notes_or_none = None if settings.checkpoint is None else notes
    extras = Extras(inputs=inputs, split=split, notes=notes_or_none, units=units, classes=classes)
    network = learn_network(rows, own, extras)
    recorded = {**network.record.settings, "missing": settings.missing}
    # Data has columns that no node needs: rows are recognised by the others.
    needed = rows.select([variable.name for variable in network.variables])
    return network.replace(record=replace(network.record, settings=recorded, data_hash=needed.digest))


def _learn_static(
    table: Table,
    windows: IntArray,
    lags: int,
    settings: LearnSettings,
    notes: Callable[[], Checkpoint],
    classes: IntArray | None,
) -> BayesianNetwork:
    """Learn the network of the first rows: from all rows, as wherever a series begins.

    `classes`: of the rows, if they have a hidden class.
    """
    rows = lagged_table(table, windows, range(lags))
    lag_of = {lag_name(name, lag): lag for lag in range(lags) for name in table.names}
    into_past = [(a, b) for a in rows.names for b in rows.names if lag_of[a] < lag_of[b]]
    required = _in_every_row(settings.required_arcs, table.names, lags)
    forbidden = [*_in_every_row(settings.forbidden_arcs, table.names, lags), *into_past]
    own = settings.replace(required_arcs=required, forbidden_arcs=forbidden)
    return _learn(rows, own, windows, (), notes, classes=classes)


def _with_given(network: BayesianNetwork, settings: LearnSettings, *names: str) -> BayesianNetwork:
    """Record some settings as they were given, not as they were resolved."""
    given = settings.plain()
    recorded = {**network.record.settings, **{name: given[name] for name in names}}
    return network.replace(record=replace(network.record, settings=recorded))


def _in_every_row(arcs: Iterable[Arc], names: Sequence[str], lags: int) -> list[Arc]:
    """Return arcs between rows, each wherever both of its ends are among the first ones."""
    parts = {lag_name(name, lag): (name, lag) for name in names for lag in range(lags + 1)}
    moved = []
    for source, target in arcs:
        (a, i), (b, j) = parts[source], parts[target]
        moved += [(lag_name(a, i + k), lag_name(b, j + k)) for k in range(lags - max(i, j))]
    return list(dict.fromkeys(moved))
