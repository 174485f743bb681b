"""How fast rows are watched: one at a time, in batches, and through the command line.

python benchmarks/monitoring.py

A network of ten nodes, half of them kernels, fitted to 1,000 rows: the paper's model for execution times.
Figures are those of the clock and, in brackets, of the processor, which other work on the machine disturbs
less.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.models import MODELS

import spbn
from spbn.numerics.arrays import FloatArray

from timing import heading, machine

ROWS, STREAMED = 1_000, 20_000
SINGLE = 2_000


def seconds(function: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - clock, time.process_time() - processor


def watched(folder: Path) -> tuple[float, float, float]:
    """Watch rows through the command line; return the seconds of both kinds, and megabytes."""
    command = [
        sys.executable,
        "-c",
        "from spbn.app.cli import main; main()",
        "watch",
        "model.spbn",
        "rows.csv",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    clock = time.perf_counter()
    subprocess.run([*command, "--state", "state.json"], cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - clock, used, after.ru_maxrss / 1024.0


def main() -> None:
    """Measure everything."""
    model = MODELS[10]
    train, new = model.sample(ROWS, seed=0), model.sample(STREAMED, seed=1)
    network = spbn.BayesianNetwork.fit(model.structure, train)
    monitor = spbn.Monitor(network, train)
    values: FloatArray = new.to_numpy()
    dicts = new[:SINGLE].to_dict("records")
    monitor.update(new[:500])  # compile
    monitor.update(dicts[0])
    heading(f"Watching ten nodes, {ROWS:,} training rows. {machine()}")

    def report(name: str, rows: int, found: tuple[float, float]) -> None:
        clock, processor = found
        print(
            f"{name:32} {rows / clock:10,.0f} rows per second ({rows / processor:,.0f}), "
            f"{1e6 * clock / rows / 10:6.1f} µs per node ({1e6 * processor / rows / 10:.1f})",
            flush=True,
        )

    one_by_one = seconds(lambda: [monitor.take(values[k, :, None], {}) for k in range(SINGLE)])
    report("one by one, arrays", SINGLE, one_by_one)
    report("one by one, dict to frame", SINGLE, seconds(lambda: [monitor.update(row) for row in dicts]))
    report("together", STREAMED, seconds(lambda: monitor.update(new)))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network.save(folder / "model.spbn")
        monitor.save(folder / "state.json")
        new[:100].to_csv(folder / "rows.csv", index=False)
        start = watched(folder)
        new.to_csv(folder / "rows.csv", index=False)
        whole = watched(folder)
        difference = whole[0] - start[0], whole[1] - start[1]
        report("spbn watch, after the start", STREAMED - 100, difference)
        print(f"memory: {start[2]:.0f} MB after 100 rows, {whole[2]:.0f} MB after {STREAMED:,}")


if __name__ == "__main__":
    main()
