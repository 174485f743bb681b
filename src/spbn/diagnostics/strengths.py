"""How strong arcs are: what a report shows of a `Confidence`, or of the table of arcs that was saved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spbn.errors import DataError, quoted
from spbn.learning.stability import Confidence

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("source", "target", "strength", "direction")


@dataclass(frozen=True, eq=False)
class Strengths:
    """How often the replicates of a search find each arc.

    Attributes
    ----------
    nodes
        The nodes that it is about.
    arcs
        As `Confidence.arcs`.
    threshold
        The strength that an arc must exceed to be believed.
    replicates, rows
        How many replicates there were, and rows in the table; None if that is not known.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> found = spbn.confidence(data, model="gbn", replicates=4)
    >>> spbn.explain.Strengths.from_table(found.arcs, found.nodes).threshold == found.threshold
    True
    """

    nodes: tuple[str, ...]
    arcs: pd.DataFrame
    threshold: float
    replicates: int | None = None
    rows: int | None = None

    @classmethod
    def of(cls, found: Confidence) -> Strengths:
        """Return what a report shows of replicates."""
        return cls(found.nodes, found.arcs, found.threshold, len(found.structures), found.rows)

    @classmethod
    def from_table(cls, table: Any, nodes: Sequence[str]) -> Strengths:
        """Read the table that `Confidence.arcs` is, about a network with these nodes."""
        import numpy as np
        import pandas as pd

        frame = pd.DataFrame(table)
        absent = [name for name in COLUMNS if name not in frame.columns]
        if absent:
            raise DataError(
                f"a table of arcs has the columns {quoted(COLUMNS)}, as spbn confidence --out writes it. "
                f"There is no {quoted(absent)}."
            )
        frame = frame[list(COLUMNS)]
        frame = frame.astype({"source": str, "target": str}).reset_index(drop=True)
        unknown = sorted({*frame["source"], *frame["target"]} - set(nodes))
        if unknown:
            raise DataError(
                f"the arcs are not about this network: it has no {quoted(unknown)}. Its nodes are "
                f"{quoted(nodes)}."
            )
        for name in ("strength", "direction"):
            numbers = pd.to_numeric(frame[name], errors="coerce")
            wrong = np.flatnonzero(~numbers.between(0.0, 1.0))
            if len(wrong):
                value = frame[name].tolist()[wrong[0]]
                raise DataError(
                    f"{name!r} must be a share between 0 and 1. Got {value!r} in row {wrong[0] + 1}."
                )
            frame[name] = numbers.astype(float)
        pairs = [frozenset(pair) for pair in zip(frame["source"], frame["target"], strict=True)]
        if len(set(pairs)) < len(pairs) or any(len(pair) == 1 for pair in pairs):
            raise DataError("every row must be about two nodes of its own: a pair appears more than once.")
        strengths = frame["strength"].to_numpy()
        threshold = strengths[strengths <= 0.5].max(initial=0.0)  # by the rule of `l1_threshold`
        return cls(tuple(nodes), frame, float(threshold))
