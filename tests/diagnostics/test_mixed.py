"""Explanations of networks with discrete nodes."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from mixed import MODELS, STRUCTURE, mixed_frame, mixed_network
from spbn.diagnostics import early_stop, leave_one_out, out_of_fold, unusual_rows
from spbn.diagnostics.model import check_fit, measure_importance
from spbn.diagnostics.rows import gather_rows
from spbn.tables.reader import as_table
from spbn.tables.splits import fold_labels

FRAME = mixed_frame()


@pytest.mark.parametrize("margins", ["none", "yeo-johnson"])
@pytest.mark.parametrize("kind", MODELS)
def test_training_rows_are_scored_by_networks_that_have_not_seen_them(kind, margins):
    network = mixed_network(kind, margins)
    rows = [0, 7, 31]
    if margins == "none" and kind != "blend":  # margins, and weights of blends, come from all rows
        for row, found in zip(rows, leave_one_out(network, FRAME, rows), strict=True):
            others = spbn.BayesianNetwork.fit(network.structure, FRAME.drop(index=row))
            np.testing.assert_allclose(found, others.logpdf_by_node(FRAME.iloc[[row]]).iloc[0], rtol=1e-7)
    assert np.isfinite(out_of_fold(network, FRAME)).all()


def test_folds_are_scored_by_what_was_fitted_without_them():
    table = as_table(FRAME, variables=mixed_network().variables)
    labels = fold_labels(len(FRAME), 10, 0, discrete=table.level_codes)
    found = out_of_fold(mixed_network(), FRAME)
    for fold in (0, 9):
        others = spbn.BayesianNetwork.fit(STRUCTURE, FRAME[labels != fold])
        np.testing.assert_allclose(
            found[labels == fold], others.logpdf_by_node(FRAME[labels == fold]), rtol=1e-7
        )


def test_smoothing_is_that_of_the_network():
    network = spbn.BayesianNetwork.fit(STRUCTURE, FRAME, smoothing=40.0)
    others = spbn.BayesianNetwork.fit(STRUCTURE, FRAME.drop(index=3), smoothing=40.0)
    found = leave_one_out(network, FRAME, [3])[0]
    np.testing.assert_allclose(found, others.logpdf_by_node(FRAME.iloc[[3]]).iloc[0], rtol=1e-7)
    wide, narrow = (
        measure_importance(made, gather_rows(made, FRAME)).scores for made in (network, mixed_network())
    )
    assert wide["size"] != narrow["size"]
    assert wide["z"] == narrow["z"]


def test_a_rare_level_is_a_reason():
    odd = FRAME.drop(columns="size").assign(size=np.where(FRAME.index == 5, "huge", FRAME["size"]))
    network = spbn.BayesianNetwork.fit(STRUCTURE, odd)
    typical = FRAME.iloc[[0]].assign(x=2.0, y=2.0, z=4.0, town="Leith", size="huge")
    (row,) = unusual_rows(network, typical, top=1).rows
    assert (row.reasons[0].node, row.reasons[0].value) == ("size", "huge")


def test_right_probabilities_pass_the_check_and_wrong_ones_do_not():
    network = mixed_network()
    right = check_fit(network, gather_rows(network, network.sample(2_000, seed=1)))
    assert set(right) == set(network.nodes)
    assert all(found.verdict == "good" for found in right.values())
    swapped = network.sample(2_000, seed=1)
    swapped["size"] = swapped["size"].map({"small": "large", "large": "small"})
    assert check_fit(network, gather_rows(network, swapped))["size"].verdict == "poor"


@pytest.mark.parametrize("seed", range(3))
def test_the_check_does_not_share_its_random_numbers_with_simulated_data(seed):
    """A level drawn with the first numbers of a small seed, as many people draw them."""
    data = pd.DataFrame({"a": np.where(np.random.default_rng(seed).random(2_000) < 0.6, "yes", "no")})
    network = spbn.BayesianNetwork.fit(spbn.Structure(["a"], types="discrete"), data)
    assert check_fit(network, gather_rows(network, data))["a"].verdict == "good"


def test_points_on_steps_are_uniform():
    network = mixed_network()
    sample = network.sample(4_000, seed=2)
    points = network.cpds["size"].randomised_cdf(sample, np.random.default_rng(3).random(4_000))
    assert stats.kstest(points, "uniform").pvalue > 0.01


@pytest.mark.parametrize("kind", MODELS)
def test_the_importance_of_every_arc_is_measured(kind):
    network = mixed_network(kind)
    found = measure_importance(network, gather_rows(network, FRAME))
    assert set(found.arcs) == set(STRUCTURE.arcs)
    assert set(found.types) == {"x", "y", "z"}  # nothing else than discrete can be discrete
    assert found.arcs["size", "y"].total > found.arcs["size", "y"].error


def test_early_stops_of_mixed_tables():
    network = spbn.learn(FRAME, patience=2)
    table = network.transformed(as_table(FRAME, variables=network.variables))
    early_stop(network.search, table, settings=network.record.settings)
    rng = np.random.default_rng(1)
    noise = FRAME.assign(x=rng.normal(size=160), y=rng.normal(size=160), z=rng.normal(size=160))
    noise = noise.assign(town=rng.permutation(FRAME["town"]), size=rng.permutation(FRAME["size"]))
    network = spbn.learn(noise, model="gbn")
    found = early_stop(network.search, as_table(noise, variables=network.variables))
    assert bool(network.structure.arcs) or "no arcs" in found.what
