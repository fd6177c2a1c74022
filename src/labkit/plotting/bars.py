"""Numbers side by side: one horizontal bar each, with its value at the end and its source in its name."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from labkit.comparison import speedup
from labkit.errors import InputError, check_choice, check_positive
from labkit.measurement import Measurement
from labkit.plotting.fonts import drawable
from labkit.plotting.inputs import RATE_TICKS, RATES, labelled_rows, measurements_of, rate_of, spread_in_words
from labkit.plotting.style import GUIDE, GUIDE_LINE, HATCHES, SMALL, SOURCE_COLOURS, WIDTH_IN, axes_for, finish, is_own
from labkit.plotting.ticks import Formatter, even_axis, log_axis, tick_s
from labkit.units import format_ratio, format_s

VALUES = ("time", *RATES, "speedup")
ROOM_FOR_TEXT = 0.22  # of the axes' width, right of the longest bar
WIDEST_NAME = 36


class _Bar(NamedTuple):
    label: str
    value: float | None
    low: float | None
    high: float | None
    text: str
    source: str | None


def plot_bars(
    measurements: Iterable[Measurement],
    *,
    value: str = "time",
    baseline: Measurement | None = None,
    log: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
    x_label: str = "",
    mark: tuple[str, float] | None = None,
) -> Axes:
    """Draw one bar a measurement, the first on top: value is "time", "speedup" or a rate such as "flop_per_s".

    The whiskers reach from the lower to the upper quartile, for a speedup over its range. A speedup is taken over
    baseline. x_label names what the bars show, where "time per call" does not. mark is a pair (label, number), drawn
    as a vertical line. Raises InputError for nothing, something else, an unknown value, a speedup without a baseline,
    or a mark whose number is not positive.

    >>> from labkit.measurement import Task
    >>> loop = Measurement(task=Task(label="loop"), times_s=[2e-3])
    >>> ax = plot_bars([loop, Measurement(task=Task(label="sum"), times_s=[1e-6])])
    >>> [text.get_text() for text in ax.texts]
    ['2 ms', '1 µs']
    """
    check_choice("value", value, VALUES)
    checked = measurements_of(measurements)
    if value == "speedup" and not isinstance(baseline, Measurement):
        raise InputError(
            f"baseline={baseline!r}", "a speedup is over something", "Pass baseline=, the measurement to beat."
        )
    if value == "speedup":
        quantity, formatter = f"speedup over {baseline.task}, {baseline.legend}", format_ratio
    else:
        quantity, formatter = ("time per call", format_s) if value == "time" else RATES[value]
    names = _names(checked)
    bars = [_bar(name, m, value, baseline, formatter) for name, m in zip(names, checked, strict=True)]
    ax = axes_for(ax)
    is_ratio = value == "speedup"
    ticks = {"time": tick_s, **RATE_TICKS}.get(value, formatter)
    marked = _checked_mark(mark, formatter)
    _draw(ax, bars, ticks, log=log, origin=1 if is_ratio else None, mark=marked)
    if is_ratio:
        ax.axvline(1, color=GUIDE, linewidth=1.2, zorder=3)
    spread = "(whiskers: range)" if is_ratio else spread_in_words("whiskers", [m.source for m in checked])
    ax.set_xlabel(textwrap.fill(f"{x_label or quantity} {spread}", 60))
    return finish(ax, title=title, legend=False, grid="x")


def plot_values(
    rows: Iterable[Any],
    *,
    unit_formatter: Formatter,
    x_label: str,
    log: bool = True,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw one bar a row: (label, value, source) or (label, value); a value of None is written as "not known".

    unit_formatter writes the values, such as labkit.units.format_bytes. Raises InputError for rows of another shape.

    >>> from labkit.units import format_bytes_per_s
    >>> rows = [("T4", 320e9, "predicted"), ("this CPU", 20e9, "measured")]
    >>> ax = plot_values(rows, unit_formatter=format_bytes_per_s, x_label="memory bandwidth")
    >>> ax.texts[0].get_text(), ax.get_yticklabels()[0].get_text()
    ('320 GB/s', 'T4 (predicted)')
    """
    if not callable(unit_formatter):
        raise InputError(
            f"unit_formatter={unit_formatter!r}", "this is no function that writes a number", "Try format_bytes."
        )
    checked = labelled_rows("rows", rows, '("T4", 320e9, "predicted")', source=None)
    if not checked:
        raise InputError("rows=[]", "a figure needs at least one row", 'Try [("T4", 320e9, "predicted")].')
    bars = []
    for label, value, source in checked:
        if value == 0 and log:
            raise InputError(f"{label}: 0", "a logarithmic axis has no zero", "Pass log=False.")
        name = f"{label} ({source})" if source else label
        text = "not known" if value is None else unit_formatter(value)
        bars.append(_Bar(_folded(name), value, None, None, text, source))
    ax = axes_for(ax)
    _draw(ax, bars, unit_formatter, log=log)
    ax.set_xlabel(x_label)
    return finish(ax, title=title, legend=False, grid="x")


def _names(measurements: Sequence[Measurement]) -> list[str]:
    """Return a name each: the task only where the tasks differ, device and source always."""
    same_task = len({str(measurement.task) for measurement in measurements}) == 1 < len(measurements)
    return [_folded(m.legend) if same_task else f"{_folded(str(m.task))}\n{_folded(m.legend)}" for m in measurements]


def _folded(name: str) -> str:
    """Return name in lines short enough to stand left of the bars, broken after its last comma if that will do."""
    head, comma, tail = name.rpartition(", ")
    if len(name) > WIDEST_NAME and comma and max(len(head), len(tail)) < WIDEST_NAME:
        return f"{head},\n{tail}"
    return textwrap.fill(name, WIDEST_NAME)


def _bar(name: str, m: Measurement, value: str, baseline: Measurement | None, formatter: Formatter) -> _Bar:
    low_s, high_s = m.quartiles_s
    if value == "time":
        return _Bar(name, m.median_s, low_s, high_s, formatter(m.median_s), m.source)
    if value == "speedup":
        ratio = speedup(baseline, m)
        return _Bar(name, ratio.ratio, ratio.low, ratio.high, formatter(ratio.ratio), ratio.source)
    rate = rate_of(m, value)
    if rate is None:
        return _Bar(name, None, None, None, "implausible: see the measurement", m.source)
    return _Bar(name, rate, rate * m.median_s / high_s, rate * m.median_s / low_s, formatter(rate), m.source)


def _checked_mark(mark: Any, formatter: Formatter) -> tuple[str, float] | None:
    """Return the text at the line and its place."""
    if mark is None:
        return None
    if not (isinstance(mark, tuple) and len(mark) == 2 and isinstance(mark[0], str)):
        raise InputError(f"mark={mark!r}", "a mark is a label and a number", 'Try ("your patience", 3600).')
    place = check_positive("mark", mark[1])
    return f"{mark[0]}: {formatter(place)}", place


def _draw(
    ax: Axes,
    bars: list[_Bar],
    formatter: Formatter,
    *,
    log: bool,
    origin: float | None = None,
    mark: tuple[str, float] | None = None,
) -> None:
    """Draw the bars from origin, or from the left end of the axis, and the line that they are held against."""
    if is_own(ax):
        lines = sum(max(bar.label.count("\n") + 1, 1.6) for bar in bars) + (1.6 if mark else 0)
        ax.figure.set_size_inches(WIDTH_IN, 1.1 + 0.21 * lines + 0.08 * len(bars))
    (log_axis if log else even_axis)(ax, "x", formatter, most_ticks=5)
    start, end = _limits(bars, log=log, origin=origin, places=[mark[1]] if mark else [])
    ax.set_xlim(start, end)
    for row, bar in enumerate(bars):
        _draw_bar(ax, row, bar, start if origin is None or not log else origin)
    # Each drawing writes the names anew from this list: it must hold what the fonts can draw.
    ax.set_yticks(range(len(bars)), ["\n".join(map(drawable, bar.label.split("\n"))) for bar in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    if mark:
        _draw_mark(ax, *mark, row=len(bars))


def _draw_mark(ax: Axes, text: str, place: float, *, row: int) -> None:
    """Draw a dashed line over all bars; its text stands under the last one, on the side that has more room."""
    ax.axvline(place, color=GUIDE, linestyle="--", linewidth=1.4, zorder=2.5, label=text, gid=GUIDE_LINE)
    ax.set_ylim(row + 0.1, -0.6)
    share = ax.transAxes.inverted().transform(ax.transData.transform((place, 0)))[0]
    side, gap = ("left", 5) if share < 0.5 else ("right", -5)
    look = {"ha": side, "va": "center", "fontsize": SMALL, "color": GUIDE}
    ax.annotate(text, (place, row - 0.2), xytext=(gap, 0), textcoords="offset points", **look)


def _limits(bars: list[_Bar], *, log: bool, origin: float | None, places: Sequence[float] = ()) -> tuple[float, float]:
    """Return the ends of the value axis: there is room for a text between the longest bar and the right end."""
    numbers = [number for bar in bars for number in (bar.value, bar.low, bar.high) if number is not None]
    numbers += [*places] if origin is None else [*places, origin]
    lowest, highest = min(numbers, default=1), max(numbers, default=1)
    if not log:
        return 0, (highest or 1) / (1 - ROOM_FOR_TEXT)
    start = lowest if lowest == origin else 10 ** math.floor(math.log10(lowest) - 0.3)
    return start, start * (max(highest / start, 2)) ** (1 / (1 - ROOM_FOR_TEXT))


def _draw_bar(ax: Axes, row: int, bar: _Bar, origin: float) -> None:
    colour, hatch = SOURCE_COLOURS.get(bar.source, GUIDE), HATCHES.get(bar.source, "")
    look = {"facecolor": "white" if hatch else colour, "edgecolor": colour, "hatch": hatch, "linewidth": 1.2}
    length = 0 if bar.value is None else bar.value - origin
    (patch,) = ax.barh(row, length, left=origin, height=0.62, zorder=2, **look)
    patch.set_label(f"{bar.label}: {bar.text}".replace("\n", " "))
    if bar.low is not None and bar.low < bar.high:
        whiskers = [[bar.value - bar.low], [bar.high - bar.value]]
        ax.errorbar(bar.value, row, xerr=whiskers, fmt="none", ecolor="black", elinewidth=1.2, capsize=3, zorder=4)
    end = origin if bar.value is None else max(bar.value, bar.high or 0, origin)
    look = {"va": "center", "fontsize": SMALL, "path_effects": [withStroke(linewidth=2, foreground="white")]}
    ax.annotate(bar.text, (end, row), xytext=(5, 0), textcoords="offset points", **look)
