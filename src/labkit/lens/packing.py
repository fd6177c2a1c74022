"""Pack a trace for the browser: the steps of its warps, in at most 2 MB.

A request is kept as a mask of lanes, a base address and a pattern: the elements that its lanes touch, counted from the
lowest one. A kernel has few patterns, so a request takes about 40 bytes. A large launch is sampled by warp.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from labkit.errors import InputError
from labkit.lens.places import place_of_hazard, warps_of_hazard
from labkit.plotting.layout import LANES, is_packed
from labkit.plotting.requests import DARK_LANES, LANE_COLOURS
from labkit.simt import Access, Hazard, Trace, WarpEvent

MOST_BYTES = 2_000_000
MOST_WARPS = 32
MOST_STEPS = 10_000  # of all warps: they are simulated anew while the student waits
MOST_STEPS_OF_A_WARP = 2_500
WARPS_OF_A_BLOCK = 8  # where not all can be had
MOST_BLOCKS = 12  # spread evenly; each costs a simulation
BYTES_OF_A_WARP = 120  # but for its steps
ROOM_FOR_THE_REST = 200_000  # source, hazards and notes

KINDS = ("load", "store", "atomic", "branch", "barrier", "syncwarp", "shuffle", "vote", "divergent_barrier")
KINDS += ("out_of_bounds",)
COUNTERS = ("global_load_requests", "global_load_sectors", "global_store_requests", "global_store_sectors")
COUNTERS += ("shared_load_requests", "shared_load_wavefronts", "shared_load_bank_conflicts")
COUNTERS += ("shared_store_requests", "shared_store_wavefronts", "shared_store_bank_conflicts")
COUNTERS += ("atomic_requests", "barriers", "divergent_branches")


def pack(trace: Trace, warps: Iterable[int] | None = None) -> dict[str, Any]:
    """Return what the lens shows of a trace, ready for JSON; at most MOST_BYTES of it.

    warps: which ones to look into; None is all, or a sample of a large launch. What was left out stands in "sampled".
    Raises InputError if it is no trace, or the launch has no such warp.
    """
    if not isinstance(trace, Trace):
        raise InputError(f"trace={trace!r}", "this is no trace", "Pass what labkit.simt.trace(…) returned.")
    wanted = _choose_warps(trace) if warps is None else _check_warps(trace, warps)
    packer = _Packer(trace)
    steps_of: dict[int, tuple] = {}
    for together in _by_block(trace, wanted):
        for warp, steps in trace.steps(together, limit=MOST_STEPS_OF_A_WARP).items():
            steps_of |= packer.add(warp, steps)
        if packer.is_full:
            break
    hazards = [_hazard(trace, hazard, steps_of, packer) for hazard in trace.hazards[:200]]
    return {
        "kernel": trace.kernel_name,
        "grid": trace.grid_dim,
        "block": trace.block_dim,
        "sampled": _what_is_left_out(trace, packer, wanted if warps is not None else None),
        "colours": LANE_COLOURS,
        "darkLanes": DARK_LANES,
        "kinds": KINDS,
        "counters": COUNTERS,
        "source": packer.source(),
        "totals": [trace.counters[name] for name in COUNTERS],
        "arrays": packer.arrays,
        "patterns": packer.patterns,
        "warps": sorted(packer.warps, key=lambda entry: entry["warp"]),
        "hazards": hazards,
        "notes": [[note.line, note.message, note.count] for note in trace.notes[:200]],
    }


def to_json(packed: dict[str, Any]) -> str:
    """Return what pack gave as compact JSON."""
    return json.dumps(packed, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# ---- which warps ----------------------------------------------------------------------------------------------------


def _choose_warps(trace: Trace) -> list[int]:
    """Return the warps to look into, those of hazards first: they must not fall to the limits."""
    count = trace.counters["warps"]
    per_block = -(-trace.block_size // LANES)
    chosen = dict.fromkeys(warp for hazard in trace.hazards for warp in warps_of_hazard(trace, hazard))
    if count <= MOST_WARPS:
        chosen |= dict.fromkeys(range(count))
    else:
        of_each = min(per_block, WARPS_OF_A_BLOCK)
        last = trace.counters["blocks"] - 1
        parts = max(1, min(MOST_WARPS // of_each, MOST_BLOCKS) - 1)
        for first in (last * part // parts * per_block for part in (0, parts, *range(1, parts))):
            chosen |= dict.fromkeys(range(first, first + of_each))
    return list(chosen)[:MOST_WARPS]


def _check_warps(trace: Trace, warps: Iterable[int]) -> list[int]:
    chosen = list(dict.fromkeys(warps))
    if not chosen:
        raise InputError("warps=()", "the lens needs at least one warp", "Try warps=[0].")
    for warp in chosen:
        if isinstance(warp, bool) or not isinstance(warp, int | np.integer) or not 0 <= warp < trace.counters["warps"]:
            raise InputError(f"warp {warp!r}", f"the launch has {trace.counters['warps']:,} warps, numbered from 0")
    return [int(warp) for warp in chosen]


def _by_block(trace: Trace, warps: list[int]) -> Iterator[list[int]]:
    """Yield the warps block by block, in the order in which the blocks come first: a block is simulated once."""
    per_block = -(-trace.block_size // LANES)
    blocks: dict[int, list[int]] = {}
    for warp in warps:
        blocks.setdefault(warp // per_block, []).append(warp)
    yield from blocks.values()


def _what_is_left_out(trace: Trace, packer: _Packer, wanted: list[int] | None) -> str:
    """Return one sentence on what the lens does not show, empty if it shows all."""
    count, shown = trace.counters["warps"], len(packer.warps)
    parts = ["the warps ran one after another; here each block runs in step"] if trace.schedule == "interleaved" else []
    if shown < (count if wanted is None else len(wanted)):
        parts.append(f"{shown:,} of {count:,} warps are here, those of hazards and of a few blocks")
    if any(entry["cut"] for entry in packer.warps):
        parts.append("of a long warp only the first steps")
    if shown < count:
        parts.append("lens(trace, warps=[…]) looks into others")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


# ---- what of them ---------------------------------------------------------------------------------------------------


class _Packer:
    """Collects warps as long as there is room, each array, pattern and line once."""

    def __init__(self, trace: Trace) -> None:
        self.warps: list[dict[str, Any]] = []
        self.arrays: list[list[Any]] = []
        self.patterns: list[tuple[int, ...]] = []
        self.kept: dict[int, dict[int, int]] = {}  # of each warp: which of its steps is the how many-th here
        self._trace = trace
        self.texts = trace.source()
        self._line_numbers = {line: number for number, line in enumerate(self.texts)}
        self._known_arrays: dict[tuple, int] = {}
        self._known_patterns: dict[tuple[int, ...], int] = {}
        self._bytes = self._steps = 0

    @property
    def is_full(self) -> bool:
        """True when no further step is taken."""
        return self._bytes >= MOST_BYTES - ROOM_FOR_THE_REST or self._steps >= MOST_STEPS

    def add(self, warp: int, steps: tuple) -> dict[int, tuple]:
        """Add a warp's steps, as many as there is room for; return them by warp, nothing if there is no room at all."""
        rows: list[list[int]] = []
        kept: dict[int, int] = {}
        cut = len(steps) >= MOST_STEPS_OF_A_WARP
        for position, step in enumerate(steps):
            if self._is_dull(step):
                continue
            if self.is_full:
                cut = True
                break
            row = self._row(step)
            self._bytes += len(str(row))
            self._steps += 1
            kept[position] = len(rows)
            rows.append(row)
        if not rows and cut:
            return {}
        per_block = -(-self._trace.block_size // LANES)
        block, place = divmod(warp, per_block)
        first = place * LANES
        threads = [first, min(first + LANES, self._trace.block_size) - 1]
        where = _coordinates(block, self._trace.grid_dim)
        self.warps.append({"warp": warp, "block": where, "threads": threads, "cut": cut, "steps": rows})
        self._bytes += BYTES_OF_A_WARP
        self.kept[warp] = kept
        return {warp: steps}

    def _is_dull(self, step: Access | WarpEvent) -> bool:
        """Leave out what a loop asks before each trip, as long as the lanes agree."""
        loops = self.texts.get(step.line, "").lstrip().startswith(("for ", "while "))
        return step.kind == "branch" and loops and len(step.taken) in (0, len(step.lanes))

    def _row(self, step: Access | WarpEvent) -> list[int]:
        head = [step.time, self._line_numbers[step.line], KINDS.index(step.kind), step.occurrence, _mask(step.lanes)]
        if isinstance(step, WarpEvent):
            return [*head, _mask(step.taken)]
        base = min(step.addresses)
        pattern = tuple((address - base) // step.itemsize for address in step.addresses)
        if pattern not in self._known_patterns:
            self._known_patterns[pattern] = len(self.patterns)
            self.patterns.append(pattern)
            self._bytes += len(str(pattern))
        return [*head, self._array(step), base, self._known_patterns[pattern], step.passes, step.conflicts]

    def _array(self, access: Access) -> int:
        shape = access.shape if is_packed(access) else None
        key = (access.array, access.space, access.itemsize, shape)
        if key not in self._known_arrays:
            self._known_arrays[key] = len(self.arrays)
            self.arrays.append(list(key))
        return self._known_arrays[key]

    def source(self) -> list[list[Any]]:
        """Return the kernel's lines: name, text, and the launch's counters where there are any."""
        by_line = self._trace.by_line()
        lines = []
        for line, text in self.texts.items():
            counts = [int(by_line.get(line, {}).get(name, 0)) for name in COUNTERS]
            lines.append([line, text, counts if any(counts) else None])
        return lines


def _mask(lanes: tuple[int, ...]) -> int:
    return sum(1 << lane for lane in lanes)


def _coordinates(number: int, dim: tuple[int, int, int]) -> list[int]:
    return [number % dim[0], number // dim[0] % dim[1], number // (dim[0] * dim[1])]


def _hazard(trace: Trace, hazard: Hazard, steps_of: dict[int, tuple], packer: _Packer) -> dict[str, Any]:
    """Return a hazard with its places among the steps that were kept."""
    places = []
    for place in place_of_hazard(trace, hazard, steps_of):
        kept = packer.kept[place.warp].get(place.step) if place is not None else None
        places.append(None if kept is None else [place.warp, kept, place.lane])
    return {
        "kind": hazard.kind.replace("_", " "),
        "message": hazard.message,
        "count": hazard.count,
        "lines": [line if line in packer.texts else None for line in (hazard.line, hazard.other_line)],
        "places": places,
    }
