import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import logsumexp

from spbn.inference.elimination import Elimination, Order


def tables(seed, nodes=5, cases=2):
    """Random scopes and logarithms, of which some are -inf; the last table has no node."""
    rng = np.random.default_rng(seed)
    sizes = {10 * k: int(rng.integers(1, 4)) for k in range(nodes)}
    scopes = [tuple(node for node in sizes if rng.random() < 0.5) for _ in range(rng.integers(1, 7))]
    scopes = [*scopes, tuple(sizes)[:2], ()]
    logs = []
    for scope in scopes:
        shape = (int(rng.choice([1, cases])), *(sizes[node] for node in scope))
        found = rng.normal(0.0, 3.0, shape)
        logs.append(np.where(rng.random(shape) < 0.05, -np.inf, found))
    return sizes, scopes, logs


def whole(sizes, scopes, logs, cases=2):
    """The product of everything: cases × levels of all nodes that some table has."""
    letters = dict(zip(sizes, string.ascii_lowercase, strict=False))
    used = [node for node in sizes if any(node in scope for scope in scopes)]
    terms = ["z" + "".join(letters[node] for node in scope) for scope in scopes]
    full = [np.broadcast_to(np.exp(table), (cases, *table.shape[1:])) for table in logs]
    return used, np.einsum(",".join(terms) + "->z" + "".join(letters[node] for node in used), *full)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6))
def test_sums_and_marginals_are_those_of_the_whole_product(seed):
    sizes, scopes, logs = tables(seed)
    used, product = whole(sizes, scopes, logs)
    found = Elimination(Order.of(scopes, sizes), logs)
    total = product.reshape(2, -1).sum(axis=1)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.broadcast_to(found.log_total, 2), np.log(total), rtol=1e-12)
    if not (total > 0.0).all():
        return
    for number, scope in enumerate(scopes):
        others = tuple(1 + axis for axis, node in enumerate(used) if node not in scope)
        expected = product.sum(axis=others) / total.reshape(-1, *(1,) * len(scope))
        marginal = np.broadcast_to(found.marginal(number), expected.shape)
        np.testing.assert_allclose(marginal, expected, rtol=1e-10, atol=1e-14)
        assert (marginal <= 1.0).all()


def test_a_factor_changes_its_table():
    sizes, scopes, logs = tables(3)
    order = Order.of(scopes, sizes)
    factor = np.random.default_rng(0).normal(size=logs[0].shape)
    found = Elimination(order, logs).times({0: factor})
    np.testing.assert_allclose(found.log_total, Elimination(order, [logs[0] + factor, *logs[1:]]).log_total)


def test_what_no_floating_point_number_can_hold():
    """Two tables that contradict each other by thousands of nats still have a product."""
    logs = [np.array([[0.0, -2000.0]]), np.array([[-3000.0, 0.0]]), np.array([[-1e5, -1e5]])]
    found = Elimination(Order.of([(0,)] * 3, {0: 2}), logs)
    expected = logsumexp([-3000.0, -2000.0]) - 1e5
    assert found.log_total[0] == pytest.approx(expected, rel=1e-15)
    np.testing.assert_allclose(found.marginal(0)[0], [0.0, 1.0])


def test_draws_follow_the_joint_distribution():
    sizes, scopes, logs = tables(11, nodes=3)
    used, product = whole(sizes, scopes, logs)
    drawn = Elimination(Order.of(scopes, sizes), logs).draw(2, 4000, np.random.default_rng(0))
    assert sorted(drawn) == used
    for case in range(2):
        cells = np.ravel_multi_index([drawn[node][case] for node in used], product.shape[1:])
        expected = product[case].ravel() / product[case].sum()
        counts = np.bincount(cells, minlength=len(expected))
        assert (counts[expected == 0.0] == 0).all()
        there = expected * 4000 > 1.0
        rest = [counts[~there].sum()], [expected[~there].sum() * 4000]
        observed = np.append(counts[there], rest[0]), np.append(expected[there] * 4000, rest[1])
        some = observed[1] > 0
        assert stats.chisquare(observed[0][some], observed[1][some]).pvalue > 1e-3


def test_a_chain_costs_no_more_than_triples_of_nodes():
    order = Order.of([(k, k + 1) for k in range(40)], dict.fromkeys(range(41), 4))
    assert order.cells <= 40 * 4**3


def test_nothing_is_one():
    assert Elimination(Order.of([], {}), []).log_total[0] == 0.0
