"""Numbers as people write them."""

from __future__ import annotations

import math

MINUS = "\N{MINUS SIGN}"


def number(value: float, digits: int = 4) -> str:
    """Write a number with `digits` significant digits and thousands separators."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    size = abs(value)
    if size != 0 and not 1e-4 <= size < 1e9:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}".replace("-", MINUS)
    else:
        before_point = 0 if size == 0 else math.floor(math.log10(size)) + 1
        text = f"{size:,.{min(6, max(0, digits - before_point))}f}"
    return f"{MINUS}{text}" if value < 0 and float(text.replace(",", "").replace(MINUS, "-")) != 0 else text


def count(value: int) -> str:
    """Write a count with thousands separators."""
    return f"{value:,}"


def percent(share: float) -> str:
    """Write a relative change as a percentage, with its sign."""
    size = abs(share) * 100.0
    sign = MINUS if share < 0 else "+" if share > 0 else ""
    if 0 < size < 0.05:
        return "<0.1 %"
    if size > 999.5:
        return f"{sign}>999 %"
    if 99.5 <= size < 100:
        return f"{sign}>99 %"
    return f"{sign}{size:.1f} %" if size < 10 else f"{sign}{size:.0f} %"


def plural(n: int, word: str) -> str:
    """Write a count and what is counted."""
    return f"{count(n)} {word}{'' if n == 1 else 's'}"
