import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.cli.inputs import resample
from spbn.tables.lags import runs_of


def test_resampled_lines_are_lines():
    rng = np.random.default_rng(0)
    t = np.cumsum(rng.uniform(0.6, 1.4, 50))
    frame = pd.DataFrame({"m": "a", "t": t, "x": 3 * t - 1, "mode": np.where(t < 20, "on", "off")})
    found = resample(frame, time="t", every=0.5, series="m")
    np.testing.assert_allclose(np.diff(found["t"]), 0.5)
    np.testing.assert_allclose(found["x"], 3 * found["t"] - 1)
    assert found["t"].iloc[0] == t[0]
    before = [frame["mode"][frame["t"] <= at + 1e-9].iloc[-1] for at in found["t"]]
    assert found["mode"].tolist() == before
    runs_of(found, series="m", time="t")


def test_nothing_is_made_up_in_gaps():
    frame = pd.DataFrame({"t": [0.0, 1.0, 2.0, 10.0, 11.2, 12.0], "x": [0.0, 1, 2, 10, 11.2, 12]})
    found = resample(frame, time="t", every=1.0)
    assert found["t"].tolist() == [0, 1, 2, 10, 11, 12]
    np.testing.assert_allclose(found["x"], found["t"])


def test_resampled_dates():
    dates = pd.to_datetime(["2024-01-01 00:00:00", "2024-01-01 00:00:11", "2024-01-01 00:00:20"])
    found = resample(pd.DataFrame({"t": dates, "x": [0.0, 11.0, 20.0]}), time="t", every=10)
    assert found["t"].tolist() == list(
        pd.to_datetime(["2024-01-01 00:00:00", "2024-01-01 00:00:10", "2024-01-01 00:00:20"])
    )
    np.testing.assert_allclose(found["x"], [0, 10, 20])


@pytest.mark.parametrize("every", [0, -1.0, np.inf, "1h", True])
def test_steps_that_make_no_sense(every):
    with pytest.raises(spbn.errors.ArgumentError, match="every must be a step of time"):
        resample(pd.DataFrame({"t": [0.0, 1.0], "x": [0.0, 1.0]}), time="t", every=every)


def test_resampling_unsorted_times():
    with pytest.raises(spbn.errors.DataError, match="do not ascend"):
        resample(pd.DataFrame({"t": [1.0, 0.0], "x": [0.0, 1.0]}), time="t", every=1)
    with pytest.raises(spbn.errors.DataError, match="lacks the column 'time'"):
        resample(pd.DataFrame({"t": [1.0, 0.0], "x": [0.0, 1.0]}), time="time", every=1)
