"""Workers that the tests of this folder share."""

import pytest

from spbn.dask.client import local_workers


@pytest.fixture(scope="session")
def client():
    """Two workers that are threads of this process."""
    with local_workers(2, processes=False) as client:
        yield client


@pytest.fixture
def processes():
    """Two workers that are processes, for one test: it may kill one, and others come late or never."""
    with local_workers(2) as client:
        yield client
