"""The "what if" explorer: samples of the network in the page, and a script that conditions on them.

The page holds the samples as bytes, one per value (two for a variable of many levels), and the script
counts those that satisfy what is asked. Nothing is fetched, and the network itself is not needed.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from spbn.plots.svg import Html, join, tag
from spbn.report.explorer_data import JointSample, Sampled
from spbn.report.format import count
from spbn.report.parts import heading, search_box

BYTE = 256  # values that one byte tells apart
TITLE = "What if?"


def what_if_section(sample: JointSample) -> Html:
    """Write the explorer: its controls, and the samples for the script that draws the charts."""
    hint = (
        "Drag across a chart to say which interval a variable lies in, or click levels. The other charts "
        "then show what is likely, given that, counted among "
        f"{count(sample.rows)} rows drawn from the network. Grey is what was expected before. By keyboard: "
        "Tab to an end of a chart, then use the arrow keys. This is about what is observed, not about what "
        "would happen if somebody set a value."
    )
    if sample.lags:
        further = ", x[t-2] two rows before, and so on" if sample.lags > 1 else ""
        hint += f" Of a variable x, x[t-1] is the value in the row before{further}."
    return join(heading("what-if", TITLE, hint), _explorer(), _data(sample))


def _explorer() -> Html:
    search = search_box("Find a variable")
    tools = [
        search,
        _button("changed", "Most changed first"),
        _button("sorted", "Table order"),
        tag("a", "Link to this question", class_="link", href="#what-if"),
        tag("span", class_="hidden small"),
    ]
    state = [
        tag("span", class_="remaining"),
        tag("span", tag("i"), class_="meter"),
        _button("reset", "Reset"),
    ]
    itself = tag(
        "details",
        tag("summary", "Ask the network itself"),
        tag("code", class_="code equation"),
        class_="itself",
        hidden=True,
    )
    return tag(
        "div",
        tag("svg", hidden=True),  # tells the script the namespace of pictures
        tag("p", "This part of the page needs JavaScript.", class_="scriptless hint"),
        tag("p", class_="question"),
        tag("div", *state, class_="state"),
        tag("p", class_="few warning", hidden=True),
        itself,
        tag("p", class_="spoken", role="status"),
        tag("div", *tools, class_="tools"),
        tag("ul", class_="variables"),
        id="explorer",
        class_="whatif",
    )


def _button(name: str, text: str) -> Html:
    return tag("button", text, type="button", class_=name)


def _data(sample: JointSample) -> Html:
    """Write the samples as text that a browser does not show."""
    content = {
        "rows": sample.rows,
        "lags": sample.lags,
        "variables": [_described(sampled) for sampled in sample.variables],
        "samples": base64.b64encode(b"".join(map(_packed, sample.variables))).decode(),
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return tag("div", text, id="explorer-data", hidden=True)


def _described(sampled: Sampled) -> dict[str, Any]:
    found: dict[str, Any] = {"name": sampled.variable.name}
    if sampled.axis is not None:
        return found | {"axis": asdict(sampled.axis)}
    return found | {"levels": sampled.variable.levels, "bytes": 2 if _is_wide(sampled) else 1}


def _is_wide(sampled: Sampled) -> bool:
    return len(sampled.variable.levels) > BYTE


def _packed(sampled: Sampled) -> bytes:
    return sampled.codes.astype("<u2" if _is_wide(sampled) else np.uint8).tobytes()
