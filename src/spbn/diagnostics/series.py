"""Unusual rows of series: given the rows before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from spbn.diagnostics.evidence import gather
from spbn.diagnostics.unusual import (
    SHOWN_ROWS,
    UnusualRow,
    UnusualRows,
    find,
    reasons,
    require_top,
    typical,
    value_of,
)
from spbn.tables.frames import frame_index
from spbn.tables.lags import lag_name
from spbn.timeseries.network import DynamicNetwork


def unusual_in_time(network: DynamicNetwork, data: Any, *, top: int = SHOWN_ROWS) -> UnusualRows:
    """Score rows given those before them in their series, and say which are the least likely and why.

    Rows that the network was fitted to are left out of the fit when they are scored, as by `unusual_rows`;
    but for the first ones of a series, which the static network scores as it is.
    """
    require_top(top)
    table, runs = network.read(data)
    contributions = np.clip(network.contributions(data), -1e300, 1e300)
    found = find(network.transition, gather(network.transition, network.lagged(data)), top=0)
    windows = runs.windows(network.lags + 1)
    contributions[:, windows[:, 0]] = found.contributions
    place_in_run = np.empty(table.rows, dtype=np.int64)
    for start, end in zip(runs.starts, runs.ends, strict=True):
        place_in_run[runs.order[start:end]] = np.arange(end - start)
    first = typical(network.static)
    index = frame_index(data)
    total = contributions.sum(axis=0)
    rows = []
    for i in np.argsort(total, kind="stable")[:top].tolist():
        usual = dict(found.typical)
        if (place := int(place_in_run[i])) < network.lags:
            usual = {node: first[lag_name(node, network.lags - 1 - place)] for node in network.nodes}
        by_node = dict(zip(network.nodes, contributions[:, i].tolist(), strict=True))
        values = {v.name: value_of(v, x) for v, x in zip(table.variables, table.columns[:, i], strict=True)}
        label = str(i if index is None else index[i])
        rows.append(UnusualRow(i, label, float(total[i]), reasons(values, by_node, usual)))
    return UnusualRows(tuple(rows), network.nodes, contributions, found.typical, found.scoring)
