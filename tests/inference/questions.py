"""Networks to ask, and slow obvious answers."""

import numpy as np
import pandas as pd

import spbn
from spbn import BayesianNetwork, Structure
from spbn.datasets import synthetic, synthetic_structure
from spbn.nodes import LinearGaussian


def joint_normal(network):
    """Mean and covariance of a Gaussian network by solving for all nodes at once, and the order of nodes."""
    order = list(network.nodes)
    at = {node: i for i, node in enumerate(order)}
    slopes, intercepts = np.zeros((len(order), len(order))), np.zeros(len(order))
    variances = np.zeros(len(order))
    for node in order:
        cpd = network.cpds[node]
        intercepts[at[node]], variances[at[node]] = cpd.intercept, cpd.variance
        for parent, slope in zip(cpd.parents, cpd.coefficients, strict=True):
            slopes[at[node], at[parent]] = slope
    effects = np.linalg.inv(np.eye(len(order)) - slopes)
    return order, effects @ intercepts, effects @ np.diag(variances) @ effects.T


def chain():
    """A → B → C, all linear Gaussian."""
    cpds = {
        "A": LinearGaussian("A", (), 1.0, (), 4.0),
        "B": LinearGaussian("B", ("A",), -1.0, (0.5,), 1.0),
        "C": LinearGaussian("C", ("B",), 0.0, (2.0,), 9.0),
    }
    return BayesianNetwork(Structure("ABC", [("A", "B"), ("B", "C")]), cpds)


def semiparametric(rows=300):
    """The network of the paper."""
    return BayesianNetwork.fit(synthetic_structure(), synthetic(rows, seed=1))


def blended(rows=200):
    """The same graph, of blends with margins."""
    structure = Structure("ABCDE", synthetic_structure().arcs, "blend")
    return BayesianNetwork.fit(structure, synthetic(rows, seed=2), margins="yeo-johnson")


def mixed_frame(rows, seed=0):
    """Two discrete columns and three of numbers that depend on them."""
    rng = np.random.default_rng(seed)
    sky = rng.choice(["clear", "cloudy", "rain"], size=rows, p=[0.5, 0.3, 0.2])
    wet = np.where(sky == "rain", rng.random(rows) < 0.9, rng.random(rows) < 0.1)
    heat = np.select([sky == "clear", sky == "cloudy"], [20.0, 15.0], 10.0) + rng.normal(0, 3, rows)
    sales = np.where(wet, 5.0 + 0.1 * heat, heat) + rng.normal(0, 1, rows)
    noise = np.sin(sales) + rng.normal(0, 0.3, rows)
    return pd.DataFrame({"sky": sky, "wet": wet, "heat": heat, "sales": sales, "noise": noise})


MIXED_ARCS = [("sky", "wet"), ("sky", "heat"), ("wet", "sales"), ("heat", "sales"), ("sales", "noise")]


def mixed(node_type="lg", rows=400):
    """A network of these columns."""
    types = {"sky": "discrete", "wet": "discrete", **dict.fromkeys(["heat", "sales", "noise"], node_type)}
    structure = Structure(list(types), MIXED_ARCS, types)
    return spbn.BayesianNetwork.fit(structure, mixed_frame(rows))
