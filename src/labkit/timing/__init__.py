"""Timing one function (measure), several against each other (compare), one over many sizes (sweep), or one for long
(sustain).
"""

from labkit.timing.measuring import compare, measure, sustain
from labkit.timing.sweeping import sweep

__all__ = ["compare", "measure", "sustain", "sweep"]
