"""The names of version 0.2: they work, say what to write instead, and are on the page about moving."""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest

import spbn
from spbn._deprecated import MODULES, NAMES, renamed

SOURCE = Path(spbn.__file__).parent
PAGE = (Path(__file__).resolve().parents[1] / "docs" / "migrating.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_old_name_gives_what_it_meant(name):
    module, _, now = NAMES[name].partition(":")
    with pytest.warns(DeprecationWarning, match=rf"spbn\.{name} is {module}\.{now or name} since") as caught:
        found = getattr(spbn, name)
    assert found is getattr(importlib.import_module(module), now or name)
    assert caught[0].filename == __file__


def test_the_public_names_are_few():
    assert len(spbn.__all__) == 21
    assert not set(spbn.__all__) & set(NAMES)
    for name in (*spbn.__all__, "explain", "distributed", "sklearn"):
        assert getattr(spbn, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'CKE'"):
        spbn.CKE  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("old", MODULES)
def test_an_old_module_is_the_new_one(old, monkeypatch):
    path = SOURCE.joinpath(*old.split(".")[1:])
    assert not path.with_suffix(".py").exists()
    assert not (path / "__init__.py").exists()
    for name in list(sys.modules):
        if any(name == moved or name.startswith(f"{moved}.") for moved in MODULES):
            monkeypatch.delitem(sys.modules, name)
    with pytest.warns(DeprecationWarning, match="since version 0.3") as caught:
        found = importlib.import_module(old)
    assert found is importlib.import_module(MODULES[old])
    assert f"{old} is {MODULES[old]} since" in str(caught[-1].message)


def test_what_is_inside_a_package_moves_with_it(monkeypatch):
    for name in ("spbn.explain", "spbn.explain.data_check"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.warns(DeprecationWarning, match="since version 0.3") as caught:
        found = importlib.import_module("spbn.explain.data_check")
    assert "spbn.explain.data_check is spbn.diagnostics.data_check since" in str(caught[-1].message)
    assert found is importlib.import_module("spbn.diagnostics.data_check")


def test_functions_for_tables():
    with pytest.warns(DeprecationWarning, match="read_table is spbn.cli.files.read_table since"):
        assert spbn.tables.read_table is importlib.import_module("spbn.cli.files").read_table
    with pytest.warns(DeprecationWarning, match="is spbn.tables.as_table with training=True since"):
        read = spbn.tables.training_table
    table = read({"x": [1.0, 2.0, 3.0], "y": list("aba")}, "error", drop=["x"], discrete=["y"])
    assert table.levels == {"y": ("a", "b")}
    with pytest.raises(AttributeError, match="has no attribute 'columns_'"):
        spbn.tables.columns_  # noqa: B018


@renamed(draws="n")
def draw(n=1):
    return n


def test_an_old_argument_is_taken_for_the_new_one():
    assert draw(3) == draw(n=3) == 3
    with pytest.warns(DeprecationWarning, match="the argument draws of draw is n since") as caught:
        assert draw(draws=4) == 4
    assert caught[0].filename == __file__
    with pytest.raises(TypeError, match="got both 'n' and 'draws'"):
        draw(n=1, draws=2)


def renamed_arguments():
    """Return function, old name and new name of every argument that `renamed` translates."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for call in getattr(node, "decorator_list", []):
                if isinstance(call, ast.Call) and getattr(call.func, "id", None) == "renamed":
                    yield from ((node.name, word.arg, word.value.value) for word in call.keywords)


def further_warnings():
    """Return the words in which something else is called deprecated: an argument, a column, a function."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "warn_deprecated":
                old, new = node.args[:2]
                if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
                    yield old.value, new.value


def test_every_old_name_is_on_the_page():
    section = PAGE.split("## From version 0.1 to 0.2")[0]
    rows = [row for row in section.splitlines() if row.startswith("|")]
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", section)] == []
    absent = [old for old, new in MODULES.items() if not re.search(rf"(?m)^{old} +is now {new}$", section)]
    assert absent == []
    arguments = sorted(set(renamed_arguments()))
    assert ("interval", "share", "level") in arguments
    for function, old, new in arguments:
        found = [row for row in rows if f"{function}(" in row and f"{old}=" in row.split("|")[1]]
        assert found, f"the page lacks the argument {old} of {function}"
        assert all(f"{new}=" in row.split("|")[2] for row in found)
    others = sorted(set(further_warnings()))
    assert ("the column share of Monitor.update", "p_value") in others
    prose = {"the", "argument", "column", "of", "with"}
    for old, new in others:
        names = {word.lower() for word in re.findall(r"\w+", f"{old} {new}")} - prose
        found = [row for row in rows if names <= set(re.findall(r"\w+", row.lower()))]
        assert found, f"the page does not say that {old} is {new}"
