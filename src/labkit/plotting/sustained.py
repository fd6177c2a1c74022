"""A run that goes on for minutes: does its throughput hold?"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from labkit.errors import InputError, check_choice, check_positive
from labkit.measurement import SOURCES, Measurement
from labkit.plotting.inputs import RATE_TICKS, RATES, rate_of, work_of
from labkit.plotting.series import draw_band, draw_line
from labkit.plotting.style import GUIDE_LINE, PALETTE, axes_for, finish, label_y, line_style, next_index
from labkit.plotting.ticks import Formatter, even_axis, tick_s
from labkit.units import format_count

FEWEST_SAMPLES = 20  # a tenth of them is two
PARTS = 50  # of the run, each with its median and quartiles


class _Run(NamedTuple):
    elapsed_s: Sequence[float]
    rates: Sequence[float]
    label: str
    source: str
    quantity: str


def plot_over_time(
    run: Measurement | Iterable[Any],
    *,
    quantity: str | None = None,
    label: str = "this run",
    source: str = "measured",
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the throughput of a long run over its time, and compare the last tenth of its samples with the first.

    run is a Measurement whose samples follow each other, a list of seconds per call, or a list of pairs (elapsed
    seconds, rate). quantity is "flop_per_s", "bytes_per_s", "images_per_s" or "calls_per_s"; left out, a measurement's
    known FLOP or bytes decide, and lists count calls. label and source name a list. Raises InputError for fewer than
    20 samples.

    >>> ax = plot_over_time([0.01] * 50 + [0.02] * 50)
    >>> [text.get_text() for text in ax.get_legend().get_texts()][1:]
    ['first tenth: 100 calls/s', 'last tenth: 50 calls/s, 50% below the first']
    """
    found = _run_of(run, quantity, label, source)
    unit, formatter = _unit(found.quantity)
    ax = axes_for(ax)
    even_axis(ax, "x", tick_s)
    even_axis(ax, "y", RATE_TICKS.get(found.quantity, formatter))
    style = line_style(next_index(ax), found.source) | {"marker": ""}
    middles_s, medians, lows, highs = _parts(found)
    draw_band(ax, middles_s, lows, highs, style["color"])
    draw_line(ax, middles_s, medians, f"{found.label} ({found.source})", style)
    _compare_tenths(ax, found, formatter)
    ax.set_ylim(0, 1.1 * max(highs))
    ax.set_xlabel("time since the start of the run")
    label_y(ax, f"{unit} (band: middle half)")
    return finish(ax, title=title)


def _unit(quantity: str) -> tuple[str, Formatter]:
    return RATES[quantity] if quantity in RATES else ("calls per second", lambda rate: f"{format_count(rate)} calls/s")


def _run_of(run: Any, quantity: str | None, label: str, source: str) -> _Run:
    if quantity is not None:
        check_choice("quantity", quantity, (*RATES, "calls_per_s"))
    if isinstance(run, Measurement):
        found = _run_of_measurement(run, quantity)
    else:
        found = _run_of_list(run, quantity, label, check_choice("source", source, SOURCES))
    if len(found.rates) < FEWEST_SAMPLES:
        given, problem = f"{len(found.rates)} samples", f"a run over time needs {FEWEST_SAMPLES} or more"
        raise InputError(given, problem, "Let it run longer.")
    return found


def _run_of_measurement(run: Measurement, quantity: str | None) -> _Run:
    known = [name for name, work in (("flop_per_s", run.task.flop), ("bytes_per_s", run.task.bytes_moved)) if work]
    quantity = quantity or (known[0] if known else "calls_per_s")
    calls_per_s = [1 / time_s for time_s in run.times_s]
    work = 1.0
    if quantity != "calls_per_s":
        if rate_of(run, quantity) is None:
            raise InputError(run.legend, f"its times are implausible ({run.implausible})", "Measure it again.")
        work = work_of(run, quantity)
    elapsed_s = list(itertools.accumulate(time_s * run.calls_per_sample for time_s in run.times_s))
    return _Run(elapsed_s, [work * rate for rate in calls_per_s], f"{run.task}, {_device(run)}", run.source, quantity)


def _device(run: Measurement) -> str:
    return run.legend.removesuffix(f" ({run.source})")


def _run_of_list(run: Any, quantity: str | None, label: str, source: str) -> _Run:
    if isinstance(run, (str, bytes)) or not isinstance(run, Iterable):
        raise InputError(repr(run), "this is no run over time", "Pass a list of seconds per call, or a Measurement.")
    rows = list(run)
    pairs = [row for row in rows if isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 2]
    if pairs and len(pairs) == len(rows):
        elapsed_s = [check_positive("elapsed_s", at_s, zero_ok=True) for at_s, _ in pairs]
        if any(later < sooner for sooner, later in itertools.pairwise(elapsed_s)):
            raise InputError(f"{label}: pairs", "the elapsed seconds go back", "Sort the pairs by time.")
        rates = [check_positive("rate", rate, zero_ok=True) for _, rate in pairs]
        return _Run(elapsed_s, rates, label, source, quantity or "calls_per_s")
    times_s = [check_positive("a time of the run", time_s, unit="seconds") for time_s in rows]
    if quantity not in (None, "calls_per_s"):
        advice = "Pass a Measurement with its work, or pairs (elapsed seconds, rate)."
        raise InputError(f"quantity={quantity!r}", "bare times do not say how much work a call does", advice)
    rates = [1 / time_s for time_s in times_s]
    return _Run(list(itertools.accumulate(times_s)), rates, label, source, "calls_per_s")


def _parts(run: _Run) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return of each part of the run: its middle in seconds, and the median and quartiles of its rates."""
    count = len(run.rates)
    parts = min(PARTS, count // 2)
    edges = [round(part * count / parts) for part in range(parts + 1)]
    rows = []
    for start, end in itertools.pairwise(edges):
        low, median, high = statistics.quantiles(run.rates[start:end], n=4, method="inclusive")
        rows.append((statistics.median(run.elapsed_s[start:end]), median, low, high))
    return tuple(map(list, zip(*rows, strict=True)))


def _compare_tenths(ax: Axes, run: _Run, formatter: Formatter) -> None:
    """Draw the medians of the first and the last tenth of the samples, and say how far they are apart."""
    size = len(run.rates) // 10
    first, last = statistics.median(run.rates[:size]), statistics.median(run.rates[-size:])
    change = (last - first) / first if first else 0.0
    side = "below" if change < 0 else "above"
    words = "as fast as the first" if abs(change) < 0.005 else f"{abs(change):.0%} {side} the first"
    first_span, last_span = (0.0, run.elapsed_s[size - 1]), (run.elapsed_s[-size], run.elapsed_s[-1])
    look = {"linewidth": 3.5, "zorder": 4, "gid": GUIDE_LINE}
    ax.plot(first_span, [first] * 2, color=PALETTE[6], label=f"first tenth: {formatter(first)}", **look)
    look |= {"color": PALETTE[1], "linestyle": (0, (1, 0.4))}
    ax.plot(last_span, [last] * 2, label=f"last tenth: {formatter(last)}, {words}", **look)
    for start_s, end_s in (first_span, last_span):
        ax.axvspan(start_s, end_s, color="#000000", alpha=0.06, linewidth=0)
