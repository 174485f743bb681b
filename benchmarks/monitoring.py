"""How fast rows are watched: one at a time, in batches, and by ``spbn watch`` at the end of a pipe.

    python benchmarks/monitoring.py

A network of ten nodes, half of them kernels, fitted to 1,000 rows: the paper's model for execution times.
Figures are those of the clock and, in brackets, of the processor, which other work on the machine disturbs
less. The command is measured from outside (Linux): now and then a row comes that must raise an alarm, and
when its line is there, all rows before it have been judged.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.models import MODELS

import spbn
from spbn._base.arrays import FloatArray

from timing import heading, machine

ROWS, STREAMED, MARKED = 1_000, 60_000, 10_000
SINGLE = 2_000
PACE, PACED_SECONDS, TICK = 1_000, 15, 0.01  # rows per second, for how long, and seconds between writes
ABSURD = 1e6


class Reading(NamedTuple):
    """The clock when an alarm was read, and what the process had used by then: seconds and megabytes."""

    clock: float
    processor: float
    peak: float


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
    one_by_one = seconds(lambda: [monitor.take(values[k, :, None], {}) for k in range(SINGLE)])
    report("one by one, arrays", SINGLE, one_by_one)
    report("one by one, dict to frame", SINGLE, seconds(lambda: [monitor.update(row) for row in dicts]))
    report("together", STREAMED, seconds(lambda: monitor.update(new)))
    lines = [",".join(map(repr, row)).encode() + b"\n" for row in values.tolist()]
    mark = ",".join([repr(ABSURD)] * len(new.columns)).encode() + b"\n"
    names = ",".join(new.columns).encode() + b"\n"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network.save(folder / "model.spbn")
        spbn.Monitor(network, train).save(folder / "state.json")
        with watching(folder) as process:
            all_at_once(process, names, lines, mark)
        with watching(folder) as process:
            as_they_come(process, names, lines, mark)


def all_at_once(process: subprocess.Popen[bytes], names: bytes, lines: list[bytes], mark: bytes) -> None:
    """Write rows as fast as they are taken, and say how fast that was and how memory grew."""
    began = time.perf_counter()
    readings = []
    blocks = [b"".join(lines[k : k + MARKED]) + mark for k in range(0, len(lines), MARKED)]

    def write() -> None:
        into(process).write(names + lines[0] + mark)
        for block in blocks:
            into(process).write(block)
        into(process).flush()

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(len(blocks) + 1):
        readings.append(at_the_next_alarm(process))
    writer.join()
    start, first, last = readings[0], readings[1], readings[-1]
    print(f"spbn watch: the first row is judged after {start.clock - began:.1f} s")
    used = last.clock - start.clock, last.processor - start.processor
    report(f"spbn watch, {len(lines):,} rows in a pipe", len(lines), used)
    print(f"peak memory: {first.peak:.0f} MB after {MARKED:,} rows, {last.peak:.0f} MB after {len(lines):,}")


def as_they_come(process: subprocess.Popen[bytes], names: bytes, lines: list[bytes], mark: bytes) -> None:
    """Write rows at the pace of a clock, and say how busy the command is and when alarms come."""
    into(process).write(names + lines[0] + mark)
    into(process).flush()
    start = at_the_next_alarm(process)
    delays, per_tick, last = [], round(PACE * TICK), start
    for tick in range(round(PACED_SECONDS / TICK)):
        pause = start.clock + tick * TICK - time.perf_counter()
        if pause > 0:
            time.sleep(pause)
        rows = b"".join(lines[(tick * per_tick + k) % len(lines)] for k in range(per_tick))
        is_marked = tick % 100 == 99
        written = time.perf_counter()
        into(process).write(rows + mark * is_marked)
        into(process).flush()
        if is_marked:
            last = at_the_next_alarm(process)
            delays.append(last.clock - written)
    share = (last.processor - start.processor) / (last.clock - start.clock)
    late = 1000.0 * sum(delays) / len(delays)
    print(
        f"spbn watch, {PACE:,} rows per second as they come: {100 * share:.0f} % of a core, and alarms after "
        f"{late:.0f} ms on average ({1000 * max(delays):.0f} at most)"
    )


@contextmanager
def watching(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the command at the end of a pipe; alarms are read from it as they come."""
    command = [sys.executable, "-c", "from spbn.cli.main import main; main()", "watch", "model.spbn", "-"]
    process = subprocess.Popen(
        # No drift alarms: they would come between.
        [*command, "--state", "state.json", "--drift", "1e-300"],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.communicate()


def into(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """Return the pipe into a process."""
    assert process.stdin is not None
    return process.stdin


def at_the_next_alarm(process: subprocess.Popen[bytes]) -> Reading:
    """Wait for the alarm of a row that is marked; others are passed over."""
    assert process.stdout is not None
    for line in process.stdout:
        if f"= {ABSURD:.5g}".encode() in line:
            now = time.perf_counter()
            fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            status = Path(f"/proc/{process.pid}/status").read_text()
            peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024.0
            return Reading(now, used, peak)
    raise RuntimeError("spbn watch has ended before its time")


def seconds(function: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds of the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - clock, time.process_time() - processor


def report(name: str, rows: int, found: tuple[float, float]) -> None:
    """Print one line."""
    clock, processor = found
    print(
        f"{name:36} {rows / clock:10,.0f} rows per second ({rows / processor:,.0f}), "
        f"{1e6 * clock / rows / 10:6.1f} µs per node ({1e6 * processor / rows / 10:.1f})",
        flush=True,
    )


if __name__ == "__main__":
    main()
