"""Words inside the axes, put where no curve runs through them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.transforms import blended_transform_factory

from labkit.plotting.style import GUIDE, GUIDE_LINE, POINTS_PER_CHARACTER, SERIES, SMALL

HEIGHT_POINTS = 14  # of one line of text with the space around it
TOUCH = 1e-6  # a line that only touches a word does not run through it
STEPS = 40  # between two points of a curve


def label_beside_line(ax: Axes, y: float, text: str) -> None:
    """Write text just above or below the horizontal line at y, at its left or right end: where the least is hidden.

    Call it when all curves are drawn and the limits are final.
    """
    curves = _curves(ax)
    _, at = _as_shares(ax, [1], [y])[0]
    size_points = ax.get_window_extent().size * 72 / ax.figure.dpi
    width, height = len(text) * POINTS_PER_CHARACTER / size_points[0], HEIGHT_POINTS / size_points[1]
    choices = []
    for right, below in itertools.product((False, True), (False, True)):
        left, bottom = (0.99 - width if right else 0.01), (at - height if below else at)
        inside = (curves > (left, bottom + TOUCH)) & (curves < (left + width, bottom + height - TOUCH))
        outside = bottom < 0 or bottom + height > 1
        choices.append((outside, int(inside.all(axis=1).sum()), right, below))
    _, _, right, below = min(choices)
    ax.annotate(
        text,
        (0.99 if right else 0.01, y),
        xycoords=blended_transform_factory(ax.transAxes, ax.transData),
        xytext=(0, -2 if below else 2),
        textcoords="offset points",
        ha="right" if right else "left",
        va="top" if below else "bottom",
        fontsize=SMALL,
        color=GUIDE,
        path_effects=[withStroke(linewidth=2, foreground="white")],
        zorder=2.5,
    )


def _curves(ax: Axes) -> np.ndarray:
    """Return points along every series and every horizontal line, as shares of the axes: shape (points, 2)."""
    points = [np.empty((0, 2))]
    for line in ax.lines:
        if line.get_gid() == GUIDE_LINE:
            heights = _as_shares(ax, [1] * len(line.get_ydata()), line.get_ydata())[:, 1]
            points.append(np.column_stack([np.linspace(0, 1, STEPS), np.full(STEPS, heights[0])]))
        elif line.get_gid() == SERIES:
            shares = _as_shares(ax, line.get_xdata(), line.get_ydata())
            steps = np.linspace(0, 1, STEPS)[:, None]
            points += [shares[:1], *(start + (end - start) * steps for start, end in itertools.pairwise(shares))]
    return np.concatenate(points)


def _as_shares(ax: Axes, xs: Sequence[float], ys: Sequence[float]) -> np.ndarray:
    """Return points of the data as shares of the width and height of the axes: shape (points, 2)."""
    if len(xs) == 0:
        return np.empty((0, 2))
    return (ax.transData - ax.transAxes).transform(np.column_stack([np.asarray(xs, float), np.asarray(ys, float)]))
