"""Graphs of many nodes: clusters, each in a box of its own."""

import itertools

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pytest

from spbn import Structure
from spbn.plots import plot_structure
from spbn.plots.graphs import MANY, clusters, layered, node_width


def planted(groups, size, seed=0):
    """Groups of nodes with many arcs within and one to the next; the last three nodes have no arcs."""
    rng = np.random.default_rng(seed)
    members = [[f"g{g}n{i}" for i in range(size)] for g in range(groups)]
    arcs = []
    for group in members:
        for i in range(1, size):
            arcs += [(group[k], group[i]) for k in sorted(rng.choice(i, min(i, 3), replace=False).tolist())]
    arcs += [(first[0], second[1]) for first, second in itertools.pairwise(members)]
    return members, arcs, [*itertools.chain(*members), "alone", "single", "solitary"]


def test_planted_clusters_are_found():
    members, arcs, nodes = planted(5, 16)
    found = clusters(nodes, arcs)
    assert sorted(map(sorted, found[:-1])) == sorted(map(sorted, members))
    assert found[-1] == ["alone", "single", "solitary"]
    assert found == clusters(nodes, arcs)  # and nothing is drawn at random


def test_clusters_are_about_as_modular_as_those_of_networkx():
    graph = nx.gnp_random_graph(120, 0.04, seed=1)
    arcs = [(f"n{min(a, b)}", f"n{max(a, b)}") for a, b in graph.edges]
    named = nx.Graph(arcs)
    modularity = nx.community.modularity
    theirs = modularity(named, nx.community.greedy_modularity_communities(named))
    assert modularity(named, clusters(list(named), arcs)) > theirs - 0.03


def test_every_cluster_has_a_box_of_its_own():
    members, arcs, nodes = planted(6, 20, seed=2)
    layout = layered(nodes, arcs)
    assert len(nodes) > MANY
    assert set(layout.centres) == set(nodes)
    assert set(layout.routes) == set(arcs)
    assert layout.between == {arc for arc in arcs if arc[0].split("n")[0] != arc[1].split("n")[0]}
    boxes = list(layout.boxes.values())
    assert len(boxes) == len(members) + 1
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(boxes, 2):
        assert c <= e or g <= a or d <= f or h <= b  # side by side, or one below the other
    for group in [*members, ["alone", "single", "solitary"]]:
        around = [
            all(
                left <= x - node_width(n) / 2 and x + node_width(n) / 2 <= right and top < y < bottom
                for n in group
                for x, y in [layout.centres[n]]
            )
            for left, top, right, bottom in boxes
        ]
        assert sum(around) == 1
    assert "without arcs" in layout.boxes
    for arc in set(arcs) - layout.between:
        ys = [y for _, y in layout.routes[arc]]
        assert all(upper < lower for upper, lower in itertools.pairwise(ys))


def test_small_graphs_have_no_boxes():
    _, arcs, nodes = planted(2, 10)
    assert layered(nodes, arcs).boxes == {}


@pytest.mark.slow
def test_a_picture_has_the_boxes_and_their_names():
    members, arcs, nodes = planted(4, 18)
    ax = plot_structure(Structure(nodes, arcs))
    names = {text.get_text() for text in ax.texts}
    assert set(layered(nodes, arcs).boxes) <= names
    assert {name for group in members for name in group} <= names
    plt.close(ax.figure)
