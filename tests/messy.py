"""Messy tables, made from the data of scikit-learn and statsmodels: every fault alone, and several together.

``python -m tests.messy folder`` writes them all.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import statsmodels.api as sm
from sklearn import datasets


class Messy(NamedTuple):
    """A table in a file.

    `findings` are the kinds of what a person would find in it, by column; "" stands for the rows. `nodes` are
    the variables that a network of it should have. `options` are what pandas has to be told to read the file.
    """

    file: str
    findings: dict[str, tuple[str, ...]]
    nodes: tuple[str, ...]
    options: Mapping[str, Any] = MappingProxyType({})

    def read(self, folder):
        """Read the file with pandas alone."""
        path = Path(folder) / self.file
        kind = path.name.split(".", 1)[1]
        readers = {"parquet": pd.read_parquet, "xlsx": pd.read_excel, "jsonl": pd.read_json}
        return readers.get(kind, pd.read_csv)(path, **self.options)


def wine(rows=178):
    frame = datasets.load_wine(as_frame=True).frame.iloc[:: 178 // rows]
    names = ["alcohol", "ash", "magnesium", "hue", "proline", "target"]
    return frame[names].reset_index(drop=True)


def iris():
    found = datasets.load_iris(as_frame=True)
    frame = found.frame.set_axis(
        ["sepal_length", "sepal_width", "petal_length", "petal_width", "target"], axis=1
    )
    return frame.assign(species=found.target_names[frame["target"]]).sample(150, random_state=0)


def cancer():
    found = datasets.load_breast_cancer(as_frame=True)
    names = ["mean radius", "mean texture", "mean smoothness", "mean symmetry"]
    return found.frame[[*names, "target"]].iloc[:240]


def diabetes():
    frame = datasets.load_diabetes(as_frame=True, scaled=False).frame
    return frame[["age", "bmi", "bp", "s1", "s5", "target"]].rename(columns={"target": "progress"}).iloc[:250]


def carbon_dioxide():
    data = sm.datasets.co2.load_pandas().data.dropna().iloc[::4][:300]
    return pd.DataFrame({"when": data.index, "co2": data["co2"].to_numpy()})


def fair():
    data = sm.datasets.fair.load_pandas().data.iloc[::20].reset_index(drop=True)
    marriage = ["very poor", "poor", "fair", "good", "very good"]
    religious = ["never", "rarely", "sometimes", "often"]
    return pd.DataFrame(
        {
            "rating": [marriage[int(k) - 1] for k in data["rate_marriage"]],
            "religious": [religious[int(k) - 1] for k in data["religious"]],
            "age": data["age"],
            "married": data["yrs_married"],
            "affairs": data["affairs"],
        }
    )


def holed(frame, share, seed=0, but=()):
    """Take values out at random."""
    rng = np.random.default_rng(seed)
    gone = rng.random(frame.shape) < share
    gone[:, [name in but for name in frame]] = False
    return frame.mask(gone)


def german(values, digits=2, thousands="."):
    """Write numbers with decimal commas."""
    texts = [f"{value:,.{digits}f}" for value in values]
    return [text.replace(",", "_").replace(".", ",").replace("_", thousands) for text in texts]


def once(column, value, *rows):
    """Replace values in some rows."""
    changed = column.astype(object)
    changed.iloc[list(rows)] = value
    return changed


def spelled(column, *spellings):
    """Write every value in several ways, one after the other."""
    ways = [(lambda text, how=how: how.format(text)) for how in spellings]
    return [(ways[k % len(ways)](text)) for k, text in enumerate(column)]


WINE = ("alcohol", "ash", "magnesium", "hue", "proline", "target")


def write_all(folder):
    """Write all tables, and say what is wrong with them."""
    folder = Path(folder)
    made: list[Messy] = []

    def csv(name, frame, findings, nodes, *, above="", index=False, encoding="utf-8", options=None, **how):
        text = frame.to_csv(index=index, **how)
        (folder / name).write_text(above + text, encoding=encoding)
        read = {"sep": how["sep"]} if "sep" in how else {}
        if above:
            read["skiprows"] = above.count("\n")
        made.append(Messy(name, findings, nodes, read | (options or {})))

    csv(
        "index.csv",
        iris().reset_index(drop=True),
        {"Unnamed: 0": ("index",), "target": ("category",), "species": ("same",)},
        ("sepal_length", "sepal_width", "petal_length", "petal_width", "target"),
        index=True,
    )
    frame = diabetes()
    csv(
        "codes.csv",
        frame.assign(bmi=once(frame["bmi"], -999, 3, 40, 77), bp=once(frame["bp"], 9999, 5, 6, 40)),
        {"bmi": ("code",), "bp": ("code",), "": ("holes",)},
        tuple(frame),
    )
    frame = wine()
    csv(
        "units.csv",
        frame.assign(
            alcohol=[f"{x:.2f} %" for x in frame["alcohol"]],
            proline=[f"{x:.0f}mg" for x in frame["proline"]],
            magnesium=[f"{x:.0f} mg/l" for x in frame["magnesium"]],
        ),
        {"alcohol": ("unit",), "proline": ("unit",), "magnesium": ("unit",), "target": ("category",)},
        WINE,
    )
    data = sm.datasets.engel.load_pandas().data
    rest = data["income"] - 2 * data["foodexp"]
    csv(
        "currencies.csv",
        pd.DataFrame(
            {
                "income": [f"${x:,.2f}" for x in data["income"]],
                "food": [f"{x:,.2f} €" for x in data["foodexp"]],
                "rest": [f"({-x:,.0f})" if x < 0 else f"{x:,.0f}" for x in rest],
            }
        ),
        {"income": ("unit",), "food": ("unit",), "rest": ("format",)},
        ("income", "food", "rest"),
    )
    csv(
        "german.csv",
        pd.DataFrame({name: german(frame[name]) for name in WINE[:-1]} | {"target": frame["target"]}),
        {**dict.fromkeys(WINE[:-1], ("format",)), "target": ("category",)},
        WINE,
        sep=";",
    )
    data = sm.datasets.grunfeld.load_pandas().data
    csv(
        "spaces.csv",
        pd.DataFrame(
            {
                "invest": german(data["invest"], 1, "\u00a0"),
                "value": german(data["value"], 1, " "),
                "capital": [f"{x:,.1f}".replace(",", "'") for x in data["capital"]],
                "firm": data["firm"],
                "year": data["year"].astype(int),
            }
        ),
        {"invest": ("format",), "value": ("format",), "capital": ("format",)},
        ("invest", "value", "capital", "firm", "year"),
        sep=";",
    )
    frame = iris()
    csv(
        "spellings.csv",
        frame.drop(columns="target").assign(species=spelled(frame["species"], "{}", " {}", "{} ", "{}")),
        {"species": ("spelling",)},
        ("sepal_length", "sepal_width", "petal_length", "petal_width", "species"),
    )
    frame = cancer()
    truths = {0: ["no", "No", "N", "FALSE"], 1: ["yes", "Yes", "Y", "TRUE"]}
    csv(
        "truth.csv",
        frame.assign(target=[truths[value][k % 4] for k, value in enumerate(frame["target"])]),
        {"target": ("spelling",)},
        tuple(frame),
    )
    frame = carbon_dioxide()
    csv(
        "dates.csv",
        frame.assign(when=frame["when"].dt.strftime("%d/%m/%Y")),
        {"when": ("date",)},
        ("when_days", "when_month", "co2"),
    )
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-03-01", periods=400, freq="h")
    load = 50 + 20 * np.sin(times.hour / 24 * 2 * np.pi) + rng.normal(0, 3, 400)
    heat = load + rng.normal(0, 9, 400)
    csv(
        "hours.csv",
        pd.DataFrame(
            {
                "at": times.strftime("%b %d, %Y %I:%M %p"),
                "load": load.round(2),
                "heat": heat,
            }
        ),
        {"at": ("date",)},
        ("at_days", "at_hour", "load", "heat"),
    )
    data = sm.datasets.fertility.load_pandas().data
    data = data[
        ["Country Name", "Country Code", "Indicator Name", "1960", "1970", "1980", "1990", "2012", "2013"]
    ]
    csv(
        "names.csv",
        data,
        {
            "Country Name": ("name",),
            "Country Code": ("name",),
            "Indicator Name": ("constant",),
            "2012": ("empty",),
            "2013": ("empty",),
            "": ("holes",),
        },
        ("1960", "1970", "1980", "1990"),
    )
    frame = cancer().drop(columns="target")
    csv(
        "copies.csv",
        frame.assign(
            unit="mm", version=3, again=frame["mean radius"], inches=frame["mean radius"] / 25.4,
            note=once(pd.Series([None] * len(frame)), "look", 3, 5),
            **{"Sample ID": np.arange(len(frame)) * 3 + 8000},
        ),
        {
            "unit": ("constant",),
            "version": ("constant",),
            "again": ("copy",),
            "inches": ("copy",),
            "note": ("sparse",),
            "Sample ID": ("id",),
        },
        tuple(frame),
    )  # fmt: skip
    csv("holes.csv", holed(wine(), 0.3), {"target": ("category",), "": ("holes",)}, WINE)
    frame = wine()
    csv(
        "words.csv",
        frame.assign(
            alcohol=once(frame["alcohol"], "n.d.", 3, 17, 60),
            hue=once(frame["hue"], "not measured", 9),
            ash=[f"{x:.2f}".replace("-", "\u2212") for x in frame["ash"] - 2.4],
        ),
        {"alcohol": ("word",), "hue": ("word",), "target": ("category",), "": ("holes",)},
        WINE,
    )
    csv(
        "orders.csv",
        fair(),
        {"rating": ("order",), "religious": ("order",)},
        ("rating", "religious", "age", "married", "affairs"),
    )
    csv(
        "titles.csv",
        wine(),
        {"target": ("category",)},
        WINE,
        above="Wines of Piedmont, three growers\nas of May 2024\n\n",
    )
    frame = wine()
    with pd.ExcelWriter(folder / "sheets.xlsx") as book:
        frame.assign(hue=[f"{x:.2f} u" for x in frame["hue"]]).to_excel(
            book, sheet_name="Wines", index=False, startrow=3
        )
        frame.head().to_excel(book, sheet_name="Few", index=False)
        sheet = book.sheets["Wines"]
        sheet["A1"], sheet["A2"] = "Wines of Piedmont", "as of May 2024"
    made.append(
        Messy(
            "sheets.xlsx",
            {"hue": ("unit",), "target": ("category",)},
            WINE,
            {"skiprows": 3, "sheet_name": "Wines"},
        )
    )
    frame = iris().drop(columns="target")
    rows = [
        {k: v for k, v in row.items() if v == v}
        for row in frame.assign(
            petal_width=[f"{x} cm" for x in frame["petal_width"]], tags=[["a", "b"]] * len(frame)
        ).to_dict("records")
    ]
    rows[4]["sepal_width"] = None
    (folder / "lines.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    made.append(
        Messy(
            "lines.jsonl",
            {"petal_width": ("unit",), "tags": ("objects",), "": ("holes",)},
            tuple(frame),
            {"lines": True},
        )
    )
    frame = carbon_dioxide()
    frame = frame.assign(
        delay=pd.to_timedelta(np.arange(len(frame)) % 17, unit="h"),
        good=np.arange(len(frame)) % 5 > 0,
        grade=pd.Categorical(np.resize(["c", "a", "b"], len(frame)), ["c", "b", "a"], ordered=True),
    )
    frame.to_parquet(folder / "kinds.parquet", index=False)
    made.append(
        Messy(
            "kinds.parquet",
            {"when": ("date",), "delay": ("date",)},
            ("when_days", "when_month", "co2", "delay_days", "good", "grade"),
        )
    )
    frame = wine()
    csv(
        "zeros.csv",
        frame.assign(
            alcohol=once(frame["alcohol"], 0.0, 11).astype(float),
            hue=once(frame["hue"], 95.0, 40).astype(float),
        ),
        {"alcohol": ("zeros",), "hue": ("far",), "target": ("category",)},
        WINE,
    )
    frame = wine()
    bottled = pd.Timestamp("2021-05-03") + pd.to_timedelta(np.arange(178) * 5 % 300, unit="D")
    growers = [("Rossi", "Bianchi", "Verdi")[k] for k in frame["target"]]
    csv(
        "everything.csv",
        pd.DataFrame(
            {
                "Bottle No": [f"B-{k:04d}" for k in range(len(frame))],
                "bottled": bottled.strftime("%d.%m.%Y"),
                "alcohol": [f"{x} Vol.%" for x in german(frame["alcohol"])],
                "ash": once(pd.Series(german(frame["ash"])), "-999", 3, 4, 90),
                "magnesium": german(frame["magnesium"], 1),
                "proline": [f"{x} €" for x in german(frame["proline"] * 10)],
                "grower": spelled(growers, "{}", "{} ", "{}"),
                "organic": [("ja", "Nein", "nein", "Ja")[k % 4] for k in range(178)],
                "taste": [("good", "fair", "poor", "excellent")[k // 3 % 4] for k in range(178)],
                "country": "Italia",
                "remarks": once(pd.Series([None] * 178), "cork", 7),
                "alcohol (g/l)": german(frame["alcohol"] * 7.9, 3),
            }
        ),
        {
            "Unnamed: 0": ("index",),
            "Bottle No": ("name",),
            "bottled": ("date",),
            "alcohol": ("unit",),
            "ash": ("format", "code"),
            "magnesium": ("format",),
            "proline": ("unit",),
            "grower": ("spelling",),
            "organic": ("spelling",),
            "taste": ("order",),
            "country": ("constant",),
            "remarks": ("sparse",),
            "alcohol (g/l)": ("copy",),
            "": ("holes",),
        },
        ("bottled_days", "alcohol", "ash", "magnesium", "proline", "grower", "organic", "taste"),
        sep=";",
        index=True,
        above="Kellerbuch;;\n\n",
    )  # fmt: skip
    data = sm.datasets.anes96.load_pandas().data.iloc[::4]
    states = np.array(["Ohio", "Utah", "Iowa", "Texas", "Maine"])
    csv(
        "survey.csv",
        pd.DataFrame(
            {
                "respondent_id": np.arange(len(data)) + 100_200,
                "age": once(data["age"].astype(int), 999, 4, 9),
                "income": [f"{x:,.0f} USD" for x in data["income"] ** 2 * 400.0 + data["age"] * 10],
                "vote": data["vote"].astype(int),
                "state": states[np.random.default_rng(1).integers(5, size=len(data))],
                "zip code": np.random.default_rng(2).integers(10_000, 99_999, len(data)),
                "news": once(data["TVnews"], "?", 3),
            }
        ),
        {
            "respondent_id": ("id",),
            "age": ("code",),
            "income": ("unit",),
            "vote": ("category",),
            "zip code": ("key",),
            "": ("holes",),
        },
        ("age", "income", "vote", "state", "news"),
        options={"encoding": "utf-8"},
    )  # fmt: skip
    frame = wine()
    rng = np.random.default_rng(3)
    delivered = pd.Timestamp("2023-01-02") + pd.to_timedelta(rng.integers(400, size=178), unit="D")
    csv(
        "export.csv",
        pd.DataFrame(
            {
                "Verkäufe": german(frame["proline"] * 3, 0),
                "Anteil": [f"{x} %" for x in german(frame["alcohol"])],
                "Fläche": [f"{x:.0f} m2" for x in frame["magnesium"] * 10],
                "geliefert": delivered.strftime("%Y%m%d"),
                "bezahlt": ["x" if x > 0.9 else "" for x in frame["hue"]],
                "Quartal": [f"{2019 + k // 4}Q{k % 4 + 1}" for k in rng.integers(20, size=178)],
                "PLZ": np.resize([10115, 20095, 80331, 50667], 178),
                "Farbe": np.resize(["rot", "weiß", "-", "rosé", "rot"], 178),
            }
        ),
        {
            "Verkäufe": ("format",),
            "Anteil": ("unit",),
            "Fläche": ("unit",),
            "geliefert": ("date",),
            "bezahlt": ("tick",),
            "Quartal": ("date",),
            "PLZ": ("codes",),
            "Farbe": ("word",),
            "": ("holes",),
        },
        ("Verkäufe", "Anteil", "Fläche", "geliefert_days", "bezahlt", "Quartal_days", "PLZ", "Farbe"),
        sep=";",
        encoding="cp1252",
        options={"encoding": "cp1252", "dtype": {"Verkäufe": str}},
    )  # fmt: skip
    frame = wine()
    csv(
        "levels.csv",
        frame.drop(columns="target").groupby(np.arange(178) // 2).agg(["mean", "max"]),
        {},
        tuple(f"{name}_{what}" for name in WINE[:-1] for what in ("mean", "max")),
        options={"header": [0, 1]},
    )
    frame = wine()[["alcohol", "ash", "hue", "proline"]].reset_index(names="Unnamed: 0")
    csv(
        "twice.csv",
        frame.rename(columns={"hue": "ash"}),
        {"Unnamed: 0.1": ("index",), "Unnamed: 0": ("index",)},
        ("alcohol", "ash", "ash.1", "proline"),
        index=True,
    )
    return made


if __name__ == "__main__":
    for table in write_all(sys.argv[1]):
        print(table.file)
