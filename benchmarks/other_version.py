"""Two versions side by side: searches, kernels, single rows, rows over workers, and the import.

    python benchmarks/other_version.py FOLDER [--data ../shared/paper-data] [--only searches kernels rows ...]

FOLDER is a checkout of the other version, with ``src/spbn``. Every measurement is a process of its own, and
follows a run that compiles; the versions take turns, and the best of several counts. The other's time over
this version's is printed: above 1, this one is faster.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from timing import heading, machine
from versions import measure, print_ratio, versions

TURNS = 5

#: The best of several runs; `work` and `runs` come before.
BEST = """
import json, time
work()
seconds = []
for _ in range(runs):
    began = time.perf_counter()
    result = work()
    seconds.append(time.perf_counter() - began)
print(json.dumps({"best": min(seconds), "result": float(result)}))
"""

SEARCHES = (
    """
import sys
import pandas as pd
import spbn
from spbn.datasets import paper_synthetic
name, source, runs = sys.argv[1], sys.argv[2], int(sys.argv[3])
frame = paper_synthetic(source) if source.isdigit() else pd.read_csv(source)
frame = frame.drop(columns="class", errors="ignore").astype(float)
make = {"BIC": spbn.scores.BIC, "BGe": spbn.scores.BGe}.get(name, spbn.scores.ValidatedLikelihood)
start = spbn.Structure(list(frame.columns), types="lg" if name in ("BIC", "BGe") else "ckde")

def work():
    return spbn.search.hill_climb(make(frame), start, patience=0).score
"""
    + BEST
)

KERNELS = (
    """
import sys
import numpy as np
import pandas as pd
from spbn.nodes.kde import KDE
engine, d, rows, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
rng = np.random.default_rng(0)
names = [f"x{k}" for k in range(d)]
train, test = (pd.DataFrame(rng.standard_normal((rows, d)), columns=names) for _ in range(2))

def work():
    return KDE.fit(train, engine=engine).logpdf(test).sum()
"""
    + BEST
)

ROWS = (
    """
import sys, tempfile
import numpy as np
import pandas as pd
import spbn
kind, runs = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
columns = rng.normal(size=(10, 2000))
for k in range(1, 10):
    columns[k] += np.sin(2.0 * columns[k - 1])
frame = pd.DataFrame({f"x{k}": column for k, column in enumerate(columns)})
arcs = [(f"x{k - 1}", f"x{k}") for k in range(1, 10)]
network = spbn.BayesianNetwork.fit(spbn.Structure(list(frame.columns), arcs, kind), frame)
with tempfile.TemporaryDirectory() as folder:
    network.save(f"{folder}/m.spbn")
    scorer = spbn.load_scorer(f"{folder}/m.spbn")
rows = frame.to_numpy()[:200].tolist()

def work():
    return sum(float(np.sum(scorer.logpdf(row))) for row in rows)
"""
    + BEST
)

WORKERS = (
    """
import sys, tempfile, warnings
from pathlib import Path
import spbn
warnings.simplefilter("ignore")
model, count, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        spbn.datasets.synthetic(count, seed=0).to_parquet(path, row_group_size=count // 7 + 1)

        def work():
            network = spbn.distributed.learn(str(path), model=model, score="cv", patience=0, folds=5)
            return len(network.structure.arcs)
"""
    + "\n".join("        " + line for line in BEST.strip().splitlines())
    + "\n"
)

IMPORT = """
import json, time
start = time.process_time()
import spbn
print(json.dumps({"best": time.process_time() - start, "result": 0.0}))
"""


def cases(data: Path) -> dict[str, tuple[str, list[tuple[object, ...]]]]:
    """Return, by theme, a program and the arguments that it is run with."""
    (vowel,) = (data / "UCI data" / "data" / "Vowel").glob("*.csv")
    arth = data / "GaussianNetworks" / "arth150_2000.csv"
    return {
        "searches": (
            SEARCHES,
            [
                ("SPBN", "2000", 20),
                ("SPBN", "10000", 5),
                ("SPBN", vowel, 8),
                ("BIC", arth, 5),
                ("BGe", arth, 5),
            ],
        ),
        "kernels": (
            KERNELS,
            [
                ("exact", 1, 10_000, 5),
                ("exact", 3, 10_000, 5),
                ("auto", 1, 200_000, 5),
                ("auto", 2, 200_000, 3),
            ],
        ),
        "rows": (ROWS, [("lg", 20), ("ckde", 20), ("blend", 10)]),
        "workers": (WORKERS, [("gbn", 2_000_000, 3), ("spbn", 50_000, 2)]),
        "import": (IMPORT, [()]),
    }


def main() -> None:
    """Print the times of both versions, and their ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="a checkout of the version to compare with")
    parser.add_argument("--data", type=Path, default=Path("../shared/paper-data"))
    parser.add_argument("--only", nargs="+", help="themes; all by default")
    options = parser.parse_args()
    print(machine())
    with TemporaryDirectory() as folder:
        for theme, (program, runs) in cases(options.data).items():
            if options.only and theme not in options.only:
                continue
            heading(theme.capitalize())
            for arguments in runs:
                best: dict[str, float] = {}
                results = set()
                for _ in range(TURNS):
                    for version, path in versions(options.other).items():
                        found = measure(program, path, f"{folder}/{version}", *arguments)
                        best[version] = min(found["best"], best.get(version, float("inf")))
                        results.add(round(found["result"], 6))
                title = " ".join(str(Path(str(word)).stem) for word in arguments[:-1])
                shown = "   ".join(f"{version} {seconds:8.4f} s" for version, seconds in best.items())
                agreed = "same result" if len(results) == 1 else "NOT THE SAME RESULT"
                print(f"{title:20} {shown}   {agreed}", end="")
                print_ratio(best)


if __name__ == "__main__":
    main()
