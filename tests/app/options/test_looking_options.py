"""Options of the commands that show a model or make a smaller one, of the demo, and of none."""

import re
from pathlib import Path

import pytest

import spbn
from command_options import learned_over_time, option
from learning_options import FRAME
from spbn.cli.files import read_table
from spbn.plots.graphs import save_graph, to_dot
from spbn.report import render

pytestmark = pytest.mark.usefixtures("tables")


def compacted(run, *arguments):
    code, out, err = run("compact", "m.spbn", *arguments, "--out", "small.spbn")
    assert code == 0, err
    return spbn.BayesianNetwork.load("small.spbn"), out


@option("compact", "--out")
def test_compact_out(run):
    spbn.learn(FRAME, model="kdebn", max_parents=1).save("m.spbn")
    network, out = compacted(run)
    assert network == spbn.BayesianNetwork.load("m.spbn").compact()
    assert re.match(r"compact model written to small.spbn: \d+ kB instead of \d+ kB", out)


@option("compact", "--tolerance")
def test_compact_tolerance(run):
    spbn.learn(FRAME, model="kdebn", max_parents=0).save("m.spbn")
    exact = spbn.BayesianNetwork.load("m.spbn")
    network, _ = compacted(run, "--tolerance", "0.01")
    assert network == exact.compact(0.01)
    assert network != exact.compact()
    code, _, err = run("compact", "m.spbn", "--tolerance", "1e-12", "--out", "other.spbn")
    assert code == 2
    assert "--tolerance must be between 1e-06 and 0.01" in err
    assert not Path("other.spbn").exists()


@option("compact", "--others")
def test_compact_others(run):
    structure = spbn.Structure("abcd", [("a", "d"), ("b", "d"), ("c", "d")], "ckde")
    spbn.BayesianNetwork.fit(structure, FRAME).save("m.spbn")
    code, _, err = run("compact", "m.spbn", "--out", "small.spbn")
    assert code == 2
    assert "Learn with --max-parents 2, or pass --others keep to keep the rows of such nodes." in err
    network, _ = compacted(run, "--others", "keep")
    assert network.cpds["d"].kept_rows is not None
    assert network.cpds["a"].kept_rows is None


@option("plot", "--out")
def test_plot_out(run):
    assert run("plot", "m.spbn", "--out", "graph.dot")[0] == 0
    assert Path("graph.dot").read_text() == to_dot(spbn.learn(FRAME))


@option("plot", "--slices")
def test_plot_slices(run):
    network = learned_over_time(run)
    assert run("plot", "time.spbn", "--out", "g.svg", "--slices", "4")[0] == 0
    save_graph(network, Path("expected.svg"), slices=4)
    assert Path("g.svg").read_bytes() == Path("expected.svg").read_bytes()
    assert "--slices is for models over time" in run("plot", "m.spbn", "--out", "g.svg", "--slices", "4")[2]


@pytest.mark.slow
@option("report", "--out")
def test_report_out(run):
    assert run("report", "m.spbn", "--out", "r.html")[0] == 0
    assert Path("r.html").read_text() == render(spbn.BayesianNetwork.load("m.spbn"), title="m")


@pytest.mark.slow
def test_report_with_rows(run):
    network = spbn.BayesianNetwork.load("m.spbn")
    expected = render(network, data=read_table("frame.csv"), title="m")
    assert "no rows were given" not in expected
    assert run("report", "m.spbn", "frame.csv", "--out", "r.html")[0] == 0
    assert Path("r.html").read_text() == expected


@pytest.mark.slow
@option("report", "--confidence")
def test_report_confidence(run):
    assert run("confidence", "frame.csv", "--model", "gbn", "--replicates", 4, "--out", "arcs.csv")[0] == 0
    assert run("report", "m.spbn", "--confidence", "arcs.csv", "--out", "r.html")[0] == 0
    network = spbn.BayesianNetwork.load("m.spbn")
    found = spbn.confidence(FRAME, model="gbn", replicates=4)
    strengths = spbn.explain.Strengths.from_table(found.arcs, network.nodes)
    page = Path("r.html").read_text()
    assert page == render(network, title="m", confidence=strengths)
    assert "Which arcs to believe" in page
    code, _, err = run("report", "m.spbn", "--confidence", "frame.csv", "--out", "r.html")
    assert (code, "frame.csv: a table of arcs has the columns 'source', 'target'" in err) == (2, True)


def explored(run, *arguments, **settings):
    """Run `spbn explore`, and compare the page with the one that the library writes."""
    code, out, err = run("explore", "m.spbn", "--no-open", *arguments)
    assert code == 0, err
    name = out.split()[-1]
    network = spbn.BayesianNetwork.load("m.spbn")
    assert Path(name).read_text() == spbn.report.render_explorer(network, title="m", **settings)
    return name


@option("explore", "--out")
def test_explore_out(run):
    assert explored(run, "--out", "e.html") == "e.html"
    assert explored(run) == "m-explorer.html"


@option("explore", "--samples")
def test_explore_samples(run):
    explored(run, "--samples", 300, n=300)
    code, _, err = run("explore", "m.spbn", "--samples", 0, "--no-open")
    assert code == 2
    assert "-n must be a whole number" in err
    explored(run, "-n", 300, n=300)


@option("explore", "--seed")
def test_explore_seed(run):
    first = explored(run, "--samples", 300, "--seed", 4, n=300, seed=4)
    assert Path(first).read_text() != spbn.report.render_explorer(
        spbn.BayesianNetwork.load("m.spbn"), title="m", n=300
    )


@option("explore", "--open")
def test_explore_open(run):
    import webbrowser

    addresses = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(webbrowser, "open", lambda address: addresses.append(address) or True)
        assert run("explore", "m.spbn", "--samples", 100, "--no-open")[0] == 0
        assert addresses == []
        code, out, _ = run("explore", "m.spbn", "--samples", 100)
        assert (code, "No browser" in out) == (0, False)
        assert addresses == [Path("m-explorer.html").resolve().as_uri()]
        patch.setattr(webbrowser, "open", lambda address: False)
        assert "No browser was found" in run("explore", "m.spbn", "--samples", 100)[1]


@pytest.mark.slow
@option("demo", "--folder")
def test_demo_folder(run, monkeypatch):
    small = spbn.datasets.paper_synthetic("200")
    monkeypatch.setattr("spbn.datasets.paper_synthetic", lambda name: small)  # 10,000 rows take a while
    Path("here").mkdir()
    assert run("demo", "--folder", "here")[0] == 0
    assert {path.name for path in Path("here").iterdir()} == {"spbn-demo.spbn", "spbn-demo.html"}
    assert spbn.BayesianNetwork.load("here/spbn-demo.spbn").record.rows == 200


@option("", "--version")
def test_version(run):
    assert run("--version")[:2] == (0, f"spbn {spbn.__version__}\n")


@option("export", "--out")
def test_export_out(run):
    assert run("export", "m.spbn", "--out", "graph.csv")[1] == "network written to graph.csv\n"
    spbn.exchange.export(spbn.BayesianNetwork.load("m.spbn"), "same.csv")
    assert Path("graph.csv").read_bytes() == Path("same.csv").read_bytes()
    code, _, err = run("export", "m.spbn", "--out", "graph.txt")
    assert code == 2
    assert "by the ending of the name. Got 'graph.txt'" in err


def test_pages_are_named_after_the_table_that_was_learned_from(run):
    FRAME.to_csv("houses.csv", index=False)
    assert run("learn", "houses.csv", "--model", "gbn", "--out", "anything.spbn")[0] == 0
    assert spbn.BayesianNetwork.load("anything.spbn").record.title == "houses"
    assert run("explore", "anything.spbn", "--no-open")[0] == 0
    assert "<h1>houses</h1>" in Path("anything-explorer.html").read_text()
    assert run("report", "anything.spbn", "--out", "r.html")[0] == 0
    assert "<h1>houses</h1>" in Path("r.html").read_text()


@option("import", "--out")
def test_import_out(run):
    rows = {"sky": ["clear", "clear", "cloudy", "cloudy"] * 5, "rain": ["no", "no", "yes", "no"] * 5}
    structure = spbn.Structure(["sky", "rain"], [("sky", "rain")], "discrete")
    network = spbn.BayesianNetwork.fit(structure, rows)
    spbn.exchange.export(network, "weather.bif")
    code, out, _ = run("import", "weather.bif", "--out", "weather.spbn")
    assert code == 0
    assert out.endswith("model written to weather.spbn\n")
    assert spbn.BayesianNetwork.load("weather.spbn") == network
    Path("weather.bif").write_text("nonsense")
    code, _, err = run("import", "weather.bif", "--out", "other.spbn")
    assert code == 2
    assert err.startswith("spbn: weather.bif cannot be read: a block is a network, a variable or a prob")
