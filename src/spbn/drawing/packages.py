"""Packages that only parts of spbn need."""

from __future__ import annotations

from importlib.util import find_spec

from spbn.errors import PackageError


def require_plot_packages() -> None:
    """Refuse to draw if the packages for it are not installed, and say how to install them."""
    for package in ("matplotlib", "igraph"):
        if find_spec(package) is None:
            raise PackageError(f"drawing needs {package}: install it with pip install 'spbn[plot]'.")


def can_place_graphs() -> bool:
    """Tell whether the package that places the nodes of a graph is installed."""
    return find_spec("igraph") is not None
