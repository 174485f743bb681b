"""Bearings: conditions are found in order, and a fault shows where it is."""

import numpy as np
import pandas as pd
import pytest
from experiments.figures import bearings as figures

import spbn
from experiments import bearings

pytest.importorskip("hmmlearn")

NODES = ["W", "BPFO", "BPFI", "BPFI_1"]


def amplitudes(rng, rows, level):
    """Amplitudes that grow with wear; the harmonic of the inner race follows its frequency."""
    frame = pd.DataFrame(rng.gamma(8.0, level / 8.0, size=(rows, 4)), columns=NODES)
    frame["BPFI_1"] = 0.5 * frame["BPFI"] * rng.uniform(0.8, 1.2, rows)
    return frame


@pytest.fixture(scope="module")
def run_to_failure():
    rng = np.random.default_rng(0)
    lives = [amplitudes(rng, rows, level) for rows, level in [(300, 1.0), (150, 3.0), (100, 9.0)]]
    return pd.concat(lives, ignore_index=True)


@pytest.fixture(scope="module")
def segmentation(run_to_failure):
    return bearings.segment(run_to_failure)


@pytest.fixture(scope="module")
def networks(run_to_failure, segmentation):
    return bearings.train([run_to_failure], segmentation)


@pytest.mark.slow
def test_conditions_are_in_the_order_of_amplitudes(run_to_failure, segmentation):
    found = segmentation.conditions(run_to_failure)
    expected = np.repeat([0, 1, 2], [300, 150, 100])
    assert np.mean(found == expected) > 0.97


@pytest.mark.slow
def test_the_seed_does_not_decide(run_to_failure, segmentation):
    other = bearings.segment(run_to_failure, seed=1)
    assert np.mean(other.conditions(run_to_failure) == segmentation.conditions(run_to_failure)) > 0.99


def test_condition_rises(networks):
    rng = np.random.default_rng(1)
    means = [bearings.condition(networks, amplitudes(rng, 50, level)).mean() for level in (1.0, 3.0, 9.0)]
    np.testing.assert_allclose(means, [0, 1, 2], atol=0.15)


def test_a_fault_shows_in_its_frequency(networks):
    rows = amplitudes(np.random.default_rng(2), 50, 1.0)
    faulty = rows.assign(BPFI=8.0 * rows["BPFI"], BPFI_1=8.0 * rows["BPFI_1"])
    good, bad = (bearings.by_frequency(networks[0].logpdf_by_node(table)).mean() for table in (rows, faulty))
    assert set(good.index) == {"W", "BPFO", "BPFI"}
    assert good.sum() == pytest.approx(networks[0].logpdf(rows).mean())
    falls = good - bad
    assert falls["BPFI"] > 10 * max(falls["W"], falls["BPFO"])


def test_a_structure_comes_back_from_the_results():
    nodes = [f"{f}_{k}" if k else f for k in range(7) for f in bearings.FREQUENCIES]
    structure = spbn.Structure(nodes, [("W", "BPFI"), ("BPFI", "BPFI_6")], dict.fromkeys(nodes, "lg"))
    row = {"subject": "good", "ckde": np.nan, "arcs": "W>BPFI BPFI>BPFI_6"}
    assert figures.structure_of(pd.DataFrame([row]), "good") == structure
    changed = figures.structure_of(pd.DataFrame([row | {"ckde": "W BSF_2"}]), "good")
    assert [n for n in nodes if changed.type(n) == "ckde"] == ["W", "BSF_2"]


@pytest.mark.slow
@pytest.mark.shared
def test_the_paper_s_bearings_are_divided_as_in_the_paper(shared):
    data = shared / "paper-data"
    reference = bearings.read(data, "Bearing1_1")
    assert reference.shape == (2803, 35)
    found = bearings.segment(reference).conditions(reference)
    # Good for four and a half hours, then average more and more often, and bad at the end.
    assert not found[:1600].any()
    assert set(found[-50:]) == {2}
    assert found[2200:2700].mean() == pytest.approx(1.0, abs=0.1)
