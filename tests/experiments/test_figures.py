"""Every table of results in the documentation, and figures in its prose, are those of the committed files."""

import re

import pandas as pd
import pytest
from experiments.__main__ import NAMES, PAGES, PAPER, RESULTS, ROOT, render
from experiments.figures.anomalies import percentages
from experiments.figures.classifiers import calibration_errors, per_row
from experiments.figures.densities import from_uci, per_row_and_variable
from experiments.figures.hybrid import per_row as hybrid_per_row
from experiments.page import signed
from experiments.statistics import mean_ranks

import spbn
from experiments import anomaly_peers, classifier_peers, structure_peers, summary

#: Where experiments find what is published, if not with the paper's data.
FOLDERS = {"anomalies": "anomaly-data", "hybrid": "hybrid-data"}


def read(name):
    return pd.read_csv(RESULTS / f"{name}.csv")


def page(name):
    """Return the text of a page with single spaces, so that it may be wrapped anywhere."""
    return re.sub(r"\s+", " ", (ROOT / name).read_text(encoding="utf-8"))


@pytest.mark.shared
@pytest.mark.parametrize("name", NAMES)
def test_tables_are_those_of_the_results(name, shared, tmp_path):
    """What `--render` writes is what the page has; if not, run it, and read the prose around the tables."""
    render(name, RESULTS / f"{name}.csv", shared / FOLDERS.get(name, "paper-data"), tmp_path)
    content = PAGES.get(name, PAPER).read_text(encoding="utf-8")
    written = sorted(tmp_path.glob("*.md"))
    assert written or list(tmp_path.glob("*.svg"))
    for path in written:
        shown = re.search(f"<!-- {path.stem} -->(.*)<!-- /{path.stem} -->", content, re.DOTALL)
        assert shown is not None, f"the page has no place for {path.stem}"
        assert shown[1].strip() == path.read_text(encoding="utf-8").strip(), (
            f"{name}: {path.stem} is not up to date"
        )


def test_the_table_of_the_readme_is_that_of_the_results():
    """If not: python -m experiments.summary."""
    content = (ROOT / "README.md").read_text(encoding="utf-8")
    assert content.split(summary.BEGIN)[1].split(summary.END)[0].strip() == summary.summary().strip()


def test_the_table_of_the_readme_takes_the_best_of_the_others():
    """With results in which it is known who is best, and by how much."""
    values = pd.Series({"ours": 0.3, "a": 0.2, "b": 0.4})
    assert summary._compared(values, "{:.1f}") == ["0.3 (ours)", "**0.2 (a)**"]
    assert summary._compared(values, "{:.1f}", best=max) == ["0.3 (ours)", "**0.4 (b)**"]
    assert summary._compared(values.drop("a"), "{:.1f}") == ["**0.3 (ours)**", "0.4 (b)"]
    runs = pd.DataFrame({"data": ["x", "y", "x"], "method": ["blend", "blend", "auto"]})
    assert summary._ours(runs, "blend") == "blend"
    assert summary._ours(pd.concat([runs, runs.iloc[[1]].assign(method="auto")]), "blend") == "auto"


@pytest.mark.slow
def test_the_readme_says_what_the_default_makes_of_the_paper_s_rows():
    few, test = (spbn.datasets.paper_synthetic(name) for name in ("2000", "test"))
    default = spbn.learn(few)
    figures = [spbn.learn(few, model="spbn", seed=2).loglik(test), spbn.datasets.synthetic_logpdf(test).sum()]
    paper, truth, ours = (signed(value, 0) for value in (*figures, default.loglik(test)))
    content = page("README.md")
    assert f"the paper's model reaches a log-likelihood of {paper} on 1,000 new rows" in content
    assert f"and the true density {truth}. The default of spbn reaches {ours}" in content
    quoted = re.search(r"in words: `(.*?)`", content)[1]
    assert quoted in str(default)


def of_structure():
    results = read("structure")
    errors = results[results["part"] == "random"].pivot_table(
        "class_shd", ["network", "rows", "table"], "method"
    )
    errors = errors.dropna(subset="auto")[["auto", "BOSS, causal-learn"]].mean()
    assert "BOSS, causal-learn" in structure_peers.PEERS
    yield (
        "CHANGELOG.md",
        f"On random networks, the default makes {errors['auto']:.1f} errors on average, and causal-learn's "
        f"BOSS, which assumes lines, {errors['BOSS, causal-learn']:.1f}",
    )
    niab = results[(results["network"] == "MAGIC-NIAB") & (results["rows"] == 200)]
    yield "docs/structure.md", f"the empty graph, which has {niab['true_arcs'].iloc[0]} errors"


def of_classifiers():
    results = read("classifiers")
    losses = per_row(results, "log_loss")
    means = losses.mean()
    first, second = means[list(classifier_peers.PEERS)].nsmallest(2).index
    assert (first, second) == ("random forest", "logistic regression")
    assert means.idxmin() == min(mean_ranks(-losses), key=mean_ranks(-losses).get) == "blend"
    errors = calibration_errors(results).loc[losses.index].mean()
    assert set(errors.nsmallest(2).index) == {"blend", "SPBN"}
    yield (
        "docs/classifiers.md",
        f"Over all {len(losses)} tables, blends have the lowest mean log loss, {means['blend']:.3f} "
        f"(scikit-learn's best are the forest with {means[first]:.3f} and logistic regression with "
        f"{means[second]:.3f})",
    )
    accuracy = 100 * per_row(results, "accuracy").mean()
    ahead = accuracy[["random forest", "gradient boosting", "histogram boosting"]] - accuracy["blend"]
    yield (
        "docs/classifiers.md",
        f"forests and boosting are {ahead.min():.1f} to {ahead.max():.1f} points ahead",
    )
    kinder = per_row(results, "kinder_log_loss").mean()
    yield (
        "docs/classifiers.md",
        f"the forest is ahead by {kinder['blend'] - kinder['random forest']:.3f}",
    )


def of_anomalies():
    results = read("anomalies")
    best = percentages(results)[list(anomaly_peers.PEERS)].mean().idxmax()
    assert best == "k-nearest neighbours"
    whole = results.pivot_table("auc", "half", "method")
    drops = results.pivot_table("auc_of_drops", "half", "method")
    behind, ahead = 100 * (whole[best] - whole["blend"]), 100 * (drops["blend"] - whole[best])
    yield (
        "docs/anomalies.md",
        f"{best} is ahead of them by {behind.mean():.1f} ± {behind.sem():.1f} points on average",
    )
    yield (
        "docs/anomalies.md",
        f"With it, blends are {ahead.mean():.1f} ± {ahead.sem():.1f} points ahead of {best}",
    )


def of_missing():
    results = read("missing")
    results["density"] = results["loglik"] / (results["rows"] * results["nodes"])
    ours, dropping = 'missing="impute"', 'missing="drop"'

    def lead(measure, data, rate, other):
        chosen = results[(results["data"] == data) & (results["rate"] == rate)]
        values = chosen.pivot_table(measure, "fold", "method")
        gain = (values[ours] - values[other]) * (-1 if measure == "crps" else 1)
        return f"{gain.mean():.3f} ± {gain.sem():.3f}"

    fish, wine = "QSAR fish toxicity", "Wine"
    crps, means = lead("crps", fish, 0.1, dropping), lead("density", fish, 0.1, "means")
    few, many = (lead("density", wine, rate, "IterativeImputer") for rate in (0.1, 0.3))
    yield (
        "docs/missing.md",
        f"The lead over dropping rows on {fish} with 10 % is {crps} in CRPS; the lead over IterativeImputer "
        f"on Wine is {few} (10 %) and {many} (30 %) in log-density; and the lead over means on {fish} with "
        f"10 % is {means} in log-density.",
    )
    scores = results.pivot_table("crps", ["data", "rate"], "method")
    densities = results.pivot_table("density", ["data", "rate"], "method")
    assert (scores.idxmin(axis=1) == ours).all()
    assert (densities.idxmax(axis=1) == ours).all()
    assert len(scores) == 8
    yield "docs/missing.md", f"In all eight cases, `{ours}` gives the best network and the best predictions"


def of_densities():
    results = read("densities")
    raw = pd.concat([results, from_uci(read("uci"), results)])
    values = {version: per_row_and_variable(raw[raw["version"] == version]) for version in ("raw", "no ties")}
    ours, vine = "blend 0.2, margins", "vine, nonparametric"
    ranks = [mean_ranks(part.dropna(axis=1)) for part in values.values()]
    assert all(min(found, key=found.get) == ours for found in ranks)
    yield (
        "docs/choosing.md",
        f"they have the best mean rank: {ranks[0][ours]:.2f} on the tables as they are, "
        f"{ranks[1][ours]:.2f} without ties",
    )
    plain = values["raw"]
    lost = plain.loc["Balance", ours] - plain.loc["Balance", "Gaussian mixture"]
    yield "docs/densities.md", f"costs mixtures {lost:.0f} nats per number"
    waves = [
        plain.loc[name, "Gaussian mixture"] - plain.loc[name, ours] for name in ("Waveform", "Waveform-Noise")
    ]
    yield (
        "docs/densities.md",
        f"**Mixtures on Waveform and Waveform-Noise**, by {waves[0]:.2f} and {waves[1]:.2f}",
    )
    sonar = plain.loc["Sonar", vine] - plain.loc["Sonar", ours]
    yield "docs/densities.md", f"**Nonparametric vines on Sonar**, by {sonar:.2f}"
    tied = (plain["Gaussian mixture"] - plain[ours]).drop(["Waveform", "Waveform-Noise"])
    named = tied[tied > 0].sort_values(ascending=False).index
    yield (
        "docs/densities.md",
        f"**Gaussian mixtures on raw tables with ties**: {', '.join(named).replace('_', ' ')}.",
    )
    without = values["no ties"].loc[named]
    assert (without[ours] > without["Gaussian mixture"]).all()
    cancer = values["no ties"].loc["Breast_cancer"]
    ahead = cancer["vine, parametric"] - cancer[ours]
    yield "docs/densities.md", f"**Parametric vines on Breast cancer without ties**, by {ahead:.2f}"


def of_hybrid():
    values = hybrid_per_row(read("hybrid")).drop(columns="PyBNesian", errors="ignore")
    first = values.idxmax(axis=1)
    assert first.str.startswith("blend").all()
    words = {8: "eight", 10: "ten"}
    yield (
        "docs/hybrid.md",
        f"Blends with margins come first on all {words[len(values)]} tables, with patience 5 on "
        f"{words[(first == 'blend, patience 5').sum()]} of them",
    )


def of_the_paper():
    results = read("synthetic")
    climbs = results[(results["algorithm"] == "HC") & (results["model"] == "SPBN-CKDE")]
    large = climbs[(climbs["rows"] == 10_000) & (climbs["patience"] == 5)]
    assert (large["shd"] == 0).all()
    right = large[large["thmd"] == 0]
    yield (
        "docs/paper.md",
        f"With {len(right)} of {len(large)} splits, the types are right, too, and the log-likelihood is "
        f"{signed(right['loglik'].mean()).replace(',', '')}",
    )
    pc = results[
        (results["algorithm"] == "PC-RCoT") & (results["rows"] == 2_000) & (results["model"] == "SPBN-LG")
    ]
    pc = pc[pc["patience"] == 0]
    yield (
        "docs/paper.md",
        f"with 2,000 rows it finds the true arcs with {(pc['shd'] == 0).sum()} of {len(pc)}",
    )


@pytest.mark.parametrize(
    "sentences",
    [of_structure, of_classifiers, of_anomalies, of_missing, of_densities, of_hybrid, of_the_paper],
)
def test_prose_has_the_figures_of_the_results(sentences):
    """What is computed from the files is on the page, word for word."""
    written = list(sentences())
    assert written
    assert [(name, sentence) for name, sentence in written if sentence not in page(name)] == []
