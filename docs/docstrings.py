"""Read docstrings the way spbn writes them, for the API page (an extension of griffe).

NumPy's convention puts types in docstrings; ours has them only in the signature. Two things
would come out wrong: names that share one description would all get the type and the default of
the first, and a sentence about what is returned would be mistaken for its type.

The arguments of `learn` are described where they are declared, and put in the place of ``{options}`` in
docstrings when these are imported; so is the signature. Such docstrings are read from what was imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Correct what docstrings say about parameters, attributes and returned values."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Take types and defaults from the code."""
        for thing in documented(pkg):
            parameters = {parameter.name: parameter for parameter in thing.parameters}
            if "{options}" in thing.docstring.value:
                parameters = imported_parameters(thing)
            for section in thing.docstring.parsed:
                if section.kind is griffe.DocstringSectionKind.parameters:
                    for parameter in section.value:
                        signature = parameters[parameter.name]
                        parameter.annotation, parameter.value = signature.annotation, signature.default
                elif section.kind is griffe.DocstringSectionKind.attributes:
                    for attribute in section.value:
                        member = thing.members.get(attribute.name)
                        attribute.annotation = getattr(member, "annotation", None)
                elif section.kind is griffe.DocstringSectionKind.returns:
                    sentence = " ".join(str(line.annotation) for line in section.value)
                    section.value = [
                        griffe.DocstringReturn(name="", annotation=thing.returns, description=sentence)
                    ]


def imported_parameters(thing: griffe.Object) -> dict[str, griffe.Parameter]:
    """Give something the docstring and the parameters that it has once it is imported."""
    imported = getattr(import_module(thing.module.path), thing.name)
    thing.docstring.value = inspect.getdoc(imported)
    found = [
        griffe.Parameter(
            parameter.name,
            annotation=None if parameter.annotation is parameter.empty else str(parameter.annotation),
            kind=griffe.ParameterKind.keyword_only
            if parameter.kind is parameter.KEYWORD_ONLY
            else griffe.ParameterKind.positional_or_keyword,
            default=None if parameter.default is parameter.empty else repr(parameter.default),
        )
        for parameter in inspect.signature(imported).parameters.values()
    ]
    if thing.is_function:
        thing.parameters = griffe.Parameters(*found)
    else:
        this = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
        thing.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(this, *found)))
    return {parameter.name: parameter for parameter in found}


def documented(thing: griffe.Object) -> Iterator[griffe.Object]:
    """Return the functions and classes of a package that have a docstring."""
    for member in thing.members.values():
        if not member.is_alias:
            if (member.is_function or member.is_class) and member.docstring is not None:
                yield member
            yield from documented(member)
