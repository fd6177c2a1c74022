"""Every sample in the order of time: what a single number hides."""

from __future__ import annotations

from matplotlib.axes import Axes

from labkit.errors import InputError
from labkit.measurement import Measurement
from labkit.plotting.inputs import measurements_of
from labkit.plotting.style import GUIDE_LINE, MARK, SERIES, axes_for, finish, line_style, next_index
from labkit.plotting.ticks import even_axis, log_axis, tick_s
from labkit.units import format_count, format_s

LOG_FROM = 10  # the ratio of the longest to the shortest time from which on an even axis would flatten all others
NARROWEST = 0.05  # an axis shows at least this share around its middle: three digits cannot label less


def plot_samples(*measurements: Measurement, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw every sample as a dot in the order of time, with the median as a line and the middle half as a band.

    The first call is a star and other warm-up calls are hollow, left of sample 1: they are no part of the median.
    Raises InputError for nothing, for anything but measurements, and for a prediction, which has no samples.

    >>> from labkit.measurement import Task
    >>> ax = plot_samples(Measurement(task=Task(label="add"), times_s=[3e-6, 1e-6, 2e-6], warm_up_s=[9e-6]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['add, cpu (measured): median 2 µs, first call 9 µs']
    """
    checked = measurements_of(measurements)
    for measurement in checked:
        if measurement.source == "predicted":
            advice = "Draw its range with plot_bars or plot_times."
            raise InputError(measurement.legend, "a prediction has a range, but no samples", advice)
    ax = axes_for(ax)
    for measurement in checked:
        _draw_samples(ax, measurement)
    shown = [float(y) for line in ax.lines if line.get_gid() in (SERIES, MARK) for y in line.get_ydata()]
    _scale_y(ax, min(shown), max(shown))
    even_axis(ax, "x", lambda number: format_count(number) if number >= 1 and number == int(number) else "")
    ax.set_xlabel("sample, in the order of time (left of 1: warm-up, first call as a star)")
    ax.set_ylabel("time per call (band: middle half)")
    return finish(ax, title=title)


def _draw_samples(ax: Axes, measurement: Measurement) -> None:
    times_s, median_s = measurement.times_s, measurement.median_s
    style = line_style(next_index(ax), measurement.source)
    colour, marker = style["color"], style["marker"]
    label = f"{measurement.task}, {measurement.legend}: median {format_s(median_s)}"
    if measurement.first_s is not None:
        label += f", first call {format_s(measurement.first_s)}"
    size = 5.0 if len(times_s) <= 60 else 3.0
    ax.axhspan(*measurement.quartiles_s, color=colour, alpha=0.15, linewidth=0)
    ax.axhline(
        median_s,
        color=colour,
        linestyle=style["linestyle"],
        linewidth=1.6,
        label=f"_median {format_s(median_s)}",
        gid=GUIDE_LINE,
    )
    dots = {"linestyle": "", "markersize": size, "color": colour, "alpha": 0.8, "zorder": 3}
    dots["markerfacecolor"] = style.get("markerfacecolor", colour)
    ax.plot(range(1, len(times_s) + 1), times_s, marker=marker, label=label, gid=SERIES, **dots)
    before = range(1 - len(measurement.warm_up_s), 1)
    for number, time_s in zip(before, measurement.warm_up_s, strict=True):
        first = number == before[0]
        look = {"markersize": 13 if first else 6, "markerfacecolor": colour if first else "white"}
        ax.plot(
            [number], [time_s], marker="*" if first else marker, linestyle="", color=colour, gid=MARK, zorder=4,
            label="_first call" if first else "_warm-up", **look,
        )  # fmt: skip


def _scale_y(ax: Axes, lowest_s: float, highest_s: float) -> None:
    if highest_s / lowest_s >= LOG_FROM:
        log_axis(ax, "y", tick_s)
        return
    even_axis(ax, "y", tick_s)
    middle, half = (lowest_s + highest_s) / 2, (highest_s - lowest_s) / 2
    half = max(half * 1.1, middle * NARROWEST)
    ax.set_ylim(middle - half, middle + half)
