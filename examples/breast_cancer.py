"""Tell malignant from benign tumours by two densities.

569 tumours, eight measurements of their cell nuclei. One network is learned from the benign
ones and one from the malignant ones. A tumour belongs to the class under which it is more
likely: the sign of the difference of two log-densities plus the log of the prior odds decides.
Gaussian, KDE and semiparametric networks are compared on rows that they have not seen.
"""

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold

import spbn

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


def log_densities(tumours: pd.DataFrame, malignant: pd.Series, model: str) -> pd.DataFrame:
    """Return the log-density of every tumour under both classes, learned without its fold."""
    parts = []
    for train, test in FOLDS.split(tumours, malignant):
        rows, label, unseen = tumours.iloc[train], malignant.iloc[train], tumours.iloc[test]
        densities = {}
        for kind in (False, True):
            network = spbn.learn(rows[label == kind], model=model, max_parents=2)
            densities[kind] = network.logpdf(unseen)
        parts.append(pd.DataFrame(densities, index=unseen.index))
    return pd.concat(parts).sort_index()


def main() -> None:
    """Compare the three kinds of networks, as densities and as classifiers."""
    data = load_breast_cancer(as_frame=True)
    names = {name: name.removeprefix("mean ") for name in data.data.columns if name.startswith("mean ")}
    # Perimeter and area are nearly functions of the radius: the same information three times.
    tumours = data.data[list(names)].rename(columns=names).drop(columns=["perimeter", "area"])
    malignant = data.target == 0
    prior_odds = np.log(malignant.mean() / (1 - malignant.mean()))

    print(f"{malignant.sum()} malignant and {(~malignant).sum()} benign tumours, 5-fold cross-validation\n")
    print(f"{'model':8}{'log-density':>13}{'accuracy':>10}{'ROC AUC':>10}")
    for model in ("gbn", "kdebn", "spbn"):
        density = log_densities(tumours, malignant, model)
        own = np.where(malignant, density[True], density[False])
        odds = density[True] - density[False] + prior_odds
        accuracy, area = accuracy_score(malignant, odds > 0), roc_auc_score(malignant, odds)
        print(f"{model:8}{own.mean():13.3f}{accuracy:10.3f}{area:10.3f}")
    print("\nlog-density: mean over tumours, each under its own class; higher is better.")
    error = np.sqrt(accuracy * (1 - accuracy) / len(tumours))
    print(f"The standard error of an accuracy is {error:.3f}: differences below twice that say nothing.")


if __name__ == "__main__":
    main()
