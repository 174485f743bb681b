"""Numbers whose squares are close to the ends of what a float can hold, and values far from all others."""

from decimal import Decimal, localcontext

import numpy as np
import pandas as pd
import pytest

import spbn
from spbn.numerics import gaussian
from spbn.numerics.moments import MomentStack, log_likelihoods

from strategies import nonlinear_frame

FRAME = nonlinear_frame(60, 3, seed=4)
FRAME = (FRAME - FRAME.median()) / (FRAME - FRAME.median()).abs().max()  # the greatest deviation is 1
LABELS = np.arange(60) % 5
FAMILIES = [("a", ()), ("b", ("a",)), ("c", ("a", "b"))]
SCALES = [0.9999e150, 1.0001e-150]  # as far as the reader of tables goes
scaled_by = pytest.mark.parametrize("scale", SCALES)
every_family = pytest.mark.parametrize(("node", "parents"), FAMILIES)


def stretched(**scales):
    """The frame with some columns, or all, in other units."""
    return FRAME.assign(**{name: FRAME[name] * scale for name, scale in scales.items()})


@scaled_by
@every_family
def test_scores_change_by_the_unit_of_the_node_alone(scale, node, parents):
    shift = len(FRAME) * np.log(scale)
    for frame in (stretched(a=scale, b=scale, c=scale), stretched(**{node: scale})):
        pairs = [
            (spbn.scores.BIC(frame), spbn.scores.BIC(FRAME), ["lg"]),
            (
                spbn.scores.CVLikelihood(frame, folds=LABELS),
                spbn.scores.CVLikelihood(FRAME, folds=LABELS),
                ["lg", "ckde"],
            ),
        ]
        for score, before, types in pairs:
            for node_type in types:
                expected = before.local(node, parents, node_type) - shift
                assert score.local(node, parents, node_type) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scales", [SCALES, SCALES[::-1]])
def test_scores_with_parents_in_units_at_the_other_end(scales):
    frame = stretched(a=scales[0], b=scales[1])
    for node_type in ("lg", "ckde"):
        expected = spbn.scores.CVLikelihood(FRAME, folds=LABELS).local("b", ["a"], node_type)
        found = spbn.scores.CVLikelihood(frame, folds=LABELS).local("b", ["a"], node_type)
        assert found == pytest.approx(expected - len(FRAME) * np.log(scales[1]), rel=1e-9)


@pytest.mark.slow
@scaled_by
@every_family
@pytest.mark.parametrize("cpd", [spbn.nodes.CKDE, spbn.nodes.LinearGaussian])
def test_densities_change_by_the_unit_of_the_node_alone(scale, node, parents, cpd):
    frame = FRAME * scale
    found = cpd.fit(frame, node, parents).logpdf(frame)
    expected = cpd.fit(FRAME, node, parents).logpdf(FRAME) - np.log(scale)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("exponent", range(-320, 309, 4))
def test_nothing_is_raised_whatever_the_scale(exponent):
    """A score is a number or -inf, and there is a whitener or there is none."""
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        root = rng.normal(size=(3, 5)) * 10.0**exponent
        scatter = root @ root.T
    stack = MomentStack(np.array([30]), np.zeros((1, 3)), scatter[None])
    members, sizes = np.array([[0, -1, -1], [0, 1, 2]]), np.array([1, 3])
    found, _ = log_likelihoods(stack, stack, members, sizes)
    assert not np.isnan(found).any()
    whitener = gaussian.whitener(scatter)
    if -150 < exponent < 150:
        assert np.isfinite(found).all()
        assert whitener is not None


def digits(frame):
    """Columns as numbers of as many digits as one wants."""
    return {name: [Decimal(float(x)) for x in frame[name]] for name in frame}


def solve(matrix, right):
    """Gaussian elimination, with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    n = len(rows)
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        for i in range(n):
            if i != k:
                factor = rows[i][k] / rows[k][k]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[k], strict=True)]
    return [row[n] / row[k] for k, row in enumerate(rows)]


def determinant(matrix):
    if not matrix:
        return Decimal(1)
    minors = [[row[:k] + row[k + 1 :] for row in matrix[1:]] for k in range(len(matrix))]
    return sum((-1) ** k * matrix[0][k] * determinant(minor) for k, minor in enumerate(minors))


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def kde_log_density(queries, train, bandwidth):
    """Of lists of rows, under kernels on rows."""
    d = len(bandwidth)
    constant = (2 * PI) ** d * determinant(bandwidth)
    out = []
    for query in queries:
        exponents = []
        for row in train:
            z = [x - y for x, y in zip(query, row, strict=True)]
            exponents.append(-sum(a * b for a, b in zip(z, solve(bandwidth, z), strict=True)) / 2)
        greatest = max(exponents)
        total = sum((exponent - greatest).exp() for exponent in exponents)
        out.append(greatest + (total / len(train)).ln() - constant.ln() / 2)
    return out


def covariance(rows):
    n, d = len(rows), len(rows[0])
    means = [sum(row[k] for row in rows) / n for k in range(d)]
    return [
        [sum((row[i] - means[i]) * (row[j] - means[j]) for row in rows) / (n - 1) for j in range(d)]
        for i in range(d)
    ]


def ckde_rows(test, train, node, parents):
    names = [*parents, node]
    asked = list(zip(*(test[name] for name in names), strict=True))
    rows = list(zip(*(train[name] for name in names), strict=True))
    factor = Decimal(len(rows)) ** (Decimal(-2) / (len(names) + 4))
    bandwidth = [[factor * x for x in row] for row in covariance(rows)]
    joint = kde_log_density(asked, rows, bandwidth)
    if not parents:
        return joint
    block = [row[:-1] for row in bandwidth[:-1]]
    below = kde_log_density([query[:-1] for query in asked], [row[:-1] for row in rows], block)
    return [a - b for a, b in zip(joint, below, strict=True)]


def lg_rows(test, train, node, parents):
    design = [[Decimal(1), *row] for row in zip(*(train[name] for name in parents), strict=True)]
    design = design or [[Decimal(1)] for _ in train[node]]
    p = len(design[0])
    normal = [[sum(row[i] * row[j] for row in design) for j in range(p)] for i in range(p)]
    right = [sum(row[i] * y for row, y in zip(design, train[node], strict=True)) for i in range(p)]
    solution = solve(normal, right)
    residuals = [
        y - sum(a * b for a, b in zip(row, solution, strict=True))
        for row, y in zip(design, train[node], strict=True)
    ]
    variance = sum(r * r for r in residuals) / (len(residuals) - p)
    out = []
    for i, y in enumerate(test[node]):
        mean = solution[0] + sum(b * test[name][i] for b, name in zip(solution[1:], parents, strict=True))
        out.append(-((y - mean) ** 2 / variance + (2 * PI * variance).ln()) / 2)
    return out


def reference(frame, labels, node, parents, node_type):
    """Log-density of every row under parameters fitted without its fold."""
    out = np.empty(len(frame))
    rows = ckde_rows if node_type == "ckde" else lg_rows
    with localcontext() as context:
        context.prec = 120
        for label in np.unique(labels):
            test = labels == label
            out[test] = [float(x) for x in rows(digits(frame[test]), digits(frame[~test]), node, parents)]
    return out


@pytest.mark.slow
@pytest.mark.parametrize("node_type", ["lg", "ckde"])
@pytest.mark.parametrize("where", ["a", "b"])
@pytest.mark.parametrize(("node", "parents"), [("a", ()), ("b", ("a",))])
def test_one_value_of_1e20_among_ordinary_ones(node_type, where, node, parents):
    frame = pd.DataFrame(FRAME[["a", "b"]][:25])
    frame.loc[7, where] = 1e20
    labels = LABELS[:25]
    score = spbn.scores.CVLikelihood(frame, folds=labels)
    expected = reference(frame, labels, node, parents, node_type)
    family = spbn.nodes.Family(node, parents, spbn.NodeType.parse(node_type))
    np.testing.assert_allclose(score.rows(family), expected, rtol=1e-8, atol=1e-8)
    assert score.local(node, parents, node_type) == pytest.approx(expected.sum(), rel=1e-8)


@pytest.mark.parametrize("cpd", [spbn.nodes.CKDE, spbn.nodes.LinearGaussian])
@pytest.mark.parametrize(("node", "parents"), [("a", ()), ("b", ("a",)), ("a", ("b",))])
def test_densities_of_a_value_of_1e20(cpd, node, parents):
    """Fitted without it, and asked for it."""
    train = FRAME[["a", "b"]][:25]
    test = train[:3].reset_index(drop=True)
    test.loc[1, "a"] = 1e20
    rows = ckde_rows if cpd is spbn.nodes.CKDE else lg_rows
    with localcontext() as context:
        context.prec = 120
        expected = [float(x) for x in rows(digits(test), digits(train), node, parents)]
    np.testing.assert_allclose(cpd.fit(train, node, parents).logpdf(test), expected, rtol=1e-8)


@pytest.mark.parametrize("scale", [2.0**300, 2.0**490, 2.0**-490])
@pytest.mark.parametrize("node_type", ["ckde", "blend"])
@pytest.mark.parametrize("method", ["smc", "weighting"])
def test_answers_change_by_the_unit_alone(scale, node_type, method):
    """The products of two squares of such numbers are infinite."""
    structure = spbn.Structure("abc", [("a", "b"), ("b", "c")], node_type)
    answers = []
    for unit in (1.0, scale):
        network = spbn.BayesianNetwork.fit(structure, FRAME * unit)
        question = {"c": (0.1 * unit, 0.4 * unit)}
        answers.append(network.query(question, n=200, method=method, seed=0))
    before, after = answers
    np.testing.assert_allclose(after.draws / scale, before.draws, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(after.std() / scale, before.std(), rtol=1e-6)
    assert after.log_evidence == pytest.approx(before.log_evidence, abs=1e-6)
