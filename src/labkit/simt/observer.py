"""The watch of a trace: counts everything, looks for hazards, and never stops the kernel."""

from __future__ import annotations

from array import array as compact_array
from collections import defaultdict
from typing import Any

import numpy as np

from labkit.simt.counters import LineCounts, Tally
from labkit.simt.hazards import SCOPES, Element, HazardBook
from labkit.simt.lanes import Lanes, Mask, Value
from labkit.simt.memory import Address, DeviceMemory
from labkit.simt.program import Program
from labkit.simt.races import Access, Conflict, Shadow
from labkit.simt.recording import Recorder
from labkit.simt.watch import Watch, describe_index, describe_out_of_bounds


class Observer(Watch):
    """Counts and looks for hazards; what it found is in `tallies`, `lines`, `hazards` and `notes`."""

    tracing = True

    def __init__(self, program: Program, grid_dim: tuple[int, int, int], block_dim: tuple[int, int, int]) -> None:
        super().__init__(program, grid_dim, block_dim)
        self.tallies: dict[tuple[int, str, str, str], Tally] = {}
        self.lines: dict[int, LineCounts] = defaultdict(LineCounts)
        self.hazards = HazardBook()
        self.notes: dict[tuple[int, str], int] = {}  # how often, in the order of the first time
        self.recorder: Recorder | None = None
        self._time = 0
        self._sites_by_time = compact_array("i", [0])

    # ---- memory ----

    def new_array(self, array: DeviceMemory) -> None:
        """Look for hazards in a shared or local array that has been made."""
        array.shadow = Shadow(len(array.cells), array.space)

    def new_view(self, array: DeviceMemory, views: list[DeviceMemory]) -> None:
        """Look for hazards in dynamic shared memory: all its views share one shadow, in units that fit the smallest."""
        unit = min(dtype.itemsize for dtype in self.program.dynamic_dtypes)
        array.shadow = views[0].shadow or Shadow(array.cells.nbytes // unit, array.space)
        array.shadow_units = array.cells.itemsize // unit

    def load(self, site: int, array: DeviceMemory, at: Address) -> None:
        """Count a read and look for what it races with."""
        if not at.mask:
            return
        self._tally("load", site, array, at)
        if array.shadow is not None:
            access = self._access(site, array, at)
            self._check_initialised(site, array, access)
            for conflict in array.shadow.read(access):
                self._race(site, array, conflict, access)

    def store(self, site: int, array: DeviceMemory, at: Address, value: Value) -> None:
        """Count a write and look for what it races with; writes of the same value are noted only."""
        self._tally("store", site, array, at)
        if array.shadow is None:
            return
        access = self._access(site, array, at)
        after_reads, after_writes = array.shadow.store(access)
        for conflict in after_reads:
            self._race(site, array, conflict, access)
        for conflict in after_writes:
            self._race(site, array, self._different(site, array, at, value, conflict), access)

    def atomic(self, site: int, array: DeviceMemory, at: Address) -> None:
        """Count an atomic update and look for plain accesses that it races with."""
        self._tally("atomic", site, array, at)
        if array.shadow is None:
            return
        access = self._access(site, array, at, atomic=True)
        self._check_initialised(site, array, access)
        for conflict in [c for conflicts in array.shadow.store(access) for c in conflicts]:
            self._race(site, array, conflict, access)

    def _tally(self, kind: str, site: int, array: DeviceMemory, at: Address) -> None:
        key = (site, kind, array.space, array.name)
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally(kind, array.space, array.name, array.cells.dtype.itemsize)
        tally.add(array, at)
        if self.recorder is not None:
            self.recorder.access(kind, site, array, at)

    def _access(self, site: int, array: DeviceMemory, at: Address, *, atomic: bool = False) -> Access:
        self._time += 1
        self._sites_by_time.append(site)
        mask = at.mask
        which = None if mask.full else np.flatnonzero(mask.active)
        cells = at.cell
        if not isinstance(cells, np.ndarray):
            cells = np.full(mask.count, cells)
        elif which is not None:
            cells = cells[which]
        if array.shadow_units > 1:
            units = np.arange(array.shadow_units)
            cells = (cells[:, None] * array.shadow_units + units).ravel()
            which = np.repeat(mask.lanes.numbers if which is None else which, array.shadow_units)
        if array.shadow_offset:
            cells = cells + array.shadow_offset
        return Access(mask.lanes, which, cells, self._time, atomic=atomic)

    def _check_initialised(self, site: int, array: DeviceMemory, access: Access) -> None:
        """Report a read of shared or local memory that nothing has written yet."""
        if not array.shadow.starts_empty:
            return
        never = array.shadow.never_written(access)
        if not never.any():
            return
        first = int(never.argmax())
        who = self.who(access.batch, int(access.lanes[first]))
        element = self._element(array, int(access.cells[first]))
        self.hazards.report(
            f"uninitialised_{array.space}",
            "block" if array.space == "shared" else "thread",
            self.program.sites[site],
            who,
            f"{who} reads {element}, which nothing has written yet",
            count=len(np.unique(access.lanes[never])),
            array=array.name,
            index=element.index,
        )

    def _element(self, array: DeviceMemory, cell: int) -> Element:
        """Return the element that a cell of the shadow belongs to."""
        cell = (cell - array.shadow_offset) // array.shadow_units
        if array.base is not None:
            cell -= int(array.base[np.searchsorted(array.base, cell, side="right") - 1])
        return Element(array.name, array.index_of(cell))

    def _different(self, site: int, array: DeviceMemory, at: Address, value: Value, conflict: Conflict) -> Conflict:
        """Keep the write conflicts whose values differ, and note the others."""
        values = at.mask.spread(value)
        cell = at.mask.spread(at.cell)
        new = values[conflict.lanes]
        lane = conflict.earlier_thread - at.mask.lanes.first_thread_in_grid
        now = conflict.earlier_time == self._time
        old = np.where(now, values[np.where(now, lane, 0)], array.cells[cell[conflict.lanes]])
        same = (new == old) | ((new != new) & (old != old))
        if same.any():
            self.note(site, f"several threads store the same value to one element of {array.name}")
        return Conflict(
            conflict.what, conflict.lanes[~same], conflict.earlier_thread[~same], conflict.earlier_time[~same]
        )

    def _race(self, site: int, array: DeviceMemory, conflict: Conflict, access: Access) -> None:
        """Report a conflict: one hazard per earlier line, showing a pair of threads of the widest scope."""
        if not len(conflict.lanes):
            return
        earlier_sites = np.frombuffer(self._sites_by_time, np.intc)[conflict.earlier_time]
        distance = access.distance(access.batch.thread_in_grid[conflict.lanes], conflict.earlier_thread)
        for earlier_site in np.unique(earlier_sites):
            these = np.flatnonzero(earlier_sites == earlier_site)
            first = these[distance[these].argmax()]
            lane = int(conflict.lanes[first])
            self.hazards.report_race(
                self.program.sites[site],
                self.who(access.batch, lane),
                self._element(array, int(access.cells[np.searchsorted(access.lanes, lane)])),
                conflict.what,
                SCOPES[int(distance[first]) - 1],
                self.program.sites[earlier_site],
                self.who_in_grid(conflict.earlier_thread[first]),
                count=len(np.unique(conflict.lanes[these])),
            )

    # ---- hazards that a launch raises ----

    def out_of_bounds(
        self, site: int, array: DeviceMemory, mask: Mask, bad: np.ndarray, index: tuple[Value, ...]
    ) -> None:
        """Record indices that the array does not have."""
        self._record("out_of_bounds", site, mask.split(bad)[0], array=array.name)
        lane = int(bad.argmax())
        who = self.who(mask.lanes, lane)
        self.hazards.report(
            "out_of_bounds",
            "thread",
            self.program.sites[site],
            who,
            f"in {who} {describe_out_of_bounds(array, index, lane)}",
            count=int(np.count_nonzero(bad)),
            array=array.name,
            index=describe_index(index, lane),
        )

    def divergent_barrier(self, site: int, lanes: Lanes, waiting: np.ndarray, missing: np.ndarray, why: str) -> None:
        """Record a barrier that only a part of a block reaches."""
        self._record("divergent_barrier", site, lanes.all.split(waiting)[0])
        who = self.who(lanes, int(waiting.argmax()))
        other = self.who(lanes, int(missing.argmax())).thread if missing.any() else None
        message = f"{who} waits at a barrier, but {why}"
        self.hazards.report("divergent_barrier", "block", self.program.sites[site], who, message, other_thread=other)

    def failed_assertion(self, site: int, mask: Mask, message: str) -> None:
        """Note a failed assert."""
        self.note(site, f"an assertion fails{f': {message}' if message else ''}")

    # ---- counts ----

    def note(self, site: int, what: str) -> None:
        """Note something once per line."""
        key = (site, what)
        self.notes[key] = self.notes.get(key, 0) + 1

    def negative_index(self, site: int, array: DeviceMemory) -> None:
        """Note a negative index."""
        self.note(site, f"a negative index into {array.name} counts from the end")

    def count(self, site: int, mask: Mask) -> None:
        """Count a statement."""
        line = self.lines[site]
        line.executed_warps += mask.warps
        line.executed_lanes += mask.count
        line.flop_lanes += mask.count

    def count_operand(self, site: int, mask: Mask) -> None:
        """Count the FLOP of a guarded operand."""
        self.lines[site].flop_lanes += mask.count

    def branch(self, site: int, mask: Mask, taken: Mask) -> None:
        """Count a condition, and the warps whose lanes disagree."""
        self._record("branch", site, mask, taken=taken)
        line = self.lines[site]
        line.branches += mask.warps
        if taken and taken is not mask:
            line.divergent_branches += int(np.count_nonzero((taken.per_warp > 0) & (taken.per_warp < mask.per_warp)))

    def barrier(self, site: int, lanes: Lanes, blocks: np.ndarray) -> None:
        """Count a barrier, and order what came before it."""
        self._record("barrier", site, lanes.all)
        self.lines[site].barriers += int(np.count_nonzero(blocks))
        if blocks.all():
            lanes.barrier_time = self._time
        else:
            lanes.barrier_time = np.where(blocks[lanes.slot], self._time, lanes.barrier_time)

    def syncwarp(self, site: int, mask: Mask) -> None:
        """Count a syncwarp, and order what came before it."""
        self._record("syncwarp", site, mask)
        self.lines[site].syncwarps += mask.warps
        before = 0 if mask.lanes.warp_time is None else mask.lanes.warp_time
        mask.lanes.warp_time = np.where(mask.active, self._time, before)

    def warp_function(self, site: int, mask: Mask, kind: str) -> None:
        """Count a shuffle or a vote."""
        self._record(kind, site, mask)
        line = self.lines[site]
        setattr(line, f"{kind}s", getattr(line, f"{kind}s") + mask.warps)

    def _record(self, kind: str, site: int, mask: Mask, **more: Any) -> None:
        if self.recorder is not None:
            self.recorder.event(kind, site, mask, **more)
