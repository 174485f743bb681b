"""Which wines are unusual, and which measurement makes them so.

178 wines of one region and three grape varieties, eight of their chemical measurements. A
network is learned from the measurements alone: it is not told the variety. Every wine
is then scored by a network that has not seen it.
"""

import pandas as pd
from sklearn.datasets import load_wine
from sklearn.model_selection import KFold

import spbn

COLUMNS = [
    "alcohol",
    "malic_acid",
    "total_phenols",
    "flavanoids",
    "color_intensity",
    "hue",
    "od280/od315_of_diluted_wines",
    "proline",
]


def scored_out_of_sample(wine: pd.DataFrame, model: str) -> pd.DataFrame:
    """Return the log-density of every wine by node, from networks that were learned without it."""
    parts = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(wine):
        network = spbn.learn(wine.iloc[train], model=model, max_parents=2)
        parts.append(network.logpdf_by_node(wine.iloc[test]))
    return pd.concat(parts).sort_index()


def main() -> None:
    """Learn, score, and explain the least likely wines."""
    data = load_wine(as_frame=True)
    wine = data.data[COLUMNS].rename(columns={"od280/od315_of_diluted_wines": "od280"})

    network = spbn.learn(wine, max_parents=2)
    print("The network of all wines:\n")
    print(network)

    by_node = scored_out_of_sample(wine, "auto")
    total, typical = by_node.sum(axis=1), by_node.median()
    gaussian = scored_out_of_sample(wine, "gbn").sum(axis=1)
    print(f"\nMean log-density of an unseen wine: {total.mean():.2f}")
    print(f"and under a Gaussian network: {gaussian.mean():.2f}")

    print("\nThe five least likely wines, and the measurements that make them so.")
    print("Log-density first; in brackets, how far that of the measurement is below its median.\n")
    for row in total.nsmallest(5).index:
        lacking = (typical - by_node.loc[row]).nlargest(2)
        reasons = [f"{node} = {wine.loc[row, node]:g} ({-gap:+.1f})" for node, gap in lacking.items()]
        print(f"  wine {row:3d}, variety {data.target[row]}: {total[row]:6.1f}; {', '.join(reasons)}")


if __name__ == "__main__":
    main()
