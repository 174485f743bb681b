"""The tutorials: run anew in real kernels, and shown on the site with all that their cells show."""

import importlib.util
import json
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from command_line import GROUP

pytest.importorskip("nbclient")
pytest.importorskip("matplotlib")

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
LARGEST = 400_000  # bytes
COMMAND = re.compile(r"^    ((?:cat \S+ \| )?spbn .*)$", re.MULTILINE)
FILE = re.compile(r"[\w-]+\.(?:csv|spbn)")
WRITTEN = re.compile(r"(?:to_csv|save)\(\"([\w.-]+)\"")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def module(name):
    """A module of the folder docs, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def code(source, *outputs, **metadata):
    return {"cell_type": "code", "source": [source], "outputs": list(outputs), "metadata": metadata}


def shown(**data):
    return {"output_type": "execute_result", "data": {key.replace("_", "/"): [v] for key, v in data.items()}}


def printed(text, name="stdout"):
    return {"output_type": "stream", "name": name, "text": [text]}


def notebook(*cells):
    return {"cells": list(cells)}


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_tutorial_shows_what_it_shows_when_it_is_run(path):
    command = [sys.executable, str(ROOT / "docs" / "tutorials.py"), "--check", path.stem]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr


def test_there_are_four_with_figures_that_are_described():
    assert [path.stem for path in NOTEBOOKS] == [
        "asking-questions",
        "from-a-messy-export-to-a-report",
        "from-a-table-to-a-network",
        "watching-a-machine",
    ]
    for path in NOTEBOOKS:
        assert path.stat().st_size < LARGEST
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        drawn = [c for c in cells for o in c.get("outputs", ()) if "image/png" in o.get("data", {})]
        assert len(drawn) >= 2
        assert all(len(cell["metadata"]["alt"]) > 20 for cell in drawn)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_commands_of_a_tutorial_can_be_given(path):
    """They are understood, and what they read was written by a cell, or by a command before."""
    commands = GROUP.commands
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = {
        kind: "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == kind)
        for kind in ("code", "markdown")
    }
    there = set(WRITTEN.findall(text["code"]))
    lines = COMMAND.findall(text["markdown"])
    assert lines
    for line in lines:
        words = shlex.split(line)
        named = set(filter(FILE.fullmatch, words))
        (name, *arguments) = words[words.index("spbn") + 1 :]
        commands[name].make_context(name, arguments)
        outputs = {after for word, after in pairwise(words) if word in ("--out", "--report", "--plot")}
        assert named - outputs <= there, line
        there |= outputs


def test_what_a_cell_prints_must_not_change():
    nbformat = pytest.importorskip("nbformat")
    tutorials = module("tutorials")

    def cells(*outputs):
        return nbformat.from_dict(notebook(code("x", *outputs)))

    def text(*pairs):
        return [nbformat.v4.new_output("stream", name=name, text=value) for name, value in pairs]

    one, two, warned = text(("stdout", "1")), text(("stdout", "2")), text(("stdout", "1"), ("stderr", "!"))
    assert tutorials.complaints(cells(*one), cells(*one)) == []
    assert tutorials.complaints(cells(*text(("stdout", "12"))), cells(*one, *two)) == []  # in pieces
    assert "now ['2']" in tutorials.complaints(cells(*one), cells(*two))[0]
    assert "error stream" in tutorials.complaints(cells(*one), cells(*warned))[0]
    assert tutorials.complaints(cells(*one), cells()) != []


@pytest.mark.slow
def test_progress_in_a_real_notebook_leaves_nothing_behind():
    """Neither an object's name nor lines of a terminal; and no package is needed to show it."""
    nbformat = pytest.importorskip("nbformat")
    source = (
        "import spbn, sys\n"
        "network = spbn.learn(spbn.datasets.synthetic(60, seed=0), model='gbn', score='cv', progress=True)\n"
        "print('ipywidgets' in sys.modules)"
    )
    kernel = {"name": "python3", "display_name": "Python 3"}
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source)], metadata={"kernelspec": kernel}
    )
    (cell,) = module("tutorials").run(made).cells
    assert [output.text for output in cell.outputs] == ["False\n"]


def test_a_notebook_becomes_a_page():
    pytest.importorskip("mkdocs")
    pages = module("notebook_pages")
    frame = '<div>\n<style scoped>\n  p {}\n</style>\n<table border="1" class="dataframe">\n</table></div>'
    made = notebook(
        {"cell_type": "markdown", "source": ["# Title\n", "\n", "[Next](other.ipynb)."]},
        code("1 + 1", shown(text_plain="2")),
        code("print('a')", printed("a\n")),
        code("network", shown(text_html="<b>one</b>", text_plain="?")),
        code("plot()", shown(image_png=PIXEL, text_plain="?"), alt="A dot"),
        code("frame", shown(text_html=frame, text_plain="?")),
    )
    text, figures = pages.page_of(made, "name")
    assert list(figures) == ["name-1.png"]
    assert figures["name-1.png"].startswith(b"\x89PNG")
    assert text.startswith(
        "# Title\n\n[Next](other.md).\n\n*This page is a notebook: [download it](name.ipynb)"
    )
    assert "```python\n1 + 1\n```\n\n```text\n2\n```" in text
    assert "```text\na\n```" in text
    assert "![A dot](name-1.png)" in text
    assert "?" not in text
    page = SimpleNamespace(file=SimpleNamespace(src_uri="tutorials/name.md"))
    files = SimpleNamespace(
        get_file_from_path=lambda path: SimpleNamespace(content_string=json.dumps(made)) if path else None
    )
    html = pages.on_page_content('a<div data-output="0"></div>b<div data-output="1"></div>', page, {}, files)
    assert html.count("<b>one</b>") == 1
    assert html.index("<b>one</b>") < html.index("<table>")
    assert "style" not in html


def test_the_site_has_every_tutorial():
    """With its figures, and the notebook itself to download."""
    pytest.importorskip("mkdocs")
    from mkdocs.structure.files import File, Files

    config = SimpleNamespace(
        site_dir="site", use_directory_urls=True, plugins=SimpleNamespace(_current_plugin=None)
    )
    files = Files([File(f"tutorials/{path.name}", str(ROOT / "docs"), "site", True) for path in NOTEBOOKS])
    module("notebook_pages").on_files(files, config)
    for path in NOTEBOOKS:
        page = files.get_file_from_path(f"tutorials/{path.stem}.md")
        assert page.content_string.startswith("# ")
        assert f"tutorials/{path.stem}-2.png" in files.src_uris
