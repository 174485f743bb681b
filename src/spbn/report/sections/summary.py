"""The head of the report: what the network is, in a sentence and a few numbers."""

from __future__ import annotations

from spbn.drawing.markup import Html, tag
from spbn.explain.importance import Importance
from spbn.nodes.base import NodeType
from spbn.report.content import Content
from spbn.report.numbers import count, number, plural
from spbn.report.parts import kind
from spbn.report.sections.learning import how_learned


def summary(content: Content) -> Html:
    """Write title, sentence and numbers."""
    structure = content.network.structure
    tiles = [
        ("nodes", count(len(structure.nodes))),
        ("arcs", count(len(structure.arcs))),
        ("linear Gaussian nodes", count(content.count(NodeType.LG))),
        ("CKDE nodes", count(content.count(NodeType.CKDE))),
    ]
    if content.training_rows is not None:
        tiles.append(("training rows", count(content.training_rows)))
    if content.unusual is not None and content.evidence.rows != content.training_rows:
        tiles.append(("given rows", count(content.evidence.rows)))
    if content.unusual is not None:
        tiles.append(("log-likelihood per given row", number(content.unusual.mean)))
    if isinstance(content.importance, Importance) and not content.importance.left_out:
        score = sum(content.importance.scores.values())
        tiles.append(("log-likelihood per row, cross-validated", number(score)))
    tiles[4:4] = [
        (f"{kind(other)} nodes", count(content.count(other)))
        for other in dict.fromkeys(structure.types.values())
        if other not in (NodeType.LG, NodeType.CKDE)
    ]
    return tag(
        "header",
        tag("h1", content.title),
        tag("p", f"{_sentence(content)} {how_learned(content)}", class_="lead"),
        tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in tiles), class_="tiles"),
    )


def _sentence(content: Content) -> str:
    structure = content.network.structure
    lg, ckde = content.count(NodeType.LG), content.count(NodeType.CKDE)
    size = f"{plural(len(structure.nodes), 'node')} and {plural(len(structure.arcs), 'arc')}"
    others = len(structure.nodes) - lg - ckde
    if others:
        kinds = f"{lg} linear Gaussian, {ckde} CKDE, {others} of other types"
    elif not ckde:
        kinds = "every node is linear Gaussian: a straight-line relation to its parents with normal noise"
    elif not lg:
        kinds = "every node is a conditional kernel density estimate (CKDE), free of any assumed shape"
    else:
        kinds = (
            f"{lg} {'is' if lg == 1 else 'are'} linear Gaussian (straight lines with normal noise), "
            f"{ckde} {'is a' if ckde == 1 else 'are'} conditional kernel density "
            f"estimate{'' if ckde == 1 else 's'} (CKDE: any shape)"
        )
    article = "" if content.title == content.model else f"{content.model}. "
    return f"{article}{size}; {kinds}."
