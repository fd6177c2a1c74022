"""Sweeps as curves: time per call and throughput against the swept parameter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes

from labkit.errors import check_choice, check_positive
from labkit.measurement import Measurement, Sweep
from labkit.plotting.inputs import RATE_TICKS, RATES, labelled_rows, rate_of, spread_in_words, sweeps_of
from labkit.plotting.labels import label_beside_line
from labkit.plotting.series import Band, data_range, draw_guide, draw_sweep
from labkit.plotting.style import GUIDE, GUIDE_LINE, LINES, axes_for, finish, label_y
from labkit.plotting.ticks import Formatter, log_axis, parameter_formatter, tick_s, tick_values_of_series
from labkit.units import format_count


def plot_times(
    *sweeps: Sweep, slope: float | None = None, ax: Axes | None = None, title: str | None = None, x_label: str = ""
) -> Axes:
    """Draw the time per call against the swept parameter, both logarithmic: medians, with the quartiles as a band.

    slope adds a line of that steepness to compare with: 3 for work that grows with the cube of the parameter. Points
    that did not fit into memory are crosses at the upper edge. Raises InputError unless given sweeps of one parameter.

    >>> from labkit.measurement import Point, Task
    >>> mm = Measurement(task=Task(label="mm"), times_s=[1e-4])
    >>> ax = plot_times(Sweep(label="matmul", parameter="n", points=[Point(value=100, measurement=mm)]))
    >>> ax.get_xlabel(), ax.get_legend().get_texts()[0].get_text()
    ('n', 'matmul, cpu (measured)')
    """
    checked = sweeps_of(sweeps)
    if slope is not None:
        check_positive("slope", slope)
    ax = axes_for(ax)
    log_axis(ax, "y", tick_s)
    for sweep in checked:
        draw_sweep(ax, sweep, _time_band)
    label_parameter(ax, checked[0].parameter, x_label)
    label_y(ax, f"time per call {spread_in_words('band', [sweep.source for sweep in checked])}")
    if slope is not None and any(sweep.measurements for sweep in checked):
        _draw_slope(ax, slope, checked)
    return finish(ax, title=title)


def plot_throughput(
    *sweeps: Sweep,
    quantity: str = "flop_per_s",
    peaks: Iterable[Any] = (),
    ax: Axes | None = None,
    title: str | None = None,
    x_label: str = "",
) -> Axes:
    """Draw FLOP per second against the swept parameter; with quantity="bytes_per_s" bytes, with "images_per_s" images.

    peaks are rows (label, value) or (label, value, source), drawn as horizontal lines; without a source they count as
    predicted, since a datasheet's peak is not measured. The images of a call are its task's parameter batch.
    Implausible times are left out, and the legend says so. Raises InputError for anything but sweeps of one parameter
    whose work per call is known.

    >>> from labkit.measurement import Point, Task
    >>> mm = Measurement(task=Task(label="mm", flop=2e6), times_s=[1e-4])
    >>> ax = plot_throughput(Sweep(label="matmul", parameter="n", points=[Point(value=100, measurement=mm)]))
    >>> float(ax.lines[0].get_ydata()[0])
    20000000000.0
    """
    unit, formatter = RATES[check_choice("quantity", quantity, RATES)]
    checked = sweeps_of(sweeps)
    rows = labelled_rows("peaks", peaks, '("T4", 8.1e12)', source="predicted")
    for label, value, _ in rows:
        check_positive(label, value)
    for measurement in (m for sweep in checked for m in sweep.measurements):
        rate_of(measurement, quantity)
    ax = axes_for(ax)
    log_axis(ax, "y", RATE_TICKS.get(quantity, formatter))
    for sweep in checked:
        draw_sweep(ax, sweep, lambda measurement: _rate_band(measurement, quantity))
    label_parameter(ax, checked[0].parameter, x_label)
    label_y(ax, f"{unit} {spread_in_words('band', [sweep.source for sweep in checked])}")
    _draw_peaks(ax, rows, formatter)
    return finish(ax, title=title)


def label_parameter(ax: Axes, parameter: str, x_label: str = "", *, log: bool = True) -> None:
    """Set up the x axis for a swept parameter: its scale, its name, and ticks at the values that were swept."""
    formatter = parameter_formatter(parameter)
    if log:
        log_axis(ax, "x", formatter)
    tick_values_of_series(ax, formatter)
    ax.set_xlabel(x_label or parameter.removesuffix("_bytes").replace("_", " "))


def _time_band(measurement: Measurement) -> Band:
    return measurement.median_s, *measurement.quartiles_s


def _rate_band(measurement: Measurement, quantity: str) -> Band | None:
    rate = rate_of(measurement, quantity)
    if rate is None:
        return None
    fast_s, slow_s = measurement.quartiles_s
    return rate, rate * measurement.median_s / slow_s, rate * measurement.median_s / fast_s


def _draw_slope(ax: Axes, slope: float, sweeps: tuple[Sweep, ...]) -> None:
    """Draw the guide through half the last time of the fastest sweep, as far down as the data go."""
    ends = [(sweep.medians_s[-1], sweep.values[-1]) for sweep in sweeps if sweep.measurements]
    time_s, value = min(ends, key=lambda end: end[0] / end[1] ** slope)
    (left, _), (lowest_s, _) = data_range(ax, "x"), data_range(ax, "y")
    end_s = time_s / 2
    start = max(left, value * (min(lowest_s, end_s) / end_s) ** (1 / slope))
    label = f"slope {slope:g}: twice the {ax.get_xlabel()}, {format_count(2**slope)} times the time"
    draw_guide(ax, [start, value], [end_s * (start / value) ** slope, end_s], label)


def _draw_peaks(ax: Axes, rows: tuple[tuple[str, float, str], ...], formatter: Formatter) -> None:
    """Draw a horizontal line each, and beside it its name, value and source where the least is in the way."""
    if not rows:
        return
    for label, value, source in rows:
        text = f"{label}: {formatter(value)} ({source})"
        look = {"color": GUIDE, "linewidth": 1.2, "linestyle": LINES[source], "zorder": 2}
        ax.axhline(value, label=f"_{text}", gid=GUIDE_LINE, **look)
    ax.margins(y=max(ax.margins()[1], 0.1))
    for label, value, source in rows:
        label_beside_line(ax, value, f"{label}: {formatter(value)} ({source})")
