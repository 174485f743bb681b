"""Strengths of arcs: of replicates, and from the table that was saved."""

import pandas as pd
import pytest

import spbn
from spbn.diagnostics import Strengths
from spbn.errors import DataError

from strategies import nonlinear_frame

FRAME = nonlinear_frame(80, 4, seed=1)


@pytest.mark.parametrize("replicates", [1, 2, 5, 8])
def test_a_table_tells_what_the_replicates_did(replicates, tmp_path):
    found = spbn.confidence(FRAME, model="gbn", replicates=replicates)
    found.arcs.to_csv(tmp_path / "arcs.csv", index=False)
    read = Strengths.from_table(pd.read_csv(tmp_path / "arcs.csv"), found.nodes)
    kept = Strengths.of(found)
    assert read.threshold == kept.threshold == found.threshold
    pd.testing.assert_frame_equal(read.arcs, kept.arcs, check_dtype=False)
    assert (kept.replicates, kept.rows) == (replicates, 80)
    assert (read.replicates, read.rows) == (None, None)


ARCS = pd.DataFrame(
    {"source": ["a", "b"], "target": ["b", "c"], "strength": [1.0, 0.4], "direction": [0.9, 1]}
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arcs: arcs.drop(columns="strength"), "There is no 'strength'"),
        (lambda arcs: arcs.assign(source=["a", "z"]), "it has no 'z'. Its nodes are 'a', 'b' and 'c'"),
        (lambda arcs: arcs.assign(strength=[1.0, 40.0]), "'strength' must be a share .* Got 40.0 in row 2"),
        (lambda arcs: arcs.assign(direction=["x", 1.0]), "'direction' must be a share .* Got 'x' in row 1"),
        (lambda arcs: arcs.assign(strength=[None, 1.0]), "'strength' must be a share"),
        (lambda arcs: arcs.assign(source=["a", "b"], target=["b", "a"]), "a pair appears more than once"),
        (lambda arcs: arcs.assign(target=["a", "c"]), "two nodes of its own"),
    ],
)
def test_other_tables_are_refused(change, message):
    assert Strengths.from_table(ARCS, ["a", "b", "c"]).threshold == 0.4
    with pytest.raises(DataError, match=message):
        Strengths.from_table(change(ARCS), ["a", "b", "c"])
