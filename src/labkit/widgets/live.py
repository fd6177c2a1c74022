"""A figure that is replaced in place while work goes on: the growing curve of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from labkit.errors import InputError
from labkit.widgets.content import no_figure_left_open, shown_html
from labkit.widgets.page import Spot

_canvas: ContextVar[Callable[[str], None] | None] = ContextVar("labkit_canvas", default=None)


class Live:
    """A figure to update while work goes on; see live."""

    def __init__(self, draw: Callable[[Any], Any] | None) -> None:
        self.html = ""
        self._draw = draw
        self._put = _canvas.get() or _new_spot()

    def update(self, content: Any) -> None:
        """Show content in place of what was shown: axes, HTML, an object with _repr_html_, or what draw takes.

        Raises InputError if there is nothing to show in it.
        """
        with no_figure_left_open():
            self.html = shown_html(content if self._draw is None else self._draw(content))
        self._put(self.html)

    def __repr__(self) -> str:
        return ""  # it is on the page already; as a cell's last expression it has nothing to add


def live(draw: Callable[[Any], Any] | None = None) -> Live:
    """Show a place for a figure here and now, and return the handle whose update(content) replaces it.

    With draw, update hands its argument to draw and shows what that returns: live(plot_sweep).update(sweep_so_far).
    Inside a callback of explore the figure of that explore is the place. Outside of a notebook nothing is shown and
    .html holds the last state. Raises InputError if draw cannot be called.

    >>> curve = live()
    >>> curve.update("<b>3 of 8</b>")
    >>> curve.html
    '<b>3 of 8</b>'
    """
    if draw is not None and not callable(draw):
        raise InputError(f"draw={draw!r}", "draw is a function that returns what is to be shown")
    return Live(draw)


@contextmanager
def canvas(put: Callable[[str], None]) -> Iterator[None]:
    """Let every live() inside show its figure through put."""
    token = _canvas.set(put)
    try:
        yield
    finally:
        _canvas.reset(token)


def _new_spot() -> Callable[[str], None]:
    spot = Spot()
    spot.show()
    return spot.put
