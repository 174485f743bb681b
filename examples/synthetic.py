"""The paper's synthetic network, end to end: ``make demo``."""

import time

import spbn
from spbn.datasets import paper_synthetic, synthetic_logpdf, synthetic_structure


def main() -> None:
    """Fit the known structure, then learn it, and put the figures beside the published ones."""
    train, test = paper_synthetic("10000"), paper_synthetic("test")

    print("The paper's synthetic network, fitted to 10,000 rows:\n")
    network = spbn.BayesianNetwork.fit(synthetic_structure(), train)
    print(network)

    print(f"\n{'log-likelihood of the 1,000 test rows':40}{'here':>12}{'published':>12}")
    print(f"{'  true density':40}{synthetic_logpdf(test).sum():12.2f}{-6982.23:12.2f}")
    print(f"{'  fitted network':40}{network.loglik(test):12.2f}{-7134.90:12.2f}")

    print("\nLearned from the same rows, structure and node types:\n")
    start = time.perf_counter()
    learned = spbn.learn(train, seed=2)
    print(learned.search)
    same = "the true one" if learned.structure == synthetic_structure() else "not the true one"
    print(f"\nThis is {same}; found in {time.perf_counter() - start:.1f} s.")

    print("\nFive rows drawn from it:\n")
    print(learned.sample(5, seed=0).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
