"""Rows with holes: predicted, filled in, or integrated out.

Every row is a case of its own. Where the answer is exact, rows with the same pattern of holes are answered
together; holes in discrete columns may even differ, as long as sums over all of these columns cost little.
All other rows are answered together by particles, whatever their patterns. A hidden class is one more hole of
every row: where that is not exact as a whole, every class is answered by itself, and weighs by its evidence.

Rows that a network was learned from need care. A network of kernels has a kernel on every such row. If the
row had holes, they were filled before, and the kernel sits on what they were filled with: asked about the row
again, a narrow kernel would only repeat that. So rows are recognised by their values, and answered by a
network without the kernels that may be their own (`without_themselves`).

While a network is learned, `gibbs_sweeps` draw holes that have been filled before anew, one node after the
other, given everything else. A hole's new value is chosen among its present one and some candidates, weighted
by what the node's density and its children say to them (iterated sampling importance resampling). That leaves
the posterior of the holes as it is, whatever the number of candidates, and costs little: no row needs more
than a few densities. Half of the candidates are drawn given the parents. That is hopeless if a child is
nearly a function of the node, so the other half comes from what the node and its children would say together
if they were lines.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray, Seed, generator, relative_weights
from spbn._base.checks import choice, whole
from spbn._base.lazy import nw, pd
from spbn.errors import ArgumentError, DataError, SpbnWarning, quoted
from spbn.inference import exact, particles
from spbn.inference.exact import Plan
from spbn.inference.particles import Particles, Target
from spbn.inference.problem import EvidenceRows
from spbn.inference.query import split_by_method
from spbn.joint import Joint, as_data
from spbn.nodes.base import CPD, Linear
from spbn.tables.columns import named_by_text, values_like
from spbn.tables.reader import as_table, frame_like, is_polars
from spbn.tables.table import Table, Variable

STATISTICS = ("mean", "median", "mode")
PARTICLES = 500  # for a row
MOST_AT_ONCE = 200_000  # particles of all rows that are answered together
CELLS_A_PARTICLE = 10  # of tables, which take as much memory as a particle
WORTH_TOGETHER = 100_000  # cells for every row, below which rows with other holes are answered together
ENOUGH = 0.2  # of the particles, which weighting must be worth
LOST = 0.06  # of the particles: worth less, they have lost their way along a line
FEWEST = 10  # independent draws that the answer to a row should be worth
AROUND_MODE = 0.1  # share of the mass whose shortest interval the mode is in the middle of

CANDIDATES = 16
SWEEPS = 5
GROUPS = 10  # rows that are left out together are a tenth of those that are recognised
#: A kernel that shares what is known of a row with more others than these says little about the row alone;
#: times the number of fillings, if the network was fitted to several.
MOST_ALIKE = 3


def log_density_of_observed(
    network: Joint, table: Table, *, n: int = PARTICLES, seed: Seed = 0, warn: bool = False
) -> FloatArray:
    """Return the log-density of what is there in every row of a table with holes.

    `warn` says whether to warn of rows whose answers rest on few draws.
    """
    out, worth = np.empty(table.rows), np.full(table.rows, np.inf)
    whole = np.isfinite(table.columns).all(axis=0)
    if whole.any():
        out[whole] = network.contributions(table.take(np.flatnonzero(whole))).sum(axis=1)
    rows = np.flatnonzero(~whole)
    if len(rows):
        holed = table.take(rows)
        for part, answer in _answers(evidence_of(network, holed), n, generator(seed), draws=False):
            out[rows[part]], worth[rows[part]] = answer.log_evidence, answer.effective
        # What the margins add to the log-density of the values that are present.
        nodes = [node for node in network.nodes if node in holed.names]
        slopes = network.log_slopes(holed, nodes)
        out[rows] += np.where(np.isfinite(holed.select(nodes).columns), slopes, 0.0).sum(axis=0)
    if warn:
        _warn_of_few_draws(worth)
    return out


def class_probabilities(network: Joint, table: Table, *, n: int = PARTICLES, seed: Seed = 0) -> FloatArray:
    """Return the probability of every class given what is there in every row: rows × classes."""
    assert network.class_variable is not None
    logs = np.empty((len(network.class_variable.levels), table.rows))
    whole = np.isfinite(table.columns).all(axis=0)
    if whole.any():
        logs[:, whole] = network.log_joint_of_columns(np.ascontiguousarray(table.columns[:, whole]))
    rows, rng = np.flatnonzero(~whole), generator(seed)
    if len(rows):
        for level, cases in enumerate(evidence_of(network, table.take(rows)).by_class()):
            for part, answer in _answers(cases, n, rng, draws=False):
                logs[level, rows[part]] = answer.log_evidence
    _require_possible(logs.max(axis=0), np.arange(table.rows))
    weights = relative_weights(logs, axis=0)
    return np.ascontiguousarray((weights / weights.sum(axis=0)).T)


def with_classes(network: Joint, table: Table) -> Table:
    """Return a table with a column for the most probable class of every row, if the network has classes."""
    if network.hidden is None:
        return table
    return network.with_class(table, class_probabilities(network, table).argmax(axis=1))


def imputations(network: Joint, data: Any, *, n: int, seed: Seed = 0) -> list[pd.DataFrame]:
    """Fill holes with draws given the rest of a row, n times; see `BayesianNetwork.imputations`."""
    whole("n", n, 1)
    table = as_table(data, variables=network.variables, missing="keep")
    holes = np.isnan(table.columns)
    filled = impute_table(network, table, draws=n, seed=seed, warn=True)
    return [_frame(network, part, holes, data) for part in filled]


def impute_table(
    network: Joint, table: Table, *, draws: int = 1, seed: Seed = 0, warn: bool = False
) -> list[Table]:
    """Fill the holes of a table, in the units of the data, with draws.

    Rows that the network was learned from are filled without their own kernels. `warn` says whether to warn
    of rows whose answers rest on few independent draws.
    """
    holed = np.flatnonzero(~np.isfinite(table.columns).all(axis=0))
    out = [table.columns.copy() for _ in range(draws)]
    rng, worth = generator(seed), np.full(table.rows, np.inf)
    for others, mine in without_themselves(network, table.take(holed)):
        rows = holed[mine]
        cases = evidence_of(others, table.take(rows))
        for part, answer in _answers(cases, max(PARTICLES // 5, 2 * draws), rng):
            _require_possible(answer.log_evidence, rows[part])
            worth[rows[part]] = answer.effective
            chosen = particles.resample(answer.log_weights, draws, rng)
            for case, row in enumerate(part):
                values = answer.states[:, case][:, rng.permutation(chosen[case])]
                for number, columns in enumerate(out):
                    for k in np.flatnonzero(~np.isfinite(columns[:, rows[row]])):
                        name = table.names[k]
                        value = values[[cases.place[name]], number]
                        columns[k, rows[row]] = network.in_data_units(name, value)[0]
    if warn:
        _warn_of_few_draws(worth)
    return [table.with_columns(columns) for columns in out]


def predict(
    network: Joint, data: Any, targets: Sequence[str], *, statistic: str = "mean", seed: Seed = 0
) -> pd.DataFrame:
    """Predict columns from the others, row by row; see `BayesianNetwork.predict`."""
    choice("statistic", statistic, STATISTICS)
    wanted = [targets] if isinstance(targets, str) else list(targets)
    unknown = [name for name in wanted if name not in network.nodes]
    if unknown or not wanted:
        raise ArgumentError(
            f"targets must name variables of the network, {quoted(network.nodes)}. Got "
            f"{quoted(unknown) or 'none'}."
        )
    table = as_table(data, variables=network.variables, missing="keep", absent=True)
    columns = table.columns.copy()
    unknown = [network.marks.get(name, name) for name in wanted if name != network.hidden]
    columns[[table.index(name) for name in unknown]] = np.nan
    cases = evidence_of(network, table.with_columns(columns))
    found = {name: np.empty(table.rows) for name in wanted}
    rng, worth = generator(seed), np.full(table.rows, np.inf)
    rest = np.flatnonzero(~_predict_exactly(cases, wanted, statistic, found))
    for some, answer in _answers(cases.only(rest), PARTICLES, rng):
        part = rest[some]
        _require_possible(answer.log_evidence, part)
        worth[part] = answer.effective
        weights = np.exp(answer.log_weights - answer.log_weights.max(axis=1, keepdims=True))
        for name in wanted:
            values = network.in_data_units(name, answer.states[cases.place[name]])
            found[name][part] = _summary(cases.variables[cases.place[name]], values, weights, statistic)
    _warn_of_few_draws(worth)
    result = {name: as_data(cases.variables[cases.place[name]], values) for name, values in found.items()}
    return frame_like(data, result)


def _predict_exactly(
    cases: EvidenceRows, wanted: Sequence[str], statistic: str, found: Mapping[str, FloatArray]
) -> BoolArray:
    """Put in predictions that need no draws; return for which cases."""
    done = np.zeros(cases.number, dtype=bool)
    places = {name: cases.place[name] for name in wanted}
    numbers = {k for k in places.values() if not cases.variables[k].is_discrete}
    for rows, plan in _plans(cases, frozenset(places.values())):
        mixed = {k for block in plan.blocks if block.scope or cases.network.margins for k in block.nodes}
        if statistic == "mode" and mixed & numbers:  # which draws have to show
            continue
        for part in _chunks(rows, plan.cost // CELLS_A_PARTICLE):
            solution = exact.Solution(cases.only(part), plan)
            _require_possible(solution.log_evidence, part)
            for name, k in places.items():
                found[name][part] = _exact_summary(cases, k, solution, statistic)
        done[rows] = True
    return done


def _exact_summary(cases: EvidenceRows, k: int, solution: exact.Solution, statistic: str) -> FloatArray:
    """Return one number for every case: a prediction, or the place of the most probable level."""
    name, network = cases.nodes[k], cases.network
    if cases.variables[k].is_discrete:
        return solution.probabilities(k).argmax(axis=1).astype(np.float64)
    normals = solution.normals(k)
    if statistic == "median":
        return network.in_data_units(name, normals.quantile(np.array([0.5]))[:, 0])
    return normals.mean(None if network.margins is None else partial(network.in_data_units, name))


def _plans(cases: EvidenceRows, wanted: Set[int]) -> Iterator[tuple[IntArray, Plan]]:
    """Yield rows that have exact answers, and the plan of these.

    If nodes are wanted, only their answers have to be exact; otherwise those of all that have a say.
    """

    def planned(rows: IntArray) -> Plan | None:
        plan, sampled = split_by_method(cases.only(rows), "auto", wanted)
        return plan if plan.solved >= wanted and (wanted or not sampled) else None

    continuous = [not variable.is_discrete for variable in cases.variables]
    for rows in _patterns(cases.unknown[:, continuous]):
        plan = planned(rows)
        if plan is not None and plan.cost <= WORTH_TOGETHER:
            yield rows, plan
            continue
        for same in _patterns(cases.unknown[rows]):
            plan = planned(rows[same[:1]])
            if plan is not None:
                yield rows[same], plan


def evidence_of(network: Joint, table: Table) -> EvidenceRows:
    """Return the rows of a table as cases."""
    for name in network.inputs:
        if np.isnan(table.column(name)).any():
            raise DataError(
                f"column {name!r} is an input of the network, which says nothing about it: its values must "
                f"all be there. Fill them, or leave such rows out."
            )
    moved = network.with_class(network.transformed(table))
    return EvidenceRows(
        network, moved.select(network.order).columns.T.copy(), fixed=frozenset(network.inputs)
    )


def _answers(
    cases: EvidenceRows, n: int, rng: np.random.Generator, *, draws: bool = True
) -> Iterator[tuple[IntArray, Particles]]:
    """Yield numbers of cases and their particles; if no draws are needed, none where the answer is exact."""
    left = np.ones(cases.number, dtype=bool)
    for rows, plan in _plans(cases, frozenset()):
        left[rows] = False
        for some in _chunks(rows, max(n, plan.cost // CELLS_A_PARTICLE)):
            yield some, _exactly(cases.only(some), plan, n if draws else 0, rng)
    classes = 1 if cases.network.class_variable is None else len(cases.network.class_variable.levels)
    for some in _chunks(np.flatnonzero(left), n * classes):
        part = cases.only(some)
        yield some, _by_particles(part, n, rng) if part.unknown_class is None else _by_class(part, n, rng)


def _by_class(cases: EvidenceRows, n: int, rng: np.random.Generator) -> Particles:
    """Answer cases under every class by itself."""
    found = []
    for given in cases.by_class():
        states = np.empty((len(cases.nodes), cases.number, n))
        log_weights = np.zeros((cases.number, n))
        log_evidence, effective = np.empty((2, cases.number))
        for part, answer in _answers(given, n, rng):
            states[:, part], log_weights[part] = answer.states, answer.log_weights
            log_evidence[part], effective[part] = answer.log_evidence, answer.effective
        found.append(Particles(states, log_weights, log_evidence, np.zeros(cases.number), effective))
    return particles.mix(found)


def _chunks(rows: IntArray, n: int) -> Iterator[IntArray]:
    step = max(1, MOST_AT_ONCE // max(n, 1))
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _exactly(cases: EvidenceRows, plan: Plan, n: int, rng: np.random.Generator) -> Particles:
    solution = exact.Solution(cases, plan)
    possible = np.flatnonzero(np.isfinite(solution.log_evidence))  # there is nothing to draw from elsewhere
    states = np.tile(cases.known.T[:, :, None], n)
    if n and len(possible):
        chosen = np.ascontiguousarray(states[:, possible])
        for k, values in solution.draw(n, rng).items():
            chosen[k] = values[possible]
        particles.draw_rest(cases.only(possible), chosen, rng)
        states[:, possible] = chosen
    zeros = np.zeros(cases.number)
    weights, without_end = np.zeros((cases.number, n)), np.full(cases.number, np.inf)
    return Particles(states, weights, solution.log_evidence, zeros, without_end, "exact")


def _by_particles(cases: EvidenceRows, n: int, rng: np.random.Generator) -> Particles:
    """Weigh forward samples of all cases, and temper those that are worth little.

    Those that are worth little even then are answered again, pattern by pattern, with sums over lines.
    """
    found = particles.sample_by_weighting(Target.whole(cases), n, rng)
    poor = np.flatnonzero(found.effective < ENOUGH * n)
    if len(poor):
        part = Target.whole(cases.only(poor))
        _put(found, poor, particles.sample_by_tempering(part, found.states[:, poor], rng))
    lost = poor[found.effective[poor] < LOST * n]
    for same in _patterns(cases.unknown[lost]):
        part = Target.whole(cases.only(lost[same])).without_lines()
        if part.blocks:
            better = particles.sample_by_weighting(part, n, rng)
            if (better.effective < ENOUGH * n).any():
                better = particles.sample_by_tempering(part, better.states, rng)
            _put(found, lost[same], better)
    particles.draw_rest(cases, found.states, rng)
    return found


def _put(found: Particles, rows: IntArray, better: Particles) -> None:
    """Replace the particles of some cases, in place, where others have reached what is known."""
    reached = np.isfinite(better.log_evidence)
    chosen = rows[reached]
    found.states[:, chosen] = better.states[:, reached]
    found.log_weights[chosen] = better.log_weights[reached]
    found.log_evidence[chosen] = better.log_evidence[reached]
    found.effective[chosen] = better.effective[reached]


def _warn_of_few_draws(worth: FloatArray) -> None:
    """Warn of rows that hardly any draw has found."""
    poor = np.flatnonzero(worth < FEWEST)
    if len(poor):
        more = f" and {len(poor) - 1:,} more" if len(poor) > 1 else ""
        warnings.warn(
            SpbnWarning(
                f"the answer to row {poor[0] + 1} (counted from 1){more} rests on fewer than {FEWEST} "
                f"independent draws: what is known there is far from what the network expects. Check the "
                f"values against the data."
            ),
            stacklevel=4,
        )


def _require_possible(log_evidence: FloatArray, rows: IntArray) -> None:
    """Refuse rows of which nothing can be said, because what is there is impossible."""
    impossible = rows[~np.isfinite(log_evidence)]
    if len(impossible):
        raise DataError(
            f"what is known of row {impossible[0] + 1}, counted from 1, is impossible under the network: "
            f"correct the row, or leave it out."
        )


def _patterns(holes: BoolArray) -> list[IntArray]:
    """Return the rows of every pattern of holes."""
    _, which = np.unique(holes, axis=0, return_inverse=True)
    return [np.flatnonzero(which.ravel() == number) for number in range(int(which.max(initial=-1)) + 1)]


def _summary(variable: Variable, values: FloatArray, weights: FloatArray, statistic: str) -> FloatArray:
    """Return one number for every case, from cases × particles."""
    if variable.is_discrete:
        shares = [(weights * (values == level)).sum(axis=1) for level in range(len(variable.levels))]
        return np.argmax(np.stack(shares), axis=0).astype(np.float64)
    if statistic == "mean":
        return (weights * values).sum(axis=1) / weights.sum(axis=1)
    order = np.argsort(values, axis=1)
    ranked, mass = np.take_along_axis(values, order, axis=1), np.take_along_axis(weights, order, axis=1)
    if statistic == "median":
        reached = np.cumsum(mass, axis=1) >= 0.5 * mass.sum(axis=1, keepdims=True)
        return ranked[np.arange(len(ranked)), reached.argmax(axis=1)]
    return _modes(ranked, mass)


def _modes(ranked: FloatArray, mass: FloatArray) -> FloatArray:
    """Return the middle of the shortest interval that holds a share of the mass, for every case."""
    out = np.empty(len(ranked))
    for case, (values, weights) in enumerate(zip(ranked, mass, strict=True)):
        upto = np.cumsum(weights) / weights.sum()
        ends = np.searchsorted(upto, upto - weights / weights.sum() + AROUND_MODE)
        inside = ends < len(values)
        widths = np.where(inside, values[np.minimum(ends, len(values) - 1)] - values, np.inf)
        best = int(widths.argmin())
        out[case] = 0.5 * (values[best] + values[min(int(ends[best]), len(values) - 1)])
    return out


def _frame(network: Joint, table: Table, holes: BoolArray, data: Any) -> pd.DataFrame:
    """Return the data as a frame in which the holes are filled, and everything else is as it was."""
    if network.preparation is not None and not network.preparation.is_plain:
        data = network.preparation.frame(data)
    given = named_by_text(data)
    if is_polars(given):
        return _polars_frame(network, table, holes, given)
    if isinstance(given, pd.DataFrame):
        frame = given.copy()
    else:
        frame = pd.DataFrame(given if isinstance(given, Mapping) else nw.from_native(given).to_pandas())
    for variable, column, hole in zip(network.variables, table.columns, holes, strict=True):
        if hole.any():
            old = frame[variable.name]
            drawn: Any = column[hole]
            if variable.is_discrete:
                drawn = values_like(old, [variable.levels[int(code)] for code in drawn])
            values = old.to_list()
            for row, value in zip(np.flatnonzero(hole).tolist(), drawn, strict=True):
                values[row] = value
            kind = None
            if isinstance(old.dtype, pd.CategoricalDtype):
                known = old.cat.categories
                kind = pd.CategoricalDtype(
                    [*known, *dict.fromkeys(v for v in drawn if v not in known)], old.cat.ordered
                )
            frame[variable.name] = pd.Series(values, index=frame.index, dtype=kind)
    return frame.set_axis(data.columns, axis=1) if isinstance(data, pd.DataFrame) else frame


def _polars_frame(network: Joint, table: Table, holes: BoolArray, data: Any) -> Any:
    """Return the same of a polars frame."""
    frame = nw.from_native(data).lazy().collect(backend="polars")
    filled = []
    for variable, column, hole in zip(network.variables, table.columns, holes, strict=True):
        if hole.any() and variable.is_discrete:
            old = frame[variable.name]
            levels = iter(values_like(old.to_pandas(), [variable.levels[int(code)] for code in column[hole]]))
            values = [next(levels) if is_hole else v for v, is_hole in zip(old.to_list(), hole, strict=True)]
            filled.append(nw.new_series(variable.name, values, old.dtype, backend="polars"))
        elif hole.any():
            filled.append(nw.new_series(variable.name, column, backend="polars"))
    return frame.with_columns(filled).to_native()


def gibbs_sweeps(
    network: Joint,
    filled: Table,
    holes: BoolArray,
    rng: np.random.Generator,
    *,
    sweeps: int = SWEEPS,
    candidates: int = CANDIDATES,
) -> Table:
    """Return a filled table, in the units of the data, with other draws in its holes: columns × rows."""
    order = network.structure.dag.topological_order()
    values = network.transformed(filled).select(order).columns.copy()
    cases = EvidenceRows(network, values.T)
    lines = [cases.cpd(node).nearest_line() for node in order]
    missing = {k: np.flatnonzero(holes[filled.index(node)]) for k, node in enumerate(order)}
    for _ in range(sweeps):
        for k, rows in missing.items():
            if len(rows):
                values[k, rows] = _redraw(cases, lines, k, values[:, rows], candidates, rng)
    columns = filled.columns.copy()
    for k, rows in missing.items():
        columns[filled.index(order[k]), rows] = network.in_data_units(order[k], values[k, rows])
    return filled.with_columns(columns)


def _redraw(
    cases: EvidenceRows,
    lines: list[Linear | None],
    k: int,
    values: FloatArray,
    candidates: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return new values of a node for nodes × rows: chosen among the present ones and some candidates."""
    tried = np.repeat(values, candidates, axis=1)
    drawn = cases.draw(k, tried, rng)
    by_lines = _by_lines(cases, lines, k, tried)
    if by_lines is not None:
        mean, deviation = by_lines
        chosen = rng.random(len(drawn)) < 0.5
        drawn = np.where(chosen, mean + deviation * rng.standard_normal(len(drawn)), drawn)
    drawn[::candidates] = values[k]
    tried[k] = drawn
    log_weights = np.zeros(len(drawn))
    for child in cases.children[k]:
        log_weights += cases.log_density(child, tried)
    if by_lines is not None:
        # Half of the candidates come from the lines: divided by the mixture of both densities, they weigh as
        # much as if all had been drawn given the parents.
        z = (drawn - mean) / deviation
        own = cases.log_density(k, tried)
        log_weights -= np.logaddexp(0.0, -0.5 * z * z - math.log(deviation * math.sqrt(2.0 * math.pi)) - own)
    return drawn[_choose(log_weights.reshape(-1, candidates), rng)]


def _by_lines(
    cases: EvidenceRows, lines: list[Linear | None], k: int, values: FloatArray
) -> tuple[FloatArray, float] | None:
    """Return mean and standard deviation of a node given everything else, if all were lines.

    None if the node has no children, so that nothing but its parents matters, or if it is not near a line.
    """
    line, said = lines[k], [found for c in cases.children[k] if (found := lines[c]) is not None]
    if line is None or not said:
        return None
    precision = 1.0 / line.variance
    shift = -_residual(cases, line, values) * precision
    for other in said:
        slope = other.coefficients[other.parents.index(line.node)]
        precision += slope * slope / other.variance
        shift = shift + slope * _residual(cases, other, values) / other.variance
    return values[k] + shift / precision, math.sqrt(1.0 / precision)


def _residual(cases: EvidenceRows, line: Linear, values: FloatArray) -> FloatArray:
    """Return how far a node is from its line, for nodes × rows."""
    out: FloatArray = values[cases.place[line.node]] - line.intercept
    for parent, slope in zip(line.parents, line.coefficients, strict=True):
        out = out - slope * values[cases.place[parent]]
    return out


def _choose(log_weights: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one of every row's candidates by its weight; its place among the candidates of all rows."""
    rows, candidates = log_weights.shape
    bounds = np.cumsum(relative_weights(log_weights), axis=1)
    places = (rng.random((rows, 1)) * bounds[:, -1:] >= bounds).sum(axis=1)
    places[bounds[:, -1] == 0.0] = 0  # nothing is possible: the present value stays
    return np.arange(rows) * candidates + np.minimum(places, candidates - 1)


def without_themselves(network: Joint, table: Table) -> Iterator[tuple[Joint, IntArray]]:
    """Yield networks, and the rows to ask them about: each network lacks the kernels of its rows.

    The table is in the units of the data, and NaN is unknown.
    """
    rows = network.with_class(network.transformed(table))
    kernels = {
        node: cpd.kernels_on(rows.select((*cpd.parents, node)).columns) for node, cpd in network.cpds.items()
    }
    recognised = _recognised(kernels, table.rows)
    others = np.setdiff1d(np.arange(table.rows), recognised)
    # A row has one kernel of a node for every filling of its table, at most.
    most = max((cpd.kernel_rows for cpd in network.cpds.values()), default=0)
    copies = max(1, most // (network.record.rows or max(most, 1)))
    if len(others):
        yield network, others
    for number in range(min(GROUPS, len(recognised))):
        mine = recognised[number::GROUPS]
        cpds = dict(network.cpds) | {
            node: _without(network.cpds[node], [found[row] for row in mine], MOST_ALIKE * copies)
            for node, found in kernels.items()
        }
        yield network.replace(cpds=cpds), mine


def _recognised(kernels: Mapping[str, list[IntArray | None]], rows: int) -> IntArray:
    """Return the rows that agree with a kernel of every node of which they have a value."""
    known = np.zeros(rows, dtype=bool)
    strange = np.zeros(rows, dtype=bool)
    for found in kernels.values():
        for row, mine in enumerate(found):
            known[row] |= mine is not None
            strange[row] |= mine is not None and not len(mine)
    return np.flatnonzero(known & ~strange)


def _without(cpd: CPD, kernels: list[IntArray | None], most: int) -> CPD:
    """Leave kernels out that may be those of the rows themselves, unless they are more than these."""
    own = [mine for mine in kernels if mine is not None and len(mine) <= most]
    return cpd.without(np.unique(np.concatenate([np.empty(0, dtype=np.int64), *own])))
