"""Searches whose every step is frozen."""

import numpy as np

import spbn
from frozen.tables import table

ROWS = 5  # of each table, evenly spread, have their log-densities frozen
CHAIN = [("A", "B"), ("B", "C"), ("D", "E")]


def _start():
    types = {"A": "lg", "B": "ckde", "C": "lg", "D": "ckde", "E": "lg"}
    return spbn.Structure("ABCDE", CHAIN, types)


#: Name of the case: table, and the arguments of `learn`. The model is "spbn" unless there is another.
STATIC = {
    "spbn": ("synthetic", {}),
    "spbn-seed": ("synthetic", {"seed": 3}),
    "spbn-folds": ("synthetic", {"folds": 3}),
    "spbn-start-lg": ("synthetic", {"start": "lg"}),
    "spbn-start-structure": ("synthetic", {"start": _start}),
    "spbn-patience-0": ("synthetic", {"patience": 0}),
    "spbn-patience-12": ("synthetic", {"patience": 12}),
    "spbn-max-parents": ("synthetic", {"max_parents": 1}),
    "spbn-validation": ("synthetic", {"validation": 0.4}),
    "spbn-validation-table": ("few", {"validation": lambda: table("synthetic")[["A", "B", "C"]]}),
    "spbn-epsilon": ("synthetic", {"epsilon": 5.0}),
    "spbn-arcs": ("synthetic", {"required_arcs": [("E", "A")], "forbidden_arcs": [("A", "C"), ("C", "A")]}),
    "spbn-silverman": ("synthetic", {"bandwidth": "silverman"}),
    "spbn-bandwidth-cv": ("few", {"bandwidth": "cv"}),
    "spbn-margins": ("skewed", {"margins": "yeo-johnson"}),
    "spbn-types": ("synthetic", {"types": ("lg", "ckde", "blend"), "folds": 4}),
    "spbn-type-lg": ("synthetic", {"types": ["lg"]}),
    "spbn-exact": ("many", {"engine": "exact", "folds": 3}),
    "spbn-spectral": ("many", {"engine": "spectral", "folds": 3}),
    "spbn-spectral-few": ("few", {"engine": "spectral", "folds": 3}),
    "spbn-max-seconds": ("synthetic", {"max_seconds": 0.0}),
    "spbn-iris": ("iris-numbers", {}),
    "spbn-wine": ("wine", {}),
    "spbn-wine-margins": ("wine", {"margins": "yeo-johnson", "folds": 5}),
    "spbn-drop": ("wine", {"drop": ["hue", "proline"]}),
    "spbn-towns": ("towns", {}),
    "spbn-towns-smoothing": ("towns", {"smoothing": 0.25}),
    "spbn-iris-kind": ("iris", {"folds": 5}),
    "spbn-codes": ("codes", {"discrete": ["grade"]}),
    "spbn-holes-drop": ("holes", {"missing": "drop"}),
    "spbn-holes-impute": ("holes", {"missing": "impute", "folds": 3}),
    "gbn": ("synthetic", {"model": "gbn"}),
    "gbn-bge": ("synthetic", {"model": "gbn", "score": "bge"}),
    "gbn-cv": ("synthetic", {"model": "gbn", "score": "cv"}),
    "gbn-wine": ("wine", {"model": "gbn"}),
    "gbn-margins": ("skewed", {"model": "gbn", "margins": "yeo-johnson"}),
    "gbn-towns": ("towns", {"model": "gbn"}),
    "gbn-codes": ("codes", {"model": "gbn", "discrete": ["grade"], "smoothing": 5.0}),
    "gbn-impute": ("holes-towns", {"model": "gbn", "missing": "impute"}),
    "gbn-pc-plc": ("wine", {"model": "gbn", "algorithm": "pc", "test": "plc"}),
    "kdebn": ("synthetic", {"model": "kdebn"}),
    "kdebn-iris": ("iris-numbers", {"model": "kdebn", "folds": 5}),
    "kdebn-bandwidth-cv": ("few", {"model": "kdebn", "bandwidth": "cv", "folds": 4}),
    "kdebn-towns": ("towns", {"model": "kdebn", "folds": 4}),
    "blend": ("synthetic", {"model": "blend", "folds": 5}),
    "blend-wine": ("wine", {"model": "blend", "folds": 3, "margins": "yeo-johnson"}),
    "blend-towns": ("towns", {"model": "blend", "folds": 3}),
    "blend-drop": ("holes", {"model": "blend", "folds": 3, "missing": "drop", "max_parents": 2}),
    "blend-spectral": ("many", {"model": "blend", "folds": 2, "engine": "spectral", "max_parents": 1}),
    "spbn-pc-plc": ("synthetic", {"algorithm": "pc", "test": "plc"}),
    "spbn-pc-rcot": ("synthetic", {"algorithm": "pc", "test": "rcot", "seed": 1}),
    "spbn-pc-cmiknn": ("few", {"algorithm": "pc", "test": "cmiknn", "alpha": 0.2}),
    "spbn-pc-towns": ("towns", {"algorithm": "pc", "alpha": 0.1}),
    "blend-pc-arcs": (
        "synthetic",
        {"model": "blend", "algorithm": "pc", "required_arcs": [("A", "C")], "forbidden_arcs": [("C", "D")]},
    ),
}
#: Name of the case: table, and the arguments of `learn_dynamic`.
DYNAMIC = {
    "dynamic-spbn": ("one-series", {"folds": 4}),
    "dynamic-gbn-lags": ("series", {"model": "gbn", "lags": 2, "series": "machine", "time": "t"}),
    "dynamic-blend": ("one-series", {"model": "blend", "folds": 3}),
    "dynamic-arcs": (
        "series",
        {
            "series": "machine",
            "drop": ["t"],
            "folds": 4,
            "required_arcs": [(("b", 1), "a")],
            "forbidden_arcs": [("a[t-1]", "a")],
        },
    ),
    "dynamic-modes": ("modes", {"model": "spbn", "folds": 4}),
    "dynamic-pc": ("one-series", {"model": "gbn", "algorithm": "pc", "test": "plc"}),
}
CASES = {**STATIC, **DYNAMIC}


def arguments(name):
    """Return the arguments of a search; those that take work to make are made now."""
    given = {"model": "spbn", **CASES[name][1]}
    return {key: value() if callable(value) else value for key, value in given.items()}


def network(name):
    """Run a search, and return its network."""
    learn = spbn.learn_dynamic if name in DYNAMIC else spbn.learn
    return learn(table(CASES[name][0]), **arguments(name))


def document(name):
    """Return the result of a search, with numbers to the last bit."""
    found = network(name)
    rows = some_rows(CASES[name][0])
    if name in DYNAMIC:
        parts = {"static": _network(found.static), "transition": _network(found.transition)}
        return {**parts, "logpdf": hexes(found.logpdf(table(CASES[name][0]))[-ROWS:])}
    return {**_network(found), "logpdf": hexes(found.logpdf(rows[list(found.nodes)]))}


def some_rows(name, count=ROWS):
    """Return a few complete rows of a table."""
    rows = table(name).dropna()
    return rows.iloc[np.linspace(0, len(rows) - 1, count).astype(int)].reset_index(drop=True)


def hexes(numbers):
    """Write numbers to the last bit."""
    return [float(number).hex() for number in numbers]


def _network(found):
    structure = found.structure
    parts = {
        "arcs": [":".join(arc) for arc in structure.arcs],
        "types": {node: kind.name for node, kind in structure.types.items()},
        "typical": {node: float(value).hex() for node, value in found.record.typical.items()},
        "data_hash": found.record.data_hash,
    }
    if found.record.rounds:
        parts["rounds"] = hexes(found.record.rounds)
    for key, search in (("search", found.search), ("type_search", found.type_search)):
        if search is not None:
            parts[key] = _pc(search) if isinstance(search, spbn.search.PCResult) else _search(search)
    return parts


def _search(search):
    return {
        "steps": [
            f"{step.operator}, delta {float(step.delta).hex()}, score {float(step.score).hex()}, "
            f"validation {float(step.validation_score).hex()}, misses {step.misses}"
            for step in search.steps
        ],
        "best": search.best,
        "score": float(search.score).hex(),
        "validation": float(search.validation_score).hex(),
        "stop": search.stop_reason,
    }


def _pc(result):
    separations = sorted((sorted(pair), sorted(given)) for pair, given in result.separating_sets.items())
    return {
        "arcs": [":".join(arc) for arc in result.pdag.arcs],
        "edges": [":".join(sorted(edge)) for edge in result.pdag.edges],
        "separations": [f"{':'.join(pair)} given {','.join(given)}" for pair, given in separations],
        "tests": list(result.tests_run),
    }
