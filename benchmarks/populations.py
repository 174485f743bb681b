"""Whether a hidden class is found where there is one, only there, and what that costs.

    python benchmarks/populations.py [--tables 3] [--rows 3000]

Rows of three linear networks with structures and parameters of their own (5 nodes): how well classes are
told, beside the posterior of the true networks; how many of the arcs of each join nodes that are joined in
the network that is learned; and the log-density of new rows, beside the true one and a Gaussian mixture that
chooses its components. Then rows of one such network: how often one class is found. Then the processor time
of learning with a number of classes, over that without.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import spbn

from timing import heading, machine

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.densities import without_ties
from experiments.density_peers import gaussian_mixture

SHARES = np.array([0.5, 0.3, 0.2])
COLUMNS = 5
ROWS_OF_ONE = 500
TABLES_OF_ONE = 10
CLASSES = (2, 3, 5)


def linear_network(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the slopes, the mean and the covariance of a random linear network."""
    order, slopes = rng.permutation(COLUMNS), np.zeros((COLUMNS, COLUMNS))
    for place, child in enumerate(order):
        for parent in order[:place]:
            if rng.random() < 0.5:
                slopes[child, parent] = rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.5)
    root = np.linalg.inv(np.eye(COLUMNS) - slopes)
    noise = np.diag(rng.uniform(0.3, 1.0, COLUMNS) ** 2)
    return slopes, root @ rng.normal(0.0, 1.0, COLUMNS), root @ noise @ root.T


def draw(networks: list, rows: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Draw rows, and return them, their networks, and their log-density with each."""
    shares = SHARES[: len(networks)] / SHARES[: len(networks)].sum()
    z = rng.choice(len(networks), rows, p=shares)
    values = np.array([rng.multivariate_normal(*networks[k][1:]) for k in z])
    logs = np.stack([multivariate_normal(*each[1:]).logpdf(values) for each in networks], axis=1)
    return pd.DataFrame(values, columns=list("abcde")), z, logs + np.log(shares)


def three(seed: int, rows: int) -> None:
    """Learn from rows of three networks, and print both sides."""
    rng = np.random.default_rng(seed)
    networks = [linear_network(rng) for _ in SHARES]
    data, z, logs = draw(networks, rows, rng)
    new, _, truth = draw(networks, rows, rng)
    began = time.process_time()
    network = spbn.learn(data, hidden="auto")
    seconds = time.process_time() - began
    joined = {frozenset(arc) for arc in network.structure.arcs}
    arcs = [
        {frozenset((data.columns[i], data.columns[j])) for i, j in np.argwhere(slopes)}
        for slopes, *_ in networks
    ]
    found = " + ".join(f"{len(each & joined)} of {len(each)}" for each in arcs)
    labels = np.zeros(rows) if network.hidden is None else network.classes(data)["class"]
    densities = {
        "true": logsumexp(truth, axis=1).mean(),
        "found": np.mean(network.logpdf(new)),
        "mixture": gaussian_mixture(data.to_numpy(), new.to_numpy()).mean(),
    }
    print(
        f"seed {seed}: adjusted Rand {adjusted_rand_score(z, labels):.3f}, "
        f"true posterior {adjusted_rand_score(z, logs.argmax(axis=1)):.3f}; arcs {found}; "
        + ", ".join(f"{name} {value:.3f}" for name, value in densities.items())
        + f" nats a row; {seconds:.0f} s",
        flush=True,
    )


def one() -> None:
    """Learn from rows of one network, several times, and print how many classes there are."""
    numbers = []
    for seed in range(TABLES_OF_ONE):
        rng = np.random.default_rng(100 + seed)
        data, *_ = draw([linear_network(rng)], ROWS_OF_ONE, rng)
        network = spbn.learn(data, hidden="auto")
        numbers.append(1 if network.hidden is None else len(network.class_variable.levels))
    print("one network, classes found:", *numbers, flush=True)


def cost(name: str, data: pd.DataFrame) -> None:
    """Print the processor time of learning with a class over that without."""
    seconds = {}
    for number in (1, *CLASSES):
        began = time.process_time()
        spbn.learn(data, hidden=number)
        seconds[number] = time.process_time() - began
    ratios = ", ".join(f"hidden={k} {seconds[k] / seconds[1]:.1f} times" for k in CLASSES)
    print(f"{name} {data.shape[0]} x {data.shape[1]}: without {seconds[1]:.2f} s; {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--rows", type=int, default=3_000)
    chosen = parser.parse_args()
    print(machine())
    heading("three networks")
    for seed in range(chosen.tables):
        three(seed, chosen.rows)
    heading("one network")
    one()
    heading("processor time")
    for name, load in (("Iris", load_iris), ("Wine", load_wine)):
        cost(name, without_ties(load(as_frame=True).data, name))
    rng = np.random.default_rng(0)
    cost("three networks", draw([linear_network(rng) for _ in SHARES], chosen.rows, rng)[0])


if __name__ == "__main__":
    main()
