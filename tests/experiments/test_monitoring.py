"""The bearings that are watched: what counts as reported, as a false alarm and as blame."""

import numpy as np
import pandas as pd
from experiments.figures import monitoring as figures

from experiments import monitoring


def amplitudes(rng, rows, wear=1.0):
    frame = pd.DataFrame(rng.gamma(8.0, 1.0 / 8.0, (rows, 3)), columns=["W", "BPFO", "BPFI"])
    frame["BPFI_1"] = 0.5 * frame["BPFI"] * rng.uniform(0.8, 1.2, rows)
    frame["BPFO"] *= wear
    return frame


def test_a_bearing_that_wears_out_is_reported_for_what_it_is():
    rng = np.random.default_rng(0)
    rows = pd.concat([amplitudes(rng, 900), amplitudes(rng, 100, wear=8.0)], ignore_index=True)
    found = monitoring.watch(rows, "static")
    assert found["watched"].isna().sum() == 300
    watched = found.loc[300:]
    assert watched.loc[:899, "alarm"].sum() <= 5
    assert watched.loc[900:, "alarm"].mean() > 0.9
    assert monitoring.most_blamed(watched.loc[900:, "blame"]) == "BPFO"


def test_the_most_blamed_frequency_counts_all_harmonics():
    blame = pd.Series(["BPFI_1", "W", "BPFI_3, W", "", "BPFO"])
    assert monitoring.most_blamed(blame) == "BPFI"
    assert monitoring.most_blamed(pd.Series(["", ""])) == ""


def test_single_alarms_before_the_report_are_false():
    life = pd.DataFrame(
        {
            "bearing": "Bearing1_1",
            "network": "static",
            "step": range(6),
            "watched": [0, 30, 30, 30, 30, 10],
            "alarms": [0, 1, 0, 2, 20, 9],
            "drift_alarms": [0, 0, 0, 1, 2, 0],
            "blame": ["", "W", "", "W", "BPFI", "BPFI"],
        }
    )
    found = figures.summary(life)
    assert figures.reported(life) == 4
    assert (found["false"], found["watched"]) == (3, 90)
    assert found["reported"] == 4 * figures.HOURS_A_STEP
    assert found["drift"] == 3 * figures.HOURS_A_STEP
    assert found["blame"] == "BPFI (100%)"
    healthy = figures.summary(life.assign(alarms=0, drift_alarms=0))
    assert np.isnan(healthy["reported"])
    assert "| Bearing1_1 | static | 0.5 h | 0.2 h | 0.3 h | 3 of 90 | BPFI (100%) |" in figures.alarm_table(
        life
    )
    assert "never" in figures.alarm_table(life.assign(alarms=0))
