"""Predictions: the student picks, commits, and sees from then on what was committed and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

import ipywidgets
from IPython.display import display

from labkit.errors import InputError
from labkit.html import error_box, escape
from labkit.widgets.controls import Control, Unit, choice, log_slider, slider
from labkit.widgets.fields import Field, button, note
from labkit.widgets.page import SavedCopy, page

OnCommit = Callable[[Any], Any]


class Commitment(NamedTuple):
    """What was committed, and when."""

    value: Any
    at: datetime


def ask_choice(
    question: str,
    options: Iterable[Any] | Mapping[str, Any],
    on_commit: OnCommit,
    committed: Commitment | tuple[Any, datetime] | None = None,
) -> Question:
    """Return a question with options to pick from; as a cell's last expression it is shown.

    options are texts, or a dict from text to value. Nothing is picked at the start. When the student presses the
    button, on_commit(value) is called at once, even while a cell is running: in JupyterLab that is another thread.
    From then on the question shows what was committed and when, with a button to change it. committed is an earlier
    commitment, (value, datetime), to be shown at once. Raises InputError for an empty question, no options, or a
    committed value that is none of them.

    >>> kept = []
    >>> question = ask_choice("Which is faster?", ["CPU", "GPU", "neither"], kept.append)
    >>> question.pick("CPU").commit()
    >>> kept
    ['CPU']
    """
    options = replace(choice(options), kind="radio", start=None)
    return Question(question, options, on_commit, committed)


def ask_number(
    question: str,
    lo: float,
    hi: float,
    on_commit: OnCommit,
    unit: Unit = None,
    log: bool = True,
    committed: Commitment | tuple[float, datetime] | None = None,
) -> Question:
    """Return a question that is answered with a slider from lo to hi; as a cell's last expression it is shown.

    With log the slider goes through round numbers, ten for each power of ten, else in equal steps. unit writes a
    value, such as labkit.units.format_count. The rest is as for ask_choice. Raises InputError for an empty question or
    range, or a committed value outside of it.

    >>> kept = []
    >>> ask_number("How many times faster?", 0.1, 1000, kept.append).pick(20).commit()
    >>> kept
    [20.0]
    """
    at = _check_committed(committed).value if committed is not None else None
    make = log_slider if log else slider
    return Question(question, make(lo, hi, value=at, unit=unit), on_commit, committed)


class Question:
    """A prediction to commit; see ask_choice and ask_number. committed is None until it is."""

    def __init__(self, question: str, options: Control, on_commit: OnCommit, committed: Any) -> None:
        if not isinstance(question, str) or not question.strip():
            raise InputError(f"question={question!r}", "there is nothing to ask", "Write it as one sentence.")
        if not callable(on_commit):
            raise InputError(f"on_commit={on_commit!r}", "on_commit is a function of the committed value")
        self.committed = None if committed is None else _check_committed(committed)
        self.options = options
        self.question = question
        self._on_commit = on_commit
        self._copy = SavedCopy("Prediction without controls")
        self._field = Field("answer", replace(options, label="Your prediction"))
        self._commit_button = button("Commit my prediction", primary=True)
        self._change_button = button("Change")
        self._answer = note()
        self._problem = note()
        self._open = ipywidgets.VBox([self._field.view, self._commit_button])
        self._closed = ipywidgets.HBox([self._answer, self._change_button], layout={"align_items": "center"})
        title = note(f"<b>{escape(question)}</b>")
        self.widget = page([title, self._open, self._closed, self._problem], "", self._copy)
        self._field.on_change(self._picked)
        self._commit_button.on_click(lambda _: self.commit())
        self._change_button.on_click(lambda _: self.change())
        self._refresh(is_open=self.committed is None)

    @property
    def html(self) -> str:
        """What the question shows about the commitment: empty before there is one."""
        return self._problem.value or ("" if self.committed is None else self._answer.value)

    def pick(self, value: Any) -> Question:
        """Select value as a hand would and return the question. Raises InputError if it is not offered."""
        self._field.set(value)
        return self

    def commit(self) -> None:
        """Commit what is picked, as the button does. Raises InputError if nothing is, and what on_commit raises."""
        if self._field.position is None:
            advice = "Pick one of the answers first."
            raise InputError("no answer", "there is nothing to commit", advice)
        value = self._field.value
        try:
            self._on_commit(value)
        except Exception as problem:
            self._problem.value = error_box(problem, "Your prediction was not kept.")
            raise
        self._problem.value = ""
        self.committed = Commitment(value, _now())
        self._refresh(is_open=False)

    def change(self) -> None:
        """Offer the answers again, as the button does; what was committed counts until another one is."""
        self._refresh(is_open=True)

    def _ipython_display_(self) -> None:
        display(self.widget)
        self._copy.show()

    def __repr__(self) -> str:
        state = "no prediction yet" if self.committed is None else f"predicted {self._committed_text()}"
        return f"Question({self.question!r}, {state})"

    def _picked(self) -> None:
        self._commit_button.disabled = self._field.position is None

    def _refresh(self, *, is_open: bool) -> None:
        if self.committed is not None:
            when = self.committed.at.strftime("%Y-%m-%d at %H:%M")
            answer = f"Your prediction: <b>{escape(self._committed_text())}</b>"
            self._answer.value = f'<span role="status">{answer} · committed {when}</span>'
            if not is_open:
                self._field.set(self.committed.value)
        self._open.layout.display = None if is_open else "none"
        self._closed.layout.display = "none" if is_open else None
        self._picked()
        state = "No prediction was committed." if self.committed is None else self._answer.value
        self._copy.put(f"<p>{escape(self.question)}</p><p>{state}</p>")

    def _committed_text(self) -> str:
        return self.options.texts[self.options.position_of("committed", self.committed.value)]


def _check_committed(committed: Any) -> Commitment:
    if not isinstance(committed, tuple) or len(committed) != 2 or not isinstance(committed[1], datetime):
        raise InputError(f"committed={committed!r}", "a commitment is a pair of a value and a datetime")
    value, at = committed
    return Commitment(value, at.astimezone())  # shown in the reader's own time zone


def _now() -> datetime:
    return datetime.now().astimezone()
