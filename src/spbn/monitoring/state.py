"""The state of a monitor, and its file: a monitor can go on after its process has ended.

A file is one JSON object (see docs/file-format.md). It holds what is known of the reference rows and of the
rows since, but not the network: that has a file of its own, and is recognised by what it says about three
rows. Numbers are written with all their digits, so that a monitor that is loaded goes on exactly as it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np

from spbn._base.arrays import FloatArray, finite_log_density
from spbn._base.checks import fraction, is_whole
from spbn._base.files import replacing
from spbn.errors import ModelFileError, SpbnError
from spbn.monitoring.drift import BINS, DriftState, bets
from spbn.monitoring.reference import CANDIDATES, MIN_ROWS, Reference, Tail
from spbn.network import BayesianNetwork, Network
from spbn.tables.row_buffer import RowBuffer, with_nulls
from spbn.tables.table import Table

FORMAT, VERSION = "spbn-monitor", 1
MAX_BYTES = 256 * 2**20
PROBED = (CANDIDATES // 4, CANDIDATES // 2, 3 * CANDIDATES // 4)  # quantiles that a network is recognised by
TOLERANCE = 1e-6  # how far its log-densities may be off, on another machine


@final
@dataclass(frozen=True, eq=False)
class MonitorState:
    """All that a monitor knows, apart from its network.

    Attributes
    ----------
    nodes, probe
        What the network is recognised by: its variables, and its log-densities of a few rows.
    alarm, drift
        The levels.
    reference
        What is known of the reference rows.
    test, alarms, drift_alarms
        What the drift test knows of the rows since, and how many alarms they raised.
    recent, buffer
        The last rows, to tell what drifts, and those that the next ones depend on.
    generator
        The state of the random generator.
    """

    nodes: tuple[str, ...]
    buffer: RowBuffer
    alarm: float
    drift: float
    alarms: int
    drift_alarms: int
    reference: Reference
    test: DriftState
    recent: FloatArray
    generator: Mapping[str, Any]
    probe: FloatArray

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, which is written completely or not at all."""
        reference, test = self.reference, self.test
        document = {
            "format": FORMAT,
            "version": VERSION,
            "nodes": list(self.nodes),
            "past": self.buffer.to_record(),
            "alarm": self.alarm,
            "drift": self.drift,
            "rows": test.rows,
            "alarms": self.alarms,
            "drift_alarms": self.drift_alarms,
            "reference": {
                "scores": reference.tail.ordered.tolist(),
                "medians": reference.medians.tolist(),
                "means": reference.means.tolist(),
                "places": reference.pit_counts.astype(np.int64).tolist(),
                "candidates": with_nulls(reference.candidates),
                "by_node": None if reference.by_node is None else reference.by_node.tolist(),
            },
            "test": {
                "counts": test.counts.astype(np.int64).tolist(),
                "stakes": test.stakes.tolist(),
                "sums": test.sums.tolist(),
                "starts": test.starts.tolist(),
            },
            "recent": with_nulls(self.recent),
            "generator": self.generator,
            "probe": self.probe.tolist(),
        }
        text = json.dumps(document, ensure_ascii=True, allow_nan=False)
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="ascii")

    @classmethod
    def read(cls, path: str | os.PathLike[str], network: Network) -> MonitorState:
        """Read the state of a monitor of this network; anything else is a `ModelFileError`."""
        name, document = os.fspath(path), _read_document(path)
        if document.get("nodes") != list(network.nodes):
            raise ModelFileError(f"{name} belongs to another network: its variables are different.")
        try:
            state = cls._from_document(document, network)
        except (KeyError, TypeError, ValueError, OverflowError, SpbnError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error).rstrip(".")
            raise ModelFileError(
                f"{name} is damaged: {reason:.200}. Give the reference rows again, and another file."
            ) from error
        found = probe(network.row_network, state.reference.candidates)
        if not np.allclose(found, state.probe, rtol=TOLERANCE, atol=TOLERANCE):
            raise ModelFileError(f"{name} belongs to another network: its densities are different.")
        return state

    @classmethod
    def _from_document(cls, document: Any, network: Network) -> MonitorState:
        nodes, variables = len(network.nodes), len(network.row_network.variables)
        buffer = network.row_buffer()
        if network.is_dynamic:
            buffer.restore(document["past"])
        return cls(
            nodes=network.nodes,
            buffer=buffer,
            alarm=float(fraction("alarm", document["alarm"])),
            drift=float(fraction("drift", document["drift"])),
            alarms=_count(document["alarms"]),
            drift_alarms=_count(document["drift_alarms"]),
            reference=_reference(document["reference"], nodes, variables, by_node=network.is_dynamic),
            test=_test(document, nodes),
            recent=_numbers(document["recent"], (variables, None), holes=True),
            generator=_generator(document["generator"]),
            probe=_numbers(document["probe"], (len(PROBED),)),
        )


def probe(network: BayesianNetwork, candidates: FloatArray) -> FloatArray:
    """Return the log-densities of a few rows, by which a network is recognised."""
    columns = candidates[:, list(PROBED)]
    columns = np.where(np.isnan(columns), candidates[:, [0]], columns)
    contributions = network.contributions(Table.of(network.variables, columns))
    total: FloatArray = finite_log_density(contributions).sum(axis=1)
    return total


def _read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    name = os.fspath(path)
    with open(path, "rb") as stream:
        content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ModelFileError(f"{name} cannot be read: it has more than {MAX_BYTES >> 20} MB.")
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
    return document


def _reference(document: Any, nodes: int, variables: int, *, by_node: bool) -> Reference:
    scores = _numbers(document["scores"], (None,))
    if len(scores) < MIN_ROWS:
        raise ValueError(f"it must have at least {MIN_ROWS} reference rows.")
    return Reference(
        Tail.fit(scores),
        _numbers(document["medians"], (nodes,)),
        _numbers(document["means"], (nodes,)),
        _positive(_numbers(document["places"], (nodes, BINS))),
        _numbers(document["candidates"], (variables, CANDIDATES), holes=True),
        _numbers(document["by_node"], (nodes, None)) if by_node else None,
    )


def _test(document: Any, nodes: int) -> DriftState:
    saved, kinds = document["test"], len(bets())
    return DriftState(
        _count(document["rows"]),
        _positive(_numbers(saved["counts"], (nodes, BINS))),
        _positive(_numbers(saved["stakes"], (nodes, kinds))),
        _numbers(saved["sums"], (nodes, kinds)),
        _positive(_numbers(saved["starts"], (nodes, kinds))).astype(np.int64),
    )


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
    if not is_whole(value, 0):
        raise ValueError(f"a count must be 0 or more. Got {value!r:.60}.")
    return int(value)


def _generator(state: Any) -> Any:
    inner = state["state"]
    if state["bit_generator"] != "PCG64" or not all(isinstance(inner[key], int) for key in ("state", "inc")):
        raise ValueError("its generator of random numbers makes no sense.")
    np.random.PCG64().state = state  # refuses what is no state
    return state


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that a state can hold.")
