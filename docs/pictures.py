"""Draw the pictures of the documentation: ``python docs/pictures.py`` writes docs/img/.

The same version of matplotlib gives the same bytes. The pictures of pages are taken with chromium; if
it is not installed, they are left as they are.
"""

import contextlib
import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import spbn
from spbn.datasets import synthetic, synthetic_structure
from spbn.plots import plot_contributions, plot_cpd, plot_search, plot_structure
from spbn.plots.pictures import LINES

FOLDER = Path(__file__).parent / "img"

#: The layers of the package from the top, as tests/test_imports.py has them, and the step of the path in
#: docs/architecture.md in which a table is there.
HOUSE: dict[str, dict[str, int | None]] = {
    "presentation": {"cli": 1, "plots": None, "report": 10},
    "analysis": {"diagnostics": 9, "monitoring": None, "scorer.py": None, "sklearn": None, "pgmpy.py": None},
    "learning": {"learning": 2, "timeseries": None},
    "models": {
        **{"scores": 5, "search": 6, "fitting.py": 7, "network.py": 8, "record.py": None, "io": None},
        **{"independence": None, "inference": None, "joint.py": None, "datasets.py": None, "dask": None},
    },
    "densities": {"rows": 4, "nodes": None, "structure.py": None, "transforms.py": None, "metrics.py": None},
    "mathematics": {"tables": 3, "kernels": None, "numerics": None, "graphs": None},
    "foundation": {"_base": None, "errors.py": None},
}


def save(figure: plt.Figure, name: str) -> None:
    """Write one picture, on white so that it can be read on any background."""
    figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None}, facecolor="white", dpi=72)
    plt.close(figure)


def structure() -> None:
    """The synthetic network of the paper."""
    save(plot_structure(synthetic_structure()).figure, "structure")


def confidence() -> None:
    """Which arcs of the iris data to believe."""
    from sklearn.datasets import load_iris

    iris = load_iris(as_frame=True).frame.drop(columns="target")
    iris.columns = ["sepal length", "sepal width", "petal length", "petal width"]
    figure = spbn.confidence(iris, replicates=20).plot().figure
    figure.savefig(FOLDER / "confidence.png", dpi=130)
    plt.close(figure)


def watching() -> None:
    """A day of the pump in docs/monitoring.md: the page's own code, up to its picture."""
    from spbn.plots import plot_verdicts

    page = (Path(__file__).parent / "monitoring.md").read_text(encoding="utf-8")
    blocks = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    names: dict[str, object] = {}
    quiet = contextlib.redirect_stdout(io.StringIO())
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), quiet:
        exec("\n".join(blocks[:3]), names)
    above, _ = plot_verdicts(names["found"], alarm=0.001)
    figure = above.figure
    figure.savefig(FOLDER / "watching.png", dpi=110, facecolor="white")
    plt.close(figure)


def kernels() -> None:
    """A kernel density estimate is the mean of normal densities on the rows."""
    rows = np.array([-2.6, -2.2, -1.7, -1.5, 0.9, 1.6, 1.8, 2.1, 2.6])
    xs = np.linspace(-5.0, 5.0, 200)
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 2.6), layout="constrained", sharey=True)
    for ax, factor, title in zip(
        axes, (1.0, 0.15), ("Scott's rule", "0.15 times that bandwidth"), strict=True
    ):
        kde = spbn.nodes.KDE.fit({"x": rows}, bandwidth=lambda x, c=factor: c * np.cov(x.T) * len(x) ** -0.4)
        width = float(kde.bandwidth[0, 0])
        for row in rows:
            bump = np.exp(-0.5 * (xs - row) ** 2 / width) / np.sqrt(2 * np.pi * width) / len(rows)
            ax.plot(xs, bump, color="#9aa0a8", linewidth=0.8)
        ax.plot(xs, np.exp(kde.logpdf({"x": xs})), color=LINES[0], linewidth=1.8)
        ax.plot(rows, np.zeros_like(rows), "|", color="black", markersize=9)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("x")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("density")
    save(figure, "kernels")


def node_types() -> None:
    """The same two families, linear Gaussian and CKDE."""
    rng = np.random.default_rng(0)
    x = rng.normal(np.where(rng.random(1000) < 0.5, -2.0, 2.0), 1.0)
    data = {"x": x, "y": 2.0 * np.sin(x) + 0.4 * rng.standard_normal(1000)}
    figure, axes = plt.subplots(2, 2, figsize=(6.2, 4.2), layout="constrained", sharey="row")
    for column, (node_type, title) in enumerate((("lg", "linear Gaussian"), ("ckde", "CKDE"))):
        network = spbn.BayesianNetwork.fit(spbn.Structure("xy", [("x", "y")], node_type), data)
        plot_cpd(network, "x", axes[0, column], data=data)
        plot_cpd(network, "y", axes[1, column], data=data, points=120)
        axes[0, column].set_title(title, fontsize=10)
    save(figure, "node-types")


def search() -> None:
    """A search on rows of the synthetic network."""
    network = spbn.learn(synthetic(2000, seed=0), model="spbn", patience=3)
    save(plot_search(network.search).figure, "search")


def comparison() -> None:
    """What few rows find, compared with the truth."""
    found = spbn.learn(synthetic(200, seed=1), model="spbn").structure
    figure, ax = plt.subplots(figsize=(3.6, 3.4), layout="constrained")
    plot_structure(found, ax, compare_to=synthetic_structure())
    save(figure, "comparison")


def contributions() -> None:
    """A fault in one variable, seen in the contributions of the nodes."""
    network = spbn.BayesianNetwork.fit(synthetic_structure(), synthetic(2000, seed=0))
    rows = synthetic(120, seed=1)
    rows.loc[80:, "D"] += np.linspace(0.0, 4.0, 40)  # the sensor of D begins to drift
    ax = plot_contributions(network.logpdf_by_node(rows), nodes=["C", "D", "E"])
    ax.set_xlabel("row")
    save(ax.figure, "contributions")


def posterior() -> None:
    """An answer with two modes, and that of a Gaussian network with the same arcs."""
    rows, structure = synthetic(2000, seed=0), synthetic_structure()
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 2.6), layout="constrained", sharex=True, sharey=True)
    for ax, types, title in zip(
        axes, (structure.types, "lg"), ("semiparametric network", "Gaussian network"), strict=True
    ):
        network = spbn.BayesianNetwork.fit(spbn.Structure("ABCDE", structure.arcs, types), rows)
        answer = network.query({"A": 6.0, "E": 0.5}, n=20_000)
        edges = np.linspace(-36.0, 36.0, 61).tolist()
        ax.hist(answer.draws["C"], edges, weights=answer.weights, density=True, color=LINES[0], linewidth=0)
        ax.axvline(answer.mean()["C"], color="black", linewidth=1, linestyle="--")
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("C given A = 6 and E = 0.5; dashed: its mean")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("density")
    save(figure, "posterior")


def causes() -> None:
    """What dose does to the days in hospital, seen and set, in the table of docs/causes.md."""
    page = (FOLDER.parent / "causes.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0], names)
    patients, network = names["patients"], names["network"]
    grid = np.linspace(2.0, 8.0, 25)
    seen = [network.query({"dose": value}, n=5000).mean()["days"] for value in grid]
    done = [network.query(do={"dose": value}, n=5000).mean()["days"] for value in grid]
    figure, ax = plt.subplots(figsize=(5.2, 3.2), layout="constrained")
    some = patients.iloc[:300]
    ax.scatter(some["dose"], some["days"], s=6, color="0.75", linewidths=0, label="patients")
    ax.plot(grid, seen, "--", color=LINES[1], label="of patients who got this dose")
    ax.plot(grid, done, color=LINES[0], label="if all got this dose")
    ax.set(xlabel="dose", ylabel="days in hospital", xlim=(1.8, 8.2), ylim=(8, 37))
    ax.legend(frameon=False, loc="upper right")
    save(figure, "causes")


def architecture() -> None:
    """The layers of the package, and where a table is on its path through them."""
    source = Path(spbn.__file__).parent
    there = {path.name for path in source.iterdir() if path.is_dir() or path.suffix == ".py"}
    drawn = {name for units in HOUSE.values() for name in units}
    assert drawn == {name for name in there if not name.startswith("__")} - {"_deprecated.py"}
    figure, ax = plt.subplots(figsize=(7.6, 4.9), layout="constrained")
    circle = {"boxstyle": "circle,pad=0.25", "facecolor": LINES[0], "edgecolor": "none"}
    y = 0
    for number, (layer, units) in enumerate(HOUSE.items()):
        height = -(-len(units) // 6)  # lines of six
        shade = "#eef1f5" if number % 2 else "#dfe5ee"
        ax.add_patch(plt.Rectangle((0, y + 0.04), 100, height - 0.08, color=shade))
        ax.text(1.5, y + 0.5 * height, layer, va="center", fontsize=9, weight="bold")
        for place, (name, step) in enumerate(units.items()):
            left, top = 17 + 13.8 * (place % 6), y + 0.22 + place // 6
            ax.add_patch(plt.Rectangle((left, top), 12.6, 0.56, facecolor="white", edgecolor="#8a9099"))
            ax.text(left + 6.3, top + 0.29, name, ha="center", va="center", fontsize=8)
            if step is not None:
                style = {"ha": "center", "va": "center", "fontsize": 7.5, "color": "white", "weight": "bold"}
                ax.text(left, top + 0.02, str(step), bbox=circle, **style)
        y += height
    ax.set(xlim=(-0.5, 100.5), ylim=(y + 0.05, -0.05))
    ax.set_axis_off()
    save(figure, "architecture")


def over_time() -> None:
    """A network over time, and what it expects: the example of the page on time."""
    page = (Path(__file__).parent / "time.md").read_text(encoding="utf-8")
    example = page.split("```python")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in example[1:3]:
            exec(block.split("```")[0], names)
    save(names["dynamic"].plot().figure, "slices")
    save(names["ahead"].plot(), "fan")


def gallery() -> None:
    """The gallery: every block of its page, and after it the picture that the page shows below the block."""
    page = (Path(__file__).parent / "gallery.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block, below in re.findall(r"```python\n(.*?)```\n(.*?)(?=```|\Z)", page, flags=re.DOTALL):
            plt.close("all")
            exec(block, names)
            picture = re.search(r"\(img/(gallery-.+?)\.svg\)", below)
            if picture is not None:
                save(plt.gcf(), picture[1])


@contextmanager
def browser_page(height: int) -> Iterator[Any]:
    """Give a page of a browser; None where there is no browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        yield None
        return
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_page(viewport={"width": 1280, "height": height}, color_scheme="light")
        browser.close()


def save_shot(page: Any, name: str) -> None:
    """Save what a browser shows. Few colours are enough for a page, and make a small file."""
    from PIL import Image

    shot = Image.open(io.BytesIO(page.screenshot()))
    shot.convert("RGB").quantize(96).save(FOLDER / f"{name}.png", optimize=True)


def report() -> None:
    """The head of a report, as a browser shows it."""
    from spbn.report import write_report

    rows = synthetic(2000, seed=0)
    rows.loc[7, "D"] += 6.0
    network = spbn.learn(synthetic(2000, seed=0))
    with tempfile.TemporaryDirectory() as folder, browser_page(1420) as page:
        if page is None:
            return
        path = Path(folder) / "report.html"
        write_report(network, path, data=rows, title="Five variables")
        page.goto(path.as_uri())
        page.locator(".graph .node[data-node='4']").click()  # E
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        save_shot(page, "report")


def explorer() -> None:
    """The explorer with an interval brushed."""
    from spbn.report import write_explorer

    network = spbn.BayesianNetwork.fit(synthetic_structure(), synthetic(2000, seed=0))
    with tempfile.TemporaryDirectory() as folder, browser_page(960) as page:
        if page is None:
            return
        path = Path(folder) / "explorer.html"
        write_explorer(network, path, title="Five variables")
        page.goto(f"{path.as_uri()}#what-if?C=10..&E=..0.5")
        page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
        save_shot(page, "explorer")


def main() -> None:
    """Draw all of them."""
    FOLDER.mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "spbn", "svg.fonttype": "none", "font.size": 9}):
        for draw in (
            structure,
            kernels,
            node_types,
            search,
            comparison,
            contributions,
            posterior,
            causes,
            over_time,
            architecture,
        ):
            draw()
        gallery()
    confidence()
    watching()
    report()
    explorer()


if __name__ == "__main__":
    main()
