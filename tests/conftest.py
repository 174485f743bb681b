"""Fixtures for all tests."""

import signal
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# Compiling takes seconds on the first example; that says nothing about the code.
hypothesis.settings.register_profile(
    "spbn", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], derandomize=True
)
hypothesis.settings.load_profile("spbn")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure():
    """Have interrupts work in all that tests start: in the background of a script they are ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Skip what compares with the reference files where they are not there."""
    if not SHARED.is_dir():
        for item in items:
            if item.get_closest_marker("shared"):
                item.add_marker(pytest.mark.skip(reason=f"needs the reference files in {SHARED.name}/"))


@pytest.fixture
def shared():
    """The folder with the reference files."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the reference files in {SHARED.name}/")
    return SHARED


@pytest.fixture
def rng():
    return np.random.default_rng(0)
