"""What all plots share: colours, labels, new axes, and how a picture becomes a file."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from spbn._base import display
from spbn._base.files import replacing
from spbn.errors import ArgumentError, quoted, require_plot_packages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

INK, FILL = "#22262b", "#c9ccd1"
COMMON, MISSING, ADDED, REVERSED = "#22262b", "#c0392b", "#1f6fb2", "#d68910"
LINES = ("#1f6fb2", "#d68910", "#2e8b57", "#8e44ad", "#c0392b")
LONGEST_LABEL, LONGEST_TITLE = 32, 48  # letters of a node in a graph, and of the label of an axis
#: Kinds of pictures, and what to leave out of each so that the same graph gives the same bytes.
DRAWN: dict[str, dict[str, None]] = {"svg": {"Date": None}, "png": {}, "pdf": {"CreationDate": None}}
DOTS_PER_INCH = 200
#: Settings of matplotlib for files: the same identifiers every time, and text that stays text.
SETTINGS: dict[Any, Any] = {"svg.hashsalt": "spbn", "svg.fonttype": "none"}
LONGEST_SIDE, MOST_PIXELS = 10_000, 2e7  # of a PNG: beyond, resolution is given up
LEGIBLE = 70  # dots per inch from which on names can be read


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
    # Control characters, surrogates, line breaks; and two characters that XML does not allow.
    undrawn = ("Cc", "Cs", "Zl", "Zp")
    return "".join(" " if category(sign) in undrawn or sign in "\ufffe\uffff" else sign for sign in text)


def shortened(text: str, limit: int) -> str:
    """Cut long text, and show that something is missing."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_title(text: str, limit: int = LONGEST_TITLE) -> str:
    """Return a text on one line, shortened to some letters."""
    return shortened(one_line(text), limit)


def new_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure."""
    require_plot_packages()
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(width, height), layout="constrained")
    return ax


def draw_legend(ax: Axes, loc: str, anchor: tuple[float, float], columns: int, **options: Any) -> Legend:
    """Draw a legend without a frame, in small letters; text is no mathematics."""
    usual: dict[str, Any] = {"frameon": False, "fontsize": 8, "ncols": columns}
    place: dict[str, Any] = {"loc": loc, "bbox_to_anchor": anchor}
    legend = ax.legend(**(usual | place | options))
    for text in (legend.get_title(), *legend.get_texts()):
        text.set_parse_math(False)
    return legend


def chosen_variables(names: Sequence[str] | None, known: Sequence[str], what: str) -> list[str]:
    """Return the variables to draw, all of them by default; refuse unknown ones."""
    chosen = list(known) if names is None else list(names)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise ArgumentError(f"variables must name {what}. Got {quoted(unknown) or 'none'}.")
    return chosen


def graph_inches(ax: Axes) -> tuple[float, float]:
    """Return the size that a figure needs for the graph in `ax` to be readable."""
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return 0.085 * (right - left) + 0.2, 0.8 * (bottom - top) + 0.2


def require_picture_name(path: Path, *others: str) -> str:
    """Return the kind of picture that a file's name stands for: one that is drawn, or one of the others."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in (*DRAWN, *others):
        known = ", ".join(f".{name}" for name in (*DRAWN, *others))
        raise ArgumentError(f"the name of a picture must end in one of {known}. Got {path.name!r}.")
    return kind


def save_figure(shown: object, path: Path) -> None:
    """Write the plot of a posterior or a forecast; the ending of the file name says which kind of picture."""
    kind = require_picture_name(path)
    require_plot_packages()
    import matplotlib
    from matplotlib import pyplot as plt

    with matplotlib.rc_context(SETTINGS), replacing(path) as temporary:
        figure = display.plot(shown)
        figure.savefig(temporary, format=kind, dpi=DOTS_PER_INCH, metadata=DRAWN[kind])
        plt.close(figure)


def draw_graph(draw: Callable[[Axes], Axes], kind: str, nodes: int) -> bytes:
    """Return a picture of a graph of so many nodes, which is drawn into axes."""
    require_plot_packages()
    import matplotlib
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    with matplotlib.rc_context(SETTINGS), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = Figure(layout="constrained")
        width, height = graph_inches(draw(figure.subplots()))
        figure.set_size_inches(width, height)
        dpi: float = DOTS_PER_INCH
        if kind == "png":  # so that it stays small enough to open
            dpi = min(dpi, LONGEST_SIDE / max(width, height), (MOST_PIXELS / (width * height)) ** 0.5)
        figure.savefig(stream, format=kind, dpi=dpi, metadata=DRAWN[kind])
    lacking = [warning for warning in caught if "missing from font" in str(warning.message)]
    said: list[Warning | str] = [warning.message for warning in caught if warning not in lacking]
    if lacking and kind != "svg":  # the text of an SVG is drawn by whoever shows it, in a font of theirs
        said.append("the font lacks some letters of the names and shows boxes: an .svg has them.")
    if dpi < LEGIBLE:
        said.append(
            f"this graph of {nodes} nodes is too large for names in a .png to be legible: "
            "an .svg or .pdf can be enlarged."
        )
    for message in said:
        warnings.warn(message, stacklevel=3)
    return stream.getvalue()
