import ctypes
import os
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

from spbn._base.jit import compiled_address, watching_compilation


def new_function():
    """A function that has not been compiled yet, and calls another."""
    inner = numba.njit(lambda x: x + 1.0)
    return numba.njit(lambda x: inner(x) * 2.0)


def test_watchers_are_told_once_however_many_functions_are_nested():
    told = []
    function = new_function()
    with watching_compilation(told.append):
        assert function(1.0) == 4.0
        assert told == [True, False]
        function(2.0)
    assert told == [True, False]


def test_nobody_is_told_afterwards():
    told = []
    with watching_compilation(told.append):
        pass
    new_function()(1.0)
    assert told == []


def test_compilation_that_fails_is_over_too():
    told = []
    wrong = numba.njit(lambda x: x.missing)
    with watching_compilation(told.append), pytest.raises(numba.TypingError):
        wrong(1.0)
    assert told == [True, False]


def test_functions_compiled_for_their_address_are_told_of_unless_they_are_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    told = []

    def add(numbers, count):
        for i in range(count):
            numbers[i] += 1.0

    signature = numba.types.void(numba.types.CPointer(numba.types.float64), numba.types.int64)
    with watching_compilation(told.append):
        addresses = [compiled_address(signature, add), compiled_address(signature, add)]
    assert told == [True, False]
    numbers = np.arange(3.0)
    pointer = ctypes.POINTER(ctypes.c_double)
    for address in addresses:
        function = ctypes.CFUNCTYPE(None, pointer, ctypes.c_int64)(address)
        function(numbers.ctypes.data_as(pointer), 3)
    np.testing.assert_array_equal(numbers, [2.0, 3.0, 4.0])


@pytest.mark.slow
def test_each_kernel_is_compiled_once_and_only_in_the_dimensions_asked_for(tmp_path):
    """Whatever the memory order of the arrays, and whether they can be written to."""
    code = """
import numpy as np
from numba.core import event
from spbn import kernels
from spbn.kernels.estimates import Spans

class Listener(event.Listener):
    names = []
    def on_start(self, compilation):
        function = compilation.data["dispatcher"]
        self.names.append(getattr(function, "py_func", function).__name__)
    def on_end(self, compilation):
        pass

event.register("numba:compile", Listener())
points = np.random.default_rng(0).normal(size=(3, 50))
for points in (points, np.asfortranarray(points), points[:, ::-1], np.broadcast_to(points, points.shape)):
    for columns in ([[0, 1]], [[2, 1]]):
        spans = Spans(np.array([[0, 25, 25, 50, 0, 0], [25, 50, 0, 25, 0, 0]]))
        whiteners = np.array([[np.eye(2), np.eye(2)]])
        for array in (whiteners, whiteners.swapaxes(2, 3)):
            kernels.log_density(points, np.array(columns), array, spans)
print(*(name for name in Listener.names if name in ("add", "_add_up", "whiten")))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert sorted(done.stdout.split()) == ["_add_up", "add", "whiten"]


def test_compilation_in_two_threads_is_one():
    told = []
    functions = [new_function(), new_function()]
    with watching_compilation(told.append):
        threads = [threading.Thread(target=function, args=(1.0,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert told[::2] == [True] * (len(told) // 2)
    assert told[1::2] == [False] * (len(told) // 2)
    assert told
