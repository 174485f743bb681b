"""Rows over workers: what is found, how long it takes, and how much memory every process needs.

    python benchmarks/workers.py [--small] [--only equal tree synthetic scaling killed narrow types]

equal: scores of 200,000 rows in 7 partitions on 2 workers, compared with those in memory.
tree: 10 million rows × 20 columns in Parquet files, larger than the memory of two workers with 700 MB each;
the tree that they were drawn from should be found with max_parents=1.
synthetic: 5 million rows of the paper's synthetic network; its structure should be found.
scaling: time with 1 and 2 workers, and from 1 to 10 million rows.
killed: a worker is killed in the middle; the result should be the same.
narrow: what the narrow kernels of a blend with two parents cost, in seconds of one process.
types: what the score of a node with one parent costs, type by type, up to ten million rows; that of lines is
the time of the passes that serve all families.

The tables are written to a temporary folder, a part at a time. Peaks of memory are those of whole processes
(VmHWM, Linux), the one that asks included. With --small, everything has a few thousand rows.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spbn
from spbn.dask.client import local_workers
from spbn.dask.kernel_passes import cache_pairwise
from spbn.dask.mapreduce import FoldAssignment
from spbn.dask.rowstore import DaskRows
from spbn.dask.shards import Shards
from spbn.dask.sources import open_source
from spbn.rows.store import FitSettings

from timing import heading, machine

PART = 500_000  # rows of a file
FOLDS = 10
MOST_BLENDED = 5_000_000  # rows in one process without a limit, whose densities take 64 bytes each


def tree_rows(rows: int, columns: int, seed: int) -> tuple[pd.DataFrame, list[tuple[int, int]]]:
    """Draw rows from a tree: half of the nodes are curved functions of their parent, the others lines.

    The nearer to the root, the stronger an arc is. So a greedy search joins a node to its parent before it
    joins it to its children, and never finds the one place for a parent taken.
    """
    shape = np.random.default_rng(0)
    arcs = [(int(shape.integers(j)), j) for j in range(1, columns)]
    rng = np.random.default_rng(seed)
    data, depth = np.empty((columns, rows)), [0] * columns
    data[0] = rng.normal(size=rows)
    for parent, j in arcs:
        depth[j] = depth[parent] + 1
        noise = 0.25 * 1.4 ** depth[j]
        x = data[parent]
        data[j] = (1.4 * np.sin(2.0 * x) if j % 2 else x) + noise * rng.normal(size=rows)
        data[j] /= math.sqrt(1.0 + noise**2)
    return pd.DataFrame(data.T, columns=[f"x{j}" for j in range(columns)]), arcs


def write(folder: Path, rows: int, draw: Callable[[int, int], pd.DataFrame], part: int = PART) -> Path:
    """Write rows to Parquet files, a part at a time."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, rows, part)):
        frame = draw(min(part, rows - first), number)
        frame.to_parquet(folder / f"{number:04}.parquet", index=False, row_group_size=1 << 17)
    return folder


def synthetic(rows: int, number: int) -> pd.DataFrame:
    return spbn.datasets.synthetic(rows, seed=1000 + number)


def tree(columns: int) -> Callable[[int, int], pd.DataFrame]:
    return lambda rows, number: tree_rows(rows, columns, 1000 + number)[0]


def peak() -> float:
    """Return the most memory that this process had, in MB."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as control:
        control.write("5")


def measured(
    data: Path, workers: int, memory: str, **settings: Any
) -> tuple[spbn.BayesianNetwork, float, list[float]]:
    """Learn; return the network, the seconds, and the peaks of the workers and, last, of this process."""
    forget_peak()
    with local_workers(workers, memory=memory) as client:
        client.run(forget_peak)
        began = time.perf_counter()
        network = spbn.distributed.learn(data, client=client, **settings)
        seconds = time.perf_counter() - began
        peaks = [*client.run(peak).values(), peak()]
    return network, seconds, peaks


def report(name: str, seconds: float, peaks: list[float]) -> None:
    of_workers = ", ".join(f"{mb:.0f}" for mb in peaks[:-1])
    print(
        f"{name:34} {seconds:9.1f} s   peaks: workers {of_workers} MB, asking {peaks[-1]:.0f} MB", flush=True
    )


def equal(folder: Path, rows: int) -> None:
    heading(f"Scores of {rows:,} rows in 7 partitions on 2 workers, compared with those in memory")
    frame = spbn.datasets.synthetic(rows, seed=0)
    cuts = np.linspace(0, rows, 8).astype(int)
    folder.mkdir(parents=True, exist_ok=True)
    deal, labels = FoldAssignment(0, FOLDS, 0.2), []
    for number in range(7):
        frame[cuts[number] : cuts[number + 1]].to_parquet(folder / f"{number}.parquet", index=False)
        labels.append(deal.labels(number, cuts[number + 1] - cuts[number]))
    label = np.concatenate(labels)
    train, test = frame[label < FOLDS], frame[label == FOLDS]
    expected = spbn.scores.ValidatedLikelihood(train, folds=label[label < FOLDS], validation=test)
    bic = spbn.scores.BIC(frame)
    nodes = list(frame.columns)
    with local_workers(2) as client:
        stored = DaskRows.folds(Shards.of(open_source(folder), deal, client), FitSettings())
        score = spbn.scores.ValidatedLikelihood.of_rows(stored, stored.validation)
        print("dimensions  type  families  greatest difference: of the sum, relative   per row")
        for size in (1, 2, 3):
            sets = list(combinations(nodes, size))
            for kind in ("lg", "ckde", "blend"):
                families = [(s[-1], list(s[:-1]), kind) for s in sets]
                worst = [0.0, 0.0]
                for ours, theirs, count in (
                    (score, expected, len(train)),
                    (score.validation, expected.validation, len(test)),
                ):
                    a, b = ours.local_many(families), theirs.local_many(families)
                    worst[0] = max(worst[0], float(np.max(np.abs(a - b) / np.abs(b))))
                    worst[1] = max(worst[1], float(np.max(np.abs(a - b)) / count))
                print(f"{size:10}  {kind:5} {len(families):8}  {worst[0]:40.1e}  {worst[1]:8.1e}", flush=True)
        found = spbn.distributed.learn(folder, client=client, model="gbn")
        steps = spbn.search.hill_climb(
            bic, spbn.Structure(nodes, types="lg"), operators=("arcs",), max_parents=2
        ).steps
        print("same steps by BIC:", [s.operator for s in found.search.steps] == [s.operator for s in steps])
        found = spbn.distributed.learn(folder, client=client, model="spbn")
        steps = spbn.search.hill_climb(expected, spbn.Structure(nodes, types="ckde"), max_parents=2).steps
        print("same steps by CV: ", [s.operator for s in found.search.steps] == [s.operator for s in steps])
        found = spbn.distributed.learn(folder, client=client, model="blend")
        steps = spbn.search.hill_climb(
            expected,
            spbn.Structure(nodes, types="blend"),
            operators=("arcs",),
            types=("blend",),
            max_parents=2,
        ).steps
        print("same steps, blends:", [s.operator for s in found.search.steps] == [s.operator for s in steps])


def pairs(arcs: Any) -> set[frozenset[Any]]:
    return {frozenset(arc) for arc in arcs}


def larger_than_memory(folder: Path, rows: int, columns: int, memory: str) -> None:
    heading(f"A tree: {rows:,} rows × {columns} columns, two workers with {memory} each, max_parents=1")
    data = write(folder, rows, tree(columns))
    size = sum(path.stat().st_size for path in data.iterdir()) / 2**20
    print(f"{size:.0f} MB in {len(list(data.iterdir()))} files", flush=True)
    network, seconds, peaks = measured(data, 2, memory, model="spbn", max_parents=1)
    report("two workers", seconds, peaks)
    truth = {(f"x{a}", f"x{b}") for a, b in tree_rows(1, columns, 0)[1]}
    print(f"the tree is found: {pairs(network.structure.arcs) == pairs(truth)}")
    print(f"{len(network.search.steps)} steps, {len(network.structure.arcs)} arcs")


def paper(folder: Path, rows: int, memory: str) -> None:
    heading(f"The paper's synthetic network: {rows:,} rows, max_parents=2, two workers with {memory} each")
    network, seconds, peaks = measured(write(folder, rows, synthetic), 2, memory, model="spbn")
    report("two workers", seconds, peaks)
    truth = spbn.datasets.synthetic_structure()
    print(f"arcs {sorted(network.structure.arcs)}; true ones {sorted(truth.arcs)}")
    print(f"distances: SHD {spbn.metrics.shd(network.structure, truth)}", end="")
    print(f", types that differ {spbn.metrics.thmd(network.structure, truth)}")


def scaling(folder: Path, sizes: list[int], memory: str) -> None:
    heading("Scaling: the synthetic network, max_parents=1")
    times: dict[int, float] = {}
    for rows in sizes:
        data = write(folder / str(rows), rows, synthetic)
        for workers in (1, 2) if rows == sizes[0] else (2,):
            _, seconds, peaks = measured(data, workers, memory, model="spbn", max_parents=1, max_seconds=0.0)
            report(f"{rows:,} rows, {workers} workers", seconds, peaks)
            times[rows] = seconds
        shutil.rmtree(data)
    if len(sizes) > 1:
        power = math.log(times[sizes[-1]] / times[sizes[0]]) / math.log(sizes[-1] / sizes[0])
        print(f"from {sizes[0]:,} to {sizes[-1]:,} rows the time grows as N^{power:.2f}")


def killed(folder: Path, rows: int) -> None:
    heading(f"A worker killed in the middle: {rows:,} rows of the synthetic network, max_parents=1")
    data = write(folder, rows, synthetic, part=max(1000, rows // 8))
    with local_workers(2) as client:
        began = time.perf_counter()
        whole = spbn.distributed.learn(data, client=client, model="spbn", max_parents=1)
        seconds = time.perf_counter() - began
        victim = min(client.run(os.getpid).values())
        timer = threading.Timer(0.4 * seconds, os.kill, (victim, signal.SIGKILL))
        timer.start()
        again = spbn.distributed.learn(data, client=client, model="spbn", max_parents=1)
        timer.join()
        alive = victim in client.run(os.getpid).values()
    same = again.search == whole.search and again == whole
    print(f"killed after {0.4 * seconds:.1f} of {seconds:.1f} s: {not alive}; same network: {same}")


def narrow(folder: Path, sizes: list[int]) -> None:
    heading("Narrow kernels of C given A and B, both scales, ten folds: seconds of one process")
    spent: dict[int, float] = {}
    unmeasured = Shards.map
    for rows in sizes:

        def timed(self: Shards, function: Any, *rest: Any, rows: int = rows, **options: Any) -> list[Any]:
            began = time.process_time()
            found = unmeasured(self, function, *rest, **options)
            if function is cache_pairwise:
                spent[rows] = spent.get(rows, 0.0) + time.process_time() - began
            return found

        Shards.map = timed  # type: ignore[method-assign]
        source = open_source(write(folder / str(rows), rows, synthetic))
        stored = DaskRows.folds(Shards.of(source, FoldAssignment(0, FOLDS, 0.2)), FitSettings())
        spbn.scores.CVLikelihood.of_rows(stored).local("C", ["A", "B"], "blend")
        Shards.map = unmeasured  # type: ignore[method-assign]
        print(f"{rows:12,} rows {spent[rows]:9.1f} s", flush=True)
    power = math.log(spent[sizes[-1]] / spent[sizes[0]]) / math.log(sizes[-1] / sizes[0])
    print(f"from {sizes[0]:,} to {sizes[-1]:,} rows the time grows as N^{power:.2f}")


def node_types(folder: Path, sizes: list[int]) -> None:
    heading("Ten-fold score of C given B from Parquet files: processor seconds, peak of the only process")
    spent: dict[str, dict[int, float]] = {}
    for rows in (4_000, *sizes):  # the first one compiles
        for kind in ("lg", "curve", "ckde", "blend"):
            count = min(rows, MOST_BLENDED) if kind == "blend" else rows
            data = write(folder / f"{kind}-{rows}", count, synthetic)
            forget_peak()
            began = time.process_time()
            shards = Shards.of(open_source(data), FoldAssignment(0, FOLDS, 0.2))
            score = spbn.scores.CVLikelihood.of_rows(DaskRows.folds(shards, FitSettings()))
            score.local("A", [], "lg")  # passes over the rows for what serves all families
            if kind != "lg":
                began = time.process_time()
            score.local("C", ["B"], kind)
            seconds = time.process_time() - began
            shutil.rmtree(data)
            if rows in sizes:
                spent.setdefault(kind, {})[count] = seconds
                print(f"{count:12,} rows  {kind:6} {seconds:9.1f} s {peak():9,.0f} MB", flush=True)
    for kind, seconds_of in spent.items():
        few, many = min(seconds_of), max(seconds_of)
        power = math.log(seconds_of[many] / seconds_of[few]) / math.log(many / few)
        beyond = ", ".join(
            f"~{seconds_of[many] * more**power:,.0f} s for {many * more:,}" for more in (10, 100)
        )
        print(f"{kind}: from {few:,} to {many:,} rows the time grows as N^{power:.2f}; {beyond}")


def main() -> None:
    names = ("equal", "tree", "synthetic", "scaling", "killed", "narrow", "types")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    options = parser.parse_args()
    small = options.small
    print(machine())
    with tempfile.TemporaryDirectory(prefix="spbn-") as temporary:
        folder = Path(temporary)
        for name in options.only:
            if name == "equal":
                equal(folder / name, 3_000 if small else 200_000)
            elif name == "tree":
                rows, columns = (5_000, 5) if small else (10_000_000, 20)
                larger_than_memory(folder / name, rows, columns, "700MB")
            elif name == "synthetic":
                paper(folder / name, 5_000 if small else 5_000_000, "2GB")
            elif name == "scaling":
                sizes = [2_000, 4_000] if small else [1_000_000, 2_000_000, 5_000_000, 10_000_000]
                scaling(folder / name, sizes, "1500MB")
            elif name == "killed":
                killed(folder / name, 4_000 if small else 1_000_000)
            elif name == "types":
                node_types(folder / name, [5_000, 10_000] if small else [1_000_000, 10_000_000])
            else:
                narrow(folder / name, [2_000, 4_000] if small else [200_000, 500_000, 1_000_000])
            shutil.rmtree(folder / name, ignore_errors=True)


if __name__ == "__main__":
    main()
