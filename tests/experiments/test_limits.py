"""PC with RCoT by the largest condition."""

from pathlib import Path

import pandas as pd
from experiments.figures.limits import limits_table

from experiments import gaussian, limits, uci


def test_every_limit_that_is_set_is_compared_with_smaller_ones():
    compared = {(cell.data, cell.limit) for cell in limits.cells(Path(), quick=False)}
    on_networks = {name: limit for (name, _), limit in gaussian.LARGEST_CONDITION.items()}
    for name, limit in (uci.LARGEST_CONDITION | on_networks).items():
        assert {(name, smaller) for smaller in range(limit + 1)} <= compared


def test_the_table_has_likelihoods_per_row_and_variable():
    columns = ["data", "limit", "model", "loglik", "rows", "nodes", "arcs", "dropped_arcs", "seconds"]
    results = pd.DataFrame(
        [
            ("Iris", 1, "GBN", -90.0, 15, 4, 5, 0, 90.0),
            ("Iris", 1, "KDEBN", -60.0, 15, 4, 5, 0, 0.5),
            ("Iris", 0, "GBN", -120.0, 15, 4, 6, 0, 30.0),
        ],
        columns=columns,
    )
    lines = limits_table(results).splitlines()[2:]
    assert lines == ["| Iris | 0 | 6 | −2.000 |  | 0.5 |", "| Iris | 1 | 5 | −1.500 | −1.000 | 1.5 |"]
