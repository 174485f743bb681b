"""What a search remembers is freed when it is over."""

import gc
import importlib

import pytest

import spbn
from spbn.learning.settings import LearnSettings
from spbn.rows.memory import MemoryRows


def stores() -> int:
    # Not isinstance, which asks proxies of objects that are gone for their class.
    return sum(type(each) is MemoryRows for each in gc.get_objects())


@pytest.fixture
def without_collections():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("options", [{}, {"hidden": 2, "model": "gbn"}])
def test_stores_of_rows_do_not_outlive_a_long_search(options, without_collections, monkeypatch):
    module = importlib.import_module("spbn.learning.learn")
    data, before = spbn.datasets.synthetic(150, seed=0), stores()
    monkeypatch.setattr(module, "LONG", 3600.0)
    spbn.learn(data, **options)
    assert stores() > before  # they know each other, so that only a collection frees them
    monkeypatch.setattr(module, "LONG", 0.0)
    spbn.learn(data, **options)
    assert stores() <= before
    module.learn_structure(data, LearnSettings(**options))
    assert stores() <= before
