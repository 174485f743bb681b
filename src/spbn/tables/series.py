"""Columns of data frames, told apart from plain arrays without importing narwhals.

Arrays and dicts need no data frames, and scoring them in production should not have to import any.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import narwhals as nw


def is_series(values: object) -> TypeGuard[nw.Series[Any]]:
    """Tell whether a column is a narwhals Series: it cannot be one if narwhals has not been imported."""
    narwhals = sys.modules.get("narwhals")
    return narwhals is not None and isinstance(values, narwhals.Series)
