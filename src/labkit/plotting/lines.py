"""Plain series as lines, for models and everything that no other figure shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes

from labkit.errors import InputError, check_choice, check_positive
from labkit.measurement import SOURCES
from labkit.plotting.inputs import listed_rows
from labkit.plotting.series import draw_line
from labkit.plotting.style import GUIDE, GUIDE_LINE, axes_for, finish, line_style, next_index
from labkit.plotting.ticks import Formatter, even_axis, log_axis

EXAMPLE = '("children", [0, 60], [0, 120], "predicted")'


def plot_lines(
    series: Iterable[Any],
    *,
    x_label: str,
    y_label: str,
    x_formatter: Formatter = "{:g}".format,
    y_formatter: Formatter = "{:g}".format,
    x_log: bool = False,
    y_log: bool = False,
    marks: Iterable[Any] = (),
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw rows (label, xs, ys) or (label, xs, ys, source) as lines; the formatters write the ticks.

    With a source the line looks like every other of that source and the legend names it; without one, the lines of a
    model to play with differ by colour and dashes. marks are rows (label, x), drawn as vertical lines.
    Raises InputError for rows of another shape and for numbers that are negative or not finite.

    >>> ax = plot_lines([("barrow", [0, 60], [0, 120])], x_label="time (s)", y_label="sand (kg)", marks=[("noon", 30)])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['barrow', 'noon']
    """
    rows = [_checked(row) for row in listed_rows("series", series, EXAMPLE)]
    if not rows:
        raise InputError("series=[]", "a figure needs at least one line", f"Try series=[{EXAMPLE}].")
    lines_at = [_checked_mark(mark) for mark in listed_rows("marks", marks, '("equal", 30)')]
    ax = axes_for(ax)
    (log_axis if x_log else even_axis)(ax, "x", x_formatter)
    (log_axis if y_log else even_axis)(ax, "y", y_formatter)
    for label, xs, ys, source in rows:
        style = line_style(next_index(ax), source)
        if len(xs) > 20:
            style["markevery"] = len(xs) // 10
        draw_line(ax, xs, ys, f"{label} ({source})" if source else label, style)
    for label, x in lines_at:
        ax.axvline(x, color=GUIDE, linewidth=1.2, linestyle="-.", label=label, gid=GUIDE_LINE)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    return finish(ax, title=title)


def _checked(row: Any) -> tuple[str, list[float], list[float], str | None]:
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) not in (3, 4) or not isinstance(row[0], str):
        raise InputError(f"series has {row!r:.80}", "a line is a label, its x and its y values", f"Try {EXAMPLE}.")
    label, xs, ys, source = *row[:3], row[3] if len(row) == 4 else None
    xs, ys = (_numbers(label, values) for values in (xs, ys))
    if len(xs) != len(ys) or not xs:
        raise InputError(f"{label}: {len(xs)} x and {len(ys)} y", "each point of a line has one x and one y")
    return label, xs, ys, source if source is None else check_choice("source", source, SOURCES)


def _numbers(label: str, values: Any) -> list[float]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise InputError(f"{label}: {values!r}", "a line needs a list of numbers for each axis")
    return [float(check_positive(f"a value of {label}", value, zero_ok=True)) for value in values]


def _checked_mark(mark: Any) -> tuple[str, float]:
    if not isinstance(mark, Sequence) or len(mark) != 2 or not isinstance(mark[0], str):
        raise InputError(f"marks has {mark!r:.80}", "a mark is a label and an x value", 'Try ("equal", 30).')
    return mark[0], check_positive(mark[0], mark[1], zero_ok=True)
