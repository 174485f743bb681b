"""Packages for data frames, each imported when something of it is used for the first time.

They take long to import, and whoever loads a network and scores rows of numbers needs none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["nw", "pd"]

if TYPE_CHECKING:
    import narwhals as nw
    import pandas as pd
else:

    class _Lazy:
        def __init__(self, package: str) -> None:
            self._package = package

        def __getattr__(self, name: str) -> Any:
            return getattr(importlib.import_module(self._package), name)

    nw, pd = _Lazy("narwhals"), _Lazy("pandas")
