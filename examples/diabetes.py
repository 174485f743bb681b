"""What depends on what in the diabetes data, and how sure that is.

442 patients: age, body mass index, blood pressure, blood serum, and how far the disease had
progressed a year later. Two networks are compared, a Gaussian and a semiparametric one. Arcs
that come back in random halves of the patients can be trusted; others cannot. At the end
new patients are drawn.
"""

from collections import Counter

import pandas as pd
from sklearn.datasets import load_diabetes

import spbn

NAMES = {
    "age": "age",
    "bmi": "bmi",
    "bp": "pressure",
    "s1": "cholesterol",
    "s2": "ldl",
    "s3": "hdl",
    "s5": "triglycerides",  # its logarithm, according to the description of the data
    "s6": "glucose",
    "target": "progression",
}
# Progression was measured a year after everything else, so it cannot cause any of it.
FORBIDDEN = [("progression", name) for name in NAMES.values() if name != "progression"]
HALVES = 10


def main() -> None:
    """Learn, compare, check and sample."""
    # Not used: sex has two values, and s4 is a ratio of two other columns.
    patients = load_diabetes(as_frame=True, scaled=False).frame[list(NAMES)].rename(columns=NAMES)

    gaussian = spbn.learn(patients, model="gbn", forbidden_arcs=FORBIDDEN)
    network = spbn.learn(patients, model="spbn", max_parents=3, forbidden_arcs=FORBIDDEN)
    print("The semiparametric network:\n")
    print(network)
    print(f"\nPairs joined in only this or only the Gaussian network: {spbn.metrics.hmd(network, gaussian)}")

    joined: Counter[str] = Counter()
    for seed in range(HALVES):
        half = patients.sample(frac=0.5, random_state=seed)
        arcs = spbn.learn(half, model="spbn", max_parents=3, forbidden_arcs=FORBIDDEN).structure.arcs
        joined.update(" - ".join(sorted(arc)) for arc in arcs)
    print(f"\nPairs joined in most of {HALVES} random halves of the patients:\n")
    for pair, times in joined.most_common():
        if times > HALVES / 2:
            print(f"  {times:3d} times  {pair}")

    drawn = pd.DataFrame(
        {
            "patients": patients["progression"].describe(),
            "Gaussian": gaussian.sample(5000, seed=0)["progression"].describe(),
            "semiparametric": network.sample(5000, seed=0)["progression"].describe(),
        }
    )
    print("\nProgression of the patients, and of 5,000 drawn from each network:\n")
    print(drawn.loc[["mean", "std", "min", "25%", "50%", "75%", "max"]].round(1).to_string())


if __name__ == "__main__":
    main()
