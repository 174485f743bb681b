"""Whole numbers in few bytes."""

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spbn._base.files import ArrayWriter, from_bytes, to_bytes

WHOLE = st.integers(-(2**53), 2**53) | st.sampled_from([0, 1, -1, 2**60, -(2**61)])


@given(st.lists(WHOLE))
def test_numbers_come_back(numbers):
    column = np.array(numbers, dtype=np.float64)
    assert np.array_equal(from_bytes(to_bytes(column)), column)


@given(st.lists(WHOLE, min_size=1, max_size=5))
def test_bytes_are_what_the_format_says(numbers):
    content = to_bytes(np.array(numbers, dtype=np.float64))
    written = [2 * m if m >= 0 else -2 * m - 1 for m in numbers]
    assert content == bytes((m >> 8 * (7 - plane)) & 255 for plane in range(8) for m in written)


def test_small_numbers_take_hardly_more_than_their_information():
    """Integers with a standard deviation of 1,000 have 12 bits of entropy."""
    numbers = np.round(np.random.default_rng(0).normal(scale=1000.0, size=100_000))
    assert len(zlib.compress(to_bytes(numbers))) < 1.1 * 100_000 * 12.02 / 8


def test_numbers_that_are_too_large_are_stored_as_they_are():
    arrays = ArrayWriter()
    assert arrays.add(np.array([1.0, 2.0**62]), integers=True) == 0
    assert arrays.add(np.array([1.0, 2.0]), integers=True) == 1
    assert arrays.add(np.array([1.0, 2.0])) == 2  # the same numbers, of the other kind
    assert arrays.integers == {1}
