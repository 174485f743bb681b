"""Reports on networks with discrete nodes."""

import re

import pytest

pytest.importorskip("matplotlib")

import spbn
from mixed import MODELS, mixed_frame, mixed_network
from spbn.report import render
from spbn.report.html import model_name

FRAME = mixed_frame()


@pytest.mark.slow
@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_of_mixed_network_has_a_report(kind, margins):
    page = render(mixed_network(kind, margins), data=FRAME)
    assert page.count('class="figure"') == 5
    words = re.sub(r"<script>.*</script>|[\w+/]{200,}", "", page.lower().split("<body")[1], flags=re.DOTALL)
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", words)
    assert "town = Leith" in page
    assert page == render(mixed_network(kind, margins), data=FRAME)


@pytest.mark.slow
def test_a_report_without_rows():
    assert render(mixed_network("ckde")).count('class="figure"') == 5


@pytest.mark.slow
def test_probabilities_have_bars_and_configurations_their_densities():
    network = mixed_network()
    page = render(network, data=FRAME)
    share = network.cpds["town"].probabilities[0, 0]
    assert f'{share:.3f}<div class="track"><i style="width:{100 * share:.1f}%">' in page
    assert "3 configurations" in page
    assert network.cpds["x"].densities[1].describe().formula in page
    assert "cross-validated log-probability" in page


@pytest.mark.slow
def test_levels_are_escaped_and_named_as_reasons():
    frame = FRAME.assign(town=FRAME["town"].where(FRAME.index > 2, "<b>Cramond</b>"))
    page = render(spbn.BayesianNetwork.fit(mixed_network().structure, frame), data=frame)
    assert "<b>Cramond" not in page
    assert "= &lt;b&gt;Cramond&lt;/b&gt; <span" in page


def test_names_of_networks():
    assert model_name(mixed_network()) == "Gaussian Bayesian network with discrete nodes"
    only = spbn.learn(FRAME[["town", "size"]])
    assert model_name(only) == "Discrete Bayesian network"
    assert 'class="figure"' in render(only, data=FRAME[["town", "size"]])


def test_a_report_on_one_node():
    frame = {"colour": ["red", "blue", "red", "red"] * 20}
    page = render(spbn.learn(frame), data=frame)
    for tile in ("<dt>node</dt><dd>1</dd>", "<dt>arcs</dt><dd>0</dd>", "<dt>discrete node</dt><dd>1</dd>"):
        assert tile in page
    assert "Not shown. There are no arcs to remove, and no node could have another type." in page
