"""What a warp touches, drawn: its lanes, the sectors of global memory, the banks of shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from labkit.errors import InputError
from labkit.plotting.layout import (
    BANKS,
    LANES,
    SECTOR_BYTES,
    WORD_BYTES,
    bank_degrees,
    cells_of,
    describe,
    row_bytes,
    row_label,
)
from labkit.plotting.style import GUIDE, WIDTH_IN, axes_for, describe_axes, is_own
from labkit.simt import Access, Trace, WarpEvent

# Viridis rises evenly in lightness, so that the order of lanes can be seen by everyone; the number is the second cue.
LANE_COLOURS = tuple(to_hex(colormaps["viridis"](lane / (LANES - 1))) for lane in range(LANES))
DARK_LANES = 14  # the lanes before it are dark: white numbers have the better contrast
CONFLICT = "#B71C1C"
TOUCHED, UNTOUCHED = "#FFF3D6", "white"

FIRST_STEPS = 2_000  # among which a line is looked for
ROW_IN = 0.21
TITLE_ROWS = 1.5
GAP_ROWS = 0.7
TINY = 6.5


def plot_request(
    trace: Trace, *, line: int | str | None = None, warp: int = 0, occurrence: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw what a warp does at one execution of a line: its lanes, and the memory that each of its requests touches.

    line: as in Trace.by_line; None is the first one that touches global or shared memory. warp: numbered over the grid.
    occurrence: the how many-th execution of the line by this warp, from 0. Raises InputError if there is no such one.

    >>> import numpy as np
    >>> from labkit.simt import cuda, trace
    >>> def copy(x, y):
    ...     i = cuda.grid(1)
    ...     y[i] = x[2 * i]
    >>> plot_request(trace(copy, 1, 32, np.ones(64), np.ones(32))).get_title(loc="left")
    'line 3, warp 0, execution 1 of 1'
    """
    steps, count = _steps_at(trace, line, warp, occurrence, lambda step: _is_in(step, "global", "shared"))
    ax = axes_for(ax)
    _start(ax, steps, count)
    y = _draw_lanes(ax, 0, steps)
    for step in steps:
        y = _draw_step(ax, y, step)
    return _finish(ax, y, steps)


def plot_banks(
    trace: Trace, *, line: int | str | None = None, warp: int = 0, occurrence: int = 0, ax: Axes | None = None
) -> Axes:
    """Draw what a warp's requests of shared memory ask of the 32 banks at one execution of a line.

    A bank that must serve k distinct words of one request is marked ×k: the conflict degree. The arguments are as for
    plot_request; line=None is the first line that touches shared memory.
    """
    steps, count = _steps_at(trace, line, warp, occurrence, lambda step: _is_in(step, "shared"))
    steps = [step for step in steps if _is_in(step, "shared")]
    if not steps:
        raise InputError(f"line={line!r}", "this line touches no shared memory", "plot_request draws other memory.")
    ax = axes_for(ax)
    _start(ax, steps, count)
    y = 0.0
    for step in steps:
        y = _draw_step(ax, y, step)
    return _finish(ax, y, steps)


def _is_in(step: Any, *spaces: str) -> bool:
    return isinstance(step, Access) and step.space in spaces


def _steps_at(
    trace: Any, line: int | str | None, warp: int, occurrence: int, wanted: Any
) -> tuple[list[Access | WarpEvent], int]:
    """Return the steps of one execution of a line, and how many executions the warp has of it."""
    if not isinstance(trace, Trace):
        raise InputError(f"trace={trace!r}", "this is no trace", "Pass what labkit.simt.trace(…) returned.")
    if line is None:
        line = next((step.line for step in trace.steps([warp], limit=FIRST_STEPS)[warp] if wanted(step)), None)
        if line is None:
            raise InputError(f"warp={warp}", "this warp touches no such memory", "Choose another warp.")
    of_line = trace.steps([warp], line=line)[warp]
    if not of_line:
        lines = dict.fromkeys(step.line for step in trace.steps([warp], limit=FIRST_STEPS)[warp])
        problem = f"warp {warp} does nothing there that can be drawn"
        raise InputError(f"line={line!r}", problem, f"Try {', '.join(map(str, lines))}.")
    count = 1 + max(step.occurrence for step in of_line)
    if isinstance(occurrence, bool) or not isinstance(occurrence, int | np.integer) or not 0 <= occurrence < count:
        problem = f"warp {warp} executes line {line} {count} times, numbered from 0"
        raise InputError(f"occurrence={occurrence!r}", problem)
    return [step for step in of_line if step.occurrence == occurrence], count


# ---- the frame ------------------------------------------------------------------------------------------------------


def _start(ax: Axes, steps: list[Access | WarpEvent], count: int) -> None:
    step = steps[0]
    title = f"line {step.line}, warp {step.warp}, execution {step.occurrence + 1} of {count}"
    ax.set_title(title, loc="left", fontsize=11)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)


def _finish(ax: Axes, rows: float, steps: list[Access | WarpEvent]) -> Axes:
    ax.set_xlim(-4.2, LANES + 1.5)
    ax.set_ylim(rows + 0.1, -0.3)
    if is_own(ax):
        ax.figure.set_size_inches(WIDTH_IN, 0.5 + ROW_IN * rows)
    describe_axes(ax, f"{ax.get_title(loc='left')}. {' '.join(describe(step) for step in steps)}")
    return ax


# ---- the parts ------------------------------------------------------------------------------------------------------


def _draw_lanes(ax: Axes, y: float, steps: list[Access | WarpEvent]) -> float:
    """Draw the 32 lanes: coloured where a step has them, hatched where they are masked in all."""
    active = {lane for step in steps for lane in step.lanes}
    _write(ax, -0.3, y + 0.5, "lanes", right=True)
    for lane in range(LANES):
        if lane in active:
            _draw_cell(ax, lane, y, 1, [lane])
        else:
            _draw_box(ax, lane, y, 1, facecolor="white", edgecolor="#BDBDBD", hatch="////", linewidth=0.5)
    return y + TITLE_ROWS


def _draw_step(ax: Axes, y: float, step: Access | WarpEvent) -> float:
    """Draw one step below y and return where it ends."""
    _write(ax, 0, y + 0.55, describe(step), size=8, weight="bold" if isinstance(step, Access) else "normal")
    y += 1.1
    if isinstance(step, WarpEvent):
        return _draw_event(ax, y, step)
    if step.space == "local":
        return y + 0.4
    return _draw_rows(ax, y, step) + 0.4


def _draw_event(ax: Axes, y: float, event: WarpEvent) -> float:
    if event.kind != "branch":
        return y + 0.3
    for lane in event.lanes:
        _write(ax, lane + 0.5, y + 0.5, "T" if lane in event.taken else "F", centred=True)
    return y + TITLE_ROWS


def _draw_rows(ax: Axes, y: float, access: Access) -> float:
    """Draw the touched rows of memory, those between them left out, and the heads of the banks."""
    size = row_bytes(access)
    cells = cells_of(access)
    if access.space == "shared":
        y = _draw_bank_heads(ax, y, access)
    before = None
    for row in sorted({address // size for address in cells}):
        if before is not None and row > before + 1:
            _write(ax, LANES / 2, y + GAP_ROWS / 2, "⋮", centred=True, size=8)
            y += GAP_ROWS
        before = row
        in_row = {address: lanes for address, lanes in cells.items() if address // size == row}
        _draw_row(ax, y, access, row * size, in_row)
        y += 1
    return y


def _draw_row(ax: Axes, y: float, access: Access, start: int, cells: dict[int, list[int]]) -> None:
    size = row_bytes(access)
    piece = WORD_BYTES if access.space == "shared" else SECTOR_BYTES
    _write(ax, -0.3, y + 0.5, row_label(access, start), right=True)
    touched = {(address + offset) // piece for address in cells for offset in range(0, access.itemsize, WORD_BYTES)}
    for number in range(start // piece, (start + size) // piece):
        look = TOUCHED if number in touched and access.space == "global" else UNTOUCHED
        at = (number * piece - start) * LANES / size
        _draw_box(ax, at, y, piece * LANES / size, facecolor=look, edgecolor="#9E9E9E", linewidth=0.5)
    # Elements of less than a word share the box of their word.
    width = max(access.itemsize, piece if access.space == "shared" else 0) * LANES / size
    for address, lanes in cells.items():
        _draw_cell(ax, (address - start) * LANES / size, y, width, lanes)


def _draw_bank_heads(ax: Axes, y: float, access: Access) -> float:
    degrees = bank_degrees(access)
    _write(ax, -0.3, y + 0.5, "bank", right=True)
    for bank in range(BANKS):
        _write(ax, bank + 0.5, y + 0.5, str(bank), centred=True)
    y += 0.9
    if max(degrees.values(), default=0) > 1:
        _write(ax, -0.3, y + 0.5, "conflict", right=True, color=CONFLICT)
        for bank, degree in degrees.items():
            if degree > 1:
                _write(ax, bank + 0.5, y + 0.5, f"×{degree}", centred=True, color=CONFLICT, weight="bold")
        y += 0.9
    return y + 0.1


def _draw_cell(ax: Axes, x: float, y: float, width: float, lanes: list[int]) -> None:
    """Draw an element in the colour of its first lane, with the lane's number, or with how many lanes share it."""
    first = lanes[0]
    _draw_box(ax, x, y, width, facecolor=LANE_COLOURS[first], edgecolor="#333333", linewidth=0.5, zorder=2)
    colour = "white" if first < DARK_LANES else "black"
    text = str(first) if len(lanes) == 1 else f"×{len(lanes)}"
    _write(ax, x + width / 2, y + 0.5, text, centred=True, color=colour, zorder=3)


def _draw_box(ax: Axes, x: float, y: float, width: float, **look: Any) -> None:
    ax.add_patch(Rectangle((x, y), width, 0.92, **look))


def _write(
    ax: Axes,
    x: float,
    y: float,
    text: str,
    *,
    centred: bool = False,
    right: bool = False,
    size: float = TINY,
    **look: Any,
) -> None:
    look = {"color": GUIDE if right else "black"} | look
    ax.text(x, y, text, ha="center" if centred else "right" if right else "left", va="center", fontsize=size, **look)
