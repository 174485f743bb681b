"""The ten mixed tables of the authors' paper on hybrid networks, in the layout of their repository."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from experiments.sources import LEAST_VARIANCE, outer_folds, without_dependent_columns


@dataclass(frozen=True)
class Source:
    """Where a table is, and which of its columns are discrete.

    Attributes
    ----------
    path
        Its place in the folder of the data.
    is_discrete
        Tells by name whether a column is discrete; None: columns of text are.
    drop
        Columns that are not used.
    """

    path: str
    is_discrete: Callable[[str], bool] | None = None
    drop: tuple[str, ...] = ()


def _named(names: str) -> Callable[[str], bool]:
    return frozenset(names.split()).__contains__


def _all_but(*names: str) -> Callable[[str], bool]:
    return lambda name: name not in names


_GERMAN_NUMBERS = (
    "months",
    "amount",
    "installment rate",
    "present residence since",
    "age",
    "number existing credits",
    "people maintenance",
)
_THYROID_NUMBERS = ("age", "TSH", "T3", "TT4", "T4U", "FTI")

SOURCES = {
    "Abalone": Source("Abalone/abalone.data", _named("Sex")),
    "Adult": Source("Adult/adult.data", drop=("education-num",)),
    "Australian": Source("AustralianStatlog/australian.dat", _named("A1 A4 A5 A6 A8 A9 A11 A12 A15")),
    "Cover Type": Source(
        "Cover Type/covtype_truncated.csv", lambda name: name.startswith(("Wilderness_", "Soil_", "Cover_"))
    ),
    "Credit Approval": Source("Credit Approval/crx.data"),
    "German": Source("GermanStatlog/german.data", _all_but(*_GERMAN_NUMBERS)),
    "KDD": Source(
        "KDD Cup/kddcup_truncated.csv",
        _named("protocol_type service flag logged_in is_guest_login connection_type"),
    ),
    "Liver": Source("Liver disorders/bupa.data", _named("selector")),
    "Hypothyroid": Source("Thyroid/hypothyroid.data", _all_but(*_THYROID_NUMBERS), ("TBG",)),
    "Sick": Source("Thyroid/sick.data", _all_but(*_THYROID_NUMBERS), ("TBG", "class2")),
}


@cache
def hybrid_table(data: Path, name: str) -> pd.DataFrame:
    """Read the complete rows of a table.

    Discrete columns are categorical with the levels of the whole table, so that a level of a test row is
    never unknown. Columns that are constant in some training fold are left out, and columns of numbers that
    are linear combinations of others.
    """
    source = SOURCES[name]
    frame = pd.read_csv(data / source.path, na_values="?", skipinitialspace=True)
    frame = frame.drop(columns=list(source.drop)).dropna().reset_index(drop=True)
    discrete = [
        column
        for column in frame.columns
        if (source.is_discrete or _is_text(frame))(column)  # names, or what the column holds
    ]
    folds = [train for train, _ in outer_folds(len(frame))]
    kept = {}
    for column in frame.columns:
        values = frame[column]
        if column in discrete:
            if all(len(values.iloc[train].unique()) > 1 for train in folds):
                kept[column] = _categorical(values)
        elif all(values.iloc[train].var() > LEAST_VARIANCE for train in folds):
            kept[column] = values.astype(float)
    numbers = without_dependent_columns(pd.DataFrame({c: v for c, v in kept.items() if c not in discrete}))
    return pd.DataFrame({c: v for c, v in kept.items() if c in discrete or c in numbers})


def _is_text(frame: pd.DataFrame) -> Callable[[str], bool]:
    return lambda column: not pd.api.types.is_numeric_dtype(frame[column])


def _categorical(values: pd.Series) -> pd.Series:
    """Return text as categories; of plain objects, because PyBNesian knows no other text."""
    text = values.astype(str).astype(object)
    return text.astype(pd.CategoricalDtype(pd.Index(sorted(set(text)), dtype=object)))
