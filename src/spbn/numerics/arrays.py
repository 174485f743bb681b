"""The kinds of arrays that the package works on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view in C order, or a copy if the order is different.

    Compiled code has a version for every kind of array, and each takes a second to compile. What
    is only read goes through here first, so one version is enough.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
