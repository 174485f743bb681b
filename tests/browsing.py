"""A browser for tests: Debian's chromium, driven by playwright; tests are skipped where there is none."""

import os
import shutil
from contextlib import contextmanager

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
playwright = pytest.importorskip("playwright.sync_api", reason="browser tests need playwright")
#: For the tests of a module that open a browser.
needs_chromium = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not CHROMIUM,
        reason="browser tests need chromium: apt-get install chromium, or set CHROMIUM to its path",
    ),
]
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def launched():
    """Give a browser."""
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
