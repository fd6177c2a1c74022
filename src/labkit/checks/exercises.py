"""An exercise: the task, a reference, awkward inputs, and wrong answers that are known, each with its hint."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from labkit.checks.results import NOT_ATTEMPTED, NOT_YET, RIGHT, CheckResult
from labkit.errors import InputError, LabkitError, check_choice

Answer = Callable[..., Any]


class HasName(Protocol):
    """Whatever a name is looked up among: exercises and puzzles."""

    name: str


Named = TypeVar("Named", bound=HasName)


@dataclass(frozen=True)
class Exercise:
    """One exercise: its name, the task in one sentence, and what decides whether an answer is right.

    reference computes the right value for a case; cases are argument tuples of awkward sizes; known_wrong pairs a
    hint with the answer that deserves it; also_right holds right answers of another style, which tests must see
    accepted. tolerance is relative. Where arguments are not plain values (a network to train), make_arguments makes
    them anew for each answer from the case, which is then the settings of a small experiment.
    """

    name: str
    task: str
    reference: Answer
    cases: Sequence[tuple[Any, ...]]
    known_wrong: Sequence[tuple[str, Answer]]
    also_right: Sequence[Answer]
    general_hint: str = "Work the case through by hand, line by line."
    tolerance: float = 1e-6
    make_arguments: Callable[..., tuple[Any, ...]] | None = None

    def outcome(self, answer: Answer, case: tuple[Any, ...]) -> Any:
        """Return what answer gives for a case, or the exception: a student's code may fail in any way.

        That it ends the program, or has to be stopped because it never ends, is one of them.
        """
        try:
            return answer(*self._arguments(case))
        except BaseException as problem:
            return problem

    def check(self, answer: Any) -> CheckResult:
        """Return what the first case says that answer does not meet, or "right". Never raises."""
        if answer is None or answer is Ellipsis:
            return CheckResult(self.name, NOT_ATTEMPTED, hint=self.task)
        if not callable(answer):
            hint = "Define a function with this name and give the function itself, without calling it."
            return CheckResult(self.name, NOT_YET, expected="a function", got=_short(answer), hint=hint)
        answered = False
        for case in self.cases:
            result = self._check_case(answer, case)
            if result is not None:
                return self._nothing_for(case) if answered and result.status == NOT_ATTEMPTED else result
            answered = answered or self._expected(case) is not None
        return CheckResult(self.name, RIGHT)

    def _check_case(self, answer: Answer, case: tuple[Any, ...]) -> CheckResult | None:
        expected = self._expected(case)
        got = self.outcome(answer, case)
        if got is Ellipsis or (got is None and expected is not None):
            ended = " A function that only prints must end with return." if got is None else ""
            return CheckResult(self.name, NOT_ATTEMPTED, hint=f"{self.task}{ended}")
        if not isinstance(got, BaseException) and same(got, expected, self.tolerance):
            return None
        return CheckResult(self.name, NOT_YET, self._given(case), _short(expected), _short(got), self._hint(got, case))

    def _nothing_for(self, case: tuple[Any, ...]) -> CheckResult:
        """Return what to say of an answer that is right for other cases, and for this one returns nothing."""
        hint = "For this case nothing is returned: does every way through the function end with return?"
        return CheckResult(self.name, NOT_YET, self._given(case), _short(self._expected(case)), "nothing", hint)

    def _expected(self, case: tuple[Any, ...]) -> Any:
        return self.reference(*self._arguments(case))

    def _arguments(self, case: tuple[Any, ...]) -> tuple[Any, ...]:
        case = copy.deepcopy(case)
        return self.make_arguments(*case) if self.make_arguments else case

    def _given(self, case: tuple[Any, ...]) -> str:
        if self.make_arguments is None:
            return f"{self.name}({', '.join(_short(value) for value in case)})"
        names = inspect.signature(self.make_arguments).parameters
        settings = ", ".join(f"{name} = {_short(value)}" for name, value in zip(names, case, strict=True))
        return f"{self.name} with {settings}"

    def _hint(self, got: Any, case: tuple[Any, ...]) -> str:
        """Return the hint of the known wrong answer that gives the same value or fails alike, or the general hint.

        Alike is: with the same words, or else with an exception of the same kind.
        """
        alike = []
        for hint, wrong in self.known_wrong:
            known = self.outcome(wrong, case)
            if isinstance(got, BaseException) or isinstance(known, BaseException):
                if type(got) is type(known):
                    alike.append((str(got) != str(known), hint))
            elif same(got, known, self.tolerance):
                return hint
        if alike:
            return min(alike, key=lambda found: found[0])[1]
        if isinstance(got, LabkitError):
            return got.advice
        if isinstance(got, KeyboardInterrupt):
            return "It was still running when you stopped it. Does every loop come to its end?"
        return "Read the error, then try this call on its own." if isinstance(got, BaseException) else self.general_hint


def same(got: Any, expected: Any, tolerance: float) -> bool:
    """Say whether got equals expected: numbers within the relative tolerance, sequences and arrays element by element.

    >>> same([1.0, 2.0], (1.0, 2.0000001), 1e-6), same(True, 1, 1e-6), same("a", "a", 0)
    (True, False, True)
    """
    try:
        return _equal(got, expected, tolerance)
    except Exception:  # a number beyond all floats, a tensor without values, an object that refuses to be compared
        return False


def _equal(got: Any, expected: Any, tolerance: float) -> bool:
    if hasattr(expected, "tolist"):
        expected = expected.tolist()
    if hasattr(got, "tolist"):
        got = got.tolist()
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(expected)
            and all(_equal(a, b, tolerance) for a, b in zip(got, expected, strict=True))
        )
    if isinstance(expected, bool) or isinstance(got, bool) or expected is None:
        return got is expected
    if isinstance(expected, (int, float)) and isinstance(got, (int, float)):
        return math.isclose(got, expected, rel_tol=tolerance, abs_tol=tolerance * 1e-6)
    return type(got) is type(expected) and got == expected


def find_exercise(exercises: Sequence[Named], name: str) -> Named:
    """Return the exercise of that name. Raises InputError that lists the known ones."""
    known = {exercise.name: exercise for exercise in exercises}
    if not known:
        raise InputError(f"exercise={name!r}", "this lesson has no exercises")
    return known[check_choice("exercise", name, known)]


def _short(value: Any) -> str:
    kind = type(value).__name__
    try:
        if isinstance(value, BaseException):
            return f"{kind}: {value}" if str(value) else kind
        shown = repr(value.tolist() if hasattr(value, "tolist") else value)
    except Exception:  # the repr may be the student's own, and Python refuses to write a whole number of 5000 digits
        return f"something of the type {kind} that cannot be written here"
    return shown if len(shown) <= 80 else f"{shown[:77]}…"
