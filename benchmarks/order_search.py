"""Order search compared with that of causal-learn, on the same rows and by the same score (BIC).

    python benchmarks/order_search.py [--data ../shared/paper-data]

Then what the default model takes: beside the paper's on 5 columns, and on tables with many columns or rows.
"""

from __future__ import annotations

import argparse
import resource
import sys
from functools import partial
from pathlib import Path

import pandas as pd

import spbn

from timing import best, heading, machine

sys.path.insert(0, str(Path(__file__).parents[1]))

from experiments.random_networks import RandomNetwork
from experiments.structure_peers import boss


def compare(frame: pd.DataFrame) -> None:
    """Search on both sides; print what is found, and after what share of their time ours is as good."""
    heading(f"BIC: {len(frame):,} rows, {len(frame.columns)} variables")
    empty = spbn.Structure(list(frame.columns))

    def search(max_seconds: float | None = None) -> spbn.search.SearchResult:
        return spbn.search.order_search(spbn.scores.BIC(frame), empty, max_seconds=max_seconds)

    search(0.0)  # compile
    theirs, pdag = best(lambda: boss(frame), runs=3)
    dag = pdag.to_dag()
    total = spbn.scores.BIC(frame).total(spbn.Structure(dag.nodes, dag.arcs))
    print(f"causal-learn         {theirs:8.2f} s           BIC {total:.1f}, {len(dag.arcs)} arcs")
    for share in (20, 16, 14, 12, 10, 8, 6, 4, 2, 1):
        ours, found = best(partial(search, theirs / share), runs=3)
        if found.score >= total:
            break
    for title, (seconds, result) in {
        "spbn, until as good": (ours, found),
        "spbn, to the end": best(search, runs=3),
    }.items():
        print(
            f"{title:20} {seconds:8.2f} s {theirs / seconds:6.1f}×  "
            f"BIC {result.score:.1f}, {len(result.structure.arcs)} arcs",
            flush=True,
        )


def learn(title: str, frame: pd.DataFrame, *, model: str = "auto", runs: int = 1) -> float:
    """Print what learning a network takes."""
    seconds, network = best(lambda: spbn.learn(frame, model=model), runs=runs)
    types = ", ".join(
        f"{count} {name}"
        for name, count in pd.Series(map(str, network.structure.types.values())).value_counts().items()
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)  # of the process, so far
    print(
        f"{title:42} {seconds:8.1f} s   {len(network.structure.arcs)} arcs; {types}; up to {peak:.1f} GiB",
        flush=True,
    )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "paper-data")
    parser.add_argument("--large", action="store_true", help="with 500 columns, and with 1,000,000 rows")
    options = parser.parse_args()
    print(machine())
    arth = pd.read_csv(options.data / "GaussianNetworks" / "arth150_2000.csv")
    compare(arth)

    heading("The default model")
    synthetic = spbn.datasets.synthetic(10_000, seed=0)
    spbn.learn(synthetic.iloc[:1000])  # compile
    ours = learn("auto, 10,000 × 5, synthetic", synthetic, runs=3)
    paper = learn("spbn, 10,000 × 5, synthetic", synthetic, model="spbn", runs=3)
    print(f"{ours / paper:51.1f}×")
    learn(f"auto, {len(arth):,} × {len(arth.columns)}, ARTH150", arth)
    if options.large:
        learn("auto, 1,000,000 × 5, synthetic", spbn.datasets.synthetic(1_000_000, seed=0))
        for mechanism in ("linear", "additive"):
            wide = RandomNetwork(500, 2, mechanism, "normal", seed=1).sample(1_000)
            learn(f"auto, 1,000 × 500, {mechanism}", wide)


if __name__ == "__main__":
    main()
