"""What questions cost: effective samples per second, compared with plain likelihood weighting, and seconds.

python benchmarks/queries.py            # both sides of every question, in turns; about two minutes

A network of ten nodes, fitted to 2,000 rows: two copies of the paper's synthetic network, of which the second
depends on the first. Weighting is the same code without what comes after it, `method="weighting"`.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import spbn
from spbn.datasets import synthetic, synthetic_structure

from timing import heading, machine

ROWS, DRAWS = 2_000, 2_000
SECOND = dict(zip("ABCDE", "FGHIJ", strict=True))
EASY: tuple[dict[str, Any], ...] = (
    {"A": 6.5, "B": 1.0},
    {"E": 0.7},
    {"J": (0.5, 1.5)},
    {"A": 6.5, "E": 0.7, "F": (9.0, None)},
)
HARD: tuple[dict[str, Any], ...] = (  # of which weighting keeps less than 1 % of its samples
    {"A": 4.0, "D": 30.0},
    {"A": 8.0, "D": -4.0, "I": 45.0},
    {"D": (21.9, 22.1), "I": (24.0, 24.2)},
    {"C": (24.0, None), "I": 5.0},
)
WANTED = {"easy": (0.5, 0.3), "hard": (20.0, 3.0)}  # ratio to weighting, seconds


def network() -> spbn.BayesianNetwork:
    """Fit the network of ten nodes."""
    first, second = synthetic(ROWS, seed=0), synthetic(ROWS, seed=1).rename(columns=SECOND)
    noise = second["H"] - second["F"] * second["G"]
    second["F"] = second["F"] + 0.3 * first["D"]
    second["H"] = second["F"] * second["G"] + noise
    second["I"] = 10.0 + 0.8 * second["H"] + np.random.default_rng(2).normal(0.0, 0.7, ROWS)
    structure = synthetic_structure()
    arcs = [*structure.arcs, *((SECOND[a], SECOND[b]) for a, b in structure.arcs), ("D", "F")]
    types = {**structure.types, **{SECOND[node]: kind for node, kind in structure.types.items()}}
    return spbn.BayesianNetwork.fit(
        spbn.Structure("ABCDEFGHIJ", arcs, types), pd.concat([first, second], axis=1)
    )


def measured(
    net: spbn.BayesianNetwork, evidence: dict[str, Any], runs: int
) -> dict[str, tuple[float, float]]:
    """Return the seconds of the fastest run of both methods, in turns, and what answers are worth on average.

    What few weighted samples are worth is a matter of luck, so one run would not do.
    """
    seconds: dict[str, list[float]] = {"weighting": [], "auto": []}
    worth: dict[str, list[float]] = {"weighting": [], "auto": []}
    for seed, method in product(range(runs), seconds):
        start = time.perf_counter()
        found = net.query(evidence, n=DRAWS, seed=seed, method=method)
        seconds[method].append(time.perf_counter() - start)
        worth[method].append(found.effective_size)
    return {method: (min(seconds[method]), float(np.mean(worth[method]))) for method in seconds}


def main() -> None:
    """Measure all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=8, help="runs of every question, of which the fastest counts"
    )
    runs = parser.parse_args().runs
    warnings.filterwarnings("ignore", message="the answer rests on only")
    net = network()
    for evidence in (*EASY[:2], *HARD[:1]):  # compile
        net.query(evidence, n=100)
    heading(
        f"Questions to ten nodes, {ROWS:,} rows, {DRAWS:,} draws: the fastest of {runs} runs. {machine()}"
    )
    print(f"      {'spbn':>29}   {'weighting alone':>29}   ratio")
    print(f"      {'seconds  effective  per second':>29}   {'seconds  effective  per second':>29}")
    for kind, questions in (("easy", EASY), ("hard", HARD)):
        for evidence in questions:
            found = measured(net, evidence, runs)
            cells = [
                f"{seconds:9.3f} {worth:10.1f} {worth / seconds:11.1f}" for seconds, worth in found.values()
            ]
            plain, ours = (worth / seconds for seconds, worth in found.values())
            print(f"{kind} {cells[1]} {cells[0]} {ours / plain:7.1f}  {evidence}", flush=True)
        ratio, most = WANTED[kind]
        print(f"      wanted: at most {most} s, a ratio of at least {ratio}")


if __name__ == "__main__":
    main()
