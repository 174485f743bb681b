"""The experiment on mixed tables."""

import pandas as pd
import pytest
from experiments.figures.hybrid import draw, per_row
from experiments.hybrid_tables import SOURCES, hybrid_table

from experiments import hybrid


@pytest.mark.shared
@pytest.mark.parametrize(
    ("name", "shape", "discrete"),
    [("Abalone", (4177, 9), 1), ("Australian", (690, 15), 9), ("Sick", (1947, 22), 16)],
)
def test_tables(shared, name, shape, discrete):
    frame = hybrid_table(shared / "hybrid-data", name)
    assert frame.shape == shape
    assert frame.select_dtypes("category").shape[1] == discrete
    assert not frame.isna().any().any()


@pytest.mark.slow
@pytest.mark.shared
def test_cells_cover_everything_once(shared):
    cells = hybrid.cells(shared / "hybrid-data", quick=False)
    assert len(set(cells)) == len(cells)
    assert {cell.data for cell in cells} == set(SOURCES)
    assert len([cell for cell in cells if cell.data == "Adult" and cell.method == "CLG"]) == 2


def measured(data, fold, method, loglik, status="measured", unscored=0):
    rows = 10 if status == "measured" else None
    return {"data": data, "fold": fold, "method": method, "status": status, "loglik": loglik, "rows": rows,
            "unscored": unscored, "nodes": 3, "arcs": 1, "learning": 2.0}  # fmt: skip


def test_drawing_ranks_our_models_and_names_rows_that_the_peer_cannot_score(tmp_path):
    results = [
        measured(name, fold, method, -10.0 * (place + 1))
        for name in ("Liver", "German")
        for fold in range(10)
        for place, method in enumerate(hybrid.MODELS)
    ]
    results += [measured("Liver", 0, hybrid.PEER, -16.0, unscored=2)]
    results += [measured("German", 0, hybrid.PEER, None, status="stopped")]
    results += [measured("Abalone", 0, "CLG", -1.0)]  # not finished: not shown
    frame = pd.DataFrame(results)
    assert per_row(frame).loc["Liver"].tolist() == [-1.0, -2.0, -3.0, -4.0, -5.0]
    draw(frame, tmp_path, tmp_path)
    text = (tmp_path / "hybrid-likelihoods.md").read_text("utf-8")
    assert "| Liver | 100 | **−1.00** | −2.00 | −3.00 | −4.00 | −5.00 | −2.00 | 2 of 10 |" in text
    assert "more than 10 min" in text
    assert "Abalone" not in text
    assert "1.00 | 2.00 | 3.00" in text


@pytest.mark.parametrize("first", [{"status": "stopped", "learning": None}, {"learning": 1000.0}], ids=str)
def test_the_peer_is_not_begun_again_where_its_first_fold_was_stopped_or_slow(first, tmp_path, monkeypatch):
    monkeypatch.setattr(hybrid, "RESULTS", tmp_path / "hybrid.csv")
    row = measured("Liver", 0, hybrid.PEER, None) | first
    pd.DataFrame([row]).to_csv(hybrid.RESULTS)
    found = hybrid.run(hybrid.Cell("Liver", 1, hybrid.PEER), tmp_path)
    assert found["status"] == "not begun"
