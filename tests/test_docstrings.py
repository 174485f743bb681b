"""Every public name says what it is, with an example that runs and prints what it says."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import spbn

API = Path(__file__).resolve().parents[1] / "docs" / "api.md"
#: What the page on the API describes, as full names.
DESCRIBED = re.findall(r"^::: (\S+)$", API.read_text(encoding="utf-8"), flags=re.MULTILINE)
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def found(name):
    """Import what has a full name."""
    module, _, rest = name.rpartition(".")
    return getattr(importlib.import_module(module), rest)


@pytest.mark.parametrize("name", spbn.__all__)
def test_public_names_are_described(name):
    """Those that are not modules are on the page, by the name of the module that defines them."""
    thing = getattr(spbn, name)
    assert inspect.getdoc(thing)
    if not inspect.ismodule(thing):
        assert any(found(described) is thing for described in DESCRIBED if described.endswith(f".{name}"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to write to, without a screen."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    pyplot.switch_backend("Agg")
    yield tmp_path
    pyplot.close("all")


@pytest.mark.parametrize("name", DESCRIBED)
def test_example(name, folder):
    """The example of a name, by itself."""
    thing = found(name)
    text = inspect.getdoc(thing)
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert test.examples, f"{name} has no example"
    assert any("spbn" in example.source for example in test.examples)
    printed = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    result = runner.run(test, out=printed.append)
    assert result.failed == 0, "".join(printed)
