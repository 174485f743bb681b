"""The web service in `examples/`, asked by FastAPI's test client."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import spbn

from strategies import mixed_frame

pytest.importorskip("fastapi", reason="needs fastapi, of the extra spbn[serve]")
testclient = pytest.importorskip("fastapi.testclient", reason="the test client needs httpx")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def network():
    return spbn.learn(mixed_frame(80), model="gbn")


@pytest.fixture(scope="module")
def path(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("service") / "mixed.spbn"
    network.save(path)
    return path


@pytest.fixture(scope="module")
def client(path):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLES))
        patch.setenv("SPBN_MODEL", str(path))
        app = importlib.import_module("service").app
        del sys.modules["service"]
    with testclient.TestClient(app) as client:
        yield client


def as_json(frame):
    return frame.astype({name: str for name in frame if frame[name].dtype.kind not in "fi"}).to_dict(
        "records"
    )


def test_rows_are_scored_as_by_the_network(client, network, path):
    frame = mixed_frame(80).head(10)
    answer = client.post("/score", json=as_json(frame))
    assert answer.status_code == 200
    found = answer.json()
    np.testing.assert_allclose([one["logpdf"] for one in found], network.logpdf(frame), rtol=1e-12)
    scorer = spbn.load_scorer(path)
    assert [[r["node"] for r in one["blame"]] for one in found] == [
        [r.node for r in one.blame] for one in scorer.scores(as_json(frame))
    ]


def test_the_columns_and_their_levels(client, network):
    expected = {variable.name: list(variable.levels) for variable in network.variables}
    assert client.get("/variables").json() == expected


def test_what_is_wrong_with_a_row_is_said(client, network):
    row = as_json(mixed_frame(80).head(1))[0]
    first = network.nodes[0]
    answer = client.post("/score", json=[{name: value for name, value in row.items() if name != first}])
    assert answer.status_code == 422
    assert f"there is no value for {first!r}" in answer.json()["detail"]
    assert client.post("/score", json=[{first: [1, 2]}]).status_code == 422
    assert client.post("/score", content=b"{").status_code == 422
