"""Dynamic networks as plain data, for model files: everything but their two networks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from spbn.errors import ModelFileError, SpbnError
from spbn.network import BayesianNetwork
from spbn.timeseries.network import DynamicNetwork

MOST_LAGS = 1 << 12


def to_plain(network: DynamicNetwork) -> dict[str, Any]:
    """Describe a dynamic network."""
    return {"lags": network.lags, "series": network.series, "time": network.time, "step": network.step}


def from_plain(
    record: Mapping[str, Any], static: BayesianNetwork, transition: BayesianNetwork
) -> DynamicNetwork:
    """Read what `to_plain` wrote; anything else is a `ModelFileError`."""
    lags, step = record.get("lags"), record.get("step")
    if isinstance(lags, bool) or not isinstance(lags, int) or not 1 <= lags <= MOST_LAGS:
        raise ModelFileError(f"its number of lags makes no sense. Got {lags!r:.100}.")
    for key in ("series", "time"):
        if not (record.get(key) is None or isinstance(record[key], str)):
            raise ModelFileError(f"{key!r} must be the name of a column. Got {record[key]!r:.100}.")
    if step is not None and (
        isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < math.inf
    ):
        raise ModelFileError(f"its step of time must be a number greater than 0. Got {step!r:.100}.")
    try:
        return DynamicNetwork(
            static,
            transition,
            lags,
            series=record.get("series"),
            time=record.get("time"),
            step=None if step is None else float(step),
        )
    except SpbnError as error:
        raise ModelFileError(f"its dynamic network makes no sense: {error}") from error
