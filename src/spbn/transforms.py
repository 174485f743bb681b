"""Margins: transforms of single columns, which take skew and heavy tails out before a network is fitted.

Every column is standardised, z = (x - centre) / scale, and passed through a Yeo-Johnson transform,

    ψ(z) = ((1 + z)^λ - 1) / λ                for z ≥ 0,
    ψ(z) = -((1 - z)^(2 - λ) - 1) / (2 - λ)   for z < 0,

with logarithms where an exponent is 0. For λ in [0, 2] it is a bijection of the real line, so that a
density of the transformed columns is one of the original columns too:

    log f(x) = log f(ψ) + log ψ'(z) - log(scale).

Beyond twice the range of the rows, ψ goes on as a straight line. Bent, it would make a density with heavy
tails one whose mean is infinite: where ψ is a logarithm, a draw that is 50 standard deviations out would be
e⁵⁰ of them out in the units of the data.

A column with bounds is freed of them first: with a and b the least and the greatest possible value, and s a
length, it is the values

    w = x / s + log(1 - exp(-(x - a) / s)) - log(1 - exp(-(b - x) / s))

that are standardised and transformed. That is a straight line far from the bounds, a logarithm next to one,
and a logit between two, if s is large. Whatever is drawn is within the bounds then. A value at a bound counts
as one a little inside, and one beyond has the density 0.

"auto" transforms the columns for which that predicts better: where a normal density of the transformed values
makes the rows more likely than one of the values themselves, by more than ½ log N, the price of the exponent
by BIC. Leaving out folds leads to the same choice for 306 of 322 columns of 28 tables, and hangs on the folds
(`benchmarks/margins.py`). No single row decides: both densities have the median and the width of the middle
80 % of the rows, a row counts for at most 3 nats, which have to be gained without it, and the transform is
fitted without values far out. Why normal densities, if nodes may be kernels? A kernel estimate of one column
hardly needs the transform. Its relations to others do: they become simpler.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.checks import choice
from spbn.errors import ArgumentError, DataError, ModelFileError, argument, quoted, setting
from spbn.numerics.spreads import LEVELS, centre_and_scale, spreads_from_quantiles, without_far_values
from spbn.tables.table import Table, Variable

KINDS = ("none", "yeo-johnson", "auto")
LEAST, GREATEST = 0.0, 2.0  # exponents for which the transform is a bijection
PRECISION = 1e-6  # of an exponent
BITS = 32.0  # limits have five binary digits
MOST_NATS = 3.0  # that a row counts for, where a transform is chosen
LARGEST_LOG = 700.0  # whose exponential is finite
AT_ONCE = 1 << 14  # rows, of which some arrays as large as the columns are made
SOFTNESS = (4.0, 0.25)  # of bounds that are tried, as shares of the range from the bound
WITHIN_REACH = 5.0  # standard deviations from the median, beyond which a bound is never met
HELD_AT = 8.0  # standardised values at the most extreme, between which and a bound all values are the same
LEAST_LENGTH = 1e-280  # from a bound to the next value, as a share of the softness

FEWEST_EQUAL, EQUAL_SHARE = 20, 0.05  # rows with the same value, and their share, for it to be an atom
STANDS_OUT, STANDS_OUT_AT_END = 3.0, 1.5  # times as many rows as have the commonest other value
FEWEST_OTHERS = 20  # different values besides atoms
MOST_ATOMS = 1 << 10  # of a column, in a file

#: The least and the greatest possible value of a column.
Bounds = tuple[float, float]
FREE: Bounds = (-math.inf, math.inf)


@dataclass(frozen=True)
class YeoJohnson:
    """The transform of one column."""

    centre: float
    scale: float
    exponent: float
    #: Standardised values beyond which the transform is a straight line.
    low: float = -np.inf
    high: float = np.inf
    #: The least and the greatest possible value, and the length within which a bound bends.
    floor: float = -np.inf
    ceiling: float = np.inf
    softness: float = 1.0
    #: Values that have a probability of their own.
    atoms: tuple[float, ...] = ()

    @classmethod
    def fit(
        cls,
        column: FloatArray,
        codes: IntArray | None = None,
        bounds: Bounds = FREE,
        softness: float = 1.0,
    ) -> YeoJohnson:
        """Standardise, and choose the exponent under which a normal density makes the rows most likely.

        `codes`: the class of every row, if each class has a normal density of its own.
        """
        from scipy.optimize import minimize_scalar

        if bounds != FREE:
            freed = cls.fit(_freed(column, *bounds, softness)[0], codes)
            return replace(freed, floor=bounds[0], ceiling=bounds[1], softness=softness)

        centre = float(column.mean())
        scale = float(np.sqrt(np.mean((column - centre) ** 2)))
        z = (column - centre) / scale
        slopes = float(np.sum(np.sign(z) * np.log1p(np.abs(z))))
        parts = [slice(None)] if codes is None else _classes_that_vary(z, codes)

        def loss(exponent: float) -> float:
            bent = _bent(z, exponent)[0]
            widths = math.fsum(0.5 * len(bent[part]) * float(np.log(bent[part].var())) for part in parts)
            return widths - (exponent - 1.0) * slopes

        options: dict[str, object] = {"xatol": PRECISION}
        found = minimize_scalar(loss, bounds=(LEAST, GREATEST), method="bounded", options=options)  # type: ignore[call-overload]
        best = min((float(found.x), LEAST, 1.0, GREATEST), key=loss)
        return cls(centre, scale, best, *limits_of(float(z.min()), float(z.max())))

    def forward(self, column: FloatArray) -> FloatArray:
        moved = _moved(column, *self.parameters)[0]
        for atom, place in zip(self.atoms, self.moved_atoms, strict=True):
            moved = np.where(column == atom, place, moved)
        return moved

    @cached_property
    def moved_atoms(self) -> tuple[float, ...]:
        """Where the atoms are among transformed values: those at a bound are beyond all others."""
        found = _moved(np.array(self.atoms), *self.parameters)[0]
        found -= [atom <= self.floor for atom in self.atoms]
        found += [atom >= self.ceiling for atom in self.atoms]
        return tuple(found.tolist())

    def inverse(self, values: FloatArray) -> FloatArray:
        found = self._inverse(values)
        for atom, place in zip(self.atoms, self.moved_atoms if self.atoms else (), strict=True):
            found = np.where(values == place, atom, found)
        return found

    def _inverse(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # no draw is beyond infinity
            ends = _bent(np.array([self.low, self.high]), self.exponent)[0]
        held = np.clip(values, *ends)
        upper, lower = np.maximum(held, 0.0), np.maximum(-held, 0.0)
        z = _root(upper, self.exponent) - _root(lower, 2.0 - self.exponent)
        straight = (values - held) * np.exp(-_bent(z, self.exponent)[1])
        found = self.centre + self.scale * (z + straight)
        if self.bounds == FREE:
            return found
        with np.errstate(over="ignore"):  # far out, towards an end that has no bound
            return self._bounded(found)

    def _bounded(self, freed: FloatArray) -> FloatArray:
        """Return the values within the bounds that have been freed of them."""
        width = (self.ceiling - self.floor) / self.softness
        if not np.isfinite(width):
            is_low = np.isfinite(self.floor)
            length = np.logaddexp(0.0, freed if is_low else -freed)
            found = self.floor + self.softness * length if is_low else self.ceiling - self.softness * length
        else:  # from the nearer end, which keeps the digits
            below = np.logaddexp(0.0, freed) - np.logaddexp(0.0, np.minimum(freed, width) - width)
            above = np.logaddexp(0.0, width - freed) - np.logaddexp(0.0, -np.maximum(freed, 0.0))
            is_low = freed < 0.5 * width
            found = np.where(is_low, self.floor + self.softness * below, self.ceiling - self.softness * above)
        return np.clip(found, np.nextafter(self.floor, np.inf), np.nextafter(self.ceiling, -np.inf))

    @property
    def bounds(self) -> Bounds:
        return self.floor, self.ceiling

    def outward(self, end: float) -> float:
        """Return the end of an interval among transformed values: infinite at a bound, and beyond it."""
        if end in self.atoms:
            return self.moved_atoms[self.atoms.index(end)]
        if not math.isfinite(end) or end <= self.floor or end >= self.ceiling:
            return -math.inf if end <= self.floor else math.inf
        return float(self.forward(np.array([end]))[0])

    def log_slope(self, column: FloatArray) -> FloatArray:
        slopes = _moved(column, *self.parameters)[1]
        return np.where(np.isin(column, self.atoms), 0.0, slopes) if self.atoms else slopes

    @property
    def parameters(self) -> tuple[float, ...]:
        """What `_moved` needs of it."""
        plain = (self.centre, self.scale, self.exponent, self.low, self.high)
        return (*plain, *self.bounds, self.softness, *self._held_at)

    @cached_property
    def _held_at(self) -> tuple[float, float]:
        """The values next to the bounds that stand for all that are nearer."""
        if self.bounds == FREE:
            return FREE
        z = np.array([min(self.low, -HELD_AT), max(self.high, HELD_AT)])
        with np.errstate(over="ignore", invalid="ignore"):  # of parameters that make no sense
            least, most = self._bounded(self.centre + self.scale * z).tolist()
        shortest = LEAST_LENGTH * self.softness
        if not np.isfinite(self.floor):
            least = -np.inf
        if not np.isfinite(self.ceiling):
            most = np.inf
        return max(least, self.floor + shortest), min(most, self.ceiling - shortest)

    def __str__(self) -> str:
        known = [] if self.bounds == FREE else [bounds_in_words(self.bounds)]
        bent = [] if self.is_plain else [f"Yeo-Johnson, λ = {self.exponent:.2f}"]
        atoms = [f"may be exactly {' or '.join(f'{atom:.12g}' for atom in self.atoms)}"] if self.atoms else []
        return "; ".join([*known, *bent, *atoms])

    @property
    def is_plain(self) -> bool:
        """Whether it leaves values as they are."""
        return replace(self, atoms=()) == UNCHANGED


#: The transform of a column with atoms that needs no other.
UNCHANGED = YeoJohnson(0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Atoms:
    """Values of a column that many rows have exactly, and the discrete variable that says which rows.

    Examples
    --------
    >>> from spbn.transforms import Atoms
    >>> print(Atoms("balance", (0.0,)).variable)
    Variable(name='balance = 0', levels=('no', 'yes'))
    """

    column: str
    values: tuple[float, ...]

    @property
    def variable(self) -> Variable:
        written = [f"{value:.12g}" for value in self.values]
        levels = ("no", "yes") if len(written) == 1 else ("other", *written)
        return Variable(f"{self.column} = {' or '.join(written)}", levels)

    def codes(self, column: FloatArray) -> FloatArray:
        """Return which atom every value is, from 1 on; 0 is none, and NaN missing."""
        codes = np.zeros(len(column))
        for number, value in enumerate(self.values, 1):
            codes[column == value] = number
        return np.where(np.isnan(column), np.nan, codes)


@dataclass(frozen=True)
class Margins:
    """The transforms of the continuous columns of a network; columns that are not here have none."""

    columns: Mapping[str, YeoJohnson]

    @cached_property
    def atoms(self) -> dict[str, Atoms]:
        """The atoms of the columns that have any."""
        return {name: Atoms(name, column.atoms) for name, column in self.columns.items() if column.atoms}

    @property
    def or_none(self) -> Margins | None:
        """None if no column has a transform."""
        return self if self.columns else None

    def __str__(self) -> str:
        shown = [name for name, column in self.columns.items() if not column.is_plain]
        bounded = [
            f"{name} is {bounds_in_words(c.bounds)}" for name, c in self.columns.items() if c.bounds != FREE
        ]
        known = f"; {', '.join(bounded)}" if bounded else ""
        return f"transformed: {', '.join(shown) or 'nothing'} (equations are in transformed units){known}"

    def only(self, names: Collection[str]) -> Margins:
        return Margins({name: column for name, column in self.columns.items() if name in names})

    def transformed(self, table: Table) -> Table:
        """Return the transformed columns and, last, those that mark atoms."""
        moved = self.moved(table.names, table.columns)[0]
        found = [atoms for name, atoms in self.atoms.items() if name in table.names]
        found = [atoms for atoms in found if atoms.variable.name not in table.names]
        if not found:
            return table.with_columns(moved)
        marks = [atoms.codes(table.column(atoms.column)) for atoms in found]
        return Table(
            (*table.names, *(atoms.variable.name for atoms in found)),
            np.concatenate([moved, marks]),
            {**table.levels, **{atoms.variable.name: atoms.variable.levels for atoms in found}},
            {**table.marked_by, **{atoms.column: atoms.variable.name for atoms in found}},
        )

    def log_slopes(self, table: Table, names: Sequence[str]) -> FloatArray:
        """Return what the transforms add to the log-density of every column: columns × rows."""
        return self.moved(table.names, table.columns)[1][[table.index(name) for name in names]]

    def moved(self, names: tuple[str, ...], columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Transform columns × rows; also return what that adds to the log-density of every column.

        Columns without a transform stay as they are. All are transformed at once: quick for single rows.
        """
        moved, slopes = columns.copy(), np.zeros(columns.shape)
        places, parameters = self._stacked(names)
        for first in range(0, columns.shape[1], AT_ONCE):
            some = slice(first, first + AT_ONCE)
            moved[places, some], slopes[places, some] = _moved(columns[places, some], *parameters)
        for name in self.atoms:
            if name in names:
                place, transform = names.index(name), self.columns[name]
                is_atom = np.isin(columns[place], transform.atoms)
                moved[place, is_atom] = transform.forward(columns[place, is_atom])
                slopes[place, is_atom] = 0.0
        if not np.isfinite(moved).all():
            _require_finite(names, columns, moved)
        return moved, slopes

    def _stacked(self, names: tuple[str, ...]) -> tuple[IntArray, tuple[FloatArray, ...]]:
        """Return which columns have a transform, and the parameters of these: columns × 1."""
        if names not in self._stacks:
            places = [place for place, name in enumerate(names) if name in self.columns]
            found = [self.columns[names[place]] for place in places]
            numbers = np.array([column.parameters for column in found]).reshape(-1, 10, 1)
            self._stacks[names] = np.array(places, dtype=np.int64), tuple(numbers.swapaxes(0, 1))
        return self._stacks[names]

    @cached_property
    def _stacks(self) -> dict[tuple[str, ...], tuple[IntArray, tuple[FloatArray, ...]]]:
        return {}


def _require_finite(names: Sequence[str], columns: FloatArray, moved: FloatArray) -> None:
    """Refuse values that a transform takes beyond all numbers."""
    bad = np.argwhere(~np.isfinite(moved) & ~np.isnan(columns))
    if len(bad):
        place, row = bad[0]
        raise DataError(
            f"column {names[place]!r} has a value that its margin cannot transform: "
            f"{columns[place, row]:.3g} (row {row + 1}, counted from 1) is too far from the rows that the "
            f"margin was fitted to. Leave that row out, or learn with {setting('margins', 'none')}."
        )


def _require_resolution(name: str, column: FloatArray, transform: YeoJohnson) -> None:
    """Refuse a column whose rows look the same beside the farthest of them."""
    before, after = (np.quantile(values, [0.25, 0.75]) for values in (column, transform.forward(column)))
    if before[0] < before[1] and not after[0] < after[1]:
        row = int(np.argmax(np.abs(column - np.median(column))))
        raise DataError(
            f"column {name!r} cannot be transformed: its values cannot be told apart next to "
            f"{column[row]:.3g} (row {row + 1}, counted from 1). Leave that row out, or learn with "
            f"{setting('margins', 'none')}."
        )


def choose_transform(
    column: FloatArray, codes: IntArray | None = None, bounds: Bounds | None = None
) -> YeoJohnson | None:
    """Return the transform of a column, or None if it is not predicted better with one.

    `codes`: the class of every row, if the column is predicted by classes.
    `bounds`: those of the column, which then always has a transform. None: if all values are positive, or
    shares, and these bounds are not out of reach, they count if that predicts the column better still.
    """
    quantiles = np.quantile(column, LEVELS, method="inverted_cdf")
    near = without_far_values(column[None], spreads_from_quantiles(quantiles[:, None]))[0]
    if near.min() == near.max():
        return None
    candidates = []
    if bounds is None or bounds == FREE:
        candidates = [YeoJohnson.fit(near, codes)]
    for ends in _evident_bounds(quantiles) if bounds is None else [bounds]:
        if ends != FREE:
            candidates += _bounded_transforms(near, ends, codes)
    gains = [_gain(column, transform, codes) for transform in candidates]
    best = int(np.argmax(gains))
    is_known = bounds is not None and bounds != FREE
    return candidates[best] if is_known or pays(gains[best], len(column)) else None


def _gain(column: FloatArray, transform: YeoJohnson, codes: IntArray | None) -> float:
    """Return what a transform adds to the log-densities of all rows, perhaps by classes."""
    parts = [slice(None)] if codes is None else _classes_that_vary(column, codes)
    gains = [
        log_density_gain(column[part], transform, np.quantile(column[part], LEVELS, method="inverted_cdf"))
        for part in parts
    ]
    return gains[0] if codes is None else sum(gain for gain in gains if np.isfinite(gain))


def _evident_bounds(quantiles: FloatArray) -> list[Bounds]:
    """Return bounds that a column might have, by its quantiles at `LEVELS`."""
    centre, scale = (float(found[0]) for found in centre_and_scale(quantiles[:, None]))
    least, greatest = float(quantiles[0]), float(quantiles[-1])
    if not least > 0.0 or centre > WITHIN_REACH * scale:
        return []
    return [(0.0, math.inf), *([(0.0, 1.0)] if greatest < 1.0 else [])]


def _bounded_transforms(near: FloatArray, bounds: Bounds, codes: IntArray | None) -> list[YeoJohnson]:
    """Return transforms of a column that keep within bounds, of different softness.

    Its unit is a power of 2: it tells no value of a row.
    """
    floor, ceiling = bounds
    extent = ceiling - floor
    if not math.isfinite(extent):
        extent = float(near.max()) - floor if math.isfinite(floor) else ceiling - float(near.min())
    unit = math.ldexp(1.0, math.frexp(extent)[1])
    inside = (near > floor) & (near < ceiling)
    codes = None if codes is None else codes[inside]
    return [YeoJohnson.fit(near[inside], codes, bounds, unit * part) for part in SOFTNESS]


def _classes_that_vary(column: FloatArray, codes: IntArray) -> list[IntArray]:
    """Return the rows of every class in which a column is not constant; all rows if it is in each."""
    parts = [np.flatnonzero(codes == k) for k in range(int(codes.max()) + 1)]
    vary = [part for part in parts if len(part) and column[part].min() < column[part].max()]
    return vary or [np.arange(len(column))]


def log_density_gain(column: FloatArray, transform: YeoJohnson, quantiles: FloatArray) -> float:
    """Return what a transform adds to the log-densities of all rows, each within limits.

    The densities are normal, with the median and the width that follow from the `quantiles` of the column at
    `LEVELS`. It is -inf for a transform that makes values infinite, or equal.
    """
    moved, slopes = _moved(column, *transform.parameters)
    # Quantiles of the transformed values are the transformed quantiles: it is monotone.
    before, after = (
        centre_and_scale(values[:, None]) for values in (quantiles, transform.forward(quantiles))
    )
    if not np.isfinite(moved).all() or before[1] == 0.0 or after[1] == 0.0:
        return -np.inf
    with np.errstate(over="ignore", invalid="ignore"):  # of values that are impossible either way
        gains = slopes + _normal_logpdf(moved, *after) - _normal_logpdf(column, *before)
    return float(np.clip(np.nan_to_num(gains, nan=0.0), -MOST_NATS, MOST_NATS).sum())


def pays(gain: float, rows: int) -> bool:
    """Tell whether a transform gains more than its exponent costs, also without any one row."""
    return gain > 0.5 * np.log(rows) + MOST_NATS


def _normal_logpdf(values: FloatArray, centre: FloatArray, scale: FloatArray) -> FloatArray:
    """Return the log-density of a normal distribution, but for a constant."""
    return -0.5 * ((values - centre) / scale) ** 2 - np.log(scale)


def require_kind(margins: object) -> None:
    """Refuse names of margins that do not exist."""
    choice("margins", margins, KINDS)


@dataclass(frozen=True)
class MarginsPlan:
    """Which columns of a table get a transform, and within which bounds.

    `bounds`: what is known of columns; one without any has `FREE`.
    `finds_bounds`: whether "auto" looks for those of all others.
    `atoms`: values of columns that have a probability of their own; they are found if there are none.
    `finds_atoms`: whether those of other columns are found as well.
    """

    kind: str
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    finds_bounds: bool = True
    atoms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    finds_atoms: bool = False

    def __post_init__(self) -> None:
        require_kind(self.kind)

    def within(self, names: Sequence[str], margins: Margins | None) -> MarginsPlan:
        """Return the same with the bounds that have been found for columns."""
        columns = {} if margins is None else margins.columns
        bounds = {name: columns[name].bounds if name in columns else FREE for name in names}
        return MarginsPlan(self.kind, bounds)

    def transform(self, name: str, column: FloatArray, codes: IntArray | None = None) -> YeoJohnson | None:
        """Return the transform of a column, None if it has none.

        `codes`: the class of every row, if columns are predicted by classes.
        """
        bounds = self.bounds.get(name, None if self.finds_bounds else FREE)
        atoms = self._atoms_of(name, column)
        if atoms:
            if bounds is not None:
                _require_within(name, column, bounds)
            elif min(atoms) < 0.0:
                bounds = FREE
            others = ~np.isin(column, atoms)
            rest = replace(self, atoms={}, finds_atoms=False, bounds={} if bounds is None else {name: bounds})
            codes = None if codes is None else codes[others]
            return replace(rest.transform(name, column[others], codes) or UNCHANGED, atoms=atoms)
        if bounds is not None and bounds != FREE:
            _require_within(name, column, bounds)
            return choose_transform(column, codes, bounds)
        if self.kind == "auto":
            return choose_transform(column, codes, bounds)
        return YeoJohnson.fit(column) if self.kind == "yeo-johnson" else None

    def _atoms_of(self, name: str, column: FloatArray) -> tuple[float, ...]:
        """Return the atoms of a column; refuse those that cannot be told from its other values."""
        known = self.atoms.get(name)
        if known:
            rest = column[~np.isin(column, known)]
            absent = [atom for atom in known if not (column == atom).any()]
            if absent:
                raise ArgumentError(
                    f"{argument('atoms')}: no row has {name} = {absent[0]:.12g}. Leave it out."
                )
            if len(rest) < 2 or rest.min() == rest.max():
                raise ArgumentError(
                    f"{argument('atoms')}: {name!r} has too few other values than these: make it discrete."
                )
            return tuple(sorted(known))
        return find_atoms(column) if known is not None or self.finds_atoms else ()

    def fit(self, table: Table, codes: IntArray | None = None) -> Margins | None:
        """Return the margins of a table; None if no column is to be transformed."""
        numbers = [variable.name for variable in table.variables if not variable.is_discrete]
        for what, named in (("bounds", self.bounds), ("atoms", self.atoms)):
            unknown = [name for name in named if name not in numbers]
            if unknown:
                raise ArgumentError(
                    f"{argument(what)} must name columns of numbers: {quoted(numbers)}. "
                    f"Got {quoted(unknown)}."
                )
        found = {name: self.transform(name, table.column(name), codes) for name in numbers}
        margins = Margins({name: transform for name, transform in found.items() if transform is not None})
        if self.kind == "yeo-johnson":
            for name, transform in margins.columns.items():
                _require_resolution(name, table.column(name), transform)
        return margins.or_none


def find_atoms(column: FloatArray) -> tuple[float, ...]:
    """Return values that many rows share, and that stand out from all others.

    At the end of a column they need not stand out as much: zeros, or what is more than a meter can show.
    Where few other values are left, the column has levels rather than atoms.
    """
    values, counts = np.unique(column, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    enough = int((counts >= max(FEWEST_EQUAL, EQUAL_SHARE * len(column))).sum())
    for number in range(min(enough, len(values) - FEWEST_OTHERS), 0, -1):
        chosen = order[:number]
        is_end = (chosen == 0) | (chosen == len(values) - 1)
        least = np.where(is_end, STANDS_OUT_AT_END, STANDS_OUT) * counts[order[number]]
        if (counts[chosen] >= least).all():
            return tuple(np.sort(values[chosen]).tolist())
    return ()


def _require_within(name: str, column: FloatArray, bounds: Bounds) -> None:
    """Refuse a column with values beyond its bounds."""
    beyond = np.flatnonzero((column < bounds[0]) | (column > bounds[1]))
    if len(beyond):
        raise DataError(
            f"column {name!r} must be {bounds_in_words(bounds)}. Got {column[beyond[0]]:.12g} in row "
            f"{beyond[0] + 1}, counted from 1: correct it, or give other bounds."
        )


def to_plain(margins: Margins, nodes: Sequence[str]) -> dict[str, Any]:
    """Describe the margins of the continuous nodes in plain data; null stands for no transform."""
    columns = {
        name: {
            key: value
            for key, value in asdict(column).items()
            if (column.atoms if key == "atoms" else np.isfinite(value))
            and (key != "softness" or column.bounds != FREE)
        }
        for name, column in margins.columns.items()
    }
    kind = "yeo-johnson" if set(columns) == set(nodes) else "auto"
    return {"kind": kind, "columns": columns | {name: None for name in nodes if name not in columns}}


def from_plain(document: Any, nodes: Sequence[str]) -> Margins:
    """Read what `to_plain` wrote for the continuous nodes; anything else is a `ModelFileError`."""
    try:
        kind, entries = document["kind"], document["columns"]
        if kind not in ("yeo-johnson", "auto") or set(entries) != set(nodes):
            raise ValueError("margins must be of kind 'yeo-johnson' or 'auto', with an entry for every node")
        chosen = [name for name in nodes if kind == "yeo-johnson" or entries[name] is not None]
        return Margins({name: _column(entries[name]) for name in chosen})
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"its margins make no sense ({error!r:.200}).") from error


def _column(entry: Mapping[str, Any]) -> YeoJohnson:
    values = {key: entry[key] for key in ("centre", "scale", "exponent")}
    # Files of version 0.2 have no limits.
    values |= {key: entry[key] for key in ("low", "high", "floor", "ceiling", "softness") if key in entry}
    atoms = entry.get("atoms", [])
    if not isinstance(atoms, list) or len(atoms) > MOST_ATOMS or len(set(atoms)) < len(atoms):
        raise ValueError(f"{entry!r:.100} has atoms that make no sense")
    for value in [*values.values(), *atoms]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise ValueError(f"{entry!r:.100} must hold numbers")
    found = YeoJohnson(**{key: float(value) for key, value in values.items()}, atoms=tuple(map(float, atoms)))
    if not all(found.floor <= atom <= found.ceiling for atom in found.atoms):
        raise ValueError(f"{entry!r:.100} has atoms beyond its bounds")
    if not (found.scale > 0.0 and LEAST <= found.exponent <= GREATEST and found.low <= 0.0 <= found.high):
        raise ValueError(f"{entry!r:.100} is not a transform")
    if found.bounds != FREE:
        least, most = found._held_at if found.softness > 0.0 else (np.nan, np.nan)
        ends = np.array([found.floor, least, most, found.ceiling])
        inner = ends[np.isfinite(ends)]
        if np.isnan(ends).any() or len(inner) % 2 or not (np.diff(inner) > 0.0).all():
            raise ValueError(f"{entry!r:.100} does not keep within bounds")
    return found


def bounds_in_words(bounds: Bounds) -> str:
    """Write bounds as people say them: "0 or more", "between 0 and 1"."""
    floor, ceiling = bounds
    if not math.isfinite(ceiling):
        return f"{floor:g} or more"
    return f"between {floor:g} and {ceiling:g}" if math.isfinite(floor) else f"{ceiling:g} or less"


def limits_of(least: float, greatest: float) -> tuple[float, float]:
    """Return twice the range of standardised values, rounded outwards: they tell no value of a row."""
    parts, exponents = np.frexp([least, greatest])
    low, high = np.floor(BITS * parts[0]) / BITS, np.ceil(BITS * parts[1]) / BITS
    low, high = np.ldexp([low, high], exponents + 1).tolist()
    return low, high


def _moved(
    values: FloatArray,
    centres: float | FloatArray,
    scales: float | FloatArray,
    exponents: float | FloatArray,
    lows: float | FloatArray,
    highs: float | FloatArray,
    floors: float | FloatArray = -np.inf,
    ceilings: float | FloatArray = np.inf,
    softness: float | FloatArray = 1.0,
    least: float | FloatArray = -np.inf,
    most: float | FloatArray = np.inf,
) -> tuple[FloatArray, FloatArray]:
    """Return transformed values, and the logarithms of the transform's derivative."""
    has_bounds = bool(np.any(np.isfinite(floors) | np.isfinite(ceilings)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what comes of it is refused
        freed, steep = values, np.zeros(())
        if has_bounds:
            freed, steep = _freed(np.clip(values, least, most), floors, ceilings, softness)
            steep = np.where((values < floors) | (values > ceilings), -np.inf, steep)
        z = (freed - centres) / scales
        held = np.clip(z, lows, highs)
        bent, slopes = _bent(held, exponents)
        moved, slopes = bent + (z - held) * np.exp(slopes), slopes - np.log(scales)
    return moved, slopes + steep if has_bounds else slopes


def _freed(
    values: FloatArray,
    floors: float | FloatArray,
    ceilings: float | FloatArray,
    softness: float | FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return values without bounds, and the logarithms of the derivative; without any, they are the same."""
    below, above = (values - floors) / softness, (ceilings - values) / softness
    line = np.where(np.isfinite(floors), below, np.where(np.isfinite(ceilings), -above, values))
    with np.errstate(over="ignore", divide="ignore"):  # far from a bound, and at one
        freed = line + np.log(-np.expm1(-below)) - np.log(-np.expm1(-above))
        slopes = np.log1p(1.0 / np.expm1(below) + 1.0 / np.expm1(above)) - np.log(softness)
    return freed, slopes


def _bent(z: FloatArray, exponents: float | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ψ of standardised values, precise also near 0, and the logarithms of its derivative."""
    logs = np.log1p(np.abs(z))
    powers = np.where(z >= 0.0, exponents, 2.0 - exponents)
    with np.errstate(invalid="ignore", divide="ignore"):  # of the other case
        raised = np.where(powers == 0.0, logs, np.expm1(powers * logs) / powers)
    return np.copysign(raised, z), (exponents - 1.0) * np.sign(z) * logs


def _root(values: FloatArray, exponent: float) -> FloatArray:
    logs = values if exponent == 0.0 else np.log1p(exponent * values) / exponent
    return np.expm1(np.minimum(logs, LARGEST_LOG))
