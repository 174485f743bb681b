"""The experiment on seeds."""

import pandas as pd
import pytest
from experiments.figures.seeds import spreads

from experiments import seeds


def test_a_fold_has_its_range_over_seeds():
    results = pd.DataFrame(
        {"data": "Glass", "fold": 0, "seed": [0, 1, 2], "loglik": [40.0, 20.0, 60.0], "rows": 10, "nodes": 2}
    )
    row = spreads(results).iloc[0]
    assert row["prototype"] == 1.153
    assert row[["seed 0", "lowest", "median", "highest"]].tolist() == [2.0, 1.0, 2.0, 3.0]


@pytest.mark.slow
@pytest.mark.shared
def test_the_seed_reaches_the_search(shared):
    found = {
        seeds.run(seeds.Cell("Breast_tissue", 0, seed), shared / "paper-data")["loglik"] for seed in (0, 1)
    }
    assert len(found) == 2
