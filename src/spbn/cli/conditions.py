"""Conditions as people write them: ``E=3.5``, ``5<=D<=7``, ``C>0``, ``sex=F``, ``sex in F,M``.

Names of columns may hold spaces, operators and whatever else. So the text is not taken apart at its
operators: every known name is looked for, the longest first, and the first wins that leaves a condition.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from spbn.errors import ArgumentError, quoted

if TYPE_CHECKING:
    from spbn.tables.table import Variable

_ORDER = "<=|>=|<|>|≤|≥"  # people copy these from texts
_LEFT = re.compile(rf"\s*(?P<number>[^\s<>=≤≥]+)\s*(?P<sign>{_ORDER})\s*")
_RIGHT = re.compile(rf"\s*(?P<sign>{_ORDER})\s*(?P<number>[^\s<>=≤≥]+)\s*")
_EQUAL = re.compile(r"\s*==?\s*(?P<value>.*?)\s*", re.DOTALL)
_AMONG = re.compile(r"\s+in\s+(?P<values>.*?)\s*", re.DOTALL)
EXAMPLES = "'E=3.5', '5<=D<=7', 'C>0', 'sex=F' or 'sex in F,M'"


def conditions_in(option: str, texts: Sequence[str], variables: Sequence[Variable]) -> dict[str, Any]:
    """Read conditions, all of which hold, as the evidence that `BayesianNetwork.query` takes."""
    found: dict[str, Any] = {}
    for text in texts:
        name, value = condition_in(option, text, variables)
        found[name] = _both(option, name, found[name], value) if name in found else value
    return found


def condition_in(option: str, text: str, variables: Sequence[Variable]) -> tuple[str, Any]:
    """Read one condition: the name of a variable, and a value, an interval, or a list of levels."""
    longest_first = sorted(variables, key=lambda variable: -len(variable.name))
    for variable in longest_first:
        for left, right in _around(variable.name, text):
            read = _levels if variable.is_discrete else _numbers
            value = read(option, text, variable, left, right)
            if value is not None:
                return variable.name, value
    raise ArgumentError(_refusal(option, text, variables))


def require_intervals(event: dict[str, Any], variables: Sequence[Variable], example: str) -> None:
    """Refuse an event with an empty interval, or with one value of a continuous variable: neither can happen.

    Parameters
    ----------
    example
        An event that has one, with ``{name}`` in it, and ``{value}``, or ``{low}`` and ``{high}`` around it.
    """
    from spbn.inference.problem import read_region

    known = {variable.name: variable for variable in variables}
    for name, value in event.items():
        read_region(known[name], value, "the event")
        if not known[name].is_discrete and not isinstance(value, tuple):
            shown = example.format(name=name, value=value, low=value - 0.5, high=value + 0.5)
            raise ArgumentError(
                f"--event: {name!r} is continuous, so exactly {value:.12g} has probability 0. Ask for "
                f"an interval, such as '{shown}'."
            )


def _around(name: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield what is left and right of a name, wherever it stands as a word of its own."""
    for found in re.finditer(f"(?={re.escape(name)})", text):
        left, right = text[: found.start()], text[found.start() + len(name) :]
        if (not left or not _goes_on(left[-1], name[0])) and (not right or not _goes_on(name[-1], right[0])):
            yield left, right


def _goes_on(first: str, second: str) -> bool:
    return bool(re.fullmatch(r"\w\w", first + second))


def _levels(option: str, text: str, variable: Variable, left: str, right: str) -> Any:
    if left.strip():
        return None
    equal, among = _EQUAL.fullmatch(right), _AMONG.fullmatch(right)
    if equal:
        wanted = [equal["value"]]
    elif among:
        wanted = [value.strip() for value in next(csv.reader([among["values"]], skipinitialspace=True), [])]
    else:
        return None
    from spbn.tables.levels import level_of

    chosen = [level_of(value, variable.levels) for value in wanted]
    unknown = [value for value, level in zip(wanted, chosen, strict=True) if level not in variable.levels]
    if unknown or not chosen:
        raise ArgumentError(
            f"{option} {text!r}: {variable.name!r} has no level {quoted(unknown) or 'of that name'}. "
            f"Its levels are {quoted(variable.levels)}."
        )
    return chosen[0] if len(set(chosen)) == 1 else chosen


def _numbers(option: str, text: str, variable: Variable, left: str, right: str) -> Any:
    equal = _EQUAL.fullmatch(right)
    if equal and not left.strip():
        number = _number(equal["value"])
        if number is None or not math.isfinite(number):
            raise ArgumentError(
                f"{option} {text!r}: {variable.name!r} is continuous, and {equal['value']!r} is not a number."
            )
        return number
    before, after = _LEFT.fullmatch(left), _RIGHT.fullmatch(right)
    if bool(before) != bool(left.strip()) or bool(after) != bool(right.strip()) or not (before or after):
        return None
    bounds: dict[bool, float] = {}  # whether it is the upper one
    for match, is_upper in ((before, ">≥"), (after, "<≤")):
        if match is None:
            continue
        number = _number(match["number"])
        if number is None:
            raise ArgumentError(f"{option} {text!r}: {match['number']!r} is not a number.")
        upper = match["sign"][0] in is_upper
        if upper in bounds:
            raise ArgumentError(
                f"{option} {text!r} bounds {variable.name!r} twice from the same side: write "
                f"'5<={variable.name}<=7'."
            )
        bounds[upper] = number
    return (bounds.get(False), bounds.get(True))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number


def _both(option: str, name: str, first: Any, second: Any) -> Any:
    """Join two conditions on one variable: two intervals are both true where they overlap."""
    if not (isinstance(first, tuple) and isinstance(second, tuple)):
        raise ArgumentError(f"{option} names {name!r} more than once: give one condition for it.")
    lows, highs = ([end for end in ends if end is not None] for ends in zip(first, second, strict=True))
    return max(lows, default=None), min(highs, default=None)


def _refusal(option: str, text: str, variables: Sequence[Variable]) -> str:
    """Say why no condition can be read."""
    named = [variable for variable in variables if any(True for _ in _around(variable.name, text))]
    there = max(named, key=lambda variable: len(variable.name), default=None)
    if there is None:
        names = quoted(variable.name for variable in variables)
        return f"{option} {text!r} names no variable of the model. They are {names}."
    if there.is_discrete:
        example = f"'{there.name}={there.levels[0]}' or '{there.name} in {','.join(there.levels[:2])}'"
        return f"{option} {text!r} is not a condition on {there.name!r}, which is discrete: write {example}."
    example = f"'{there.name}=3.5', '{there.name}>0' or '5<={there.name}<=7'"
    return f"{option} {text!r} is not a condition on {there.name!r}: write for example {example}."


def in_words(texts: Sequence[str]) -> str:
    """Join conditions as they were written, so that an answer repeats the question."""
    return " and ".join(text.strip() for text in texts)
