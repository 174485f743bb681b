"""Whatever the documentation shows is run: Python, commands, changes to the package, and what they print."""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

import spbn
from command_line import run_line

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.name for path in DOCS.glob("*.md"))
README = "../README.md"
#: The page whose node type is registered in another process, and built into a copy of the package.
PATCHING = "new-node-type.md"
LARGEST_PICTURE = 150_000
#: The file that is changed, the one that it becomes, and the changes.
CHANGED_FILE = re.compile(r"^--- (\S+)\n\+\+\+ (\S+)\n((?:[ +\-@].*\n|\n)*?)(?=^--- |\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line that it begins on."""

    language: str
    text: str
    line: int

    @property
    def padded(self) -> str:
        """The text with its line numbers in the page."""
        return "\n" * (self.line - 1) + self.text


def blocks(page):
    """Return the fenced blocks of a page; those that include a file are tested with that file."""
    content = (DOCS / page).read_text(encoding="utf-8")
    found = []
    for match in re.finditer(r"^```(\w*).*\n((?:.*\n)*?)```$", content, flags=re.MULTILINE):
        line = content[: match.start(2)].count("\n") + 1
        found.append(Block(match[1], match[2], line))
    return found


def outputs(page):
    """Pairs of a Python block and the text block that stands right behind it, or None."""
    found = blocks(page)
    for block, following in zip_longest(found, found[1:]):
        if block.language != "python":
            yield block, None
            continue
        end = block.line + block.text.count("\n") + 1
        shown = following is not None and following.language == "text" and following.line - end <= 2
        yield block, following if shown else None


def require_same(page, printed, shown):
    """Compare what is printed with what the page shows, but for spaces at the ends of lines."""
    printed, shown = ("\n".join(line.rstrip() for line in text.splitlines()) for text in (printed, shown))
    assert printed.strip() == shown.strip(), f"{page} shows\n{shown}\nbut this is printed:\n{printed}"


def run_command(line, page):
    """Run a command of a page as the shell would."""
    assert line.startswith("spbn "), f"{page}: only commands of spbn can be tested. Got {line!r}"
    code, output, error = run_line(line)
    assert code == 0, f"{page}: {line}\n{output}\n{error!r}"
    return output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run a page in, without a screen."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("Agg")
    yield tmp_path
    pyplot.close("all")


@pytest.mark.slow
@pytest.mark.parametrize("page", [README, *(page for page in PAGES if page != PATCHING)])
def test_page_runs(page, folder):
    """The blocks of a page, in order, in one namespace and one folder."""
    namespace = {"__name__": page}
    for block, shown in outputs(page):
        if block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.padded, str(DOCS / page), "exec"), namespace)
            if shown is not None:
                require_same(page, printed.getvalue(), shown.text)
        elif block.language == "sh":
            for line in block.text.splitlines():
                run_command(line, page)


@pytest.fixture
def copy(tmp_path):
    """A folder with a copy of the package and its machine code, so that little has to be compiled again."""
    unfinished = shutil.ignore_patterns("*.tmp.*", "*.pyc.*")  # others may be compiling
    shutil.copytree(Path(spbn.__file__).parent, tmp_path / "src" / "spbn", ignore=unfinished)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True], ids=["from outside", "in the package"])
def test_the_new_node_type_works(inside, tmp_path, copy):
    """What the page writes and registers is learned with, saved, loaded, sampled, drawn and reported."""
    file, register, *rest = [pair for pair in outputs(PATCHING) if pair[0].language == "python"]
    code = [block.text for block, _ in rest]
    before = {path: path.read_text() for path in (copy / "src").rglob("*.py")}
    if inside:
        (copy / "src/spbn/nodes/student.py").write_text(file[0].text, encoding="utf-8")
        (diff,) = [block.text for block in blocks(PATCHING) if block.language == "diff"]
        apply(diff, copy)
        changed = [path for path, text in before.items() if path.read_text() != text]
        assert [path.name for path in changed] == ["__init__.py"]
        added = changed[0].read_text().splitlines()
        assert len(added) == len(before[changed[0]].splitlines()) + 1  # one line
        code.insert(0, "from spbn.nodes.student import NODE_TYPE\n")
    else:
        code[:0] = [file[0].text.replace("from __future__ import annotations\n", ""), register[0].text]
    script = tmp_path / "page.py"
    script.write_text("\n".join(code), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    require_same(PATCHING, done.stdout, "".join(shown.text for _, shown in rest if shown is not None))


def apply(diff, root):
    """Apply a diff without line numbers: what a hunk takes away or keeps must stand in the file once."""
    for old, new, body in CHANGED_FILE.findall(diff):
        path = root / new
        content = "" if old == "/dev/null" else path.read_text(encoding="utf-8")
        for hunk in re.split(r"^@@.*\n", body, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            if before:
                assert content.count(before) == 1, f"{new} has this {content.count(before)} times:\n{before}"
            content = content.replace(before, after, 1) if before else after
        path.write_text(content, encoding="utf-8")


def test_the_gallery_has_every_plot():
    """Functions that draw, by their names or through the methods that call them."""
    content = (DOCS / "gallery.md").read_text(encoding="utf-8")
    methods = {
        "plot_posterior": "posterior.plot()",
        "plot_slices": "dynamic.plot()",
        "plot_forecast": "dynamic.forecast(series, 12).plot()",
    }
    drawing = (ROOT / "src" / "spbn" / "plots").glob("*.py")
    names = {
        name for path in drawing for name in re.findall(r"^def (plot_\w+)", path.read_text(), re.MULTILINE)
    }
    assert set(methods) < names
    assert [name for name in sorted(names) if methods.get(name, f"{name}(") not in content] == []


def test_pictures_are_there_and_small():
    pages = [(DOCS / page).read_text(encoding="utf-8") for page in PAGES]
    shown = {name for page in pages for name in re.findall(r"\]\((img/[^)]+)\)", page)}
    drawn = {f"img/{path.name}" for path in (DOCS / "img").iterdir()}
    assert shown == drawn
    assert all((DOCS / name).stat().st_size < LARGEST_PICTURE for name in drawn)


def test_costs_beyond_the_measured_ones_follow_from_them():
    """Times with ~ in the table of node types: the largest measured one, times the power of the rows."""
    section = (DOCS / "large-data.md").read_text(encoding="utf-8").split("## Scale on paper")[1]
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section.splitlines() if "N" in line]
    rows = [cells for cells in table if cells[3:4] and cells[3].startswith("N") and cells[1].endswith(" s")]
    assert len(rows) == 5
    for name, *times in rows:
        power = float(times.pop(2).removeprefix("N").removeprefix("^") or 1)
        seconds = [float(time.strip("~ s").replace(",", "")) for time in times]
        measured = max(place for place, time in enumerate(times) if not time.startswith("~"))
        assert measured < len(times) - 1, name
        for place in range(measured + 1, len(times)):
            expected = seconds[measured] * 10 ** (power * (place - measured))
            assert seconds[place] == pytest.approx(expected, abs=0.51), name
