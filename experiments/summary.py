"""The table of the README: spbn and the best other method in every experiment, from `results/` alone.

    python -m experiments.summary      # writes it into README.md, between its markers

spbn is the default model where it has run on every table of an experiment, and otherwise blends, which it
chooses from. The best other method is the best by the same measure, so it may be another one in every row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pandas as pd

from experiments import anomaly_peers, classifier_peers, density_peers, structure_peers
from experiments.figures.anomalies import percentages
from experiments.figures.classifiers import per_row
from experiments.page import table
from experiments.statistics import mean_ranks

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "experiments" / "results"
README = ROOT / "README.md"
BEGIN, END = "<!-- results -->", "<!-- /results -->"
SPEED = {"procedure": "SPBN-CKDE, patience 0", "variables": 5, "rows": 10_000}


def summary(results: Path = RESULTS) -> str:
    """Return the table, with one row per experiment."""
    rows = [row(pd.read_csv(results / f"{row.__name__}.csv")) for row in ROWS]
    return table(["", "measure", "spbn", "best other method"], rows, left=2)


def densities(results: pd.DataFrame) -> list[str]:
    """Compare densities of unseen rows, by mean rank, on the tables without ties that all have run on."""
    results = results[results["version"] == "no ties"]
    ours = _ours(results, "blend, margins")
    logliks = results.pivot_table("loglik", ["data", "fold"], "method")
    values = _beside(logliks, ours, density_peers.PEERS).dropna().groupby(level="data").sum()
    first = values.idxmax(axis=1).eq(ours).sum()
    return [
        "[densities of new rows](docs/densities.md)",
        f"mean rank of {values.shape[1]} on {len(values)} tables, where spbn is first on {first}",
        *_compared(pd.Series(mean_ranks(values)), "{:.2f}"),
    ]


def structure(results: pd.DataFrame) -> list[str]:
    """Compare graphs that are learned from rows of random networks, wherever ours has run."""
    results = results[results["part"] == "random"]
    errors = results.pivot_table("class_shd", ["network", "rows", "table"], "method")
    errors = _beside(errors.dropna(subset="auto"), "auto", structure_peers.PEERS).dropna(axis=1)
    networks = errors.index.get_level_values("network").nunique()
    return [
        "[graphs, mostly of curved relations](docs/structure.md)",
        f"mean number of errors in {len(errors)} tables of {networks} kinds of networks",
        *_compared(errors.mean(), "{:.1f}"),
    ]


def classifiers(results: pd.DataFrame) -> list[str]:
    """Compare the probabilities of classes."""
    losses = per_row(results, "log_loss")
    losses = _beside(losses, _ours(results, "blend"), classifier_peers.PEERS)
    return [
        "[probabilities of classes](docs/classifiers.md)",
        f"mean log loss on {len(losses)} tables",
        *_compared(losses.mean(), "{:.3f}"),
    ]


def anomalies(results: pd.DataFrame) -> list[str]:
    """Compare how well the rows of low density are the anomalies."""
    areas = _beside(percentages(results), _ours(results, "blend"), anomaly_peers.PEERS)
    return [
        "[anomalies](docs/anomalies.md)",
        f"mean area under the ROC curve in percent, on {len(areas)} tables",
        *_compared(areas.mean(), "{:.1f}", best=max),
    ]


def missing(results: pd.DataFrame) -> list[str]:
    """Compare how well deleted values are predicted, by the methods that never fail."""
    scores = results.pivot_table("crps", ["data", "rate"], "method").dropna(axis=1)
    ours = scores.pop('missing="impute"')
    scores.insert(0, "structural EM", ours)
    return [
        "[values that were deleted](docs/missing.md)",
        f"mean CRPS in {len(scores)} cases (0 is perfect)",
        *_compared(scores.mean(), "{:.3f}"),
    ]


def times(results: pd.DataFrame) -> list[str]:
    """Compare the seconds that the paper's model takes to learn."""
    chosen = results[(results[list(SPEED)] == pd.Series(SPEED)).all(axis=1)]
    seconds = chosen.groupby("library")["learning"].min()[["spbn", "PyBNesian"]]
    return [
        "[learning the paper's model](docs/paper.md#execution-times)",
        f"seconds for {SPEED['rows']:,} rows of {SPEED['variables']} columns",
        *_compared(seconds.rename({"spbn": SPEED["procedure"].partition("-")[0]}), "{:,.3g}"),
    ]


ROWS = (densities, structure, classifiers, anomalies, missing, times)


def _ours(results: pd.DataFrame, otherwise: str) -> str:
    """Return the default model if it has run on every table, and what stands for it if it has not."""
    ran = results.loc[results["method"] == "auto", "data"].nunique()
    return "auto" if ran == results["data"].nunique() else otherwise


def _beside(values: pd.DataFrame, ours: str, peers: Iterable[str]) -> pd.DataFrame:
    """Return the columns of our method, first, and of those that are not ours."""
    return values[[ours, *(peer for peer in peers if peer in values)]]


def _compared(values: pd.Series, form: str, best: Callable[..., str] = min) -> list[str]:
    """Return our value, which is the first, and that of the best other method, with their names."""
    ours, *others = values.index
    other = best(others, key=values.__getitem__)
    cells = {name: f"{form.format(values[name])} ({name})" for name in (ours, other)}
    winner = best(cells, key=values.__getitem__)
    return [f"**{cell}**" if name == winner else cell for name, cell in cells.items()]


def write(page: Path = README) -> None:
    """Write the table between its markers."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n\n{summary()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    write()
