"""Small charts as SVG, coloured by the style sheet so that they follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from spbn._base.arrays import FloatArray, IntArray
from spbn.diagnostics.classification import BINS as RANGES
from spbn.diagnostics.classification import Assessment
from spbn.diagnostics.unusual import UnusualRows
from spbn.diagnostics.validation import FitCheck
from spbn.plots.svg import Html, tag
from spbn.report.format import MINUS, number

BINS = 48
NO_LINES: Mapping[str, float] = MappingProxyType({})
FAR = 8.0  # times the distance from the median down to the least likely twentieth


def line_chart(
    values: Sequence[float], *, first: int, best: int | None, titles: Sequence[str], name: str, colour: str
) -> Html:
    """Draw a value after every step, with the best one marked.

    Parameters
    ----------
    first
        Number of the first step.
    best
        Number of the step to mark.
    titles
        What to show when the pointer is over a point, one for each.
    colour
        Class of the line: "c1" or "c2".
    """
    left, right, top, bottom = 74.0, 16.0, 22.0, 30.0
    last = first + len(values) - 1
    # However many steps there are, the curve is seen as a whole: steps close up.
    width, height = 540.0, 210.0
    steps = np.arange(first, last + 1)
    finite = [value for value in values if np.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 1.0, high + 1.0
    xs = left + (width - left - right) * steps / max(1, last)
    ys = top + (height - top - bottom) * (high - np.array(values)) / (high - low)
    shown = [(x, y, title) for x, y, title in zip(xs, ys, titles, strict=True) if np.isfinite(y)]
    parts = []
    for value, label in _round_values(low, high):
        y = top + (height - top - bottom) * (high - value) / (high - low)
        parts.append(tag("line", x1=left, x2=width - right, y1=y, y2=y, class_="grid"))
        parts.append(tag("text", label, x=left - 8, y=y, dy="0.35em", class_="end"))
    for step in _ticks(last):
        x = left + (width - left - right) * step / max(1, last)
        parts.append(tag("text", str(step), x=float(x), y=height - 10, class_="middle"))
    if best is not None and len(values) > 1:
        x = float(left + (width - left - right) * best / max(1, last))
        parts.append(tag("line", x1=x, x2=x, y1=top - 4, y2=height - bottom, class_="best"))
        anchor = "end" if x > width - 60 else "start" if x < left + 30 else "middle"
        parts.append(tag("text", "best", x=x, y=top - 9, class_=anchor))
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in shown)
    parts.append(tag("path", d=f"M{line}" if line else "", class_="line"))
    radius = 3.0 if last < 45 else 2.0 if last < 120 else 1.2
    parts += [tag("circle", tag("title", title), cx=float(x), cy=float(y), r=radius) for x, y, title in shown]
    return tag(
        "svg",
        *parts,
        class_=f"chart steps {colour}",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=f"{name} by step, from {number(float(values[0]), 5)} to {number(float(values[-1]), 5)}",
    )


def _round_values(low: float, high: float) -> list[tuple[float, str]]:
    """Return three to six round numbers in a range, with their text."""
    power = math.floor(math.log10((high - low) / 3.0))
    step = 10.0**power * next(s for s in (5.0, 2.0, 1.0) if (high - low) / (10.0**power * s) >= 3.0)
    values = (step * np.arange(math.ceil(low / step), math.floor(high / step) + 1)).tolist()
    return [(value, f"{value:,.{max(0, -power)}f}".replace("-", MINUS)) for value in values]


def _ticks(last: int) -> list[int]:
    stride = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if last / s <= 12)
    return list(range(0, last + 1, stride))


def uniform_histogram(check: FitCheck, name: str) -> Html:
    """Draw a histogram that should be flat, with the band that chance allows for."""
    width, height = 200.0, 74.0
    low, high = check.band
    top = max(*check.counts, high * 1.15)
    scale = (height - 2.0) / top
    each = width / len(check.counts)
    bars = []
    for i, counted in enumerate(check.counts):
        outside = not low <= counted <= high
        bars.append(
            tag(
                "rect",
                x=i * each + 0.75,
                y=height - scale * counted,
                width=each - 1.5,
                height=scale * counted,
                class_="bar out" if outside else "bar",
            )
        )
    return tag(
        "svg",
        tag("rect", x=0, y=height - scale * high, width=width, height=scale * (high - low), class_="band"),
        *bars,
        tag("line", x1=0, x2=width, y1=height - 0.5, y2=height - 0.5, class_="axis"),
        class_="chart pit",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=f"Histogram of {name}: distance from uniform {check.distance:.3f}",
    )


def binned(logpdf: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the edges and counts of a histogram of log-densities, in which far rows are in the first bar.

    A few rows far away would otherwise squeeze all others into one bar.
    """
    median, low = np.quantile(logpdf, [0.5, 0.05])
    counts, edges = np.histogram(np.maximum(logpdf, median - FAR * (median - low)), bins=BINS)
    return edges, counts


def density_histogram(unusual: UnusualRows, lines: Mapping[str, float] = NO_LINES) -> Html:
    """Draw how the log-densities of all rows are spread, with the least likely rows marked.

    Parameters
    ----------
    lines
        Log-densities to mark with a line, by what is written beside it.
    """
    width, height, bottom = 560.0, 140.0, 34.0
    edges, counts = (found.tolist() for found in binned(unusual.logpdf))
    low, high = edges[0], edges[-1]
    scale = width / (high - low)
    top = max(counts)
    parts = [
        tag(
            "rect",
            x=(a - low) * scale + 0.5,
            y=(height - bottom) * (1 - counted / top),
            width=max(0.5, (b - a) * scale - 1.0),
            height=(height - bottom) * counted / top,
            class_="bar",
        )
        for (a, b), counted in zip(pairwise(edges), counts, strict=True)
    ]
    axis = height - bottom
    parts.append(tag("line", x1=0, x2=width, y1=axis, y2=axis, class_="axis"))
    for row in unusual.rows:
        x = (max(low, row.logpdf) - low) * scale
        title = tag("title", f"{row.label}: {number(row.logpdf)}")
        parts.append(tag("path", title, d=f"M{x:.1f} {axis + 2:.1f}l-4 9h8z", class_="mark"))
    for i, (name, level) in enumerate(lines.items()):
        x = (min(high, max(low, level)) - low) * scale
        y = 11.0 + 15.0 * i
        parts.append(tag("line", x1=x, x2=x, y1=y - 8.0, y2=axis, class_="best"))
        anchor, shift = ("start", 5.0) if x < 0.8 * width else ("end", -5.0)
        parts.append(tag("text", name, x=x + shift, y=y, class_=anchor))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        value = number(low + share * (high - low))
        beyond = "≤ " if share == 0.0 and unusual.logpdf.min() < low else ""
        parts.append(tag("text", beyond + value, x=share * width, y=height - 6, class_=anchor))
    return tag(
        "svg",
        *parts,
        class_="chart spread",
        viewBox=f"-6 0 {width + 12:.0f} {height:.0f}",
        role="img",
        aria_label=f"Log-densities of all rows, from {number(low)} to {number(high)}",
    )


def reliability_diagram(assessment: Assessment) -> Html:
    """Draw how often predictions are right, by the probability that they were given."""
    size, left, right, top, bottom = 240.0, 44.0, 24.0, 10.0, 56.0
    width, height = left + size + right, top + size + bottom
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = left + size * share, top + size * (1.0 - share)
        parts.append(tag("line", x1=left, x2=left + size, y1=y, y2=y, class_="grid"))
        parts.append(
            tag("text", f"{share:.0%}".replace("%", " %"), x=left - 8, y=y, dy="0.35em", class_="end")
        )
        parts.append(tag("text", f"{share:.0%}".replace("%", " %"), x=x, y=top + size + 18, class_="middle"))
    parts.append(tag("line", x1=left, y1=top + size, x2=left + size, y2=top, class_="best"))
    most = max(found.rows for found in assessment.reliability if found is not None)
    for place, found in enumerate(assessment.reliability):
        if found is None:
            continue
        title = tag(
            "title",
            f"{found.rows} rows with {place / RANGES:.0%} to {(place + 1) / RANGES:.0%}: on average "
            f"{found.probability:.1%}, right {found.correct:.1%}",
        )
        x, y = left + size * found.probability, top + size * (1.0 - found.correct)
        radius = 3.0 + 9.0 * math.sqrt(found.rows / most)
        parts.append(tag("circle", title, cx=float(x), cy=float(y), r=radius))
    middle = left + size / 2
    parts.append(tag("text", "probability of the predicted class", x=middle, y=height - 16, class_="middle"))
    return tag(
        "svg",
        *parts,
        class_="chart reliability",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        aria_label=f"Reliability: calibration error {assessment.calibration_error:.3f}",
    )
