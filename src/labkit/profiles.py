"""Profiles: how large the experiments are and how long each timing may take."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TypeVar

from labkit.errors import check_choice

T = TypeVar("T")

VARIABLE = "LABKIT_PROFILE"


@dataclass(frozen=True)
class Profile:
    """Time budgets of one profile: seconds that each timing should collect at least, and take at most."""

    name: str
    min_time_s: float
    max_time_s: float

    def choose(self, *, quick: T, normal: T, thorough: T | None = None) -> T:
        """Return the value meant for this profile; thorough falls back to normal.

        >>> PROFILES["quick"].choose(quick=64, normal=512)
        64
        """
        if self.name == "quick":
            return quick
        if self.name == "thorough" and thorough is not None:
            return thorough
        return normal


PROFILES = {
    "quick": Profile("quick", min_time_s=0.03, max_time_s=0.15),
    "normal": Profile("normal", min_time_s=0.2, max_time_s=1.0),
    "thorough": Profile("thorough", min_time_s=1.0, max_time_s=5.0),
}


def current_profile() -> Profile:
    """Return the profile that LABKIT_PROFILE names, or normal. Raises InputError for a name it does not know."""
    name = os.environ.get(VARIABLE) or "normal"
    return PROFILES[check_choice(VARIABLE, name, PROFILES)]
