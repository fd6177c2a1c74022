"""The register of answers: which puzzle an answer is for, and what must be said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

KINDS = ("values", "budget", "hazard", "refused")


@dataclass(frozen=True)
class Answer:
    """An answer to a puzzle: kind is "" for a right one, else what must be found; says is a part of what is said."""

    puzzle: str
    kernel: Callable[..., None]
    kind: str = ""
    says: str = ""


ANSWERS: list[Answer] = []


def right(puzzle: str) -> Callable[[Callable], Callable]:
    """The decorated kernel solves the puzzle."""
    return lambda kernel: ANSWERS.append(Answer(puzzle, kernel)) or kernel


def wrong(puzzle: str, kind: str, says: str) -> Callable[[Callable], Callable]:
    """The decorated kernel is wrong in a way that the check must name."""
    assert kind in KINDS
    return lambda kernel: ANSWERS.append(Answer(puzzle, kernel, kind, says)) or kernel
