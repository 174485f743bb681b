"""The data of the paper, read from the layout of the authors' repository."""

from __future__ import annotations

import math
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold

import spbn
from experiments.procedures import Procedure
from spbn.nodes import ProbabilityTable
from spbn.pgmpy import from_pgmpy
from spbn.rows.families import Configurations
from spbn.tables.table import Variable

#: The authors treat a column as constant if its variance is below this in some training rows.
LEAST_VARIANCE = 1e-8
OUTER_FOLDS = 10
SAMPLE_SEED = 0


def uci_names(data: Path) -> list[str]:
    """Return the names of the UCI data sets."""
    return sorted(folder.name for folder in (data / "UCI data" / "data").iterdir() if folder.is_dir())


@cache
def uci_table(data: Path, name: str) -> pd.DataFrame:
    """Read a data set, and leave out columns to which no density can be fitted.

    These are the class, columns that are constant in some training fold, and columns that are
    linear combinations of others.
    """
    frame = _uci_file(data, name).drop(columns="class", errors="ignore").astype(float)
    return without_dependent_columns(without_constant_columns(frame))


def uci_classes(data: Path, name: str) -> pd.Series | None:
    """Return the class of every row of a data set; None if it has none."""
    return _uci_file(data, name).get("class")


@cache
def _uci_file(data: Path, name: str) -> pd.DataFrame:
    paths = [path for path in sorted((data / "UCI data" / "data" / name).glob("*.csv")) if _is_whole(path)]
    return pd.read_csv(paths[0])


def outer_folds(rows: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return training and test rows of the outer folds, the same as in the paper."""
    return list(KFold(OUTER_FOLDS, shuffle=True, random_state=0).split(np.empty(rows)))


def without_constant_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out columns that hardly vary in the training rows of some outer fold."""
    least = pd.concat([frame.iloc[train].var() for train, _ in outer_folds(len(frame))], axis=1).min(axis=1)
    return frame.loc[:, least > LEAST_VARIANCE]


def without_dependent_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out, as long as there is one, the first column that is a linear combination of others."""
    rank = np.linalg.matrix_rank(frame)
    while rank < len(frame.columns):
        dependent = next(
            name for name in frame.columns if np.linalg.matrix_rank(frame.drop(columns=name)) == rank
        )
        frame = frame.drop(columns=dependent)
    return frame


def published_uci(data: Path) -> pd.DataFrame:
    """Return the published log-likelihoods: one row per data set, one column per `Procedure`."""
    files = sorted((data / "UCI data").glob("results_*.csv"))
    frame = pd.concat([pd.read_csv(file, index_col="Dataset") for file in files], axis=1)
    return frame.set_axis(pd.Index([procedure_of(name) for name in frame.columns]), axis=1)


def procedure_of(column: str) -> Procedure:
    """Return what a column of the authors' files holds: GBN_PC_LC, SPBN_CKDE_Validation_10_5, BIC, ..."""
    if column in ("BIC", "BGe"):
        return Procedure(f"HC-{column}", "GBN")
    parts = re.fullmatch(r"(GBN|KDEBN|SPBN|SPBN_CKDE)_(Validation|PC_LC|PC_RCOT)(?:_10_(\d))?", column)
    if parts is None:
        raise ValueError(f"{column!r} is not a column of the authors' results.")
    model, algorithm, patience = parts.groups()
    return Procedure(
        {"Validation": "HC", "PC_LC": "PC-PLC", "PC_RCOT": "PC-RCoT"}[algorithm],
        {"SPBN": "SPBN-LG", "SPBN_CKDE": "SPBN-CKDE"}.get(model, model),
        int(patience or 0),
    )


@cache
def gaussian_network(name: str) -> spbn.BayesianNetwork:
    """Return one of the Gaussian networks of the bnlearn repository, which come with pgmpy."""
    from pgmpy.utils import get_example_model

    with warnings.catch_warnings():  # what pgmpy warns about is not for us to fix
        warnings.simplefilter("ignore")
        return from_pgmpy(get_example_model(name.lower()))


@cache
def discrete_network(name: str) -> tuple[spbn.BayesianNetwork, Any]:
    """Return one of the discrete networks of the bnlearn repository, and the model of pgmpy that it is."""
    from pgmpy.utils import get_example_model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = get_example_model(name)
    cpds = {}
    for table in model.cpds:
        table.normalize()  # the files have seven digits
        node, *parents = table.variables
        levels = {v: tuple(map(str, table.state_names[v])) for v in table.variables}
        given = tuple(Variable(parent, levels[parent]) for parent in parents)
        numbers = np.arange(math.prod(len(levels[parent]) for parent in parents))
        cpds[node] = ProbabilityTable(
            node,
            tuple(parents),
            levels[node],
            Configurations(given, numbers),
            table.get_values().T,
            np.full(len(levels[node]), 1.0 / len(levels[node])),
        )
    structure = spbn.Structure(list(cpds), list(model.edges()), "discrete")
    return spbn.BayesianNetwork(structure, cpds), model


def gaussian_train(data: Path, network: str, rows: int) -> pd.DataFrame:
    """Return the authors' training rows, or our own if they have published none."""
    path = data / "GaussianNetworks" / f"{_stem(network)}_{rows}.csv"
    return pd.read_csv(path) if path.exists() else gaussian_network(network).sample(rows, seed=SAMPLE_SEED)


def gaussian_test(data: Path, network: str) -> pd.DataFrame:
    """Return the authors' test rows."""
    return pd.read_csv(data / "GaussianNetworks" / f"{_stem(network)}_test.csv")


def published(table: str) -> pd.DataFrame:
    """Return a table of the paper: "table1" or "table3"."""
    return pd.read_csv(Path(__file__).parent / "published" / f"{table}.csv")


def _stem(network: str) -> str:
    return network.lower().replace("-", "_")


def _is_whole(path: Path) -> bool:
    """Whether a file is a whole table, and not one that the authors split or set aside."""
    return not path.stem.endswith(("_full", "_tra", "_tes"))
