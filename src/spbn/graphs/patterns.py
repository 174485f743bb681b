"""Patterns of names: `*` stands for any text, also none, and `?` for one character.

A name that is there always means itself, whatever it looks like. Brackets mean themselves too: names such as
``x[t-1]`` and ``weight [kg]`` have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import translate
from re import compile as compile_expression


def is_pattern(text: object) -> bool:
    """Tell whether a text has wildcards."""
    return isinstance(text, str) and not {"*", "?"}.isdisjoint(text)


def matching_places(pattern: str, names: Sequence[str]) -> list[int]:
    """Return which of the names a pattern matches."""
    matches = compile_expression(translate(pattern.replace("[", "[[]"))).match
    return [place for place, name in enumerate(names) if matches(name)]
