import sys
from types import ModuleType, SimpleNamespace

import numba
import pytest

from spbn._base.display import COMPILING, counting_progress, search_progress, working


@pytest.fixture
def shown(monkeypatch):
    """What the progress line says, one text after the other."""
    texts = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda self, task, description, **extent: texts.append(description)
    )
    return texts


def test_whoever_waits_for_the_compiler_is_told_so(shown):
    with search_progress(True, 0):
        numba.njit(lambda x: x + 1.0)(1.0)
    assert shown == [COMPILING, "scoring the first candidates"]


def test_nothing_is_shown_unless_asked_for(shown):
    with search_progress(False, 0) as on_step:
        numba.njit(lambda x: x + 1.0)(1.0)
    assert on_step is None
    assert shown == []


@pytest.fixture
def notebook(monkeypatch):
    """A notebook, and what it displays, one thing after the other."""
    displayed = []
    shell = type("ZMQInteractiveShell", (), {})()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: shell

    def put(bundle, raw):
        assert raw is True
        assert bool(bundle["text/plain"]) == bool(bundle["text/html"])  # for terminals
        assert "<" not in bundle["text/plain"].replace("<all>", "")
        displayed.append(bundle["text/html"])

    def show(bundle, raw, display_id):
        assert display_id is True
        put(bundle, raw)
        return SimpleNamespace(update=put)

    display.display = show
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    monkeypatch.setattr("spbn._base.display.PAUSE", 0.0)
    return displayed


def test_a_notebook_shows_how_much_is_done(notebook, shown):
    with counting_progress(True, "learning <all>", 3) as advance:
        advance()
        advance()
    bars = [html.split("</progress>")[0] for html in notebook]
    assert bars == [f'<div><progress value="{done}" max="3">' for done in range(3)] + [""]  # nothing stays
    assert "learning &lt;all&gt;" in notebook[0]
    assert shown == []  # and nothing goes to the terminal


def test_a_notebook_shows_the_steps_of_a_search(notebook):
    import spbn

    network = spbn.learn(spbn.datasets.synthetic(60, seed=0), model="spbn", folds=3, progress=True)
    steps = [html for html in notebook if "step " in html]
    assert len(steps) == len(network.search.steps)
    assert "score" in steps[0]
    assert notebook[-1] == ""


def test_a_notebook_shows_the_sweeps_of_an_order_search(notebook):
    import spbn

    spbn.learn(spbn.datasets.synthetic(60, seed=0), folds=3, progress=True)
    sweeps = [html for html in notebook if "sweep " in html]
    assert "restart 1, sweep 1: score" in sweeps[0]
    assert notebook[-1] == ""


def test_a_notebook_shows_the_stages_of_pc(notebook, shown):
    import spbn

    spbn.learn(spbn.datasets.synthetic(60, seed=0), algorithm="pc", test="plc", progress=True)
    stages = [html for html in notebook if "PC: " in html]
    assert any("conditions of 1" in html and 'max="' in html for html in stages)
    assert notebook[-1] == ""
    assert shown == []


def test_a_notebook_is_left_clean_after_an_error(notebook):
    with pytest.raises(ZeroDivisionError), working(True, "dividing"):
        1 / 0  # noqa: B018
    assert "dividing" in notebook[0]
    assert notebook[-1] == ""


def test_shells_of_other_notebooks_are_recognised(notebook, monkeypatch, shown):
    kind = type(sys.modules["IPython"].get_ipython())
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", type("Shell", (kind,), {}))
    with working(True, "dividing"):
        pass
    assert "dividing" in notebook[0]


def test_nothing_is_displayed_outside_of_notebooks(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    with counting_progress(True, "learning", 3) as advance:
        advance()
    assert notebook == []
