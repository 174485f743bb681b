"""What all pictures share: colours, lengths of labels, and new axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spbn.errors import require_plot_packages
from spbn.plots.layout import one_line, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FILL = "#22262b", "#c9ccd1"
COMMON, MISSING, ADDED, REVERSED = "#22262b", "#c0392b", "#1f6fb2", "#d68910"
LINES = ("#1f6fb2", "#d68910", "#2e8b57", "#8e44ad", "#c0392b")
LONGEST_LABEL, LONGEST_TITLE = 32, 48  # letters of a node in a graph, and of the label of an axis


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
