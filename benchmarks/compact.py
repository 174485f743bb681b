"""What compact networks gain: size of the file, time to score rows, and how far off they are.

python benchmarks/compact.py            # up to a million rows: some minutes
python benchmarks/compact.py --small    # up to 20,000 rows: some seconds
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from spbn.datasets import synthetic

from timing import best, heading, machine

QUERIES = 100_000
EXACT_QUERIES = 2_000  # what the exact engine scores, at most; its time is proportional to them


def table(rows: int, seed: int) -> pd.DataFrame:
    """Return columns whose dependence is curved."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    return pd.DataFrame({"a": a, "b": b, "c": np.sin(2.0 * a) + 0.5 * b**2 + rng.normal(size=rows)})


def network_of(frame: pd.DataFrame, d: int, kind: str, engine: str = "auto") -> spbn.BayesianNetwork:
    """Fit a network whose largest family has d variables."""
    nodes = list(frame.columns)[:d]
    arcs = [(parent, nodes[-1]) for parent in nodes[:-1]]
    return spbn.BayesianNetwork.fit(spbn.Structure(nodes, arcs, kind), frame[nodes], engine=engine)


def compare_families(sizes: list[int], queries: int) -> None:
    """Score the same rows with exact and compact densities of the last node of every family."""
    heading(f"Scoring {queries:,} rows by one CKDE node: seconds, and the greatest error of a log-density")
    print("     rows  d   all pairs      auto   compact   all pairs/compact      error  far error  outposts")
    for rows in sizes:
        for d in (1, 2, 3):
            frame, asked = table(rows, 0), table(queries, 1)
            far = 4.0 * asked.iloc[:EXACT_QUERIES]
            exact = network_of(frame, d, "ckde", engine="exact")
            quick = network_of(frame, d, "ckde")
            small = exact.compact()
            node = exact.nodes[-1]
            few = asked.iloc[:EXACT_QUERIES]
            for network in (exact, quick, small):
                network.node_logpdf(node, few.iloc[:10])  # compiles, and prepares what is kept
            pairs, truth = best(lambda e=exact, n=node, f=few: e.node_logpdf(n, f), runs=1)
            pairs *= queries / len(few)
            auto, _ = best(lambda q=quick, n=node, a=asked: q.node_logpdf(n, a), runs=2)
            tables, found = best(lambda s=small, n=node, a=asked: s.node_logpdf(n, a), runs=3)
            error = np.abs(found[: len(few)] - truth).max()
            far_truth = exact.node_logpdf(node, far)
            far_error = np.abs(small.node_logpdf(node, far) - far_truth) / np.maximum(1.0, np.abs(far_truth))
            outposts = small.cpds[node].outposts / rows  # type: ignore[attr-defined]
            print(
                f"{rows:9,d} {d:2d} {pairs:11.2f} {auto:9.3f} {tables:9.3f} {pairs / tables:19.0f} "
                f"{error:10.1e} {far_error.max():10.1e} {100 * outposts:8.3f} %",
                flush=True,
            )


def compare_files(sizes: list[int]) -> None:
    """Save networks with and without their rows."""
    heading("Size of the file of a network with families of up to two variables: megabytes")
    print("     rows  nodes       exact   compact")
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            frame = synthetic(rows, seed=0)
            for kind in ("ckde", "blend"):
                structure = spbn.Structure("ABCDE", [("A", "C"), ("C", "D"), ("D", "E")], kind)
                network = spbn.BayesianNetwork.fit(structure, frame)
                megabytes = []
                for name, saved in (("exact", network), ("compact", network.compact())):
                    path = Path(folder) / f"{name}.spbn"
                    saved.save(path)
                    megabytes.append(path.stat().st_size / 1e6)
                print(f"{rows:9,d}  {kind:6s} {megabytes[0]:10.2f} {megabytes[1]:9.2f}", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="small tables only")
    small = parser.parse_args().small
    print(machine())
    compare_families([1_000, 20_000] if small else [10_000, 100_000, 1_000_000], 5_000 if small else QUERIES)
    compare_files([20_000] if small else [100_000, 1_000_000])


if __name__ == "__main__":
    main()
