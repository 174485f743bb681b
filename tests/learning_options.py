"""Settings under which every option of `learn` matters: if one is lost, another network is learned."""

from strategies import nonlinear_frame

FRAME = nonlinear_frame(60, 4, seed=2)

#: For every option a value under which another network is learned from FRAME, and what else must be given.
CASES = {
    "model": ("gbn", {}),
    "algorithm": ("pc", {"test": "plc"}),
    "test": ("plc", {"algorithm": "pc"}),
    "alpha": (0.4, {"algorithm": "pc", "test": "plc"}),
    "type_selection": ("normality", {"model": "spbn", "algorithm": "pc", "test": "plc"}),
    "start": ("lg", {}),
    "types": (["lg"], {}),
    "score": ("bge", {"model": "gbn"}),
    "folds": (3, {}),
    "validation": (0.5, {}),
    "penalty": (30.0, {"model": "auto"}),
    "patience": (0, {}),
    "epsilon": (10.0, {}),
    "max_seconds": (0.0, {"model": "spbn"}),
    "max_parents": (1, {"model": "spbn"}),
    "required_arcs": ([("a", "c"), ("d", "b")], {"model": "gbn"}),
    "forbidden_arcs": ([("a", "b"), ("b", "a")], {"model": "gbn"}),
    "tiers": ([["d"], ["c"], ["a", "b"]], {"model": "gbn"}),
    "bandwidth": ("silverman", {}),
    "margins": ("yeo-johnson", {}),
    "bounds": ({"a": (-50.0, 50.0)}, {"model": "gbn"}),
    "atoms": (["a=0.18905338179353307"], {"model": "gbn"}),
    "discrete": (["d"], {"model": "gbn"}),
    "smoothing": (5.0, {"model": "gbn", "discrete": ["c", "d"], "required_arcs": [("c", "d")]}),
    "hidden": (2, {"model": "gbn"}),
    "seed": (1, {}),
}
