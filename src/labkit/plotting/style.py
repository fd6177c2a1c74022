"""What every figure shares: colours with a second cue, one look per source of a number, the legend, the frame."""

from __future__ import annotations

import textwrap
from typing import Any
from weakref import WeakKeyDictionary

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from labkit.errors import InputError, check_choice, check_text
from labkit.measurement import SOURCES
from labkit.plotting.fonts import use_installed_fonts

# Okabe and Ito, Color Universal Design, 2008; without yellow, which is too pale for a line on white.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GUIDE = "#595959"

# The numbers of markers and of colours have no common divisor, so that their pairs repeat late.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
CROSSES = ("x", "+", (6, 2, 0), "1", "2", "3")  # (6, 2, 0): an asterisk of six arms
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)))

LINES = {"measured": "-", "recorded": "--", "predicted": ":"}
HATCHES = {"measured": "", "recorded": "///", "predicted": "..."}
SOURCE_COLOURS = {"measured": PALETTE[0], "recorded": PALETTE[2], "predicted": PALETTE[4]}

# What an artist is to us, kept in its gid: a series, one point of its own, a line to compare with, a mark at the edge.
SERIES, POINT, GUIDE_LINE, MARK = "labkit-series", "labkit-point", "labkit-guide", "labkit-mark"
OWN_FIGURE = "labkit-figure"

WIDTH_IN = 7.0
HEIGHT_IN = 4.0
SMALL = 9
LEGEND_ROW_IN = 0.21
LEGEND_BELOW_IN = 0.5  # tick labels and the axis label stand between the axes and the legend
WIDEST_ENTRY = 100  # characters of a legend entry that fit beside its handle
WIDEST_OF_TWO = 42
WIDEST_Y_LABEL = 46
POINTS_PER_CHARACTER = 5.0  # of small text, ticks included

_WORDS: WeakKeyDictionary[Axes, str] = WeakKeyDictionary()


def axes_for(ax: Any, *, height_in: float = HEIGHT_IN) -> Axes:
    """Return ax, or the axes of a new figure that pyplot does not know. Raises InputError if ax is no Axes."""
    if ax is None:
        figure = Figure(figsize=(WIDTH_IN, height_in), layout="constrained")
        figure.set_gid(OWN_FIGURE)
        return figure.add_subplot()
    if not isinstance(ax, Axes):
        raise InputError(f"ax={ax!r}", "a figure is drawn into matplotlib Axes", "Leave ax out, or pass one Axes.")
    return ax


def describe_axes(ax: Axes, words: str) -> None:
    """Set the text alternative of a figure that is no chart of series."""
    _WORDS[ax] = words


def described(ax: Axes) -> str | None:
    """Return the text alternative that was set, if one was."""
    return _WORDS.get(ax)


def line_style(index: int, source: str | None) -> dict[str, Any]:
    """Return the Line2D properties of one series: colour and marker by its index, line and filling by its source.

    A series without a source is not a number of any machine (a model to play with): its dashes go by the index.

    >>> line_style(0, "measured")["linestyle"], line_style(0, "recorded")["linestyle"]
    ('-', '--')
    """
    colour = PALETTE[index % len(PALETTE)]
    style = {"color": colour, "linewidth": 1.8, "markersize": 5.5, "markeredgewidth": 1.4}
    if source is None:
        return style | {"linestyle": DASHES[index % len(DASHES)]}
    style["linestyle"] = LINES[check_choice("source", source, SOURCES)]
    if source == "predicted":
        return style | {"marker": CROSSES[index % len(CROSSES)], "markersize": 8}
    filling = colour if source == "measured" else "white"
    return style | {"marker": MARKERS[index % len(MARKERS)], "markerfacecolor": filling}


def next_index(ax: Axes) -> int:
    """Return the number of series that ax already shows: the index of the next one."""
    return sum(line.get_gid() == SERIES for line in ax.lines)


def finish(ax: Axes, *, title: str | None = None, legend: bool = True, grid: str = "both") -> Axes:
    """Add title, grid lines and legend, see to it that the fonts can draw the texts, and return ax."""
    if title is not None and check_text("title", title, empty_ok=True):
        ax.set_title(textwrap.fill(title, 80), loc="left", fontsize=11)
    ax.tick_params(labelsize=SMALL)
    ax.grid(True, which="major", axis=grid, color="#D9D9D9", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    if legend:
        _draw_legend(ax)
    use_installed_fonts(ax)
    return ax


def is_own(ax: Axes) -> bool:
    """Return whether labkit made the figure, so that its size and layout may follow the content."""
    return ax.figure.get_gid() == OWN_FIGURE


def label_y(ax: Axes, text: str) -> None:
    """Name the y axis, in two lines where one would be longer than the axis."""
    ax.set_ylabel(text if len(text) <= WIDEST_Y_LABEL else text.replace(" (", "\n(", 1))


def _draw_legend(ax: Axes) -> None:
    """Put the legend under the axes, where it hides nothing, or into a free corner if the caller's layout is fixed."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    if ax.figure.canvas.figure.get_layout_engine() is None:
        ax.legend(handles, [textwrap.fill(label, 45) for label in labels], fontsize=SMALL, loc="best")
        return
    own = is_own(ax)
    widest = WIDEST_ENTRY if own else int(ax.get_window_extent().width * 72 / ax.figure.dpi / POINTS_PER_CHARACTER) - 6
    columns = 2 if own and len(labels) > 1 and max(map(len, labels)) <= WIDEST_OF_TWO else 1
    labels = [textwrap.fill(label, max(widest, 20)) for label in labels]
    depth = ScaledTranslation(0, -LEGEND_BELOW_IN, ax.figure.dpi_scale_trans)
    ax.legend(
        handles,
        labels,
        ncols=columns,
        fontsize=SMALL,
        frameon=False,
        loc="upper left",
        bbox_to_anchor=(0.01 if own else 0, 0),
        bbox_transform=blended_transform_factory(ax.figure.transFigure if own else ax.transAxes, ax.transAxes + depth),
        borderaxespad=0,
        handlelength=3.2,
    )
    if own:
        rows = -(-len(labels) // 2) if columns == 2 else sum(label.count("\n") + 1 for label in labels)
        ax.figure.set_size_inches(WIDTH_IN, HEIGHT_IN + rows * LEGEND_ROW_IN)
