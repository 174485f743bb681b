"""Matplotlib figures prepared for a page: small, without fixed colours, fonts or identifiers."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from spbn.network import BayesianNetwork
from spbn.plots import plot_cpd
from spbn.plots.layout import FILL, INK, LINES
from spbn.plots.structure import graph_inches, plot_slices
from spbn.plots.svg import Html, safe
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CLOUD_POINTS = 600
PIXELS_PER_INCH, SMALLEST, LARGEST = 96, 0.6, 1.25  # how graphs may be scaled
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
#: Colours of figures, and the variables of the style sheet that replace them.
_VARIABLES = {
    INK: "var(--ink)",
    FILL: "var(--fill)",
    "#ffffff": "var(--card)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(LINES, 1)},
}
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "spbn",
    "font.size": 10.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "axes.unicode_minus": True,
}


def cpd_figure(network: BayesianNetwork, node: str, data: Any, number: int) -> Html:
    """Draw the density of a node given its parents as inline SVG.

    Parameters
    ----------
    data
        Rows to draw and to take ranges from.
    number
        A number that no other figure on the page has.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # The text is drawn by the browser, in a font of its own.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(4.6, 3.1), layout="constrained")
        ax = figure.subplots()
        plot_cpd(network, node, ax, data=data, points=CLOUD_POINTS)
        for shading in ax.images:
            shading.set_interpolation("none")  # as computed, a tenth of the size: the browser smooths it
        svg = _saved(figure)
    return _inlined(svg, prefix=f"f{number}-", label=f"Density of {node}")


def slices_figure(network: DynamicNetwork) -> Html:
    """Draw the rows of a network over time side by side as inline SVG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(layout="constrained")
        ax = plot_slices(network, figure.subplots())
        size = graph_inches(ax)
        figure.set_size_inches(size)
        svg = _saved(figure)
    label = f"Graph of {len(network.nodes)} variables over time"
    return _inlined(svg, prefix="slices-", label=label, width=size[0])


def _saved(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", transparent=True, dpi=100, metadata={"Date": None})
    return stream.getvalue()


def _inlined(svg: bytes, *, prefix: str, label: str, width: float | None = None) -> Html:
    """Return a figure as part of a page: as wide as there is room, or about as many inches as are given."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter(f"{_SVG}g"):
        _join_markers(element)
    for element in root.iter():
        _strip(element, prefix)
    box = root.get("viewBox", "")
    root.attrib = {"viewBox": box, "class": "figure", "role": "img", "aria-label": label}
    if width is not None:  # few nodes would be giants, and many would be too small to read on a phone
        pixels = PIXELS_PER_INCH * width
        least, most = SMALLEST * pixels, LARGEST * pixels
        root.attrib["style"] = f"margin: auto; max-width: {most:.0f}px; min-width: {least:.0f}px"
    return Html(_written(root))


def _join_markers(group: ElementTree.Element) -> None:
    """Turn a cloud of markers into one path of dots: a tenth of the size."""
    points = [child for child in group if child.tag == f"{_SVG}use"]
    if len(points) < 20:
        return
    path = "".join(f"M{float(p.get('x', 0)):.1f} {float(p.get('y', 0)):.1f}h0" for p in points)
    for point in points:
        group.remove(point)
    for unused in group.findall(f"{_SVG}defs"):
        group.remove(unused)
    ElementTree.SubElement(group, f"{_SVG}path", {"d": path, "class": "cloud"})


def _strip(element: ElementTree.Element, prefix: str) -> None:
    """Remove namespaces, unused identifiers, fonts and fixed colours."""
    element.tag = element.tag.removeprefix(_SVG)
    attributes = {key.removeprefix(_XLINK): value for key, value in element.attrib.items()}
    if element.tag in ("g", "text"):
        attributes.pop("id", None)
    if "id" in attributes:
        attributes["id"] = prefix + attributes["id"]
    if attributes.get("href", "").startswith("#"):
        attributes["href"] = f"#{prefix}{attributes['href'][1:]}"
    for key, value in attributes.items():
        attributes[key] = value.replace("url(#", f"url(#{prefix}")
    if "style" in attributes:
        attributes["style"] = _restyled(attributes["style"])
    if "d" in attributes:
        attributes["d"] = re.sub(r"\s+", " ", re.sub(r"(\d\.\d)\d+", r"\1", attributes["d"])).strip()
    element.attrib = attributes
    if not (element.text or "").strip():
        element.text = None
    element.tail = None


def _restyled(style: str) -> str:
    declarations = []
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font":
            size = re.search(r"[\d.]+px", value)
            declarations.append(f"font-size:{size[0] if size else '9px'}")
        elif key and key not in ("font-family", "image-rendering"):
            declarations.append(f"{key}:{_VARIABLES.get(value, value)}")
    return ";".join(declarations)


def _written(element: ElementTree.Element) -> str:
    """Write elements as HTML, without namespaces."""
    attributes = "".join(f' {key}="{safe(value)}"' for key, value in element.attrib.items())
    inner = safe(element.text or "") + "".join(_written(child) for child in element)
    return f"<{element.tag}{attributes}>{inner}</{element.tag}>"
