"""The page on the file format names every key that a file can have."""

import json
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest

import spbn

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "file-format.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z_]+)`", PAGE))
#: Objects whose keys are names of nodes, settings or packages. (That of margins has columns by node.)
BY_NAME = {"types", "settings", "versions", "typical"}


def keys(value):
    """All keys of a document that are part of the format."""
    if isinstance(value, list):
        return set().union(*map(keys, value)) if value else set()
    if not isinstance(value, dict):
        return set()
    found = set(value)
    for key, inner in value.items():
        if key in BY_NAME:
            continue
        by_node = key == "columns" and isinstance(inner, dict)
        found |= keys(list(inner.values()) if by_node else inner)
    return found


def mixed(rows=60):
    rng = np.random.default_rng(0)
    town = rng.choice(["Leith", "Portobello"], rows)
    price = np.where(town == "Leith", 3.0, 5.0) + rng.normal(size=rows)
    return {"town": town, "price": price, "area": price + rng.normal(size=rows)}


def learned(kind):
    """A network of every kind that a file can hold."""
    data = spbn.datasets.synthetic(60, seed=0)
    quick = {"folds": 2, "patience": 0, "max_parents": 1}
    if kind == "spbn":
        return spbn.learn(data, **quick)
    if kind == "blend with margins":
        return spbn.learn(data, model="blend", margins="yeo-johnson", **quick)
    if kind == "curve":
        return spbn.learn(data, types="curve", **quick)
    if kind == "compact":
        return spbn.learn(data, model="kdebn", **quick).compact(others="keep")
    if kind == "compact blend":
        return spbn.learn(data, model="blend", **quick).compact(others="keep")
    if kind == "pc":
        return spbn.learn(data, algorithm="pc", test="plc", folds=2, patience=0)
    if kind == "mixed":
        return spbn.learn(mixed(), required_arcs=[("town", "price")], **quick)
    if kind == "holes":
        holes = data.mask(np.random.default_rng(1).random(data.shape) < 0.05)
        return spbn.learn(holes, model="gbn", missing="impute")
    assert kind == "dynamic"
    return spbn.learn_dynamic(data, lags=1, model="gbn")


KINDS = ("spbn", "blend with margins", "curve", "compact", "compact blend", "pc", "mixed", "holes", "dynamic")
#: What tells that the network is of its kind.
TELLING = {
    "spbn": {"bandwidth", "steps"},
    "blend with margins": {"weights", "kernels", "curve", "tails", "exponent"},
    "curve": {"transform", "target", "noise", "mixture", "explained"},
    "compact": {"compact", "whitener"},
    "compact blend": {"parts"},
    "pc": {"separating_sets"},
    "mixed": {"densities", "probabilities"},
    "holes": {"rounds", "intercept"},
    "dynamic": {"lags", "transition", "inputs"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_keys_are_described(kind, tmp_path):
    path = tmp_path / "model.spbn"
    learned(kind).save(path)
    with zipfile.ZipFile(path) as archive:
        found = keys(json.loads(archive.read("network.json")))
    assert found - NAMED == set()
    assert TELLING[kind] - found == set()


def test_keys_of_a_monitor_are_described(tmp_path):
    data = spbn.datasets.synthetic(100, seed=0)
    monitor = spbn.Monitor(spbn.learn(data, model="gbn"), data, alarm=0.1)
    monitor.update(data.head(5))
    monitor.save(tmp_path / "watch.json")
    document = json.loads((tmp_path / "watch.json").read_text())
    generator = document.pop("generator")  # numpy's own
    assert generator["bit_generator"] == "PCG64"
    assert keys(document) - NAMED == set()
