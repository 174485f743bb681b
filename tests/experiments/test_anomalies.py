"""Anomalies: the protocol, the scores of all methods, and what is written about them."""

import numpy as np
import pandas as pd
import pytest
from experiments.__main__ import main
from experiments.anomaly_peers import PEERS
from experiments.figures.anomalies import draw, percentages
from scipy import stats
from scipy.spatial import distance

import spbn
from experiments import anomalies


@pytest.fixture
def folder(tmp_path, rng):
    """Two tables whose anomalies are far out, with a constant column and one that is almost constant."""
    for k, name in enumerate(["1_first", "2_second"]):
        values = rng.normal(size=(90, 4))
        values[80:, 0] += 6.0
        values[:, 2] = np.where(np.arange(90) == 85, 1.0, 7.0)  # an anomaly differs
        values[:, 3] = 10 * values[:, 3] + k
        np.savez(tmp_path / f"{name}.npz", X=values.astype(np.float32), y=np.arange(90) >= 80)
    return tmp_path


def test_halves_are_of_normal_rows_and_standardised(folder):
    values, anomalous = anomalies.read(folder, "1_first")
    first, again, other = (anomalies.halve(values, anomalous, seed=seed) for seed in (0, 0, 1))
    assert (len(first.train), len(first.test), first.anomalous.sum()) == (40, 50, 10)
    assert list(first.train.columns) == ["column 1", "column 2", "column 4"]
    np.testing.assert_array_equal(first.original, values[first.rows][:, [0, 1, 3]])
    assert set(np.flatnonzero(anomalous)) <= set(first.rows)
    unseen = sorted(set(range(80)) - set(first.rows))
    kept = values[unseen][:, [0, 1, 3]]
    np.testing.assert_allclose(np.sort(first.train, axis=0), np.sort(stats.zscore(kept), axis=0), atol=1e-12)
    np.testing.assert_allclose(first.test, stats.zmap(first.original, kept), atol=1e-12)
    pd.testing.assert_frame_equal(first.train, again.train)
    assert not first.train.equals(other.train)


def test_a_column_that_one_row_alone_differs_in_is_left_out(rng):
    values = np.column_stack([rng.normal(size=40), np.zeros(40), np.zeros(40)])
    train = anomalies.halve(values, np.arange(40) >= 40, seed=0).train
    rows = np.random.default_rng(0).permutation(40)[:20]
    values[rows[0], 1] = values[rows[:2], 2] = 1.0
    assert list(train.columns) == ["column 1"]
    again = anomalies.halve(values, np.arange(40) >= 40, seed=0).train
    assert list(again.columns) == ["column 1", "column 3"]


def test_rows_to_learn_from_are_limited(monkeypatch, folder):
    monkeypatch.setattr(anomalies, "MOST_ROWS", 25)
    halves = anomalies.halve(*anomalies.read(folder, "1_first"), seed=0)
    assert (len(halves.train), len(halves.test)) == (25, 50)


def test_neighbours_are_five(rng):
    train, test = rng.normal(size=(30, 3)), rng.normal(size=(9, 3))
    found = PEERS["k-nearest neighbours"](train, test, 0)
    np.testing.assert_allclose(found, np.sort(distance.cdist(test, train), axis=1)[:, 4])


@pytest.mark.slow
@pytest.mark.parametrize("method", anomalies.METHODS)
def test_every_method_finds_what_is_far_out(folder, method):
    measured = anomalies.run(anomalies.Cell("1_first", 0, method), folder)
    assert measured["auc"] > 0.8
    assert (measured["train"], measured["test"], measured["columns"]) == (40, 50, 3)
    if method in anomalies.MODELS:
        assert measured["auc_of_drops"] > 0.9
        assert measured["is_anomaly"] == 1
        assert measured["row"] >= 80
        assert measured["reasons"].startswith("column ")


def test_areas_are_those_of_the_log_density_and_of_the_drops(folder):
    halves = anomalies.halve(*anomalies.read(folder, "2_second"), seed=3)
    network = spbn.learn(halves.train, model="blend", margins="yeo-johnson")
    contributions = network.logpdf_by_node(halves.test).to_numpy()
    typical = np.array([network.record.typical[node] for node in network.nodes])
    drops = [sum(max(0.0, t - c) for t, c in zip(typical, row, strict=True)) for row in contributions]

    def area(scores):
        """The share of pairs of an anomaly and a normal row in which the anomaly is the more unusual."""
        scores = np.asarray(scores)
        pairs = scores[halves.anomalous][:, None] - scores[~halves.anomalous]
        return (pairs > 0).mean() + (pairs == 0).mean() / 2

    measured = anomalies.run(anomalies.Cell("2_second", 3, "blend, margins"), folder)
    assert measured["auc"] == pytest.approx(area(-network.logpdf(halves.test)))
    assert measured["auc_of_drops"] == pytest.approx(area(drops))


def test_tied_columns():
    frame = pd.DataFrame({"a": np.arange(20.0), "b": [0.0] * 2 + list(range(1, 19)), "c": [1.0] * 20})
    assert anomalies.tied_columns(frame) == 2


def test_tables_and_ranks(tmp_path):
    pytest.importorskip("matplotlib")
    columns = ["data", "half", "method", "auc", "auc_of_drops", "row", "is_anomaly", "reasons"]
    rows = []
    for k, name in enumerate(["3_wine", "1_Pima", "2_glass"]):
        for half in (0, 1):
            for m, method in enumerate(anomalies.METHODS):
                ours = (0.75, 7.0, half, "column 1 = 3") if method in anomalies.MODELS else (None,) * 4
                rows.append((name, half, method, 0.9 - 0.1 * m - 0.02 * half + 0.01 * k, *ours))
    results = pd.DataFrame(rows, columns=columns).assign(train=50, columns=9, tied_columns=4)
    areas = percentages(results)
    assert list(areas.index) == ["glass", "Pima", "wine"]
    assert areas.loc["wine", "GBN"] == pytest.approx(89.0)
    draw(results, tmp_path)
    assert "| wine | 50 | 9 | 4 | **89.0** | 79.0 |" in (tmp_path / "anomalies-areas.md").read_text()
    assert "| *mean rank* |  |  |  | 1.00 | 2.00 |" in (tmp_path / "anomalies-areas.md").read_text()
    assert "| SPBN | 80.0 | 75.0 | 3 of 6 |" in (tmp_path / "anomalies-drops.md").read_text()
    assert "| Pima | 7 | no | column 1 = 3 |" in (tmp_path / "anomalies-reasons.md").read_text()
    assert (tmp_path / "anomalies-ranks.svg").exists()


@pytest.mark.slow
def test_the_command_takes_tables_of_adbench(folder, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert main(["anomalies", "--data", str(empty)]) == 2
    assert "has no .npz files: for anomalies" in capsys.readouterr().err
    monkeypatch.setattr("experiments.__main__.RESULTS", tmp_path)
    monkeypatch.setattr(anomalies, "QUICK", ("1_first", "2_second"))
    assert main(["anomalies", "--data", str(folder), "--quick"]) == 0
    assert len(pd.read_csv(tmp_path / "quick" / "anomalies.csv")) == 2 * len(anomalies.METHODS)
