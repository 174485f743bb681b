"""Checks of arguments: one function per kind of value, one sentence per kind of mistake.

Each returns the value, so that it can be checked where it is stored, and refuses others with an
`ArgumentError` that names the argument.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn, TypeGuard, TypeVar

import numpy as np

from spbn.errors import ArgumentError, argument, in_python

T = TypeVar("T")


def refuse(name: str, requirement: str, value: object) -> NoReturn:
    """Raise the error for a value that is not what an argument must be."""
    raise ArgumentError(f"{argument(name)} must be {requirement}. Got {value!r} instead.")


def is_whole(value: object, least: int | None = None, most: int | None = None) -> TypeGuard[int]:
    """Tell whether a value is a whole number within limits; truth values are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return False
    return (least is None or int(value) >= least) and (most is None or int(value) <= most)


def is_number(value: object) -> TypeGuard[float]:
    """Tell whether a value is a finite number; truth values are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return math.isfinite(value)


def whole(name: str, value: object, least: int = 0, *, or_none: bool = False, requirement: str = "") -> int:
    """Return a whole number that is not too small.

    `or_none`: whether None would have been right too. That is for the error alone: nobody who has None asks.
    `requirement`: what it must be, instead of "a whole number, 0 or more".
    """
    if not is_whole(value, least):
        alternative = in_python(", or None") if or_none else ""
        refuse(name, requirement or f"a whole number, {least} or more{alternative}", value)
    return int(value)


def at_least_0(name: str, value: float, requirement: str = "0 or more") -> float:
    """Return a finite number that is not negative."""
    if not is_number(value) or value < 0:
        refuse(name, requirement, value)
    return value


def seconds(name: str, value: object) -> float | None:
    """Return a time, or None for no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        refuse(name, f"a number, 0 or more{in_python(', or None')}", value)
    return value


def fraction(name: str, value: float) -> float:
    """Return a number between 0 and 1, both excluded."""
    if not is_number(value) or not 0 < value < 1:
        refuse(name, "between 0 and 1", value)
    return value


def choice(name: str, value: T, options: Iterable[T]) -> T:
    """Return a value that is one of several: "one of 'a', 'b', 'c'"."""
    return _chosen(name, value, tuple(options), "one of {}", ", ")


def either(name: str, value: T, options: Iterable[T]) -> T:
    """Return a value that is one of a few: "'a' or 'b'"."""
    return _chosen(name, value, tuple(options), "{}", " or ")


def _chosen(name: str, value: T, options: tuple[T, ...], form: str, joint: str) -> T:
    if not (isinstance(value, str) and value in options):
        refuse(name, form.format(joint.join(map(repr, options))), value)
    return value
