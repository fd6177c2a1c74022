"""Axes that a beginner can read: ticks such as "10 µs" and "1 million", on logarithmic and on even scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from matplotlib import ticker
from matplotlib.axes import Axes

from labkit.errors import InputError
from labkit.plotting.style import MARK, POINTS_PER_CHARACTER, SERIES
from labkit.units import format_bytes, format_count, format_s

Formatter = Callable[[float], str]

FEWEST_TICKS, MOST_TICKS = 3, 9
MOST_MINOR_TICKS = 200  # closer together they are a grey bar, and each takes a millisecond to draw
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86400.0
COARSE_S = [float(f"1e{exponent}") for exponent in range(-12, 2)]
COARSE_LONG_S = (
    [n * MINUTE_S for n in (1, 10)] + [n * HOUR_S for n in (1, 10)] + [n * DAY_S for n in (1, 10, 100, 1000)]
)
FINE_S = [float(f"{step}e{exponent}") for exponent in range(-12, 2) for step in (1, 2, 5)][:-1]
FINE_LONG_S = [n * MINUTE_S for n in (1, 2, 5, 10, 20, 30)] + [n * HOUR_S for n in (1, 2, 5, 10)]
FINE_LONG_S += [n * DAY_S for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
EVEN_STEPS = [1, 2, 2.5, 5, 10]


class ReadableLogLocator(ticker.LogLocator):
    """Ticks at the decades; where fewer than three are in view also at 2 and 5, and else at even steps.

    >>> ReadableLogLocator().tick_values(1e-3, 1e-1)
    [0.001, 0.01, 0.1]
    >>> ReadableLogLocator().tick_values(8, 60)
    [10.0, 20.0, 50.0]
    """

    def __init__(self, most_ticks: int = MOST_TICKS) -> None:
        super().__init__()
        self.most_ticks = most_ticks

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks between vmin and vmax."""
        low, high = sorted((vmin, vmax))
        low = low if low > 0 else high * 1e-6
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for steps in ((1,), (1, 2, 5)):
            every = -(-len(exponents) // self.most_ticks)
            ticks = [float(f"{step}e{exponent}") for exponent in exponents[::every] for step in steps]
            ticks = [tick for tick in ticks if low * 0.9999 <= tick <= high * 1.0001]
            if len(ticks) >= FEWEST_TICKS:
                return ticks
        return [tick for tick in ticker.MaxNLocator(5).tick_values(low, high) if low <= tick <= high]

    def nonsingular(self, vmin: float, vmax: float) -> tuple[float, float]:
        """Return limits that differ: a single value gets half a decade on both sides.

        The inherited test for equality misses values that differ by a rounding error.
        """
        low, high = sorted((vmin, vmax))
        if low > 0 and math.isfinite(high) and high / low < 1 + 1e-6:
            return low / math.sqrt(10), high * math.sqrt(10)
        return super().nonsingular(vmin, vmax)


class LogTimeLocator(ReadableLogLocator):
    """Ticks in seconds: decades below a minute, then round numbers of minutes, hours and days.

    >>> [tick_s(tick) for tick in LogTimeLocator().tick_values(20, 500_000)]
    ['1 min', '10 min', '1 h', '10 h', '1 day']
    """

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Return the ticks between vmin and vmax, both in seconds."""
        low, high = sorted((vmin, vmax))
        if high < 120:
            return super().tick_values(low, high)
        for seconds, longer in ((COARSE_S, COARSE_LONG_S), (FINE_S, FINE_LONG_S)):
            ticks = [tick for tick in (*seconds, *longer) if low <= tick <= high]
            if len(ticks) >= FEWEST_TICKS:
                return ticks[:: -(-len(ticks) // self.most_ticks)]
        return super().tick_values(low, high)


class EvenTimeLocator(ticker.MaxNLocator):
    """Even steps in the unit that format_s writes: whole minutes, not multiples of 100 s.

    >>> [float(tick) for tick in EvenTimeLocator(6, steps=EVEN_STEPS).tick_values(0, 600)]
    [0.0, 120.0, 240.0, 360.0, 480.0, 600.0]
    """

    def tick_values(self, vmin: float, vmax: float) -> Any:
        """Return the ticks between vmin and vmax, both in seconds."""
        unit_s = next((unit_s for unit_s in (86400, 3600, 60) if vmax >= 2 * unit_s), 1)
        return super().tick_values(vmin / unit_s, vmax / unit_s) * unit_s


def tick_formatter(formatter: Formatter) -> ticker.FuncFormatter:
    """Return a matplotlib formatter that leaves blank what formatter refuses, such as a tick below zero."""

    def text(value: float, _position: int | None = None) -> str:
        try:
            return formatter(value)
        except InputError:
            return ""

    return ticker.FuncFormatter(text)


def log_axis(ax: Axes, which: str, formatter: Formatter, *, most_ticks: int = MOST_TICKS) -> None:
    """Make the x or the y axis of ax logarithmic with labelled decades, written by formatter."""
    ax.set(**{f"{which}scale": "log"})
    axis = getattr(ax, f"{which}axis")
    is_time = formatter in (format_s, tick_s)
    axis.set_major_locator((LogTimeLocator if is_time else ReadableLogLocator)(most_ticks))
    axis.set_major_formatter(tick_formatter(tick_s if is_time else formatter))
    axis.set_minor_formatter(ticker.NullFormatter())


def even_axis(ax: Axes, which: str, formatter: Formatter, *, most_ticks: int = 7) -> None:
    """Give the x or the y axis of ax an even scale, with ticks written by formatter."""
    ax.set(**{f"{which}scale": "linear"})
    axis = getattr(ax, f"{which}axis")
    locator = EvenTimeLocator if formatter in (format_s, tick_s) else ticker.MaxNLocator
    axis.set_major_locator(locator(most_ticks - 1, steps=EVEN_STEPS))
    axis.set_major_formatter(tick_formatter(formatter))


def tick_s(seconds: float) -> str:
    """Return a tick of a logarithmic time axis: whole minutes, hours and days as such, all else as format_s.

    >>> tick_s(1e-5), tick_s(60.0), tick_s(36000.0), tick_s(86400.0)
    ('10 µs', '1 min', '10 h', '1 day')
    """
    for unit_s, name in ((86400, "day"), (3600, "h"), (60, "min")):
        if seconds >= unit_s and seconds % unit_s == 0:
            count = int(seconds // unit_s)
            return f"{count:,} {name}{'s' if name == 'day' and count > 1 else ''}"
    return format_s(seconds)


def parameter_formatter(parameter: str) -> Formatter:
    """Return how values of a sweep's parameter are written: bytes as bytes, everything else as a count."""
    return format_bytes if parameter.endswith("bytes") else format_count


def tick_values_of_series(ax: Axes, formatter: Formatter) -> None:
    """Set the ticks of the x axis at the values that the series of ax have, as many as fit side by side."""
    drawn = (line.get_xdata() for line in ax.lines if line.get_gid() in (SERIES, MARK))
    values = sorted({float(value) for xs in drawn for value in xs})
    width_points = ax.get_window_extent().width * 72 / ax.figure.dpi
    ticks = fitting(values, formatter, width_points, log=ax.get_xscale() == "log")
    ax.xaxis.set_major_locator(ticker.FixedLocator(ticks))
    ax.xaxis.set_minor_locator(ticker.FixedLocator(values if len(values) <= MOST_MINOR_TICKS else []))
    ax.xaxis.set_minor_formatter(ticker.NullFormatter())
    ax.xaxis.set_major_formatter(tick_formatter(formatter))


def fitting(values: Iterable[float], formatter: Formatter, width_points: float, *, log: bool) -> list[float]:
    """Return those of the rising values whose labels fit side by side, the rounder number where two compete.

    >>> fitting([10, 11, 100, 1000], str, 200, log=True)
    [10, 100, 1000]
    """
    values = list(values)
    place = math.log10 if log else float
    places = {value: place(value) for value in values}
    span = max(places.values()) - min(places.values()) or 1.0
    kept: list[float] = []
    for value in sorted(values, key=lambda value: (_roundness(value), value)):
        half = len(formatter(value)) / 2
        for other in kept:
            apart_points = abs(places[value] - places[other]) / span * width_points * 0.9
            if apart_points < (half + len(formatter(other)) / 2 + 1) * POINTS_PER_CHARACTER:
                break
        else:
            kept.append(value)
    return sorted(kept)


def _roundness(value: float) -> int:
    """Return how many digits value needs: powers of ten first, powers of two like one more digit."""
    if value > 0 and value == int(value) and int(value) & (int(value) - 1) == 0:
        return 2 if value > 1 else 1
    return len(f"{value:.6g}".replace(".", "").strip("0").split("e")[0])
