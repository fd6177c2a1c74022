"""Pairs that take turns: how two things are compared on a machine whose speed changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable

PAIRS = 21


def paired(
    one: Callable[[], float],
    other: Callable[[], float],
    compare: Callable[[float, float], float],
    *,
    pairs: int = PAIRS,
) -> list[float]:
    """Return compare(one, other) for each pair; every second pair runs the other way round, against a drift."""
    one(), other()  # warm both
    found = []
    for i in range(pairs):
        if i % 2:
            other_s, one_s = other(), one()
        else:
            one_s, other_s = one(), other()
        found.append(compare(one_s, other_s))
    return found
