"""Odd tables, damaged model files, questions and streams of rows, from `learn` to `load` and `Monitor`.

    python tools/fuzz.py --seconds 60 --seed 1
    python tools/fuzz.py --seed 1 --only tables:17     # one case again

Whatever goes in, only an `SpbnError` or a documented warning may come out: no other exception, no
RuntimeWarning, no NaN and no infinite log-density of a training row, no endless work. A case is
drawn from the seed and its number alone. One that fails is made smaller (fewer columns, fewer
rows, fewer options) while it still fails in the same way, and printed as code.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import signal
import sys
import tempfile
import time
import traceback
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spbn
from spbn.errors import ModelFileError, SpbnError, SpbnWarning
from spbn.graphs.orientation import OrientationWarning

PACKAGE = Path(spbn.__file__).parent

Columns = dict[str, np.ndarray]

#: A case that takes longer has hung: the slowest of the usual ones take two or three seconds.
MOST_SECONDS = 60
#: What reading a damaged file may take: the files themselves have some kilobytes.
MOST_MEMORY = 256 * 2**20


class WrongError(AssertionError):
    """Something came out that must not."""


@dataclass(frozen=True)
class Failure:
    """A case that failed: which one, how, and what to do to see it again."""

    name: str
    kind: str
    text: str
    reproduce: str

    def __str__(self) -> str:
        return f"{self.name} failed: {self.kind}\n{self.text}\nsmallest case found:\n{self.reproduce}"


# --- odd tables -----------------------------------------------------------------------------------


def _cauchy_cubed(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.standard_cauchy(rows) ** 3


def _one_huge(rng: np.random.Generator, rows: int) -> np.ndarray:
    column = rng.normal(size=rows)
    column[rng.integers(rows)] = rng.choice([1e20, -1e9, 1e5])
    return column


def _one_level(rng: np.random.Generator, rows: int) -> np.ndarray:
    column = rng.choice(["left", "right"], size=rows).astype(object)
    column[rng.integers(rows)] = "neither"
    return column


def _rare(rng: np.random.Generator, rows: int) -> np.ndarray:
    column = np.zeros(rows)
    column[rng.integers(rows, size=max(1, rows // 20))] = 1.0
    return column


FRESH: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, rows: rng.normal(size=rows),
    "exponential": lambda rng, rows: rng.exponential(size=rows) ** 2,
    "ties": lambda rng, rows: np.round(rng.normal(size=rows), 1),
    "few values": lambda rng, rows: rng.integers(rng.integers(2, 4), size=rows).astype(float),
    "integers": lambda rng, rows: rng.integers(-1000, 1000, size=rows),
    "offset": lambda rng, rows: rng.normal(size=rows) + rng.choice([1e9, -1e9, 1e15]),
    "huge": lambda rng, rows: rng.normal(size=rows) * 10.0 ** rng.integers(100, 151),
    "tiny": lambda rng, rows: rng.normal(size=rows) * 10.0 ** -rng.integers(100, 151),
    "beyond": lambda rng, rows: rng.normal(size=rows) * 10.0 ** rng.choice([-320, -200, 160, 307]),
    "Cauchy cubed": _cauchy_cubed,
    "one huge value": _one_huge,
    "rare": _rare,
    "constant": lambda rng, rows: np.full(rows, rng.choice([0.0, 0.1, 1e300])),
    "missing": lambda rng, rows: np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows)),
    "infinite": lambda rng, rows: np.where(rng.random(rows) < 0.05, np.inf, rng.normal(size=rows)),
    "text": lambda rng, rows: rng.choice(["red", "green", "blue"], size=rows),
    "truth": lambda rng, rows: rng.random(rows) < 0.4,
    "a level that occurs once": _one_level,
}

Derived = Callable[[np.random.Generator, list[np.ndarray]], np.ndarray]
DERIVED: dict[str, Derived] = {
    "copy": lambda rng, others: others[0].copy(),
    "rescaled copy": lambda rng, others: others[0] * rng.choice([-2.0, 1e-6, 1e6]) + 3.0,
    "near copy": lambda rng, others: (
        others[0] + _spread(others[0]) * rng.choice([1e-3, 1e-6, 1e-9]) * rng.normal(size=len(others[0]))
    ),
    "sum": lambda rng, others: np.sum(others, axis=0),
    "difference": lambda rng, others: others[0] - others[-1],
    "product": lambda rng, others: others[0] * others[-1],
    "square": lambda rng, others: others[0] ** 2,
    "line with noise": lambda rng, others: others[0] + _spread(others[0]) * rng.normal(size=len(others[0])),
    "shared outlier": lambda rng, others: np.where(
        np.arange(len(others[0])) == 1, 1e9, rng.normal(size=len(others[0]))
    ),
}

#: Tables with these are refused at the door, which takes little to find out: a few are enough.
REFUSED = {"beyond", "constant", "missing", "infinite", "copy", "rescaled copy"}


def _spread(column: np.ndarray) -> float:
    low, high = np.nanquantile(column, [0.1, 0.9])
    return float(high - low) if np.isfinite(high - low) else 1.0


def is_number(column: np.ndarray) -> bool:
    """Tell numbers from text and truth values."""
    return column.dtype.kind in "if"


def draw_table(rng: np.random.Generator) -> tuple[Columns, str]:
    """Return columns, and what they are."""
    rows = int(
        rng.choice([2, 3, 4, 6, 10, 20, 40, 80, 150], p=[0.03, 0.04, 0.05, 0.08, 0.1, 0.2, 0.2, 0.2, 0.1])
    )
    columns: Columns = {}
    kinds = []
    # Most tables are mostly usual, or nearly all of them would be refused at the door.
    oddity = rng.choice([0.15, 0.4, 1.0], p=[0.4, 0.4, 0.2])
    for name in "abcde"[: rng.integers(1, 6)]:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numbers = [other for other, values in columns.items() if is_number(values)]
            if numbers and rng.random() < 0.45:
                kind = str(rng.choice(list(DERIVED)))
                if kind in REFUSED and rng.random() < 0.8:
                    kind = "sum"
                if len(numbers) == 1 and kind in ("sum", "difference", "product"):
                    kind = "square"
                size = rng.integers(min(2, len(numbers)), len(numbers) + 1)
                chosen = rng.choice(numbers, size=size, replace=False)
                column = DERIVED[kind](rng, [np.asarray(columns[other], float) for other in chosen])
                kind = f"{kind} of {', '.join(chosen)}"
            else:
                kind = str(rng.choice(list(FRESH))) if rng.random() < oddity else "normal"
                if kind in REFUSED and rng.random() < 0.8:
                    kind = "Cauchy cubed"
                column = FRESH[kind](rng, rows)
        columns[name] = column
        kinds.append(f"{name}: {kind}")
    return columns, f"{rows} rows; {'; '.join(kinds)}"


def draw_options(rng: np.random.Generator, names: list[str]) -> dict[str, Any]:
    """Return arguments of `spbn.learn`, most of them left at their defaults."""
    options: dict[str, Any] = {"model": str(rng.choice(["spbn", "gbn", "kdebn", "blend"]))}
    if rng.random() < 0.35:
        options |= {
            "algorithm": "pc",
            "test": str(rng.choice(["plc", "rcot", "cmiknn"], p=[0.5, 0.45, 0.05])),
        }
        options["alpha"] = float(rng.choice([0.01, 0.05, 0.5]))
    else:
        if options["model"] == "gbn":
            options["score"] = str(rng.choice(["cv", "bic", "bge"]))
        if rng.random() < 0.3:
            options["max_parents"] = int(rng.integers(0, 3))
    may_be: dict[str, Callable[[], Any]] = {
        "folds": lambda: int(rng.choice([2, 3, 5])),
        "validation": lambda: float(rng.choice([0.1, 0.5])),
        "patience": lambda: int(rng.choice([0, 1, 20])),
        "bandwidth": lambda: "silverman",
        "engine": lambda: str(rng.choice(["exact", "spectral"])),
        "seed": lambda: int(rng.integers(5)),
        "start": lambda: "lg",
        "missing": lambda: str(rng.choice(["drop", "impute"])),
        "margins": lambda: "yeo-johnson",
        "smoothing": lambda: float(rng.choice([0.0, 5.0])),
        "epsilon": lambda: float(rng.choice([1e-3, 5.0])),
    }
    for name, value in may_be.items():
        if rng.random() < 0.3:
            options[name] = value()
    if options["model"] == "blend" and options.get("engine") == "spectral":
        del options["engine"]  # grids for narrow kernels and long tails: right, but not made for small tables
    pairs = [(a, b) for a in names for b in names if a != b]
    for name in ("required_arcs", "forbidden_arcs"):
        if pairs and rng.random() < 0.2:
            chosen = rng.choice(len(pairs), size=rng.integers(1, 3))
            options[name] = [pairs[i] for i in chosen]
    return options


def try_table(columns: Columns, options: dict[str, Any]) -> str:
    """Learn a network and use it; return what came of it, or raise what must not happen."""
    try:
        network = spbn.learn(columns, **options)
    except SpbnError as error:
        return type(error).__name__
    finite = [np.isfinite(column) for column in columns.values() if is_number(column)]
    complete = np.all(finite, axis=0) if finite else np.ones(len(next(iter(columns.values()))), bool)
    rows = {name: column[complete] for name, column in columns.items()}
    _require_finite("the log-density of a training row", network.logpdf(rows))
    sample = network.sample(7, seed=1)
    _require_finite("a sample", sample.select_dtypes("number").to_numpy())
    _require_finite("the log-density of a sample", network.logpdf(sample))
    for node in network.nodes:
        cdf = network.cpds[node].cdf(sample)
        if not ((cdf >= 0) & (cdf <= 1)).all():
            raise WrongError(f"P(X <= x) of {node!r} is {cdf}")
    str(network), str(network.search)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spbn"
        network.save(path)
        again = spbn.BayesianNetwork.load(path)
    if again != network:
        raise WrongError("the model that was loaded is not the one that was saved")
    if again.search != network.search or again.record.settings != network.record.settings:
        raise WrongError("the record of the model that was loaded is not the one that was saved")
    # A model file does not keep the engine, which is asked for where a network is used.
    promise = 1e-6 if options.get("engine") == "spectral" else 0.0
    np.testing.assert_allclose(again.logpdf(rows), network.logpdf(rows), rtol=0.0, atol=promise)
    return "learned"


def _require_finite(what: str, numbers: np.ndarray) -> None:
    if not np.isfinite(numbers).all():
        raise WrongError(f"{what} is not finite: {numbers[~np.isfinite(numbers)][:3]}")


# --- damaged files --------------------------------------------------------------------------------

HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**25, -(2**70), 0.5, -0.0, 1e-320, 1e308, -1e308),
    *("", "a", "b", "lg", "ckde", "inf", "nan", "-inf", "\ud800x", "x" * 5000),
    *([], {}, [[]], ["a"], [["a", "b"]], {"a": 1}, [1e308] * 3, list(range(50))),
    *([[1.0, 0.5], [0.5, 1.0]], [[1e-320]], [[1e308]]),
]


def model_files() -> dict[str, bytes]:
    """Return some good model files: by hill climbing, by PC, of every node type."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=40)
    data = {"a": a, "b": np.sin(2 * a) + 0.3 * rng.normal(size=40), "c": a + rng.normal(size=40)}
    files = {}
    kinds: dict[str, dict[str, Any]] = {
        "hc": {"folds": 3},
        "pc": {"algorithm": "pc", "test": "plc", "folds": 3, "required_arcs": [("a", "b")]},
        "gbn": {"model": "gbn"},
        "blend": {"model": "blend", "margins": "yeo-johnson", "folds": 3},
        "mixed": {"folds": 3, "required_arcs": [("d", "a"), ("d", "e")]},
    }
    levels = rng.choice(["x", "y"], size=40)
    mixed = {
        **data,
        "a": a + 3.0 * (levels == "x"),
        "d": levels,
        "e": (levels == "x") ^ (rng.random(40) < 0.2),
    }
    for name, options in kinds.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.spbn"
            spbn.learn(mixed if name == "mixed" else data, **options).save(path)
            files[name] = path.read_bytes()
    return files


def damage(content: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """Return a file with something wrong, and what."""
    kind = str(rng.choice(["bytes", "cut", "document", "text", "members"], p=[0.15, 0.05, 0.55, 0.1, 0.15]))
    if kind == "bytes":
        changed = bytearray(content)
        places = rng.integers(len(changed), size=rng.integers(1, 4))
        for place in places:
            changed[place] ^= int(rng.integers(1, 256))
        return bytes(changed), f"bytes {places.tolist()} changed"
    if kind == "cut":
        length = int(rng.integers(len(content)))
        return content[:length], f"cut to {length} bytes"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = next(i for i, (name, _) in enumerate(members) if name == "network.json")
    method = zipfile.ZIP_STORED
    if kind == "document":
        document = json.loads(members[place][1])
        said = "; ".join(_change_document(document, rng) for _ in range(rng.integers(1, 3)))
        text = json.dumps(document).encode()
        members[place] = ("network.json", text)
    elif kind == "text":
        changed = bytearray(members[place][1])
        where = int(rng.integers(len(changed)))
        piece = bytes(rng.choice(list(b'0123456789eE+-.,:[]{}"ntfu \\'), size=rng.integers(0, 5)).tolist())
        changed[where : where + int(rng.integers(1, 4))] = piece
        members[place] = ("network.json", bytes(changed))
        said = f"network.json has {piece!r} at {where}"
    else:
        members, method, said = _change_members(members, rng)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two members of the same name
        with zipfile.ZipFile(stream, "w", method) as archive:
            for name, data in members:
                archive.writestr(name, data)
    return stream.getvalue(), said


def _change_document(document: Any, rng: np.random.Generator) -> str:
    """Change one value somewhere in a document, in place."""
    paths = list(_paths(document))
    path = paths[rng.integers(len(paths))]
    parent = document
    for step in path[:-1]:
        parent = parent[step]
    key = path[-1]
    action = str(
        rng.choice(["hostile", "remove", "duplicate", "swap", "nudge"], p=[0.5, 0.15, 0.1, 0.1, 0.15])
    )
    if action == "remove":
        del parent[key]
    elif action == "duplicate" and isinstance(parent, list):
        parent.insert(int(rng.integers(len(parent) + 1)), copy.deepcopy(parent[key]))
    elif action == "swap" and len(parent) > 1:
        others = list(range(len(parent))) if isinstance(parent, list) else list(parent)
        other = others[rng.integers(len(others))]
        parent[key], parent[other] = parent[other], parent[key]
    elif action == "nudge" and isinstance(parent[key], int | float):
        parent[key] = parent[key] * float(rng.choice([-1.0, 1e-9, 1e9, 1e200])) + float(
            rng.choice([0.0, 1.0])
        )
    else:
        parent[key] = copy.deepcopy(HOSTILE[rng.integers(len(HOSTILE))])
    return f"{action} at {'/'.join(map(str, path))}"


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value[:8]):
            yield from _paths(inner, (*path, i))


def _change_members(
    members: list[tuple[str, bytes]], rng: np.random.Generator
) -> tuple[list[tuple[str, bytes]], int, str]:
    i = int(rng.integers(len(members)))
    name, data = members[i]
    kind = str(rng.choice(["twice", "gone", "renamed", "compressed", "numbers", "zeros", "longer"]))
    method = zipfile.ZIP_STORED
    if kind == "twice":
        members.append((name, members[0][1]))
    elif kind == "gone":
        del members[i]
    elif kind == "renamed":
        members[i] = (str(rng.choice(["../x", "columns/99.npy", "network.json", "columns/0.npy"])), data)
    elif kind == "compressed":
        method = zipfile.ZIP_DEFLATED
    elif kind == "zeros":  # a small file with a lot in it
        members[i] = (name, b"[" + b" " * 30_000_000 + b"]")
        method = zipfile.ZIP_DEFLATED
    elif kind == "longer":
        members[i] = (name, data + b"\0" * 8)
    else:  # numbers of a column
        changed = bytearray(data)
        if len(changed) > 136:
            odd = np.array([rng.choice([np.nan, np.inf, 1e308, -1e300, 5e-324, 1e20])], "<f8").tobytes()
            where = 128 + 8 * int(rng.integers((len(changed) - 128) // 8))
            changed[where : where + 8] = odd
        members[i] = (name, bytes(changed))
    return members, method, f"{name}: {kind}"


def try_file(content: bytes) -> str:
    """Read a file and use what it holds; return what came of it, or raise what must not happen."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spbn"
        path.write_bytes(content)
        tracemalloc.start()
        try:
            network = spbn.BayesianNetwork.load(path)
        except ModelFileError:
            return "refused"
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            if peak > MOST_MEMORY:
                raise WrongError(f"reading a file of {len(content)} bytes took {peak / 2**20:.0f} MB")
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # absurd parameters may overflow, but not crash or hang
            data = {
                v.name: np.resize(v.levels, 5) if v.is_discrete else np.linspace(-2.0, 2.0, 5)
                for v in network.variables
            }
            if np.isnan(network.logpdf(data)).any():
                raise WrongError("a log-density is not a number")
            network.sample(3, seed=0)
        str(network), str(network.search), str(network.type_search)
        if network.search is not None and hasattr(network.search, "steps"):
            [step.structure for step in network.search.steps]
        network.save(path)
        if spbn.BayesianNetwork.load(path) != network:
            raise WrongError("the model does not survive being saved again")
    return "read"


# --- questions ------------------------------------------------------------------------------------

ASKED = 8  # questions to every network


def draw_network(rng: np.random.Generator) -> spbn.BayesianNetwork:
    """Fit a random graph of random types to a random table, perhaps with margins or a hidden class."""
    names, rows = list("abcdefg"[: rng.integers(2, 8)]), int(rng.choice([12, 40, 100]))
    arcs = [(a, b) for i, b in enumerate(names) for a in names[:i] if rng.random() < 0.4]
    discrete = {name for name in names if rng.random() < 0.3}
    arcs = [(a, b) for a, b in arcs if a in discrete or b not in discrete]
    columns: Columns = {}
    for name in names:
        above = [columns[a] for a, b in arcs if b == name]
        numbers = [column if is_number(column) else 2.0 * (column == "x") for column in above]
        mean = sum((rng.choice([np.sin, np.abs, lambda x: 2 * x])(x) for x in numbers), np.zeros(rows))
        noise = float(rng.choice([1.0, 0.1, 1e-3])) * rng.standard_t(3, size=rows)
        columns[name] = (
            (mean + noise) * float(rng.choice([1.0, 1e6, 1e-6]))
            if name not in discrete
            else (rng.choice(["x", "y", "z"][: rng.integers(2, 4)], size=rows))
        )
    kinds = ["lg", "ckde", "blend", "curve"]
    types = {name: "discrete" if name in discrete else str(rng.choice(kinds)) for name in names}
    margins = str(rng.choice(["none", "none", "yeo-johnson"]))
    if rows == 100 and rng.random() < 0.3:
        return spbn.learn(columns, model="gbn", hidden=2, margins=margins, seed=0)
    smoothing = float(rng.choice([0.0, 1.0]))
    structure = spbn.Structure(names, arcs, types)
    return spbn.BayesianNetwork.fit(structure, columns, margins=margins, smoothing=smoothing)


def draw_question(rng: np.random.Generator, network: spbn.BayesianNetwork) -> dict[str, Any]:
    """Return arguments of `query`: values, intervals, levels; usual, far away, impossible or refused."""
    row = network.sample(2, seed=rng).iloc[0]
    spread = network.sample(50, seed=rng).std(numeric_only=True)
    evidence, do = {}, {}
    for variable in network.variables:
        name = variable.name
        if rng.random() < 0.5:
            continue
        if variable.is_discrete:
            levels = [str(level) for level in variable.levels]
            some = list(rng.choice(levels, size=rng.integers(1, len(levels) + 1), replace=False))
            evidence[name] = some if rng.random() < 0.5 else some[0]
            if rng.random() < 0.03:
                evidence[name] = "no such level"
            continue
        far = float(rng.choice([0.0, 1.0, 5.0, 30.0, 1e4, 1e12], p=[0.5, 0.25, 0.1, 0.07, 0.05, 0.03]))
        value = float(row[name]) + far * float(rng.choice([-1.0, 1.0])) * float(spread[name])
        width = float(spread[name]) * float(rng.choice([1e-9, 0.1, 3.0]))
        kinds = [value, (value, value + width), (None, value), (value, None), float("nan"), (value, value)]
        evidence[name] = kinds[rng.choice(len(kinds), p=[0.5, 0.2, 0.13, 0.13, 0.02, 0.02])]
        if rng.random() < 0.1:
            do[name], _ = value, evidence.pop(name)
    method = str(rng.choice(["auto", "smc", "weighting"], p=[0.7, 0.2, 0.1]))
    n, seed = int(rng.choice([1, 20, 100])), int(rng.integers(5))
    return {"evidence": evidence, "do": do, "n": n, "seed": seed, "method": method}


def try_question(network: spbn.BayesianNetwork, question: dict[str, Any]) -> str:
    """Ask a network; return what came of it, or raise what must not happen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=SpbnWarning)  # of answers that are worth little
        warnings.filterwarnings("ignore", message="the (value|interval) of .* is far outside")
        try:
            posterior = network.query(**question)
        except SpbnError as error:
            return type(error).__name__
    numbers = [posterior.mean(), posterior.std(), posterior.median(), *posterior.interval(0.9).T.to_numpy()]
    for values in (*numbers, posterior.cov().to_numpy(), posterior.weights, [posterior.log_evidence]):
        _require_finite("a number of a posterior", np.asarray(values, dtype=float))
    if not posterior.log_evidence_error >= 0.0 or not posterior.effective_size > 0.0:
        raise WrongError(f"{posterior.effective_size} draws, error {posterior.log_evidence_error}")
    chances = []
    for variable in posterior.variables:
        if variable.is_discrete:
            shares = posterior.probabilities(variable.name)
            if abs(shares.sum() - 1.0) > 1e-9:
                raise WrongError(f"probabilities of {variable.name!r} sum to {shares.sum()}")
            chances += [*shares, posterior.probability({variable.name: str(variable.levels[0])})]
        else:
            event = {variable.name: (float(posterior.median()[variable.name]), None)}
            chances += [posterior.probability(event), posterior.probability_error(event)]
        region = posterior.evidence.get(variable.name)
        if isinstance(region, tuple):
            ends = [-np.inf if region[0] is None else region[0], np.inf if region[1] is None else region[1]]
            slack = 1e-9 * (1.0 + np.abs(np.array(ends)[np.isfinite(ends)]).max())
            if not posterior.draws[variable.name].between(ends[0] - slack, ends[1] + slack).all():
                raise WrongError(f"draws of {variable.name!r} are outside {region}")
    if not all(0.0 <= chance <= 1.0 for chance in chances):
        raise WrongError(f"probabilities are {chances}")
    return posterior.method


def run_question(seed: int, number: int) -> tuple[str, Failure | None]:
    """Run one case."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            network = draw_network(np.random.default_rng([seed, 2, number // ASKED]))
        except SpbnError:
            return "not fitted", None
        question = draw_question(np.random.default_rng([seed, 3, number]), network)
    found, failure = outcome(lambda: try_question(network, question))
    if not failure:
        return found, None
    name = f"--seed {seed} --only questions:{number}"
    return "failed", Failure(name, failure, f"({network!r})", f"network.query(**{question})")


# --- streams --------------------------------------------------------------------------------------


def draw_stream(rng: np.random.Generator) -> tuple[spbn.Monitor, list[Any]]:
    """Return a monitor, of a network of rows or of one over time, and odd rows that come in pieces."""
    if rng.random() < 0.3:
        walk = np.cumsum(rng.normal(size=(60, int(rng.integers(1, 4)))), axis=0)
        reference = pd.DataFrame(walk, columns=list("xyz")[: walk.shape[1]])
        network: Any = spbn.learn_dynamic(reference, lags=int(rng.integers(1, 3)), model="gbn")
        usual = reference.iloc[: rng.integers(1, 40)]
    else:
        network = draw_network(rng)
        reference, usual = network.sample(60, seed=rng), network.sample(int(rng.integers(1, 40)), seed=rng)
    alarm = float(rng.choice([0.5, 0.05, 1e-4]))
    monitor = spbn.Monitor(network, reference, alarm=alarm, drift=float(rng.choice([0.5, 1e-5])), seed=1)
    rows = usual.astype(object)
    odd = [None, np.nan, np.inf, 1e300, -1e9, 0, 1e-320, True, "x", "no such level", "", [1.0]]
    for _ in range(rng.integers(0, 6)):
        rows.iloc[rng.integers(len(rows)), rng.integers(rows.shape[1])] = odd[rng.integers(len(odd))]
    ends = [*sorted(rng.integers(0, len(rows) + 1, size=3).tolist()), len(rows)]
    pieces: list[Any] = [rows.iloc[a:b] for a, b in pairwise([0, *ends])]
    as_given: list[Callable[[Any], Any]] = [
        *(lambda piece: piece, lambda piece: piece.to_dict("records"), lambda piece: piece.to_numpy()),
        *(
            lambda piece: piece.iloc[:, ::-1],
            lambda piece: piece.iloc[:, 1:],
            lambda piece: piece.infer_objects(),
        ),
    ]
    return monitor, [as_given[rng.choice(6, p=[0.2, 0.2, 0.2, 0.1, 0.05, 0.25])](piece) for piece in pieces]


def try_stream(monitor: spbn.Monitor, pieces: list[Any]) -> str:
    """Let a monitor judge rows, and another that was saved and loaded on the way; return what came of it."""
    found, twin = set(), monitor
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", category=SpbnWarning)  # of states that cannot tell rare alarms
        for piece in pieces:
            monitor.save(Path(folder) / "state.json")
            twin, seen = spbn.Monitor.load(Path(folder) / "state.json", monitor.network), monitor.rows
            try:
                verdicts = monitor.update(piece)
            except SpbnError as error:
                found.add(type(error).__name__)
                if monitor.rows != seen:
                    raise WrongError(f"{monitor.rows - seen} of the rows that were refused count") from error
                continue
            shares, drift = verdicts["p_value"].to_numpy(), verdicts["drift"].to_numpy()
            if not ((shares >= 0) & (shares <= 1) | np.isnan(shares)).all() or not (drift >= 0).all():
                raise WrongError(f"shares are {shares}, the drift is {drift}")
            if monitor.rows != seen + len(verdicts):
                raise WrongError(f"{monitor.rows - seen} of {len(verdicts)} rows count")
            if not verdicts.equals(twin.update(piece)):
                raise WrongError("a monitor that was saved judges otherwise")
            found.add("judged")
    return " and ".join(sorted(found)) or "empty"


def run_stream(seed: int, number: int) -> tuple[str, Failure | None]:
    """Run one case."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            monitor, pieces = draw_stream(np.random.default_rng([seed, 4, number]))
        except SpbnError:
            return "not fitted", None
    found, failure = outcome(lambda: try_stream(monitor, pieces))
    if not failure:
        return found, None
    name = f"--seed {seed} --only streams:{number}"
    return "failed", Failure(name, failure, f"({monitor.network!r})", f"monitor.update of {pieces}")


# --- running, and making a failure smaller --------------------------------------------------------


@contextmanager
def strict() -> Iterator[None]:
    """Turn every warning but the documented ones into an error, and stop what takes too long."""

    def stop(*_: object) -> None:
        raise WrongError(f"no end after {MOST_SECONDS} s")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", category=OrientationWarning)
        warnings.filterwarnings("ignore", message=".* left out, with values over")
        warnings.filterwarnings("ignore", message="the arc .* is left out", category=UserWarning)
        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(MOST_SECONDS)
        try:
            yield
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)


def outcome(run: Callable[[], str]) -> tuple[str, str]:
    """Return what came of a case, or "" and how it failed."""
    try:
        with strict():
            return run(), ""
    except Exception as error:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if PACKAGE in Path(f.filename).parents]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].name}" if frames else "?"
        return "", f"{type(error).__name__} in {where}: {error}"


def _kind(failure: str) -> str:
    """Tell failures apart, without the numbers that they mention."""
    return failure.split(":", 2)[0] + failure.split(":", 2)[1]


def shrink(columns: Columns, options: dict[str, Any], failure: str) -> tuple[Columns, dict[str, Any], str]:
    """Leave out columns, rows and options for as long as the case fails in the same way."""
    deadline = time.monotonic() + 60.0

    def fails(columns: Columns, options: dict[str, Any]) -> str:
        _, found = outcome(lambda: try_table(columns, options))
        return found if found and _kind(found) == _kind(failure) else ""

    smaller = True
    while smaller and time.monotonic() < deadline:
        smaller = False
        for fewer_columns, fewer_options in _smaller(columns, options):
            if time.monotonic() > deadline:
                break
            if found := fails(fewer_columns, fewer_options):
                columns, options, failure, smaller = fewer_columns, fewer_options, found, True
                break
    return columns, options, failure


def _smaller(columns: Columns, options: dict[str, Any]) -> Iterator[tuple[Columns, dict[str, Any]]]:
    for name in columns:
        if len(columns) > 1:
            rest = {other: column for other, column in columns.items() if other != name}
            arcs = {
                key: [arc for arc in options[key] if name not in arc]
                for key in ("required_arcs", "forbidden_arcs")
                if key in options
            }
            yield rest, options | arcs
    for name in options:
        yield columns, {other: value for other, value in options.items() if other != name}
    rows = len(next(iter(columns.values())))
    part = rows // 2
    while part:
        for start in range(0, rows, part):
            kept = np.r_[0:start, min(start + part, rows) : rows]
            if len(kept):
                yield {name: column[kept] for name, column in columns.items()}, options
        part //= 2


def run_table(seed: int, number: int) -> tuple[str, Failure | None]:
    """Run one case."""
    rng = np.random.default_rng([seed, 0, number])
    columns, said = draw_table(rng)
    options = draw_options(rng, list(columns))
    if options.get("test") == "cmiknn":  # slow: small tables only
        columns = {name: column[:20] for name, column in list(columns.items())[:3]}
        for key in ("required_arcs", "forbidden_arcs"):
            options.pop(key, None)
    found, failure = outcome(lambda: try_table(columns, options))
    if not failure:
        return found, None
    columns, options, failure = shrink(columns, options, failure)
    data = {name: np.asarray(column).tolist() for name, column in columns.items()}
    code = f"tools.fuzz.try_table({{name: np.array(c) for name, c in {data}.items()}}, {options})"
    return "failed", Failure(f"--seed {seed} --only tables:{number}", failure, f"({said})", code)


def run_file(seed: int, number: int, files: dict[str, bytes]) -> tuple[str, Failure | None]:
    """Run one case."""
    rng = np.random.default_rng([seed, 1, number])
    name = list(files)[rng.integers(len(files))]
    content, said = damage(files[name], rng)
    found, failure = outcome(lambda: try_file(content))
    if not failure:
        return found, None
    return "failed", Failure(f"--seed {seed} --only files:{number}", failure, f"({name}: {said})", said)


def fuzz(
    seed: int,
    *,
    seconds: float,
    tables: bool = True,
    files: bool = True,
    questions: bool = True,
    streams: bool = True,
    most_failures: int = 10,
) -> tuple[Counter[str], list[Failure]]:
    """Run cases until the time is over; return how many came out how, and the failures, one of a kind."""
    counts: Counter[str] = Counter()
    failures: dict[str, Failure] = {}
    good = model_files() if files else {}
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end and len(failures) < most_failures:
        # Files are read in a fraction of the time that it takes to learn: more of them.
        runs: list[tuple[str, Callable[[int], tuple[str, Failure | None]], int]] = []
        if tables:
            runs.append(("table", lambda n: run_table(seed, n), number))
        if questions:
            asked = range(ASKED * number, ASKED * (number + 1))
            runs += [("question", lambda n: run_question(seed, n), n) for n in asked]
        if streams:
            runs.append(("stream", lambda n: run_stream(seed, n), number))
        runs += [("file", lambda n: run_file(seed, n, good), 8 * number + i) for i in range(8) if files]
        for kind, run, n in runs:
            found, failure = run(n)
            counts[f"{kind} {found}"] += 1
            if failure is not None and _kind(failure.kind) not in failures:
                failures[_kind(failure.kind)] = failure
                print(failure, file=sys.stderr, flush=True)
        number += 1
    return counts, list(failures.values())


def main() -> int:
    """Run cases, or one of them again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="KIND:NUMBER", help="one case, as a failure names it")
    arguments = parser.parse_args()
    if arguments.only:
        kind, _, number = arguments.only.partition(":")
        if kind == "tables":
            found, failure = run_table(arguments.seed, int(number))
        elif kind in ("questions", "streams"):
            run = run_question if kind == "questions" else run_stream
            found, failure = run(arguments.seed, int(number))
        else:
            found, failure = run_file(arguments.seed, int(number), model_files())
        print(failure or found)
        return int(failure is not None)
    counts, failures = fuzz(arguments.seed, seconds=arguments.seconds)
    print(", ".join(f"{count} {what}" for what, count in sorted(counts.items())))
    print(f"{len(failures)} kinds of failure, with --seed {arguments.seed}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
