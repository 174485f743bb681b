"""Graphs as files: SVG, PNG and PDF by matplotlib, and DOT for graphviz."""

from __future__ import annotations

from pathlib import Path

from spbn.atomic import replacing
from spbn.errors import ArgumentError
from spbn.structure import NodeType, Structure

DRAWN = (".svg", ".png", ".pdf")


def save_structure(structure: Structure, path: Path) -> None:
    """Write a picture of the kind that the file's name says."""
    suffix = path.suffix.lower()
    if suffix == ".dot":
        with replacing(path) as temporary:
            temporary.write_text(to_dot(structure), encoding="utf-8")
    elif suffix in DRAWN:
        _draw(structure, path)
    else:
        raise ArgumentError(f"a picture's name must end in {', '.join(DRAWN)} or .dot. Got {path.name!r}.")


def to_dot(structure: Structure) -> str:
    """Write a structure in graphviz's language; CKDE nodes are grey."""
    lines = ["digraph {", "  node [style=filled, fillcolor=white];"]
    for node, node_type in structure.types.items():
        colour = " [fillcolor=gray80]" if node_type is NodeType.CKDE else ""
        lines.append(f"  {_dot_quoted(node)}{colour};")
    lines += [f"  {_dot_quoted(source)} -> {_dot_quoted(target)};" for source, target in structure.arcs]
    return "\n".join([*lines, "}", ""])


def _dot_quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _draw(structure: Structure, path: Path) -> None:
    import matplotlib

    with matplotlib.rc_context({"backend": "agg", "svg.hashsalt": "spbn"}):
        import matplotlib.pyplot as plt

        from spbn.plots import plot_structure

        figure = plot_structure(structure).get_figure(root=True)
        assert figure is not None
        metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {}}[path.suffix.lower()]
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=200, metadata=metadata, format=path.suffix.lower()[1:])
        plt.close(figure)
