"""The data is read as the authors read it."""

import numpy as np
import pandas as pd
import pytest
from experiments.procedures import Procedure

from experiments import gaussian, sources, synthetic, uci


def test_dependent_columns_are_left_out_first_one_first(rng):
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("abcd"))
    frame.insert(1, "b + c", frame["b"] + frame["c"])
    left = sources.without_dependent_columns(frame)
    assert list(left.columns) == ["a", "b", "c", "d"]
    assert list(sources.without_dependent_columns(left).columns) == ["a", "b", "c", "d"]


def test_columns_that_are_constant_in_a_training_fold_are_left_out(rng):
    frame = pd.DataFrame({"x": rng.normal(size=100), "tiny": 1e-6 * rng.normal(size=100), "once": 0.0})
    frame.loc[17, "once"] = 1.0
    assert list(sources.without_constant_columns(frame).columns) == ["x"]


@pytest.mark.parametrize(
    ("column", "procedure"),
    [
        ("BGe", Procedure("HC-BGe", "GBN")),
        ("GBN_Validation_10_5", Procedure("HC", "GBN", 5)),
        ("KDEBN_PC_RCOT", Procedure("PC-RCoT", "KDEBN")),
        ("SPBN_PC_LC_10_0", Procedure("PC-PLC", "SPBN-LG", 0)),
        ("SPBN_CKDE_Validation_10_5", Procedure("HC", "SPBN-CKDE", 5)),
    ],
)
def test_names_of_published_columns(column, procedure):
    assert sources.procedure_of(column) == procedure


@pytest.mark.shared
def test_every_procedure_has_a_published_value(shared):
    published = sources.published_uci(shared / "paper-data")
    assert published.shape == (28, 22)
    assert set(published.columns) == set(uci.PROCEDURES)
    assert list(published.index.sort_values()) == sources.uci_names(shared / "paper-data")


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "shape", "dropped"),
    [
        ("Ecoli", (336, 6), {"chg"}),
        ("Parkinsons", (195, 21), {"MDVP:Jitter(Abs)"}),
        ("Liver", (345, 6), set()),
    ],
)
def test_columns_of_uci_tables(shared, name, shape, dropped):
    frame = sources.uci_table(shared / "paper-data", name)
    assert frame.shape == shape
    assert not dropped & set(frame.columns)
    assert np.linalg.matrix_rank(frame) == frame.shape[1]


@pytest.mark.slow
@pytest.mark.shared
def test_true_gaussian_networks_score_as_published(shared):
    pytest.importorskip("pgmpy")
    paper = sources.published("table3").query("algorithm == 'True model'").set_index("network")["loglik"]
    for name in gaussian.NETWORKS:
        found = sources.gaussian_network(name).loglik(sources.gaussian_test(shared / "paper-data", name))
        assert found == pytest.approx(paper[name], rel=2e-5)  # pgmpy's coefficients have four decimals


@pytest.mark.shared
@pytest.mark.parametrize("experiment", [synthetic, gaussian, uci])
def test_quick_cells_are_few_and_distinct(shared, experiment, monkeypatch):
    monkeypatch.setattr(uci, "uci_names", lambda data: ["Balance", "Iris", "Liver"])
    quick, full = (experiment.cells(shared / "paper-data", quick) for quick in (True, False))
    assert len(quick) < 120
    assert len(set(full)) == len(full) > len(quick)
    batches = [experiment.batch(cell) for cell in full]
    together = [batch for k, batch in enumerate(batches) if k == 0 or batch != batches[k - 1]]
    assert len(together) == len(set(together)), "cells that share their work stand apart"
