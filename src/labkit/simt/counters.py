"""Count what hardware profilers count: requests, sectors, wavefronts, branches, FLOP.

Definitions
- A *request* is one memory instruction of one warp with at least one active lane.
- `*_sectors`: the distinct aligned 32-byte pieces of global memory that a request touches. Every array argument counts
  as starting on a 256-byte boundary, as a device allocation does; the strides of a view are honoured.
- `*_bytes`: bytes asked for, active lanes times element size, however many lanes ask for the same ones.
- `*_wavefronts`: serial passes of a shared-memory request over 32 banks of 4 bytes: the most distinct 4-byte words in
  any one bank; for 8-byte elements that maximum per half-warp, summed over the halves with active lanes.
- `*_bank_conflicts`: wavefronts minus the fewest possible for the active lanes.
- Atomics are counted on their own, not as loads or stores: `atomics` per thread, `atomic_requests` per warp,
  `atomic_serialisations` the turns that lanes of a warp must wait because they update one address (for each request the
  most lanes on one address, minus one).
- `barriers`: barriers passed, one per block. `syncwarps`, `shuffles`, `votes`: one per warp.
- A *branch* is one evaluation by one warp of the condition of an `if` or a `while`, or of whether a `for` has another
  trip (so n trips are n + 1 branches); it is *divergent* when lanes of the warp disagree. Conditional expressions,
  `and` and `or` are no branches, nor is an `if` on a constant.
- `instructions`: statements executed, one per warp; `mean_active_lanes`: lanes per such statement.
- `flop`: +, -, *, /, //, %, ** and math functions on floats count 1 per lane, fma 2; also `flop_float32`, ….
- `arithmetic_intensity`: flop per byte asked for of global memory (loads and stores); 0 without FLOP, infinite without
  bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from labkit.simt.lanes import WARP_SIZE, Mask
from labkit.simt.memory import Address, DeviceMemory

SECTOR_BYTES = 32
BANKS = 32
WORD_BYTES = 4


@dataclass
class Tally:
    """What one line did to one array in one way."""

    kind: str  # load, store or atomic
    space: str
    array: str
    itemsize: int
    requests: int = 0
    lanes: int = 0
    passes: int = 0  # sectors in global memory, wavefronts in shared memory, serialisations of atomics
    conflicts: int = 0
    _kept: tuple = (None, None, {})

    def forget(self) -> None:
        """Let go of the addresses seen last."""
        self._kept = (None, None, {})

    def add(self, array: DeviceMemory, at: Address) -> None:
        """Count one access by all active lanes of a batch."""
        self.requests += at.mask.warps
        self.lanes += at.mask.count
        if self.space in ("local", "constant") and self.kind != "atomic":
            return
        passes, conflicts = self._passes(array, at)
        self.passes += passes
        self.conflicts += conflicts

    def _passes(self, array: DeviceMemory, at: Address) -> tuple[int, int]:
        """Sectors or wavefronts of the access, kept while only a uniform part of the index changes.

        Adding whole words to all addresses turns the banks but changes no conflict; whole sectors change no sector.
        """
        unit = SECTOR_BYTES if self.space == "global" else WORD_BYTES
        offset = at.shift * self.itemsize % unit
        start, mask, known = self._kept
        if start is not at.start or mask is not at.mask:
            known = {}
            self._kept = (at.start, at.mask, known)
        if offset not in known:
            known[offset] = self._count_passes(array, at, offset)
        return known[offset]

    def _count_passes(self, array: DeviceMemory, at: Address, offset: int) -> tuple[int, int]:
        mask = at.mask
        start = np.zeros(len(mask.active), np.int64) if at.start is None else at.start
        if self.kind == "atomic":
            return serialisations(start, mask), 0
        address = start * self.itemsize + offset
        if self.space == "global":
            return sectors(address, mask), 0
        return wavefronts(address, mask, self.itemsize)


def sectors(address: np.ndarray, mask: Mask) -> int:
    """Return the sectors that the warps of a batch touch, for one byte address per lane."""
    piece = address // SECTOR_BYTES
    if not mask.full:
        piece = np.where(mask.active, piece, -1)
    return int(np.count_nonzero(_first_of_each(np.sort(mask.lanes.by_warp(piece, -1), axis=1))))


def _first_of_each(rows: np.ndarray) -> np.ndarray:
    """In sorted rows, mark the first of each distinct value that is not negative."""
    first = np.ones(rows.shape, bool)
    np.not_equal(rows[:, 1:], rows[:, :-1], out=first[:, 1:])
    return first & (rows >= 0)


def wavefronts(address: np.ndarray, mask: Mask, itemsize: int) -> tuple[int, int]:
    """Return the wavefronts of a shared-memory access, and how many of them are conflicts."""
    word = address // WORD_BYTES
    if not mask.full:
        word = np.where(mask.active, word, -1)
    rows = mask.lanes.by_warp(word, -1)
    words_per_lane = max(1, itemsize // WORD_BYTES)
    if words_per_lane > 1:  # the warp is served in halves (8 bytes) or quarters (16 bytes)
        rows = rows.reshape(-1, WARP_SIZE // words_per_lane)
        rows = np.concatenate([np.where(rows >= 0, rows + part, -1) for part in range(words_per_lane)], axis=1)
    rows = np.sort(rows, axis=1)
    which_row, _ = places = np.nonzero(_first_of_each(rows))
    per_bank = np.bincount(which_row * BANKS + rows[places] % BANKS, minlength=len(rows) * BANKS)
    passes = int(per_bank.reshape(-1, BANKS).max(axis=1).sum())
    return passes, passes - int(np.count_nonzero(rows[:, -1] >= 0))


def serialisations(cell: np.ndarray, mask: Mask) -> int:
    """Return the turns that lanes wait: for each warp the most lanes on one cell, minus one."""
    if not mask.full:
        cell = np.where(mask.active, cell, -1)
    rows = np.sort(mask.lanes.by_warp(cell, -1), axis=1)
    run = np.zeros(len(rows), np.int64)
    longest = np.zeros(len(rows), np.int64)
    for lane in range(WARP_SIZE):
        same = rows[:, lane] == rows[:, lane - 1] if lane else np.zeros(len(rows), bool)
        run = np.where(rows[:, lane] < 0, 0, np.where(same, run + 1, 1))
        longest = np.maximum(longest, run)
    return int(np.maximum(longest - 1, 0).sum())


@dataclass
class LineCounts:
    """What one site did besides memory accesses."""

    executed_warps: int = 0
    executed_lanes: int = 0
    flop_lanes: int = 0
    branches: int = 0
    divergent_branches: int = 0
    barriers: int = 0
    syncwarps: int = 0
    shuffles: int = 0
    votes: int = 0
    flop: dict[str, int] = field(default_factory=dict)


def summarise(tallies: Iterable[Tally], counts: Iterable[tuple[LineCounts, tuple]]) -> dict[str, float]:
    """Add up tallies and line counts (each with its FLOP per lane) to the counters, under their stable names."""
    total: dict[str, float] = {}
    for space in ("global", "shared"):
        passes = ("sectors",) if space == "global" else ("wavefronts", "bank_conflicts")
        for kind in ("load", "store"):
            total |= {f"{space}_{kind}_{what}": 0 for what in ("requests", *passes, "bytes")}
    total |= dict.fromkeys(("local_load_requests", "local_store_requests", "local_accesses", "local_bytes"), 0)
    total |= dict.fromkeys(("constant_load_requests", "atomics", "atomic_requests", "atomic_serialisations"), 0)
    for tally in tallies:
        _add_tally(total, tally)
    for what in ("barriers", "syncwarps", "shuffles", "votes", "branches", "divergent_branches"):
        total[what] = 0
    warps = lanes = 0
    flop: dict[str, int] = {"float32": 0, "float64": 0}
    for count, per_lane in counts:
        for what in ("barriers", "syncwarps", "shuffles", "votes", "branches", "divergent_branches"):
            total[what] += getattr(count, what)
        warps += count.executed_warps
        lanes += count.executed_lanes
        for dtype, each in per_lane:
            flop[dtype] = flop.get(dtype, 0) + each * count.flop_lanes
    total["instructions"] = warps
    total["mean_active_lanes"] = lanes / warps if warps else 0.0
    total["flop"] = sum(flop.values())
    total |= {f"flop_{dtype}": amount for dtype, amount in sorted(flop.items())}
    _add_ratios(total)
    return total


def _add_tally(total: dict[str, float], tally: Tally) -> None:
    if tally.kind == "atomic":
        total["atomics"] += tally.lanes
        total["atomic_requests"] += tally.requests
        total["atomic_serialisations"] += tally.passes
        return
    prefix = f"{tally.space}_{tally.kind}"
    total[f"{prefix}_requests"] += tally.requests
    if tally.space == "local":
        total["local_accesses"] += tally.lanes
        total["local_bytes"] += tally.lanes * tally.itemsize
    elif tally.space != "constant":
        total[f"{prefix}_bytes"] += tally.lanes * tally.itemsize
        total[f"{prefix}_{'sectors' if tally.space == 'global' else 'wavefronts'}"] += tally.passes
    if tally.space == "shared":
        total[f"{prefix}_bank_conflicts"] += tally.conflicts


def _add_ratios(total: dict[str, float]) -> None:
    for kind in ("load", "store"):
        requests = total[f"global_{kind}_requests"]
        total[f"global_{kind}_sectors_per_request"] = total[f"global_{kind}_sectors"] / requests if requests else 0.0
    moved = total["global_load_bytes"] + total["global_store_bytes"]
    total["arithmetic_intensity"] = total["flop"] / moved if moved else float("inf") if total["flop"] else 0.0
