"""One question: what is known about some variables, and what that says about the others.

The question is cut to what matters. Unknown nodes that are neither known about nor ancestors of what is
known are drawn at the end. The others fall into groups that are independent given what is known; each is
answered in the simplest way that works: exactly, by weighted forward samples, or by tempered sequential
Monte Carlo.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from spbn._base.arrays import FloatArray, Seed, generator, require_count
from spbn._base.checks import choice
from spbn.errors import ArgumentError, SpbnWarning, argument, quoted
from spbn.inference import exact
from spbn.inference.importance import Particles, Target, concatenate, draw_rest, sample_by_weighting
from spbn.inference.posterior import Posterior
from spbn.inference.problem import Evidence, EvidenceRows, components, read_evidence
from spbn.inference.smc import resample, sample_by_tempering
from spbn.joint import Joint

Method = Literal["auto", "exact", "weighting", "smc"]
METHODS: tuple[Method, ...] = get_args(Method)
ENOUGH = 0.5  # of the draws, which weighting must be worth
#: If a forward sample is worth this much, more of them cost less than anything else; a few more than needed.
WORTH_MORE, MARGIN = 0.04, 1.2
FAR_BELOW = 30.0  # nats below what is usual of a node
FEWEST, FEWEST_SHARE = 50, 0.1  # independent draws that a posterior should be worth, at least one of these


def query(
    network: Joint,
    evidence: Mapping[str, object] | None = None,
    *,
    do: Mapping[str, object] | None = None,
    n: int = 2000,
    seed: Seed = 0,
    method: Method = "auto",
) -> Posterior:
    """Return what is likely, given evidence and interventions; see `Joint.query`."""
    require_count(n)
    if n < 1:
        raise ArgumentError(f"{argument('n')} must be 1 or more, to have draws to answer from. Got {n}.")
    choice("method", method, METHODS)
    known = read_evidence(network, evidence, argument("evidence"))
    set_to = read_evidence(network, do, argument("do"))
    _require_sense(known, set_to)
    cases = _cases(network, known, set_to)
    return answer(cases, n, generator(seed), method, evidence=evidence or {}, do=do or {})


def answer(
    cases: EvidenceRows,
    n: int,
    rng: np.random.Generator,
    method: str,
    *,
    evidence: Mapping[str, object],
    do: Mapping[str, object],
) -> Posterior:
    """Answer one case."""
    solved, sampled = _split_by_method(cases, method)
    if method == "exact" and sampled:
        raise ArgumentError(
            "there is no exact answer: nodes that matter are not linear Gaussian, or an interval is given. "
            "Use method='auto'."
        )
    found = {group: _sample(Target.of(cases, group), n, rng, method) for group in sampled}
    log_evidence, variance, effective = float(log_constants(cases)[0]), 0.0, float(n)
    for part in found.values():
        if not np.isfinite(part.log_evidence[0]) or not part.effective[0] > 0.0:
            raise ArgumentError(_impossible(evidence))
        log_evidence += float(part.log_evidence[0])
        variance += float(part.error[0]) ** 2
        effective = min(effective, float(part.effective[0]))
    methods = dict.fromkeys(part.method for part in found.values())
    values, weights = _combine(cases, found, n, rng)
    mixture = exact.solve(cases, solved)[0] if solved else None
    if mixture is not None:
        if not np.isfinite(mixture.log_evidence):  # there is nothing to draw from
            raise ArgumentError(_impossible(evidence))
        drawn, codes = mixture.draw(len(weights), rng)
        values[list(mixture.nodes)], values[list(mixture.levels)] = drawn, codes
        log_evidence += mixture.log_evidence
        methods = {"exact": None, **methods}
    if not np.isfinite(log_evidence):
        raise ArgumentError(_impossible(evidence))
    draw_rest(cases, values[:, None], rng)
    if found:
        _warn_of_few_draws(effective, n)
    _warn_of_far_values(cases, values)
    for k, node in enumerate(cases.nodes):
        if not cases.unknown[0, k] and node not in cases.fixed:
            log_evidence += float(cases.log_slopes(k, cases.known[:, k])[0])
    variables = tuple(v for v in cases.network.variables if cases.unknown[0, cases.place[v.name]])
    named = " and ".join(methods) or ("forward" if variables else "exact")
    return Posterior(
        dict(evidence),
        dict(do),
        variables,
        named,
        effective,
        log_evidence,
        math.sqrt(variance),
        cases,
        values,
        weights,
        mixture,
    )


def _sample(part: Target, n: int, rng: np.random.Generator, method: str) -> Particles:
    """Answer a group by particles, and by tempering where forward samples are worth little."""
    found = sample_by_weighting(part, n, rng)
    worth = found.effective[0] / n
    if method == "weighting" or (method != "smc" and worth >= ENOUGH):
        return found
    if method != "smc" and worth >= WORTH_MORE:
        return concatenate(found, sample_by_weighting(part, math.ceil(MARGIN * ENOUGH / worth * n) - n, rng))
    begun = part.with_references(found.states)
    start = sample_by_weighting(begun, n, rng) if begun.references else found
    return sample_by_tempering(begun, start.states, rng, share=ENOUGH)


def _combine(
    cases: EvidenceRows, found: Mapping[tuple[int, ...], Particles], n: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Put draws of groups beside what is known: values, nodes × draws, and the weights of the draws.

    One group keeps the weights of its draws. Several are drawn anew by theirs, to have as many each.
    """
    if len(found) == 1:
        ((group, part),) = found.items()
        values = np.repeat(cases.known.T, part.log_weights.shape[1], axis=1)
        values[list(group)] = part.states[list(group), 0]
        weights = np.exp(part.log_weights[0] - part.log_weights[0].max())
        return values, weights / weights.sum()
    values = np.repeat(cases.known.T, n, axis=1)
    for group, part in found.items():
        values[list(group)] = part.states[list(group), 0][:, resample(part.log_weights, n, rng)[0]]
    return values, np.full(n, 1.0 / n)


def _split_by_method(cases: EvidenceRows, method: str) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """Return the unknown nodes that are answered exactly, all together, and the groups that are not."""
    solved: tuple[int, ...] = ()
    sampled = []
    for group in components(cases):
        together = tuple(sorted((*solved, *group)))
        if method in ("auto", "exact") and exact.is_solvable(cases, together):
            solved = together
        else:
            sampled.append(group)
    if method in ("auto", "exact"):
        solved = exact.with_unobserved_descendants(cases, solved)
    return solved, sampled


def log_constants(cases: EvidenceRows) -> FloatArray:
    """Log-density of what is known about nodes whose parents are known; in all cases the same ones."""
    total = np.zeros(cases.number)
    for k in range(len(cases.nodes)):
        if not cases.relevant[0, k] or cases.unknown[0, list(cases.parents[k])].any():
            continue
        if cases.ends[0, k]:
            total += cases.log_mass(k, cases.known.T)
        elif not cases.unknown[0, k]:
            total += cases.log_density(k, cases.known.T)
    return total


def _warn_of_few_draws(effective: float, n: int) -> None:
    if effective < min(FEWEST, FEWEST_SHARE * n):
        warnings.warn(
            SpbnWarning(
                f"the answer rests on only {effective:.0f} independent draws: what is known is far from what "
                f"the network expects. Ask for more draws ({argument('n')}), or check the evidence for "
                f"values outside the data."
            ),
            stacklevel=5,
        )


def _warn_of_far_values(cases: EvidenceRows, values: FloatArray) -> None:
    """Warn of what is known if the network finds it far less likely than any row it was learned from."""
    typical = cases.network.record.typical
    for k, node in enumerate(cases.nodes):
        is_known = not cases.unknown[0, k] or node in cases.regions
        if node in typical and node not in cases.fixed and is_known:
            best = float((cases.log_density(k, values) + cases.log_slopes(k, values[k])).max())
            if best < typical[node] - FAR_BELOW:
                what = "interval" if node in cases.regions else "value"
                warnings.warn(
                    f"the {what} of {node!r} is far outside what the network was learned from: its "
                    f"log-density is {best:.0f}, where {typical[node]:.1f} is usual. What follows from it "
                    f"rests on the tails of densities, about which data say little.",
                    stacklevel=5,
                )


def _cases(network: Joint, known: Evidence, set_to: Evidence) -> EvidenceRows:
    nodes = network.order
    values: FloatArray = np.full((1, len(nodes)), np.nan)
    for name, value in {**known.points, **set_to.points}.items():
        values[0, nodes.index(name)] = value
    absent = [name for name in network.inputs if np.isnan(values[0, nodes.index(name)])]
    if absent:
        raise ArgumentError(
            f"the network says nothing about its inputs, so {argument('evidence')} must have their values. "
            f"It lacks {quoted(absent)}."
        )
    return EvidenceRows(network, values, known.regions, frozenset(set_to.points) | set(network.inputs))


def _require_sense(known: Evidence, set_to: Evidence) -> None:
    if set_to.regions:
        raise ArgumentError(
            f"{argument('do')} sets variables to values, not to intervals or sets: {quoted(set_to.regions)}."
        )
    both = [name for name in set_to.points if name in known.points or name in known.regions]
    if both:
        raise ArgumentError(
            f"{quoted(both)} is in {argument('evidence')} and in {argument('do')}: it is either observed or "
            f"set from outside."
        )


def _impossible(evidence: Mapping[str, object]) -> str:
    return (
        f"the evidence is impossible under the network, or too far outside for any method to reach it: "
        f"{dict(evidence)!r:.200}. Check its values against the data."
    )
