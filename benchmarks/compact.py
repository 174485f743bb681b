"""What compact networks gain: size of the file, time to score rows, and how far off they are.

python benchmarks/compact.py            # up to a million rows: some minutes
python benchmarks/compact.py --small    # up to 20,000 rows: some seconds
"""

from __future__ import annotations

import argparse
import re
import tempfile
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from spbn._base import files
from spbn.datasets import synthetic

from timing import best, heading, machine

QUERIES = 100_000
EXACT_QUERIES = 2_000  # what the exact engine scores, at most; its time is proportional to them
WEIGHTED = 20_000  # rows that the weights of a blend are found from
FEWER_QUERIES = 500  # of a million rows, and of four scales


def table(rows: int, seed: int) -> pd.DataFrame:
    """Return columns whose dependence is curved."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    return pd.DataFrame({"a": a, "b": b, "c": np.sin(2.0 * a) + 0.5 * b**2 + rng.normal(size=rows)})


def network_of(frame: pd.DataFrame, d: int, kind: str, engine: str = "auto") -> spbn.BayesianNetwork:
    """Fit a network whose last node has d - 1 parents; these are linear Gaussian.

    The weights of a blend are those of some of the rows.
    """
    *parents, node = list(frame.columns)[:d]
    types = {**dict.fromkeys(parents, "lg"), node: kind}
    structure = spbn.Structure([*parents, node], [(parent, node) for parent in parents], types)
    cpds = {name: spbn.nodes.LinearGaussian.fit(frame, name) for name in parents}
    kernels = spbn.nodes.CKDE.fit(frame, node, parents, engine=engine)
    if kind == "blend":
        part = spbn.nodes.Blend.fit(frame.iloc[:WEIGHTED], node, parents)
        cpds[node] = replace(part, kernels=kernels)
    else:
        cpds[node] = kernels
    return spbn.BayesianNetwork(structure, cpds)


def greatest_error(found: np.ndarray, truth: np.ndarray) -> float:
    """Return how far log-densities are off, those greater than 1 relative to their size."""
    return float((np.abs(found - truth) / np.maximum(1.0, np.abs(truth))).max())


def training_error(
    exact: spbn.BayesianNetwork,
    quick: spbn.BayesianNetwork,
    small: spbn.BayesianNetwork,
    frame: pd.DataFrame,
    count: int,
) -> float:
    """Return the error in training rows.

    All of them are scored by the engine for large data, which is right within 1e-6 itself. Those in which the
    compact network differs from it most, and the least dense ones, are compared with all pairs.
    """
    node = exact.nodes[-1]
    found, truth = (network.node_logpdf(node, frame) for network in (small, quick))
    doubtful = np.argsort(-np.abs(found - truth))[:count]
    rows = np.unique([*doubtful, *np.argsort(truth)[:count]])
    return greatest_error(found[rows], exact.node_logpdf(node, frame.iloc[rows]))


def compare_families(kind: str, sizes: list[int], dimensions: tuple[int, ...], queries: int) -> None:
    """Score the same rows with exact and compact densities of the last node of every family."""
    heading(f"Scoring {queries:,} rows by one {kind} node: seconds, and the greatest error of a log-density")
    print(
        "     rows  d   all pairs      auto   compact   all pairs/compact  test error  far error"
        "   training   outposts  made in s      MB"
    )
    for rows in sizes:
        for d in dimensions:
            frame, asked = table(rows, 0), table(queries, 1)
            few = asked.iloc[: FEWER_QUERIES if rows > 100_000 or kind == "blend" else EXACT_QUERIES]
            far = 4.0 * few
            exact = network_of(frame, d, kind, engine="exact")
            quick = network_of(frame, d, kind)
            try:
                making, small = best(lambda e=exact: e.compact(), runs=1)
            except spbn.errors.FitError as error:
                print(f"{rows:9,d} {d:2d}  not possible: {error}", flush=True)
                continue
            node = exact.nodes[-1]
            for network in (exact, quick, small):
                network.node_logpdf(node, few.iloc[:10])  # compiles, and prepares what is kept
            pairs, truth = best(lambda e=exact, n=node, f=few: e.node_logpdf(n, f), runs=1)
            pairs *= queries / len(few)
            auto, _ = best(lambda q=quick, n=node, a=asked: q.node_logpdf(n, a), runs=2)
            tables, found = best(lambda s=small, n=node, a=asked: s.node_logpdf(n, a), runs=3)
            error = greatest_error(found[: len(few)], truth)
            far_error = greatest_error(small.node_logpdf(node, far), exact.node_logpdf(node, far))
            trained = training_error(exact, quick, small, frame, len(few) // 2)
            outposts = small.cpds[node].outposts / rows
            print(
                f"{rows:9,d} {d:2d} {pairs:11.2f} {auto:9.3f} {tables:9.3f} {pairs / tables:19.0f} "
                f"{error:11.1e} {far_error:10.1e} {trained:10.1e} {100 * outposts:8.3f} % {making:10.1f} "
                f"{megabytes(small):7.2f}",
                flush=True,
            )


def count_outposts(sizes: list[int]) -> None:
    """Make kernels on normally distributed rows compact."""
    heading("Outposts of a CKDE node, of normally distributed rows: per cent")
    print("     rows    d = 1    d = 2    d = 3")
    for rows in sizes:
        points = pd.DataFrame(np.random.default_rng(0).normal(size=(rows, 3)), columns=["a", "b", "c"])
        shares = []
        for d in (1, 2, 3):
            small = network_of(points, d, "ckde").compact()
            shares.append(100.0 * small.cpds[small.nodes[-1]].outposts / rows)
        print(f"{rows:9,d} " + " ".join(f"{share:8.3f}" for share in shares), flush=True)


def megabytes(network: spbn.BayesianNetwork) -> float:
    """Return the size of a network's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.spbn"
        network.save(path)
        return path.stat().st_size / 1e6


def compare_files(sizes: list[int]) -> None:
    """Save networks with and without their rows."""
    heading("Size of the file of a network with families of up to two variables: megabytes")
    print("     rows  nodes       exact  compact   with a tolerance of 0.0001   training values in the file")
    for rows in sizes:
        frame = synthetic(rows, seed=0)
        for kind in ("ckde", "blend"):
            structure = spbn.Structure("ABCDE", [("A", "C"), ("C", "D"), ("D", "E")], kind)
            network = spbn.BayesianNetwork.fit(structure, frame)
            small = network.compact()
            print(
                f"{rows:9,d}  {kind:6s} {megabytes(network):10.2f} {megabytes(small):8.2f} "
                f"{megabytes(network.compact(1e-4)):28.2f} {values_in(small, frame):29d}",
                flush=True,
            )
            for node, cpd in small.cpds.items():
                print(f"{'':9}  {node}: {size_of(cpd)}", flush=True)


def size_of(cpd: spbn.nodes.CKDE | spbn.nodes.Blend) -> str:
    """Say what the tables of a node take, those of narrow kernels first, and its outposts."""
    components = getattr(cpd, "components", {0: cpd}).values()
    parts = [part.kernels for part in components if isinstance(part, spbn.nodes.CKDE)]
    tables = [
        "none" if kernels.joint is None else f"{deflated(kernels.joint.integers):.3f}" for kernels in parts
    ]
    outposts = sum(deflated(column / parts[0].grain) for column in parts[0].outposts)
    return f"tables of all variables {', '.join(tables)} MB, {cpd.outposts:,} outposts {outposts:.3f} MB"


def deflated(numbers: np.ndarray) -> float:
    """Return the megabytes that whole numbers take in a file."""
    return len(zlib.compress(files.to_bytes(numbers))) / 1e6


def values_in(network: spbn.BayesianNetwork, frame: pd.DataFrame) -> int:
    """Count the training values that some 8 bytes in a row of the file are, or a number in its text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "network.spbn"
        network.save(path)
        with zipfile.ZipFile(path) as archive:
            content = b"".join(archive.read(name) for name in archive.namelist())
            text = archive.read("network.json").decode()
    written = [float(number) for number in re.findall(r"-?\d+\.\d+(?:[eE][-+]?\d+)?", text)]
    found = np.zeros(frame.size, dtype=bool)
    for offset in range(8):
        end = offset + (len(content) - offset) // 8 * 8
        there = np.frombuffer(content[offset:end], dtype="<f8")
        found |= np.isin(frame.to_numpy().ravel(), [*there[np.isfinite(there)], *written])
    return int(found.sum())


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="small tables only")
    small = parser.parse_args().small
    print(machine())
    queries = 5_000 if small else QUERIES
    compare_families("ckde", [1_000, 20_000] if small else [10_000, 100_000, 1_000_000], (1, 2, 3), queries)
    compare_families("blend", [20_000] if small else [100_000, 1_000_000], (1, 2), queries)
    if not small:
        compare_families("blend", [100_000], (3,), queries)
    count_outposts([1_000, 20_000] if small else [1_000, 10_000, 100_000, 1_000_000])
    compare_files([20_000] if small else [2_000, 100_000, 1_000_000])


if __name__ == "__main__":
    main()
