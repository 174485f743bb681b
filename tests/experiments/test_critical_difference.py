"""Critical difference diagrams: which algorithms a bar joins, and that labels can be read."""

from itertools import combinations

import pytest
from experiments.critical_difference import alike, plot_critical_difference
from experiments.statistics import bergmann_hommel, pairwise_pvalues

plt = pytest.importorskip("matplotlib.pyplot")


def test_bars_join_neighbours_that_do_not_differ():
    ranks = {"c": 3.0, "a": 1.0, "b": 2.0, "d": 4.0}
    adjusted = dict.fromkeys(combinations("abcd", 2), 0.01)
    assert alike(ranks, adjusted) == []
    adjusted["a", "b"] = adjusted["b", "c"] = 0.2
    assert alike(ranks, adjusted) == [("a", "b"), ("b", "c")]
    adjusted["a", "c"] = 0.05
    assert alike(ranks, adjusted) == [("a", "b", "c")]


def test_pairs_may_be_in_either_order():
    ranks = {"a": 1.0, "b": 2.0}
    assert alike(ranks, {("b", "a"): 0.5}) == alike(ranks, {("a", "b"): 0.5}) == [("a", "b")]


def test_a_bar_within_another_is_left_out():
    ranks = {name: k for k, name in enumerate("abcde")}
    adjusted = {(a, b): 0.5 if ranks[b] - ranks[a] < 3 else 0.01 for a, b in combinations("abcde", 2)}
    assert alike(ranks, adjusted) == [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e")]


@pytest.mark.slow
@pytest.mark.parametrize("algorithms", [2, 5, 12])
def test_labels_do_not_overlap(algorithms):
    names = [f"SPBN-CKDE, PC-RCoT, patience {k}" for k in range(algorithms)]
    # Ranks close to each other, as equals have them.
    ranks = {name: 5.0 + 0.01 * k for k, name in enumerate(names)}
    figure = plot_critical_difference(ranks, bergmann_hommel(pairwise_pvalues(ranks, 28)))
    try:
        figure.canvas.draw()
        texts = [text for text in figure.axes[0].texts if "SPBN" in text.get_text()]
        boxes = [text.get_window_extent() for text in texts]
        assert len(boxes) == algorithms
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        width = figure.bbox.width
        assert all(box.x0 >= 0 and box.x1 <= width for box in boxes)
    finally:
        plt.close(figure)
