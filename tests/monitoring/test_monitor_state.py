"""The state of a monitor: a file from which it goes on as if nothing had happened."""

import json

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.monitoring import monitor as monitor_module
from spbn.monitoring.drift import BINS, bets
from spbn.monitoring.monitor import Monitor


@pytest.fixture(scope="module")
def rows():
    return spbn.datasets.synthetic(200, seed=0)


@pytest.fixture(scope="module")
def network(rows):
    return spbn.BayesianNetwork.fit(spbn.datasets.synthetic_structure(), rows)


@pytest.fixture
def saved(network, rows, tmp_path):
    monitor = Monitor(network, rows, alarm=0.01, drift=1e-3)
    monitor.update(spbn.datasets.synthetic(50, seed=1))
    monitor.save(tmp_path / "state.json")
    return tmp_path / "state.json"


@pytest.mark.slow
def test_it_goes_on_as_if_nothing_had_happened(network, rows, tmp_path):
    new = spbn.datasets.synthetic(120, seed=2)
    new.loc[60:, "D"] += 1.0
    whole, part = (Monitor(network, rows, alarm=0.01, drift=1e-4, seed=3) for _ in range(2))
    expected = whole.update(new)
    assert expected["drift_alarm"].sum() > 1
    frames = []
    for start in range(0, 120, 24):  # also in the middle of a drift
        frames.append(part.update(new[start : start + 24]))
        part.save(tmp_path / "state.json")
        part = Monitor.load(tmp_path / "state.json", network)
    pd.testing.assert_frame_equal(pd.concat(frames), pd.DataFrame(expected))
    assert repr(part) == repr(whole)
    whole.save(tmp_path / "whole.json")
    assert (tmp_path / "whole.json").read_text() == (tmp_path / "state.json").read_text()
    row = dict(new.iloc[3]) | {"E": 40.0}
    assert part.explain(row) == whole.explain(row)


def test_levels_can_be_changed(network, saved):
    monitor = Monitor.load(saved, network, alarm=0.5, drift=1e-7)
    assert (monitor.alarm, monitor.drift, monitor.rows) == (0.5, 1e-7, 50)
    kept = Monitor.load(saved, network)
    assert (kept.alarm, kept.drift) == (0.01, 1e-3)
    new = spbn.datasets.synthetic(30, seed=4)
    a, b = monitor.update(new), kept.update(new)
    np.testing.assert_array_equal(a["alarm"], a["p_value"] <= 0.5)
    np.testing.assert_allclose(a["drift"] * 1e7, b["drift"] * 1e3)
    with pytest.raises(spbn.errors.ArgumentError, match="alarm must be between 0 and 1"):
        Monitor.load(saved, network, alarm=2.0)


def test_it_belongs_to_its_network(saved, rows, network):
    refitted = spbn.BayesianNetwork.fit(network.structure, rows[:150])
    with pytest.raises(spbn.errors.ModelFileError, match="its densities are different"):
        Monitor.load(saved, refitted)
    with pytest.raises(spbn.errors.ModelFileError, match="its variables are different"):
        Monitor.load(saved, spbn.BayesianNetwork.fit(spbn.Structure("AB"), rows))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "spbn"}, "is not the state of a monitor"),
        ({"version": 2}, "version 2 of the format"),
        ({"alarm": 0}, "alarm must be between 0 and 1"),
        ({"rows": -1}, "a count must be 0 or more"),
        ({"alarms": True}, "a count must be 0 or more"),
        ({"rows": 2**63}, "a count must be 0 or more, and at most 9007199254740992"),
        ({"alarms": 10**30}, "a count must be 0 or more, and at most 9007199254740992"),
        ({"recent": [[1.0], [2.0]]}, "must have an array of shape"),
        ({"generator": {"bit_generator": "MT19937", "state": {}}}, "generator of random numbers"),
        ({"probe": []}, "must have an array of shape"),
        ({"test": {}}, "is damaged: it has no 'counts'. Give the reference rows again"),
        ({"reference": None}, "is damaged"),
    ],
)
def test_damaged_files_are_refused(saved, network, change, message):
    saved.write_text(json.dumps(json.loads(saved.read_text()) | change))
    with pytest.raises(spbn.errors.ModelFileError, match=message):
        Monitor.load(saved, network)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("reference", "scores"), [1.0, 2.0], "at least 50 reference rows"),
        (("reference", "places"), [[1.0]], "must have an array of shape"),
        (("reference", "medians"), [1.0, 2.0, 3.0, 4.0, None], "must have an array of shape"),
        (("test", "stakes"), "x", "is damaged"),
        (("test", "starts"), [[1e300] * len(bets())] * 5, "a count that no rows can have"),
        (("test", "counts"), [[1e300] * BINS] * 5, "a count that no rows can have"),
        (("reference", "places"), [[2**63] * BINS] * 5, "a count that no rows can have"),
    ],
)
def test_damaged_arrays_are_refused(saved, network, path, value, message):
    document = json.loads(saved.read_text())
    document[path[0]][path[1]] = value
    saved.write_text(json.dumps(document))
    with pytest.raises(spbn.errors.ModelFileError, match=message):
        Monitor.load(saved, network)


def test_other_files_are_refused(saved, network, monkeypatch):
    text = saved.read_text()
    for content in ("a,b\n1,2\n", text[:-10], "[1]", text.replace('"alarms": ', '"alarms": NaN, "x": ')):
        saved.write_text(content)
        with pytest.raises(spbn.errors.ModelFileError):
            Monitor.load(saved, network)
    saved.write_text(text)
    monkeypatch.setattr(monitor_module, "MAX_BYTES", 1_000)
    with pytest.raises(spbn.errors.ModelFileError, match="has more than"):
        Monitor.load(saved, network)
    with pytest.raises(FileNotFoundError):
        Monitor.load(saved.with_name("none.json"), network)
