"""What a callback returned, as HTML, and no figure left open behind it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labkit.errors import InputError
from labkit.html import escape, html_of


def shown_html(result: Any) -> str:
    """Return the HTML that shows result: Axes, a figure, HTML, an object with _repr_html_, or (one of them, caption).

    Raises InputError if it is none of these, above all if it is None: a forgotten return.
    """
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], str):
        return f'{shown_html(result[0])}<p class="labkit-caption" style="margin: 4px 0px">{escape(result[1])}</p>'
    if result is None:
        advice = "End the function with a return: the axes it drew on, text with HTML, or a table."
        raise InputError("draw returned None", "there is nothing to show", advice)
    axes = _axes_of(result)
    if axes is None:
        return html_of(result)
    from labkit.plotting import to_html

    return to_html(axes)


def _axes_of(result: Any) -> Any:
    """Return the axes that result is, or the first of those it holds: one picture shows the whole figure."""
    if hasattr(result, "flat") and not hasattr(result, "_repr_html_"):  # the array that plt.subplots returns
        result = next(iter(result.flat), result)
    if hasattr(result, "savefig"):
        if not result.axes:
            raise InputError("a figure without axes", "there is nothing to show", "Draw something on it first.")
        result = result.axes[0]
    return result if hasattr(result, "get_xlabel") else None


@contextmanager
def no_figure_left_open() -> Iterator[None]:
    """Close the pyplot figures that were opened inside; those that were open before stay."""
    before = _open_figures()
    try:
        yield
    finally:
        for number in _open_figures() - before:
            sys.modules["matplotlib.pyplot"].close(number)


def _open_figures() -> set[int]:
    # Looked up, not imported: plotting alone imports matplotlib, and a lesson without figures never loads it.
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if pyplot else set()
