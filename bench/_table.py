"""The table that all benchmarks print into."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def row(what: str, found: str, target: str, met: bool, note: str = "") -> bool:
    """Print one figure beside its target, and return whether the target is met."""
    print(f"{what:<66} {found:>14}   {target:<14} {'met' if met else 'MISSED':<7} {note}".rstrip(), flush=True)
    return met


def middle_half(series: Sequence[float], scale: float = 1.0) -> str:
    """Say between which two values the middle half of a series lies."""
    low, _, high = statistics.quantiles(series, n=4)
    return f"middle half {low * scale:.3g} to {high * scale:.3g}"
