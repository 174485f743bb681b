"""What is known: values, intervals and sets of levels, as people write them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from spbn.errors import ArgumentError, quoted
from spbn.joint import Joint
from spbn.nodes.regions import Interval, Levels, Region
from spbn.tables.levels import as_text
from spbn.tables.table import Variable


class Known(NamedTuple):
    """Evidence in the units of the densities: values, level codes, and regions."""

    points: dict[str, float]
    regions: dict[str, Region]


def read_evidence(network: Joint, evidence: Mapping[str, Any] | None, what: str) -> Known:
    """Read evidence or interventions, and refuse what makes no sense.

    A number or a level is a value; a pair (low, high), either of which may be None, is an interval; a set
    or a list of levels says that it is one of them.
    """
    if evidence is not None and not isinstance(evidence, Mapping):
        raise ArgumentError(f"{what} must be a dict of variables and values. Got {evidence!r:.100}.")
    variables = {variable.name: variable for variable in network.variables}
    known = Known({}, {})
    for name, value in (evidence or {}).items():
        if name not in variables:
            raise ArgumentError(
                f"{what} names the unknown variable {name!r}. The network has {quoted(variables)}."
            )
        variable = variables[name]
        found: float | Region | None = (
            _levels(variable, value, what)
            if variable.is_discrete
            else _in_density_units(network, name, _numbers(variable, value, what))
        )
        if isinstance(found, float):
            known.points[name] = found
        elif found is not None:
            known.regions[name] = found
    return known


def read_region(variable: Variable, value: Any, what: str) -> Region | None:
    """Read a value, an interval or levels as a region, in the units of the data; None is everything."""
    found = _levels(variable, value, what) if variable.is_discrete else _numbers(variable, value, what)
    if isinstance(found, float):
        return Levels((int(found),)) if variable.is_discrete else Interval(found, found)
    return found


def _levels(variable: Variable, value: Any, what: str) -> float | Levels | None:
    several = isinstance(value, Set | list | tuple | np.ndarray)
    wanted = [as_text(level) for level in (value if several else [value])]
    unknown = [level for level in wanted if level not in variable.levels]
    if unknown:
        raise ArgumentError(
            f"{what}: {variable.name!r} has no level {quoted(unknown)}. Its levels are "
            f"{quoted(variable.levels)}."
        )
    places = tuple(sorted({variable.levels.index(level) for level in wanted}))
    if not places:
        raise ArgumentError(f"{what}: the set of levels of {variable.name!r} is empty.")
    if len(places) == len(variable.levels) and several:
        return None  # nothing is said
    return float(places[0]) if len(places) == 1 else Levels(places)


def _numbers(variable: Variable, value: Any, what: str) -> float | Interval | None:
    name = variable.name
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise ArgumentError(f"{what}: an interval of {name!r} is a pair (low, high). Got {value!r}.")
        low = -math.inf if value[0] is None else _number(name, value[0], what)
        high = math.inf if value[1] is None else _number(name, value[1], what)
        if not low < high:
            raise ArgumentError(f"{what}: the interval of {name!r} is empty: {low:.12g} to {high:.12g}.")
        if math.isinf(low) and math.isinf(high):
            return None
        return Interval(low, high)
    number = _number(name, value, what)
    if not math.isfinite(number):
        raise ArgumentError(f"{what}: the value of {name!r} must be finite. Got {value!r}.")
    return number


def _number(name: str, value: Any, what: str) -> float:
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or math.isnan(value):
        raise ArgumentError(
            f"{what}: {name!r} is continuous and takes a number or an interval (low, high). Got {value!r}."
        )
    return float(value)


def _in_density_units(network: Joint, name: str, known: float | Interval | None) -> float | Interval | None:
    """Return what is known in the units of the densities."""
    if isinstance(known, Interval):
        return Interval(
            _number_in_density_units(network, name, known.low),
            _number_in_density_units(network, name, known.high),
        )
    return None if known is None else _number_in_density_units(network, name, known)


def _number_in_density_units(network: Joint, name: str, value: float) -> float:
    if network.margins is None or not math.isfinite(value):
        return value
    return float(network.margins.columns[name].forward(np.array([value]))[0])
