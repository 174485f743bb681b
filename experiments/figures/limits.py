"""PC with RCoT by the largest condition: arcs, log-likelihoods and time."""

from __future__ import annotations

import pandas as pd

from experiments.page import signed, table


def limits_table(results: pd.DataFrame) -> str:
    """Return one row for every data set and limit; log-likelihoods are per test row and variable."""
    rows = []
    for (name, limit), cells in results.groupby(["data", "limit"], sort=True):
        first = cells.iloc[0]
        each = cells.set_index("model")["loglik"] / (first["rows"] * first["nodes"])
        likelihoods = [signed(each[model], 3) if model in each else "" for model in ("GBN", "KDEBN")]
        rows.append([name, limit, first["arcs"], *likelihoods, f"{cells['seconds'].max() / 60:.1f}"])
    header = ["data", "maximum variables in a condition", "arcs", "GBN", "KDEBN", "minutes"]
    return table(header, rows, left=1)
