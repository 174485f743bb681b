"""Graphs as files: SVG, PNG and PDF drawn by matplotlib, and DOT for graphviz."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn._base import display
from spbn._base.files import replacing
from spbn.errors import ArgumentError, require_plot_packages
from spbn.network import BayesianNetwork
from spbn.plots.structure import graph_inches, plot_slices, plot_structure
from spbn.structure import Structure
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Kinds of pictures, and what to leave out of each so that the same graph gives the same bytes.
DRAWN: dict[str, dict[str, None]] = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}
DOTS_PER_INCH = 200
#: Settings of matplotlib for files: the same identifiers every time, and text that stays text.
SETTINGS: dict[Any, Any] = {"svg.hashsalt": "spbn", "svg.fonttype": "none"}
LONGEST_SIDE, MOST_PIXELS = 10_000, 2e7  # of a PNG: beyond, resolution is given up
LEGIBLE = 70  # dots per inch from which on names can be read


def save_structure(structure: Structure, path: Path) -> None:
    """Write a picture; the ending of the file name says which kind."""
    kind = require_picture_name(path, "dot")
    draw = partial(plot_structure, structure)
    content = to_dot(structure).encode() if kind == "dot" else _draw(draw, kind, len(structure.nodes))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def save_slices(network: DynamicNetwork, path: Path, *, slices: int | None = None) -> None:
    """Write a picture of a dynamic network; the ending of the file name says which kind."""
    kind = require_picture_name(path)
    content = _draw(partial(plot_slices, network, slices=slices), kind, len(network.nodes))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def save_figure(draw: Callable[[], Figure], path: Path) -> None:
    """Draw a figure of pyplot and write it; the ending of the file name says which kind of picture."""
    kind = require_picture_name(path)
    require_plot_packages()
    import matplotlib
    from matplotlib import pyplot as plt

    with matplotlib.rc_context(SETTINGS), replacing(path) as temporary:
        figure = draw()
        figure.savefig(temporary, format=kind, dpi=DOTS_PER_INCH, metadata=DRAWN[kind])
        plt.close(figure)


def require_picture_name(path: Path, *others: str) -> str:
    """Return the kind of picture that a file's name stands for: one that is drawn, or one of the others."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in (*DRAWN, *others):
        known = ", ".join(f".{name}" for name in (*DRAWN, *others))
        raise ArgumentError(f"the name of a picture must end in one of {known}. Got {path.name!r}.")
    return kind


@display.svg.register(BayesianNetwork)
def to_svg(structure: Structure | BayesianNetwork) -> str:
    """Draw a graph as SVG."""
    return _draw(partial(plot_structure, structure), "svg", len(structure.nodes)).decode()


@display.svg.register(DynamicNetwork)
def slices_svg(network: DynamicNetwork) -> str:
    """Draw a dynamic network as SVG."""
    return _draw(partial(plot_slices, network), "svg", len(network.nodes)).decode()


def to_dot(structure: Structure) -> str:
    """Write a structure in graphviz's language, nodes in the colours of their types."""
    lines = ["digraph {", "  node [style=filled, fillcolor=white];"]
    for node, node_type in structure.types.items():
        lines.append(f'  {_dot_quoted(node)} [fillcolor="{node_type.appearance.colour}"];')
    lines += [f"  {_dot_quoted(name)} [style=dashed];" for name in structure.used_inputs]
    lines += [f"  {_dot_quoted(source)} -> {_dot_quoted(target)};" for source, target in structure.arcs]
    return "\n".join([*lines, "}", ""])


def _dot_quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _draw(draw: Callable[[Axes], Axes], kind: str, nodes: int) -> bytes:
    """Return a picture of a graph of so many nodes, which is drawn into axes."""
    require_plot_packages()
    import matplotlib
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = Figure(layout="constrained")
        inches = graph_inches(draw(figure.subplots()))
        figure.set_size_inches(inches)
        dpi = _resolution(*inches) if kind == "png" else DOTS_PER_INCH
        figure.savefig(stream, format=kind, dpi=dpi, metadata=DRAWN[kind])
    lacking = [warning for warning in caught if "missing from font" in str(warning.message)]
    for warning in caught:
        if warning not in lacking:
            warnings.warn(warning.message, stacklevel=3)
    if lacking and kind != "svg":  # the text of an SVG is drawn by whoever shows it, in a font of theirs
        warnings.warn(
            "the font lacks some letters of the names and shows boxes: an .svg has them.", stacklevel=3
        )
    if dpi < LEGIBLE:
        warnings.warn(
            f"this graph of {nodes} nodes is too large for names in a .png to be legible: "
            f"an .svg or .pdf can be enlarged.",
            stacklevel=3,
        )
    return stream.getvalue()


def _resolution(width: float, height: float) -> float:
    """Return the dots per inch at which a picture of this size stays small enough to open."""
    return min(DOTS_PER_INCH, LONGEST_SIDE / max(width, height), (MOST_PIXELS / (width * height)) ** 0.5)
