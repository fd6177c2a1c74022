"""Hand-written kernels across the whole supported language, all of them correct: right values, zero hazards."""

from __future__ import annotations

from . import arithmetic, control, cooperation, memory, types
from .case import CASES, Case

__all__ = ["CASES", "Case", "arithmetic", "control", "cooperation", "memory", "types"]
