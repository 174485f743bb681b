"""Where the network comes from: data, settings, versions, as its record has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from spbn.learning.settings import LearnSettings
from spbn.plots.layout import shortened
from spbn.plots.svg import Html, join, tag
from spbn.report.content import Content
from spbn.report.format import count, number, plural
from spbn.report.parts import heading, table

UNKNOWN = "not recorded"
LONGEST = 80  # letters of a setting; the table has all of it


def provenance_section(content: Content) -> Html:
    """Show what is on record; nothing is guessed."""
    record = content.network.record
    hint = (
        "What is needed to learn this network again: the same data, settings, seed and versions give the "
        "same result."
    )
    facts: list[tuple[str, str]] = [
        ("Data", _size(record.rows, record.columns)),
        ("SHA-256 of the data", tag("code", record.data_hash) if record.data_hash else UNKNOWN),
        ("Settings", _changed(record.settings)),
        ("Seed", str(record.seed) if record.seed is not None else UNKNOWN),
        ("Versions", ", ".join(f"{name} {text}" for name, text in record.versions.items()) or UNKNOWN),
        ("Time taken", _duration(record.seconds)),
    ]
    return join(
        heading("provenance", "Provenance", hint),
        tag(
            "div",
            tag("dl", *(join(tag("dt", name), tag("dd", value)) for name, value in facts), class_="facts"),
            _all_settings(record.settings),
            class_="card",
        ),
    )


def _size(rows: int | None, columns: tuple[str, ...]) -> str:
    if rows is None:
        return UNKNOWN
    return f"{plural(rows, 'row')}, {plural(len(columns), 'column')}"


def _changed(settings: Mapping[str, Any]) -> str:
    """List the settings that are not the defaults."""
    if not settings:
        return UNKNOWN
    defaults = LearnSettings().plain()  # those of `fit` are the same
    changed = [
        f"{name} = {shortened(_text(value), LONGEST)}"
        for name, value in settings.items()
        if name != "seed" and (name not in defaults or value != defaults[name])
    ]
    return ", ".join(changed) or "all at their defaults"


def _all_settings(settings: Mapping[str, Any]) -> Html:
    if not settings:
        return Html("")
    rows = [tag("tr", tag("td", name), tag("td", _text(value))) for name, value in settings.items()]
    return tag("details", tag("summary", "All settings"), table([("Setting", ""), ("Value", "")], rows))


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number(value) if value != round(value, 4) else f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} seconds"
    minutes = round(seconds / 60)
    return plural(minutes, "minute") if minutes < 120 else f"{count(round(minutes / 60))} hours"
