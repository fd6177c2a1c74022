"""The exercises about serving: their references by hand. What every exercise must do is tested in test_checks.py."""

from __future__ import annotations

import math

import pytest

from labkit.checks import NOT_ATTEMPTED, NOT_YET, RIGHT
from labkit.checks.lesson_05_serving import BREAK_EVEN_BATCH, EXERCISES, LOAD


@pytest.mark.parametrize(
    ("work", "load"),
    [((50, 0.010, 1), 0.5), ((100, 0.004, 4), 0.1), ((30, 0.5, 3), 5.0), ((0, 0.5, 2), 0.0)],
)
def test_load_by_hand(work: tuple[float, float, int], load: float) -> None:
    assert LOAD.reference(*work) == pytest.approx(load)


@pytest.mark.parametrize(
    ("times_us", "batch"),
    [
        ((100, 900, 10), 11),  # at 10: 1000 and 900 + 100
        ((100, 899, 10), 10),  # at 10: 1000 and 999
        ((1000, 100, 10), 1),
        ((50, 400, 50), math.inf),
        ((20, 10, 30), math.inf),
    ],
)
def test_break_even_by_hand(times_us: tuple[int, int, int], batch: float) -> None:
    assert BREAK_EVEN_BATCH.reference(*times_us) == batch


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_answers_are_judged_with_their_hints(exercise) -> None:
    assert len(exercise.also_right) >= 2 and len(exercise.known_wrong) >= 3
    for answer in exercise.also_right:
        assert exercise.check(answer).status == RIGHT
    for hint, answer in exercise.known_wrong:
        result = exercise.check(answer)
        assert (result.status, result.hint) == (NOT_YET, hint)
    for case in exercise.cases:
        constant = exercise.reference(*case)
        assert exercise.check(lambda *_, value=constant: value).status == NOT_YET
    assert exercise.check(None).status == NOT_ATTEMPTED
