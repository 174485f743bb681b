"""Read docstrings the way spbn writes them, for the API page (an extension of griffe).

NumPy's convention puts types in docstrings; ours has them only in the signature. Two things
would come out wrong: names that share one description would all get the type and the default of
the first, and a sentence about what is returned would be mistaken for its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    """Correct what docstrings say about parameters, attributes and returned values."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Take types and defaults from the code."""
        for thing in documented(pkg):
            for section in thing.docstring.parsed:
                if section.kind is griffe.DocstringSectionKind.parameters:
                    for parameter in section.value:
                        signature = thing.parameters[parameter.name]
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


def documented(thing: griffe.Object) -> Iterator[griffe.Object]:
    """Return the functions and classes of a package that have a docstring."""
    for member in thing.members.values():
        if not member.is_alias:
            if (member.is_function or member.is_class) and member.docstring is not None:
                yield member
            yield from documented(member)
