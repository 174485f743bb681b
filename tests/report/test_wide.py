"""Reports on tables of many columns draw what is looked at first; of the rest, what takes no time."""

import re

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.report import render
from spbn.report.graph import MOST_DRAWN

COLUMNS = 70


@pytest.fixture(scope="module")
def page():
    """A table whose columns depend on the one before, less and less, with a column of levels."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(60, COLUMNS))
    for k in range(1, COLUMNS):
        share = 0.95 * (1.0 - k / COLUMNS)
        data[:, k] = share * data[:, k - 1] + np.sqrt(1.0 - share**2) * data[:, k]
    frame = pd.DataFrame(data, columns=[f"x{k}" for k in range(COLUMNS)])
    frame["level"] = rng.choice(["a", "b", "c"], 60)
    types = dict.fromkeys(frame.columns, "lg") | {"level": "discrete"}
    arcs = [(f"x{k - 1}", f"x{k}") for k in range(1, COLUMNS)]
    network = spbn.BayesianNetwork.fit(spbn.Structure(types, arcs, types), frame)
    return render(network, data=frame)


def panels(page):
    return dict(
        re.findall(r'<article class="panel[^"]*" id="node-\d+".*?<h3>(.*?)</h3>(.*?)</article>', page, re.S)
    )


def test_every_node_has_a_picture_and_few_are_expensive(page):
    shown = panels(page)
    assert len(shown) == COLUMNS + 1
    drawn = {name for name, text in shown.items() if 'class="figure"' in text}
    quick = {name for name, text in shown.items() if 'class="chart quick"' in text}
    assert len(drawn) == MOST_DRAWN
    assert drawn | quick == set(shown)
    assert not drawn & quick


def test_the_nodes_that_matter_most_are_drawn(page):
    shown = panels(page)
    assert all('class="figure"' in shown[f"x{k}"] for k in range(1, 20))
    assert "x68 against x67" in shown["x68"]
    assert "Histogram of level" in shown["level"]
    assert "spbn.plots.plot_cpd draws any" in shown["level"]


def test_the_graph_is_drawn_by_clusters(page):
    assert page.count('<g class="cluster">') > 1
    assert "boxes: columns that depend on each other most" in page
    assert 'class="arc faint"' in page
