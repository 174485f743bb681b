"""Exact answers of discrete networks: how far from pgmpy's variable elimination, and how long both take.

python benchmarks/exact_inference.py            # four networks, 50 sets of evidence each: half a minute
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import spbn

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the networks, which the experiments read

from experiments.sources import discrete_network

from timing import best, heading, machine

NETWORKS = ("asia", "alarm", "insurance", "hailfinder")
ROWS, HOLES, PEER_ROWS = 5_000, 0.2, 50
WANTED = {"difference": 1e-10, "one question": 0.05, "rows": 60.0}


def questions(network: spbn.BayesianNetwork, number: int) -> list[dict[str, str]]:
    """Return evidence about one node up to a third of them, from rows of the network: it is possible."""
    rng, rows = np.random.default_rng(0), network.sample(number, seed=1)
    found = []
    for _, row in rows.iterrows():
        size = int(rng.integers(1, 1 + len(network.nodes) // 3))
        found.append({str(name): str(row[name]) for name in rng.choice(network.nodes, size, replace=False)})
    return found


def ours(network: spbn.BayesianNetwork, evidence: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return the probabilities of all levels of all variables that are unknown."""
    posterior = network.query(evidence, n=1)
    if posterior.method != "exact":
        raise RuntimeError(f"not exact: {posterior.methods}")
    return {v.name: posterior.probabilities(v.name).to_dict() for v in posterior.variables}


def theirs(other: Any, nodes: Any, evidence: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return the same by pgmpy."""
    found = {}
    for name in (node for node in nodes if node not in evidence):
        factor = other.query([name], evidence=evidence, show_progress=False)
        found[name] = dict(zip(factor.state_names[name], factor.values.tolist(), strict=True))
    return found


def main() -> None:
    """Compare all networks, and time one question and a table with holes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=50, help="sets of evidence for every network")
    number = parser.parse_args().sets
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # what pgmpy warns about
    from pgmpy.inference import VariableElimination

    heading(f"All other variables, given {number} random sets of evidence. {machine()}")
    print("            nodes  largest difference   spbn, s  pgmpy, s  (for one set, on average)")
    for name in NETWORKS:
        network, model = discrete_network(name)
        other, worst, seconds = VariableElimination(model), 0.0, np.zeros(2)
        ours(network, questions(network, 1)[0])  # import what is needed
        for evidence in questions(network, number):
            begun = time.perf_counter()
            mine = ours(network, evidence)
            between = time.perf_counter()
            expected = theirs(other, network.nodes, evidence)
            seconds += (between - begun, time.perf_counter() - between)
            for node, levels in expected.items():
                worst = max(worst, *(abs(mine[node][level] - p) for level, p in levels.items()))
        each = seconds / number
        print(f"{name:11} {len(network.nodes):5} {worst:19.1e} {each[0]:9.4f} {each[1]:9.4f}", flush=True)
    print(f"wanted: a difference of at most {WANTED['difference']}")

    network, model = discrete_network("alarm")
    other, evidence = VariableElimination(model), {"HRBP": "HIGH"}
    heading("alarm, one evidence node, the 36 other variables: the fastest of 5 runs")
    mine, _ = best(lambda: ours(network, evidence))
    drawn, _ = best(lambda: network.query(evidence).draws)
    peer, _ = best(lambda: theirs(other, network.nodes, evidence))
    print(f"spbn {mine:.4f} s, with 2,000 draws {drawn:.4f} s; pgmpy {peer:.4f} s")
    print(f"wanted: at most {WANTED['one question']} s")

    rows = network.sample(ROWS, seed=0)
    rows = rows.mask(np.random.default_rng(1).random(rows.shape) < HOLES)
    heading(f"alarm, {ROWS:,} rows of which {HOLES:.0%} of the values are missing")
    for what, answer in {
        "predict one column": lambda: network.predict(rows, ["HRBP"]),
        "predict ten columns": lambda: network.predict(rows, network.nodes[:10]),
        "log-density": lambda: network.logpdf(rows, missing="integrate"),
        "impute": lambda: network.impute(rows),
    }.items():
        seconds, _ = best(answer, runs=2)
        print(f"{what:20} {seconds:8.3f} s", flush=True)
    few = rows.drop(columns="HRBP").head(PEER_ROWS)
    known = [row.dropna().to_dict() for _, row in few.iterrows()]
    seconds, _ = best(
        lambda: [other.query(["HRBP"], evidence=row, show_progress=False) for row in known], runs=2
    )
    each = seconds / PEER_ROWS
    print(f"pgmpy, one column    {each * ROWS:8.3f} s (from {PEER_ROWS} rows, {each:.4f} s each)")
    print(f"wanted: at most {WANTED['rows']} s")


if __name__ == "__main__":
    main()
