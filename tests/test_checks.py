"""Every exercise accepts its right answers and rejects its known wrong ones, each with the hint that it deserves."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from labkit import checks
from labkit.checks import NOT_ATTEMPTED, NOT_YET, RIGHT, CheckResult, Exercise
from labkit.checks.exercises import same
from labkit.errors import InputError

# Puzzles, which are kernels, have their own tests in checks/.
ALL = [
    (lesson, exercise)
    for lesson, exercises in checks.EXERCISES.items()
    for exercise in exercises
    if isinstance(exercise, Exercise)
]
IDS = [f"{lesson}-{exercise.name}" for lesson, exercise in ALL]
every_exercise = pytest.mark.parametrize("exercise", [exercise for _, exercise in ALL], ids=IDS)


@pytest.mark.parametrize("lesson", checks.EXERCISES)
def test_lesson_has_three_exercises(lesson: str) -> None:
    assert len(checks.EXERCISES[lesson]) >= 3


@every_exercise
def test_accepts_right_answers_of_different_style(exercise: Exercise) -> None:
    assert len(exercise.also_right) >= 2
    for answer in exercise.also_right:
        assert exercise.check(answer) == CheckResult(exercise.name, RIGHT)


@every_exercise
def test_rejects_known_wrong_answers_with_their_hint(exercise: Exercise) -> None:
    assert len(exercise.known_wrong) >= 3
    for hint, answer in exercise.known_wrong:
        result = exercise.check(answer)
        assert (result.status, result.hint) == (NOT_YET, hint)
        assert result.expected and result.got and result.given


@every_exercise
def test_an_answer_fitted_to_one_case_is_rejected(exercise: Exercise) -> None:
    for case in exercise.cases:
        constant = exercise.outcome(exercise.reference, case)
        assert exercise.check(lambda *_, value=constant: value).status == NOT_YET


@every_exercise
@pytest.mark.parametrize(
    "answer", [None, ..., lambda *_: ..., lambda *_: None], ids=["None", "...", "fn ...", "fn None"]
)
def test_skeletons_are_not_attempted(exercise: Exercise, answer: object) -> None:
    assert exercise.check(answer).status == NOT_ATTEMPTED


@every_exercise
def test_never_raises(exercise: Exercise) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("division by zero")

    for answer in (fails, 7, "text", lambda: 1):
        result = exercise.check(answer)
        assert result.status == NOT_YET
        assert result.hint
    assert "ZeroDivisionError: division by zero" in repr(exercise.check(fails))


def test_nothing_returned_in_one_case_is_an_attempt() -> None:
    """A branch without a return must not say that nothing was attempted, once another case was answered."""
    result = checks.find("05", "break_even_batch").check(
        lambda cpu_us, launch_us, gpu_us: launch_us // (cpu_us - gpu_us) + 1 if gpu_us < cpu_us else None
    )
    assert (result.status, result.expected, result.got) == (NOT_YET, "inf", "nothing")
    assert "every way through the function" in result.hint


def test_a_changed_input_does_not_reach_the_reference() -> None:
    def spoils(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
        product = (np.array(a) @ np.array(b)).tolist()
        a.clear()
        return product

    assert checks.find("02", "matmul").check(spoils).status == RIGHT


def test_result_shows_everything_a_student_needs() -> None:
    shown = repr(checks.find("02", "matmul_flop").check(lambda m, k, n: m * k * n))
    for part in ("not yet", "matmul_flop(1, 1, 1)", "expected: 2", "got: 1", "hint: Each term is a multiplication"):
        assert part in shown


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        (1.0000001, 1.0, True),
        (1.1, 1.0, False),
        (math.inf, math.inf, True),
        (math.nan, 1.0, False),
        (np.float32(2), 2, True),
        (np.array([1, 2]), [1, 2], True),
        ([1, 2, 3], [1, 2], False),
        (True, 1, False),
        ("1", 1, False),
    ],
)
def test_same(got: object, expected: object, equal: bool) -> None:
    assert same(got, expected, 1e-6) is equal


def test_unknown_exercise_is_named_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'sort'.*'delivery_time', 'break_even', 'count_lanes'"):
        checks.find("00", "sort")


class NoValues:
    """Looks like an array, and breaks whatever touches it."""

    def tolist(self) -> list:
        raise NotImplementedError("no data")

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def stop() -> None:
    raise KeyboardInterrupt


@every_exercise
@pytest.mark.parametrize(
    ("gives", "shown"),
    [
        (lambda: 10**400, "1000"),
        (lambda: -(10**5000), "something of the type int"),
        (lambda: [[10**400]], "[[1000"),
        (lambda: torch.empty(2, device="meta"), "something of the type Tensor"),
        (NoValues, "something of the type NoValues"),
        (lambda: exit(3), "SystemExit: 3"),
        (stop, "KeyboardInterrupt"),
        (lambda: (_ for _ in ()), "<generator"),
        (lambda: 1j, "1j"),
    ],
)
def test_an_answer_may_break_in_any_way(exercise: Exercise, gives: Callable[[], object], shown: str) -> None:
    result = exercise.check(lambda *_: gives())
    assert result.status == NOT_YET
    assert result.got.startswith(shown)
    assert repr(result)


def test_a_value_that_cannot_be_written_is_named_by_its_type() -> None:
    assert checks.find("02", "matmul_flop").check(NoValues()).got.startswith("something of the type NoValues")


def test_an_answer_that_never_ended_is_told_apart_from_one_that_failed() -> None:
    def endless(*_: object) -> None:
        stop()

    assert "still running when you stopped it" in checks.find("02", "matmul_flop").check(endless).hint
