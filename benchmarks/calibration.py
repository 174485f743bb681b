"""Are answers calibrated? Rows are drawn from networks, told in part, and ranked in the posterior.

python benchmarks/calibration.py            # 500 rows of each network; some minutes

If answers are right, the ranks of the true values are uniform. The chi-square test is that of ten equal
ranges. `tests/inference/test_sampling.py` does the same with fewer rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from scipy import stats

import spbn
from spbn.datasets import synthetic, synthetic_structure

from timing import heading, machine

KNOWN = 0.4  # the chance that a value is told
DRAWS = 200


def semiparametric() -> spbn.BayesianNetwork:
    """Fit the network of the paper, 5 nodes."""
    return spbn.BayesianNetwork.fit(synthetic_structure(), synthetic(300, seed=1))


def copies_of(kind: str, copies: int, margins: str = "none") -> spbn.BayesianNetwork:
    """Fit nodes of a type to copies of that network, each of which depends on the one before."""
    structure, frames, arcs = synthetic_structure(), [], []
    for copy in range(copies):
        frame = synthetic(200, seed=copy).add_suffix(str(copy))
        if copy:
            frame[f"A{copy}"] += 0.3 * frames[-1][f"D{copy - 1}"]
            arcs.append((f"D{copy - 1}", f"A{copy}"))
        arcs += [(f"{source}{copy}", f"{target}{copy}") for source, target in structure.arcs]
        frames.append(frame)
    table = pd.concat(frames, axis=1)
    return spbn.BayesianNetwork.fit(spbn.Structure(list(table.columns), arcs, kind), table, margins=margins)


def populations() -> spbn.BayesianNetwork:
    """Learn from three populations of six variables, which no column tells."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 600)
    centres = rng.normal(0.0, 2.0, (3, 6))
    frame = pd.DataFrame(centres[group] + rng.normal(size=(600, 6)), columns=list("uvwxyz"))
    frame["z"] += np.sin(frame["u"]) + 0.5 * frame["v"]
    return spbn.learn(frame, hidden=3, types=("curve",), seed=0)


def mixed() -> spbn.BayesianNetwork:
    """Fit CKDE nodes below two discrete ones."""
    rng = np.random.default_rng(0)
    sky = rng.choice(["clear", "cloudy", "rain"], size=400, p=[0.5, 0.3, 0.2])
    wet = np.where(sky == "rain", rng.random(400) < 0.9, rng.random(400) < 0.1)
    heat = np.select([sky == "clear", sky == "cloudy"], [20.0, 15.0], 10.0) + rng.normal(0, 3, 400)
    sales = np.where(wet, 5.0 + 0.1 * heat, heat) + rng.normal(0, 1, 400)
    frame = pd.DataFrame({"sky": sky, "wet": wet, "heat": heat, "sales": sales, "noise": np.sin(sales)})
    frame["noise"] += rng.normal(0, 0.3, 400)
    types = {"sky": "discrete", "wet": "discrete", **dict.fromkeys(["heat", "sales", "noise"], "ckde")}
    arcs = [("sky", "wet"), ("sky", "heat"), ("wet", "sales"), ("heat", "sales"), ("sales", "noise")]
    return spbn.BayesianNetwork.fit(spbn.Structure(list(types), arcs, types), frame)


NETWORKS: dict[str, Callable[[], spbn.BayesianNetwork]] = {
    "SPBN, 5 nodes": semiparametric,
    "mixed, 5 nodes": mixed,
    "blend with margins, 5 nodes": lambda: copies_of("blend", 1, "yeo-johnson"),
    "curve, 10 nodes": lambda: copies_of("curve", 2),
    "hidden class, 6 nodes": populations,
    "blend with margins, 30 nodes": lambda: copies_of("blend", 6, "yeo-johnson"),
}


def ranks(network: spbn.BayesianNetwork, rows: int) -> Iterator[float]:
    """Yield the rank of every value that was not told, from 0 to 1."""
    frame, rng = network.sample_with_class(rows, seed=3), np.random.default_rng(4)
    for number in range(rows):
        known = [v.name for v in network.variables if rng.random() < KNOWN]
        row = frame.iloc[number]
        posterior = network.query({node: row[node] for node in known}, n=DRAWS, seed=number)
        for variable in posterior.variables:
            truth = row[variable.name]
            if variable.is_discrete:
                shares = posterior.probabilities(variable.name)
                place = list(shares.index).index(truth)
                yield shares.iloc[:place].sum() + rng.random() * shares.iloc[place]
            else:
                yield posterior.weights[posterior.draws[variable.name] < truth].sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=500)
    rows = parser.parse_args().rows
    warnings.simplefilter("ignore")  # of rows that are unusual by chance
    heading(f"Ranks of true values among posterior draws, {rows} rows each. {machine()}")
    for name, make in NETWORKS.items():
        start = time.perf_counter()
        found = np.clip(list(ranks(make(), rows)), 0, 1 - 1e-12)
        counts = np.histogram(found, bins=10, range=(0, 1))[0]
        test = stats.chisquare(counts)
        print(
            f"{name:30} {len(found):5d} ranks, by tenths {counts.tolist()}, chi-square {test.statistic:.1f}, "
            f"p = {test.pvalue:.3f} (wanted: 0.001), {time.perf_counter() - start:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
