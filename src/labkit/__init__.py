"""CPU or GPU: the helper package of the course. Importing it loads nothing heavy: each name loads when first used."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Measurement": "measurement",
    "Sweep": "measurement",
    "Task": "measurement",
    "Team": "sand",
    "compare": "timing",
    "crossover": "comparison",
    "explore": "widgets",
    "fit_amdahl": "comparison",
    "fit_power_law": "comparison",
    "fit_team": "sand",
    "log_slider": "widgets",
    "measure": "timing",
    "overtakes_at": "sand",
    "rank": "comparison",
    "show": "plotting",
    "speedup": "comparison",
    "start": "lesson",
    "sweep": "timing",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name.startswith("plot_"):
        return getattr(importlib.import_module("labkit.plotting"), name)
    if name in _HOME:
        return getattr(importlib.import_module(f"labkit.{_HOME[name]}"), name)
    raise AttributeError(f"module 'labkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
