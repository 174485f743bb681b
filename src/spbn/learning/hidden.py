"""Classes of rows that no column tells: how many there are, and which row belongs to which.

Rows are first divided by Gaussian mixtures of the transformed columns, from several starts. Then a search and
a new division take turns, as in structural EM: given the classes, lines show which arcs there are, and every
node gets the type that suits it best; given these densities, every row has a probability of belonging to each
class, by which its class is drawn anew. A draw, not the most probable class: classes that overlap would
otherwise be cut off where they meet.

Everything is judged by one number, the out-of-fold log-likelihood of all rows: the density of a row is
fitted to the rows of other folds, and its own class is summed over, never known,

    log f(x) = log Σ_k P(k) Π_i f_i(x_i | parents, k).

It decides between starts, between rounds, and between numbers of classes, of which the first is 1. A further
class has to gain more than its arcs cost.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from spbn._base.arrays import FloatArray, IntArray, relative_weights
from spbn.errors import DataError, setting
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.by_configuration import fit_by_class
from spbn.rows.store import FitSettings
from spbn.scores import BestType, Score
from spbn.scores.by_class import ByClass
from spbn.scores.likelihood import Auto, arc_penalty
from spbn.structure import Structure
from spbn.tables.table import Table, Variable
from spbn.transforms import Margins, MarginsPlan

NAME = "class"
MOST_CLASSES = 8  # that are tried if their number is not given
FEWEST_ROWS = 20  # of a class, or two for every column and the class itself
MOST_ROWS = 3_000  # by which the number of classes and the start are chosen
COMPONENTS_EACH = 3  # of a class, in mixtures whose components are merged
ROUNDS = 6  # of new divisions, the first with a search
LAST_ROUNDS = 4  # with all rows
CHECKS = 5  # parts of the rows, each of which is predicted by classes of the others
SURE = 1.645  # standard errors, which what that gains exceeds by chance in one case of twenty
EM_STEPS = 100
LEAST_SHARE = 1e-6  # of a class in a row, by which the classes of series begin
LEAST_GAIN = 1e-7  # of a step, in nats for every row
PATIENCE = 2  # numbers of classes that may be no better, before no more are tried


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table, in units whose rows share their class: a series, or a row by itself."""

    table: Table
    units: IntArray  # of every row, 0 to n - 1

    @classmethod
    def of(cls, table: Table, units: IntArray | None = None) -> Rows:
        """Make units of equal labels of rows; without labels, of every row."""
        found = np.arange(table.rows) if units is None else np.unique(units, return_inverse=True)[1]
        return cls(table, found)

    @property
    def number(self) -> int:
        """How many units there are."""
        return int(self.units.max()) + 1

    def only(self, chosen: IntArray) -> Rows:
        """Return the rows of some units."""
        rows = np.flatnonzero(np.isin(self.units, chosen))
        return Rows.of(self.table.take(rows), self.units[rows])

    def by_unit(self, terms: FloatArray) -> FloatArray:
        """Add up what rows have: classes × rows to classes × units."""
        out = np.zeros((len(terms), self.number))
        for total, of_rows in zip(out, terms, strict=True):
            np.add.at(total, self.units, of_rows)
        return out

    def first(self, codes: IntArray) -> IntArray:
        """Return what units have, from what rows have."""
        found = np.empty(self.number, dtype=np.int64)
        found[self.units] = codes
        return found


@dataclass(frozen=True, eq=False)
class Division:
    """Rows in classes, and how well they are predicted by that.

    Attributes
    ----------
    codes
        The class of every row, by which the densities were fitted.
    structure
        The arcs between columns, and the types of nodes.
    independent
        The nodes of which the class is no parent.
    margins
        The transforms of the columns.
    log_joint
        Out-of-fold log-density of every unit of rows and each class, of the data: classes × units.
    penalty
        What an arc costs.
    """

    codes: IntArray
    structure: Structure
    independent: tuple[str, ...]
    margins: Margins | None
    log_joint: FloatArray
    penalty: float

    @property
    def number(self) -> int:
        """How many classes there are."""
        return len(self.log_joint)

    @cached_property
    def logpdf(self) -> FloatArray:
        """The out-of-fold log-density of every unit of rows."""
        total: FloatArray = np.logaddexp.reduce(self.log_joint, axis=0)
        return total

    @property
    def worth(self) -> float:
        """The log-likelihood less what arcs and classes cost: a class, an arc to every node and one more.

        That is about how much it is flattered by the classes of the other rows, for which each has been used.
        """
        arcs = len(self.structure.arcs) + (len(self.structure.nodes) + 1) * (self.number - 1)
        return float(self.logpdf.sum()) - self.penalty * arcs

    @property
    def probabilities(self) -> FloatArray:
        """Units × classes."""
        weights = relative_weights(self.log_joint, axis=0)
        return np.ascontiguousarray((weights / weights.sum(axis=0)).T)

    def with_class(self, table: Table) -> Table:
        """Return a table of all rows with a column for their classes."""
        levels = tuple(str(k + 1) for k in range(self.number))
        columns = np.concatenate([table.columns, self.codes[None].astype(np.float64)])
        return Table.of((*table.variables, Variable(NAME, levels)), columns)

    @property
    def structure_with_class(self) -> Structure:
        """The structure with a node for the class, the last."""
        found = self.structure
        arcs = [(NAME, node) for node in found.nodes if node not in self.independent]
        types = {**found.types, NAME: NodeType.DISCRETE}
        return Structure((*found.nodes, NAME), (*found.arcs, *arcs), types, inputs=found.inputs)


@dataclass(frozen=True, eq=False)
class Model:
    """What densities may be, and how arcs are searched for."""

    types: tuple[NodeType, ...]  # of continuous nodes, simple ones first
    settings: FitSettings
    penalty: float | Auto  # of an arc
    folds: int
    margins: MarginsPlan
    seed: int  # of folds
    #: Finds the arcs that a score prefers, beginning with a structure.
    search: Callable[[Score, Structure], Structure]

    def divide(
        self,
        rows: Rows,
        codes: IntArray,
        structure: Structure,
        margins: Margins | None,
        *,
        search: bool = False,
    ) -> Division:
        """Choose the types of nodes for rows whose classes are known, and evaluate all rows under each class.

        `search`: also find other arcs, beginning with those that are there.
        """
        score = self.score(rows, codes, margins)
        best = BestType(score, self.types, cost=score.penalty)
        structure = simplest(structure, self.types[0])
        structure = best.best_types(self.search(best, structure) if search else structure)
        return evaluate(score, structure, rows, margins)

    def divide_as(
        self, rows: Rows, codes: IntArray, structure: Structure, margins: Margins | None
    ) -> Division:
        """Evaluate all rows under each class, with the types that nodes have."""
        return evaluate(self.score(rows, codes, margins), structure, rows, margins)

    def score(self, rows: Rows, codes: IntArray, margins: Margins | None) -> ByClass:
        """Return the score of rows, in the units of the data, whose classes are known."""
        return ByClass(
            rows.table if margins is None else margins.transformed(rows.table),
            codes,
            folds=max(2, min(self.folds, int(np.bincount(rows.first(codes)).min()))),
            seed=self.seed,
            settings=self.settings,
            penalty=self.penalty,
            units=rows.units,
        )

    def cost(self, table: Table) -> float:
        """Return what a less simple type costs."""
        return arc_penalty(self.penalty, table.rows, len(table.names))

    def fit_margins(self, table: Table, codes: IntArray | None = None) -> Margins | None:
        return self.margins.fit(table, codes)


def evaluate(
    score: ByClass,
    structure: Structure,
    rows: Rows,
    margins: Margins | None,
    independent: Sequence[str] = (),
) -> Division:
    """Evaluate all rows under each class."""
    families = structure.families()
    terms = np.zeros((score.number, rows.table.rows))
    dependent = [family for family in families if family.node not in independent]
    if dependent:
        terms += score.by_class(dependent).sum(axis=1)
    rest = [family for family in families if family.node in independent]
    if rest:
        terms += score.whole(rest).sum(axis=0)
    if margins is not None:
        terms += margins.log_slopes(rows.table, structure.nodes).sum(axis=0)
    log_joint = score.log_prior() + rows.by_unit(terms)
    return Division(score.codes, structure, tuple(independent), margins, log_joint, score.penalty)


def simplest(structure: Structure, simple: NodeType) -> Structure:
    """Return a structure whose continuous nodes have the simplest type, which stands for any of them."""
    types = {node: t if t == NodeType.DISCRETE else simple for node, t in structure.types.items()}
    return Structure(structure.nodes, structure.arcs, types, inputs=structure.inputs)


def fewest_rows(columns: int) -> int:
    """Return how many rows a class must have: twice as many as a line has parameters."""
    return max(FEWEST_ROWS, 2 * (columns + 1))


def most_classes(rows: int, columns: int) -> int:
    """Return how many classes so many rows can be divided into."""
    return max(1, rows // fewest_rows(columns))


def require_room(table: Table, number: object, inputs: Sequence[str]) -> None:
    """Refuse tables that have no room for a hidden class."""
    if NAME in table.names:
        raise DataError(
            f"column {NAME!r} has the name of the hidden class: rename the column, or leave it out "
            f"({setting('drop', [NAME])})."
        )
    columns = len(table.names) - len(inputs)
    if isinstance(number, int) and number > most_classes(table.rows, columns):
        raise DataError(
            f"{setting('hidden', number)} is more than the rows allow: a class of {columns} columns needs at "
            f"least {fewest_rows(columns)} rows, and there are {table.rows} in all. Ask for at most "
            f"{most_classes(table.rows, columns)} classes."
        )


def whole(rows: Rows, structure: Structure, model: Model, margins: Margins | None) -> Division:
    """Return all rows in one class, with the best types of a structure's nodes."""
    return model.divide(rows, np.zeros(rows.table.rows, dtype=np.int64), structure, margins)


def choose(
    rows: Rows,
    number: int | str | None,
    model: Model,
    start: Structure,
    margins: Margins | None,
    rng: np.random.Generator,
) -> tuple[Division | None, dict[int, float]]:
    """Divide rows into so many classes, or "auto": as many as help. None if that is one.

    Also return what numbers of classes are worth, for every row.

    The number of classes, and the start, are chosen by some of the rows if there are many.
    """
    taken = np.arange(rows.table.rows)
    if len(taken) > MOST_ROWS:
        taken = np.sort(rng.choice(len(taken), MOST_ROWS, replace=False))
    some, chosen = Rows.of(rows.table.take(taken), rows.units[taken]), np.unique(rows.units[taken])
    zeros = np.zeros(some.table.rows, dtype=np.int64)
    alone = model.divide(some, zeros, start, margins, search=not start.arcs)
    tried = find_classes(some, None if number == "auto" else int(number or 1), model, alone, rng)
    worth = {k: found.worth / some.table.rows for k, found in {1: alone, **tried}.items()}
    if not tried:
        return None, worth
    ranked: Iterator[Division] = iter(sorted(tried.values(), key=lambda each: -each.worth))
    if number == "auto":
        better = (each for each in ranked if each.worth > alone.worth)
        ranked = (each for each in better if is_confirmed(each, alone, some, model, rng))
    best = next(ranked, None)
    if number != "auto" and (best is None or best.number != number):
        found = "one class" if best is None else f"{best.number} classes"
        warnings.warn(
            f"{number} classes of {fewest_rows(len(some.table.names))} rows or more were not found: the "
            f"network has {found}. Ask for fewer, or for 'auto', which finds out how many.",
            stacklevel=6,
        )
    if best is None:
        return None, worth
    codes = np.empty(rows.number, dtype=np.int64)
    codes[chosen] = some.first(best.codes)
    rest = np.setdiff1d(np.arange(rows.number), chosen)
    if len(rest):
        logs = _log_joint_of_others(best, some, rows.only(rest), model)
        codes[rest] = draw_codes(replace(best, log_joint=logs).probabilities, rng)
    return replace(best, codes=codes[rows.units]), worth


def is_confirmed(
    division: Division, alone: Division, rows: Rows, model: Model, rng: np.random.Generator
) -> bool:
    """Tell whether so many classes help to predict rows that had no part in finding them, beyond chance.

    Folds do not tell: a row's own fold is left out of the fit, but not of what the classes of others are.
    """
    labels, gains = rng.permutation(rows.number) % CHECKS, np.zeros(rows.number)
    for check in range(CHECKS):
        seen, others = (rows.only(np.flatnonzero(each)) for each in (labels != check, labels == check))
        again = best_division(seen, division.number, model, division.structure, rng, search=False)
        if again is None:  # which is to find one class
            continue
        one = whole(seen, alone.structure, model, alone.margins)
        by_class, by_one = (_log_joint_of_others(each, seen, others, model) for each in (again, one))
        gains[labels == check] = np.logaddexp.reduce(by_class, axis=0) - by_one[0]
    return float(gains.sum()) > SURE * math.sqrt(rows.number) * float(gains.std())


def _log_joint_of_others(division: Division, some: Rows, others: Rows, model: Model) -> FloatArray:
    """Return the log-density of other units and each class, by densities of some: classes × units."""
    score, table = model.score(some, division.codes, division.margins), others.table
    if division.margins is not None:
        table = division.margins.transformed(table)
    terms = score.of_others(division.structure.families(), table).sum(axis=1)
    if division.margins is not None:
        terms += division.margins.log_slopes(others.table, division.structure.nodes).sum(axis=0)
    return score.log_prior()[:, :1] + others.by_unit(terms)


def find_classes(
    rows: Rows, number: int | None, model: Model, whole: Division, rng: np.random.Generator
) -> dict[int, Division]:
    """Return the best division into each number of classes that was tried: as many as help, or one number.

    `number`: which, or the next that is possible. `whole`: all rows in one class.
    """
    found, misses, best = dict[int, Division](), 0, whole
    if number is not None:
        fewer = (best_division(rows, k, model, whole.structure, rng) for k in range(number, 1, -1))
        return {division.number: division for division in islice(filter(None, fewer), 1)}
    most = min(MOST_CLASSES, most_classes(rows.table.rows, len(rows.table.names)))
    for k in range(2, most + 1):
        division = best_division(rows, k, model, best.structure, rng)
        if division is None:
            break
        found[k] = division
        misses = 0 if division.worth > best.worth else misses + 1
        best = max(best, division, key=lambda each: each.worth)
        if misses >= PATIENCE:
            break
    # Two classes of the best may be one that the starts of a smaller number have not led to.
    (rng,) = rng.spawn(1)
    while best.number > 2:
        codes = merge(best.probabilities, best.number - 1).argmax(axis=1)[rows.units]
        merged = model.divide(rows, codes, best.structure, best.margins)
        merged = continue_from(merged, rows, model, rng, rounds=ROUNDS, search=True)
        if not merged.worth > found[merged.number].worth:
            break
        found[merged.number] = merged
        if not merged.worth > best.worth:
            break
        best = merged
    return found


def best_division(
    rows: Rows,
    number: int,
    model: Model,
    structure: Structure,
    rng: np.random.Generator,
    *,
    search: bool = True,
) -> Division | None:
    """Divide rows into so many classes, as well as can be; None if some would be too small."""
    table, best = rows.table, None
    margins = model.fit_margins(table)
    # Columns that are skewed as a whole may not be within classes, which the first starts show.
    for within_classes in (False, True):
        if within_classes:
            if margins is None or best is None or model.margins.kind != "auto":
                break
            margins = model.fit_margins(table, best.codes)
        for found_by_row in starts(table if margins is None else margins.transformed(table), number, rng):
            codes = rows.by_unit(np.log(np.maximum(found_by_row.T, LEAST_SHARE))).argmax(axis=0)[rows.units]
            if is_large_enough(rows, codes, number):
                found = model.divide(rows, codes, structure, margins)
                best = found if best is None or found.worth > best.worth else best
    return None if best is None else continue_from(best, rows, model, rng, rounds=ROUNDS, search=search)


def continue_from(
    best: Division, rows: Rows, model: Model, rng: np.random.Generator, *, rounds: int, search: bool = False
) -> Division:
    """Take turns at dividing rows and evaluating them, and return the best division.

    Node types are chosen where there is a search; the other turns keep those that there are.
    """
    current = best
    for turn in range(rounds):
        codes = draw_codes(current.probabilities, rng)[rows.units]
        if not is_large_enough(rows, codes, current.number):
            break
        if search and turn == 0:
            current = model.divide(rows, codes, current.structure, best.margins, search=True)
        else:
            current = model.divide_as(rows, codes, current.structure, best.margins)
        best = max(best, current, key=lambda each: each.worth)
    return best


def is_large_enough(rows: Rows, codes: IntArray, number: int) -> bool:
    """Tell whether every class has the rows that it needs, and more than one unit."""
    smallest = np.bincount(codes, minlength=number).min()
    of_units = np.bincount(rows.first(codes), minlength=number).min()
    return bool(smallest >= fewest_rows(len(rows.table.names)) and of_units > 1)


def finish(
    rows: Rows,
    codes: IntArray,
    structure: Structure,
    model: Model,
    margins: Margins | None,
    rng: np.random.Generator,
    *,
    is_known: bool,
) -> Division:
    """Divide all rows by a structure that was searched for, and free the nodes that no class helps.

    `is_known`: their classes are known, and stay.
    """
    division = model.divide(rows, codes, structure, margins)
    if not is_known:
        division = continue_from(division, rows, model, rng, rounds=LAST_ROUNDS)
        codes = by_size(rows.first(division.codes))[rows.units]
    score, every = model.score(rows, codes, margins), model.score(rows, np.zeros_like(codes), margins)
    best, whole = (BestType(each, model.types, cost=each.penalty) for each in (score, every))
    plain = simplest(division.structure, model.types[0])
    gains = best.local_many(plain.families()) - whole.local_many(plain.families()) - score.penalty
    independent = [node for node, gain in zip(plain.nodes, gains, strict=True) if not gain > 0.0]
    if len(independent) == len(plain.nodes):  # a number of classes was asked for, whether they help or not
        independent = []
    types = {**best.best_types(plain).types}
    types |= {node: whole.best_types(plain).type(node) for node in independent}
    structure = Structure(plain.nodes, plain.arcs, types, inputs=plain.inputs)
    return evaluate(score, structure, rows, margins, independent)


def refine(
    structure: Structure,
    cpds: Mapping[str, CPD],
    rows: Table,
    probabilities: FloatArray,
    settings: FitSettings,
    *,
    units: IntArray | None = None,
    steps: int = EM_STEPS,
) -> dict[str, CPD]:
    """Fit lines and tables to all rows, each as far as it belongs to a class; the class is the last node.

    Where all nodes that depend on the class are such, that is a step of EM, and further ones follow as long
    as they help. They never make the rows less likely.

    `rows`: the rows, in the units of the densities, with a column for the class.
    `probabilities`: how far units of rows belong to classes, units × classes; by default, every row is one.
    """
    every = Rows.of(rows, units)
    softened = _softened(cpds, every, probabilities, settings)
    if any(NAME in cpd.parents and cpd is cpds[node] for node, cpd in softened.items()):
        return softened
    best, last = softened, -math.inf
    for _ in range(steps):
        network = BayesianNetwork(structure, softened, hidden=NAME)
        columns = rows.select([variable.name for variable in network.variables]).columns
        shares = network.log_shares
        logs = shares + every.by_unit(network.log_joint_of_columns(columns) - shares)
        total = float(np.logaddexp.reduce(logs, axis=0).sum())
        if total < last + LEAST_GAIN * rows.rows:
            break
        best, last, weights = softened, total, relative_weights(logs, axis=0)
        weights /= weights.sum(axis=0)
        if weights[:, every.units].sum(axis=1).min() < fewest_rows(len(structure.nodes) - 1):
            break
        softened = _softened(softened, every, weights.T, settings)
    return best


def _softened(
    cpds: Mapping[str, CPD], rows: Rows, probabilities: FloatArray, settings: FitSettings
) -> dict[str, CPD]:
    """Fit densities that can be to weights of rows; the others stay the same objects.

    The probability of a class is its share of all units.
    """
    sizes = np.bincount(rows.units)[:, None]
    found = {}
    for node, cpd in cpds.items():
        weights = probabilities / sizes if node == NAME else probabilities
        new = fit_by_class(cpd, rows.table, NAME, weights[rows.units], settings)
        found[node] = cpd if new is None else new
    return found


def by_size(codes: IntArray) -> IntArray:
    """Return the same classes, the largest first."""
    order = np.argsort(-np.bincount(codes), kind="stable")
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return places[codes]


def draw_codes(probabilities: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw the class of every row from rows × classes."""
    bounds = np.cumsum(probabilities, axis=1)
    codes = (rng.random((len(bounds), 1)) * bounds[:, -1:] >= bounds).sum(axis=1)
    return np.minimum(codes, probabilities.shape[1] - 1)


def starts(table: Table, number: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Yield probabilities of classes for transformed rows, rows × classes, by Gaussian mixtures.

    One of them has several components for every class, merged where they overlap most: a class need not be
    an ellipsoid.
    """
    features = _features(table)
    is_enough = table.rows / number > 2 * features.shape[1]
    yield _components(features, number, "full" if is_enough else "tied", rng)
    yield _components(features, number, "diag", rng)
    several = COMPONENTS_EACH * number
    is_enough = table.rows / several > 2 * features.shape[1]
    found = _components(features, several, "full" if is_enough else "diag", rng)
    yield merge(found, number)


def _components(features: FloatArray, number: int, kind: str, rng: np.random.Generator) -> FloatArray:
    """Return the probabilities of the components of a Gaussian mixture: rows × components."""
    from sklearn.mixture import GaussianMixture
    from threadpoolctl import threadpool_limits

    mixture = GaussianMixture(
        min(number, len(features)),
        covariance_type=kind,
        reg_covar=1e-3,
        random_state=int(rng.integers(1 << 31)),
    )
    # One thread: several would wait for each other longer than they work, and add up in any order.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # of a mixture that is still moving: it is a start
        return np.asarray(mixture.fit(features).predict_proba(features))


def merge(probabilities: FloatArray, number: int) -> FloatArray:
    """Merge components, rows × components, until so many are left: always those that hide most entropy.

    After Baudry, Raftery, Celeux, Lo and Gottardo, *Combining mixture components for clustering* (2010).
    """
    found = probabilities
    while found.shape[1] > number:
        own, best = _entropy(found), (-math.inf, 0, 1)
        for i in range(found.shape[1]):
            for j in range(i + 1, found.shape[1]):
                drop = own[i] + own[j] - float(_entropy(found[:, [i]] + found[:, [j]])[0])
                best = max(best, (drop, i, j))
        _, i, j = best
        merged = found[:, [i]] + found[:, [j]]
        found = np.concatenate([np.delete(found, [i, j], axis=1), merged], axis=1)
    return found


def _entropy(probabilities: FloatArray) -> FloatArray:
    """Return what every column adds to the entropy of rows."""
    logs = np.log(np.maximum(probabilities, 1e-300))
    entropy: FloatArray = -(probabilities * logs).sum(axis=0)
    return entropy


def _features(table: Table) -> FloatArray:
    """Return standardised numbers, and a column of zeros and ones for every level: rows × features."""
    out = []
    for variable, column in zip(table.variables, table.columns, strict=True):
        if variable.is_discrete:
            out += [(column == level).astype(np.float64) for level in range(len(variable.levels))]
        else:
            out.append((column - np.median(column)) / (column.std() or 1.0))
    return np.stack(out, axis=1)
