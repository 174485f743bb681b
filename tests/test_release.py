"""What has to hold before a release: one version everywhere, workflows that can run, a package that works."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tools import release_check

import spbn

ROOT = Path(__file__).resolve().parents[1]
FILES = ("CHANGELOG.md", "CITATION.cff", "pyproject.toml", "src/spbn/__init__.py")
WORKFLOWS = ROOT / ".github" / "workflows"


@pytest.fixture
def copy(tmp_path):
    """Return a folder with the files that name the version."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_version_is_the_same_everywhere():
    assert release_check.released_version() == spbn.__version__


@pytest.mark.parametrize(
    ("file", "old", "new", "complaint"),
    [
        *((file, spbn.__version__, "9.9.9", "must be the same everywhere") for file in FILES),
        ("CITATION.cff", r"(?<=date-released: ).*", "2001-01-01", "and 2001-01-01 in CITATION.cff"),
        ("CITATION.cff", r"(?<=date-released: ).*", "soon", "and soon in CITATION.cff"),
        ("CHANGELOG.md", r"\A# Changelog", "# Changelog\n\n## Unreleased", "begins with 'Unreleased'"),
        ("CHANGELOG.md", r"(?s)(\n## .*?\n).*?(?=\n## )", r"\1", "does not say what is new"),
        ("src/spbn/__init__.py", r"(?m)^__version__ = .*$", "", "no __version__"),
    ],
)
def test_what_does_not_agree_is_refused(file, old, new, complaint, copy):
    path = copy / file
    changed, times = re.subn(old, new, path.read_text(encoding="utf-8"), count=1)
    assert times == 1
    path.write_text(changed, encoding="utf-8")
    with pytest.raises(release_check.ReleaseError, match=complaint):
        release_check.released_version(copy)


def test_a_tag_of_another_version_is_refused():
    with pytest.raises(release_check.ReleaseError, match=rf"the tag should be v{spbn.__version__}"):
        release_check.check("v0.0.1", None)


def test_every_extra_that_is_tried_exists():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(release_check.EXTRAS.split(",")) <= set(project["optional-dependencies"])


@pytest.mark.slow
def test_the_smoke_test_passes_here(tmp_path):
    """With the package as it is installed for the tests, so that the smoke test keeps up with it."""
    code = f"""import sys
sys.path.append({str(ROOT)!r})
from tools import smoke
data = smoke.spbn.datasets.synthetic(200, seed=0)
smoke.use_the_library(data)
smoke.use_the_extras(data)"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def test_the_package_is_tested_on_every_system_and_python():
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((WORKFLOWS / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = [found for line in project["classifiers"] for found in re.findall(r":: (3\.\d+)$", line)]
    systems = set()
    for job in jobs.values():
        matrix = job["strategy"]["matrix"]
        assert matrix["python"] == promised
        systems |= set(matrix.get("system", [job["runs-on"]]))
    assert systems == {"ubuntu-latest", "macos-latest", "windows-latest"}
    assert project["requires-python"] == f">={promised[0]}"


def test_only_the_job_that_publishes_may_ask_for_a_token():
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((WORKFLOWS / "publish.yml").read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    asking = [name for name, job in workflow["jobs"].items() if "permissions" in job]
    assert asking == ["publish"]
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert "secrets" not in (WORKFLOWS / "publish.yml").read_text(encoding="utf-8")
