"""The release notes and the citation; `test_release.py` has the version, which all of them name."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
RELEASES = re.findall(
    r"^## (\S+) \((.+)\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE
)


def cited(key):
    """A value of the citation file that is not inside another."""
    (value,) = re.findall(rf"^{key}: (.+)$", CITATION, flags=re.MULTILINE)
    return value.strip('"')


def test_the_citation_is_of_this_project():
    assert cited("license") == PROJECT["license"]
    (author,) = PROJECT["authors"]
    before_references = CITATION.split("\nreferences:")[0]
    assert re.findall(r"^  - name: \"(.+)\"$", before_references, flags=re.MULTILINE) == [author["name"]]


def test_releases_are_listed_from_the_newest():
    versions = [tuple(map(int, name.split("."))) for name, _ in RELEASES]
    assert versions == sorted(versions, reverse=True)
    assert len(set(versions)) == len(versions)


def test_the_citation_can_be_read():
    """As YAML, with what version 1.2.0 of the format requires."""
    yaml = pytest.importorskip("yaml")
    content = yaml.safe_load(CITATION)
    assert {"cff-version", "message", "title", "authors"} <= set(content)
    for reference in content["references"]:
        assert {"type", "title", "authors"} <= set(reference)
        assert all({"family-names", "given-names"} <= set(author) for author in reference["authors"])
