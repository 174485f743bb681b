"""Commands whose options come from several places: what the parser of the command line sees of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any


def keyword_only(parameters: Iterable[Parameter], hints: Mapping[str, Any]) -> list[Parameter]:
    """Return parameters that can stand in any order, with their annotations as types instead of text."""
    return [p.replace(kind=Parameter.KEYWORD_ONLY, annotation=hints[p.name]) for p in parameters]


def taking(parameters: Sequence[Parameter], command: Callable[..., None]) -> Callable[..., None]:
    """Show a command with these parameters, whatever its function takes."""
    command.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command
