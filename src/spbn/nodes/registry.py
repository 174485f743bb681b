"""The node types of the package. Their order breaks ties: a new one goes to the end."""

from __future__ import annotations

from spbn.nodes.base import register
from spbn.nodes.ckde import CKDE_TYPE
from spbn.nodes.linear_gaussian import LG_TYPE

register(LG_TYPE)
register(CKDE_TYPE)
