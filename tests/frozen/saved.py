"""Saved models whose bytes are frozen, and files of version 0.2 that must always load."""

import hashlib
import json
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import spbn
from frozen.searches import CHAIN, ROWS, hexes, some_rows
from frozen.tables import table

#: Files that version 0.2 wrote.
FOLDER = Path(__file__).parent / "models"
#: Arguments of `learn` that version 0.2 did not have, and their defaults, with which nothing changes.
NEW_SETTINGS = {"tiers": [], "type_selection": "score", "penalty": "auto", "hidden": None}
TOWNS = [("town", "size"), ("town", "x"), ("town", "y"), ("size", "y"), ("x", "y"), ("x", "z")]


def _synthetic(kind, data="few", **settings):
    names = "ABC" if data in ("few", "many") else "ABCDE"
    arcs = [arc for arc in CHAIN if set(arc) <= set(names)]
    return spbn.BayesianNetwork.fit(spbn.Structure(names, arcs, kind), table(data), **settings)


def _towns(kind, **settings):
    nodes = ["town", "size", "x", "y", "z"]
    types = {node: "discrete" if node in ("town", "size") else kind for node in nodes}
    return spbn.BayesianNetwork.fit(spbn.Structure(nodes, TOWNS, types), table("towns"), **settings)


def _codes():
    nodes = ["grade", "passed", "colour"]
    structure = spbn.Structure(nodes, [("grade", "passed"), ("passed", "colour")], "discrete")
    return spbn.BayesianNetwork.fit(structure, table("codes")[nodes].astype(str))


def _dynamic(data="one-series", **settings):
    return spbn.learn_dynamic(table(data), **settings)


#: Name: the table that the network is about, and the network.
NETWORKS = {
    "lg": ("few", lambda: _synthetic("lg")),
    "ckde": ("few", lambda: _synthetic("ckde")),
    "blend": ("few", lambda: _synthetic("blend")),
    "lg-margins": ("few", lambda: _synthetic("lg", margins="yeo-johnson")),
    "ckde-margins": ("few", lambda: _synthetic("ckde", margins="yeo-johnson")),
    "blend-margins": ("few", lambda: _synthetic("blend", margins="yeo-johnson")),
    "ckde-silverman": ("few", lambda: _synthetic("ckde", bandwidth="silverman")),
    "ckde-cv": ("few", lambda: _synthetic("ckde", bandwidth="cv")),
    "ckde-compact": ("few", lambda: _synthetic("ckde").compact(1e-4)),
    "blend-compact": ("few", lambda: _synthetic("blend").compact(1e-3)),
    "ckde-compact-margins": ("few", lambda: _synthetic("ckde", margins="yeo-johnson").compact(1e-3)),
    "mixed-types": (
        "synthetic",
        lambda: spbn.BayesianNetwork.fit(spbn.datasets.synthetic_structure(), table("synthetic")),
    ),
    "discrete": ("codes", _codes),
    "towns-lg": ("towns", lambda: _towns("lg")),
    "towns-ckde": ("towns", lambda: _towns("ckde")),
    "towns-blend": ("towns", lambda: _towns("blend")),
    "towns-lg-margins": ("towns", lambda: _towns("lg", margins="yeo-johnson")),
    "towns-ckde-compact": ("towns", lambda: _towns("ckde").compact(1e-2)),
    "towns-smoothing": ("towns", lambda: _towns("lg", smoothing=0.0)),
    "learned-spbn": ("synthetic", lambda: spbn.learn(table("synthetic"), model="spbn")),
    "learned-gbn": ("few", lambda: spbn.learn(table("few"), model="gbn")),
    "learned-blend": ("few", lambda: spbn.learn(table("few"), model="blend", folds=3)),
    "learned-pc": ("few", lambda: spbn.learn(table("few"), model="spbn", algorithm="pc", test="plc")),
    "learned-towns": ("towns", lambda: spbn.learn(table("towns"), model="spbn", folds=4)),
    "learned-imputed": (
        "holes-towns",
        lambda: spbn.learn(table("holes-towns"), model="gbn", missing="impute"),
    ),
    "dynamic-gbn": ("one-series", lambda: _dynamic(model="gbn")),
    "dynamic-series": ("series", lambda: _dynamic("series", model="gbn", lags=2, series="machine", time="t")),
    "dynamic-modes": ("modes", lambda: _dynamic("modes", model="spbn", folds=4)),
    "dynamic-compact": (
        "one-series",
        lambda: _dynamic(model="kdebn", folds=3, max_parents=1).compact(1e-2, others="keep"),
    ),
}
#: Name: the network, the table, and the levels of a monitor that has seen some rows.
MONITORS = {
    "monitor": ("mixed-types", {"alarm": 0.02}),
    "monitor-towns": ("towns-lg", {"alarm": 0.05, "drift": 0.001}),
    "monitor-dynamic": ("dynamic-gbn", {"alarm": 0.05}),
}
CASES = (*NETWORKS, *MONITORS)
#: Those of which a file of version 0.2 is kept.
KEPT = (
    "lg-margins",
    "ckde",
    "blend",
    "ckde-compact",
    "blend-compact",
    "discrete",
    "towns-lg",
    "learned-gbn",
    "learned-pc",
    "dynamic-series",
    "monitor-dynamic",
)


def saved(name, path):
    """Write a case to a file."""
    if name in MONITORS:
        _monitor(name).save(path)
    else:
        NETWORKS[name][1]().save(path)


def document(name):
    """Return what is frozen of a file: sizes and hashes, without times and versions."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case"
        saved(name, path)
        return _members(path)


def _members(path):
    if not zipfile.is_zipfile(path):
        text = path.read_text()
        return {"state": _hash(text.encode()), "bytes": len(text)}
    arrays = []
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            if member == "network.json":
                text = json.dumps(_undated(json.loads(archive.read(member))), indent=1)
            else:
                arrays.append((member.encode(), archive.read(member)))
    return {
        "document": _hash(text.encode()),
        "bytes": len(text),
        "arrays": _hash(*(part for array in arrays for part in array)),
        "array_bytes": [len(content) for _, content in arrays],
    }


def _undated(part):
    """Leave out what differs from run to run or by version, and what version 0.2 did not have."""
    if isinstance(part, dict):
        return {
            key: _undated(old_settings(value) if key == "settings" else value)
            for key, value in part.items()
            if key not in ("seconds", "versions", "open_directions")
        }
    return [_undated(value) for value in part] if isinstance(part, list) else part


def old_settings(settings):
    """Return settings without those that version 0.2 did not have, if these are at their defaults."""
    missing = object()
    return {key: value for key, value in settings.items() if NEW_SETTINGS.get(key, missing) != value}


def _hash(*parts):
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _monitor(name):
    data, make = NETWORKS[MONITORS[name][0]]
    monitor = spbn.Monitor(make(), table(data), **MONITORS[name][1])
    monitor.update(_new_rows(data))
    return monitor


def _new_rows(data):
    """Return rows that drift away from their table."""
    rows = table(data).iloc[:30].copy()
    numbers = rows.select_dtypes("number").columns
    rows[numbers] += np.linspace(0.0, 3.0, len(rows))[:, None]
    return rows


def kept_file(name):
    """Return the file of version 0.2."""
    return FOLDER / f"{name}.{'json' if name in MONITORS else 'spbn'}"


def answers(name):
    """Return what the kept file says about a few rows, to the last bit."""
    if name in MONITORS:
        data, _ = NETWORKS[MONITORS[name][0]]
        monitor = spbn.Monitor.load(kept_file(name), NETWORKS[MONITORS[name][0]][1]())
        verdicts = monitor.update(_new_rows(data).iloc[:ROWS])
        return {"share": hexes(verdicts["p_value"]), "drift": hexes(verdicts["drift"])}
    data, _ = NETWORKS[name]
    if name.startswith("dynamic"):
        network = spbn.DynamicNetwork.load(kept_file(name))
        return {"logpdf": hexes(network.logpdf(table(data))[-ROWS:])}
    network = spbn.BayesianNetwork.load(kept_file(name))
    rows = some_rows(data)[list(network.nodes)]
    return {
        "logpdf": hexes(network.logpdf(rows)),
        "sample": [
            value if isinstance(value, str) else float(value).hex()
            for value in network.sample(2, seed=0).to_numpy().ravel()
        ],
    }
