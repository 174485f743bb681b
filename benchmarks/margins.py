"""What margins gain on rows that a network has not seen, for the 28 UCI tables, and how "auto" chooses.

python benchmarks/margins.py ../shared/paper-data    # about three minutes

Up to 1,200 rows and 16 columns of every table, without ties; a quarter of the rows are new. "alike" is how
many columns are chosen as they would be by five-fold log-likelihoods of normal densities.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import norm

import spbn
from spbn.transforms import MOST_NATS, Margins, MarginsPlan, YeoJohnson, pays

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from experiments.sources import uci_names, uci_table, without_constant_columns, without_dependent_columns

ROWS, COLUMNS, FOLDS = 1_200, 16, 5
MODELS = {"gbn": {}, "blend": {"folds": 4, "patience": 2, "max_parents": 2}}
KINDS = ("none", "yeo-johnson", "auto")


def read(data: Path, name: str) -> pd.DataFrame:
    """Return some rows of a table, spread within the distance of neighbouring values."""
    frame = without_dependent_columns(without_constant_columns(uci_table(data, name)))
    frame = frame.sample(min(len(frame), ROWS), random_state=0).reset_index(drop=True).iloc[:, :COLUMNS]
    rng = np.random.default_rng(0)
    for column in frame:
        step = np.diff(np.unique(frame[column])).min()
        frame[column] += rng.uniform(-0.5, 0.5, len(frame)) * step
    return frame


def is_chosen_by_folds(column: np.ndarray) -> bool:
    """Tell whether the transform is better for the rows of folds that nothing was fitted to."""
    gain = 0.0
    for fold in range(FOLDS):
        test = np.arange(len(column)) % FOLDS == fold
        transform, others, rows = YeoJohnson.fit(column[~test]), column[~test], column[test]
        moved = transform.forward(others)
        after = norm(moved.mean(), moved.std()).logpdf(transform.forward(rows)) + transform.log_slope(rows)
        before = norm(others.mean(), others.std()).logpdf(rows)
        gain += float(np.clip(after - before, -MOST_NATS, MOST_NATS).sum())
    return pays(gain, len(column))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    warnings.simplefilter("ignore")
    found = []
    print("gain over no margins, in nats per row and variable")
    print(f"{'':20} chosen alike" + "".join(f"{f'{m}, {k}':>20}" for m in MODELS for k in KINDS[1:]))
    for name in uci_names(data):
        frame = read(data, name)
        train, test = frame[: len(frame) * 3 // 4], frame[len(frame) * 3 // 4 :]
        chosen = (MarginsPlan("auto").fit(spbn.tables.reader.as_table(train)) or Margins({})).columns
        alike = sum((c in chosen) == is_chosen_by_folds(train[c].to_numpy()) for c in train)
        gains = {}
        for model, options in MODELS.items():
            logpdf = {
                kind: np.mean(spbn.learn(train, model=model, margins=kind, **options).logpdf(test))
                / frame.shape[1]
                for kind in KINDS
            }
            gains |= {(model, kind): logpdf[kind] - logpdf["none"] for kind in KINDS[1:]}
        found.append({"columns": frame.shape[1], "chosen": len(chosen), "alike": alike, **gains})
        print(
            f"{name:20} {len(chosen):3d}/{frame.shape[1]:2d} {alike:5d}"
            + "".join(f"{gain:20.3f}" for gain in gains.values()),
            flush=True,
        )
    table = pd.DataFrame(found)
    print(
        f"{'all':20} {table['chosen'].sum()}/{table['columns'].sum()} {table['alike'].sum():5d}"
        + "".join(f"{table[m, k].mean():20.3f}" for m in MODELS for k in KINDS[1:])
    )


if __name__ == "__main__":
    main()
