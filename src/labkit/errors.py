"""The errors that labkit raises on purpose, all children of one: LabkitError."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


class LabkitError(Exception):
    """Something a student can put right: what was given, what is wrong with it, what to do.

    >>> raise InputError("min_time_s=-1", "a time budget is a positive number of seconds", "Try min_time_s=0.2.")
    Traceback (most recent call last):
        ...
    labkit.errors.InputError: min_time_s=-1: a time budget is a positive number of seconds. Try min_time_s=0.2.
    """

    def __init__(self, given: str, problem: str, advice: str = "") -> None:
        self.given = given
        self.problem = problem
        self.advice = advice
        super().__init__(given, problem, advice)

    def __str__(self) -> str:
        sentence = f"{self.given}: {self.problem.rstrip('.')}."
        return f"{sentence} {self.advice}".rstrip()

    def _render_traceback_(self) -> list[str]:
        """Show only the message in a notebook: IPython calls this instead of printing the stack."""
        return [f"{type(self).__name__}: {self}"]


class InputError(LabkitError):
    """An argument makes no sense: a negative size, a NaN time, an empty sweep."""


class DeviceError(LabkitError):
    """A device is unknown, absent, or not the one that did the work."""


class RecordError(LabkitError):
    """A record file is damaged, or was written in a format that this version cannot read."""


class KernelError(LabkitError):
    """A GPU kernel did something that a GPU would not forgive."""


def check_positive(name: str, value: Any, *, unit: str = "", zero_ok: bool = False) -> float:
    """Return value if it is a finite number above zero (or zero where allowed), else raise InputError.

    >>> check_positive("n", 3)
    3
    """
    wanted = "zero or a positive number" if zero_ok else "a positive number"
    is_number = isinstance(value, (int, float)) or hasattr(value, "__float__")
    if isinstance(value, (bool, str)) or not is_number or not math.isfinite(value):
        raise InputError(f"{name}={value!r}", f"{name} must be {wanted}{f' of {unit}' if unit else ''}")
    if value < 0 or (value == 0 and not zero_ok):
        raise InputError(f"{name}={value!r}", f"{name} must be {wanted}{f' of {unit}' if unit else ''}")
    return value


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return value if it is one of choices, else raise InputError that lists them.

    >>> check_choice("profile", "quick", ("quick", "normal"))
    'quick'
    """
    choices = tuple(choices)
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name}={value!r}", f"{name} is not one that labkit knows", f"Choose one of {listed}.")
    return value
