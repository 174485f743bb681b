import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.plots import plot_verdicts

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture
def found():
    frame = pd.DataFrame({"p_value": np.linspace(0.1, 1.0, 20), "alarm": False, "blame": "", "drift": 1e-3})
    frame = frame.assign(drift_alarm=False, drift_blame="")
    frame.loc[3, ["p_value", "alarm", "blame"]] = (1e-5, True, "pressure, $flow$")
    frame.loc[4, ["p_value", "alarm", "blame"]] = (0.0, True, "pressure")
    frame.loc[9, ["drift", "drift_alarm", "drift_blame"]] = (3.0, True, "current")
    frame.loc[0, "p_value"] = np.nan  # not judged
    return frame


def test_alarms_are_marked_and_named_once(found):
    above, below = plot_verdicts(found, alarm=0.001)
    assert [text.get_text() for text in above.texts] == ["pressure"]
    assert [text.get_text() for text in below.texts] == ["current"]
    usual, unusual, level = above.lines
    assert len(usual.get_xdata()) == 18
    assert unusual.get_xdata().tolist() == [3, 4]
    assert (np.asarray(unusual.get_ydata()) > 0).all()
    assert level.get_ydata()[0] == 0.001
    plt.close("all")


def test_it_draws_into_axes_and_keeps_times(found):
    _, axes = plt.subplots(2)
    times = found.set_axis(pd.date_range("2026-01-01", periods=20, freq="min"))
    assert plot_verdicts(times, tuple(axes)) == tuple(axes)
    assert plot_verdicts(found.set_axis(list("abcdefghijklmnopqrst")))[0].lines[1].get_xdata().tolist() == [
        3,
        4,
    ]
    plt.close("all")


def test_other_frames_are_refused():
    with pytest.raises(spbn.errors.ArgumentError, match="It lacks 'p_value'"):
        plot_verdicts(pd.DataFrame({"a": [1.0]}))
