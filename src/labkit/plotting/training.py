"""A training in pictures: its curve while it goes on and afterwards, and where the time of a step goes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from labkit.errors import InputError, check_kind
from labkit.plotting.series import draw_line
from labkit.plotting.style import (
    GUIDE,
    PALETTE,
    SMALL,
    WIDTH_IN,
    axes_for,
    describe_axes,
    finish,
    is_own,
    line_style,
)
from labkit.plotting.ticks import even_axis, log_axis, tick_s
from labkit.units import format_ratio, format_s

if TYPE_CHECKING:  # it loads torch, which no other figure needs
    from labkit.training import Epoch, History

PHASE_LOOKS = tuple(zip(PALETTE, ("", "////", "", "....", "\\\\\\\\"), strict=False))  # in the order of the phases
NARROWEST = 0.09  # share of the widest bar that has room for a text
WIDEST_NAME = 34


def plot_training(history: History, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw accuracy (left) and loss (right, dashed, logarithmic) against the epochs, of which all planned have room.

    Made for a history that still grows, too: train(…, on_epoch=live(plot_training).update). A loss that is no number
    is left out, and the legend says so. Raises InputError for what is no History; one without an epoch gives a frame.

    >>> from labkit.training import Epoch, History
    >>> first = Epoch(number=1, loss=0.5, train_accuracy=0.8, test_accuracy=0.9, seconds=1)
    >>> ax = plot_training(History(label="small CNN", planned_epochs=3, epochs=(first,)))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['accuracy while training', 'accuracy on test images', 'loss while training']
    """
    _check_history(history)
    ax = axes_for(ax)
    loss_ax = ax.twinx()
    even_axis(ax, "x", "{:g}".format)
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
    ax.set_xlim(0.5, history.planned_epochs + 0.5)
    even_axis(ax, "y", lambda share: f"{100 * share:.4g}%")
    epochs = history.epochs
    lines = [
        _draw(ax, 0, "accuracy while training", epochs, [epoch.train_accuracy for epoch in epochs]),
        _draw(ax, 1, "accuracy on test images", epochs, [epoch.test_accuracy for epoch in epochs]),
        _draw(loss_ax, 2, "loss while training", epochs, [epoch.loss for epoch in epochs]),
        _draw(loss_ax, 3, "loss on test images", epochs, [epoch.test_loss for epoch in epochs]),
    ]
    if any(loss_ax.lines):
        log_axis(loss_ax, "y", "{:g}".format, most_ticks=6)
    _set_labels(ax, loss_ax, history)
    ax = finish(ax, title=title)
    describe_axes(ax, _curve_in_words(history, title, [line for line in lines if line]))
    return ax


def plot_phases(*histories: History, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the mean time of a step as one bar a history, made of its phases in their order, each with its share.

    Raises InputError for what is no History, or one that was trained without profile_phases=True.
    """
    checked = _profiled(histories)
    ax = axes_for(ax, height_in=1.6 + 0.75 * len(checked))
    widest_s = max(_mean_step_s(history) for history in checked)
    for row, history in enumerate(checked):
        _draw_phases(ax, row, history, widest_s, named=len(checked) == 1)
    even_axis(ax, "x", tick_s)
    ax.set_xlim(0, 1.02 * widest_s)
    ax.set_ylim(len(checked) - 0.5, -0.5)  # row 0 on top
    names = [textwrap.fill(_name(history), WIDEST_NAME) for history in checked]
    ax.set_yticks(range(len(checked)), names if len(checked) > 1 else [""])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"mean time of a profiled step ({_cost_in_words(checked)})")
    ax = finish(ax, title=title or (_name(checked[0]) if len(checked) == 1 else None), grid="x")
    describe_axes(ax, " ".join(filter(None, [title and f"{title.rstrip('.')}.", *map(_phases_in_words, checked)])))
    if is_own(ax):
        ax.figure.set_size_inches(WIDTH_IN, 1.9 + 0.6 * len(checked))
    return ax


def _draw(ax: Axes, index: int, label: str, epochs: Sequence[Epoch], values: Sequence[float | None]) -> str:
    """Draw one curve, and return it in words; "" where there is nothing to draw."""
    known = [(epoch.number, value) for epoch, value in zip(epochs, values, strict=True) if value is not None]
    if not known:
        return ""
    points = [(number, value) for number, value in known if math.isfinite(value)]
    left_out = len(known) - len(points)
    if left_out:
        label += f" ({left_out} of {len(known)} epochs: no finite number)"
    style = line_style(index, "measured") | ({"linestyle": "--", "markerfacecolor": "white"} if index >= 2 else {})
    if len(points) > 25:
        style["markevery"] = len(points) // 12
    draw_line(ax, [number for number, _ in points], [value for _, value in points], label, style)
    if not points:
        return label
    written = "{:.2%}".format if index < 2 else "{:.3g}".format
    return f"{label}: from {written(points[0][1])} after epoch {points[0][0]} to {written(points[-1][1])}"


def _set_labels(ax: Axes, loss_ax: Axes, history: History) -> None:
    so_far = len(history.epochs)
    state = "" if history.complete else f", {so_far} of {history.planned_epochs} done"
    ax.set_xlabel(f"epoch{', interrupted' if history.stopped else ''}{state}")
    ax.set_ylabel("accuracy (solid)")
    loss_ax.set_ylabel("loss (dashed)")
    loss_ax.tick_params(labelsize=SMALL)
    loss_ax.spines["top"].set_visible(False)
    for line in loss_ax.lines:  # the legend is that of ax: it gets the looks without the points
        ax.plot([], [], label=line.get_label(), **_look_of(line))


def _look_of(line: object) -> dict[str, object]:
    names = ("color", "linestyle", "linewidth", "marker", "markersize", "markeredgewidth", "markerfacecolor")
    return {name: getattr(line, f"get_{name}")() for name in names}


def _curve_in_words(history: History, title: str | None, lines: Sequence[str]) -> str:
    head = f"{title.rstrip('.')}. " if title else ""
    state = f"{len(history.epochs)} of {history.planned_epochs} epochs"
    return f"{head}Chart of accuracy and loss against the epochs, {history.label}, {state}. {'. '.join(lines)}".strip()


def _check_history(history: Any) -> None:
    from labkit.training import History

    check_kind("history", history, History, "Pass what train(…) returned.")


def _profiled(histories: Sequence[History]) -> tuple[History, ...]:
    if not histories:
        raise InputError("nothing", "a figure needs at least one History", "Pass what train(…) returned.")
    for history in histories:
        _check_history(history)
        if not history.phases:
            advice = "Train again with profile_phases=True, for some more steps."
            raise InputError(history.label, "no step of it was taken apart", advice)
    return tuple(histories)


def _draw_phases(ax: Axes, row: int, history: History, widest_s: float, *, named: bool) -> None:
    left_s, whole_s = 0.0, _mean_step_s(history)
    for (name, share), (colour, hatch) in zip(history.phase_shares.items(), PHASE_LOOKS, strict=True):
        width_s = share * whole_s
        label = f"{name} {share:.1%}" if named else name if row == 0 else f"_{name}"
        ax.barh(row, width_s, 0.6, left_s, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8, label=label)
        if width_s > NARROWEST * widest_s:
            text = f"{share:.0%}" if not named else f"{share:.0%}\n{format_s(width_s)}"
            box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
            ax.text(left_s + width_s / 2, row, text, ha="center", va="center", fontsize=SMALL, color=GUIDE, bbox=box)
        left_s += width_s


def _mean_step_s(history: History) -> float:
    return sum(phase.mean_s for phase in history.phases.values())


def _name(history: History) -> str:
    forward = history.phases["forward"]
    return f"{history.label.partition(' on ')[0]}, batch {forward.task.parameters['batch']}, {forward.legend}"


def _cost_in_words(histories: Sequence[History]) -> str:
    costs = [history.profiling_cost for history in histories if history.profiling_cost]
    if not costs:
        return "what profiling cost is not known"
    low, high = min(cost.low for cost in costs), max(cost.high for cost in costs)
    if low < 1 < high:
        return f"what profiling cost is lost in the noise: {format_ratio(low)} to {format_ratio(high)}"
    return f"profiling made it {format_ratio(low)} to {format_ratio(high)} as long"


def _phases_in_words(history: History) -> str:
    shares = ", ".join(f"{name} {share:.1%}" for name, share in history.phase_shares.items())
    return f"Bar of a step's time, {_name(history)}: {shares}, {format_s(_mean_step_s(history))} in all."
