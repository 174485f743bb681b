"""Files that other programs read: discrete networks as BIF and XMLBIF, graphs as GraphML, DOT and CSV.

BIF and XMLBIF hold everything there is to a network whose nodes are all discrete; probabilities are written
with all their digits. The other formats hold a graph: its nodes with their types, and its arcs.

Files come from anywhere. Both readers take plain text apart, run no code, expand no entities and follow no
references, and no table is larger than what the file spells out.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.files import replacing
from spbn.errors import ArgumentError, ModelFileError, SpbnError, quoted
from spbn.io import MOST_NODES
from spbn.network import BayesianNetwork
from spbn.nodes.discrete import ProbabilityTable
from spbn.structure import INPUT, Structure
from spbn.tables.table import Variable

LARGEST_FILE = 64 * 2**20
MOST_NUMBERS = 10_000_000  # of one node, that are written
BIF = "BIF and XMLBIF (.graphml, .dot and .csv hold any graph) have"
ROUNDED = 0.01  # that rounded probabilities may be off: they are scaled to sum to 1
_XML_FORBIDDEN = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|"(?P<quoted>[^"]*)"|(?P<sign>[{}()\[\]|,;])|(?P<word>[^\s{}()\[\]|,;"]+)', re.S
)


def export(network: BayesianNetwork, path: str | os.PathLike[str]) -> None:
    """Write a network for other programs; the ending of the file's name says in which format.

    .bif and .xmlbif
        Everything, of networks whose nodes are all discrete.
    .graphml, .dot and .csv
        The graph. In GraphML, nodes have a `type`, and arcs say whether their direction is `open`; in DOT,
        such arcs are dashed. A .csv is the adjacency matrix: 1 where the column's node is a child of the
        row's.

    Examples
    --------
    >>> import spbn
    >>> rows = {"sky": ["clear", "clear", "cloudy", "cloudy"] * 5, "rain": ["no", "no", "yes", "no"] * 5}
    >>> structure = spbn.Structure(["sky", "rain"], [("sky", "rain")], "discrete")
    >>> network = spbn.BayesianNetwork.fit(structure, rows)
    >>> spbn.exchange.export(network, "weather.bif")
    >>> spbn.exchange.read("weather.bif") == network
    True
    """
    path = Path(path)
    text = _known(path, WRITERS, "written")(network)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def read(path: str | os.PathLike[str]) -> BayesianNetwork:
    """Read a network of discrete nodes from a .bif or .xmlbif file.

    Probabilities that were rounded, so that they do not quite sum to 1, are scaled to do so.

    Examples
    --------
    >>> import spbn
    >>> with open("coin.bif", "w") as file:
    ...     _ = file.write(
    ...         "variable coin { type discrete [ 2 ] { heads, tails }; }"
    ...         "probability ( coin ) { table 0.5, 0.5; }"
    ...     )
    >>> spbn.exchange.read("coin.bif").nodes
    ('coin',)
    """
    path = Path(path)
    reader = _known(path, READERS, "read")
    with path.open("rb") as stream:  # errors about the path itself are raised as they are
        content = stream.read(LARGEST_FILE + 1)
    try:
        if len(content) > LARGEST_FILE:
            _refuse(f"it is larger than {LARGEST_FILE:,} bytes")
        return _network(reader(content.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{path} cannot be read: it is not UTF-8 text ({error.reason}).") from None
    except SpbnError as error:
        raise ModelFileError(f"{path} cannot be read: {error.message}") from None


def require_known(path: Path) -> None:
    """Refuse a name whose ending stands for no format that can be written."""
    _known(path, WRITERS, "written")


def _known(path: Path, formats: Mapping[str, Any], what: str) -> Any:
    ending = path.suffix.lower()
    if ending not in formats:
        *others, last = formats
        known = f"{', '.join(others)} or {last}"
        raise ArgumentError(f"networks are {what} as {known}, by the ending of the name. Got {path.name!r}.")
    return formats[ending]


def _refuse(what: str) -> NoReturn:
    raise ModelFileError(f"{what}.")


# --- what a file says ---------------------------------------------------------------------------------------


@dataclass
class _Family:
    """The probabilities of a node as they are in a file: by configuration, or all in one list."""

    node: str
    parents: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], list[float]]] = field(default_factory=list)
    otherwise: list[float] | None = None
    table: list[float] | None = None
    node_first: bool = False  # the node's level changes slowest in `table`


@dataclass
class _Declared:
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    families: list[_Family] = field(default_factory=list)

    def declare(self, name: str, levels: Sequence[str]) -> None:
        if name in self.levels:
            _refuse(f"it declares the variable {name!r} more than once")
        if len(self.levels) == MOST_NODES:
            _refuse(f"it declares more than {MOST_NODES:,} variables")
        if not levels or len(set(levels)) < len(levels):
            _refuse(f"the levels of {name!r} must be distinct, and there must be some. Got {quoted(levels)}")
        self.levels[name] = tuple(levels)


def _network(declared: _Declared) -> BayesianNetwork:
    """Make a network of what a file says."""
    if not declared.levels:
        _refuse("it declares no variables")
    families: dict[str, _Family] = {}
    for family in declared.families:
        unknown = [name for name in (family.node, *family.parents) if name not in declared.levels]
        if unknown:
            _refuse(f"it has probabilities of unknown variables: {quoted(unknown)}")
        if family.node in families:
            _refuse(f"it has the probabilities of {family.node!r} more than once")
        if family.node in family.parents or len(set(family.parents)) < len(family.parents):
            _refuse(f"the parents of {family.node!r} make no sense: {quoted(family.parents)}")
        families[family.node] = family
    absent = [name for name in declared.levels if name not in families]
    if absent:
        _refuse(f"it has no probabilities of {quoted(absent)}")
    arcs = [(parent, node) for node, family in families.items() for parent in family.parents]
    structure = Structure(declared.levels, arcs, "discrete")
    return BayesianNetwork(
        structure, {name: _table(families[name], declared.levels, structure) for name in declared.levels}
    )


def _table(family: _Family, levels: Mapping[str, tuple[str, ...]], structure: Structure) -> ProbabilityTable:
    """Make the density of a node; its parents in the order of the structure."""
    parents = [Variable(name, levels[name]) for name in family.parents]
    sizes = [len(parent.levels) for parent in parents]
    possible, own = math.prod(sizes), len(levels[family.node])
    where = f"the probabilities of {family.node!r}"
    if family.table is not None:
        if family.rows or family.otherwise is not None:
            _refuse(f"{where} are given both as a table and row by row")
        if len(family.table) != possible * own:
            _refuse(f"{where} must be {possible} × {own} numbers. Got {len(family.table)}")
        values = np.array(family.table)
        values = values.reshape(own, possible).T if family.node_first else values.reshape(possible, own)
        codes = np.stack(np.unravel_index(np.arange(possible), sizes), axis=1) if sizes else np.zeros((1, 0))
    else:
        places = [{level: i for i, level in enumerate(parent.levels)} for parent in parents]
        for configuration, numbers in family.rows:
            if len(configuration) != len(parents) or len(numbers) != own:
                _refuse(
                    f"a row of {where} must have {len(parents)} levels of parents and {own} numbers. Got "
                    f"{len(configuration)} and {len(numbers)}"
                )
            for parent, known, level in zip(parents, places, configuration, strict=True):
                if level not in known:
                    _refuse(f"{where} are given an unknown level of {parent.name!r}: {level!r}")
        if len({row for row, _ in family.rows}) < len(family.rows):
            _refuse(f"{where} are given more than once for the same levels of its parents")
        if family.otherwise is None and len(family.rows) != possible:
            _refuse(
                f"{where} are given for {len(family.rows)} of {possible} combinations of its parents' levels"
            )
        if family.otherwise is not None and len(family.otherwise) != own:
            _refuse(f"{where} must be {own} numbers by default. Got {len(family.otherwise)}")
        values = np.array([numbers for _, numbers in family.rows]).reshape(-1, own)
        codes = np.array(
            [[known[level] for known, level in zip(places, row, strict=True)] for row, _ in family.rows],
            dtype=np.int64,
        ).reshape(-1, len(parents))
    otherwise = np.full(own, 1.0 / own) if family.otherwise is None else np.array(family.otherwise)
    order = [family.parents.index(name) for name in structure.parents(family.node)]
    return ProbabilityTable.of_configurations(
        Variable(family.node, levels[family.node]),
        [parents[i] for i in order],
        codes[:, order].astype(np.int64),
        _summing_to_1(values, where),
        _summing_to_1(otherwise[None], where)[0],
    )


def _summing_to_1(values: FloatArray, where: str) -> FloatArray:
    if not ((values >= 0.0) & (values <= 1.0 + ROUNDED)).all():
        wrong = values[~((values >= 0.0) & (values <= 1.0 + ROUNDED))][0]
        _refuse(f"{where} must be between 0 and 1. Got {wrong:g}")
    sums = values.sum(axis=1, keepdims=True)
    if (np.abs(sums - 1.0) > ROUNDED).any():
        wrong = sums[np.abs(sums - 1.0) > ROUNDED][0]
        _refuse(f"{where} must sum to 1. Got {wrong:g}")
    return np.where(np.abs(sums - 1.0) > 1e-12, values / sums, values)


def _numbers(texts: Sequence[str], node: str) -> list[float]:
    try:
        return [float(text) for text in texts]
    except ValueError as error:
        _refuse(f"the probabilities of {node!r} must be numbers ({error})")


# --- BIF ----------------------------------------------------------------------------------------------------


class _Tokens:
    """The words, quoted texts and signs of a BIF file, one after the other."""

    def __init__(self, text: str) -> None:
        self._found = self._split(text)
        self._next = next(self._found, None)

    @staticmethod
    def _split(text: str) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                _refuse(f"a text in quotation marks has no end: {text[place : place + 40]!r}")
            if match.lastgroup is not None:
                yield ("sign" if match.lastgroup == "sign" else "word", match[match.lastgroup])
            place = match.end()

    @property
    def is_end(self) -> bool:
        return self._next is None

    def take(self) -> tuple[str, str]:
        found = self._next
        if found is None:
            _refuse("it ends in the middle of a block")
        self._next = next(self._found, None)
        return found

    def word(self) -> str:
        kind, text = self.take()
        if kind != "word":
            _refuse(f"a name was expected. Got {text!r}")
        return text

    def expect(self, sign: str) -> None:
        if (got := self.take()) != ("sign", sign):
            _refuse(f"{sign!r} was expected. Got {got[1]!r}")

    def listed(self, end: str) -> list[str]:
        """Return the items before a sign: between commas if there are any, otherwise word by word."""
        items: list[list[str]] = [[]]
        while (got := self.take()) != ("sign", end):
            if got == ("sign", ","):
                items.append([])
            elif got[0] == "sign":
                _refuse(f"{end!r} was expected. Got {got[1]!r}")
            else:
                items[-1].append(got[1])
        if len(items) == 1:
            return items[0]
        return [" ".join(words) for words in items if words]

    def skip(self, end: str) -> None:
        while self.take() != ("sign", end):
            pass


def _read_bif(text: str) -> _Declared:
    tokens, found = _Tokens(text), _Declared()
    while not tokens.is_end:
        kind = tokens.word()
        if kind == "network":
            while tokens.take() != ("sign", "{"):
                pass
            tokens.skip("}")
        elif kind == "variable":
            _read_variable(tokens, found)
        elif kind == "probability":
            found.families.append(_read_probability(tokens))
        else:
            _refuse(f"a block is a network, a variable or a probability. Got {kind!r}")
    return found


def _read_variable(tokens: _Tokens, found: _Declared) -> None:
    name, levels = " ".join(_until(tokens, "{")), None
    while (got := tokens.take()) != ("sign", "}"):
        if got == ("word", "type"):
            kind = tokens.word()
            if kind != "discrete":
                _refuse(f"the variable {name!r} must be discrete. Got {kind!r}")
            tokens.expect("[")
            number = tokens.word()
            tokens.expect("]")
            tokens.expect("{")
            levels = tokens.listed("}")
            if number != str(len(levels)):
                _refuse(f"the variable {name!r} must have {number} levels. Got {quoted(levels)}")
        if got != ("sign", ";"):
            tokens.skip(";")
    found.declare(name, levels or ())


def _until(tokens: _Tokens, end: str) -> Iterator[str]:
    while (got := tokens.take()) != ("sign", end):
        yield got[1]


def _read_probability(tokens: _Tokens) -> _Family:
    tokens.expect("(")
    header = list(_until(tokens, ")"))
    if not header:
        _refuse("a probability has no variable")
    if "|" in header:
        bar = header.index("|")
        node, given = " ".join(header[:bar]), " ".join(header[bar + 1 :]).split(" , ")
        parents = tuple(name for name in given if name)
    else:  # as the first version of the format has it: the node, then its parents
        node, *rest = (name for name in header if name != ",")
        parents = tuple(rest)
    family = _Family(node, parents, node_first=True)
    tokens.expect("{")
    while (got := tokens.take()) != ("sign", "}"):
        if got == ("sign", "("):
            row = tuple(tokens.listed(")"))
            family.rows.append((row, _numbers(tokens.listed(";"), node)))
        elif got == ("word", "table") and family.table is None:
            family.table = _numbers(tokens.listed(";"), node)
        elif got == ("word", "default") and family.otherwise is None:
            family.otherwise = _numbers(tokens.listed(";"), node)
        elif got == ("word", "property"):
            tokens.skip(";")
        else:
            _refuse(f"the probabilities of {node!r} are not rows, a table or a default. Got {got[1]!r}")
    return family


def _write_bif(network: BayesianNetwork) -> str:
    lines = ["network spbn {", "}"]
    tables = tables_of(network, BIF)
    for name, cpd in tables.items():
        levels = ", ".join(map(_bif_quoted, cpd.levels))
        lines += [
            f"variable {_bif_quoted(name)} {{",
            f"  type discrete [ {len(cpd.levels)} ] {{ {levels} }};",
            "}",
        ]
    for name, cpd in tables.items():
        given = f" | {', '.join(map(_bif_quoted, cpd.parents))}" if cpd.parents else ""
        lines.append(f"probability ( {_bif_quoted(name)}{given} ) {{")
        for codes, values in zip(*(found.tolist() for found in cpd.every_configuration()), strict=True):
            parents = zip(cpd.variables, codes, strict=False)
            row = ", ".join(_bif_quoted(parent.levels[k]) for parent, k in parents)
            lines.append(f"  {f'({row})' if row else 'table'} {', '.join(map(repr, values))};")
        lines.append("}")
    return "\n".join([*lines, ""])


def _bif_quoted(name: str) -> str:
    if re.fullmatch(r"[\w.<>=+-]+", name):
        return name
    if '"' in name or "\n" in name or name != " ".join(name.split()) or re.search("[,|]", name):
        raise ArgumentError(f"BIF cannot hold the name {name!r}: rename it, or write .xmlbif.")
    return f'"{name}"'


# --- XMLBIF -------------------------------------------------------------------------------------------------


def _read_xmlbif(text: str) -> _Declared:
    if "<!ENTITY" in text:
        _refuse("it declares entities, which a network does not need")
    try:
        # Without its declaration, which may name another encoding.
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text).encode())
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ModelFileError(f"it is not XML ({error}).") from None
    if root.tag != "BIF":
        _refuse(f"its outermost element must be BIF. Got {root.tag!r}")
    found = _Declared()
    for variable in root.iter("VARIABLE"):
        name = _text(variable, "NAME")
        if variable.get("TYPE", "nature") != "nature":
            _refuse(f"the variable {name!r} must be of type 'nature'. Got {variable.get('TYPE')!r}")
        found.declare(name, [_stripped(one) for tag in ("OUTCOME", "VALUE") for one in variable.findall(tag)])
    for definition in [*root.iter("DEFINITION"), *root.iter("PROBABILITY")]:
        node, parents = _text(definition, "FOR"), tuple(map(_stripped, definition.findall("GIVEN")))
        numbers = _numbers(_text(definition, "TABLE").split(), node)
        found.families.append(_Family(node, parents, table=numbers))
    return found


def _text(element: ElementTree.Element, tag: str) -> str:
    found = element.findall(tag)
    if len(found) != 1:
        _refuse(f"a {element.tag} must have one {tag}. Got {len(found)}")
    return _stripped(found[0])


def _stripped(element: ElementTree.Element) -> str:
    return "".join(element.itertext()).strip()


def _write_xmlbif(network: BayesianNetwork) -> str:
    root = ElementTree.Element("BIF", VERSION="0.3")
    inner = ElementTree.SubElement(root, "NETWORK")

    def add(parent: ElementTree.Element, tag: str, text: str) -> None:
        if text != text.strip():
            raise ArgumentError(
                f"XMLBIF cannot hold the name {text!r}, with white space at an end: rename it."
            )
        ElementTree.SubElement(parent, tag).text = _for_xml(text)

    tables = tables_of(network, BIF)
    add(inner, "NAME", "spbn")
    for name, cpd in tables.items():
        variable = ElementTree.SubElement(inner, "VARIABLE", TYPE="nature")
        add(variable, "NAME", name)
        for level in cpd.levels:
            add(variable, "OUTCOME", level)
    for name, cpd in tables.items():
        definition = ElementTree.SubElement(inner, "DEFINITION")
        add(definition, "FOR", name)
        for parent in cpd.parents:
            add(definition, "GIVEN", parent)
        add(
            definition,
            "TABLE",
            "\n".join(" ".join(map(repr, values)) for values in cpd.every_configuration()[1].tolist()),
        )
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _for_xml(name: str) -> str:
    if _XML_FORBIDDEN.search(name) or "\r" in name:
        raise ArgumentError(f"XML cannot hold the name {name!r}, which has control characters: rename it.")
    return name


def tables_of(network: BayesianNetwork, what: str) -> dict[str, ProbabilityTable]:
    """Return the densities of a network whose nodes are all discrete; `what` cannot hold others."""
    found = {node: cpd for node, cpd in network.cpds.items() if isinstance(cpd, ProbabilityTable)}
    others = [node for node in network.nodes if node not in found] + list(network.inputs)
    if others:
        raise ArgumentError(f"{what} discrete nodes only, but these are not: {quoted(others)}.")
    for node, cpd in found.items():
        numbers = math.prod(len(variable.levels) for variable in cpd.variables)
        if numbers > MOST_NUMBERS:
            raise ArgumentError(f"the table of {node!r} has {numbers:,} numbers, too many to write out.")
    return found


# --- graphs -------------------------------------------------------------------------------------------------


def _write_graphml(graph: Structure | BayesianNetwork) -> str:
    structure, dashed = _parts(graph)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        '  <key id="type" for="node" attr.name="type" attr.type="string"/>',
        '  <key id="open" for="edge" attr.name="open" attr.type="boolean"/>',
        '  <graph edgedefault="directed">',
    ]
    types = {node: kind.name for node, kind in structure.types.items()}
    for node, kind in (types | dict.fromkeys(structure.used_inputs, INPUT)).items():
        lines.append(f'    <node id={quoteattr(_for_xml(node))}><data key="type">{kind}</data></node>')
    for source, target in structure.arcs:
        is_open = "true" if (source, target) in dashed else "false"
        ends = f"source={quoteattr(source)} target={quoteattr(target)}"
        lines.append(f'    <edge {ends}><data key="open">{is_open}</data></edge>')
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def _write_adjacency(graph: Structure | BayesianNetwork) -> str:
    structure, _ = _parts(graph)
    names = (*structure.nodes, *structure.used_inputs)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["parent", *names])
    for name in names:
        children = set(structure.dag.children(name))
        writer.writerow([name, *(int(other in children) for other in names)])
    return stream.getvalue()


def to_dot(graph: Structure | BayesianNetwork) -> str:
    """Write a graph in graphviz's language, nodes in the colours of their types, open directions dashed."""
    structure, dashed = _parts(graph)
    lines = ["digraph {", "  node [style=filled, fillcolor=white];"]
    for node, node_type in structure.types.items():
        lines.append(f'  {_dot_quoted(node)} [fillcolor="{node_type.appearance.colour}"];')
    lines += [f"  {_dot_quoted(name)} [style=dashed];" for name in structure.used_inputs]
    for source, target in structure.arcs:
        style = " [style=dashed]" if (source, target) in dashed else ""
        lines.append(f"  {_dot_quoted(source)} -> {_dot_quoted(target)}{style};")
    return "\n".join([*lines, "}", ""])


def _dot_quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _parts(graph: Structure | BayesianNetwork) -> tuple[Structure, Mapping[Any, str]]:
    """Return a graph, and its arcs whose direction is open, where that is known."""
    return (graph, {}) if isinstance(graph, Structure) else (graph.structure, graph.open_directions())


#: How networks are written and read, by the endings of files.
WRITERS: dict[str, Callable[[BayesianNetwork], str]] = {
    ".bif": _write_bif,
    ".xmlbif": _write_xmlbif,
    ".graphml": _write_graphml,
    ".dot": to_dot,
    ".csv": _write_adjacency,
}
READERS: dict[str, Callable[[str], _Declared]] = {".bif": _read_bif, ".xmlbif": _read_xmlbif}
