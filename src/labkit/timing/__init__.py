"""Timing one function (measure), several against each other (compare), or one over many sizes (sweep)."""

from labkit.timing.measuring import compare, measure
from labkit.timing.sweeping import sweep

__all__ = ["compare", "measure", "sweep"]
