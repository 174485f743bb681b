"""Networks to ask, and slow obvious answers."""

import itertools

import numpy as np
import pandas as pd

import spbn
from spbn import BayesianNetwork, Structure
from spbn.datasets import synthetic, synthetic_structure
from spbn.nodes import LinearGaussian, ProbabilityTable
from spbn.nodes.by_configuration import ByConfiguration
from spbn.rows.families import Configurations
from spbn.tables.table import Variable


def joint_normal(network):
    """Mean and covariance of a Gaussian network by solving for all nodes at once, and the order of nodes."""
    order = list(network.nodes)
    at = {node: i for i, node in enumerate(order)}
    slopes, intercepts = np.zeros((len(order), len(order))), np.zeros(len(order))
    variances = np.zeros(len(order))
    for node in order:
        cpd = network.cpds[node]
        intercepts[at[node]], variances[at[node]] = cpd.intercept, cpd.variance
        for parent, slope in zip(cpd.parents, cpd.coefficients, strict=True):
            slopes[at[node], at[parent]] = slope
    effects = np.linalg.inv(np.eye(len(order)) - slopes)
    return order, effects @ intercepts, effects @ np.diag(variances) @ effects.T


def chain():
    """A → B → C, all linear Gaussian."""
    cpds = {
        "A": LinearGaussian("A", (), 1.0, (), 4.0),
        "B": LinearGaussian("B", ("A",), -1.0, (0.5,), 1.0),
        "C": LinearGaussian("C", ("B",), 0.0, (2.0,), 9.0),
    }
    return BayesianNetwork(Structure("ABC", [("A", "B"), ("B", "C")]), cpds)


def semiparametric(rows=300):
    """The network of the paper."""
    return BayesianNetwork.fit(synthetic_structure(), synthetic(rows, seed=1))


def blended(rows=200):
    """The same graph, of blends with margins."""
    structure = Structure("ABCDE", synthetic_structure().arcs, "blend")
    return BayesianNetwork.fit(structure, synthetic(rows, seed=2), margins="yeo-johnson")


def copies(number, kind, rows=120):
    """Copies of that graph, the first node of each below the fourth of the one before."""
    arcs, frames = [], []
    for copy in range(number):
        frame = synthetic(rows, seed=copy).add_suffix(str(copy))
        if copy:
            frame[f"A{copy}"] += 0.3 * frames[-1][f"D{copy - 1}"]
            arcs.append((f"D{copy - 1}", f"A{copy}"))
        arcs += [(f"{source}{copy}", f"{target}{copy}") for source, target in synthetic_structure().arcs]
        frames.append(frame)
    table = pd.concat(frames, axis=1)
    return BayesianNetwork.fit(Structure(list(table.columns), arcs, kind), table)


def populations(rows=400):
    """Three populations of four variables, which no column tells, and curves in each."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, rows)
    centres = rng.normal(0.0, 2.0, (3, 4))
    frame = pd.DataFrame(centres[group] + rng.normal(size=(rows, 4)), columns=list("wxyz"))
    frame["z"] += np.sin(frame["w"])
    return spbn.learn(frame, hidden=3, types=("curve",), seed=0)


def mixed_frame(rows, seed=0):
    """Two discrete columns and three of numbers that depend on them."""
    rng = np.random.default_rng(seed)
    sky = rng.choice(["clear", "cloudy", "rain"], size=rows, p=[0.5, 0.3, 0.2])
    wet = np.where(sky == "rain", rng.random(rows) < 0.9, rng.random(rows) < 0.1)
    heat = np.select([sky == "clear", sky == "cloudy"], [20.0, 15.0], 10.0) + rng.normal(0, 3, rows)
    sales = np.where(wet, 5.0 + 0.1 * heat, heat) + rng.normal(0, 1, rows)
    noise = np.sin(sales) + rng.normal(0, 0.3, rows)
    return pd.DataFrame({"sky": sky, "wet": wet, "heat": heat, "sales": sales, "noise": noise})


MIXED_ARCS = [("sky", "wet"), ("sky", "heat"), ("wet", "sales"), ("heat", "sales"), ("sales", "noise")]


def mixed(node_type="lg", rows=400):
    """A network of these columns."""
    types = {"sky": "discrete", "wet": "discrete", **dict.fromkeys(["heat", "sales", "noise"], node_type)}
    structure = Structure(list(types), MIXED_ARCS, types)
    return spbn.BayesianNetwork.fit(structure, mixed_frame(rows))


def random_clg(rng, discrete=3, continuous=3):
    """A conditional Gaussian network with random arcs and parameters; some levels are impossible."""
    levels = {f"d{i}": tuple("abc"[: rng.integers(2, 4)]) for i in range(discrete)}
    nodes = [*levels, *(f"x{i}" for i in range(continuous))]
    parents = {
        node: tuple(p for p in nodes[:k] if rng.random() < 0.5 and (node not in levels or p in levels))
        for k, node in enumerate(nodes)
    }
    cpds = {}
    for node, given in parents.items():
        by = [Variable(p, levels[p]) for p in given if p in levels]
        number = int(np.prod([len(v.levels) for v in by]))
        if node in levels:
            rows = rng.dirichlet(np.ones(len(levels[node])), number)
            rows[rng.random(rows.shape) < 0.1] = 0.0
            rows = np.where(rows.sum(axis=1, keepdims=True) > 0, rows, 1.0)
            rows /= rows.sum(axis=1, keepdims=True)
            every = Configurations(tuple(by), np.arange(number))
            cpds[node] = ProbabilityTable(node, given, levels[node], every, rows, rows[0])
            continue
        numbers = tuple(p for p in given if p not in levels)

        def line(node=node, numbers=numbers):
            slopes = tuple(rng.normal(size=len(numbers)).tolist())
            return LinearGaussian(node, numbers, rng.normal(), slopes, float(rng.uniform(0.1, 2.0)))

        if not by:
            cpds[node] = line()
            continue
        known = np.flatnonzero(rng.random(number) < 0.7)
        rest = line() if len(known) < number else None
        lines = tuple(line() for _ in known)
        cpds[node] = ByConfiguration(node, given, Configurations(tuple(by), known), lines, rest)
    order = list(rng.permutation(nodes))
    types = {node: "discrete" if node in levels else "lg" for node in nodes}
    arcs = [(p, node) for node, given in parents.items() for p in given]
    return BayesianNetwork(Structure(order, arcs, types), cpds)


def enumerated(network, evidence, do=None):
    """Every configuration of discrete nodes: its levels, its log-weight, and the continuous nodes given it.

    With plain matrices: the joint normal distribution of all continuous nodes, conditioned on what is known.
    """
    do = do or {}
    discrete = {v.name: v.levels for v in network.variables if v.is_discrete}
    numbers = [v.name for v in network.variables if not v.is_discrete]
    known = [name for name in numbers if name in evidence]
    unknown = [name for name in numbers if name not in evidence]
    for chosen in itertools.product(*discrete.values()):
        levels = dict(zip(discrete, chosen, strict=True))
        told = {**evidence, **do}
        if any(name in told and levels[name] not in np.atleast_1d(told[name]) for name in levels):
            continue
        one = {name: [level] for name, level in levels.items()}
        with np.errstate(divide="ignore"):
            log_weight = sum(network.cpds[name].logpdf(one)[0] for name in levels if name not in do)
        slopes, intercepts = np.zeros((len(numbers), len(numbers))), np.zeros(len(numbers))
        variances = np.zeros(len(numbers))
        for i, name in enumerate(numbers):
            if name in do:
                intercepts[i] = do[name]
                continue
            cpd = network.cpds[name]
            if isinstance(cpd, ByConfiguration):
                labels = [v.levels.index(levels[v.name]) for v in cpd.configurations.variables]
                there = np.flatnonzero((cpd.configurations.codes == labels).all(axis=1))
                cpd = cpd.densities[there[0]] if len(there) else cpd.otherwise
            intercepts[i], variances[i] = cpd.intercept, cpd.variance
            for parent, slope in zip(cpd.parents, cpd.coefficients, strict=True):
                slopes[i, numbers.index(parent)] = slope
        effects = np.linalg.inv(np.eye(len(numbers)) - slopes)
        mean, covariance = effects @ intercepts, effects @ np.diag(variances) @ effects.T
        a, b = [numbers.index(n) for n in unknown], [numbers.index(n) for n in known]
        if b:
            inverse = np.linalg.inv(covariance[np.ix_(b, b)])
            rest = np.array([evidence[n] for n in known]) - mean[b]
            sign_and_log = np.linalg.slogdet(2 * np.pi * covariance[np.ix_(b, b)])
            log_weight += -0.5 * (rest @ inverse @ rest + sign_and_log[1])
            gain = covariance[np.ix_(a, b)] @ inverse
            mean, covariance = (
                mean[a] + gain @ rest,
                covariance[np.ix_(a, a)] - gain @ covariance[np.ix_(b, a)],
            )
        else:
            mean, covariance = mean[a], covariance[np.ix_(a, a)]
        yield levels, log_weight, pd.Series(mean, unknown), pd.DataFrame(covariance, unknown, unknown)
