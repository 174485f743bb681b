"""Pictures of networks with discrete nodes: what is drawn are the network's own numbers."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

import spbn
from mixed import MODELS, mixed_frame, mixed_network
from spbn.plots import plot_cpd

FRAME = mixed_frame()


def drawn(network, node, data=FRAME):
    return plot_cpd(network, node, Figure().subplots(), data=data)


def widths(bars):
    return [bar.get_width() for bar in bars]


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("data", [FRAME, None])
def test_every_node_can_be_drawn(kind, margins, data):
    network = mixed_network(kind, margins)
    for node in network.nodes:
        assert drawn(network, node, data).has_data()


def test_bars_are_probabilities_over_shares():
    ax = drawn(mixed_network(), "town")
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == ["Stockbridge", "Portobello", "Leith"]  # the first on top
    shares, found = map(widths, ax.containers)
    assert shares == pytest.approx(FRAME["town"].value_counts(normalize=True)[labels])
    smoothed = (FRAME["town"].value_counts()[labels] + 1 / 3) / 161
    assert found == pytest.approx(smoothed)


def test_stacks_are_probabilities_given_the_parents():
    ax = drawn(mixed_network(), "size")
    towns = [label.get_text() for label in ax.get_yticklabels()]
    counts = pd.crosstab(FRAME["town"], FRAME["size"]).loc[towns]
    for bars in ax.containers:
        expected = (counts[bars.get_label()] + 0.5) / (counts.sum(axis=1) + 1)
        assert widths(bars) == pytest.approx(expected)
    assert sum(np.array(widths(bars)) for bars in ax.containers) == pytest.approx(1.0)


def test_rare_levels_share_a_bar():
    many = FRAME.assign(size=[f"s{i % 9 % 8}" for i in range(len(FRAME))])
    network = spbn.BayesianNetwork.fit(mixed_network().structure, many)
    ax = drawn(network, "size", many)
    assert [bars.get_label() for bars in ax.containers] == ["s0", "s1", "s2", "s3", "s4", "other"]
    assert sum(np.array(widths(bars)) for bars in ax.containers) == pytest.approx(1.0)


def test_there_is_one_curve_for_every_level():
    network = mixed_network()
    ax = drawn(network, "x")
    assert [line.get_label() for line in ax.lines] == ["Leith", "Portobello", "Stockbridge"]
    for line in ax.lines:
        xs, ys = line.get_data()
        rows = pd.DataFrame({"x": xs, "town": line.get_label()})
        np.testing.assert_allclose(ys, np.exp(network.node_logpdf("x", rows)))


def test_other_parents_are_at_typical_values():
    network = mixed_network()
    ax = drawn(network, "y")
    title = ax.get_legend().get_title().get_text()
    assert title in ("town", "size")
    other = {"town": "size", "size": "town"}[title]
    for line in ax.lines:
        xs, ys = line.get_data()
        usual = {other: FRAME[other].mode()[0], "x": FRAME["x"].median(), title: line.get_label()}
        rows = pd.DataFrame({"y": xs, **usual})
        np.testing.assert_allclose(ys, np.exp(network.node_logpdf("y", rows)))
