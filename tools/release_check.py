"""Check that a release says the same version everywhere, and can be built, installed and used.

    python tools/release_check.py [--tag v0.3.0] [--dist dist]

Wheel and sdist are built in an environment of their own, the wheel from the sdist. Each is then installed
into an empty environment and tried from another folder with nothing of the repository but `smoke.py`. All of
it is in a temporary folder; with --dist, the two files are copied there if they pass.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Those that are cheap to install, and change what the package can do by itself.
EXTRAS = "cli,plot,excel,dask,networkx"


class ReleaseError(Exception):
    """What must be put right before a release."""


def released_version(root: Path = ROOT) -> str:
    """Return the version that all files name; changelog and citation have to name its day, too."""
    changelog = _text(root / "CHANGELOG.md")
    heading = _found(r"^## (.+)$", changelog, "CHANGELOG.md has no headings of releases.")
    release = re.fullmatch(r"(\S+) \((\d{4}-\d\d-\d\d)\)", heading)
    if release is None:
        raise ReleaseError(
            f"CHANGELOG.md begins with {heading!r}, which should be a version and a day: 1.2.3 (2026-01-31)."
        )
    citation = _text(root / "CITATION.cff")
    versions = {
        "CHANGELOG.md": release[1],
        "pyproject.toml": tomllib.loads(_text(root / "pyproject.toml"))["project"]["version"],
        "src/spbn/__init__.py": _found(
            r'^__version__ = "(.+)"$',
            _text(root / "src" / "spbn" / "__init__.py"),
            "spbn has no __version__.",
        ),
        "CITATION.cff": _found(r"^version: (\S+)$", citation, "CITATION.cff has no version."),
    }
    if len(set(versions.values())) > 1:
        shown = ", ".join(f"{version} in {name}" for name, version in versions.items())
        raise ReleaseError(f"the version is {shown}. It must be the same everywhere.")
    day = _found(r"^date-released: (\S+)$", citation, "CITATION.cff has no date-released.")
    if day != release[2]:
        raise ReleaseError(
            f"the day of the release is {release[2]} in CHANGELOG.md, and {day} in CITATION.cff."
        )
    body = changelog.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    if not body.strip():
        raise ReleaseError(f"CHANGELOG.md does not say what is new in {release[1]}.")
    return release[1]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _found(pattern: str, text: str, complaint: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ReleaseError(complaint)
    return match[1]


def build(folder: Path) -> list[Path]:
    """Build the sdist, and the wheel from it."""
    python = environment(folder / "builder")
    run(python, "-m", "pip", "install", "--quiet", "build")
    run(python, "-m", "build", "--outdir", folder / "dist", ROOT)
    return sorted((folder / "dist").iterdir(), key=lambda path: path.suffix != ".whl")


def try_out(package: Path, folder: Path) -> None:
    """Install a package alone and then with extras, and use it from an empty folder."""
    python = environment(folder / f"with-{package.suffix.strip('.')}")
    empty = folder / f"empty-{package.suffix.strip('.')}"
    empty.mkdir()
    shutil.copy(ROOT / "tools" / "smoke.py", empty)
    run(python, "-m", "pip", "install", "--quiet", package)
    run(python, "-I", "smoke.py", cwd=empty)
    run(python, "-m", "pip", "install", "--quiet", f"{package}[{EXTRAS}]")
    run(python, "-I", "smoke.py", "--extras", cwd=empty)
    run(python, "-m", "pip", "check")


def environment(folder: Path) -> Path:
    """Make an environment with nothing but pip, and return its interpreter."""
    venv.create(folder, with_pip=True)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a program that sees nothing of the repository's environment."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "NUMBA_CACHE_DIR", "PIP_CONSTRAINT")
    clean = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=clean, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise ReleaseError(f"{' '.join(map(str, command[1:]))} ended with exit code {done.returncode}.")


def check(tag: str | None, dist: Path | None) -> str:
    """Check the versions, both packages, and perhaps the tag; return the version."""
    version = released_version()
    if tag is not None and tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, and the version {version}: the tag should be v{version}.")
    with tempfile.TemporaryDirectory(prefix="spbn-release-") as temporary:
        folder = Path(temporary)
        packages = build(folder)
        for package in packages:
            print(f"{package.name}: {package.stat().st_size / 1024:.0f} kB", flush=True)
            try_out(package, folder)
        if dist is not None:
            shutil.copytree(folder / "dist", dist, dirs_exist_ok=True)
    return version


def main() -> int:
    """Check everything; the exit code is 1 if the release is not ready."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tag", help="the tag of the release, which has to be its version")
    parser.add_argument("--dist", type=Path, help="where to put wheel and sdist if they pass")
    options = parser.parse_args()
    try:
        version = check(options.tag, options.dist)
    except ReleaseError as error:
        print(f"release-check: {error}", file=sys.stderr)
        return 1
    print(f"spbn {version} can be released.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
