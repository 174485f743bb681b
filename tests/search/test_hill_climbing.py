import itertools

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spbn
from spbn import Structure
from spbn.errors import ArgumentError, DataError, GraphError
from spbn.search import AddArc, ChangeType, hill_climb, operators
from spbn.search.hill_climbing import _rank

import reference
from naive import possible_operators
from strategies import nonlinear_frame

FRAME = nonlinear_frame(120, 4)


@pytest.mark.shared
@pytest.mark.parametrize("name", reference.TABLES)
@pytest.mark.parametrize("run", range(4))
def test_reference_searches(shared, name, run):
    """The same steps with the same deltas, to the same network."""
    frame, numbers = reference.load(shared, name)
    expected = numbers["hc"][run]
    score = spbn.scores.ValidatedLikelihood(
        frame.iloc[numbers["train_rows"]],
        folds=numbers["train_labels"],
        validation=frame.iloc[numbers["validation_rows"]],
    )
    result = hill_climb(
        score, Structure(numbers["columns"], types=expected["start"]), patience=expected["patience"]
    )
    assert set(result.structure.arcs) == set(map(tuple, expected["arcs"]))
    assert dict(result.structure.types) == expected["types"]
    assert result.score == pytest.approx(expected["cv"], rel=1e-11)
    assert result.validation_score == pytest.approx(expected["validation"], rel=1e-11)
    # The reference does not list a last step that patience rejects.
    listed = result.steps[:-1] if result.stop_reason == "patience" else result.steps
    assert [step_name(step.operator) for step in listed] == [
        name.split(";")[0] + ")" for name, _ in expected["steps"]
    ]
    deltas = [delta for _, delta in expected["steps"]]
    np.testing.assert_allclose([step.delta for step in listed], deltas, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize("name", reference.TABLES)
def test_engines_take_the_same_steps_on_the_reference_tables(shared, name):
    frame, _ = reference.load(shared, name)
    assert_engines_agree(frame, patience=5)


@pytest.mark.slow
def test_engines_take_the_same_steps_with_20000_rows():
    assert_engines_agree(spbn.datasets.synthetic(20_000, seed=5), patience=0)


def assert_engines_agree(frame, patience):
    exact, spectral = (
        hill_climb(
            spbn.scores.ValidatedLikelihood(frame, engine=engine),
            Structure(frame.columns, types="ckde"),
            patience=patience,
        )
        for engine in ("exact", "spectral")
    )
    assert [step.operator for step in spectral.steps] == [step.operator for step in exact.steps]
    np.testing.assert_allclose(
        [step.score for step in spectral.steps], [step.score for step in exact.steps], rtol=1e-9
    )
    assert spectral.structure == exact.structure
    assert spectral.validation_score == pytest.approx(exact.validation_score, rel=1e-9)


def step_name(operator):
    """As the reference writes it."""
    if isinstance(operator, ChangeType):
        factor = "CKDEFactor" if operator.after == "ckde" else "LinearGaussianFactor"
        return f"ChangeNodeType({operator.node} -> {factor})"
    kind = {"AddArc": "AddArc", "RemoveArc": "RemoveArc", "ReverseArc": "FlipArc"}[type(operator).__name__]
    return f"{kind}({operator.source} -> {operator.target})"


SCORES = {
    "bic": spbn.scores.BIC(FRAME),
    "bge": spbn.scores.BGe(FRAME),
    "cv": spbn.scores.CVLikelihood(FRAME, folds=4),
    "validated": spbn.scores.ValidatedLikelihood(FRAME, folds=4),
}


@pytest.mark.slow
@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("max_parents", [None, 1])
def test_every_step_is_the_best_there_is(score, max_parents):
    """Deltas kept over steps equal deltas computed from nothing, and the greatest is taken."""
    both = len(score.node_types) > 1
    structure = Structure("abcd", types="ckde" if both else "lg")
    result = hill_climb(score, structure, patience=3, max_parents=max_parents)
    assert result.steps
    tabu, best = set(), None
    for step in result.steps:
        before = type(score)(FRAME, **({"folds": 4} if both else {}))
        candidates = {
            operator: before.total(operator.apply(structure)) - before.total(structure)
            for operator in possible_operators(structure)
            if operator not in tabu
            and (both or not isinstance(operator, ChangeType))
            and all(len(operator.apply(structure).parents(n)) <= (max_parents or 9) for n in structure.nodes)
        }
        greatest = max(candidates.values())
        assert step.delta == pytest.approx(greatest, rel=1e-9, abs=1e-9)
        assert candidates[step.operator] == pytest.approx(greatest, rel=1e-9, abs=1e-9)
        structure = step.operator.apply(structure)
        assert step.structure == structure
        assert step.score == pytest.approx(before.total(structure), rel=1e-11)
        best, tabu = (structure, set()) if step.misses == 0 else (best, tabu | {step.operator.inverse})
    assert result.structure == best
    if result.stop_reason == "no operator improves the score":
        rest = [
            score.total(operator.apply(structure)) - score.total(structure)
            for operator in possible_operators(structure)
            if operator not in tabu
            and (both or not isinstance(operator, ChangeType))
            and all(len(operator.apply(structure).parents(n)) <= (max_parents or 9) for n in structure.nodes)
        ]
        assert max(rest) < 1e-6


def test_patience_counts_misses_and_the_best_structure_is_returned():
    score = SCORES["validated"]
    for patience in (0, 1, 3):
        result = hill_climb(score, Structure("abcd", types="ckde"), patience=patience)
        misses = 0
        validations = [score.validation_total(Structure("abcd", types="ckde"))]
        for step in result.steps:
            validations.append(step.validation_score)
            assert step.validation_score == pytest.approx(score.validation_total(step.structure), rel=1e-12)
        best = validations[0]
        for value, step in zip(validations[1:], result.steps, strict=True):
            misses = 0 if value > best else misses + 1
            best = max(best, value)
            assert step.misses == misses
        assert result.validation_score == best == pytest.approx(score.validation_total(result.structure))
        assert misses == patience + 1 or result.stop_reason != "patience"


def test_a_score_without_validation_climbs_to_the_top():
    result = hill_climb(SCORES["bic"], Structure("abcd"), patience=0)
    assert result.validation_score == result.score == pytest.approx(SCORES["bic"].total(result.structure))
    assert result.stop_reason == "no operator improves the score"
    assert result.structure == result.steps[-1].structure


def test_equivalent_structures_do_not_send_the_search_around_in_circles():
    """BIC and BGe do not tell a → b from b → a; the first by column order is taken, and kept."""
    for score in (SCORES["bic"], SCORES["bge"]):
        result = hill_climb(score, Structure("abcd"))
        first = result.steps[0].operator
        assert isinstance(first, AddArc)
        assert first.source < first.target
        assert len(result.steps) == len({step.structure for step in result.steps})


@settings(max_examples=10)
@given(order=st.permutations("abcd"))
def test_the_column_order_matters_only_for_ties(order):
    result = hill_climb(spbn.scores.CVLikelihood(FRAME[list(order)], folds=4), Structure(order, types="ckde"))
    assert result.structure == hill_climb(SCORES["cv"], Structure("abcd", types="ckde")).structure


@pytest.mark.parametrize("nodes", ["dcba", "cab"])
def test_a_start_may_have_some_of_the_columns_in_any_order(nodes):
    alone = spbn.scores.CVLikelihood(FRAME[list(nodes)], folds=SCORES["cv"].folds)
    start = Structure(nodes, types="ckde")
    expected, found = hill_climb(alone, start), hill_climb(SCORES["cv"], start)
    assert [step.operator for step in found.steps] == [step.operator for step in expected.steps]
    assert found.score == pytest.approx(expected.score, rel=1e-12)


def test_many_families_are_asked_about_in_parts(monkeypatch):
    expected = hill_climb(SCORES["validated"], Structure("abcd", types="lg"))
    monkeypatch.setattr(operators, "LARGEST_BATCH", 12)
    assert (
        hill_climb(spbn.scores.ValidatedLikelihood(FRAME, folds=4), Structure("abcd", types="lg")) == expected
    )


def test_constraints_are_kept():
    required, forbidden = [("d", "a")], [("a", "b"), ("b", "a")]
    result = hill_climb(
        SCORES["cv"],
        Structure("abcd", types="ckde"),
        required_arcs=required,
        forbidden_arcs=forbidden,
        fixed_types=(node for node in "a"),
        max_parents=1,
    )
    for step in result.steps:
        assert set(required) <= set(step.structure.arcs)
        assert not set(forbidden) & set(step.structure.arcs)
        assert step.structure.type("a") == "ckde"
        assert all(len(step.structure.parents(node)) <= 1 for node in "abcd")


def test_types_can_be_fixed_to_a_value():
    result = hill_climb(SCORES["cv"], Structure("abcd"), fixed_types={"b": "ckde"}, max_steps=0)
    assert result.structure.type("b") == "ckde"
    assert result.stop_reason == "max_steps"


def test_operators_can_be_chosen():
    arcs_only = hill_climb(SCORES["cv"], Structure("abcd", types="ckde"), operators=("arcs",))
    assert set(arcs_only.structure.types.values()) == {"ckde"}
    start = Structure("abcd", [("a", "b")], "ckde")
    types_only = hill_climb(SCORES["cv"], start, operators=("types",))
    assert types_only.structure.arcs == start.arcs
    assert all(isinstance(step.operator, ChangeType) for step in types_only.steps)


def test_no_parents_allowed():
    result = hill_climb(SCORES["cv"], Structure("abcd"), max_parents=0)
    assert result.structure.arcs == ()
    assert result.steps


def test_epsilon_and_max_steps_stop_early():
    whole = hill_climb(SCORES["cv"], Structure("abcd", types="ckde"))
    threshold = whole.steps[1].delta
    assert len(hill_climb(SCORES["cv"], Structure("abcd", types="ckde"), epsilon=threshold).steps) == 1
    cut = hill_climb(SCORES["cv"], Structure("abcd", types="ckde"), max_steps=2)
    assert cut.steps == whole.steps[:2]
    assert cut.stop_reason == "max_steps"


def test_steps_are_called_back_and_an_interrupt_comes_through():
    seen = []
    result = hill_climb(SCORES["cv"], Structure("abcd", types="ckde"), on_step=seen.append)
    assert tuple(seen) == result.steps

    def interrupt(step):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hill_climb(SCORES["cv"], Structure("abcd", types="ckde"), on_step=interrupt)


def test_collinear_columns_are_survived():
    frame = FRAME.assign(sum=FRAME["a"] + FRAME["b"], copy=FRAME["a"])
    score = spbn.scores.ValidatedLikelihood(frame, folds=4)
    for start in ("lg", "ckde"):
        result = hill_climb(score, Structure(frame.columns, types=start))
        assert np.isfinite(result.score)
        assert np.isfinite([step.delta for step in result.steps]).all()
        assert not {("a", "copy"), ("copy", "a")} & set(result.structure.arcs)


@pytest.mark.parametrize("others", [-3.0, 3.0, 0.0])
def test_no_structure_looks_better_for_a_node_that_cannot_be_fitted(others):
    """Whatever the sign of what the node would have added."""
    fitted = _rank({"a": -5.0, "b": others})
    assert fitted > _rank({"a": -5.0, "b": -np.inf})
    assert fitted > _rank({"a": 50.0, "b": -np.inf})
    assert _rank({"a": -4.0, "b": -np.inf}) > _rank({"a": -5.0, "b": -np.inf})


def test_a_node_that_cannot_be_fitted_does_not_hide_the_others():
    frame = FRAME.assign(rare=np.eye(1, len(FRAME), 3)[0])
    score = spbn.scores.ValidatedLikelihood(frame, folds=4)
    result = hill_climb(score, Structure(frame.columns, types="ckde"))
    assert result.score == -np.inf
    assert len(result.structure.arcs) > 1
    assert result.structure.parents("rare") == ()


def test_a_wild_value_in_one_column_does_not_stop_the_others(rng):
    frame = nonlinear_frame(300, 3).assign(s=rng.normal(size=300))
    calm = hill_climb(spbn.scores.ValidatedLikelihood(frame), Structure(frame.columns, types="ckde"))
    frame.loc[5, "s"] = 1e9
    wild = hill_climb(spbn.scores.ValidatedLikelihood(frame), Structure(frame.columns, types="ckde"))
    assert [arc for arc in wild.structure.arcs if "s" not in arc] == [
        a for a in calm.structure.arcs if "s" not in a
    ]


@pytest.mark.skipif(numba.get_num_threads() < 2, reason="has one core only")
def test_one_and_two_threads_give_the_same_search():
    threads = numba.get_num_threads()
    try:
        results = []
        for count in (1, threads):
            numba.set_num_threads(count)
            results.append(
                hill_climb(spbn.scores.ValidatedLikelihood(FRAME, folds=4), Structure("abcd", types="ckde"))
            )
    finally:
        numba.set_num_threads(threads)
    assert results[0] == results[-1]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"patience": -1}, ArgumentError, "patience must be a whole number, 0 or more"),
        ({"patience": 1.5}, ArgumentError, "patience"),
        ({"epsilon": -1.0}, ArgumentError, "epsilon"),
        ({"epsilon": float("nan")}, ArgumentError, "epsilon"),
        ({"epsilon": "0"}, ArgumentError, "epsilon"),
        ({"max_parents": -1}, ArgumentError, "max_parents"),
        ({"max_steps": -1}, ArgumentError, "max_steps"),
        ({"operators": ()}, ArgumentError, "operators must be"),
        ({"operators": ("arcs", "nodes")}, ArgumentError, "operators must be"),
        (
            {"required_arcs": [("a", "b")], "forbidden_arcs": [("a", "b")]},
            ArgumentError,
            "arc a → b is both required and forbidden",
        ),
        ({"required_arcs": [("a", "b"), ("b", "a")]}, GraphError, "cycle"),
        ({"required_arcs": [("a", "z")]}, ArgumentError, "required_arcs must hold pairs"),
        ({"forbidden_arcs": ["abc"]}, ArgumentError, "forbidden_arcs must hold pairs"),
        (
            {"required_arcs": [("a", "c"), ("b", "c")], "max_parents": 1},
            ArgumentError,
            "more than max_parents=1",
        ),
        ({"fixed_types": ["z"]}, GraphError, "no node 'z'"),
        ({"fixed_types": {"a": "normal"}}, ArgumentError, "a node type must be"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_work(options, error, message):
    class Untouched(spbn.scores.Score):
        def _compute(self, batch):
            raise AssertionError("work has started")

    with pytest.raises(error, match=message):
        hill_climb(Untouched("abcd", spbn.NodeType), Structure("abcd"), **options)


def test_starts_that_do_not_fit_are_refused():
    with pytest.raises(ArgumentError, match="takes a score and a Structure"):
        hill_climb(SCORES["cv"], spbn.DAG("abc"))
    with pytest.raises(DataError, match="lacks nodes of start: 'z'"):
        hill_climb(SCORES["cv"], Structure("abz"))
    with pytest.raises(ArgumentError, match="start has forbidden arcs: a → b"):
        hill_climb(SCORES["cv"], Structure("ab", [("a", "b")]), forbidden_arcs=[("a", "b")])
    for score in (SCORES["bge"], SCORES["bic"]):
        with pytest.raises(ArgumentError, match=r"type lg only\. start has other types at 'a', 'b' and 'c'"):
            hill_climb(score, Structure("abc", types="ckde"))


def test_exhaustive_search_agrees_on_two_nodes():
    """Two nodes: three graphs and four pairs of types can be tried out."""
    frame = FRAME[["a", "b"]]
    score = spbn.scores.CVLikelihood(frame, folds=4)
    every = [
        Structure("ab", arcs, {"a": s, "b": t})
        for arcs in ([], [("a", "b")], [("b", "a")])
        for s, t in itertools.product(("lg", "ckde"), repeat=2)
    ]
    found = max((hill_climb(score, Structure("ab", types=t)) for t in ("lg", "ckde")), key=lambda r: r.score)
    assert found.score == pytest.approx(max(map(score.total, every)), rel=1e-12)
