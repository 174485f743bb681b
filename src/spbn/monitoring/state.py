"""The state of a monitor as a file, so that it can go on after its process has ended.

A state is one JSON object (see docs/file-format.md). It holds what is known of the reference rows and of the
rows since, but not the network: that has a file of its own, and is recognised by what it says about three
rows. Numbers are written with all their digits, so that a monitor that is loaded goes on exactly as it was.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from spbn._base.arrays import FloatArray
from spbn._base.files import replacing
from spbn.errors import ModelFileError, SpbnError
from spbn.monitoring.drift import BINS, bets
from spbn.monitoring.reference import CANDIDATES, FEWEST_ROWS, Reference, Tail
from spbn.monitoring.row_scores import contributions_of
from spbn.network import BayesianNetwork
from spbn.tables.reader import table_of_columns
from spbn.timeseries.lag_buffer import networks_of, with_nulls
from spbn.timeseries.network import DynamicNetwork

if TYPE_CHECKING:
    from spbn.monitoring.monitor import Monitor

FORMAT, VERSION = "spbn-monitor", 1
LARGEST = 256 * 2**20
PROBED = (CANDIDATES // 4, CANDIDATES // 2, 3 * CANDIDATES // 4)  # quantiles that a network is recognised by
SAME = 1e-6  # how far its log-densities may be off, on another machine


def save(monitor: Monitor, path: str | os.PathLike[str]) -> None:
    """Write the state of a monitor; the file is written completely or not at all."""
    reference, test = monitor._reference, monitor._test
    document = {
        "format": FORMAT,
        "version": VERSION,
        "nodes": list(monitor.network.nodes),
        "past": None if monitor._past is None else monitor._past.to_plain(),
        "alarm": monitor.alarm,
        "drift": monitor.drift,
        "rows": monitor.rows,
        "alarms": monitor.alarms,
        "drift_alarms": monitor.drift_alarms,
        "reference": {
            "scores": reference.tail.ordered.tolist(),
            "medians": reference.medians.tolist(),
            "means": reference.means.tolist(),
            "places": reference.places.astype(np.int64).tolist(),
            "candidates": with_nulls(reference.candidates),
            "by_node": None if reference.by_node is None else reference.by_node.tolist(),
        },
        "test": {
            "counts": test.counts.astype(np.int64).tolist(),
            "stakes": test.stakes.tolist(),
            "sums": test.sums.tolist(),
            "starts": test.starts.tolist(),
        },
        "recent": with_nulls(monitor._recent),
        "generator": monitor._rng.bit_generator.state,
        "probe": _probe(monitor._network, reference.candidates).tolist(),
    }
    text = json.dumps(document, ensure_ascii=True, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="ascii")


def load(
    path: str | os.PathLike[str],
    network: BayesianNetwork | DynamicNetwork,
    *,
    alarm: float | None,
    drift: float | None,
) -> Monitor:
    """Read the state of a monitor of this network; levels that are given replace those that were saved."""
    from spbn.monitoring.monitor import Monitor, _rate

    name = os.fspath(path)
    levels = {
        key: _rate(key, value) for key, value in (("alarm", alarm), ("drift", drift)) if value is not None
    }
    with open(path, "rb") as stream:
        content = stream.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ModelFileError(f"{name} cannot be read: it has more than {LARGEST >> 20} MB.")
    try:
        document = json.loads(content.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ModelFileError(f"{name} is not the state of a monitor: it is not JSON.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not the state of a monitor.")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"{name} is in version {document.get('version')!r:.20} of the format, and this spbn reads "
            f"version {VERSION}: upgrade spbn, or give the reference rows again."
        )
    if document.get("nodes") != list(network.nodes):
        raise ModelFileError(f"{name} belongs to another network: its variables are different.")
    try:
        monitor = Monitor.__new__(Monitor)
        monitor._dynamic, monitor._network = networks_of(network)
        saved = {key: _rate(key, document[key]) for key in ("alarm", "drift")} | levels
        monitor._alarm, monitor._drift = saved["alarm"], saved["drift"]
        nodes, variables = len(monitor._network.nodes), len(monitor._network.variables)
        is_dynamic = monitor._dynamic is not None
        monitor._reference = _reference(document["reference"], nodes, variables, by_node=is_dynamic)
        monitor._begin()
        _restore_test(monitor, document)
        monitor._recent = _numbers(document["recent"], (variables, None), holes=True)
        if monitor._past is not None:
            monitor._past.restore(document["past"])
        monitor._alarms, monitor._drift_alarms = (_count(document[key]) for key in ("alarms", "drift_alarms"))
        monitor._rng = np.random.Generator(np.random.PCG64())
        monitor._rng.bit_generator.state = _generator(document["generator"])
        probe = _numbers(document["probe"], (len(PROBED),))
    except (KeyError, TypeError, ValueError, OverflowError, SpbnError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
        raise ModelFileError(
            f"{name} is damaged: {reason:.200}. Give the reference rows again, and another file."
        ) from error
    if not np.allclose(_probe(monitor._network, monitor._reference.candidates), probe, rtol=SAME, atol=SAME):
        raise ModelFileError(f"{name} belongs to another network: its densities are different.")
    return monitor


def _probe(network: BayesianNetwork, candidates: FloatArray) -> FloatArray:
    """Return the log-densities of a few rows, by which a network is recognised."""
    columns = candidates[:, list(PROBED)]
    columns = np.where(np.isnan(columns), candidates[:, [0]], columns)
    total: FloatArray = contributions_of(network, table_of_columns(network.variables, columns)).sum(axis=0)
    return total


def _reference(document: Any, nodes: int, variables: int, *, by_node: bool) -> Reference:
    scores = _numbers(document["scores"], (None,))
    if len(scores) < FEWEST_ROWS:
        raise ValueError(f"it must have at least {FEWEST_ROWS} reference rows.")
    return Reference(
        Tail.of(scores),
        _numbers(document["medians"], (nodes,)),
        _numbers(document["means"], (nodes,)),
        _positive(_numbers(document["places"], (nodes, BINS))),
        _numbers(document["candidates"], (variables, CANDIDATES), holes=True),
        _numbers(document["by_node"], (nodes, None)) if by_node else None,
    )


def _restore_test(monitor: Monitor, document: Any) -> None:
    test, saved = monitor._test, document["test"]
    nodes, kinds = len(test.reference), len(bets())
    test.rows = _count(document["rows"])
    test.counts = _positive(_numbers(saved["counts"], (nodes, BINS)))
    test.stakes = _positive(_numbers(saved["stakes"], (nodes, kinds)))
    test.sums = _numbers(saved["sums"], (nodes, kinds))
    test.starts = _positive(_numbers(saved["starts"], (nodes, kinds))).astype(np.int64)


def _numbers(values: Any, shape: tuple[int | None, ...], *, holes: bool = False) -> FloatArray:
    array = np.array(values, dtype=np.float64)
    right = array.ndim == len(shape) and all(
        size in (None, got) for size, got in zip(shape, array.shape, strict=True)
    )
    if not right or not (np.isfinite(array) | (np.isnan(array) & holes)).all():
        raise ValueError(f"it must have an array of shape {shape}. Got {values!r:.60}.")
    return array


def _positive(array: FloatArray) -> FloatArray:
    if (array < 0).any():
        raise ValueError("it has a count or a stake below 0.")
    return array


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a count must be 0 or more. Got {value!r:.60}.")
    return value


def _generator(state: Any) -> Any:
    inner = state["state"]
    if state["bit_generator"] != "PCG64" or not all(isinstance(inner[key], int) for key in ("state", "inc")):
        raise ValueError("its generator of random numbers makes no sense.")
    return state


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that a state can hold.")
