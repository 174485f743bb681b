"""The reference files: numbers that an independent implementation computed on fixed rows and folds."""

import json

import pandas as pd

TABLES = ["synthetic_200", "synthetic_2000", "iris"]


def load(shared, name):
    """Return the table and the reference numbers."""
    numbers = json.loads((shared / "reference" / f"{name}.json").read_text())
    if name == "iris":
        (path,) = (shared / "paper-data" / "UCI data" / "data" / "Iris").glob("*.csv")
    else:
        path = shared / "paper-data" / "synthetic" / f"{name}.csv"
    return pd.read_csv(path)[numbers["columns"]], numbers
