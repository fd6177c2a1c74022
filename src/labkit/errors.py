"""The errors that labkit raises on purpose, all children of one: LabkitError."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")


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


class DataError(LabkitError):
    """A data set is not here and cannot be fetched, or does not fit what it is asked for."""


class CheckpointError(LabkitError):
    """A checkpoint is missing, damaged, unsafe, or made for another model."""


class WorkerError(LabkitError):
    """A worker process of a data loader died, or gave nothing for too long."""


class KernelError(LabkitError):
    """A GPU kernel did something that a GPU would not forgive."""


def check_number(name: str, value: Any) -> int | float:
    """Return value as Python's own int or float, which JSON can hold, if it is a finite number, else raise InputError.

    Numbers of NumPy and torch are taken too; True and False are not.

    >>> check_number("shift", -3)
    -3
    """
    number = _plain_number(value)
    if number is None:
        raise InputError(f"{name}={value!r}", f"{name} must be a finite number")
    return number


def check_positive(name: str, value: Any, *, unit: str = "", zero_ok: bool = False) -> int | float:
    """Return value as check_number does if it is above zero (or zero where allowed), else raise InputError.

    >>> check_positive("n", 3)
    3
    """
    wanted = "zero or a positive number" if zero_ok else "a positive number"
    number = _plain_number(value)
    if number is None or number < 0 or (number == 0 and not zero_ok):
        raise InputError(f"{name}={value!r}", f"{name} must be {wanted}{f' of {unit}' if unit else ''}")
    return number


def check_count(name: str, value: Any) -> int:
    """Return value as an int if it is a whole number from 1 on, else raise InputError.

    >>> check_count("threads", 2)
    2
    """
    number = _plain_number(value)
    if not isinstance(number, int) or number < 1:
        raise InputError(f"{name}={value!r}", f"{name} must be a whole number, 1 or more")
    return number


def check_seed(value: Any) -> int:
    """Return value as an int if every random generator takes it as a seed: whole, from 0 to 2**32 - 1.

    Raises InputError for anything else.

    >>> check_seed(7)
    7
    """
    number = _plain_number(value)
    if not isinstance(number, int) or not 0 <= number < 2**32:  # NumPy's takes no more, torch's none below 0
        raise InputError(f"seed={value!r}", "a seed is a whole number from 0 to 2**32 - 1", "Try seed=0.")
    return number


def check_text(name: str, value: Any, *, empty_ok: bool = False) -> str:
    """Return value if it is a text with something in it (or an empty one where allowed), else raise InputError.

    >>> check_text("label", "matmul")
    'matmul'
    """
    if not isinstance(value, str) or not (empty_ok or value.strip()):
        raise InputError(f"{name}={value!r}", f"{name} must be a text{'' if empty_ok else ' that is not empty'}")
    return value


def check_choice(name: str, value: Any, choices: Iterable[Any]) -> Any:
    """Return value if it is one of choices, else raise InputError that lists them.

    >>> check_choice("profile", "quick", ("quick", "normal"))
    'quick'
    """
    choices = tuple(choices)
    if not _is_among(value, choices):
        listed = ", ".join(repr(choice) for choice in choices)
        raise InputError(f"{name}={value!r}", f"{name} is not one that labkit knows", f"Choose one of {listed}.")
    return value


def check_kind(name: str, value: Any, kind: type[T], advice: str = "") -> T:
    """Return value if it is one of kind, else raise InputError that says what it should be.

    >>> check_kind("label", "matmul", str)
    'matmul'
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise InputError(f"{name}={value!r}", f"{name} must be {article} {kind.__name__}", advice)
    return value


def _is_among(value: Any, choices: tuple[Any, ...]) -> bool:
    try:
        hash(value)  # an array has no hash, and may be equal to a name element by element
        return value in choices
    except (TypeError, ValueError, RuntimeError):
        return False


def _plain_number(value: Any) -> int | float | None:
    """Return value as an int or float, or None if it is no finite number."""
    if type(value).__name__.startswith("bool") or not hasattr(value, "__float__"):
        return None
    try:
        number = _index_or_float(value)
        return number if math.isfinite(number) else None
    except (TypeError, ValueError, OverflowError, RuntimeError):  # an array, a signalling NaN, 10**400, a meta tensor
        return None


def _index_or_float(value: Any) -> int | float:
    try:
        return operator.index(value)
    except TypeError:
        return float(value)


def listed(name: str, values: Any) -> Iterator[Any]:
    """Return values one by one if they can be listed, else raise InputError: a lone number is a common slip."""
    try:
        if not isinstance(values, (str, bytes)):
            return iter(values)
    except TypeError:
        pass
    raise InputError(f"{name}={values!r}", f"{name} must be a list or tuple", f"Try {name}=[{values!r}].")
