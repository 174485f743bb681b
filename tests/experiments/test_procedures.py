"""Sharing work between procedures must not change what they find."""

import numpy as np
import pandas as pd
import pytest
from experiments.procedures import Procedure, Workbench, fit, with_patience

import spbn
from spbn.datasets import synthetic


@pytest.fixture(scope="module")
def bench():
    return Workbench(synthetic(150, seed=4), seed=3)


@pytest.mark.parametrize("procedure", with_patience("HC", ["GBN", "KDEBN", "SPBN-LG", "SPBN-CKDE"]))
def test_a_shared_search_finds_what_one_of_its_own_does(bench, procedure):
    model = "spbn" if procedure.semiparametric else procedure.model.lower()
    network = spbn.learn(
        bench.data,
        model=model,
        score="cv",
        start="lg" if procedure.model == "SPBN-LG" else "ckde",
        patience=procedure.patience,
        seed=3,
    )
    assert bench.structure(procedure) == network.structure


@pytest.mark.parametrize("procedure", with_patience("PC-PLC", ["SPBN-LG", "SPBN-CKDE"]))
def test_types_are_searched_on_the_graph_of_pc(bench, procedure):
    network = spbn.learn(
        bench.data,
        model="spbn",
        algorithm="pc",
        test="plc",
        start="lg" if procedure.model == "SPBN-LG" else "ckde",
        patience=procedure.patience,
        seed=3,
    )
    assert bench.structure(procedure) == network.structure


@pytest.mark.parametrize(("algorithm", "score"), [("HC-BIC", "bic"), ("HC-BGe", "bge")])
def test_gaussian_scores(bench, algorithm, score):
    network = spbn.learn(bench.data, model="gbn", score=score)
    assert bench.structure(Procedure(algorithm, "GBN")) == network.structure


def test_arcs_that_rows_do_not_bear_are_left_out(rng):
    x = rng.normal(size=50)
    data = pd.DataFrame({"x": x, "y": 2 * x, "z": x + rng.normal(size=50)})
    structure = spbn.Structure("xyz", [("x", "z"), ("y", "z")], {"x": "ckde", "y": "lg", "z": "ckde"})
    network, dropped = fit(structure, data)
    assert dropped == 1
    assert network.structure.arcs == (("x", "z"),)
    assert np.isfinite(network.loglik(data))


def test_fit_is_that_of_the_library_where_nothing_is_wrong(bench):
    structure = bench.structure(Procedure("HC", "SPBN-CKDE", 5))
    network, dropped = fit(structure, bench.data)
    assert dropped == 0
    assert network == spbn.BayesianNetwork.fit(structure, bench.data)


def test_only_conditions_of_rcot_are_limited(rng):
    a = rng.normal(size=300)
    b = a + rng.normal(size=300)
    chain = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=300)})
    free, limited = Workbench(chain), Workbench(chain, largest_condition=0)
    assert len(free.graph("PC-RCoT").arcs) == 2
    assert len(limited.graph("PC-RCoT").arcs) == 3  # a and c are independent given b only
    assert limited.graph("PC-PLC") == free.graph("PC-PLC")
