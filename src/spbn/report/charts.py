"""Small charts as SVG, for pages and notebooks, coloured by their style sheets to follow light and dark."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn.diagnostics.classification import BINS as RANGES
from spbn.diagnostics.classification import Assessment
from spbn.diagnostics.model import FitCheck
from spbn.diagnostics.rows import UnusualRows
from spbn.graphs.dag import Arc
from spbn.plots.graphs import layered, node_width
from spbn.plots.pictures import short_labels
from spbn.plots.timelines import BANDS, LOWEST_DRIFT, LOWEST_SHARE
from spbn.report.html import MINUS, Html, number, tag, type_class
from spbn.structure import Structure

if TYPE_CHECKING:
    import pandas as pd

BINS, SMALL_BINS = 48, 32  # of histograms on pages, and in notebooks
FAN_WIDTH, FAN_HEIGHT = 240.0, 44.0
STRIP_WIDTH, SHARES_HEIGHT, DRIFT_HEIGHT = 640.0, 74.0, 34.0
GAP = 8.0  # between the shares and the drift statistic
NO_LINES: Mapping[str, float] = MappingProxyType({})
FAR = 8.0  # times the distance from the median down to the least likely twentieth


def _svg(
    *parts: Html, box: str, label: str, kind: str | None = None, size: tuple[float, float] | None = None
) -> Html:
    """Put a chart together: of this class, and of this size if the style sheet gives it none."""
    width, height = size or (None, None)
    return tag(
        "svg", *parts, class_=kind, viewBox=box, width=width, height=height, role="img", aria_label=label
    )


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
    return _svg(
        *parts,
        box=f"0 0 {width:.0f} {height:.0f}",
        label=f"{name} by step, from {number(float(values[0]), 5)} to {number(float(values[-1]), 5)}",
        kind=f"chart steps {colour}",
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
    return _svg(
        tag("rect", x=0, y=height - scale * high, width=width, height=scale * (high - low), class_="band"),
        *bars,
        tag("line", x1=0, x2=width, y1=height - 0.5, y2=height - 0.5, class_="axis"),
        box=f"0 0 {width:.0f} {height:.0f}",
        label=f"Histogram of {name}: distance from uniform {check.distance:.3f}",
        kind="chart pit",
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
    return _svg(
        *parts,
        box=f"-6 0 {width + 12:.0f} {height:.0f}",
        label=f"Log-densities of all rows, from {number(low)} to {number(high)}",
        kind="chart spread",
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
    return _svg(
        *parts,
        box=f"0 0 {width:.0f} {height:.0f}",
        label=f"Reliability: calibration error {assessment.calibration_error:.3f}",
        kind="chart reliability",
    )


def small_histogram(values: FloatArray, weights: FloatArray, name: str) -> Html:
    """Draw a small histogram."""
    low, high = np.quantile(values, [0.002, 0.998], weights=weights, method="inverted_cdf").tolist()
    if not low < high:
        return Html("")
    counts, _ = np.histogram(values, SMALL_BINS, (low, high), weights=weights)
    heights = (18.0 * counts / counts.max()).tolist()
    path = "".join(f"M{4 * i} 18v{-height:.1f}h3.4v{height:.1f}z" for i, height in enumerate(heights))
    return _svg(
        tag("path", d=path, class_="bars"),
        box=f"0 0 {4 * SMALL_BINS} 18",
        label=f"Histogram of {name}",
        size=(4 * SMALL_BINS, 18),
    )


def fan_chart(before: FloatArray, paths: FloatArray, name: str) -> Html:
    """Draw the history, and the bands that the paths stay in."""
    steps = paths.shape[1]
    bands = [np.quantile(paths, [0.5 - share / 2, 0.5 + share / 2], axis=0) for share in BANDS]
    seen = np.concatenate([before[np.isfinite(before)], *bands[0]])
    low, high = float(seen.min()), float(seen.max())
    if not low < high:
        return Html("")
    total = len(before) - 1 + steps

    def points(first: int, values: FloatArray) -> list[str]:
        xs = FAN_WIDTH * (first + np.arange(len(values))) / total
        ys = 1.0 + (FAN_HEIGHT - 2.0) * (high - values) / (high - low)
        return [f"{x:.1f} {y:.1f}" for x, y in zip(xs.tolist(), ys.tolist(), strict=True) if np.isfinite(y)]

    now = len(before) - 1
    last = before[-1:]
    fans = []
    for lower, upper in bands:
        edge = points(now, np.append(last, lower)) + points(now, np.append(last, upper))[::-1]
        fans.append(tag("path", d=f"M{'L'.join(edge)}z", class_="fan"))
    middle = points(now, np.append(last, np.median(paths, axis=0)))
    return _svg(
        *fans,
        tag("path", d=f"M{'L'.join(middle)}", class_="median"),
        tag("path", d=f"M{'L'.join(points(0, before))}", class_="history"),
        box=f"0 0 {FAN_WIDTH:.0f} {FAN_HEIGHT:.0f}",
        label=f"Fan chart of {name}: the history, then what 50 % and 90 % of the paths stay in",
        size=(FAN_WIDTH, FAN_HEIGHT),
    )


def verdict_strip(found: pd.DataFrame, unusual: BoolArray, drifting: BoolArray) -> Html:
    """Draw shares, on a logarithmic axis, over the drift statistic."""
    if len(found) < 2:
        return Html("")
    shares = _depth(found["p_value"], LOWEST_SHARE) * SHARES_HEIGHT
    base = SHARES_HEIGHT + GAP
    drift = base + _depth(found["drift"], LOWEST_DRIFT) * DRIFT_HEIGHT
    xs = 4.0 + (STRIP_WIDTH - 8.0) * np.arange(len(found)) / (len(found) - 1)
    known = np.isfinite(shares) & ~unusual
    dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in _distinct(xs[known], shares[known]))
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in _distinct(xs, drift))
    marks = [(x, y) for x, y in zip(xs[unusual].tolist(), shares[unusual].tolist(), strict=True)]
    marks += [(x, base) for x in xs[drifting].tolist()]
    height = base + DRIFT_HEIGHT
    return _svg(
        tag("path", d=dots, class_="dots"),
        tag("path", d=f"M{line}" if line else "", class_="median"),
        *(tag("circle", cx=float(x), cy=float(y), r=3.0, class_="alarm") for x, y in marks),
        tag("text", "share as unusual", x=4, y=SHARES_HEIGHT - 3.0),
        tag("text", "drift statistic", x=4, y=base + 9.0),
        box=f"0 -4 {STRIP_WIDTH:.0f} {height + 8:.0f}",
        label=f"Shares and drift statistic of {len(found)} rows",
        kind="strip",
    )


def _depth(values: Any, lowest: float) -> FloatArray:
    """Return how far values are below 1 on a logarithmic axis that ends at the lowest: from 0 to 1."""
    numbers: FloatArray = np.asarray(values, dtype=np.float64)
    depth: FloatArray = np.log(np.clip(numbers, lowest, 1.0)) / np.log(lowest)
    return depth


def _distinct(xs: FloatArray, ys: FloatArray) -> list[tuple[float, float]]:
    """Return points without those that would be drawn over one another."""
    finite = np.isfinite(ys)
    return list(dict.fromkeys(zip(xs[finite].round(0).tolist(), ys[finite].round(0).tolist(), strict=True)))


UNIT = np.array([7.2, 82.0])  # pixels per character and per layer of the layout


NODE_HEIGHT = 36.0


MARGIN = 8.0


LONGEST_LABEL = 22


SMALLEST, LARGEST = 0.72, 1.5  # the graph is scaled within these to fit its box; then it scrolls


TALLEST = 620.0  # pixels up to which a small graph grows


THIN, THICK = 1.1, 4.0  # widths of arcs


DASHES = "7 4"


NO_NOTES: Mapping[Arc, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Places in pixels: centres of nodes, and routes of arcs from centre to centre."""

    labels: Mapping[str, str]
    centres: Mapping[str, FloatArray]
    routes: Mapping[Arc, FloatArray]
    width: float
    height: float

    def radii(self, node: str) -> FloatArray:
        """Half of the width and the height of a node."""
        return _radii(self.labels[node])


def graph_svg(
    structure: Structure,
    weights: Mapping[Arc, float],
    *,
    notes: Mapping[Arc, str] = NO_NOTES,
    linked: bool = True,
) -> Html:
    """Draw a structure.

    Parameters
    ----------
    weights
        How much an arc matters, from 0 to 1, where that is known.
    notes
        Why the direction of an arc is open, in words: such arcs are dashed.
    linked
        Whether every node is a link to its panel.
    """
    drawing = _place(structure)
    # Tab goes through the nodes as they are read: layer by layer, from the left.
    order = sorted(_drawn(structure), key=lambda node: tuple(drawing.centres[node][::-1].tolist()))
    grown = min(LARGEST, max(1.0, TALLEST / drawing.height))
    return tag(
        "svg",
        tag(
            "g",
            *(_arc(structure, drawing, arc, weights.get(arc), notes.get(arc)) for arc in structure.arcs),
            aria_hidden="true",
        ),
        tag("g", *(_node_or_input(structure, drawing, node, linked=linked) for node in order)),
        class_="graph",
        viewBox=f"0 0 {drawing.width:.0f} {drawing.height:.0f}",
        style=f"max-width:{grown * drawing.width:.0f}px;min-width:{SMALLEST * drawing.width:.0f}px",
        role="group",
        aria_label=f"Graph of {len(structure.nodes)} nodes and {len(structure.arcs)} arcs",
    )


def _place(structure: Structure) -> _Drawing:
    labels = short_labels(_drawn(structure), LONGEST_LABEL)
    layout = layered(list(labels.values()), [(labels[a], labels[b]) for a, b in structure.arcs])
    centres = {node: np.array(layout.centres[label]) * UNIT for node, label in labels.items()}
    routes = {(a, b): np.array(layout.routes[labels[a], labels[b]]) * UNIT for a, b in structure.arcs}
    # Curves stay within the hull of their control points.
    corners = [centre + sign * _radii(labels[node]) for node, centre in centres.items() for sign in (-1, 1)]
    corners += [point for route in routes.values() for point in _controls(route)]
    low, high = np.min(corners, axis=0) - MARGIN, np.max(corners, axis=0) + MARGIN
    return _Drawing(
        labels,
        {node: centre - low for node, centre in centres.items()},
        {arc: route - low for arc, route in routes.items()},
        *(high - low).tolist(),
    )


def _drawn(structure: Structure) -> tuple[str, ...]:
    """Return what is drawn: the nodes, and the inputs that they need."""
    return (*structure.nodes, *structure.used_inputs)


def _radii(label: str) -> FloatArray:
    return np.array([0.5 * node_width(label) * UNIT[0], 0.5 * NODE_HEIGHT])


def _node_or_input(structure: Structure, drawing: _Drawing, node: str, *, linked: bool) -> Html:
    x, y = drawing.centres[node].tolist()
    rx, ry = drawing.radii(node).tolist()
    if node in structure.inputs:
        return tag(
            "g",
            tag("title", f"{node} (input)"),
            tag("ellipse", cx=x, cy=y, rx=rx, ry=ry),
            tag("text", drawing.labels[node], x=x, y=y, dy="0.35em"),
            class_="input",
        )
    node_type, parents = structure.type(node), structure.parents(node)
    name = node_type.appearance.label
    given = f"parents: {', '.join(parents)}" if parents else "no parents"
    number = structure.nodes.index(node)
    parts = [
        tag("title", f"{node} ({name})"),
        tag("ellipse", cx=x, cy=y, rx=rx, ry=ry),
        tag("text", drawing.labels[node], x=x, y=y, dy="0.35em"),
    ]
    if not linked:
        return tag("g", *parts, class_=f"node {type_class(node_type)}")
    return tag(
        "a",
        *parts,
        class_=f"node {type_class(node_type)}",
        href=f"#node-{number}",
        data_node=number,
        data_name=node,
        aria_label=f"{node}: {name}, {given}",
    )


def _arc(structure: Structure, drawing: _Drawing, arc: Arc, weight: float | None, note: str | None) -> Html:
    source, target = arc
    route = drawing.routes[arc].copy()
    width = THIN + 0.4 if weight is None else THIN + (THICK - THIN) * weight
    head = 6.0 + 1.6 * width
    route[0] = _boundary(route[0], route[1], drawing.radii(source))
    tip = _boundary(route[-1], route[-2], drawing.radii(target))
    step = tip - route[-2]
    forward = step / max(1e-9, float(np.hypot(*step)))
    aside = 0.42 * head * np.array([-forward[1], forward[0]])
    base = tip - head * forward
    route[-1] = tip - 0.9 * head * forward  # the line ends inside the arrowhead
    return tag(
        "g",
        tag("title", f"{source} → {target}{f' (direction open: {note})' if note else ''}"),
        tag("path", d=_path(route), stroke_width=round(width, 2), stroke_dasharray=DASHES if note else None),
        tag("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, base + aside, base - aside))),
        class_="arc",
        data_from=structure.dag.index(source),
        data_to=structure.dag.index(target),
    )


def _boundary(centre: FloatArray, towards: FloatArray, radii: FloatArray) -> FloatArray:
    """Return where the line from the centre of a node leaves its ellipse, with a small gap."""
    step = towards - centre
    return centre + step / max(1e-9, float(np.hypot(*(step / (radii + 1.5)))))


def _controls(points: FloatArray) -> list[FloatArray]:
    """Return the control points of a smooth curve: three for each of its pieces."""
    tangents = np.gradient(points, axis=0) / 3.0
    return [
        control
        for k in range(len(points) - 1)
        for control in (points[k] + tangents[k], points[k + 1] - tangents[k + 1], points[k + 1])
    ]


def _path(points: FloatArray) -> str:
    start = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    if len(points) == 2:
        return f"{start}L{points[1][0]:.1f} {points[1][1]:.1f}"
    return f"{start}C{' '.join(f'{x:.1f} {y:.1f}' for x, y in _controls(points))}"
