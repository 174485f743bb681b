"""What an installed spbn must be able to do, in an empty folder: python smoke.py [--extras]

Without extras: import, learn, score, ask, save and load, in Python. With those of `release_check.py`: the
command line, pictures, reports, workbooks, graphs of networkx, and Parquet files.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

import spbn


def use_the_library(data: pd.DataFrame) -> None:
    """Learn with the default model and with the paper's, and use what is found."""
    for settings in ({}, {"model": "spbn"}):
        network = spbn.learn(data, **settings)
        network.save("network.spbn")
        again = spbn.BayesianNetwork.load("network.spbn")
        require(again == network, "a network differs from the one that was saved")
        require(again.logpdf(data).equals(network.logpdf(data)), "a loaded network gives other densities")
        posterior = again.query({"A": 6.0})
        require(bool(posterior.interval(0.9).notna().all(axis=None)), "a question has no answer")
        require(again.sample(10, seed=0).shape == (10, data.shape[1]), "a sample has another size")


def use_the_extras(data: pd.DataFrame) -> None:
    """Run the commands that most users begin with, and all else that an extra is for."""
    data.to_csv("table.csv", index=False)
    data.to_excel("table.xlsx", index=False)
    data.to_parquet("table.parquet")
    spbn_command = Path(sys.executable).with_name("spbn")
    for line in (
        "--version",
        "learn table.csv --model gbn --out table.spbn --report learned.html",
        "learn table.parquet --model gbn --out rows.spbn",
        "score table.spbn table.xlsx --top 3 --out scores.csv",
        "query table.spbn --given A=6",
        "report table.spbn table.csv --out report.html",
    ):
        done = subprocess.run([spbn_command, *line.split()], capture_output=True, text=True, timeout=600)
        require(done.returncode == 0, f"spbn {line}\n{done.stdout}{done.stderr}")
    require(len(pd.read_csv("scores.csv")) == len(data), "rows without a score")
    for page in ("learned.html", "report.html"):
        require("<svg" in Path(page).read_text(encoding="utf-8"), f"{page} has no pictures")
    network = spbn.BayesianNetwork.load("table.spbn")
    network.plot().figure.savefig("graph.png")
    graph = network.structure.to_networkx()
    require(set(graph.edges) == set(network.structure.arcs), "networkx has other arcs")


def require(holds: bool, complaint: str) -> None:
    """Stop if something does not hold; unlike `assert`, also with python -O."""
    if not holds:
        raise SystemExit(complaint)


def main() -> None:
    """Try out what is installed, and that it is what was meant."""
    extras = "--extras" in sys.argv[1:]
    require(spbn.__version__ == version("spbn"), f"{spbn.__version__} is installed as {version('spbn')}")
    require(Path(sys.prefix) in Path(spbn.__file__).parents, f"{spbn.__file__} is not in {sys.prefix}")
    require(extras or find_spec("matplotlib") is None, "matplotlib is installed without an extra")
    data = spbn.datasets.synthetic(200, seed=0)
    use_the_library(data)
    if extras:
        use_the_extras(data)


if __name__ == "__main__":
    main()
