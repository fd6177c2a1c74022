"""Checks of the exercises' answers: what a check says (CheckResult), and the exercises of each lesson."""

from labkit.checks import lesson_00, lesson_01, lesson_02, lesson_03, lesson_04, lesson_05, lesson_06
from labkit.checks.exercises import Exercise, find_exercise
from labkit.checks.puzzles import Launch, Limit, Puzzle
from labkit.checks.results import NOT_ATTEMPTED, NOT_TESTABLE, NOT_YET, RIGHT, STATUSES, CheckResult
from labkit.errors import check_choice

EXERCISES = {
    "00": lesson_00.EXERCISES,
    "01": lesson_01.EXERCISES,
    "02": lesson_02.EXERCISES,
    "03": lesson_03.EXERCISES,
    "04": lesson_04.EXERCISES,
    "05": lesson_05.EXERCISES,
    "06": lesson_06.EXERCISES,
}


def find(lesson: str, exercise: str) -> Exercise | Puzzle:
    """Return an exercise or puzzle of a lesson. Raises InputError that lists the known ones."""
    return find_exercise(EXERCISES[check_choice("lesson", lesson, EXERCISES)], exercise)


__all__ = [
    "EXERCISES",
    "NOT_ATTEMPTED",
    "NOT_TESTABLE",
    "NOT_YET",
    "RIGHT",
    "STATUSES",
    "CheckResult",
    "Exercise",
    "Launch",
    "Limit",
    "Puzzle",
    "find",
    "find_exercise",
]
