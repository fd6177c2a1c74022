"""Record, step by step, what single warps do: their memory accesses, branches, barriers and mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from labkit.simt.counters import sectors, wavefronts
from labkit.simt.lanes import WARP_SIZE, Mask
from labkit.simt.memory import Address, DeviceMemory
from labkit.simt.program import Program


@dataclass(frozen=True)
class Access:
    """What one warp touched at one execution of a line: for each active lane its byte address in the array.

    line: as in Trace.by_line. kind: load, store or atomic. space: global, shared, local or constant. occurrence: the
    how many-th execution of the line by this warp, from 0. shape: of the array. passes: sectors (global) or wavefronts
    (shared) of the request. conflicts: bank conflicts among them. time: the order within the block, whose warps run in
    step.
    """

    line: int | str
    kind: str
    space: str
    array: str
    occurrence: int
    warp: int
    lanes: tuple[int, ...]
    indices: tuple[tuple[int, ...], ...]
    addresses: tuple[int, ...]
    itemsize: int
    shape: tuple[int, ...]
    passes: int
    conflicts: int = 0
    time: int = 0


@dataclass(frozen=True)
class WarpEvent:
    """What else one warp did at one execution of a line, and its lanes that took part.

    kind: branch (taken: the lanes for which the condition holds), barrier (all lanes), syncwarp, shuffle, vote,
    divergent_barrier (the lanes that wait while others of the block do not come), or out_of_bounds (the lanes whose
    index `array` does not have). The rest is as for Access.
    """

    line: int | str
    kind: str
    occurrence: int
    warp: int
    lanes: tuple[int, ...]
    taken: tuple[int, ...] = ()
    array: str = ""
    time: int = 0


Step = Access | WarpEvent


class Recorder:
    """Records the steps of some warps of the one block that is simulated; at most `limit` of each warp."""

    def __init__(self, program: Program, warps_in_block: Iterable[int], first_warp: int, limit: int | None) -> None:
        self.steps: dict[int, list[Step]] = {warp: [] for warp in warps_in_block}
        self._program = program
        self._first_warp = first_warp
        self._limit = limit
        self._time = 0
        self._seen: dict[tuple[int, int, str], int] = {}
        self._indices: dict[int, tuple[DeviceMemory, dict[int, tuple[int, ...]]]] = {}

    def access(self, kind: str, site: int, array: DeviceMemory, at: Address) -> None:
        """Record a memory access."""
        cells = at.mask.spread(at.cell)
        if array.base is not None:
            cells = cells - array.base
        itemsize = array.cells.dtype.itemsize
        for warp, mask in self._warps(at.mask):
            passes, conflicts = 1, 0
            if array.space == "global":
                passes = sectors(cells * itemsize, mask)
            elif array.space == "shared":
                passes, conflicts = wavefronts(cells * itemsize, mask, itemsize)
            touched = cells[mask.active].tolist()
            self.steps[warp].append(
                Access(
                    line=self._program.line_key(site),
                    kind=kind,
                    space=array.space,
                    array=array.name,
                    occurrence=self._occurrence(warp, site, kind),
                    warp=self._first_warp + warp,
                    lanes=_numbers(mask),
                    indices=self._indices_of(array, touched),
                    addresses=tuple(cell * itemsize for cell in touched),
                    itemsize=itemsize,
                    shape=tuple(int(extent) for extent in array.shape),
                    passes=passes,
                    conflicts=conflicts,
                    time=self._time,
                )
            )

    def event(self, kind: str, site: int, mask: Mask, *, taken: Mask | None = None, array: str = "") -> None:
        """Record something else; for a branch `taken` are the lanes for which the condition holds."""
        for warp, active in self._warps(mask):
            self.steps[warp].append(
                WarpEvent(
                    line=self._program.line_key(site),
                    kind=kind,
                    occurrence=self._occurrence(warp, site, kind),
                    warp=self._first_warp + warp,
                    lanes=_numbers(active),
                    taken=() if taken is None else _numbers(active & taken),
                    array=array,
                    time=self._time,
                )
            )

    def _warps(self, mask: Mask) -> Iterable[tuple[int, Mask]]:
        """Yield the warps to record that have active lanes, with these lanes alone."""
        self._time += 1
        for warp, steps in self.steps.items():
            if self._limit is None or len(steps) < self._limit:
                own = mask.split(mask.lanes.warp == warp)[0]
                if own:
                    yield warp, own

    def _occurrence(self, warp: int, site: int, kind: str) -> int:
        key = (warp, site, kind)
        self._seen[key] = self._seen.get(key, -1) + 1
        return self._seen[key]

    def _indices_of(self, array: DeviceMemory, cells: list[int]) -> tuple[tuple[int, ...], ...]:
        _, known = self._indices.setdefault(id(array), (array, {}))
        for cell in cells:
            if cell not in known:
                known[cell] = array.index_of(cell)
        return tuple(known[cell] for cell in cells)


def _numbers(mask: Mask) -> tuple[int, ...]:
    """Return the active lanes by their places in the warp."""
    return tuple((mask.lanes.lane[mask.active] % WARP_SIZE).tolist())
