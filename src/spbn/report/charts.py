"""Graphs and small charts as SVG, for pages and notebooks: style sheets colour them, light or dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from spbn._base.arrays import BoolArray, FloatArray, IntArray
from spbn._base.lazy import pd
from spbn.diagnostics.classification import BINS as RANGES
from spbn.diagnostics.classification import Assessment
from spbn.diagnostics.model import FitCheck
from spbn.diagnostics.rows import UnusualRows
from spbn.graphs.dag import Arc
from spbn.plots.figures import BANDS, LOWEST_DRIFT, LOWEST_SHARE
from spbn.plots.graphs import layered, node_width, on_ellipse
from spbn.plots.pictures import short_labels
from spbn.report.html import MINUS, Html, number, percentage, round_width, tag, type_class
from spbn.structure import Structure

BINS, SMALL_BINS = 48, 32  # of histograms on pages, and in notebooks
FAN_WIDTH, FAN_HEIGHT = 240.0, 44.0
STRIP_WIDTH, SHARES_HEIGHT, DRIFT_HEIGHT = 640.0, 74.0, 34.0
GAP = 8.0  # between the shares and the drift statistic
FAR = 8.0  # times the distance from the median down to the least likely twentieth

UNIT = np.array([7.2, 82.0])  # pixels per character and per layer of the layout
NODE_HEIGHT, GAP_AROUND = 36.0, 1.5
MARGIN = 8.0
LONGEST_LABEL = 22
SMALLEST, LARGEST = 0.72, 1.5  # the graph is scaled within these to fit its box; then it scrolls
TALLEST = 620.0  # pixels up to which a small graph grows
THIN, THICK = 1.1, 4.0  # widths of arcs
DASHES = "7 4"
HEADING = 44.0  # pixels: letters of the name of a cluster, unless its box is small


def _svg(
    kind: str | None, label: str, size: tuple[float, float], *parts: Html, corner: tuple[int, int] = (0, 0)
) -> Html:
    """Put a chart together; one without a class has a fixed size, since no style sheet gives it one."""
    width, height = size if kind is None else (None, None)
    box = f"{corner[0]} {corner[1]} {size[0]:.0f} {size[1]:.0f}"
    return tag(
        "svg", *parts, class_=kind, viewBox=box, width=width, height=height, role="img", aria_label=label
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return tag("line", x1=x1, x2=x2, y1=y1, y2=y2, class_=kind)


def _bar(x: float, y: float, width: float, height: float, kind: str) -> Html:
    return tag("rect", x=x, y=y, width=width, height=height, class_=kind)


def _path(points: Iterable[tuple[float, float]], kind: str, *, closed: bool = False) -> Html:
    """Draw straight lines through points."""
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return tag("path", d=f"M{line}{'z' if closed else ''}" if line else "", class_=kind)


def line_chart(
    values: Sequence[float], *, first: int, best: int | None, titles: Sequence[str], name: str, colour: str
) -> Html:
    """Draw a value after every step from the first on, with the best step marked.

    A title is shown when the pointer is over its point. The colour is a class: "c1" or "c2".
    """
    left, right, top, bottom = 74.0, 16.0, 22.0, 30.0
    last = first + len(values) - 1
    # However many steps there are, the curve is seen as a whole: steps close up.
    width, height = 540.0, 210.0
    finite = [value for value in values if np.isfinite(value)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 1.0, high + 1.0

    def across(step: int) -> float:
        return left + (width - left - right) * step / max(1, last)

    def down(value: float) -> float:
        return top + (height - top - bottom) * (high - value) / (high - low)

    parts = []
    # Lines at three to six round numbers.
    digit, power = round_width(high - low, 3.0)
    gap = 10.0**power * digit
    for place in range(math.ceil(low / gap), math.floor(high / gap) + 1):
        value = gap * place
        y, label = down(value), f"{value:,.{max(0, -power)}f}".replace("-", MINUS)
        parts.append(_line(left, y, width - right, y, "grid"))
        parts.append(tag("text", label, x=left - 8, y=y, dy="0.35em", class_="end"))
    stride = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if last / s <= 12)
    for step in range(0, last + 1, stride):
        parts.append(tag("text", str(step), x=across(step), y=height - 10, class_="middle"))
    if best is not None and len(values) > 1:
        x = across(best)
        parts.append(_line(x, top - 4, x, height - bottom, "best"))
        anchor = "end" if x > width - 60 else "start" if x < left + 30 else "middle"
        parts.append(tag("text", "best", x=x, y=top - 9, class_=anchor))
    points = [(across(step), down(value)) for step, value in enumerate(values, first)]
    shown = [(x, y, title) for (x, y), title in zip(points, titles, strict=True) if np.isfinite(y)]
    parts.append(_path([(x, y) for x, y, _ in shown], "line"))
    radius = 3.0 if last < 45 else 2.0 if last < 120 else 1.2
    parts += [tag("circle", tag("title", title), cx=float(x), cy=float(y), r=radius) for x, y, title in shown]
    label = f"{name} by step, from {number(float(values[0]), 5)} to {number(float(values[-1]), 5)}"
    return _svg(f"chart steps {colour}", label, (width, height), *parts)


def uniform_histogram(check: FitCheck, name: str) -> Html:
    """Draw a histogram that should be flat, with the band that chance allows for."""
    width, height = 200.0, 74.0
    low, high = check.band
    scale = (height - 2.0) / max(*check.counts, high * 1.15)
    each = width / len(check.counts)
    parts = [_bar(0.0, height - scale * high, width, scale * (high - low), "band")]
    for i, rows in enumerate(check.counts):
        kind, tall = "bar" if low <= rows <= high else "bar out", scale * rows
        parts.append(_bar(i * each + 0.75, height - tall, each - 1.5, tall, kind))
    parts.append(_line(0, height - 0.5, width, height - 0.5, "axis"))
    label = f"Histogram of {name}: distance from uniform {check.distance:.3f}"
    return _svg("chart pit", label, (width, height), *parts)


def binned(logpdf: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return the edges and counts of a histogram of log-densities, in which far rows are in the first bar.

    A few rows far away would otherwise squeeze all others into one bar.
    """
    median, low = np.quantile(logpdf, [0.5, 0.05])
    counts, edges = np.histogram(np.maximum(logpdf, median - FAR * (median - low)), bins=BINS)
    return edges, counts


def density_histogram(unusual: UnusualRows, lines: Mapping[str, float]) -> Html:
    """Draw how the log-densities of all rows are spread, with the least likely rows marked.

    Lines mark further log-densities, by what is written beside them.
    """
    width, height, axis = 560.0, 140.0, 106.0
    edges, counts = (found.tolist() for found in binned(unusual.logpdf))
    low, high = edges[0], edges[-1]

    def across(value: float) -> float:
        return (min(high, max(low, value)) - low) * width / (high - low)

    parts = []
    for (a, b), rows in zip(pairwise(edges), counts, strict=True):
        wide, tall = max(0.5, across(b) - across(a) - 1.0), axis * rows / max(counts)
        parts.append(_bar(across(a) + 0.5, axis - tall, wide, tall, "bar"))
    parts.append(_line(0, axis, width, axis, "axis"))
    for row in unusual.rows:
        title = tag("title", f"{row.label}: {number(row.logpdf)}")
        parts.append(tag("path", title, d=f"M{across(row.logpdf):.1f} {axis + 2:.1f}l-4 9h8z", class_="mark"))
    for i, (name, level) in enumerate(lines.items()):
        x, y = across(level), 11.0 + 15.0 * i
        parts.append(_line(x, y - 8.0, x, axis, "best"))
        anchor, shift = ("start", 5.0) if x < 0.8 * width else ("end", -5.0)
        parts.append(tag("text", name, x=x + shift, y=y, class_=anchor))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        value = number(low + share * (high - low))
        beyond = "≤ " if share == 0.0 and unusual.logpdf.min() < low else ""
        parts.append(tag("text", beyond + value, x=share * width, y=height - 6, class_=anchor))
    label = f"Log-densities of all rows, from {number(low)} to {number(high)}"
    return _svg("chart spread", label, (width + 12.0, height), *parts, corner=(-6, 0))


def reliability_diagram(assessment: Assessment) -> Html:
    """Draw how often predictions are right, by the probability that they were given."""
    size, left, right, top, bottom = 240.0, 44.0, 24.0, 10.0, 56.0
    width, height = left + size + right, top + size + bottom
    parts = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y, label = left + size * share, top + size * (1.0 - share), percentage(share)
        parts.append(_line(left, y, left + size, y, "grid"))
        parts.append(tag("text", label, x=left - 8, y=y, dy="0.35em", class_="end"))
        parts.append(tag("text", label, x=x, y=top + size + 18, class_="middle"))
    parts.append(tag("line", x1=left, y1=top + size, x2=left + size, y2=top, class_="best"))
    most = max(found.rows for found in assessment.reliability if found is not None)
    for place, found in enumerate(assessment.reliability):
        if found is None:
            continue
        title = (
            f"{found.rows} rows with {place / RANGES:.0%} to {(place + 1) / RANGES:.0%}: on average "
            f"{found.probability:.1%}, right {found.correct:.1%}"
        )
        x, y = left + size * found.probability, top + size * (1.0 - found.correct)
        radius = 3.0 + 9.0 * math.sqrt(found.rows / most)
        parts.append(tag("circle", tag("title", title), cx=x, cy=y, r=radius))
    middle = left + size / 2
    parts.append(tag("text", "probability of the predicted class", x=middle, y=height - 16, class_="middle"))
    label = f"Reliability: calibration error {assessment.calibration_error:.3f}"
    return _svg("chart reliability", label, (width, height), *parts)


def small_histogram(values: FloatArray, weights: FloatArray, name: str) -> Html:
    """Draw a small histogram."""
    low, high = np.quantile(values, [0.002, 0.998], weights=weights, method="inverted_cdf").tolist()
    if not low < high:
        return Html("")
    counts, _ = np.histogram(values, SMALL_BINS, (low, high), weights=weights)
    heights = (18.0 * counts / counts.max()).tolist()
    path = "".join(f"M{4 * i} 18v{-height:.1f}h3.4v{height:.1f}z" for i, height in enumerate(heights))
    return _svg(None, f"Histogram of {name}", (4 * SMALL_BINS, 18), tag("path", d=path, class_="bars"))


def quick_view(values: FloatArray, given: FloatArray | None, names: Sequence[str]) -> Html:
    """Draw a column: a histogram, or dots against another; names are the column's and that of the other."""
    width, height, left, bottom = 300.0, 180.0, 8.0, 22.0
    shown, name = (values, names[0]) if given is None else (given, names[1])
    low, high = float(shown.min()), float(shown.max())

    def across(some: FloatArray) -> FloatArray:
        return left + (width - 2.0 * left) * (some - low) / max(1e-300, high - low)

    if given is None:
        counts, edges = np.histogram(values, SMALL_BINS, (low, high))
        xs, tall = across(edges).tolist(), (160.0 * counts / counts.max() - 6.0).clip(0.0).tolist()
        base = height - bottom
        parts = [_bar(x, base - h, xs[1] - xs[0] - 1.0, h, "bar") for x, h in zip(xs, tall, strict=False)]
    else:
        ys = 6.0 + (height - bottom - 12.0) * (values.max() - values) / max(1e-300, np.ptp(values))
        dots = "".join(f"M{x:.0f} {y:.0f}h0" for x, y in dict.fromkeys(_distinct(across(given), ys)))
        parts = [tag("path", d=dots, class_="cloud")]
    parts.append(_line(left, height - bottom, width - left, height - bottom, "axis"))
    ends = ((left, number(low), "start"), (width / 2, name, "middle"), (width - left, number(high), "end"))
    parts += [tag("text", text, x=x, y=height - 6.0, class_=anchor) for x, text, anchor in ends]
    label = f"Histogram of {names[0]}" if given is None else f"{names[0]} against {names[1]}"
    return _svg("chart quick", label, (width, height), *parts)


def fan_chart(before: FloatArray, paths: FloatArray, name: str) -> Html:
    """Draw the history, and the bands that the paths stay in."""
    bands = [np.quantile(paths, [0.5 - share / 2, 0.5 + share / 2], axis=0) for share in BANDS]
    seen = np.concatenate([before[np.isfinite(before)], *bands[0]])
    low, high = float(seen.min()), float(seen.max())
    if not low < high:
        return Html("")
    now = len(before) - 1
    total = now + paths.shape[1]

    def points(first: int, values: FloatArray) -> list[tuple[float, float]]:
        xs = FAN_WIDTH * (first + np.arange(len(values))) / total
        ys = 1.0 + (FAN_HEIGHT - 2.0) * (high - values) / (high - low)
        return [(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True) if np.isfinite(y)]

    def onwards(values: FloatArray) -> list[tuple[float, float]]:
        return points(now, np.append(before[-1:], values))

    return _svg(
        None,
        f"Fan chart of {name}: the history, then what 50 % and 90 % of the paths stay in",
        (FAN_WIDTH, FAN_HEIGHT),
        *(_path(onwards(low) + onwards(high)[::-1], "fan", closed=True) for low, high in bands),
        _path(onwards(np.median(paths, axis=0)), "median"),
        _path(points(0, before), "history"),
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
    marks = list(zip(xs[unusual].tolist(), shares[unusual].tolist(), strict=True))
    marks += [(x, base) for x in xs[drifting].tolist()]
    return _svg(
        "strip",
        f"Shares and drift statistic of {len(found)} rows",
        (STRIP_WIDTH, base + DRIFT_HEIGHT + 8.0),
        tag("path", d=dots, class_="dots"),
        _path(_distinct(xs, drift), "median"),
        *(tag("circle", cx=x, cy=y, r=3.0, class_="alarm") for x, y in marks),
        tag("text", "share as unusual", x=4, y=SHARES_HEIGHT - 3.0),
        tag("text", "drift statistic", x=4, y=base + 9.0),
        corner=(0, -4),
    )


def _depth(values: Any, lowest: float) -> FloatArray:
    """Return how far values are below 1 on a logarithmic axis that ends at the lowest: from 0 to 1."""
    numbers: FloatArray = np.asarray(values, dtype=np.float64)
    return np.log(np.clip(numbers, lowest, 1.0)) / np.log(lowest)


def _distinct(xs: FloatArray, ys: FloatArray) -> list[tuple[float, float]]:
    """Return points without those that would be drawn over one another."""
    finite = np.isfinite(ys)
    return list(dict.fromkeys(zip(xs[finite].round(0).tolist(), ys[finite].round(0).tolist(), strict=True)))


@dataclass(frozen=True, eq=False)
class _Drawing:
    """Places in pixels: centres of nodes and their radii, and routes of arcs from centre to centre."""

    labels: Mapping[str, str]
    centres: Mapping[str, FloatArray]
    radii: Mapping[str, FloatArray]
    routes: Mapping[Arc, FloatArray]
    boxes: Mapping[str, FloatArray]  # left, top, right and bottom of clusters, by their names
    faint: frozenset[Arc]  # arcs between clusters
    width: float
    height: float


def graph_svg(
    structure: Structure, weights: Mapping[Arc, float], notes: Mapping[Arc, str], *, linked: bool = True
) -> Html:
    """Draw a structure, in which a node may be a link to its panel.

    Weights say how much an arc matters, from 0 to 1, where that is known. Notes say in words why the
    direction of an arc is open: such arcs are dashed.
    """
    drawing = _place(structure)
    # Tab goes through the nodes as they are read: layer by layer, from the left.
    order = sorted(drawing.centres, key=lambda node: tuple(drawing.centres[node][::-1].tolist()))
    grown = min(LARGEST, max(1.0, TALLEST / drawing.height))
    arcs = [_arc(structure, drawing, arc, weights.get(arc), notes.get(arc)) for arc in structure.arcs]
    boxes = [_box(name, *corners.tolist()) for name, corners in drawing.boxes.items()]
    return tag(
        "svg",
        tag("g", *boxes, *arcs, aria_hidden="true"),
        tag("g", *(_node(structure, drawing, node, linked=linked) for node in order)),
        class_="graph",
        viewBox=f"0 0 {drawing.width:.0f} {drawing.height:.0f}",
        style=f"max-width:{grown * drawing.width:.0f}px;min-width:{SMALLEST * drawing.width:.0f}px",
        role="group",
        aria_label=f"Graph of {len(structure.nodes)} nodes and {len(structure.arcs)} arcs",
    )


def _place(structure: Structure) -> _Drawing:
    labels = short_labels((*structure.nodes, *structure.used_inputs), LONGEST_LABEL)
    layout = layered(list(labels.values()), [(labels[a], labels[b]) for a, b in structure.arcs])
    centres = {node: np.array(layout.centres[label]) * UNIT for node, label in labels.items()}
    routes = {(a, b): np.array(layout.routes[labels[a], labels[b]]) * UNIT for a, b in structure.arcs}
    radii = {n: 0.5 * np.array([node_width(label) * UNIT[0], NODE_HEIGHT]) for n, label in labels.items()}
    # Curves stay within the hull of their control points.
    corners = [centre + sign * radii[node] for node, centre in centres.items() for sign in (-1, 1)]
    corners += [point for route in routes.values() for point in _controls(route)]
    boxes = {name: np.array(box) * np.tile(UNIT, 2) for name, box in layout.boxes.items()}
    corners += [corner for box in boxes.values() for corner in (box[:2], box[2:])]
    low, high = np.min(corners, axis=0) - MARGIN, np.max(corners, axis=0) + MARGIN
    centres = {node: centre - low for node, centre in centres.items()}
    routes = {arc: route - low for arc, route in routes.items()}
    boxes = {name: box - np.tile(low, 2) for name, box in boxes.items()}
    faint = frozenset((a, b) for a, b in structure.arcs if (labels[a], labels[b]) in layout.between)
    return _Drawing(labels, centres, radii, routes, boxes, faint, *(high - low).tolist())


def _box(name: str, left: float, top: float, right: float, bottom: float) -> Html:
    """Draw the box of a cluster, with its name in letters that can be read from far away."""
    size = min(HEADING, (right - left - 2.0 * HEADING) / (0.62 * len(name)))
    place = {"x": left + 0.5 * HEADING, "y": top + HEADING, "font_size": size}
    box = tag("rect", x=left, y=top, width=right - left, height=bottom - top, rx=14.0)
    return tag("g", box, tag("text", name, **place), class_="cluster")


def _node(structure: Structure, drawing: _Drawing, node: str, *, linked: bool) -> Html:
    """Draw a node, or an input."""
    (x, y), (rx, ry) = drawing.centres[node].tolist(), drawing.radii[node].tolist()
    is_input = node in structure.inputs
    name = "input" if is_input else structure.type(node).appearance.label
    kind = "input" if is_input else f"node {type_class(structure.type(node))}"
    parts = [
        tag("title", f"{node} ({name})"),
        tag("ellipse", cx=x, cy=y, rx=rx, ry=ry),
        tag("text", drawing.labels[node], x=x, y=y, dy="0.35em"),
    ]
    if is_input or not linked:
        return tag("g", *parts, class_=kind, data_input=structure.dag.index(node) if is_input else None)
    parents, place = structure.parents(node), structure.nodes.index(node)
    given = f"parents: {', '.join(parents)}" if parents else "no parents"
    return tag(
        "a",
        *parts,
        class_=kind,
        href=f"#node-{place}",
        data_node=place,
        data_name=node,
        aria_label=f"{node}: {name}, {given}",
    )


def _arc(structure: Structure, drawing: _Drawing, arc: Arc, weight: float | None, note: str | None) -> Html:
    source, target = arc
    route = drawing.routes[arc].copy()
    width = THIN + 0.4 if weight is None else THIN + (THICK - THIN) * weight
    head = 6.0 + 1.6 * width
    route[0] = on_ellipse(route[0], route[1], drawing.radii[source] + GAP_AROUND)
    tip = on_ellipse(route[-1], route[-2], drawing.radii[target] + GAP_AROUND)
    step = tip - route[-2]
    forward = step / max(1e-9, float(np.hypot(*step)))
    aside = 0.42 * head * np.array([-forward[1], forward[0]])
    base = tip - head * forward
    route[-1] = tip - 0.9 * head * forward  # the line ends inside the arrowhead
    return tag(
        "g",
        tag("title", f"{source} → {target}{f' (direction open: {note})' if note else ''}"),
        tag("path", d=_curve(route), stroke_width=round(width, 2), stroke_dasharray=DASHES if note else None),
        tag("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in (tip, base + aside, base - aside))),
        class_="arc faint" if arc in drawing.faint else "arc",
        data_from=structure.dag.index(source),
        data_to=structure.dag.index(target),
    )


def _controls(points: FloatArray) -> list[FloatArray]:
    """Return the control points of a smooth curve: three for each of its pieces."""
    tangents = np.gradient(points, axis=0) / 3.0
    return [
        control
        for k in range(len(points) - 1)
        for control in (points[k] + tangents[k], points[k + 1] - tangents[k + 1], points[k + 1])
    ]


def _curve(points: FloatArray) -> str:
    kind, rest = ("L", points[1:]) if len(points) == 2 else ("C", _controls(points))
    return f"M{points[0][0]:.1f} {points[0][1]:.1f}{kind}{' '.join(f'{x:.1f} {y:.1f}' for x, y in rest)}"
