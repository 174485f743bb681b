"""Node types: one file and one line in `MODULES` for each.

`base`
    What a density (`CPD`) and a node type are, and what is known of a variable if its value is not.
`linear_gaussian`, `ckde`
    The types of the paper.
`kde`
    The kernels of a CKDE, on rows; `kernels.compressed` has those without.
`curve`
    Smooth functions of the parents, with noise around them.
`blend`
    A mixture of all of them, with kernels at several scales.
`tails`
    What a blend says about rows that are far from everything.
`discrete`, `by_configuration`
    Tables of probabilities, and densities of any type that depend on discrete parents.
`families`
    How families of all types are scored: many at a time, on rows that their parameters were not fitted to.
"""

from importlib import import_module

from spbn.nodes.base import CPD, Appearance, Description, NodeType, ParameterTable, register, registered

#: The modules of the package's types. Their order breaks ties, so new ones go at the end.
MODULES = (
    "linear_gaussian",
    "ckde",
    "blend",
    "discrete",
    "curve",
)

for _module in MODULES:
    register(import_module(f"spbn.nodes.{_module}").NODE_TYPE)

from spbn.nodes.blend import Blend  # noqa: E402 -- once the types are registered
from spbn.nodes.by_configuration import ByConfiguration  # noqa: E402
from spbn.nodes.ckde import CKDE  # noqa: E402
from spbn.nodes.curve import Curve  # noqa: E402
from spbn.nodes.discrete import ProbabilityTable  # noqa: E402
from spbn.nodes.families import Family, families_of  # noqa: E402
from spbn.nodes.kde import KDE  # noqa: E402
from spbn.nodes.linear_gaussian import LinearGaussian  # noqa: E402
from spbn.rows.families import FamilyBatch  # noqa: E402
from spbn.rows.store import FitSettings, Scorer  # noqa: E402
from spbn.tables.table import Variable  # noqa: E402

__all__ = [
    "CKDE",
    "CPD",
    "KDE",
    "Appearance",
    "Blend",
    "ByConfiguration",
    "Curve",
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
    "families_of",
    "register",
    "registered",
]
