"""The node types of the package, by their modules. Their order breaks ties, so new ones go at the end."""

from __future__ import annotations

from importlib import import_module

from spbn.nodes.base import register

MODULES = (
    "linear_gaussian",
    "ckde",
    "blend",
    "discrete",
)

for module in MODULES:
    register(import_module(f"spbn.nodes.{module}").NODE_TYPE)
