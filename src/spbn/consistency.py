"""Whether the parts of a network go together: a structure, the densities of its nodes, and margins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spbn.errors import ArgumentError, GraphError, quoted
from spbn.margins import Margins
from spbn.nodes.admission import refusal
from spbn.nodes.base import CPD, NodeType
from spbn.nodes.families import Family
from spbn.structure import Structure
from spbn.tables.table import Variable


def variables_of(structure: Structure, cpds: Mapping[str, CPD]) -> tuple[Variable, ...]:
    """Return the nodes and, after them, the inputs that they need; refuse densities of something else."""
    unknown = [node for node in cpds if node not in structure.nodes]
    if unknown:
        raise GraphError(f"cpds names unknown nodes: {quoted(unknown)}.")
    for family in structure.families():
        if family.node not in cpds:
            raise GraphError(f"there is no density for node {family.node!r}.")
        _require_fit(family, cpds[family.node])
    nodes = tuple(cpds[node].type.variable_of(cpds[node]) for node in structure.nodes)
    variables = (*nodes, *_input_variables(structure, cpds))
    _require_levels(variables, cpds)
    return variables


def margins_of(
    structure: Structure, variables: Sequence[Variable], margins: Margins | None
) -> Margins | None:
    """Return the transforms of a network's continuous variables; refuse others."""
    continuous = {variable.name for variable in variables if not variable.is_discrete}
    if margins is not None and structure.inputs:
        margins = margins.only(continuous)  # no node may need an input that has one
    if margins is not None and set(margins.columns) != continuous:
        raise GraphError("margins must have a transform for every continuous node, and for no other.")
    return margins


def _require_fit(family: Family, cpd: CPD) -> None:
    if not isinstance(getattr(cpd, "type", None), NodeType):
        raise ArgumentError(
            f"the density of {family.node!r} must be a fitted density, such as a LinearGaussian or a CKDE. "
            f"Got {cpd!r}."
        )
    if (cpd.node, sorted(cpd.parents), cpd.type) != (family.node, sorted(family.parents), family.type):
        raise GraphError(
            f"the density given for {family.node!r} is that of {Family(cpd.node, cpd.parents, cpd.type)}, "
            f"but the structure says {family}."
        )


def _input_variables(structure: Structure, cpds: Mapping[str, CPD]) -> list[Variable]:
    """Return the inputs that nodes need, with the levels that these know of."""
    levels = {
        variable.name: variable.levels
        for cpd in cpds.values()
        for variable in getattr(cpd, "variables", ())
        if variable.levels
    }
    return [Variable(name, levels.get(name, ())) for name in structure.used_inputs]


def _require_levels(variables: Sequence[Variable], cpds: Mapping[str, CPD]) -> None:
    """Refuse densities that do not agree on the levels of their parents."""
    known = {variable.name: variable for variable in variables}
    for variable in variables:
        if variable.name not in cpds:
            continue
        cpd = cpds[variable.name]
        parents = [known[parent] for parent in cpd.parents]
        given = {parent.name: parent for parent in getattr(cpd, "variables", ())}
        differ = [
            parent.name for parent in parents if given.get(parent.name, Variable(parent.name)) != parent
        ]
        if differ:
            raise GraphError(f"the density of {variable.name!r} has other levels of {quoted(differ)}.")
        if not cpd.type.admits(variable, parents):
            raise GraphError(refusal(cpd.type, variable, parents))
