import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name, folder):
    """Run an example as a user does, and return what it prints."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        *("wine.py", "breast_cancer.py", "diabetes.py"),
        "service.py",  # in tests/interop/test_service.py
    }


@pytest.mark.slow
def test_wine(tmp_path):
    out = run("wine.py", tmp_path)
    seen, gaussian = (float(x) for x in re.findall(r"(?:unseen wine|Gaussian network): (-?\d+\.\d+)", out))
    assert seen > gaussian
    unusual = re.findall(r"wine +(\d+), variety \d: +(-?\d+\.\d)", out)
    assert len(unusual) == 5
    assert unusual[0][0] == "121"  # far from all others in flavanoids
    assert [float(density) for _, density in unusual] == sorted(float(density) for _, density in unusual)


@pytest.mark.slow
def test_breast_cancer(tmp_path):
    out = run("breast_cancer.py", tmp_path)
    rows = re.findall(r"^(gbn|kdebn|spbn) +(-?\d+\.\d+) +(\d\.\d+) +(\d\.\d+)$", out, flags=re.MULTILINE)
    assert [row[0] for row in rows] == ["gbn", "kdebn", "spbn"]
    for _, _, accuracy, area in rows:
        assert 0.9 < float(accuracy) < 1.0
        assert 0.95 < float(area) < 1.0


@pytest.mark.slow
def test_diabetes(tmp_path):
    out = run("diabetes.py", tmp_path)
    assert "10 times  cholesterol - ldl" in out
    assert "bmi - progression" in out
    mean = re.search(r"^mean +(\S+) +(\S+) +(\S+)$", out, flags=re.MULTILINE)
    patients, *drawn = (float(value) for value in mean.groups())
    assert drawn == pytest.approx([patients] * 2, abs=8.0)
