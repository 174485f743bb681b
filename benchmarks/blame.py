"""Blame: is the cell that was changed named first, and the mechanism that changed?

Networks of ten nodes with random smooth mechanisms; the default model learns from 1,000 rows. Then

- one cell of a new row is changed by four standard deviations. A case counts if the log-density of the row
  is below that of 99 % of the training rows, each left out of the fit. Beside `spbn.explain.unusual_rows` are
  the node with the greatest drop of its own (the blame of version 0.2), and DoWhy's `attribute_anomalies`
  with the same graph, for the node that is most standard deviations from its median;
- one mechanism changes: by a shift of one standard deviation of its noise, by twice that noise, or into
  another function. A case counts if a monitor raises a drift alarm within 500 rows. Beside the blame of the
  monitor is DoWhy's `distribution_change` of every leaf, over the rows up to the alarm.

    python benchmarks/blame.py [cells] [mechanisms] [cases that DoWhy gets]

DoWhy is optional (`pip install dowhy`).
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

import spbn

NODES, DEGREE, ROWS, CELLS_EACH, RARE, DRIFTING, NETWORKS = 10, 3, 1_000, 25, 0.01, 500, 20
CHANGES = ("shift", "noise", "function")
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A random smooth function of a standardised variable."""

    frequencies: FloatArray
    phases: FloatArray
    heights: FloatArray

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Curve:
        return cls(rng.normal(size=5), rng.uniform(0.0, 2.0 * np.pi, 5), rng.normal(size=5) / np.sqrt(2.5))

    def __call__(self, values: FloatArray) -> FloatArray:
        return np.asarray(np.cos(np.outer(values, self.frequencies) + self.phases) @ self.heights)


@dataclass(frozen=True)
class Truth:
    """A random graph with additive smooth mechanisms; every variable has a variance of about one."""

    seed: int
    parents: dict[str, list[str]] = field(init=False)
    curves: dict[str, list[Curve]] = field(init=False)
    #: The mean and the standard deviation of what parents do.
    scales: dict[str, tuple[float, float]] = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, NODES])
        names = [f"x{k + 1}" for k in rng.permutation(NODES)]
        joined = np.triu(rng.random((NODES, NODES)) < DEGREE / (NODES - 1), 1)
        parents = {name: [names[i] for i in np.flatnonzero(joined[:, k])] for k, name in enumerate(names)}
        object.__setattr__(self, "parents", parents)
        object.__setattr__(self, "curves", {name: [Curve.draw(rng) for _ in parents[name]] for name in names})
        object.__setattr__(self, "scales", {})
        self.draw(5_000, rng)

    def draw(self, rows: int, rng: np.random.Generator, changed: str = "", how: str = "") -> pd.DataFrame:
        """Draw rows, perhaps after a mechanism has changed."""
        columns: dict[str, FloatArray] = {}
        for name, parents in self.parents.items():
            noise = rng.standard_normal(rows) * (2.0 if (changed, how) == (name, "noise") else 1.0)
            noise += 1.0 if (changed, how) == (name, "shift") else 0.0
            if not parents:
                columns[name] = noise
                continue
            curves = self.curves[name]
            if (changed, how) == (name, "function"):
                curves = [Curve.draw(rng) for _ in curves]
            signal = np.sum([curve(columns[p]) for curve, p in zip(curves, parents, strict=True)], axis=0)
            mean, deviation = self.scales.setdefault(name, (float(signal.mean()), float(signal.std())))
            columns[name] = 0.83 * (signal - mean) / deviation + 0.55 * noise
        return pd.DataFrame({f"x{k + 1}": columns[f"x{k + 1}"] for k in range(NODES)})


@dataclass(frozen=True)
class Case:
    """A truth, its training rows, and the network that was learned from them."""

    truth: Truth
    rows: pd.DataFrame
    network: spbn.BayesianNetwork

    @classmethod
    def of(cls, seed: int) -> Case:
        truth = Truth(seed)
        rows = truth.draw(ROWS, np.random.default_rng([seed, 1]))
        return cls(truth, rows, spbn.learn(rows))


def changed_cells(case: Case, cases: int, rng: np.random.Generator) -> tuple[pd.DataFrame, list[str], int]:
    """Return rows of which one cell was changed, which one that was, and how many were tried."""
    limit = spbn.explain.unusual_rows(case.network, case.rows, top=0).alarm(RARE)
    deviations, nodes = case.rows.std(), list(case.network.nodes)
    rows, changed, tried = [], [], 0
    while len(rows) < cases and tried < 100 * cases:
        row, node = case.truth.draw(1, rng), str(rng.choice(nodes))
        row[node] += rng.choice([-4.0, 4.0]) * deviations[node]
        tried += 1
        if case.network.logpdf(row).iloc[0] < limit:
            rows.append(row)
            changed.append(node)
    return pd.concat(rows, ignore_index=True), changed, tried


def by_repair(case: Case, rows: pd.DataFrame) -> list[str]:
    """Return the first variable that the library blames for each row."""
    found = spbn.explain.unusual_rows(case.network, rows, top=len(rows)).rows
    first = {row.position: row.reasons[0].node if row.reasons else "" for row in found}
    return [first[k] for k in range(len(rows))]


def by_drop(case: Case, rows: pd.DataFrame) -> list[str]:
    """Return the node of each row whose log-density is farthest below what is typical of it."""
    usual = pd.Series(spbn.explain.typical(case.network))
    return list((usual - case.network.logpdf_by_node(rows)).idxmax(axis=1))


def changed_mechanism(case: Case, node: str, how: str, rng: np.random.Generator) -> tuple[str, pd.DataFrame]:
    """Return what a monitor blames first for a drift, and the rows up to its alarm; "" if there is none."""
    rows = case.truth.draw(DRIFTING, rng, node, how)
    found = spbn.Monitor(case.network, case.rows).update(rows)
    alarms = np.flatnonzero(found["drift_alarm"])
    if not len(alarms):
        return "", rows
    return found["drift_blame"].iloc[alarms[0]].split(", ")[0], rows[: alarms[0] + 1]


def dowhy_cells(case: Case, rows: pd.DataFrame) -> list[str]:
    """Return the node of each row to which DoWhy attributes most of the anomaly of the most unusual one."""
    import networkx as nx
    from dowhy import gcm

    graph = nx.DiGraph(list(case.network.structure.arcs))
    graph.add_nodes_from(case.network.nodes)
    model = gcm.InvertibleStructuralCausalModel(graph)
    gcm.auto.assign_causal_mechanisms(model, case.rows)
    gcm.fit(model, case.rows)
    centred = (rows - case.rows.median()).abs() / case.rows.std()
    found = []
    for k in range(len(rows)):
        shares = gcm.attribute_anomalies(model, str(centred.iloc[k].idxmax()), rows.iloc[[k]])
        found.append(max(shares, key=lambda node, shares=shares: float(shares[node][0])))
    return found


def dowhy_mechanism(case: Case, rows: pd.DataFrame) -> str:
    """Return the node to whose mechanism DoWhy attributes most of the change of all variables together."""
    import networkx as nx
    from dowhy import gcm

    graph = nx.DiGraph(list(case.network.structure.arcs))
    graph.add_nodes_from(case.network.nodes)
    model = gcm.ProbabilisticCausalModel(graph)
    gcm.auto.assign_causal_mechanisms(model, case.rows)
    blamed: dict[str, float] = dict.fromkeys(case.network.nodes, 0.0)
    for leaf in (node for node in graph if not graph.out_degree(node)):
        for node, share in gcm.distribution_change(model, case.rows, rows, leaf, num_samples=500).items():
            blamed[node] += abs(float(share))
    return max(blamed, key=lambda node: blamed[node])


def has_dowhy() -> bool:
    try:
        from dowhy import gcm
    except ImportError:
        return False
    gcm.config.disable_progress_bars()
    return True


def share(right: list[bool]) -> str:
    """Return a share with its standard error."""
    mean = float(np.mean(right))
    return f"{100 * mean:5.1f} % (± {100 * np.sqrt(mean * (1 - mean) / len(right)):.1f}) of {len(right)}"


def cells(cases: dict[int, Case], number: int, theirs: int) -> None:
    """Print how often the changed cell is named first."""
    methods = {"smallest repair": by_repair, "own log-density (0.2)": by_drop, "DoWhy": dowhy_cells}
    right: dict[str, list[bool]] = {name: [] for name in methods}
    seconds, tried = dict.fromkeys(right, 0.0), 0
    for seed in range(-(-number // CELLS_EACH)):
        case = cases.setdefault(seed, Case.of(seed))
        rows, changed, more = changed_cells(case, min(CELLS_EACH, number), np.random.default_rng([seed, 2]))
        tried += more
        for name, work in methods.items():
            few = min(theirs - len(right[name]), 5) if name == "DoWhy" else len(rows)
            if few > 0:
                began = time.process_time()
                found = work(case, rows[:few])
                seconds[name] += time.process_time() - began
                right[name] += [a == b for a, b in zip(found, changed, strict=False)]
    print(f"One cell of ten changed by four standard deviations; {tried} rows tried")
    for name, hits in right.items():
        if hits:
            print(f"  {name:24} {share(hits)}, {1e3 * seconds[name] / len(hits):.1f} ms each", flush=True)


def mechanisms(cases: dict[int, Case], number: int, theirs: int) -> None:
    """Print how often the changed mechanism is named first."""
    outcome: dict[str, list[bool]] = {how: [] for how in CHANGES}
    same: list[bool] = []
    for k in range(number):
        case = cases.setdefault(k % NETWORKS, Case.of(k % NETWORKS))
        rng, how = np.random.default_rng([k, 3]), CHANGES[k % 3]
        able = [n for n in case.network.nodes if how != "function" or case.truth.parents[n]]
        node = str(rng.choice(able))
        blamed, drifted = changed_mechanism(case, node, how, rng)
        if blamed:
            outcome[how].append(blamed == node)
            if len(same) < theirs:
                same.append(dowhy_mechanism(case, drifted) == node)
    print(f"One mechanism of ten changed; {number} tried")
    print(f"  {'monitor':24} {share([hit for hits in outcome.values() for hit in hits])}")
    for how, hits in outcome.items():
        print(f"    {how:22} {share(hits)}")
    if same:
        print(f"  {'DoWhy, the same rows':24} {share(same)}")


def main() -> None:
    """Print how often the first name is right."""
    given = [int(word) for word in sys.argv[1:4]]
    changed, drifting, theirs = given + [500, 200, 30][len(given) :]
    warnings.simplefilter("ignore")
    cases: dict[int, Case] = {}
    cells(cases, changed, theirs if has_dowhy() else 0)
    mechanisms(cases, drifting, theirs if has_dowhy() else 0)


if __name__ == "__main__":
    main()
