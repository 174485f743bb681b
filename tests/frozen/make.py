"""Freeze the results of the spbn that is imported: the files that test_frozen.py compares with.

The files were made from version 0.2, so that later versions can be seen to give the same results:

    PYTHONPATH=src python tests/frozen/make.py                       # everything but the model files
    PYTHONPATH=src python tests/frozen/make.py searches blend        # one case, to change it on purpose
    PYTHONPATH=src python tests/frozen/make.py commands show-iris show-towns
    PYTHONPATH=/v0.2/src python tests/frozen/make.py --files         # also the model files of 0.2

Numbers are written to the last bit. They are the same for any number of threads, but not on every processor
and with every version of numpy: `platform.json` says where they were made, and elsewhere the tests compare
to nine digits. After a change of compiled code, run this twice: the process that compiles a function may call
another copy of its helpers than later processes, which find it on disk, and sum in another order.
"""

import argparse
import json
import sys
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from frozen import commands, saved, searches  # noqa: E402

GROUPS = {
    "searches": searches.CASES,
    "saved": saved.CASES,
    "kept": saved.KEPT,
    "commands": commands.CASES,
}


def platform():
    """Return what the last bits of numbers depend on."""
    packages = ("numpy", "scipy", "numba", "pandas", "scikit-learn")
    features = sorted(name for name, has in llvmlite.binding.get_host_cpu_features().items() if has)
    return {"features": " ".join(features), **{name: version(name) for name in packages}}


@cache
def _folder():
    """Return a folder with tables and their models, which is there as long as the process."""
    folder = tempfile.TemporaryDirectory()
    commands.prepare(Path(folder.name))
    return folder


def made(group, names):
    """Return the documents of some cases."""
    if group == "commands":
        folder = Path(_folder().name)
        return {name: commands.document(name, folder) for name in names}
    make = {"searches": searches.document, "saved": saved.document, "kept": saved.answers}[group]
    return {name: make(name) for name in names}


def read(group):
    """Return what is frozen."""
    path = HERE / f"{group}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write(group, documents):
    """Write one line per case, in order, so that a change of one is a change of one line."""
    lines = [f"{json.dumps(name)}: {json.dumps(documents[name], ensure_ascii=False)}" for name in documents]
    (HERE / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("group", nargs="?", choices=[*GROUPS], help="default: all")
    parser.add_argument("case", nargs="*", help="default: all of the group")
    parser.add_argument("--files", action="store_true", help="write the kept files, too")
    chosen = parser.parse_args()
    if chosen.files:
        saved.FOLDER.mkdir(exist_ok=True)
        for name in saved.KEPT:
            saved.saved(name, saved.kept_file(name))
    for group in [chosen.group] if chosen.group else GROUPS:
        documents = {**read(group), **made(group, chosen.case or GROUPS[group])}
        write(group, {name: documents[name] for name in GROUPS[group] if name in documents})
    write("platform", platform())


if __name__ == "__main__":
    main()
