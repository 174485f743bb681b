"""Learning: from a table to a fitted network, and how sure one can be of its arcs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spbn.learning.comparison import Comparison
    from spbn.learning.learn import LearningInterrupted
    from spbn.learning.normality import types_by_normality
    from spbn.learning.settings import LearnSettings
    from spbn.learning.stability import Confidence

#: Where names are. They are imported on first use: the command line needs the settings long before it learns.
_MODULES = {
    "Comparison": "comparison",
    "Confidence": "stability",
    "LearnSettings": "settings",
    "LearningInterrupted": "learn",
    "types_by_normality": "normality",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'spbn.learning' has no attribute {name!r}")
    return getattr(import_module(f"spbn.learning.{_MODULES[name]}"), name)


__all__ = ["Comparison", "Confidence", "LearnSettings", "LearningInterrupted", "types_by_normality"]
