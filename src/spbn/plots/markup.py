"""Pieces of HTML and SVG in which text from users is always escaped."""

from __future__ import annotations

import re
from html import escape

#: What XML does not allow: control characters and halves of surrogate pairs.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_VOID = frozenset({"br", "hr", "input", "meta"})


class Html(str):
    """Text that is HTML already; any other text is escaped before it is added to it."""

    __slots__ = ()


def clean(text: str) -> str:
    """Replace characters that no document can hold."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)


def safe(text: str) -> Html:
    """Escape text, unless it is HTML."""
    return text if isinstance(text, Html) else Html(escape(clean(text), quote=True))


def join(*parts: str) -> Html:
    """Put pieces one after the other."""
    return Html("".join(safe(part) for part in parts))


def tag(name: str, /, *children: str, **attributes: str | int | float | bool | None) -> Html:
    """Make an element.

    In the names of attributes ``_`` stands for ``-``, and a ``_`` at the end is
    dropped. None and False leave an attribute out, True gives it no value.
    """
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {key}")
        else:
            shown = f"{value:.6g}" if isinstance(value, float) else str(value)
            written.append(f' {key}="{safe(shown)}"')
    opening = f"<{name}{''.join(written)}>"
    return Html(opening if name in _VOID else f"{opening}{join(*children)}</{name}>")
