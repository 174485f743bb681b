"""The documentation as a site: built strictly, without dead links, complete without the internet."""

import html
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from command_line import GROUP

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
#: Attributes by which a page refers to something.
REFERENCE = re.compile(r"<(\w+)\b[^>]*?\b(?:src|href)=[\"']?([^\"' >]+)")
ANCHOR = re.compile(r"\b(?:id|name)=[\"']?([^\"' >]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder with the site, as ``make docs`` has just built it where SPBN_SITE says so.

    Strict: an unknown name or a page that is not in the menu is an error.
    """
    if built := os.environ.get("SPBN_SITE"):
        return Path(built)
    for module in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}: pip install 'spbn[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def references(path):
    """What a page refers to, as pairs of an element and an address."""
    text = path.read_text(encoding="utf-8")
    return [(element, html.unescape(address)) for element, address in REFERENCE.findall(text)]


@pytest.mark.slow
def test_every_page_is_there(site):
    assert {path.stem for path in PAGES} <= {path.stem for path in site.rglob("*.html")}


@pytest.mark.slow
def test_tutorials_are_pages_with_what_their_cells_show(site):
    for path in (ROOT / "docs" / "tutorials").glob("*.ipynb"):
        page = site / "tutorials" / f"{path.stem}.html"
        figures = [address for element, address in references(page) if element == "img"]
        assert figures
        assert all((page.parent / address).is_file() for address in figures)
        text = page.read_text(encoding="utf-8")
        assert 'class="spbn-view"' in text
        assert "data-output" not in text
        assert f'href="{path.name}"' in text  # to download
        assert (site / "tutorials" / path.name).is_file()


@pytest.mark.slow
def test_generated_pages_are_complete(site):
    """Every command with every option, and every release."""
    page = html.unescape((site / "commands.html").read_text(encoding="utf-8"))
    for name, command in GROUP.commands.items():
        assert f"spbn {name}" in page
        shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        options = [option for parameter in shown for option in parameter.opts if option[0] == "-"]
        assert [option for option in options if not re.search(f"<code>[^<]*{option}\\b", page)] == []
    changes = (site / "changelog.html").read_text(encoding="utf-8")
    releases = re.findall(r"^## (\S+) ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert all(release in changes for release in releases)


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site):
    """Links may lead away. What a page needs to be shown must be in the folder."""
    for path in site.rglob("*.html"):
        loaded = [
            address for element, address in references(path) if element != "a" and urlsplit(address).scheme
        ]
        assert [address for address in loaded if not address.startswith("data:")] == [], path.name
    for path in site.rglob("*.css"):
        content = path.read_text(encoding="utf-8")
        assert re.findall(r"(?:url\([\"']?|@import\s+[\"'])https?:", content) == [], path.name


@pytest.mark.slow
def test_no_link_is_dead(site):
    """Every address within the site is a file, and every anchor is in it."""
    anchors = {path: set(ANCHOR.findall(path.read_text(encoding="utf-8"))) for path in site.rglob("*.html")}
    for path in anchors:
        for _, address in references(path):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name} links to {address}"
            if parts.fragment and target in anchors and parts.fragment != "__codelineno":
                known = anchors[target]
                assert unquote(parts.fragment) in known, f"{path.name} links to {address}"


def test_links_of_other_texts_are_files():
    """README and its like are read without a site."""
    for path in ROOT.glob("*.md"):
        for address in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
            parts = urlsplit(address)
            if not parts.scheme and parts.path:
                assert (ROOT / parts.path).exists(), f"{path.name} links to {address}"


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_works_without_a_server(site):
    """Opened as a file in a browser that may not reach any network, the search finds pages."""
    browsing = pytest.importorskip("browsing")
    if not browsing.CHROMIUM:
        pytest.skip("needs chromium")
    with browsing.launched() as browser:
        page = browser.new_page()
        wanted, errors = [], []
        page.on("request", lambda request: wanted.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((site / "index.html").as_uri())
        page.locator("[data-md-component=search-query]").first.click()
        page.keyboard.type("tempered sequential")
        found = page.locator(".md-search-result__link").first
        found.wait_for(state="attached", timeout=60_000)
        addresses = page.locator(".md-search-result__link").evaluate_all("links => links.map(l => l.href)")
        assert any("questions.html" in address for address in addresses)
        assert errors == []
        assert [url for url in wanted if not url.startswith(("file:", "data:", "about:"))] == []
