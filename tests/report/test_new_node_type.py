"""A node type from outside: neither pictures nor reports know of it."""

import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.diagnostics import leave_one_out, unusual_rows
from spbn.nodes import CPD, Appearance, Description, LinearGaussian, NodeType, ParameterTable, base, register
from spbn.plots import plot_cpd, plot_structure
from spbn.plots.graphs import to_dot, to_svg
from spbn.report import render
from spbn.report.html import model_name
from spbn.tables.reader import as_table

mpl.use("agg")


class Laplace(CPD):
    """A linear regression with Laplace noise."""

    def __init__(self, line, scale):
        self.line, self.scale = line, scale
        self.node, self.parents = line.node, line.parents

    @property
    def type(self):
        return NodeType.parse("toy_laplace")

    def _residual(self, columns):
        return columns[-1] - self.line.intercept - np.asarray(self.line.coefficients) @ columns[:-1]

    def logpdf_of_columns(self, columns):
        return stats.laplace.logpdf(self._residual(columns), scale=self.scale)

    def cdf_of_columns(self, columns):
        return stats.laplace.cdf(self._residual(columns), scale=self.scale)

    def draw(self, parents, rng):
        return self.line.draw(parents, rng)

    def to_record(self, arrays):
        raise NotImplementedError

    def describe(self):
        table = ParameterTable("widths", ("noise",), ("scale",), ((self.scale,),))
        return Description(f"{self.node} = a line + Laplace", "Laplace has heavy tails.", (table,))


class LaplaceType(NodeType):
    """The type of the toy."""

    name = "toy_laplace"
    appearance = Appearance(
        label="linear <Laplace>",
        short_label="LL",
        sentence="A straight line with heavy tails & spikes.",
        colour="#ffeecc",
        dark_colour="#443311",
    )
    alternative = "lg"

    def fit(self, table, node, parents, settings):
        line = LinearGaussian.fit(table, node, parents)
        start = Laplace(line, 1.0)
        columns = table.select([*parents, node]).columns
        return Laplace(line, float(np.abs(start._residual(columns)).mean()))

    def from_record(self, record, arrays):
        raise NotImplementedError


@pytest.fixture(autouse=True)
def _registered():
    register(LaplaceType())
    yield
    del base._REGISTERED["toy_laplace"]
    del NodeType.TOY_LAPLACE


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    a = rng.normal(size=60)
    return pd.DataFrame({"a": a, "b": 2 * a + rng.laplace(size=60)})


@pytest.fixture
def network(frame):
    structure = spbn.Structure("ab", [("a", "b")], {"a": "ckde", "b": "toy_laplace"})
    return spbn.BayesianNetwork.fit(structure, frame)


def test_a_report_speaks_of_it_in_its_own_words(network, frame):
    page = render(network, data=frame)
    assert "1 CKDE and 1 linear &lt;Laplace&gt;" in page
    assert "A straight line with heavy tails &amp; spikes." in page
    assert "linear &lt;Laplace&gt; node</dt>" in page  # a tile
    assert "LL → LG" in page
    assert "Laplace has heavy tails." in page
    assert re.search(r"<details><summary>Widths</summary>.*?scale", page, flags=re.S)
    legend = re.search(r'<p class="legend">.*?</p>', page, flags=re.S)[0]
    assert re.findall("type-([a-z_]+)", legend) == ["ckde", "toy_laplace"]  # only what is there
    assert "linear Gaussian nodes" not in page


@pytest.mark.slow
def test_it_has_its_colours(network, frame):
    page = render(network, data=frame)
    assert ".type-toy_laplace { --type: #ffeecc; }" in page
    dark = page.split("@media screen and (prefers-color-scheme: dark)", 1)[1]
    assert ".type-toy_laplace { --type: #443311; }" in dark
    assert 'class="node type-toy_laplace"' in page
    assert 'fillcolor="#ffeecc"' in to_dot(network.structure)
    assert "#ffeecc" in to_svg(network.structure)
    fills = {mpl.colors.to_hex(patch.get_facecolor()) for patch in plot_structure(network).patches[1:]}
    assert fills == {"#ffeecc", NodeType.CKDE.appearance.colour}


def test_its_density_is_drawn_and_its_rows_are_explained(network, frame):
    assert len(plot_cpd(network, "b", data=frame).get_images()) == 1
    found = unusual_rows(network, frame.assign(b=np.where(frame.index == 7, 90.0, frame["b"])))
    assert (found.rows[0].position, found.rows[0].reasons[0].node) == (7, "b")
    rest = frame.drop(index=3)
    refitted = NodeType.parse("toy_laplace").fit(as_table(rest), "b", ["a"], None)
    assert leave_one_out(network, frame, [3])[0, 1] == pytest.approx(refitted.logpdf(frame.loc[[3]])[0])


@pytest.mark.slow
def test_what_a_network_is_called(network, frame):
    assert model_name(network) == "Semiparametric Bayesian network"
    alone = spbn.BayesianNetwork.fit(spbn.Structure("ab", types="toy_laplace"), frame)
    assert "every node is linear &lt;Laplace&gt;" in render(alone, data=frame)


def test_no_source_file_of_the_face_names_a_type():
    """Colours and words come from the types; only the names of models are a table."""
    from pathlib import Path

    source = Path(spbn.__file__).parent
    for folder in ("report", "plots", "diagnostics"):
        for path in (source / folder).rglob("*.*"):
            if path.suffix in (".py", ".css", ".js", ".html"):
                code = re.sub(r'""".*?"""|#[^\n]*', "", path.read_text(encoding="utf-8"), flags=re.S)
                code = re.sub(r"^NAMES = \{.*?^\}", "", code, flags=re.S | re.M)
                assert not re.search(r"NodeType\.(LG|CKDE)|[\"'.]ckde\b|[\"']lg\b", code), path
