"""Tables as Markdown, and their places in a page of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1) -> str:
    """Return a Markdown table whose first columns are text and the others numbers."""
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    lines = [header, rule, *rows]
    return "\n".join("| " + " | ".join(str(value) for value in line) + " |" for line in lines) + "\n"


def signed(value: float, decimals: int = 2) -> str:
    """Write a number with its proper minus sign; a dash if it is missing."""
    return "–" if value != value else f"{value:,.{decimals}f}".replace("-", "−")


def spread(values: pd.Series, decimals: int = 2) -> str:
    """Write mean and standard deviation, on one line whatever the width of the column."""
    return (
        f"{signed(values.mean(), decimals)}\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}{values.std():.{decimals}f}"
    )


def change(value: float, decimals: int) -> str:
    """Write a difference with its sign, plus or minus; a dash if it is missing."""
    return "–" if value != value else f"{value:+.{decimals}f}".replace("-", "−")


def place(value: float, low: float, high: float) -> str:
    """Say where a published value, printed with two decimals, lies relative to a range."""
    if low - 0.005 <= value <= high + 0.005:
        return "within"
    return "above" if value > high else "below"


def move_tables(folder: Path, page: Path) -> None:
    """Move every ``NAME.md`` of a folder into the page, between ``<!-- NAME -->`` and ``<!-- /NAME -->``."""
    content = page.read_text(encoding="utf-8")
    for path in sorted(folder.glob("*.md")):
        begin, end = f"<!-- {path.stem} -->", f"<!-- /{path.stem} -->"
        between = re.compile(f"(?<={re.escape(begin)}).*(?={re.escape(end)})", re.DOTALL)
        text = path.read_text(encoding="utf-8")
        content, places = between.subn(lambda _, text=text: f"\n\n{text.strip()}\n\n", content)
        if not places:
            raise ValueError(
                f"{page} has no place for {path.name}: write {begin} and {end} where it belongs."
            )
        path.unlink()
    page.write_text(content, encoding="utf-8")
