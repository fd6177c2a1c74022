"""A model that answers: how its latencies are spread, how waiting grows with the load, and the queue over time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from labkit.errors import InputError, check_positive
from labkit.inference import LoadRun, mean_wait_s, percentiles
from labkit.measurement import Measurement
from labkit.plotting.inputs import all_of, measurements_of
from labkit.plotting.series import draw_line
from labkit.plotting.style import GUIDE, GUIDE_LINE, MARK, axes_for, describe_axes, finish, line_style, next_index
from labkit.plotting.ticks import even_axis, log_axis, tick_s
from labkit.units import format_count, format_s

MARKED = (50, 95, 99)
LOADS = np.concatenate([np.linspace(0.02, 0.9, 45), 1 - np.geomspace(0.09, 0.01, 15)])  # of the theory's curve
MOMENTS = 200  # that a figure of 7 inches can tell apart
ADVICE = "Pass one or more results of under_load(…)."


def plot_latency(
    *measurements: Measurement, limit_s: float | None = None, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw which share of the calls take at most how long, with p50, p95 and p99 marked on the curve.

    A steep curve means calls that are alike; a long foot at the top right means a few slow ones. limit_s adds the time
    that one would wait for. Raises InputError for anything but measurements of single calls.

    >>> from labkit.measurement import Task
    >>> calls = Measurement(task=Task(label="net"), times_s=[n * 1e-5 for n in range(100, 200)])
    >>> ax = plot_latency(calls)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['net, cpu (measured): p50 1.49 ms, p95 1.94 ms, p99 1.98 ms']
    """
    checked = [(measurement, percentiles(measurement)) for measurement in measurements_of(measurements)]
    ax = axes_for(ax)
    log_axis(ax, "x", tick_s)
    even_axis(ax, "y", lambda percent: f"{percent:g}%" if 0 <= percent <= 100 else "")
    same_label = len({measurement.task.label for measurement, _ in checked}) < len(checked)
    words = []
    for measurement, found in checked:
        times_s = np.sort(measurement.times_s)
        shares = 100 * np.arange(1, len(times_s) + 1) / len(times_s)
        style = line_style(next_index(ax), measurement.source)
        name = str(measurement.task) if same_label else measurement.task.label
        marked = f"p50 {format_s(found.p50_s)}, p95 {format_s(found.p95_s)}, p99 {format_s(found.p99_s)}"
        label = f"{name}, {measurement.legend}: {marked}"
        draw_line(ax, times_s, shares, label, style | {"marker": "", "drawstyle": "steps-post"})
        marks = (found.p50_s, found.p95_s, found.p99_s)
        look = {"linestyle": "", "color": style["color"], "gid": MARK, "zorder": 4, "marker": style["marker"]}
        ax.plot(marks, MARKED, label="_p50, p95, p99", markersize=7, **look)
        words.append(label)
    for percent in MARKED:
        ax.axhline(percent, color=GUIDE, linewidth=0.6, linestyle=":", zorder=1)
    if limit_s is not None:
        words.append(_draw_limit(ax, "x", limit_s))
    ax.set_ylim(0, 102)
    ax.set_yticks([0, 25, *MARKED])
    ax.set_xlabel("time of a call")
    ax.set_ylabel("share of calls that took at most this")
    _describe(ax, title, "Share of the calls that take at most how long", words)
    return finish(ax, title=title)


def plot_load(*runs: LoadRun, limit_s: float | None = None, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the time from arrival to answer against the load: mean and p95 of each run, and the mean that theory gives.

    The load is requests per second times the time of an answer; at 1 the server has no moment to spare. The theory is
    that of Pollaczek and Khinchine for the calls of the lightest run, answered one by one. Raises InputError for what
    is no run, for runs with batches, and where no request was answered.
    """
    checked = sorted(all_of(LoadRun, runs, ADVICE), key=lambda run: run.load)
    ax = axes_for(ax)
    log_axis(ax, "y", tick_s)
    even_axis(ax, "x", lambda load: f"{load:.0%}" if load >= 0 else "")
    _draw_theory(ax, checked[0])
    for source in dict.fromkeys(run.source for run in checked):
        of_source = [run for run in checked if run.source == source]
        loads = [run.load for run in of_source]
        for name, values in (
            ("mean", [run.mean_wait_s + _mean(run.service_s) for run in of_source]),
            ("p95", [run.response.p95_s for run in of_source]),
        ):
            style = line_style(next_index(ax), source) | {"linestyle": ""}
            draw_line(ax, loads, values, f"{name}, {of_source[0].legend}", style)
    ax.axvline(
        1,
        color=GUIDE,
        linewidth=1.2,
        linestyle="--",
        label="load 100%; right of it times grow for as long as the run lasts",
        gid=GUIDE_LINE,
    )
    if limit_s is not None:
        _draw_limit(ax, "y", limit_s)
    most = max(1, *(run.load for run in checked))
    ax.set_xlim(-0.02 * most, 1.05 * most)  # a light load is a point at the edge, and must not be cut
    ax.set_xlabel("load: requests per second × time of an answer")
    ax.set_ylabel("time from arrival to answer")
    return finish(ax, title=title)


def plot_queue(*runs: LoadRun, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw how many requests wait, over the time of each run; where steps are too many to see, the most of each moment.

    Raises InputError for what is no run.

    >>> from labkit.inference import predict_load
    >>> ax = plot_queue(predict_load(0.01, rate_per_s=50, duration_s=2))
    >>> ax.get_ylabel()
    'requests that wait'
    """
    checked = all_of(LoadRun, runs, ADVICE)
    ax = axes_for(ax)
    even_axis(ax, "x", tick_s)
    even_axis(ax, "y", lambda count: format_count(count) if count >= 0 and count == int(count) else "")
    for run in checked:
        steps = run.queue()
        end_s = max(run.duration_s, run.requests[-1].answered_s if run.requests else 0.0)
        times_s, lengths = _visible(steps, end_s)
        style = line_style(next_index(ax), run.source) | {"drawstyle": "steps-post"}
        style["markevery"] = max(len(times_s) // 8, 1)  # enough to tell the lines apart without their colours
        rate = f"{format_count(run.rate_per_s)} requests/s"
        batches = f", up to {run.most_in_batch} at once" if run.most_in_batch > 1 else ""
        draw_line(ax, times_s, lengths, f"{rate}{batches}, {run.legend}", style)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("time since the start of the run")
    ax.set_ylabel("requests that wait")
    most = [f"{line.get_label()}: at most {format_count(max(line.get_ydata()))}" for line in ax.lines]
    _describe(ax, title, "Requests that wait, over time", most)
    return finish(ax, title=title)


def _visible(steps: tuple[tuple[float, int], ...], end_s: float) -> tuple[list[float], list[int]]:
    """Return the steps as times and numbers up to end_s, or the most in each of MOMENTS where there are more steps."""
    times_s, lengths = ([*column] for column in zip(*steps, (end_s, steps[-1][1]), strict=True))
    if len(steps) <= MOMENTS:
        return times_s, lengths
    edges_s = np.linspace(0, end_s, MOMENTS + 1)
    firsts = np.searchsorted(times_s, edges_s, side="right") - 1  # the step that holds at each edge
    most = [max(lengths[first : last + 1]) for first, last in zip(firsts, firsts[1:], strict=False)]
    return [*edges_s.tolist()], [*most, most[-1]]


def _draw_theory(ax: Axes, lightest: LoadRun) -> None:
    if lightest.most_in_batch > 1:
        raise InputError(
            f"most_in_batch={lightest.most_in_batch}", "theory's curve is for requests answered one by one"
        )
    calls_s = lightest.call_times_s
    mean_s = _mean(calls_s)
    times_s = [mean_s + mean_wait_s(load / mean_s, calls_s) for load in LOADS]
    style = line_style(next_index(ax), "predicted") | {"marker": ""}
    draw_line(ax, LOADS, times_s, "mean by theory, for random arrivals (predicted)", style)


def _draw_limit(ax: Axes, which: str, limit_s: float) -> str:
    """Draw the time that one would wait for, and return it in words."""
    check_positive("limit_s", limit_s, unit="seconds")
    words = f"limit {format_s(limit_s)}"
    (ax.axvline if which == "x" else ax.axhline)(
        limit_s, color=GUIDE, linewidth=1.2, linestyle="-.", label=words, gid=GUIDE_LINE
    )
    return words


def _describe(ax: Axes, title: str | None, what: str, words: list[str]) -> None:
    head = f"{title}{'' if title[-1] in '.?!' else '.'} " if title else ""
    describe_axes(ax, f"{head}{what}. {'; '.join(words)}.")


def _mean(times_s: Iterable[Any]) -> float:
    return float(np.mean(list(times_s)))
