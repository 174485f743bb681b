"""Files of other programs, compared with what these read and write."""

import csv
import gzip
import re
from html import unescape
from importlib.resources import files

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import spbn
from spbn import exchange
from spbn.errors import ArgumentError, ModelFileError
from spbn.nodes import ProbabilityTable
from spbn.pgmpy import from_pgmpy, to_pgmpy

from strategies import mixed_frame

NETWORKS = ("asia", "alarm", "insurance")
ASIA = """
network unknown { property author me; }
// a comment
variable rain { type discrete [ 2 ] { yes, no }; property "x" = 3; }
variable sprinkler { type discrete[3]{off,low,high}; }
variable "wet grass" { type discrete [ 2 ] { yes, no }; }
probability ( rain ) { table 0.25, 0.75; }
probability ( sprinkler | rain ) { (yes) 0.5, 0.25, 0.25; default 1 0 0; }
/* another
comment */
probability ( "wet grass" | sprinkler, rain ) {
  (off, yes) 0.5, 0.5; (off, no) 0, 1; (low, yes) 0.75, 0.25; (low, no) .5, .5;
  (high, yes) 1, 0; (high, no) 9e-1 1e-1;
}
"""


def example(name):
    """The text of a network of bnlearn, which comes with pgmpy."""
    pytest.importorskip("pgmpy", reason="needs pgmpy")
    return gzip.decompress(
        files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz").read_bytes()
    ).decode()


def read_text(text, tmp_path, name="model.bif"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return exchange.read(tmp_path / name)


def rows_of(frame):
    """What a frame of drawn levels says, row by row."""
    return frame.astype(str).to_dict("records")


def log_probability(model, row):
    """By the tables of a pgmpy model, looked up level by level."""
    return sum(np.log(cpd.get_value(**{name: row[name] for name in cpd.variables})) for cpd in model.cpds)


@pytest.fixture(scope="module", params=NETWORKS)
def both(request, tmp_path_factory):
    """A network, and the same as pgmpy reads it."""
    text = example(request.param)
    from pgmpy.readwrite import BIFReader

    model = BIFReader(string=text).get_model()
    for cpd in model.cpds:  # some of the file are rounded
        cpd.normalize()
    return read_text(text, tmp_path_factory.mktemp("bif")), model


def test_bif_is_read_as_pgmpy_reads_it(both):
    network, model = both
    assert set(network.structure.arcs) == set(model.edges())
    for row, ours in zip(rows_of(frame := network.sample(20, seed=0)), network.logpdf(frame), strict=True):
        assert ours == pytest.approx(log_probability(model, row), rel=1e-12)


@pytest.mark.parametrize("ending", ["bif", "xmlbif"])
def test_there_and_back(both, ending, tmp_path):
    network, _ = both
    path = tmp_path / f"model.{ending}"
    exchange.export(network, path)
    assert exchange.read(path) == network


@pytest.mark.parametrize("ending", ["bif", "xmlbif"])
def test_pgmpy_reads_what_we_write(both, ending, tmp_path):
    from pgmpy.readwrite import BIFReader, XMLBIFReader

    network, _ = both
    path = tmp_path / f"model.{ending}"
    exchange.export(network, path)
    model = (BIFReader if ending == "bif" else XMLBIFReader)(str(path)).get_model()
    for row, ours in zip(rows_of(frame := network.sample(20, seed=1)), network.logpdf(frame), strict=True):
        assert log_probability(model, row) == pytest.approx(ours, rel=1e-12)


def test_we_read_what_pgmpy_writes(both, tmp_path):
    from pgmpy.readwrite import BIFWriter, XMLBIFWriter

    network, model = both
    BIFWriter(model).write(str(tmp_path / "m.bif"))
    XMLBIFWriter(model).write(str(tmp_path / "m.xmlbif"))
    frame = network.sample(20, seed=2)
    for name in ("m.bif", "m.xmlbif"):
        again = exchange.read(tmp_path / name)
        assert set(again.structure.arcs) == set(network.structure.arcs)
        assert_allclose(again.logpdf(frame), network.logpdf(frame), rtol=1e-12)


def test_discrete_networks_to_and_from_pgmpy(both):
    network, model = both
    frame = network.sample(20, seed=3)
    assert_allclose(from_pgmpy(model).logpdf(frame), network.logpdf(frame), rtol=1e-12)
    there = to_pgmpy(network)
    assert there.check_model()
    assert from_pgmpy(there) == network
    assert log_probability(there, rows_of(frame)[0]) == pytest.approx(network.logpdf(frame)[0], rel=1e-12)


@pytest.mark.parametrize("kind", ["XDSL", "NET"])
def test_formats_that_pgmpy_reads_come_through_it(both, kind, tmp_path):
    import pgmpy.readwrite as formats

    network, model = both
    path = str(tmp_path / f"m.{kind.lower()}")
    getattr(formats, f"{kind}Writer")(model).write(path)
    again = from_pgmpy(getattr(formats, f"{kind}Reader")(path).get_model())
    frame = network.sample(20, seed=4)
    assert_allclose(again.logpdf(frame), network.logpdf(frame), rtol=1e-6)  # .net has rounded numbers


def test_what_the_format_allows(tmp_path):
    network = read_text(ASIA, tmp_path)
    assert network.nodes == ("rain", "sprinkler", "wet grass")
    table = network.cpds["wet grass"]
    assert table.parents == ("rain", "sprinkler")  # in the order of the columns, not of the file
    row = {"rain": ["yes", "no"], "sprinkler": ["low", "off"], "wet grass": ["yes", "no"]}
    expected = [0.25 * 0.25 * 0.75, 0.75 * 1.0 * 1.0]
    assert np.exp(network.logpdf(row)) == pytest.approx(expected, rel=1e-12)


def test_the_first_version_of_the_format(tmp_path):
    """Without a bar: the node, then its parents; in tables, the node's level changes slowest."""
    text = """network "dogs" { } variable "family-out" { type discrete[2] { "true" "false" }; }
    variable "light-on" { type discrete[2] { "true" "false" }; }
    probability ( "light-on" "family-out" ) { table 0.6 0.05 0.4 0.95; }
    probability ( "family-out" ) { table 0.15 0.85; }"""
    network = read_text(text, tmp_path)
    rows = {"family-out": ["true", "false"], "light-on": ["true", "true"]}
    assert np.exp(network.logpdf(rows)) == pytest.approx([0.15 * 0.6, 0.85 * 0.05], rel=1e-12)


def test_rounded_probabilities_are_scaled(tmp_path):
    text = "variable x { type discrete [ 3 ] { a, b, c }; } probability ( x ) { table 0.333, 0.333, 0.333; }"
    assert read_text(text, tmp_path).cpds["x"].probabilities.tolist() == [[1 / 3] * 3]


names = st.text("ab é.'&<>_-", min_size=1, max_size=5).map(lambda text: " ".join(text.split())).filter(bool)


@st.composite
def discrete_networks(draw):
    nodes = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    levels = {node: draw(st.lists(names, min_size=1, max_size=3, unique=True)) for node in nodes}
    arcs = [(a, b) for i, b in enumerate(nodes) for a in nodes[:i] if draw(st.booleans())]
    structure = spbn.Structure(nodes, arcs, "discrete")
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    cpds = {}
    for node in nodes:
        parents = [spbn.nodes.Variable(p, tuple(levels[p])) for p in structure.parents(node)]
        codes = np.array(list(np.ndindex(*(len(p.levels) for p in parents))), dtype=np.int64)
        values = rng.dirichlet(np.ones(len(levels[node])), len(codes))
        own = np.full(values.shape[1], 1.0 / values.shape[1])
        variable = spbn.nodes.Variable(node, tuple(levels[node]))
        cpds[node] = ProbabilityTable.of_configurations(variable, parents, codes, values, own)
    return spbn.BayesianNetwork(structure, cpds)


@settings(max_examples=40, deadline=None)
@given(network=discrete_networks(), ending=st.sampled_from(["bif", "xmlbif"]))
def test_any_network_there_and_back(network, ending, tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / f"x.{ending}"
    exchange.export(network, path)
    assert exchange.read(path) == network


X = "variable x { type discrete [ 2 ] { a, b }; } "
Y = "variable y { type discrete [ 2 ] { a, b }; } "
PX, PY = "probability ( x ) { table 0.5, 0.5; } ", "probability ( y ) { table 0.5, 0.5; } "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it declares no variables"),
        ("nonsense", "a block is a network, a variable or a probability. Got 'nonsense'"),
        (X, "it has no probabilities of 'x'"),
        (X + X + PX, "declares the variable 'x' more than once"),
        (X + PX + PX, "probabilities of 'x' more than once"),
        (X + PX + PY, "unknown variables: 'y'"),
        (X + "probability ( x ) { table 0.5, 0.4; }", "must sum to 1. Got 0.9"),
        (X + "probability ( x ) { table -1, 2; }", "must be between 0 and 1. Got -1"),
        (X + "probability ( x ) { table nan, 1; }", "must be between 0 and 1. Got nan"),
        (X + "probability ( x ) { table 0.5, os.getcwd; }", "must be numbers"),
        (X + "probability ( x ) { table 0.5; }", "must be 1 × 2 numbers. Got 1"),
        (X + Y + PX + "probability ( y | x ) { (a) 1, 0; }", "given for 1 of 2 combinations"),
        (X + Y + PX + "probability ( y | x ) { (a) 1, 0; (c) 1, 0; }", "unknown level of 'x': 'c'"),
        (X + Y + PX + "probability ( y | x ) { (a) 1, 0; (a) 1, 0; }", "more than once for the same levels"),
        (
            X + Y + PX + "probability ( y | x ) { (a, b) 1, 0; }",
            "must have 1 levels of parents and 2 numbers",
        ),
        (X + Y + "probability ( x | y ) { default 1 0; } probability ( y | x ) { default 1 0; }", "cycle"),
        (X + "probability ( x | x ) { default 1, 0; }", "the parents of 'x' make no sense"),
        (X + "probability ( x ) { table 0.5, 0.5", "ends in the middle of a block"),
        ("variable x { type continuous [ 2 ] { a, b }; }", "must be discrete. Got 'continuous'"),
        ("variable x { type discrete [ 3 ] { a, b }; }", "must have 3 levels. Got 'a' and 'b'"),
        ("variable x { type discrete [ 2 ] { a, a }; }", "must be distinct"),
        ('variable "x { }', "quotation marks has no end"),
    ],
)
def test_hostile_bif(text, message, tmp_path):
    with pytest.raises(ModelFileError, match=re.escape(message)):
        read_text(text, tmp_path)


def xml(inner, head=""):
    return f'<?xml version="1.0"?>{head}<BIF VERSION="0.3"><NETWORK>{inner}</NETWORK></BIF>'


VARIABLE = '<VARIABLE TYPE="nature"><NAME>x</NAME><OUTCOME>a</OUTCOME><OUTCOME>b</OUTCOME></VARIABLE>'
BOMB = '<!DOCTYPE BIF [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
FOREIGN = '<!DOCTYPE BIF [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (xml(VARIABLE, BOMB), "it declares entities"),
        (xml("<VARIABLE><NAME>&a;</NAME></VARIABLE>", FOREIGN), "it declares entities"),
        ("<BIF>", "it is not XML"),
        ("<NET></NET>", "outermost element must be BIF. Got 'NET'"),
        (xml(VARIABLE), "no probabilities of 'x'"),
        (xml('<VARIABLE TYPE="utility"><NAME>u</NAME></VARIABLE>'), "must be of type 'nature'"),
        (xml("<VARIABLE></VARIABLE>"), "a VARIABLE must have one NAME. Got 0"),
        (xml(VARIABLE + "<DEFINITION><FOR>x</FOR><TABLE>1</TABLE></DEFINITION>"), "must be 1 × 2 numbers"),
        (xml(VARIABLE + "<DEFINITION><FOR>x</FOR><TABLE>1 x</TABLE></DEFINITION>"), "must be numbers"),
    ],
)
def test_hostile_xmlbif(text, message, tmp_path):
    with pytest.raises(ModelFileError, match=re.escape(message)):
        read_text(text, tmp_path, "model.xmlbif")


def test_a_table_larger_than_the_file_is_never_made(tmp_path):
    """Forty parents with two levels each have 2**40 combinations, and a default for all of them."""
    parents = [f"p{i}" for i in range(40)]
    text = "".join(X.replace(" x ", f" {p} ") + PX.replace(" x ", f" {p} ") for p in parents)
    text += Y + f"probability ( y | {', '.join(parents)} ) {{ default 0.25, 0.75; }}"
    network = read_text(text, tmp_path)
    assert np.exp(network.node_logpdf("y", {"y": ["b"], **{p: ["a"] for p in parents}})) == pytest.approx(
        [0.75]
    )
    with pytest.raises(ArgumentError, match="too many to write out"):
        exchange.export(network, tmp_path / "again.bif")


def test_files_that_are_too_large_or_not_text(tmp_path, monkeypatch):
    (tmp_path / "m.bif").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="not UTF-8 text"):
        exchange.read(tmp_path / "m.bif")
    monkeypatch.setattr(exchange, "LARGEST_FILE", 10)
    with pytest.raises(ModelFileError, match="larger than 10 bytes"):
        read_text(X + PX, tmp_path)
    monkeypatch.setattr(exchange, "LARGEST_FILE", 1000)
    monkeypatch.setattr(exchange, "MOST_NODES", 1)
    with pytest.raises(ModelFileError, match="more than 1 variables"):
        read_text(X + PX + Y + PY, tmp_path)


@pytest.mark.parametrize(
    ("name", "message"), [('a"b', "BIF cannot hold the name"), ("a|b", "BIF cannot hold")]
)
def test_names_that_bif_cannot_hold(name, message, tmp_path):
    network = spbn.BayesianNetwork.fit(spbn.Structure([name], [], "discrete"), {name: ["u", "v"] * 9})
    with pytest.raises(ArgumentError, match=message):
        exchange.export(network, tmp_path / "m.bif")
    exchange.export(network, tmp_path / "m.xmlbif")
    assert exchange.read(tmp_path / "m.xmlbif") == network


def test_other_nodes_and_endings_are_refused(tmp_path):
    frame = mixed_frame(60)
    network = spbn.learn(frame, model="gbn")
    with pytest.raises(ArgumentError, match="discrete nodes only, but these are not"):
        exchange.export(network, tmp_path / "m.bif")
    with pytest.raises(ArgumentError, match=r"written as \.bif, \.xmlbif, \.graphml, \.dot or \.csv"):
        exchange.export(network, tmp_path / "m.txt")
    with pytest.raises(ArgumentError, match=r"read as \.bif or \.xmlbif"):
        exchange.read(tmp_path / "m.csv")
    assert list(tmp_path.iterdir()) == []


NODES = ["plain", "two words", 'quo"te', "<&>'", "è", "a,b", "line\nbreak"]


@pytest.fixture
def graph():
    rng = np.random.default_rng(0)
    structure = spbn.Structure(
        NODES, [(NODES[0], NODES[1]), (NODES[2], NODES[1]), (NODES[3], NODES[4])], "lg"
    )
    return spbn.BayesianNetwork.fit(structure, dict(zip(NODES, rng.normal(size=(7, 30)), strict=True)))


def test_graphml_is_read_by_networkx_and_igraph(graph, tmp_path):
    exchange.export(graph, tmp_path / "g.graphml")
    read = nx.read_graphml(tmp_path / "g.graphml")
    assert set(read.edges) == set(graph.structure.arcs)
    assert {n: d["type"] for n, d in read.nodes(data=True)} == dict.fromkeys(NODES, "lg")
    is_open = {(a, b): d["open"] for a, b, d in read.edges(data=True)}
    assert is_open == {arc: arc in graph.open_directions() for arc in graph.structure.arcs}
    assert spbn.Structure.from_networkx(read) == graph.structure
    theirs = igraph.Graph.Read_GraphML(str(tmp_path / "g.graphml"))
    sources = [unescape(theirs.vs[e.source]["id"]) for e in theirs.es]  # igraph leaves &#38; as it is
    assert sources == [a for a, _ in graph.structure.arcs]


def test_the_adjacency_matrix(graph, tmp_path):
    exchange.export(graph, tmp_path / "g.csv")
    with open(tmp_path / "g.csv", newline="", encoding="utf-8") as stream:
        head, *rows = csv.reader(stream)
    assert head == ["parent", *NODES]
    assert [row[0] for row in rows] == NODES
    ones = [(row[0], name) for row in rows for name, cell in zip(NODES, row[1:], strict=True) if cell == "1"]
    assert sorted(ones) == sorted(graph.structure.arcs)


def test_dot_is_what_plots_write(graph, tmp_path):
    exchange.export(graph, tmp_path / "g.dot")
    spbn.plots.graphs.save_graph(graph, tmp_path / "h.dot")
    assert (tmp_path / "g.dot").read_bytes() == (tmp_path / "h.dot").read_bytes()
