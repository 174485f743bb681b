"""How often the independence tests reject, where they should not and where they should, and what they cost.

``python benchmarks/independence.py`` writes its tables into docs/independence-tests.md;
it takes about a quarter of an hour. ``--table`` makes only one of them. ``--quick`` only prints,
from a tenth of the data sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from spbn.independence import CMIknn, IndependenceTest, PartialCorrelation, RCoT

ROWS = 500
DOCUMENT = Path(__file__).parents[1] / "docs" / "independence-tests.md"
Columns = dict[str, np.ndarray]


def marginal(rng: np.random.Generator) -> Columns:
    return {"x": rng.normal(size=ROWS), "y": rng.standard_t(5, size=ROWS)}


def linear(rng: np.random.Generator) -> Columns:
    z = rng.normal(size=ROWS)
    return {"x": z + rng.normal(size=ROWS), "y": z + rng.normal(size=ROWS), "z": z}


def nonlinear(rng: np.random.Generator) -> Columns:
    z = rng.normal(size=ROWS)
    x, y = 0.5 * rng.normal(size=(2, ROWS))
    return {"x": x + z**2, "y": y + np.cos(2 * z), "z": z}


def steep(rng: np.random.Generator) -> Columns:
    z = rng.normal(size=ROWS)
    x, y = 0.5 * rng.normal(size=(2, ROWS))
    return {"x": x + np.sin(2 * z), "y": y + np.sin(2 * z), "z": z}


def uneven(rng: np.random.Generator) -> Columns:
    z = rng.normal(size=ROWS)
    noise = 0.3 + np.abs(z)
    return {"x": np.tanh(z) + noise * rng.normal(size=ROWS), "y": z + noise * rng.normal(size=ROWS), "z": z}


def two_linear(rng: np.random.Generator) -> Columns:
    z, w = rng.normal(size=(2, ROWS))
    return {"x": z + w + rng.normal(size=ROWS), "y": z - w + rng.normal(size=ROWS), "z": z, "w": w}


def two_nonlinear(rng: np.random.Generator) -> Columns:
    z, w = rng.normal(size=(2, ROWS))
    x, y = np.sin(z) + np.cos(w), np.tanh(z + w)
    return {"x": x + 0.5 * rng.normal(size=ROWS), "y": y + 0.5 * rng.normal(size=ROWS), "z": z, "w": w}


def product(rng: np.random.Generator) -> Columns:
    x, z = rng.normal(size=(2, ROWS))
    return {"x": x, "y": x * z + 0.5 * rng.normal(size=ROWS), "z": z}


def sine(rng: np.random.Generator) -> Columns:
    x, z = rng.normal(size=(2, ROWS))
    return {"x": x, "y": np.sin(2 * x) + z + 0.5 * rng.normal(size=ROWS), "z": z}


def fast_sine(rng: np.random.Generator) -> Columns:
    x, z = rng.normal(size=(2, ROWS))
    return {"x": x, "y": np.sin(3 * x) + z + 0.5 * rng.normal(size=ROWS), "z": z}


def circle(rng: np.random.Generator) -> Columns:
    angle = rng.uniform(0, 2 * np.pi, ROWS)
    noise = 0.1 * rng.normal(size=(2, ROWS))
    return {"x": np.cos(angle) + noise[0], "y": np.sin(angle) + noise[1], "z": rng.normal(size=ROWS)}


#: The question is always about x and y given every other column.
INDEPENDENT = {
    "no condition": marginal,
    "linear": linear,
    "nonlinear": nonlinear,
    "nonlinear and steep": steep,
    "uneven noise": uneven,
    "two conditions, linear": two_linear,
    "two conditions, nonlinear": two_nonlinear,
}
DEPENDENT = {"product": product, "sine": sine, "circle": circle, "fast sine": fast_sine}

TESTS: dict[str, tuple[Callable[[Columns, int], IndependenceTest], int]] = {
    "PartialCorrelation": (lambda data, seed: PartialCorrelation(data), 1000),
    "RCoT": (lambda data, seed: RCoT(data, seed=seed), 1000),
    "CMIknn": (lambda data, seed: CMIknn(data, seed=seed, permutations=200), 200),
}


def rejections(case: str, make: Callable[[Columns, int], IndependenceTest], data_sets: int) -> float:
    """Return how often a test rejects at 5 %, with new random features for each data set."""
    generate = (INDEPENDENT | DEPENDENT)[case]
    rejected = 0
    for seed in range(data_sets):
        columns = generate(np.random.default_rng([seed, *case.encode()]))
        given = [name for name in columns if name not in "xy"]
        rejected += make(columns, seed).pvalue("x", "y", given) <= 0.05
    return rejected / data_sets


def rejection_table(share: float) -> str:
    lines = ["| data | " + " | ".join(TESTS) + " |", "| --- |" + " ---: |" * len(TESTS)]
    for title, cases in (("independent", INDEPENDENT), ("dependent", DEPENDENT)):
        for case in cases:
            rates = [rejections(case, make, max(1, round(share * count))) for make, count in TESTS.values()]
            lines.append(f"| {title}: {case} | " + " | ".join(f"{100 * rate:.1f} %" for rate in rates) + " |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def cost_table() -> str:
    """Time one question given two variables, with everything new to the test."""
    lines = [
        "| rows | PartialCorrelation | RCoT | CMIknn, 100 permutations |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for rows in (500, 2000, 10000):
        rng = np.random.default_rng(rows)
        columns = dict(zip("xyzw", rng.normal(size=(4, rows)), strict=True))
        times = []
        for test in (PartialCorrelation(columns), RCoT(columns), CMIknn(columns, permutations=100)):
            test.pvalue("z", "w")  # compile
            test.pvalue("z", "w", ["x"])
            start = time.perf_counter()
            test.pvalue("x", "y", ["z", "w"])
            times.append(time.perf_counter() - start)
        lines.append(f"| {rows:,} | " + " | ".join(map(readable, times)) + " |")
        print(lines[-1], flush=True)
    return "\n".join(lines)


def readable(seconds: float) -> str:
    number, unit = (seconds, "s") if seconds >= 1 else (seconds * 1e3, "ms")
    return f"{float(f'{number:.2g}'):g} {unit}"


def write(name: str, table: str) -> None:
    """Put a table between its two markers in the document."""
    text = DOCUMENT.read_text()
    before, rest = text.split(f"<!-- {name} -->\n", 1)
    _, after = rest.split(f"<!-- end of {name} -->", 1)
    DOCUMENT.write_text(f"{before}<!-- {name} -->\n\n{table}\n\n<!-- end of {name} -->{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the data sets; print only")
    parser.add_argument("--table", choices=["cost", "rejections"], help="make only one of the two")
    options = parser.parse_args()
    share = 0.1 if options.quick else 1.0
    tables = {"cost": cost_table, "rejections": lambda: rejection_table(share)}
    for name, make in tables.items():
        if options.table in (None, name):
            table = make()
            if not options.quick:
                write(name, table)


if __name__ == "__main__":
    main()
