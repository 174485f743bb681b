"""The command ``python -m experiments NAME --data DIR``."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

import pandas as pd

from experiments.page import move_tables
from experiments.results_file import ResultsError
from experiments.runner import run_experiment

#: Experiments on the data of the paper, which "all" runs, and on other data.
PAPER_DATA = (
    "synthetic",
    "progress",
    "bearings",
    "monitoring",
    "times",
    "gaussian",
    "uci",
    "limits",
    "densities",
    "seeds",
    "missing",
    "classifiers",
    "structure",
    "node_types",
    "populations",
)
OTHER_DATA = ("anomalies", "hybrid")
NAMES = (*PAPER_DATA, *OTHER_DATA)
#: Folders of the authors' repository that experiments read.
FOLDERS = {
    "bearings": ["BearingsDegradation"],
    "monitoring": ["BearingsDegradation"],
    "gaussian": ["GaussianNetworks"],
    "uci": ["UCI data"],
    "limits": ["UCI data", "GaussianNetworks"],
    "densities": ["UCI data"],
    "seeds": ["UCI data"],
    "missing": ["UCI data"],
    "classifiers": ["UCI data"],
    "structure": ["GaussianNetworks"],
    "node_types": ["GaussianNetworks"],
    "populations": ["UCI data"],
    "hybrid": ["GermanStatlog"],
}
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
#: All others are on the page of the paper.
PAGES = {
    name: ROOT / "docs" / f"{name}.md"
    for name in (
        "densities",
        "classifiers",
        "anomalies",
        "missing",
        "hybrid",
        "monitoring",
        "structure",
        "populations",
    )
}
PAGES["seeds"] = PAGES["densities"]
PAGES["node_types"] = PAGES["structure"]
PAPER = ROOT / "docs" / "paper.md"


def main(arguments: list[str] | None = None) -> int:
    """Run or render experiments; the exit code is 2 if the arguments are wrong and 1 if a cell failed."""
    options = _parser().parse_args(arguments)
    names = PAPER_DATA if options.name == "all" else (options.name,)
    if complaint := next(filter(None, (_complaint(name, options.data) for name in names)), None):
        print(complaint, file=sys.stderr)
        return 2
    if options.jobs < 1:
        print(f"--jobs must be 1 or more. Got {options.jobs}.", file=sys.stderr)
        return 2
    failed = 0
    try:
        for name in names:
            if options.quick:
                failed += run_quickly(name, options.data, options.jobs)
            elif options.render:
                page = PAGES.get(name, PAPER)
                render(name, RESULTS / f"{name}.csv", options.data, page.with_suffix(""))
                move_tables(page.with_suffix(""), page)
            else:
                results = RESULTS / f"{name}.csv"
                failed += run_experiment(f"experiments.{name}", options.data, results, jobs=options.jobs)
    except KeyboardInterrupt:
        print("\nstopped; run the same command again to continue.", file=sys.stderr)
        return 130
    except ResultsError as error:
        print(error, file=sys.stderr)
        return 1
    return 1 if failed else 0


def _complaint(name: str, data: Path) -> str | None:
    """Say what an experiment lacks in the folder that --data names."""
    if name == "anomalies":
        found = any(data.glob("*.npz"))
        return None if found else f"{data} has no .npz files: for {name}, --data takes tables of ADBench."
    absent = [data / folder for folder in FOLDERS.get(name, [""]) if not (data / folder).is_dir()]
    takes = "the data of HSPBN-Experiments" if name == "hybrid" else "a clone of SPBN-Experiments"
    return f"{absent[0]} is not a folder: --data takes {takes}." if absent else None


def run_quickly(name: str, data: Path, jobs: int) -> int:
    """Run and render a few cells, always from scratch and away from the real results."""
    results = RESULTS / "quick" / f"{name}.csv"
    results.unlink(missing_ok=True)
    failed = run_experiment(f"experiments.{name}", data, results, quick=True, jobs=jobs)
    if not failed:
        render(name, results, data, RESULTS / "quick" / name)
    return failed


def render(name: str, results: Path, data: Path, out: Path) -> None:
    """Make the tables and figures of an experiment from its results."""
    if not results.exists():
        raise ResultsError(f"{results} does not exist: run the experiment before rendering it.")
    out.mkdir(parents=True, exist_ok=True)
    import_module(f"experiments.{name}").render(pd.read_csv(results), data, out)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Reproduce the experiments of the paper, and run others."
    )
    parser.add_argument(
        "name",
        choices=(*NAMES, "all"),
        metavar="NAME",
        help=f"{', '.join(NAMES)} or all (all but {' and '.join(OTHER_DATA)}, which have other data)",
    )
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="a clone of the authors' SPBN-Experiments; for anomalies, a folder with tables of ADBench; for "
        "hybrid, the data of the authors' HSPBN-Experiments",
    )
    parser.add_argument("--quick", action="store_true", help="a few cells of each, into results/quick")
    parser.add_argument(
        "--jobs", type=int, default=1, help="number of processes; if more than one, each has one thread"
    )
    parser.add_argument(
        "--render", action="store_true", help="run nothing, only make tables and figures from results"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
