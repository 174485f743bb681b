"""Gaussian networks to and from pgmpy, which has to be installed: ``pip install 'pgmpy>=1.1'``.

pgmpy has no CKDE nodes and does not mix discrete nodes with Gaussian ones, so only networks whose nodes
are all linear Gaussian can be converted. Structures need no converter: a pgmpy graph is a `networkx.DiGraph`,
which `Structure.from_networkx` and `DAG.from_networkx` read.
"""

from __future__ import annotations

import math
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from spbn.errors import ArgumentError, GraphError, PackageError, quoted, setting
from spbn.network import BayesianNetwork
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.structure import Structure


def to_pgmpy(network: BayesianNetwork) -> Any:
    """Return a `pgmpy.models.LinearGaussianBayesianNetwork` with the same graph and parameters.

    pgmpy nodes have a standard deviation, spbn nodes a variance.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> from spbn.pgmpy import to_pgmpy
    >>> model = to_pgmpy(network)  # doctest: +SKIP
    """
    pgmpy = _pgmpy()
    if not isinstance(network, BayesianNetwork):
        raise ArgumentError(f"to_pgmpy takes a fitted BayesianNetwork. Got {type(network).__name__}.")
    levels = [variable.name for variable in network.variables if variable.is_discrete]
    if levels:
        raise ArgumentError(
            f"a pgmpy LinearGaussianBayesianNetwork has no discrete nodes, but these are: {quoted(levels)}. "
            f"Learn without them ({setting('drop', levels)} in learn)."
        )
    lines = {node: line for node in network.nodes if (line := network.cpds[node].as_linear()) is not None}
    others = [node for node in network.nodes if node not in lines]
    if others:
        raise ArgumentError(
            f"pgmpy has linear Gaussian nodes only, but these are of another type: {quoted(others)}. "
            f"Learn with {setting('model', 'gbn')}, or fit the structure with all types 'lg'."
        )
    model = pgmpy.Network()
    if network.inputs:
        raise ArgumentError(f"pgmpy has no inputs, and the network has {quoted(network.inputs)}.")
    model.add_nodes_from(network.nodes)
    model.add_edges_from(network.structure.arcs)
    for line in lines.values():
        beta, deviation = [line.intercept, *line.coefficients], math.sqrt(line.variance)
        cpd = pgmpy.CPD(variable=line.node, beta=beta, std=deviation, evidence=list(line.parents))
        model.add_cpds(cpd)
    return model


def from_pgmpy(model: Any) -> BayesianNetwork:
    """Convert a `pgmpy.models.LinearGaussianBayesianNetwork` that has all its CPDs.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> from spbn.pgmpy import from_pgmpy, to_pgmpy
    >>> again = from_pgmpy(to_pgmpy(network))  # doctest: +SKIP
    """
    pgmpy = _pgmpy()
    if not isinstance(model, pgmpy.Network):
        raise ArgumentError(
            f"from_pgmpy takes a pgmpy LinearGaussianBayesianNetwork. Got {type(model).__name__}."
        )
    if model.latents:
        latents = quoted(sorted(map(str, model.latents)))
        raise ArgumentError(f"an spbn network has no latent variables, but the model has {latents}.")
    structure = Structure(model.nodes(), model.edges())
    lines = {}
    for node in structure.nodes:
        cpd = model.get_cpds(node)
        if cpd is None:
            raise GraphError(f"the model has no CPD for {node!r}: fit it, or add one.")
        if set(cpd.evidence) != set(model.get_parents(node)):
            raise GraphError(
                f"the CPD of {node!r} has the parents {quoted(cpd.evidence)}, "
                f"but the graph says {quoted(model.get_parents(node))}."
            )
        intercept, *slopes = (float(value) for value in cpd.beta)
        lines[node] = LinearGaussian(node, tuple(cpd.evidence), intercept, tuple(slopes), float(cpd.std) ** 2)
    return BayesianNetwork(structure, lines)


def _pgmpy() -> SimpleNamespace:
    """Import what is needed from pgmpy, or say how to install it."""
    try:
        factors = import_module("pgmpy.factors.continuous")
        models = import_module("pgmpy.models")
    except ImportError as error:
        raise PackageError(f"this needs the package pgmpy ({error}): pip install 'pgmpy>=1.1'.") from None
    return SimpleNamespace(CPD=factors.LinearGaussianCPD, Network=models.LinearGaussianBayesianNetwork)
