import numba
import pytest

from spbn.app.progress import COMPILING, search_progress


@pytest.fixture
def shown(monkeypatch):
    """What the progress line says, one text after the other."""
    texts = []
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda self, task, description: texts.append(description)
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
