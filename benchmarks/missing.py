"""Is the structure of the paper's synthetic network found again if a tenth of the values is missing?

python benchmarks/missing.py        # 10,000 rows; some minutes
"""

from __future__ import annotations

import time

import numpy as np

import spbn
from spbn.datasets import synthetic, synthetic_structure

from timing import heading, machine

ROWS, RATE = 10_000, 0.1


def main() -> None:
    """Learn from the holes."""
    heading(f"Synthetic network, {ROWS:,} rows, {100 * RATE:.0f} % missing at random. {machine()}")
    whole = synthetic(ROWS, seed=0)
    holes = whole.mask(np.random.default_rng(1).random(whole.shape) < RATE)
    start = time.process_time()
    network = spbn.learn(holes, model="spbn", missing="impute", patience=0)
    seconds = time.process_time() - start
    same = "the true structure and types" if network.structure == synthetic_structure() else "ANOTHER NETWORK"
    print(f"{len(holes.dropna()):,} complete rows; {same}, in {seconds:.0f} s of the processor")
    print(network.structure)


if __name__ == "__main__":
    main()
