"""What a check says of an answer."""

from __future__ import annotations

import html
from dataclasses import dataclass

from labkit.errors import check_choice

NOT_ATTEMPTED, NOT_YET, RIGHT, NOT_TESTABLE = "not attempted", "not yet", "right", "not testable here"
STATUSES = (NOT_ATTEMPTED, NOT_YET, RIGHT, NOT_TESTABLE)
_MARKS = {NOT_ATTEMPTED: "○", NOT_YET: "✗", RIGHT: "✓", NOT_TESTABLE: "–"}


@dataclass(frozen=True)
class CheckResult:
    """The status of an answer, and for "not yet": the input, what was expected, what came, and one hint."""

    exercise: str
    status: str
    given: str = ""
    expected: str = ""
    got: str = ""
    hint: str = ""

    def __post_init__(self) -> None:
        check_choice("status", self.status, STATUSES)

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.status == RIGHT

    def __repr__(self) -> str:
        lines = [f"{_MARKS[self.status]} {self.exercise}: {self.status}"]
        if self.status == NOT_YET:
            lines += [f"  {name}: {text}" for name, text in self._details if text]
        elif self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)

    @property
    def _details(self) -> tuple[tuple[str, str], ...]:
        return ("for", self.given), ("expected", self.expected), ("got", self.got), ("hint", self.hint)

    def _repr_html_(self) -> str:
        return f'<pre style="white-space: pre-wrap; word-break: normal">{html.escape(repr(self))}</pre>'
