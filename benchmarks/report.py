"""How large reports are, and how soon they open in a browser.

python benchmarks/report.py            # 60 variables, and a graph of 200: some minutes
python benchmarks/report.py --small    # 12 and 40 variables

Needs chromium and playwright. With --pictures FOLDER, pages are also drawn at 1280 and 390 pixels, light and
dark, to be looked at.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import spbn
from spbn.report import write_report

from timing import heading, machine

ROWS, REPEATS = 500, 5
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
#: What a page must have done before someone can use it: everything is drawn, and the explorer answers.
READY = """async () => {
    await document.fonts.ready;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now();
}"""


def frame(variables: int, rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """Return columns of which each depends on one or two before it; every tenth is a category."""
    rng = np.random.default_rng(seed)
    columns = {"x00": rng.normal(size=rows)}
    for place in range(1, variables):
        parents = rng.choice(list(columns), size=min(place, 2), replace=False)
        values = sum(np.sin(columns[name]) for name in parents) + 0.5 * rng.normal(size=rows)
        columns[f"x{place:02d}"] = values
    table = pd.DataFrame(columns)
    for name in table.columns[9::10]:
        table[name] = pd.cut(table[name], 3, labels=["low", "middle", "high"]).astype(str)
    return table


def graph(variables: int) -> spbn.BayesianNetwork:
    """Return a Gaussian network in which nodes have up to three parents."""
    rng = np.random.default_rng(0)
    names = [f"sensor {place:03d}" for place in range(variables)]
    arcs = [
        (names[parent], names[child])
        for child in range(1, variables)
        for parent in rng.choice(child, min(child, rng.integers(0, 4)), replace=False).tolist()
    ]
    rows = pd.DataFrame(rng.normal(size=(100, variables)), columns=names)
    return spbn.BayesianNetwork.fit(spbn.Structure(names, arcs), rows)


def opening(path: Path, pictures: Path | None) -> list[float]:
    """Return the seconds until a page can be used, each time in a new tab."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    found = []
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = driver.chromium.launch(executable_path=program, args=arguments)
        for _ in range(REPEATS):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(path.as_uri())
            found.append(page.evaluate(READY) / 1000)
            page.close()
        for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
            if pictures is not None:
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                page.goto(path.as_uri())
                page.evaluate(READY)
                page.screenshot(path=pictures / f"{path.stem}-{width}-{scheme}.png", full_page=width == 1280)
                page.close()
        browser.close()
    return found


def measured(
    name: str, network: spbn.BayesianNetwork, data: pd.DataFrame | None, pictures: Path | None
) -> None:
    """Print the size of a report, and how soon it opens."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{name.replace(' ', '-')}.html")
        start = time.perf_counter()
        write_report(network, path, data=data, title=name)
        written = time.perf_counter() - start
        seconds = opening(path, pictures)
        size = path.stat().st_size / 1e6
    print(f"{name:24} {written:12.1f} {size:10.2f} {statistics.median(seconds):12.2f} {max(seconds):10.2f}")


def main() -> None:
    """Measure a report with many variables, and one with a large graph."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--pictures", type=Path)
    given = parser.parse_args()
    many, most = (12, 40) if given.small else (60, 200)
    print(machine())
    heading(f"{'report':24} {'written, s':>12} {'size, MB':>10} {'opens, s':>12} {'slowest':>10}")
    with tempfile.TemporaryDirectory() as folder:
        blank = Path(folder, "blank.html")
        blank.write_text("<!doctype html><title>Blank</title><p>Nothing.")
        seconds = opening(blank, None)
    print(f"{'a page with one word':48} {statistics.median(seconds):12.2f} {max(seconds):10.2f}")
    data = frame(many)
    network = spbn.learn(data, model="spbn", max_parents=2, patience=0, start="lg")
    measured(f"{many} variables", network, data, given.pictures)
    measured(f"graph of {most}", graph(most), None, given.pictures)


if __name__ == "__main__":
    main()
