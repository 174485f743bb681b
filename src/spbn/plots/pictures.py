"""Graphs as files: SVG, PNG and PDF drawn by matplotlib, and DOT for graphviz."""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spbn._base.files import replacing
from spbn.errors import ArgumentError, require_plot_packages

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


def draw_graph(draw: Callable[[Axes], Axes], kind: str, nodes: int) -> bytes:
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


INK, FILL = "#22262b", "#c9ccd1"


COMMON, MISSING, ADDED, REVERSED = "#22262b", "#c0392b", "#1f6fb2", "#d68910"


LINES = ("#1f6fb2", "#d68910", "#2e8b57", "#8e44ad", "#c0392b")


LONGEST_LABEL, LONGEST_TITLE = 32, 48  # letters of a node in a graph, and of the label of an axis


def short_labels(names: Sequence[str], limit: int) -> dict[str, str]:
    """Return a label for every name: one line, about `limit` letters at most, and different for each."""
    labels: dict[str, str] = {}
    for i, name in enumerate(names):
        label = shortened(one_line(name), limit)
        while label in labels.values() or (label != name and label in names):
            label = f"{shortened(label, limit - 6)} #{i + 1}"
            i += len(names)
        labels[name] = label
    return labels


def one_line(text: str) -> str:
    """Replace every tab, line break and other character that cannot be drawn by a space."""
    return "".join(" " if _cannot_be_drawn(sign) else sign for sign in text)


def _cannot_be_drawn(sign: str) -> bool:
    # Control characters, surrogates, line breaks; and two characters that XML does not allow.
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in "\ufffe\uffff"


def shortened(text: str, limit: int) -> str:
    """Cut long text, and show that something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure."""
    require_plot_packages()
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def short_title(text: str, limit: int = LONGEST_TITLE) -> str:
    """Return a text on one line, shortened to some letters."""
    return shortened(one_line(text), limit)


def line_colours(count: int) -> list[str]:
    """Return the colours of some lines, from the start again if they are many."""
    return [LINES[k % len(LINES)] for k in range(count)]


def graph_inches(ax: Axes) -> tuple[float, float]:
    """Return the size that a figure needs for the graph in `ax` to be readable."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return 0.085 * (right - left) + 0.2, 0.8 * (bottom - top) + 0.2
