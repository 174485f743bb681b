"""Documents of the command line, ``--json``, that are frozen."""

import json
import os
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path

import spbn
from frozen.saved import old_settings
from frozen.tables import table
from spbn.learning.stability import CLEAR_DIRECTION, DISPUTED, EQUIVALENT

#: Options of `spbn learn` for the model of every table.
MODELS = {
    "synthetic": ("--model", "spbn"),
    "iris": ("--model", "blend", "--folds", "3", "--margins", "yeo-johnson"),
    "towns": ("--model", "spbn", "--folds", "4"),
    "holes": ("--model", "gbn", "--missing", "impute"),
    "series": ("--model", "gbn", "--lags", "1", "--series", "machine", "--drop", "t"),
}
#: What differs from run to run, or from version to version.
BLANK = ("seconds", "versions", "bytes", "bytes_before")

_STATIC = ("synthetic", "iris", "towns", "holes")
_GIVEN = {
    "synthetic": ("--given", "D=12", "--given", "B>0", "--do", "A=5", "--event", "E>0.5"),
    "iris": ("--given", "kind=versicolor", "--given", "4<=petal_length<=5", "--event", "sepal_width>3"),
    "towns": ("--given", "y=1", "--event", "town in Leith,Portobello"),
    "holes": ("--given", "E=0.5", "--given", "A=6", "--event", "B>0"),
}
_TARGET = {
    "synthetic": ("--target", "E"),
    "iris": ("--target", "kind", "--target", "petal_width", "--statistic", "median"),
    "towns": ("--target", "town", "--statistic", "mode"),
    "holes": ("--target", "D", "--target", "A"),
}
_COMPARED = {
    "synthetic": ("--folds", "3", "--columns", "A,B,C"),
    "iris": ("--folds", "2", "--drop", "kind"),
    "towns": ("--folds", "2"),
    "holes": ("--folds", "2", "--missing", "drop", "--columns", "A,C"),
    "series": ("--folds", "2", "--columns", "a,b", "--margins", "yeo-johnson"),
}
_CLASSIFIED = {
    "iris": ("--target", "kind", "--model", "blend", "--folds", "2"),
    "towns": ("--target", "size", "--model", "gbn", "--structure", "augmented", "--test", "new-towns.csv"),
    "series": ("--target", "machine", "--model", "spbn", "--drop", "t", "--no-calibrate", "--folds", "2"),
}
#: Models that version 0.2 compared.
_MODELS = ("--models", "spbn,gbn,kdebn,blend")


def _cases():
    for name, options in MODELS.items():
        model, data, new = f"{name}.spbn", f"{name}.csv", f"new-{name}.csv"
        yield f"learn-{name}", ("learn", data, *options, "--out", "out.spbn")
        yield f"show-{name}", ("show", model)
        yield f"plot-{name}", ("plot", model, "--out", "graph.svg")
        yield f"report-{name}", ("report", model, "--out", "report.html")
        yield f"sample-{name}", ("sample", model, "-n", "3", "--seed", "2")
        yield f"compare-{name}", ("compare", data, *_MODELS, *_COMPARED[name])
        yield f"watch-{name}", ("watch", model, new, "--reference", data, "--alarm", "0.05", "--all")
        yield (
            f"compact-{name}",
            ("compact", model, "--out", "s.spbn", "--tolerance", "0.01", "--others", "keep"),
        )
        if name != "series":
            detail = ("--missing", "integrate") if name == "holes" else ("--by-node",)
            yield f"query-{name}", ("query", model, *_GIVEN[name], "-n", "200")
            yield f"predict-{name}", ("predict", model, new, *_TARGET[name])
            yield f"score-{name}", ("score", model, new, "--top", "3", *detail)
            yield f"explore-{name}", ("explore", model, "-n", "50", "--no-open")
            drop = ("--missing", "drop") if name == "holes" else ()
            replicates = ("--replicates", "3", "--folds", "3")
            yield f"confidence-{name}", ("confidence", data, "--model", "spbn", *replicates, *drop)
        if name in _CLASSIFIED:
            yield f"classify-{name}", ("classify", data, "--margins", "yeo-johnson", *_CLASSIFIED[name])
    yield "impute-holes", ("impute", "holes.spbn", "holes.csv", "--out", "full.csv", "--draws", "2")
    yield "impute-towns", ("impute", "towns.spbn", "holes-towns.csv", "--out", "full.csv")
    yield (
        "forecast-series",
        ("forecast", "series.spbn", "series.csv", "--steps", "3", "-n", "50", "--event", "a>0"),
    )
    by_tests = ("--model", "spbn", "--algorithm", "pc", "--test", "plc")
    yield "learn-pc", ("learn", "synthetic.csv", *by_tests, "--require", "A:C")
    yield "demo", ("demo",)


CASES = dict(_cases())


def prepare(folder):
    """Write the tables and the models that the commands are about."""
    for name, options in MODELS.items():
        rows = table(name)
        rows.to_csv(folder / f"{name}.csv", index=False)
        new = (rows.iloc[:8] if name == "series" else rows.iloc[3:40:9]).copy()
        numbers = new.columns.difference(["t"]).intersection(new.select_dtypes("number").columns)
        new.loc[new.index[-1], numbers] *= 3.0  # an odd row
        new.to_csv(folder / f"new-{name}.csv", index=False)
        run(folder, "learn", f"{name}.csv", *options, "--out", f"{name}.spbn")
    table("holes-towns").to_csv(folder / "holes-towns.csv", index=False)


def document(name, folder):
    """Return what a command prints, without times, versions and the sizes of files."""
    out = run(folder, *CASES[name], "--json")
    if CASES[name][0] == "watch":  # an object per line
        return [_blanked(json.loads(line)) for line in out.splitlines()]
    return _blanked(json.loads(out))


def _blanked(part):
    if isinstance(part, dict):
        kept = {**part, "settings": old_settings(part["settings"])} if "settings" in part else part
        kept = kept | _open_by_graph(part)
        return {key: None if key in BLANK else _blanked(value) for key, value in kept.items()}
    return [_blanked(value) for value in part] if isinstance(part, list) else part


def _open_by_graph(part):
    """Return what version 0.2 said about open directions, by the graph alone."""
    if "open_directions" in part:
        names = [node["name"] for node in part["nodes"]]
        undecided = spbn.Structure(names, part["arcs"], inputs=part["inputs"]).undecided_arcs()
        return {"open_directions": [arc for arc in part["arcs"] if tuple(arc) in undecided]}
    if "replicates" in part and "arcs" in part:
        believed = [(arc["source"], arc["target"]) for arc in part["arcs"] if arc["believed"]]
        undecided = spbn.Structure(part["nodes"], believed).undecided_arcs()
        return {"arcs": [arc | {"open": _why_open(arc, undecided)} for arc in part["arcs"]]}
    return {}


def _why_open(arc, undecided):
    reasons = [EQUIVALENT] if (arc["source"], arc["target"]) in undecided else []
    reasons += [DISPUTED] if arc["believed"] and arc["direction"] < CLEAR_DIRECTION else []
    return "; ".join(reasons) or None


def run(folder, *arguments):
    """Run a command in a folder; return what it prints."""
    before, argv = Path.cwd(), sys.argv
    out, err = StringIO(), StringIO()
    os.chdir(folder)
    sys.argv = ["spbn", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            _entry()()
    except SystemExit as stop:
        if stop.code:
            raise RuntimeError(f"{' '.join(sys.argv)}: {err.getvalue()}") from None
    finally:
        sys.argv = argv
        os.chdir(before)
    return out.getvalue()


def _entry():
    """Return the function that is the command `spbn`, wherever it is."""
    root = Path(spbn.__file__).parents[2]
    script = tomllib.loads((root / "pyproject.toml").read_text())["project"]["scripts"]["spbn"]
    module, function = script.split(":")
    return getattr(import_module(module), function)
