"""Densities: log-likelihood of test rows by every method, on raw tables and on tables without ties."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from experiments.densities import BEFORE, COMPARED, DEFAULT, FEWEST_FOLDS, PAPER, PARTS, RANKED, VERSIONS
from experiments.figures.drawing import COLOURS, STYLE, save, save_critical_difference
from experiments.page import change, signed, table
from experiments.sources import OUTER_FOLDS, published_uci
from experiments.statistics import mean_ranks

FEWEST_TABLES = 3  # for a diagram of ranks
COMPARED_BEFORE = next(before for before, now in BEFORE.items() if now == COMPARED)
UCI = Path(__file__).resolve().parents[1] / "results" / "uci.csv"


def draw(results: pd.DataFrame, data: Path, out: Path) -> None:
    """Write a table and a diagram of ranks of all methods for each version, and the published values."""
    results = pd.concat([results, from_uci(pd.read_csv(UCI), results)])
    for version in VERSIONS:
        values = per_row_and_variable(results[results["version"] == version])
        name = version.replace(" ", "-")
        (out / f"densities-{name}.md").write_text(_table(values), "utf-8")
        if len(values.dropna()) >= FEWEST_TABLES:
            save_critical_difference(values.dropna(), out / f"densities-{name}.svg")
        (out / f"densities-before-{name}.md").write_text(_before_table(results, version), "utf-8")
    beside = beside_published(results, data)
    (out / "densities-published.md").write_text(_published_table(beside), "utf-8")
    _save_gains(beside, out / "densities-gains.svg")


def beside_before(results: pd.DataFrame, version: str) -> pd.DataFrame:
    """Return what blends with margins reach on two folds, before and now, their weights, and the default."""
    chosen = results[(results["version"] == version) & (results["fold"] < FEWEST_FOLDS)]
    before, now, default = (
        chosen[chosen["method"] == method].set_index(["data", "fold"])
        for method in (COMPARED_BEFORE, COMPARED, DEFAULT)
    )
    common = before.index.intersection(now.index)
    sizes = (now["rows"] * now["nodes"])[common].groupby(level="data").sum()
    columns = {
        name: part.reindex(common)["loglik"].groupby(level="data").sum(min_count=FEWEST_FOLDS) / sizes
        for name, part in (("before", before), ("now", now), ("default", default))
    }
    return pd.DataFrame({**columns, **now.loc[common, list(PARTS)].groupby(level="data").mean()})


def _before_table(results: pd.DataFrame, version: str) -> str:
    beside = beside_before(results, version)
    gains = {name: beside[name] - beside["before"] for name in ("now", "default")}
    rows = [
        [
            name,
            signed(found["before"], 3),
            *(
                text
                for column, of_column in gains.items()
                for text in (signed(found[column], 3), change(of_column[name], 3))
            ),
            *("–" if found[part] != found[part] else f"{100 * found[part]:.0f} %" for part in PARTS),
        ]
        for name, found in beside.iterrows()
    ]
    means = (text for of_column in gains.values() for text in ("", change(of_column.mean(), 3)))
    better = (
        text
        for of_column in gains.values()
        for text in ("", f"{int((of_column > 0).sum())} of {int(of_column.notna().sum())}")
    )
    rows.append(["*mean*", "", *means, *[""] * len(PARTS)])
    rows.append(["*better on*", "", *better, *[""] * len(PARTS)])
    return table(["table", "version 0.2", "blend", "gain", DEFAULT, "gain", *PARTS], rows)


def from_uci(uci: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """Return what the paper's models reach on the raw tables and folds that are there."""
    there = results.loc[results["version"] == "raw", ["data", "fold"]].drop_duplicates()
    parts = []
    for method, (algorithm, model, patience) in PAPER.items():
        chosen = uci[
            (uci["algorithm"] == algorithm)
            & (uci["model"] == model)
            & (uci["patience"] == patience)
            & (uci["split"] == 0)
        ]
        parts.append(chosen.merge(there).assign(version="raw", method=method))
    return pd.concat(parts)[["data", "version", "fold", "method", "loglik", "rows", "nodes"]]


def per_row_and_variable(results: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over test rows and variables: one row per table, one column per method.

    Methods are compared on the folds that all of them have run on. Those that have not run on a table at
    all have no value there, and tables on which fewer than all but two have run are left out.
    """
    logliks = results.pivot_table("loglik", index=["data", "fold"], columns="method").reindex(columns=RANKED)
    sizes = results.assign(size=results["rows"] * results["nodes"]).groupby(["data", "fold"])["size"].first()
    rows = {}
    for name, values in logliks.groupby(level="data"):
        ran = values.columns[values.notna().any()]
        common = values[ran].dropna()
        if len(ran) >= len(RANKED) - 2 and len(common):
            rows[name] = common.sum() / sizes.loc[common.index].sum()
    return pd.DataFrame.from_dict(rows, orient="index").reindex(columns=list(RANKED))


def _table(values: pd.DataFrame) -> str:
    rows = []
    for name, found in values.iterrows():
        best = found.max()
        rows.append(
            [name, *("–" if v != v else f"**{signed(v, 3)}**" if v == best else signed(v, 3) for v in found)]
        )
    whole = values.dropna()
    for title, part in (
        (f"*mean rank, {len(whole)} tables*", whole),
        ("*without vines*", values.dropna(axis=1)),
    ):
        ranks = mean_ranks(part)
        rows.append([title, *(f"{ranks[m]:.2f}" if m in ranks else "–" for m in values.columns)])
    return table(["table", *values.columns], rows)


def beside_published(results: pd.DataFrame, data: Path) -> pd.DataFrame:
    """Return the best published value of every table on which all ten folds have run, and ours."""
    best = published_uci(data).max(axis=1)
    ours = results[(results["version"] == "raw") & (results["method"] == COMPARED_BEFORE)]
    rows = {}
    for name, part in ours.groupby("data"):
        if len(part) == OUTER_FOLDS:
            size = float((part["rows"] * part["nodes"]).sum())
            rows[name] = {"published": best[name] / size, "ours": part["loglik"].sum() / size}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["published", "ours"])


def _published_table(beside: pd.DataFrame) -> str:
    rows = [
        [name, signed(published, 3), signed(ours, 3), signed(ours - published, 3)]
        for name, published, ours in beside.itertuples()
    ]
    better = int((beside["ours"] > beside["published"]).sum())
    rows.append([f"*better on {better} of {len(beside)}*", "", "", ""])
    return table(["table", "best published", COMPARED_BEFORE, "difference"], rows)


def _save_gains(beside: pd.DataFrame, path: Path) -> None:
    """Draw by how much the density of every number grows, table by table."""
    from matplotlib import pyplot as plt

    gains = (beside["ours"] - beside["published"]).sort_values()
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7, 0.8 + 0.19 * len(gains)))
        ax.barh(gains.index, gains, 0.7, color=[COLOURS[0] if gain > 0 else COLOURS[4] for gain in gains])
        ax.axvline(0.0, color="#22262b", linewidth=0.8)
        ax.set_xlabel(
            "nats for every number in the table: blends with margins minus the best published value"
        )
        ax.spines[["top", "right", "left"]].set_visible(False)
        ax.tick_params(axis="y", length=0)
        ax.margins(y=0.01)
        figure.tight_layout()
    save(figure, path)
