"""What residuals tell of a regression: little if it is right, and much if it is not."""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import spbn
from spbn.numerics import curves, misfit

from naive import curve_spread


def judge(frame, node, parents, node_type):
    likelihood = spbn.scores.CVLikelihood(frame)
    batch = likelihood._checked([(node, parents, node_type)])
    return float(likelihood.judge(batch)[1][0])


def naive_sums(z, parents):
    """All tables of residuals, by the definitions."""
    out = [np.histogram(z, [-np.inf, *misfit.SHAPE_EDGES, np.inf])[0]]
    held = np.clip(z, -misfit.FARTHEST, misfit.FARTHEST)
    bins = [
        np.searchsorted(misfit.PARENT_EDGES, (column - centre) / scale, side="left")
        for column in parents
        for centre, scale in [spread(column)]
    ]
    for own in bins:
        for b in range(misfit.BINS):
            out.append([(own == b).sum(), held[own == b].sum(), (held[own == b] ** 2).sum()])
        for b in range(misfit.BINS):
            out.append(np.histogram(z[own == b], [-np.inf, -1.0, -0.5, 0.0, 0.5, 1.0, np.inf])[0])
    for j in range(len(bins)):
        for k in range(j):
            for one in range(misfit.THIRDS):
                for other in range(misfit.THIRDS):
                    both = (bins[j] // 2 == one) & (bins[k] // 2 == other)
                    out.append([both.sum(), held[both].sum()])
    return np.concatenate(out)


def spread(column):
    centre, scale, *_ = curve_spread(column)
    return centre, scale


def test_sums_over_residuals_of_lines():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4)) + 1e3, columns=list("abcd"))
    likelihood = spbn.scores.CVLikelihood(frame)
    scorer = likelihood._scorer.store.scorer(spbn.NodeType.LG)
    columns = frame.to_numpy().T
    design = np.column_stack([np.ones(300), frame[["a", "c", "d"]]])
    residuals = frame["b"] - design @ np.linalg.lstsq(design, frame["b"], rcond=None)[0]
    expected = naive_sums((residuals / residuals.std(ddof=0)).to_numpy(), columns[[0, 2, 3]])
    seen = []
    original = misfit.misfit

    def note(sums, parents, shape):
        seen.append(sums.copy())
        return original(sums, parents, shape)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(misfit, "misfit", note)
        scorer.totals_and_misfits(likelihood._checked([("b", ["a", "c", "d"], "lg")]))
    np.testing.assert_allclose(seen[0], expected, atol=1e-6)


def test_significance_is_that_of_chi_square():
    for freedom in (1, 2, 3, 5, 8, 13, 25):
        for statistic in (0.01, 0.5, 5.0, 20.0, 60.0, 500.0, 1200.0):
            expected = -stats.chi2.logsf(statistic, freedom)
            rel = 1e-9 if np.isfinite(expected) and statistic < 600 else 1e-4
            if not np.isfinite(expected):  # scipy has run out of exponents: the first term of the series
                a, half = freedom / 2, statistic / 2
                expected = half - (a - 1) * math.log(half) + math.lgamma(a) - math.log1p((a - 1) / half)
                rel = 1e-3
            assert misfit._significance(statistic, freedom) == pytest.approx(expected, rel=rel, abs=1e-9)
    assert misfit._significance(0.0, 3) == 0.0
    assert misfit._significance(5.0, 0) == 0.0


def test_variances_are_compared_as_bartlett_does():
    rng = np.random.default_rng(1)
    groups = [rng.normal(scale=scale, size=40) for scale in (1, 1, 1.2, 0.8, 1, 1.5)]
    sums = np.concatenate([[len(values), values.sum(), (values**2).sum()] for values in groups])
    expected = -math.log(stats.bartlett(*groups).pvalue)
    assert misfit._of_variances(sums, 0) == pytest.approx(expected, rel=1e-6)


def test_counts_are_tested_for_independence():
    rng = np.random.default_rng(2)
    table = rng.poisson(8, size=(misfit.BINS, misfit.COARSE))
    sums = np.concatenate(
        [np.stack([table.sum(axis=1), *np.zeros((2, misfit.BINS))], axis=1).ravel(), table.ravel()]
    )
    expected = -math.log(stats.chi2_contingency(table, lambda_="log-likelihood").pvalue)
    assert misfit._of_counts(sums.astype(float), 0) == pytest.approx(expected, rel=1e-6)


def test_shapes_of_noise_are_probabilities():
    for weights in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.4, 0.1]):
        found = curves.noise_shape(np.array(weights, dtype=float))
        edges = np.concatenate([[-np.inf], misfit.SHAPE_EDGES, [np.inf]])
        parts = [stats.norm(), stats.t(3, scale=curves.T_SCALE), stats.t(2)]
        expected = sum(w * np.diff(part.cdf(edges)) for w, part in zip(weights, parts, strict=True))
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("node_type", ["lg", "curve"])
def test_a_line_is_rarely_called_a_misfit(node_type):
    """-log p > 3 in about one of twenty tables at most: the correction is for tests that are independent."""
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
        frame["c"] += frame["a"] - frame["b"]
        found.append(judge(frame, "c", ["a", "b"], node_type))
    assert np.mean(np.array(found) > 3.0) <= 0.1


@pytest.mark.parametrize(
    "noise",
    {
        "curved": lambda a, b, e: 0.5 * a**2 + e,
        "waves": lambda a, b, e: np.sin(2 * a) + 0.5 * e,
        "product": lambda a, b, e: a * b + e,
        "spread": lambda a, b, e: e * np.exp(0.5 * a),
        "back from a wave": None,
        "two modes": lambda a, b, e: a + np.sign(e) * 2 + 0.5 * e,
        "heavy tails": lambda a, b, e: a + np.sinh(1.5 * e),
    }.items(),
    ids=lambda item: item[0],
)
def test_what_is_no_line_is_seen(noise):
    rng = np.random.default_rng(3)
    a, b, e = rng.normal(size=(3, 500))
    frame = pd.DataFrame({"a": np.sin(2 * b) + 0.3 * e, "b": e, "c": b})
    if noise[1] is not None:
        frame = pd.DataFrame({"a": a, "b": b, "c": noise[1](a, b, e)})
    assert judge(frame, "c", ["a", "b"], "lg") > 15.0


def test_curves_see_what_is_left_over():
    rng = np.random.default_rng(4)
    a, e = rng.normal(size=(2, 1000))
    frame = pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.3 * e, "c": np.sin(2 * a) + np.sign(e) + 0.3 * e})
    assert judge(frame, "b", ["a"], "curve") < 5.0
    assert judge(frame, "c", ["a"], "curve") > 50.0


def leads(frame, node, parents):
    likelihood = spbn.scores.CVLikelihood(frame)
    found = likelihood.leads(likelihood._checked([(node, parents, "curve")]))[0]
    return dict(zip(frame.columns, found, strict=True))


def naive_lead(z, column, parents):
    """The most significant of all tests between residuals and a column, by scipy."""
    held, x = np.clip(z, -4, 4), (column - spread(column)[0]) / spread(column)[1]
    bins, x = np.searchsorted(misfit.PARENT_EDGES, x, side="left"), np.clip(x, -4, 4)
    r = np.corrcoef(held, x)[0, 1]
    found = [stats.chi2.sf(-len(z) * math.log(1 - r * r), 1)]
    groups = [bins] + [
        3 * (bins // 2) + np.searchsorted(misfit.PARENT_EDGES, (p - spread(p)[0]) / spread(p)[1]) // 2
        for p in parents
    ]
    for group in groups:
        within = [held[group == b] for b in np.unique(group)]
        within = [own for own in within if len(own) >= 5]
        statistic = sum(len(own) * (own.mean() - held.mean()) ** 2 for own in within) / held.var()
        found.append(stats.chi2.sf(statistic, len(within) - 1))
    found.append(stats.bartlett(*(held[bins == b] for b in np.unique(bins))).pvalue)
    counts = [np.histogram(z[bins == b], [-np.inf, -1, -0.5, 0, 0.5, 1, np.inf])[0] for b in range(6)]
    found.append(stats.chi2_contingency(counts, correction=False, lambda_="log-likelihood").pvalue)
    return max(-math.log(min(found)) - math.log(4 + len(parents)), 0.0)


@pytest.mark.parametrize("effect", [0.0, 0.15, 0.4])
@pytest.mark.parametrize("kind", ["mean", "square", "spread", "product"])
def test_leads_are_those_of_scipy(kind, effect):
    rng = np.random.default_rng(5)
    a, b, e = rng.normal(size=(3, 400))
    noise = {"mean": e + effect * b, "square": e + effect * b * b, "spread": e * np.exp(effect * b)}
    frame = pd.DataFrame({"a": a, "b": b, "c": a + noise.get(kind, e + effect * a * b)})
    seen, original = [], curves.lead_sums

    def note(rows, starts, coefficients, variances, noise, basis, targets, spreads):
        out = np.empty(rows.shape[1])
        for group, (first, end) in enumerate(pairwise(starts)):
            for row in range(first, end):  # of one row, the sum of residuals is its residual
                one = original(
                    rows[[0, 1, 3], row : row + 1],
                    np.array([0, 1]),
                    *(each[group : group + 1] for each in (coefficients, variances, noise)),
                    basis,
                    targets,
                    spreads[:, 1:2],
                )
                out[row] = one[0, 0, 0, misfit.PER_PARENT + 2]
        seen.append((out, rows[[0, 3]]))
        return original(rows, starts, coefficients, variances, noise, basis, targets, spreads)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curves, "lead_sums", note)
        found = leads(frame, "c", ["a"])["b"]
    ((z, (parent, column)),) = seen
    assert found == pytest.approx(naive_lead(z, column, [parent]), rel=1e-6, abs=1e-9)
    assert (found > 10.0) == (effect == 0.4)


def test_unrelated_columns_are_rarely_leads():
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
        frame["c"] += np.sin(2 * frame["a"])
        found.append(leads(frame, "c", ["a"])["b"])
    assert np.mean(np.array(found) > 3.0) <= 0.1
