"""What nodes say about particles: densities, probabilities of regions, draws."""

from __future__ import annotations

import numpy as np

from spbn._base.arrays import FloatArray
from spbn.inference.problem import Cases
from spbn.nodes.regions import Region
from spbn.tables.table import Table


def log_density(cases: Cases, k: int, particles: FloatArray) -> FloatArray:
    """Return the log-density of a node given its parents, for nodes × particles."""
    columns = (*cases.parents[k], k)
    found: FloatArray = cases.cpd(cases.nodes[k]).logpdf(cases.table(columns, particles[list(columns)]))
    return found


def draw(cases: Cases, k: int, particles: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw a node's values given its parents, for nodes × particles."""
    parents = _parents(cases, k, particles)
    return cases.cpd(cases.nodes[k]).sample(particles.shape[1], given=parents, seed=rng)


def log_mass_in(cases: Cases, k: int, region: Region, particles: FloatArray) -> FloatArray:
    """Return the log-probability that a node is in a region given its parents, for nodes × particles."""
    return cases.cpd(cases.nodes[k]).log_mass(region, _parents(cases, k, particles))


def draw_in(
    cases: Cases, k: int, region: Region, particles: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw a node's values within a region given its parents, for nodes × particles."""
    return cases.cpd(cases.nodes[k]).draw_within(region, _parents(cases, k, particles), rng)


def _parents(cases: Cases, k: int, particles: FloatArray) -> Table:
    return cases.table(cases.parents[k], particles[list(cases.parents[k])])
