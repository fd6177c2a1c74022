"""Find where among the recorded steps a hazard happened: the access that is at fault, and the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from labkit.plotting.layout import LANES
from labkit.simt import Access, Hazard, Trace, WarpEvent

Steps = dict[int, tuple[Access | WarpEvent, ...]]
_BARRIERS = ("barrier", "divergent_barrier")


class Place(NamedTuple):
    """One lane at one of the recorded steps of a warp."""

    warp: int
    step: int
    lane: int


def warps_of_hazard(trace: Trace, hazard: Hazard) -> list[int]:
    """Return the warps of the threads that a hazard names, the later one first."""
    named = ((hazard.block, hazard.thread), (hazard.other_block or hazard.block, hazard.other_thread))
    return [_thread(trace, block, thread)[0] for block, thread in named if block is not None and thread is not None]


def place_of_hazard(trace: Trace, hazard: Hazard, steps: Steps) -> tuple[Place | None, Place | None]:
    """Return where a hazard and the earlier access of a race are, None where that was not recorded.

    A trace says which threads met at which element, not in which round of a loop: taken is the first pair of accesses
    in order with no barrier between, else the first pair in order, else the first of each.
    """
    laters = list(_candidates(trace, hazard, steps, later=True))
    if hazard.other_thread is None or hazard.kind != "race":
        return (laters[0] if laters else None), None
    earliers = list(_candidates(trace, hazard, steps, later=False))
    if not laters or not earliers:
        return (laters[0] if laters else None), (earliers[0] if earliers else None)
    pairs = [(later, earlier) for later in laters for earlier in reversed(earliers)]
    if hazard.scope == "grid":
        return laters[0], earliers[0]  # each block has a time of its own
    in_order = [pair for pair in pairs if pair[0] != pair[1] and _time(steps, pair[1]) <= _time(steps, pair[0])]
    unordered = [pair for pair in in_order if not _barrier_between(steps, *pair)]
    return next(iter([*unordered, *in_order, (laters[0], earliers[0])]))


def _candidates(trace: Trace, hazard: Hazard, steps: Steps, *, later: bool) -> Iterator[Place]:
    """Yield the steps that may be the hazard's access, or its earlier one: the same lane at the same element."""
    block, thread = (hazard.block, hazard.thread)
    line = hazard.line if later else hazard.other_line
    if not later:
        block, thread = hazard.other_block or hazard.block, hazard.other_thread
    if block is None or thread is None:
        return
    warp, lane = _thread(trace, block, thread)
    here = [(n, step) for n, step in enumerate(steps.get(warp, ())) if step.line == line and lane in step.lanes]
    exact = [n for n, step in here if _fits(step, hazard, lane, later=later)]
    yield from (Place(warp, n, lane) for n in exact or [n for n, _ in here])


def _fits(step: Access | WarpEvent, hazard: Hazard, lane: int, *, later: bool) -> bool:
    if isinstance(step, WarpEvent):
        return step.kind == hazard.kind
    if hazard.index is None or step.array != hazard.array:
        return False
    if tuple(step.indices[step.lanes.index(lane)]) != tuple(hazard.index):
        return False
    if hazard.access is None:
        return step.kind != "store"  # a read of what nothing has written
    second, first = hazard.access.split(" after ")
    return step.kind in ("atomic", {"read": "load", "write": "store"}[second if later else first])


def _time(steps: Steps, place: Place) -> int:
    return steps[place.warp][place.step].time


def _barrier_between(steps: Steps, later: Place, earlier: Place) -> bool:
    start, end = _time(steps, earlier), _time(steps, later)
    return any(step.kind in _BARRIERS and start < step.time < end for step in steps[later.warp])


def _thread(trace: Trace, block: tuple[int, int, int], thread: tuple[int, int, int]) -> tuple[int, int]:
    """Return a thread's warp, numbered over the grid, and its lane."""
    per_block = -(-trace.block_size // LANES)
    number = _linear(thread, trace.block_dim)
    return _linear(block, trace.grid_dim) * per_block + number // LANES, number % LANES


def _linear(place: tuple[int, int, int], dim: tuple[int, int, int]) -> int:
    return place[0] + dim[0] * (place[1] + dim[1] * place[2])
