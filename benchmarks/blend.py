"""What blend nodes cost, compared with kernels at one scale, with PyBNesian, and on a million rows.

python benchmarks/blend.py             # PyBNesian's search takes about six minutes, the million rows a few
python benchmarks/blend.py --families  # the scores of single families only
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from itertools import product

import spbn
from spbn.datasets import paper_synthetic, synthetic

from timing import best, heading, machine

SIZES = (2_000, 10_000)
MILLION = 1_000_000
WANTED = {2_000: 2.5, 10_000: 1.8}


def family_costs(runs: int) -> None:
    """Score single families as blend and as CKDE, in turns, each with caches that hold nothing yet."""
    heading(f"Ten-fold scores of a family: milliseconds, best of {runs} each, in turns")
    print("  rows  parents      CKDE     blend   ratio  wanted")
    for rows, parents in product(SIZES, range(4)):
        frame = synthetic(rows, seed=0)
        given = list("ABCD"[:parents])
        seconds = {"ckde": float("inf"), "blend": float("inf")}
        for _ in range(runs):
            for node_type in seconds:
                score = spbn.scores.CVLikelihood(frame)
                score.local("A", [], "lg")  # prepares what does not depend on the family
                taken, _ = best(lambda s=score, t=node_type, p=given: s.local("E", p, t), runs=1)
                seconds[node_type] = min(seconds[node_type], taken)
        ratio = seconds["blend"] / seconds["ckde"]
        print(
            f"{rows:6,d} {parents:8d} {1e3 * seconds['ckde']:9.2f} {1e3 * seconds['blend']:9.2f} "
            f"{ratio:7.2f} {WANTED[rows]:7.1f}",
            flush=True,
        )


def compare_searches() -> None:
    """Learn arcs between blend nodes, and between CKDE nodes with PyBNesian: the same rows and folds."""
    import peer

    heading(
        "Hill climbing on 10,000 synthetic rows: CKDE nodes by PyBNesian, blend nodes by spbn, patience 0"
    )
    frame = paper_synthetic("10000")
    nodes = list(frame.columns)
    score = peer.validated_score(frame)
    split = peer.split_of(score)
    their_seconds, _ = best(lambda: peer.climb(score, nodes, "ckde", 0, types=False), runs=1)

    def ours() -> spbn.SearchResult:
        score = spbn.scores.ValidatedLikelihood(split.train, folds=split.labels, validation=split.validation)
        start = spbn.Structure(nodes, types="blend")
        return spbn.search.hill_climb(score, start, patience=0, types=("blend",))

    our_seconds, result = best(ours, runs=3)
    print(
        f"PyBNesian {their_seconds:7.1f} s   spbn {our_seconds:6.2f} s in {len(result.steps)} steps   "
        f"{their_seconds / our_seconds:5.0f}×   (wanted: 100×)",
        flush=True,
    )


NETWORK = """
import resource, time
import spbn
from spbn import datasets
data = datasets.synthetic({rows}, seed=0)
for engine in ("exact", "spectral"):
    spbn.learn(datasets.synthetic(2000, seed=1), model="blend", patience=0, engine=engine)  # compiles
start = time.perf_counter()
network = spbn.learn(data, model="blend"{more})
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of the whole process, in megabytes
print(f"{rows:9,d} rows: {{seconds:6.1f}} s, {{peak:5.0f}} MB, {{len(network.search.steps)}} steps to "
      f"{{sorted(network.structure.arcs)}}")
"""


def million(**settings: object) -> None:
    """Learn a network of blend nodes from a million rows, in a process of its own."""
    more = "".join(f", {name}={value!r}" for name, value in settings.items())
    heading(
        f'spbn.learn(data, model="blend"{more}) on the synthetic table, 5 columns (wanted: 900 s and 2 GB)'
    )
    subprocess.run([sys.executable, "-c", NETWORK.format(rows=MILLION, more=more)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--families", action="store_true")
    parser.add_argument("--runs", type=int, default=15)
    chosen = parser.parse_args()
    print(machine())
    spbn.learn(synthetic(300), model="blend", patience=0)  # compiles
    family_costs(chosen.runs)
    if not chosen.families:
        compare_searches()
        million()


if __name__ == "__main__":
    main()
