"""Views are registered from above, and loaded when something is shown for the first time."""

import subprocess
import sys

import pytest

from spbn._base.display import View


class Shape:
    pass


class Square(Shape):
    pass


def test_an_object_is_shown_by_the_function_of_its_nearest_class():
    view = View()

    @view.register(Shape)
    def shape(shown, size=1):
        return "shape", size

    assert view(Square(), size=3) == ("shape", 3)
    view.register(Square)(lambda shown: "square")
    assert view(Square()) == "square"
    assert view(Shape()) == ("shape", 1)
    with pytest.raises(TypeError, match="int"):
        view(7)


def test_the_loader_is_called_once_before_the_first_view():
    view, loaded = View(), []

    def load():
        loaded.append(True)
        view.register(Shape)(lambda shown: "shape")

    view.set_loader(load)
    assert not loaded
    assert view(Shape()) == view(Square()) == "shape"
    assert len(loaded) == 1


def test_a_loader_that_fails_is_called_again():
    view = View()
    view.set_loader(lambda: 1 / 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            view(Shape())


@pytest.mark.slow
def test_what_draws_is_loaded_when_something_is_shown():
    code = """
import sys, spbn
structure = spbn.datasets.synthetic_structure()
assert not {"spbn.report", "spbn.plots"} & set(sys.modules)
assert "<table" in structure._repr_html_() or "<svg" in structure._repr_html_()
assert "spbn.report.notebooks" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
