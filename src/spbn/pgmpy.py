"""Networks to and from pgmpy, which has to be installed: ``pip install 'pgmpy>=1.1'``.

pgmpy has no CKDE nodes and does not mix discrete nodes with Gaussian ones, so only networks whose nodes are
all linear Gaussian, or all discrete, can be converted. Structures need no converter: a pgmpy graph is a
`networkx.DiGraph`, which `Structure.from_networkx` and `DAG.from_networkx` read.
"""

from __future__ import annotations

import math
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np

from spbn.errors import ArgumentError, GraphError, PackageError, quoted, setting
from spbn.io.exchange import tables_of
from spbn.network import BayesianNetwork
from spbn.nodes.base import CPD
from spbn.nodes.discrete import ProbabilityTable
from spbn.nodes.linear_gaussian import LinearGaussian
from spbn.structure import Structure
from spbn.tables.table import Variable


def to_pgmpy(network: BayesianNetwork) -> Any:
    """Return the pgmpy model with the same graph and parameters.

    That is a `LinearGaussianBayesianNetwork`, whose nodes have a standard deviation where ours have a
    variance, or a `DiscreteBayesianNetwork`.

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
    if levels and len(levels) == len(network.variables):
        return _discrete_to_pgmpy(network, pgmpy)
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


def _discrete_to_pgmpy(network: BayesianNetwork, pgmpy: SimpleNamespace) -> Any:
    model = pgmpy.DiscreteNetwork()
    model.add_nodes_from(network.nodes)
    model.add_edges_from(network.structure.arcs)
    for node, cpd in tables_of(network, "a pgmpy DiscreteBayesianNetwork has").items():
        sizes = [len(parent.levels) for parent in cpd.variables[:-1]]
        states = {variable.name: list(variable.levels) for variable in cpd.variables}
        values = cpd.every_configuration()[1].T
        table = pgmpy.Table(node, len(cpd.levels), values, list(cpd.parents), sizes, state_names=states)
        model.add_cpds(table)
    return model


def from_pgmpy(model: Any) -> BayesianNetwork:
    """Convert a pgmpy `LinearGaussianBayesianNetwork` or `DiscreteBayesianNetwork` that has all its CPDs.

    Examples
    --------
    >>> import spbn
    >>> data = spbn.datasets.synthetic(200, seed=0)
    >>> network = spbn.learn(data, model="gbn")
    >>> from spbn.pgmpy import from_pgmpy, to_pgmpy
    >>> again = from_pgmpy(to_pgmpy(network))  # doctest: +SKIP
    """
    pgmpy = _pgmpy()
    if not isinstance(model, pgmpy.Network | pgmpy.DiscreteNetwork):
        raise ArgumentError(
            f"from_pgmpy takes a pgmpy LinearGaussianBayesianNetwork or DiscreteBayesianNetwork. "
            f"Got {type(model).__name__}."
        )
    if model.latents:
        latents = quoted(sorted(map(str, model.latents)))
        raise ArgumentError(f"an spbn network has no latent variables, but the model has {latents}.")
    is_discrete = isinstance(model, pgmpy.DiscreteNetwork)
    structure = Structure(model.nodes(), model.edges(), "discrete" if is_discrete else "lg")
    cpds: dict[str, CPD] = {}
    for node in structure.nodes:
        cpd = model.get_cpds(node)
        if cpd is None:
            raise GraphError(f"the model has no CPD for {node!r}: fit it, or add one.")
        evidence = cpd.variables[1:] if is_discrete else cpd.evidence
        if set(evidence) != set(model.get_parents(node)):
            raise GraphError(
                f"the CPD of {node!r} has the parents {quoted(evidence)}, "
                f"but the graph says {quoted(model.get_parents(node))}."
            )
        cpds[node] = (_table if is_discrete else _line)(cpd, structure)
    return BayesianNetwork(structure, cpds)


def _line(cpd: Any, structure: Structure) -> LinearGaussian:
    intercept, *slopes = (float(value) for value in cpd.beta)
    return LinearGaussian(cpd.variable, tuple(cpd.evidence), intercept, tuple(slopes), float(cpd.std) ** 2)


def _table(cpd: Any, structure: Structure) -> ProbabilityTable:
    variables = {name: Variable(name, tuple(map(str, cpd.state_names[name]))) for name in cpd.variables}
    parents = structure.parents(cpd.variable)
    values = np.moveaxis(np.asarray(cpd.values, dtype=np.float64), 0, -1)
    values = values.transpose([*(cpd.variables.index(name) - 1 for name in parents), -1])
    codes = np.stack([axis.ravel() for axis in np.indices(values.shape[:-1])], axis=0).T if parents else None
    own = values.shape[-1]
    return ProbabilityTable.of_configurations(
        variables[cpd.variable],
        [variables[name] for name in parents],
        np.zeros((1, 0), dtype=np.int64) if codes is None else codes,
        values.reshape(-1, own),
        np.full(own, 1.0 / own),
    )


def _pgmpy() -> SimpleNamespace:
    """Import what is needed from pgmpy, or say how to install it."""
    try:
        factors = import_module("pgmpy.factors.continuous")
        tables = import_module("pgmpy.factors.discrete")
        models = import_module("pgmpy.models")
    except ImportError as error:
        raise PackageError(f"this needs the package pgmpy ({error}): pip install 'pgmpy>=1.1'.") from None
    return SimpleNamespace(
        CPD=factors.LinearGaussianCPD,
        Network=models.LinearGaussianBayesianNetwork,
        Table=tables.TabularCPD,
        DiscreteNetwork=models.DiscreteBayesianNetwork,
    )
