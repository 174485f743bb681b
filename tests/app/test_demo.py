import shutil
import subprocess
from pathlib import Path

import pytest

import spbn

ROOT = Path(__file__).resolve().parents[2]


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
