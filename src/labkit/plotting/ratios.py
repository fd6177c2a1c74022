"""How many times faster: speedup of one sweep over another, and of many threads over one."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from labkit.comparison import Amdahl, Crossover, Speedup, speedup, weakest_source
from labkit.errors import InputError
from labkit.measurement import Sweep
from labkit.plotting.inputs import all_of, sweeps_of
from labkit.plotting.series import draw_guide, draw_sweep
from labkit.plotting.style import GUIDE, GUIDE_LINE, PALETTE, axes_for, finish, label_y, next_index
from labkit.plotting.ticks import Formatter, even_axis, log_axis, parameter_formatter, tick_values_of_series
from labkit.plotting.times import label_parameter
from labkit.units import format_ratio

EVEN_THREADS = 16  # up to here thread counts stand on an even axis, where the ideal speedup is a straight line


def plot_speedup(
    baseline_sweep: Sweep,
    *others: Sweep,
    crossover: Crossover | Iterable[Crossover] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
    x_label: str = "",
) -> Axes:
    """Draw how many times faster the others are than the baseline at the values they share, with the range.

    A line marks 1, equally fast. crossover, one or one for each of the others, is drawn where it lies, with its range
    shaded. Raises InputError for anything but sweeps of one parameter that share a value.

    >>> from labkit.measurement import Measurement, Point, Task
    >>> def at_ten(label, time_s):
    ...     measured = Measurement(task=Task(label=label), times_s=[time_s])
    ...     return Sweep(label=label, parameter="n", points=[Point(value=10, measurement=measured)])
    >>> ax = plot_speedup(at_ten("loop", 8e-3), at_ten("sum", 2e-3))
    >>> float(ax.lines[0].get_ydata()[0]), ax.get_title(loc="left")
    (4.0, 'Speedup over loop, cpu (measured)')
    """
    baseline, *checked = sweeps_of((baseline_sweep, *others))
    if not checked:
        raise InputError(
            "one sweep", "a speedup compares two", "Pass the baseline, then the sweeps to compare with it."
        )
    crossovers = _crossovers(crossover)
    ax = axes_for(ax)
    log_axis(ax, "y", format_ratio)
    colours = []
    for sweep in checked:
        colours.append(PALETTE[next_index(ax) % len(PALETTE)])
        _draw_ratio(ax, baseline, sweep)
    label_parameter(ax, baseline.parameter, x_label)
    label_y(ax, "speedup (band: its range)")
    ax.axhline(1, color=GUIDE, linewidth=1.2, zorder=2, label="equally fast")
    for found, colour in zip(crossovers, colours, strict=False):
        _draw_crossover(ax, found, colour, parameter_formatter(baseline.parameter))
    return finish(ax, title=title or f"Speedup over {baseline.legend}")


def plot_scaling(
    sweep: Sweep, *, amdahl: Amdahl | None = None, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw the speedup of each number of threads over the smallest, the ideal, and the fit of Amdahl's law.

    sweep goes over "threads". Raises InputError if it does not, or has fewer than two values.

    >>> from labkit.measurement import Measurement, Point, Task
    >>> def on(threads, time_s):
    ...     task = Task(label="mm", parameters={"threads": threads})
    ...     return Point(value=threads, measurement=Measurement(task=task, times_s=[time_s], threads=threads))
    >>> ax = plot_scaling(Sweep(label="mm", parameter="threads", points=[on(1, 8.0), on(2, 5.0)]))
    >>> [float(y) for y in ax.lines[0].get_ydata()]
    [1.0, 1.6]
    """
    (sweep,) = sweeps_of([sweep])
    if sweep.parameter != "threads" or len(sweep.values) < 2:
        given = f"a sweep over {sweep.parameter} with {len(sweep.values)} measured values"
        raise InputError(given, "scaling needs two or more numbers of threads", 'Sweep with parameter="threads".')
    if amdahl is not None and not isinstance(amdahl, Amdahl):
        raise InputError(f"amdahl={amdahl!r}", "this is no fit of Amdahl's law", "Pass what fit_amdahl(…) returns.")
    one, fewest = sweep.measurements[0], sweep.values[0]
    ax = axes_for(ax)
    even = sweep.values[-1] <= EVEN_THREADS
    for which in "xy":
        (even_axis if even else log_axis)(ax, which, format_ratio)
    draw_sweep(ax, sweep, lambda measurement: _band(speedup(one, measurement)))
    counts = np.geomspace(fewest, sweep.values[-1], 100)
    draw_guide(ax, counts, counts / fewest, "ideal: twice the threads, twice the speed")
    if amdahl is not None:
        fitted = [one.median_s / amdahl.time_s(count) for count in counts]
        limit = "" if math.isinf(amdahl.limit) else f", never above {format_ratio(amdahl.limit)}"
        label = f"Amdahl's law fitted to the {sweep.source} times: {amdahl.serial:.0%} serial{limit}"
        look = {"linewidth": 1.6, "linestyle": (0, (6, 2)), "gid": GUIDE_LINE, "zorder": 2.5}
        ax.plot(counts, fitted, color=PALETTE[1], label=label, **look)
    tick_values_of_series(ax, parameter_formatter("threads"))
    ax.set_xlabel("threads")
    label_y(ax, f"speedup over {fewest} thread{'s' if fewest > 1 else ''} (band: its range)")
    return finish(ax, title=title)


def _band(ratio: Speedup) -> tuple[float, float, float]:
    return ratio.ratio, ratio.low, ratio.high


def _draw_ratio(ax: Axes, baseline: Sweep, sweep: Sweep) -> None:
    """Draw the speedup where both were measured; points that the baseline lacks are left out, and counted."""
    shared = [point for point in sweep.points if point.value in baseline.values]
    if not any(point.measurement for point in shared):
        given = f"{baseline.label} over {baseline.values} and {sweep.label} over {sweep.values}"
        raise InputError(given, "they share no value, so no ratio exists", "Sweep both over the same values.")
    beaten = {id(p.measurement): baseline.at(p.value) for p in shared if p.measurement}
    source = weakest_source(baseline.measurements[0], sweep.measurements[0])
    label = sweep.legend if source == sweep.source else f"{sweep.legend}; the ratio is {source}"
    left_out = len(sweep.points) - len(shared)
    if left_out:
        label += f", {left_out} point{'s' if left_out > 1 else ''} without a baseline left out"
    drawn = dataclasses.replace(sweep, points=tuple(shared))
    draw_sweep(ax, drawn, lambda m: _band(speedup(beaten[id(m)], m)), label=label, source=source)


def _crossovers(given: Any) -> tuple[Crossover, ...]:
    if given is None:
        return ()
    given = (given,) if isinstance(given, Crossover) else given
    return all_of(Crossover, given, "Pass what crossover(…) returns.")


def _draw_crossover(ax: Axes, found: Crossover, colour: str, formatter: Formatter) -> None:
    """Draw the value as a vertical line and its range as a shade, or say in the legend why there is none."""
    if found.always or found.never:
        words = "faster from the smallest value on" if found.always else "never faster in this range"
        ax.plot([], [], linestyle="", marker="|", color=colour, label=f"no crossover: {words} ({found.source})")
        return

    def in_words(value: float) -> str:
        return formatter(round(value) if value >= 10 else float(f"{value:.2g}"))

    left, right = ax.get_xlim()
    low = in_words(found.low) if found.low else "less"
    high = in_words(found.high) if found.high else "more, or never"
    label = f"crossover at {ax.get_xlabel()} ≈ {in_words(found.value)}, range {low} to {high} ({found.source})"
    look = {"linewidth": 1.4, "linestyle": "-.", "gid": GUIDE_LINE, "zorder": 2}
    ax.axvspan(found.low or left, found.high or right, color=colour, alpha=0.12, linewidth=0)
    ax.axvline(found.value, color=colour, label=label, **look)
    ax.set_xlim(left, right)
