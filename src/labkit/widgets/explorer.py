"""explore(): a figure that follows its controls, with exactly one picture on the page."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import ipywidgets
from IPython import get_ipython
from IPython.display import clear_output, display

from labkit.errors import InputError, check_text
from labkit.html import error_box, escape
from labkit.units import format_s
from labkit.widgets.content import no_figure_left_open, shown_html
from labkit.widgets.controls import as_control
from labkit.widgets.fields import Field, button, note
from labkit.widgets.live import canvas
from labkit.widgets.page import STALE, Page, SavedCopy, figure_place, page
from labkit.widgets.threads import on_main_thread

CENTRED = {"align_items": "center"}
NOT_RUN = "Not run yet: press <b>Run</b>."
STOPPED = "Stopped before the figure was finished. Move a control or press Run to start again."


def explore(draw: Callable[..., Any], /, *, run_button: bool = False, fold: str = "", **controls: Any) -> Explorer:
    """Return a figure with controls above it; as a cell's last expression it is shown.

    Each control is named as an argument of draw and described by (lo, hi), (lo, hi, step), a list, a dict from text to
    value, True or False, or by log_slider, slider, steps, choice or toggle, which also take a label, a unit and a
    description. draw(**values) returns what is to be shown: the Axes it drew on, HTML as a str, an object with
    _repr_html_, or one of these and a caption.

    The first figure is drawn at once, and its errors are raised; later ones when a slider is released. With
    run_button, for work of seconds, nothing is drawn until Run is pressed. With fold, a text, everything stays hidden
    behind a button with this text. An error in a later drawing is shown in the figure's place and raised as well.
    Raises InputError if a control is not understood, or if draw gives nothing to show.

    >>> explorer = explore(lambda n: f"{n}² = {n * n}", n=(1, 10))
    >>> explorer.set(n=7).html
    '7² = 49'
    """
    return Explorer(draw, controls, run_button=run_button, fold=fold)


class Explorer:
    """A figure with controls; see explore.

    values is what the controls say, html what is shown, saved_copy what a saved notebook shows.
    """

    def __init__(self, draw: Callable[..., Any], controls: dict[str, Any], *, run_button: bool, fold: str) -> None:
        if not callable(draw):
            raise InputError(f"draw={draw!r}", "draw is a function that returns what is to be shown")
        check_text("fold", fold, empty_ok=True)
        if not controls:
            raise InputError("explore(draw)", "there is no control", "Name one as draw does: explore(draw, n=(1, 10)).")
        self.fields = {name: Field(name, as_control(name, spec)) for name, spec in controls.items()}
        _check_arguments(draw, self.values)
        self._draw = draw
        self._held = self._drawing = False
        self.saved_copy = SavedCopy("Figure without controls")
        self._figure = figure_place()
        self._log = ipywidgets.Output()  # what draw prints, and its progress bars
        self._status = note()
        self._run_button = button("Run", primary=True) if run_button else None
        self.widget = self._lay_out(fold)
        for field in self.fields.values():
            field.on_change(self._moved)
        if self._run_button is not None:
            self._run_button.on_click(lambda _: self.run())
            self._show(NOT_RUN)
        else:
            self._redraw(first=True)

    @property
    def values(self) -> dict[str, Any]:
        """What the controls say now, by name."""
        return {name: field.value for name, field in self.fields.items()}

    @property
    def html(self) -> str:
        """What is shown in the figure's place."""
        return self._figure.value

    def set(self, **values: Any) -> Explorer:
        """Move the controls as a hand would and return the explorer; several moves at once draw once.

        Raises InputError if there is no such control or it does not offer the value, and what draw raises.
        """
        for name in values:
            if name not in self.fields:
                advice = f"There are {', '.join(self.fields)}."
                raise InputError(f"{name}={values[name]!r}", "there is no control of this name", advice)
        before = self._positions()
        with self._hold():
            for name, value in values.items():
                self.fields[name].set(value)
        if self._positions() != before:
            self._moved()
        return self

    def run(self) -> Explorer:
        """Draw now, as the Run button does, and return the explorer. Raises what draw raises."""
        if self._drawing:
            return self
        began_s = time.perf_counter()
        self._say("running… (■ in the toolbar stops it)", busy=True)
        outcome = "not finished"
        try:
            self._redraw()
            outcome = f"finished after {format_s(time.perf_counter() - began_s)}"
        finally:
            self._say(outcome)
        return self

    def _ipython_display_(self) -> None:
        display(self.widget)
        self.saved_copy.show()

    def __repr__(self) -> str:
        return f"Explorer({', '.join(f'{name}={value!r}' for name, value in self.values.items())})"

    def _moved(self) -> None:
        if self._held or self._drawing:
            return  # the drawing that is under way looks at the controls again when it is done
        if self._run_button is not None:
            self._say("the controls have changed: press Run")
            return
        self._redraw()

    def _redraw(self, *, first: bool = False) -> None:
        """Draw until the figure shows what the controls say: a callback may move them too."""
        drawn = None
        self._drawing = True
        self._figure.add_class(STALE)
        try:
            while drawn != self._positions():
                drawn = self._positions()
                on_main_thread(lambda: self._draw_once(first))
        finally:
            self._figure.remove_class(STALE)
            self._drawing = False

    def _draw_once(self, first: bool) -> None:
        """Draw and show it, or show the exception and raise it; the first drawing prints into the cell itself."""
        problem: BaseException | None = None
        with nullcontext() if first or get_ipython() is None else self._log, canvas(self._show_live):
            # Output would swallow an exception: it must not leave this block.
            try:
                if not first and get_ipython() is not None:
                    clear_output()
                with no_figure_left_open():
                    html = shown_html(self._draw(**self.values))
            except BaseException as caught:
                problem = caught
        if problem is not None:
            self._show(error_box(problem) if isinstance(problem, Exception) else STOPPED)
            raise problem
        self._show(html)
        self.saved_copy.put(html)

    def _show_live(self, html: str) -> None:
        self._figure.remove_class(STALE)  # it is new, though not finished
        self._show(html)

    def _show(self, html: str) -> None:
        self._figure.value = html

    def _say(self, text: str, *, busy: bool = False) -> None:
        if self._run_button is not None:
            self._run_button.disabled = busy
            self._status.value = f'<span role="status">{escape(text)}</span>'

    def _positions(self) -> list[int | None]:
        return [field.position for field in self.fields.values()]

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _lay_out(self, fold: str) -> Page:
        controls = ipywidgets.Box(
            [field.view for field in self.fields.values()],
            layout={"display": "flex", "flex_flow": "row wrap", "align_items": "flex-start"},
        )
        controls.add_class("labkit-fields")
        parts: list[ipywidgets.Widget] = [controls, self._figure, self._log]
        if self._run_button is not None:
            parts.insert(1, ipywidgets.HBox([self._run_button, self._status], layout=CENTRED))
        return page(parts, fold, self.saved_copy)


def _check_arguments(draw: Callable[..., Any], values: dict[str, Any]) -> None:
    """Raise InputError if draw does not take the controls as arguments: with a Run button nobody would see it yet."""
    try:
        signature = inspect.signature(draw)
    except ValueError:  # some functions written in C have none
        return
    try:
        signature.bind(**values)
    except TypeError as problem:
        advice = "Name the controls as draw names its arguments."
        raise InputError(f"explore(draw, {', '.join(values)})", f"draw{signature}: {problem}", advice) from problem
