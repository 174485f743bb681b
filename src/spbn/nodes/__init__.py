"""Node types: one file and one line in `registry` for each.

`base`
    What a node type, a density and a scorer are.
`families`, `scorers`, `family_scorer`
    How families are scored: many at a time, on rows that their parameters were not fitted to.
`linear_gaussian`, `ckde`
    The types of the paper.
`blend`
    A mixture of both, with kernels at several scales.
`compact`, `compact_blend`
    The same densities without training rows.
`discrete`, `by_configuration`
    Tables of probabilities, and densities of any type that depend on discrete parents.
"""

from spbn.nodes import registry  # noqa: F401 -- registers the types
from spbn.nodes.base import CPD, Description, NodeType, ParameterTable, register, registered
from spbn.nodes.blend import Blend
from spbn.nodes.by_configuration import ByConfiguration
from spbn.nodes.ckde import CKDE
from spbn.nodes.compact import CompactCKDE
from spbn.nodes.compact_blend import CompactBlend
from spbn.nodes.discrete import ProbabilityTable
from spbn.nodes.families import Family
from spbn.nodes.kde import KDE
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.rows.families import FamilyBatch
from spbn.rows.store import FitSettings, Scorer
from spbn.tables.table import Variable

__all__ = [
    "CKDE",
    "CPD",
    "KDE",
    "Blend",
    "ByConfiguration",
    "CompactBlend",
    "CompactCKDE",
    "Description",
    "Family",
    "FamilyBatch",
    "FitSettings",
    "LinearGaussian",
    "NodeType",
    "ParameterTable",
    "ProbabilityTable",
    "Scorer",
    "Variable",
    "register",
    "registered",
]
