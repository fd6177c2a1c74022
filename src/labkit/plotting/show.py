"""Figures in a notebook: a picture with a text alternative, for screens of any density and any theme."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from labkit.errors import InputError
from labkit.plotting.fonts import use_installed_fonts
from labkit.plotting.style import GUIDE_LINE, MARK, POINT, SERIES, described

WIDTH_PX = 700
DENSITY = 2  # screens with twice the usual density show every pixel
COLOURS = 64  # of the stored picture: enough for lines, bands and soft edges, and it keeps notebooks small


def alt_text(ax: Axes) -> str:
    """Return what a figure shows, in words: its axes, and where each series starts and ends.

    >>> from labkit.plotting import plot_lines
    >>> alt_text(plot_lines([("children", [0, 60], [0, 120])], x_label="time", y_label="sand in kg"))
    'Chart of sand in kg against time. children: from 0 at 0 to 120 at 60.'
    """
    _check_axes(ax)
    words = described(ax)
    if words is not None:
        return words
    title = ax.get_title(loc="left") or ax.get_title()
    bars = [bar for container in ax.containers if isinstance(container, BarContainer) for bar in container]
    if bars:
        parts = [f"Bar chart of {ax.get_xlabel()}", *(bar.get_label() for bar in bars)]
    else:
        parts = [
            f"Chart of {ax.get_ylabel()} against {ax.get_xlabel()}",
            *map(_series_in_words, _lines(ax, SERIES) + _lines(ax, POINT)),
        ]
    guides = [line.get_label().removeprefix("_") for line in _lines(ax, GUIDE_LINE)]
    if guides:
        parts.append(f"For comparison: {'; '.join(guides)}")
    x_text = ax.xaxis.get_major_formatter()
    for line in _lines(ax, MARK):
        places = [text for text in map(x_text, line.get_xdata()) if text]
        if places:
            parts.append(f"{line.get_label().removeprefix('_')} at {', '.join(places)}")
    parts = [title, *parts] if title else parts
    return " ".join(part.replace("\n", " ") + ("" if part.endswith(("?", "!", ".")) else ".") for part in parts)


def to_png(ax: Axes) -> bytes:
    """Return the figure of ax as a PNG of about 1,400 pixels width, with few colours, in few bytes."""
    from PIL import Image  # comes with matplotlib

    _check_axes(ax)
    figure = ax.figure.canvas.figure
    for each in figure.axes:
        use_installed_fonts(each)
    picture = Image.fromarray(_pixels(figure), "RGBA")
    page = Image.new("RGBA", picture.size, "white")  # shows through where the figure is transparent
    page.alpha_composite(picture)
    small = io.BytesIO()
    few = page.convert("RGB").quantize(COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(small, format="png", optimize=True)
    return small.getvalue()


def _pixels(figure: Figure) -> np.ndarray:
    """Return the figure drawn WIDTH_PX times DENSITY wide, whatever backend the reader has; it is left as it was."""
    canvas_before, dpi_before = figure.canvas, figure.dpi
    try:
        figure.dpi = DENSITY * WIDTH_PX / figure.get_figwidth()
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        return np.array(canvas.buffer_rgba())
    finally:
        figure.dpi = dpi_before
        figure.set_canvas(canvas_before)


def to_html(ax: Axes, *, alt: str | None = None) -> str:
    """Return an <img> element with the figure of ax inside, its text alternative, and a light background.

    >>> from labkit.plotting import plot_lines
    >>> element = to_html(plot_lines([("a", [0, 1], [0, 2])], x_label="x", y_label="y"), alt="a rises")
    >>> element[:20], 'alt="a rises"' in element
    ('<img width="700" alt', True)
    """
    if alt is not None and (not isinstance(alt, str) or not alt.strip()):
        raise InputError(
            f"alt={alt!r}", "a text alternative says what the figure shows", "Leave alt out to have one made."
        )
    words = html.escape(alt or alt_text(ax))
    data = base64.b64encode(to_png(ax)).decode()
    look = "max-width:100%;height:auto;background:#ffffff"
    return f'<img width="{WIDTH_PX}" alt="{words}" style="{look}" src="data:image/png;base64,{data}">'


def show(ax: Axes, *, alt: str | None = None) -> None:
    """Display the figure of ax in a notebook, with its text alternative for screen readers and plain terminals."""
    from IPython.display import display

    words = alt or alt_text(ax)
    display({"text/html": to_html(ax, alt=words), "text/plain": words}, raw=True)


def _check_axes(ax: Any) -> None:
    if not isinstance(ax, Axes):
        raise InputError(
            f"ax={ax!r}", "this is not a figure", "Pass what a plot function returned: show(plot_times(…))."
        )


def _lines(ax: Axes, kind: str) -> list[Any]:
    return [line for line in ax.lines if line.get_gid() == kind]


def _series_in_words(line: Any) -> str:
    x_text, y_text = (axis.get_major_formatter() for axis in (line.axes.xaxis, line.axes.yaxis))
    points = list(zip(line.get_xdata(), line.get_ydata(), strict=True))
    if not points:
        return line.get_label()
    (x, y), (last_x, last_y) = points[0], points[-1]
    if len(points) == 1:
        return f"{line.get_label()}: {y_text(y)} at {x_text(x)}"
    return f"{line.get_label()}: from {y_text(y)} at {x_text(x)} to {y_text(last_y)} at {x_text(last_x)}"
