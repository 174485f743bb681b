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
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn._base.checks import choice
from spbn.errors import DataError, ModelFileError, setting
from spbn.numerics.spreads import LEVELS, centre_and_scale, spreads_from_quantiles, without_far_values
from spbn.tables.table import Table

KINDS = ("none", "yeo-johnson", "auto")
LEAST, GREATEST = 0.0, 2.0  # exponents for which the transform is a bijection
PRECISION = 1e-6  # of an exponent
BITS = 32.0  # limits have five binary digits
MOST_NATS = 3.0  # that a row counts for, where a transform is chosen
LARGEST_LOG = 700.0  # whose exponential is finite
AT_ONCE = 1 << 14  # rows, of which some arrays as large as the columns are made


@dataclass(frozen=True)
class YeoJohnson:
    """The transform of one column."""

    centre: float
    scale: float
    exponent: float
    #: Standardised values beyond which the transform is a straight line.
    low: float = -np.inf
    high: float = np.inf

    @classmethod
    def fit(cls, column: FloatArray, codes: IntArray | None = None) -> YeoJohnson:
        """Standardise, and choose the exponent under which a normal density makes the rows most likely.

        `codes`: the class of every row, if each class has a normal density of its own.
        """
        from scipy.optimize import minimize_scalar

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
        return _moved(column, *self.parameters)[0]

    def inverse(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore", invalid="ignore"):  # no draw is beyond infinity
            ends = _bent(np.array([self.low, self.high]), self.exponent)[0]
        held = np.clip(values, *ends)
        upper, lower = np.maximum(held, 0.0), np.maximum(-held, 0.0)
        z = _root(upper, self.exponent) - _root(lower, 2.0 - self.exponent)
        straight = (values - held) * np.exp(-_bent(z, self.exponent)[1])
        return self.centre + self.scale * (z + straight)

    def log_slope(self, column: FloatArray) -> FloatArray:
        return _moved(column, *self.parameters)[1]

    @property
    def parameters(self) -> tuple[float, ...]:
        """What `_moved` needs of it."""
        return self.centre, self.scale, self.exponent, self.low, self.high

    def __str__(self) -> str:
        return f"Yeo-Johnson, λ = {self.exponent:.2f}"


@dataclass(frozen=True)
class Margins:
    """The transforms of the continuous columns of a network; columns that are not here have none."""

    columns: Mapping[str, YeoJohnson]

    @classmethod
    def fit(cls, table: Table) -> Margins:
        """Fit a transform to every continuous column, which must not have one value only."""
        names = [variable.name for variable in table.variables if not variable.is_discrete]
        margins = cls({name: YeoJohnson.fit(table.column(name)) for name in names})
        for name, transform in margins.columns.items():
            _require_resolution(name, table.column(name), transform)
        return margins

    @classmethod
    def choose(cls, table: Table, codes: IntArray | None = None) -> Margins:
        """Fit transforms to the continuous columns that are predicted better with them.

        `codes`: the class of every row, if columns are predicted by classes.
        """
        names = [variable.name for variable in table.variables if not variable.is_discrete]
        found = {name: choose_transform(table.column(name), codes) for name in names}
        return cls({name: transform for name, transform in found.items() if transform is not None})

    @property
    def or_none(self) -> Margins | None:
        """None if no column has a transform."""
        return self if self.columns else None

    def __str__(self) -> str:
        return f"transformed: {', '.join(self.columns)} (equations are in transformed units)"

    def only(self, names: Collection[str]) -> Margins:
        return Margins({name: column for name, column in self.columns.items() if name in names})

    def transformed(self, table: Table) -> Table:
        return table.with_columns(self.moved(table.names, table.columns)[0])

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
        if not np.isfinite(moved).all():
            _require_finite(names, columns, moved)
        return moved, slopes

    def _stacked(self, names: tuple[str, ...]) -> tuple[IntArray, tuple[FloatArray, ...]]:
        """Return which columns have a transform, and the parameters of these: columns × 1."""
        if names not in self._stacks:
            places = [place for place, name in enumerate(names) if name in self.columns]
            found = [self.columns[names[place]] for place in places]
            numbers = np.array([column.parameters for column in found]).reshape(-1, 5, 1)
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


def choose_transform(column: FloatArray, codes: IntArray | None = None) -> YeoJohnson | None:
    """Return the transform of a column, or None if it is not predicted better with one.

    `codes`: the class of every row, if the column is predicted by classes.
    """
    quantiles = np.quantile(column, LEVELS, method="inverted_cdf")
    near = without_far_values(column[None], spreads_from_quantiles(quantiles[:, None]))[0]
    if near.min() == near.max():
        return None
    if codes is None:
        transform = YeoJohnson.fit(near)
        return transform if pays(log_density_gain(column, transform, quantiles), len(column)) else None
    transform, gain = YeoJohnson.fit(near, codes), 0.0
    for part in _classes_that_vary(column, codes):
        quantiles = np.quantile(column[part], LEVELS, method="inverted_cdf")
        within = log_density_gain(column[part], transform, quantiles)
        gain += within if np.isfinite(within) else 0.0
    return transform if pays(gain, len(column)) else None


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


def fit_transform(kind: str, column: FloatArray) -> YeoJohnson | None:
    """Return the transform that margins of a kind have for a column."""
    if kind == "auto":
        return choose_transform(column)
    return YeoJohnson.fit(column) if kind == "yeo-johnson" else None


def fitted(kind: str, table: Table, codes: IntArray | None = None) -> Margins | None:
    """Return the margins of a table; None if no column is to be transformed.

    `codes`: the class of every row, by which "auto" chooses.
    """
    require_kind(kind)
    if kind == "auto":
        return Margins.choose(table, codes).or_none
    return Margins.fit(table) if kind == "yeo-johnson" else None


def to_plain(margins: Margins, nodes: Sequence[str]) -> dict[str, Any]:
    """Describe the margins of the continuous nodes in plain data; null stands for no transform."""
    columns = {
        name: {key: value for key, value in vars(column).items() if np.isfinite(value)}
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
    values |= {key: entry[key] for key in ("low", "high") if key in entry}  # files of version 0.2 have none
    for value in values.values():
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise ValueError(f"{entry!r:.100} must hold numbers")
    found = YeoJohnson(**{key: float(value) for key, value in values.items()})
    if not (found.scale > 0.0 and LEAST <= found.exponent <= GREATEST and found.low <= 0.0 <= found.high):
        raise ValueError(f"{entry!r:.100} is not a transform")
    return found


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
) -> tuple[FloatArray, FloatArray]:
    """Return transformed values, and the logarithms of the transform's derivative."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # what comes of it is refused
        z = (values - centres) / scales
        held = np.clip(z, lows, highs)
        bent, slopes = _bent(held, exponents)
        return bent + (z - held) * np.exp(slopes), slopes - np.log(scales)


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
