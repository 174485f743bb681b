"""Searches that are cut short: by time, by Ctrl-C, or by a kill; they go on as if nothing had happened."""

import math

import numpy as np
import pytest

import spbn
from spbn import Structure
from spbn.errors import ArgumentError
from spbn.search import AddArc, SearchInterrupted, hill_climb, hill_climbing
from spbn.search.hill_climbing import Step, Trail

from strategies import ScoreOf, random_local

START = Structure("abcd")


def searches():
    """Scores with misses on the way; in some, families cannot be fitted, and in one the tabu decides."""
    for seed in range(6):
        validation = random_local(seed + 100) if seed % 2 else None
        yield ScoreOf("abcd", random_local(seed), validation=validation), {"patience": seed}

    def partly(family):
        return -math.inf if "a" in family.parents else random_local(3)(family)

    yield ScoreOf("abcd", random_local(3), validation=partly), {"patience": 4, "max_parents": 2}

    def stairs(family):
        """With all three parents there it would pay to let b go, were that not the way back from a miss."""
        values = {"b": 3.0, "bc": 4.0, "bcd": 5.0, "cd": 6.0}
        return values.get("".join(family.parents), -9.0 if family.parents else 0.0)

    worse = ScoreOf("abcd", stairs, types=["lg"], validation=lambda family: -stairs(family))
    yield worse, {"patience": 10, "forbidden_arcs": [(x, y) for x in "abcd" for y in "bcd" if x != y]}


@pytest.mark.parametrize(("score", "options"), list(searches()))
def test_a_search_goes_on_after_any_step(score, options):
    whole = hill_climb(score, START, **options)
    assert whole.steps
    for cut in range(len(whole.steps) + 1):
        before = hill_climb(score, START, max_steps=cut, **options)
        seen = []
        after = hill_climb(score, START, taken=before.steps, on_step=seen.append, **options)
        assert after == whole
        assert tuple(seen) == whole.steps[cut:]
        assert [step.structure for step in after.steps] == [step.structure for step in whole.steps]


@pytest.mark.parametrize(("score", "options"), list(searches()))
def test_an_interrupt_brings_along_what_was_found(score, options):
    whole = hill_climb(score, START, **options)
    for cut in range(1, len(whole.steps) + 1):

        def interrupt(step, cut=cut):
            if step.number == cut:
                raise KeyboardInterrupt

        with pytest.raises(SearchInterrupted) as caught:
            hill_climb(score, START, on_step=interrupt, **options)
        found = caught.value.result
        assert isinstance(caught.value, KeyboardInterrupt)
        assert found.stop_reason == "interrupted"
        assert found.steps == whole.steps[:cut]
        limited = hill_climb(score, START, max_steps=cut, **options)
        assert (found.structure, found.score, found.best) == (limited.structure, limited.score, limited.best)
        assert hill_climb(score, START, taken=found.steps, **options) == whole


def test_a_search_stops_on_time(monkeypatch):
    """Every look at the clock takes a second."""
    score, options = next(iter(searches()))
    whole = hill_climb(score, START, **options)
    clock = iter(range(1_000))
    monkeypatch.setattr(hill_climbing.time, "monotonic", lambda: next(clock))
    found = hill_climb(score, START, max_seconds=2.5, **options)
    assert found.stop_reason == "max_seconds"
    assert found.steps == whole.steps[:2]  # looks at 1 and 2 seconds let it go on, and that at 3 does not
    assert hill_climb(score, START, taken=found.steps, **options) == whole


def test_no_time_at_all_gives_the_start():
    score = ScoreOf("abcd", random_local(0))
    found = hill_climb(score, START, max_seconds=0, required_arcs=[("a", "b")])
    assert found.structure.arcs == (("a", "b"),)
    assert (found.steps, found.stop_reason, found.best) == ((), "max_seconds", 0)
    assert found.score == pytest.approx(score.total(found.structure))


@pytest.mark.parametrize("seconds", [-1, "long", True, math.nan])
def test_times_that_make_no_sense_are_refused(seconds):
    with pytest.raises(ArgumentError, match="max_seconds must be a number, 0 or more, or None"):
        hill_climb(ScoreOf("abcd", random_local(0)), START, max_seconds=seconds)


def test_steps_that_cannot_be_taken_are_refused():
    trail = Trail(START)
    there_and_back = [Step(AddArc(*arc), 1.0, 0.0, 0.0, 0, 1, trail) for arc in ("ab", "ba")]
    with pytest.raises(ArgumentError, match="taken has steps that cannot be taken from start"):
        hill_climb(ScoreOf("abcd", random_local(0)), START, taken=there_and_back)


def test_a_likelihood_search_goes_on_too():
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 80))
    frame = {"a": a, "b": np.sin(2 * a) + 0.3 * b, "c": a * b + c}
    start = Structure("abc", types="ckde")
    whole = hill_climb(spbn.scores.ValidatedLikelihood(frame, folds=3), start)
    cut = hill_climb(spbn.scores.ValidatedLikelihood(frame, folds=3), start, max_steps=2)
    after = hill_climb(spbn.scores.ValidatedLikelihood(frame, folds=3), start, taken=cut.steps)
    assert [step.operator for step in after.steps] == [step.operator for step in whole.steps]
    assert after.structure == whole.structure
    assert after.score == pytest.approx(whole.score)
