"""What an accelerator does while it is fed: a lane of working and waiting over time, and both as shares."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes

from labkit.errors import InputError, check_kind, check_text
from labkit.loading import PipelineRun
from labkit.plotting.fonts import drawable
from labkit.plotting.style import PALETTE, SMALL, WIDTH_IN, axes_for, describe_axes, finish, is_own
from labkit.plotting.ticks import even_axis, tick_s
from labkit.units import format_count

STEPS_SHOWN = 8  # of the slowest run
LANE_IN, FRAME_IN = 0.42, 1.55
WIDEST_NAME = 30
WORKING = {"facecolor": PALETTE[0], "edgecolor": PALETTE[0], "linewidth": 0.8}
CARRYING = {"facecolor": "white", "edgecolor": PALETTE[0], "hatch": "///", "linewidth": 0.8}
WAITING = {"facecolor": "white", "edgecolor": PALETTE[1], "hatch": "...", "linewidth": 0.8}

Runs = PipelineRun | Mapping[str, PipelineRun]


def plot_pipeline(runs: Runs, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw a lane for each run: when the accelerator worked on a batch, and when it waited for one.

    runs is a PipelineRun or a dict from a lane's name to one. All lanes show the same stretch of time, which holds
    eight steps of the slowest run. Raises InputError for anything else.

    >>> from labkit.loading import Step
    >>> run = PipelineRun(label="photos", batch=8, workers=0, start_s=0, accelerator="T4", source="predicted",
    ...                   steps=[Step(0, 1), Step(3, 4), Step(6, 7)])
    >>> [text.get_text() for text in plot_pipeline(run).texts]
    ['waits 67%']
    """
    lanes = _named(runs)
    span_s = min(
        max(STEPS_SHOWN * sum(run.intervals_s) / len(run.intervals_s) for run in lanes.values()),
        min(sum(run.intervals_s) for run in lanes.values()),
    )
    ax = axes_for(ax)
    even_axis(ax, "x", tick_s)
    for row, run in enumerate(lanes.values()):
        _draw_lane(ax, row, run, span_s)
        _write_at_the_end(ax, row, f"waits {run.waiting_share:.0%}", span_s)
    ax.set_xlim(0, span_s * 1.2)
    ax.set_xlabel("time since the end of the warm-up")
    return _finish_lanes(ax, lanes, title, "Timeline of an accelerator that is fed")


def plot_waiting(runs: Runs, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw a bar for each run, split into the shares of the time for which the accelerator worked and waited.

    runs is a PipelineRun or a dict from a bar's name to one. Raises InputError for anything else.

    >>> from labkit.loading import Step
    >>> run = PipelineRun(label="photos", batch=8, workers=0, start_s=0, accelerator="T4", source="predicted",
    ...                   steps=[Step(0, 1), Step(3, 4), Step(6, 7)])
    >>> [text.get_text() for text in plot_waiting({"no workers": run}).texts]
    ['waits 67%, 2.67 images/s']
    """
    bars = _named(runs)
    ax = axes_for(ax)
    even_axis(ax, "x", "{:.0%}".format)
    for row, run in enumerate(bars.values()):
        total_s = sum(run.intervals_s)
        carrying = sum(step.transfer_s for step in run.steps[1:]) / total_s
        working = 1 - run.waiting_share - carrying
        left = 0.0
        for share, look in ((working, WORKING), (carrying, CARRYING), (run.waiting_share, WAITING)):
            ax.barh(row, share, left=left, height=0.62, zorder=2, **look)
            left += share
        _write_at_the_end(ax, row, _in_words(run), 1)
    ax.set_xlim(0, 1.45)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1])
    ax.set_xlabel("share of the time")
    return _finish_lanes(ax, bars, title, "Shares of the time of an accelerator that is fed")


def _named(runs: Any) -> dict[str, PipelineRun]:
    if isinstance(runs, PipelineRun):
        runs = {f"{runs.label}, {runs.workers} workers": runs}
    if not isinstance(runs, Mapping) or not runs:
        advice = "Pass what run_pipeline returned, or a dict from names to such runs."
        raise InputError(f"runs={runs!r:.80}", "this figure needs at least one run of a pipeline", advice)
    return {check_text("a name", name): check_kind(f"runs[{name!r}]", run, PipelineRun) for name, run in runs.items()}


def _draw_lane(ax: Axes, row: int, run: PipelineRun, span_s: float) -> None:
    origin_s = run.steps[0].end_s
    ax.barh(row, span_s, height=0.62, zorder=1, **WAITING)
    for step in run.steps[1:]:
        start_s, end_s = step.start_s - origin_s, min(step.end_s - origin_s, span_s)
        carried_s = min(start_s + step.transfer_s, end_s)
        if start_s < span_s:
            ax.barh(row, carried_s - start_s, left=start_s, height=0.62, zorder=2, **CARRYING)
            ax.barh(row, end_s - carried_s, left=carried_s, height=0.62, zorder=2, **WORKING)


def _in_words(run: PipelineRun) -> str:
    return f"waits {run.waiting_share:.0%}, {format_count(run.images_per_s)} images/s"


def _write_at_the_end(ax: Axes, row: int, text: str, at: float) -> None:
    ax.annotate(text, (at, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=SMALL)


def _finish_lanes(ax: Axes, runs: dict[str, PipelineRun], title: str | None, what: str) -> Axes:
    """Name the lanes, say what the looks mean and where the numbers come from, and set the text alternative."""
    names = [textwrap.fill(drawable(name), WIDEST_NAME) for name in runs]
    ax.set_yticks(range(len(runs)), names)
    ax.set_ylim(len(runs) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    looks = [("working", WORKING), ("waiting for a batch", WAITING)]
    if any(step.transfer_s for run in runs.values() for step in run.steps[1:]):
        looks.insert(1, ("carrying the batch over", CARRYING))
    for name, look in looks:
        ax.barh(0, 0, label=name, **look)  # of no length: for the legend alone
    fed = dict.fromkeys(f"{run.accelerator} ({run.source})" for run in runs.values())
    lines = [f"{name}: {_in_words(run)}" for name, run in runs.items()]
    describe_axes(ax, f"{title + '. ' if title else ''}{what}: {', '.join(fed)}. {'. '.join(lines)}.")
    finish(ax, title=title or f"Fed: {', '.join(fed)}", grid="x")
    if is_own(ax):
        ax.figure.set_size_inches(WIDTH_IN, FRAME_IN + LANE_IN * len(runs))
    return ax
