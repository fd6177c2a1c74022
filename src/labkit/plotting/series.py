"""One sweep as a line: medians, the band between the quartiles, and the points that did not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.transforms import blended_transform_factory

from labkit.measurement import Measurement, Sweep
from labkit.plotting.style import GUIDE, GUIDE_LINE, MARK, SERIES, SMALL, line_style, next_index

Band = tuple[float, float, float]  # best value, low end, high end

TOP, ROW = 0.96, 0.065  # as shares of the axes' height: the first row of crosses, and the step to the next


def draw_sweep(
    ax: Axes,
    sweep: Sweep,
    band_of: Callable[[Measurement], Band | None],
    *,
    label: str = "",
    source: str = "",
) -> None:
    """Draw one series of ax from the points of sweep; band_of gives value, low and high, or None to leave it out."""
    bands = [(point.value, band_of(point.measurement)) for point in sweep.points if point.measurement]
    rows = [(value, *band) for value, band in bands if band]
    left_out = len(bands) - len(rows)
    label = (label or sweep.legend) + (", interrupted" if not sweep.complete else "")
    if left_out:
        label += f", {left_out} point{'s' if left_out > 1 else ''} left out (implausible)"
    style = line_style(next_index(ax), source or sweep.source)
    xs, ys, lows, highs = zip(*rows, strict=True) if rows else ((), (), (), ())
    draw_line(ax, xs, ys, label, style)
    draw_band(ax, xs, lows, highs, style["color"])
    if sweep.out_of_memory:
        _mark_out_of_memory(ax, [point.value for point in sweep.out_of_memory], style["color"])


def draw_line(ax: Axes, xs: Sequence[float], ys: Sequence[float], label: str, style: dict) -> None:
    """Draw one series of ax: a line that the legend and the text alternative know."""
    ax.plot(xs, ys, label=label, gid=SERIES, zorder=3, **style)


def draw_band(ax: Axes, xs: Sequence[float], lows: Sequence[float], highs: Sequence[float], colour: str) -> None:
    """Shade the range around a series: an area, or one vertical bar where the series is a single point."""
    if len(xs) == 1:
        ax.vlines(xs, lows, highs, color=colour, alpha=0.3, linewidth=6)
    elif lows != highs:
        ax.fill_between(xs, lows, highs, color=colour, alpha=0.2, linewidth=0)


def draw_guide(ax: Axes, xs: Sequence[float], ys: Sequence[float], label: str) -> None:
    """Draw a line to compare with, which is no series: thin, grey, dash-dotted, with a legend entry."""
    ax.plot(xs, ys, color=GUIDE, linewidth=1.2, linestyle="-.", label=label, gid=GUIDE_LINE, zorder=2)


def data_range(ax: Axes, which: str) -> tuple[float, float]:
    """Return the lowest and highest x or y of the series that ax shows."""
    lines = [line for line in ax.lines if line.get_gid() == SERIES]
    numbers = [float(number) for line in lines for number in getattr(line, f"get_{which}data")()]
    return min(numbers), max(numbers)


def _mark_out_of_memory(ax: Axes, values: Sequence[float], colour: str) -> None:
    """Mark the values at the upper edge with crosses, a row for each sweep, and say once what they mean."""
    row = sum(line.get_gid() == MARK for line in ax.lines)
    height = TOP - row * ROW
    at_the_edge = blended_transform_factory(ax.transData, ax.transAxes)
    cross = {"marker": "X", "markersize": 8, "linestyle": "", "color": colour, "gid": MARK, "zorder": 4}
    ax.plot(values, [height] * len(values), transform=at_the_edge, label="_out of memory", **cross)
    measured = [x for line in ax.lines if line.get_gid() == SERIES for x in line.get_xdata()]
    at_the_right = not measured or max(values) >= max(measured)
    ax.annotate(
        "out of memory",
        (min(values) if at_the_right else max(values), height),
        xycoords=at_the_edge,
        xytext=(-8 if at_the_right else 8, 0),
        textcoords="offset points",
        ha="right" if at_the_right else "left",
        va="center",
        fontsize=SMALL,
        color=colour,
    )
    ax.margins(y=0.05 + 0.1 * (row + 1))
