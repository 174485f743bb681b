"""Text from anywhere, made fit for a terminal."""

from __future__ import annotations

import re

# Control characters (C0, DEL, C1), marks that turn the direction of text, line separators, and half
# characters that cannot be encoded. Names in a file may hold any of these, and a terminal obeys them.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Write what a terminal would obey as an escape, such as \x1b; the text is then one line."""
    return _UNSAFE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
