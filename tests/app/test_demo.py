import csv
import json
import shutil
import subprocess
from pathlib import Path

import pytest

import spbn
from spbn.cli.learn import PUBLISHED_FIT, PUBLISHED_SEARCH, PUBLISHED_TRUTH

ROOT = Path(__file__).resolve().parents[2]
#: Rows that stand for the paper's tables.
PARTS = {"10000": slice(0, 200), "2000": slice(200, 500), "test": slice(500, 700)}


@pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(), reason="needs make and the Makefile"
)
@pytest.mark.parametrize(("target", "extras"), [("demo", '".[cli,plot]"'), ("test", '".[dev,plot]"')])
def test_make_installs_what_a_target_needs_and_no_more(target, extras):
    command = ["make", "--dry-run", "--always-make", "--directory", str(ROOT), target]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    installed = [line for line in done.stdout.splitlines() if " pip install " in line]
    assert [line.split()[-1] for line in installed] == [extras]


@pytest.mark.slow
def test_the_demo_tells_what_it_found(tmp_path, run, monkeypatch):
    small = spbn.datasets.paper_synthetic("200")
    monkeypatch.setattr("spbn.datasets.paper_synthetic", lambda name: small)
    code, out, err = run("demo", "--folder", tmp_path)
    assert (code, err) == (0, "")
    network = spbn.BayesianNetwork.load(tmp_path / "spbn-demo.spbn")
    assert network == spbn.learn(small, model="spbn", seed=2)
    truth = spbn.datasets.synthetic_logpdf(small).sum()
    fitted = spbn.BayesianNetwork.fit(spbn.datasets.synthetic_structure(), small).loglik(small)
    assert f"{truth:.2f}" in out
    assert f"{fitted:.2f}" in out
    right = network.structure == spbn.datasets.synthetic_structure()
    assert ("This is the true one" in out) == right
    assert f"report written to {tmp_path / 'spbn-demo.html'}" in out


@pytest.mark.slow
def test_the_demo_shows_what_the_default_makes_of_the_same_rows(tmp_path, run, monkeypatch):
    tables = {name: spbn.datasets.paper_synthetic("test").iloc[rows] for name, rows in PARTS.items()}
    monkeypatch.setattr("spbn.datasets.paper_synthetic", tables.__getitem__)
    code, out, _ = run("demo", "--folder", tmp_path, "--json")
    found = json.loads(out)["from_2000_rows"]
    default = spbn.learn(tables["2000"])
    assert code == 0
    assert found["auto"] == pytest.approx(default.loglik(tables["test"]), rel=1e-12)
    assert found["spbn"] == spbn.learn(tables["2000"], model="spbn", seed=2).loglik(tables["test"])
    assert found["spbn"] < found["auto"]
    true_arcs = set(spbn.datasets.synthetic_structure().arcs)
    assert found["auto_has_true_arcs"] == (set(default.structure.arcs) == true_arcs)
    code, out, _ = run("demo", "--folder", tmp_path)
    assert f"{found['spbn']:.2f}    {PUBLISHED_SEARCH:.2f}" in out
    assert f"{found['auto']:.2f}" in out
    assert str(default).splitlines()[1] in out


def test_the_published_figures_are_those_of_the_paper():
    with (ROOT / "experiments" / "published" / "table1.csv").open(encoding="utf-8") as lines:
        table = {(row["algorithm"], row["rows"]): float(row["loglik"]) for row in csv.DictReader(lines)}
    assert table["HC", "2000"] == PUBLISHED_SEARCH
    assert table["ground-truth", ""] == PUBLISHED_TRUTH
    assert table["HC", "10000"] == PUBLISHED_FIT
