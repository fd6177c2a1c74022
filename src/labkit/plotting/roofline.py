"""The roofline of one or more machines, and where pieces of work lie under it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes

from labkit.errors import InputError, check_choice, check_positive
from labkit.measurement import SOURCES
from labkit.plotting.inputs import all_of, listed_rows
from labkit.plotting.style import LINES, MARKERS, PALETTE, POINT, SERIES, axes_for, finish, next_index
from labkit.plotting.ticks import log_axis
from labkit.roofline import Roof
from labkit.units import format_bytes_per_s, format_flop_per_s

EXAMPLE = '("matmul n=512", 85.3, 1.2e11, "measured")'
ROOM = 8  # the axis reaches at least this factor to both sides of every ridge point and every point


def plot_roofline(
    roofs: Iterable[Roof] | Roof,
    points: Iterable[Any] = (),
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw FLOP per second against arithmetic intensity: each roof with its ridge point, and points of real work.

    points are rows (label, FLOP per byte, FLOP per second, source). Line and filling say whether a roof or a point was
    measured, recorded or predicted, and so does the legend. Raises InputError for rows of another shape and no roof.

    >>> t4 = Roof("T4 float32", "predicted", peak_flop_per_s=8e12, bandwidth_bytes_per_s=320e9)
    >>> ax = plot_roofline(t4, [("matmul n=512", 85.3, 4e12, "predicted")])
    >>> ax.get_legend().get_texts()[0].get_text()
    'T4 float32: 8 TFLOP/s, 320 GB/s, ridge point 25 FLOP/byte (predicted)'
    """
    given = [roofs] if isinstance(roofs, Roof) else roofs
    checked = all_of(Roof, given, "Pass a Roof or a list of them, such as Roof.from_gpu(…).")
    rows = [_checked(point) for point in listed_rows("points", points, EXAMPLE)]
    ax = axes_for(ax)
    log_axis(ax, "x", "{:g}".format)
    log_axis(ax, "y", format_flop_per_s)
    intensities = [roof.ridge_point_flop_per_byte for roof in checked] + [row[1] for row in rows]
    left, right = min(intensities) / ROOM, max(intensities) * ROOM
    for roof in checked:
        _draw_roof(ax, roof, left, right)
    for label, intensity, flop_per_s, source in rows:
        _draw_point(ax, f"{label}: {format_flop_per_s(flop_per_s)} ({source})", intensity, flop_per_s, source)
    ax.set_xlabel("arithmetic intensity (FLOP per byte)")
    ax.set_ylabel("FLOP per second")
    return finish(ax, title=title)


def _draw_roof(ax: Axes, roof: Roof, left: float, right: float) -> None:
    ridge = roof.ridge_point_flop_per_byte
    colour = PALETTE[next_index(ax) % len(PALETTE)]
    limits = f"{format_flop_per_s(roof.peak_flop_per_s)}, {format_bytes_per_s(roof.bandwidth_bytes_per_s)}"
    label = f"{roof.label}: {limits}, ridge point {ridge:.3g} FLOP/byte ({roof.source})"
    corners = [left, ridge, right]
    heights = [roof.attainable_flop_per_s(intensity) for intensity in corners]
    style = {"color": colour, "linestyle": LINES[roof.source], "linewidth": 2, "gid": SERIES, "zorder": 3}
    corner = {"marker": "d", "markevery": [1], "markersize": 8, "markerfacecolor": "white"}
    ax.plot(corners, heights, label=label, **style, **corner)
    ax.vlines(ridge, 0, roof.peak_flop_per_s, color=colour, linewidth=0.8, linestyle=":", alpha=0.7)


def _draw_point(ax: Axes, label: str, intensity: float, flop_per_s: float, source: str) -> None:
    """Draw one piece of work in black: filled if measured, hollow if recorded, with a cross inside if predicted."""
    marker = MARKERS[sum(line.get_gid() == POINT for line in ax.lines) % len(MARKERS)]
    filling = "black" if source == "measured" else "white"
    look = {"linestyle": "", "color": "black", "markeredgewidth": 1.5, "markerfacecolor": filling}
    ax.plot([intensity], [flop_per_s], marker=marker, markersize=9, label=label, gid=POINT, zorder=4, **look)
    if source == "predicted":
        ax.plot([intensity], [flop_per_s], linestyle="", marker="x", markersize=5, color="black", zorder=5)


def _checked(row: Any) -> tuple[str, float, float, str]:
    if not isinstance(row, Sequence) or isinstance(row, str) or len(row) != 4 or not isinstance(row[0], str):
        raise InputError(
            f"points has {row!r:.80}", "a point is a label, FLOP/byte, FLOP/s and a source", f"Try {EXAMPLE}."
        )
    label, intensity, flop_per_s, source = row
    check_choice(f"source of {label!r}", source, SOURCES)
    return label, check_positive("intensity", intensity), check_positive("flop_per_s", flop_per_s), source
