"""The head of the report: what the network is, in a few sentences and numbers."""

from __future__ import annotations

from spbn.diagnostics.importance import Importance
from spbn.plots.svg import Html, tag, type_key
from spbn.report.content import Content
from spbn.report.format import count, number, plural
from spbn.report.parts import counted, tiles
from spbn.report.sections.learning import how_learned


def summary(content: Content) -> Html:
    """Write the title, what the network is, and the main numbers."""
    return tag(
        "header",
        tag("h1", content.title),
        tag("p", f"{_sentence(content)} {how_learned(content)}", class_="lead"),
        tag(
            "ul",
            *(
                tag("li", type_key(node_type), tag("b", _capital(node_type.label)), f": {node_type.sentence}")
                for node_type in content.types
            ),
            class_="kinds",
        ),
        tiles(_main_numbers(content)),
    )


def _main_numbers(content: Content) -> list[tuple[str, str]]:
    structure, unusual = content.network.structure, content.unusual
    numbers = [counted(len(structure.nodes), "node"), counted(len(structure.arcs), "arc")]
    numbers += [counted(number_, f"{node_type.label} node") for node_type, number_ in content.types.items()]
    if content.training_rows is not None:
        numbers.append(counted(content.training_rows, "training row"))
    if unusual is not None and content.evidence.rows != content.training_rows:
        numbers.append(counted(content.evidence.rows, "given row"))
    cross_validated = isinstance(content.importance, Importance) and not content.importance.left_out
    if unusual is not None and not unusual.left_out:
        numbers.append(("log-likelihood per given row", number(unusual.mean)))
    elif unusual is not None and not cross_validated:
        numbers.append(("log-likelihood per row, left out", number(unusual.mean)))
    if isinstance(content.importance, Importance) and cross_validated:
        score = sum(content.importance.scores.values())
        numbers.append(("log-likelihood per row, cross-validated", number(score)))
    return numbers


def _sentence(content: Content) -> str:
    structure, types = content.network.structure, content.types
    model = "" if content.title == content.model else f"{content.model}. "
    size = f"{plural(len(structure.nodes), 'node')} and {plural(len(structure.arcs), 'arc')}"
    first, *others = types
    if not others:
        kinds = f"every node is {first.label}" if len(structure.nodes) > 1 else f"the node is {first.label}"
    else:
        *parts, last = [f"{count(number_)} {node_type.label}" for node_type, number_ in types.items()]
        kinds = f"{', '.join(parts)} and {last}"
    return f"{model}{size}; {kinds}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
