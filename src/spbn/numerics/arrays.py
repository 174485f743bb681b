"""The kinds of arrays that the package works on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an array if it is read-only and in C order, else a view or a copy that is.

    Compiled code has a version for every kind of array, and each takes a second to compile. What
    is only read goes through here first, so one version is enough.
    """
    if array.flags.c_contiguous and not array.flags.writeable:
        return array
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
