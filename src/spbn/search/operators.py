"""The moves of a structure search: small frozen values.

Applied to a structure, an operator gives a new one; its inverse undoes that.
"""

from __future__ import annotations

from dataclasses import dataclass

from spbn.nodes.base import NodeType
from spbn.structure import Structure


@dataclass(frozen=True)
class AddArc:
    """Add the arc source → target."""

    source: str
    target: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.target,)

    @property
    def inverse(self) -> RemoveArc:
        """The operator that undoes this one."""
        return RemoveArc(self.source, self.target)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure with the arc."""
        return structure.with_dag(structure.dag.with_arc(self.source, self.target))

    def __str__(self) -> str:
        return f"add {self.source} → {self.target}"


@dataclass(frozen=True)
class RemoveArc:
    """Remove the arc source → target."""

    source: str
    target: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.target,)

    @property
    def inverse(self) -> AddArc:
        """The operator that undoes this one."""
        return AddArc(self.source, self.target)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure without the arc."""
        return structure.with_dag(structure.dag.without_arc(self.source, self.target))

    def __str__(self) -> str:
        return f"remove {self.source} → {self.target}"


@dataclass(frozen=True)
class ReverseArc:
    """Reverse the arc source → target."""

    source: str
    target: str

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.source, self.target)

    @property
    def inverse(self) -> ReverseArc:
        """The operator that undoes this one."""
        return ReverseArc(self.target, self.source)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure with the arc reversed."""
        return structure.with_dag(structure.dag.with_reversed_arc(self.source, self.target))

    def __str__(self) -> str:
        return f"reverse {self.source} → {self.target}"


@dataclass(frozen=True)
class ChangeType:
    """Change the type of a node."""

    node: str
    before: NodeType
    after: NodeType

    @property
    def touched(self) -> tuple[str, ...]:
        """The nodes whose families change."""
        return (self.node,)

    @property
    def inverse(self) -> ChangeType:
        """The operator that undoes this one."""
        return ChangeType(self.node, self.after, self.before)

    def apply(self, structure: Structure) -> Structure:
        """Return the structure with the new type."""
        return structure.with_type(self.node, self.after)

    def __str__(self) -> str:
        return f"{self.node}: {self.before} → {self.after}"


Operator = AddArc | RemoveArc | ReverseArc | ChangeType
