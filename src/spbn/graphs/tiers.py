"""Background knowledge as people have it, patterns and tiers, as the arcs that searches require and forbid.

Tiers are groups of columns in the order of events: what is in one may depend on those before it and on its
own, and nothing points back. Columns in no tier may be joined with any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spbn._base.arrays import IntArray
from spbn.errors import KnowledgeError, argument, quoted
from spbn.graphs.dag import Arc, arc_matrix, arc_pairs
from spbn.graphs.patterns import is_pattern, matching_places

Tiers = tuple[tuple[str, ...], ...]

NO_TIER = -1


def resolve_arcs(
    names: Sequence[str], *, required_arcs: Iterable[Arc], forbidden_arcs: Iterable[Arc], tiers: Tiers
) -> tuple[tuple[Arc, ...], tuple[Arc, ...]]:
    """Return the arcs between columns that are required, and those that are forbidden.

    `required_arcs` and `forbidden_arcs` may have patterns; `tiers` forbid all arcs that point back.
    """
    names = tuple(names)
    required = arc_matrix(names, required_arcs, "required_arcs")
    forbidden = arc_matrix(names, forbidden_arcs, "forbidden_arcs")
    if not tiers:
        return arc_pairs(names, required), arc_pairs(names, forbidden)
    tier_of = place_columns(names, tiers)
    # [i, j]: both columns are in tiers, and that of j comes before that of i.
    back = (tier_of[:, None] > tier_of[None, :]) & (tier_of[None, :] != NO_TIER)
    wrong = np.argwhere(required & back)
    if len(wrong):
        i, j = wrong[0].tolist()
        raise KnowledgeError(
            f"{argument('required_arcs')} has {names[i]} → {names[j]}, which points back: {names[i]!r} is in "
            f"tier {tier_of[i] + 1} of {argument('tiers')}, and {names[j]!r} in tier {tier_of[j] + 1}. Drop "
            f"the arc, or move one of the two columns."
        )
    return arc_pairs(names, required), arc_pairs(names, forbidden | back)


def place_columns(names: Sequence[str], tiers: Tiers) -> IntArray:
    """Return the number of the tier that every column is in, -1 if it is in none.

    A pattern takes the columns that no tier has by name.
    """
    tier_of = np.full(len(names), NO_TIER, dtype=np.int64)
    place = {name: i for i, name in enumerate(names)}
    unknown = list(
        dict.fromkeys(name for tier in tiers for name in tier if name not in place and not is_pattern(name))
    )
    if unknown:
        columns = "an unknown column" if len(unknown) == 1 else "unknown columns"
        raise KnowledgeError(
            f"{argument('tiers')} names {columns}: {quoted(unknown)}. The columns are {quoted(names)}."
        )

    def put(found: int, number: int) -> None:
        if tier_of[found] not in (NO_TIER, number):
            raise KnowledgeError(
                f"{argument('tiers')} has {names[found]!r} in two tiers, {tier_of[found] + 1} and "
                f"{number + 1}: leave it in one of them."
            )
        tier_of[found] = number

    for number, tier in enumerate(tiers):
        for name in tier:
            if name in place:
                put(place[name], number)
    by_name = tier_of != NO_TIER
    for number, tier in enumerate(tiers):
        for pattern in tier:
            if pattern in place:
                continue
            found = [i for i in matching_places(pattern, names) if not by_name[i]]
            if not found:
                others = " that is not in a tier by name" if by_name.any() else ""
                raise KnowledgeError(
                    f"{argument('tiers')} has the pattern {pattern!r}, which matches no column{others}. The "
                    f"columns are {quoted(names)}: correct the pattern, or leave it out."
                )
            for i in found:
                put(i, number)
    return tier_of


def named_tiers(names: Sequence[str], tiers: Tiers) -> Tiers:
    """Return tiers without patterns: the columns that are in each of them, by column order."""
    tier_of = place_columns(names, tiers).tolist()
    return tuple(
        tuple(name for name, number in zip(names, tier_of, strict=True) if number == wanted)
        for wanted in range(len(tiers))
    )
