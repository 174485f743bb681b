"""The command line, and the page that tables go to."""

import pytest
from experiments.__main__ import main
from experiments.page import move_tables, place, signed, table


@pytest.mark.parametrize("name", ["uci", "gaussian", "bearings", "all"])
def test_without_data_it_says_so_in_a_line(name, tmp_path, capsys):
    for folder in (tmp_path / "nowhere", tmp_path):  # not there, and not a clone of the authors' repository
        assert main([name, "--data", str(folder)]) == 2
        message = capsys.readouterr().err
        assert message.count("\n") == 1
        assert str(folder) in message


def test_every_folder_that_an_experiment_reads_must_be_there(tmp_path, capsys):
    (tmp_path / "UCI data").mkdir()
    assert main(["limits", "--data", str(tmp_path)]) == 2
    assert "GaussianNetworks is not a folder" in capsys.readouterr().err


def test_a_run_needs_a_process(tmp_path, capsys):
    assert main(["synthetic", "--data", str(tmp_path), "--jobs", "0"]) == 2
    assert "1 or more. Got 0" in capsys.readouterr().err


def test_unknown_experiments_are_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["unknown", "--data", str(tmp_path)])
    assert stop.value.code == 2
    assert "synthetic" in capsys.readouterr().err


@pytest.mark.slow
def test_a_quick_run_leaves_results_and_tables(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("experiments.__main__.RESULTS", tmp_path)
    monkeypatch.setattr("experiments.synthetic.SIZES", (200,))
    for _ in range(2):
        assert main(["synthetic", "--data", str(tmp_path), "--quick"]) == 0
    lines = (tmp_path / "quick" / "synthetic.csv").read_text().splitlines()
    assert len(lines) == 1 + 2 * 12
    assert {path.suffix for path in (tmp_path / "quick" / "synthetic").iterdir()} == {".md", ".svg"}


def test_tables_move_to_their_places(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n<!-- one -->\nold\n<!-- /one -->\n\n<!-- two -->\n<!-- /two -->\n")
    folder = tmp_path / "page"
    folder.mkdir()
    (folder / "one.md").write_text(table(["a", "b"], [["x", 1]]))
    move_tables(folder, page)
    content = page.read_text()
    assert "old" not in content
    assert "<!-- one -->\n\n| a | b |\n| --- | ---: |\n| x | 1 |\n\n<!-- /one -->" in content
    assert content.endswith("<!-- two -->\n<!-- /two -->\n")
    assert not list(folder.iterdir())
    move_tables(folder, page)
    assert page.read_text() == content


def test_a_table_without_a_place_is_an_error(tmp_path):
    page, folder = tmp_path / "page.md", tmp_path / "page"
    folder.mkdir()
    page.write_text("nothing\n")
    (folder / "three.md").write_text("x")
    with pytest.raises(ValueError, match=r"no place for three\.md"):
        move_tables(folder, page)


def test_numbers():
    assert signed(-1234.567) == "−1,234.57"
    assert [place(value, 1.0, 2.0) for value in (0.9, 0.999, 1.5, 2.1)] == [
        "below",
        "within",
        "within",
        "above",
    ]
