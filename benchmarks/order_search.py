"""Order search compared with that of causal-learn, on the same rows and by the same score (BIC).

    python benchmarks/order_search.py [--data ../shared/paper-data] [--large] [--exhaustive] [--errors]

Then what the default model takes: beside the paper's on 5 columns, and on tables with many columns or rows.
With --exhaustive, something else: how often order search reaches the best score of all graphs, for each type.
With --errors: the errors of the graphs of the default and of the paper's model on the authors' tables.
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
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from experiments.gaussian import NODES
from experiments.random_networks import MECHANISMS, NOISES, RandomNetwork
from experiments.sources import gaussian_network, gaussian_train
from experiments.structure_peers import boss

import naive

CASES = 100  # random networks of 4 to 6 nodes


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


def find_all(node_type: str, cases: int = CASES) -> None:
    """Print how often order search reaches the score of exhaustive search; "best" chooses the types."""
    reached, lacking = 0, 0.0
    for case in range(cases):
        mechanism, noise = MECHANISMS[case % len(MECHANISMS)], list(NOISES)[case % len(NOISES)]
        frame = RandomNetwork(4 + case % 3, 2 + case % 2, mechanism, noise, seed=case).sample(200)
        first = "lg" if node_type == "best" else node_type  # which stands for all
        scores = []
        for _ in range(2):  # each side has its own, so that nothing is computed by the other
            likelihood = spbn.scores.CVLikelihood(frame, penalty="auto")
            best_types = spbn.scores.BestType(likelihood, cost=likelihood.penalty)
            scores.append(best_types if node_type == "best" else likelihood)
        start = spbn.Structure(scores[0].nodes, types=first)
        found = spbn.search.order_search(scores[0], start).score
        exact = naive.best_graph(scores[1], scores[1].nodes, node_type=first)
        reached += found >= exact - 1e-9 * abs(exact)
        lacking = max(lacking, exact - found)
    print(f"{node_type:6} reached in {reached} of {cases}; lacking up to {lacking:.3f} nats", flush=True)


def count_errors(data: Path) -> None:
    """Print the distance between equivalence classes, learned and true, and how many nodes are lines."""
    for network in NODES:
        truth = gaussian_network(network).structure.dag.to_cpdag()
        for rows in (200, 2_000):
            frame = gaussian_train(data, network, rows)[list(truth.nodes)]
            found = {model: spbn.learn(frame, model=model).structure for model in ("auto", "spbn")}
            errors = ", ".join(
                f"{model} {spbn.metrics.shd(each.dag.to_cpdag(), truth)} "
                f"({sum(each.type(node).name == 'lg' for node in each.nodes) / len(each.nodes):.0%} lines)"
                for model, each in found.items()
            )
            print(f"{network:11} {rows:6,} rows: {errors}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(__file__).parents[2] / "shared" / "paper-data")
    parser.add_argument("--large", action="store_true", help="with 500 columns, and with 1,000,000 rows")
    parser.add_argument("--exhaustive", action="store_true", help="compare with all graphs of few nodes")
    parser.add_argument("--errors", action="store_true", help="errors of graphs on the authors' tables")
    options = parser.parse_args()
    print(machine())
    if options.errors:
        heading("Errors of the graphs of the authors' tables")
        count_errors(options.data)
        return
    if options.exhaustive:
        heading(f"The best of all graphs, {CASES} random networks of 4 to 6 nodes, 200 rows")
        for node_type in ("lg", "curve", "ckde", "blend", "best"):
            find_all(node_type)
        return
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
