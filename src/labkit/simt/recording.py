"""Record, step by step, what single warps do: their memory accesses, branches, barriers and mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from labkit.simt.counters import sectors, wavefronts
from labkit.simt.lanes import Mask
from labkit.simt.memory import Address, DeviceMemory
from labkit.simt.program import Program


@dataclass(frozen=True)
class Access:
    """What one warp touched at one execution of a line: for each active lane its byte address in the array.

    line: as in Trace.by_line. kind: load, store or atomic. space: global, shared, local or constant. occurrence: the
    how many-th execution of the line by this warp, from 0. shape, strides (bytes): of the array. passes: sectors
    (global) or wavefronts (shared) of the request. conflicts: bank conflicts among them. time: the order within the
    block, whose warps run in step.
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
    strides: tuple[int, ...]
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
    """Records the steps of some warps of the one block that is simulated: of one line, or of all if `line` is None."""

    def __init__(
        self,
        program: Program,
        warps_in_block: Iterable[int],
        first_warp: int,
        *,
        line: int | str | None = None,
        limit: int | None = None,
    ) -> None:
        self.steps: dict[int, list[Step]] = {warp: [] for warp in warps_in_block}
        self._program = program
        self._first_warp = first_warp
        self._line = line
        self._limit = limit  # the most steps to keep of each warp
        self._time = 0
        self._seen: dict[tuple[int, int, str], int] = {}
        self._costs: dict[tuple, tuple[int, int]] = {}
        self._indices: dict[int, tuple[DeviceMemory, dict[int, tuple[int, ...]]]] = {}

    def access(self, kind: str, site: int, array: DeviceMemory, at: Address) -> None:
        """Record a memory access."""
        cells = at.mask.spread(at.cell)
        if array.base is not None:
            cells = cells - array.base
        itemsize = array.cells.dtype.itemsize
        for warp, places in self._warps(site, at.mask):
            touched = cells[places].tolist()
            lanes = _numbers(at.mask, places)
            passes, conflicts = self._cost(array, at.mask, places, cells * itemsize, (*lanes, *touched))
            self.steps[warp].append(
                Access(
                    line=self._program.line_key(site),
                    kind=kind,
                    space=array.space,
                    array=array.name,
                    occurrence=self._occurrence(warp, site, kind),
                    warp=self._first_warp + warp,
                    lanes=lanes,
                    indices=self._indices_of(array, touched),
                    addresses=tuple(cell * itemsize for cell in touched),
                    itemsize=itemsize,
                    shape=tuple(map(int, array.shape)),
                    strides=tuple(int(stride) * itemsize for stride in array.strides),
                    passes=passes,
                    conflicts=conflicts,
                    time=self._time,
                )
            )

    def event(self, kind: str, site: int, mask: Mask, *, taken: Mask | None = None, array: str = "") -> None:
        """Record something else; for a branch `taken` are the lanes for which the condition holds."""
        for warp, places in self._warps(site, mask):
            self.steps[warp].append(
                WarpEvent(
                    line=self._program.line_key(site),
                    kind=kind,
                    occurrence=self._occurrence(warp, site, kind),
                    warp=self._first_warp + warp,
                    lanes=_numbers(mask, places),
                    taken=() if taken is None else _numbers(mask, places[taken.active[places]]),
                    array=array,
                    time=self._time,
                )
            )

    def _warps(self, site: int, mask: Mask) -> Iterable[tuple[int, np.ndarray]]:
        """Yield the warps to record that have active lanes, with the places of these lanes in the batch."""
        self._time += 1
        if self._line is not None and self._line != self._program.line_key(site):
            return
        active = np.flatnonzero(mask.active)
        warp_of = mask.lanes.warp[active]
        for warp, steps in self.steps.items():
            if self._limit is None or len(steps) < self._limit:
                places = active[warp_of == warp]
                if len(places):
                    yield warp, places

    def _cost(
        self, array: DeviceMemory, mask: Mask, places: np.ndarray, address: np.ndarray, request: tuple[int, ...]
    ) -> tuple[int, int]:
        """Return sectors and 0, or wavefronts and conflicts; kept, for a loop makes the same requests again."""
        key = (array.space, array.cells.dtype.itemsize, request)
        if array.space not in ("global", "shared"):
            return 1, 0
        if key not in self._costs:
            active = np.zeros(len(mask.active), bool)
            active[places] = True
            own = Mask(active, len(places), mask.lanes)
            is_global = array.space == "global"
            self._costs[key] = (sectors(address, own), 0) if is_global else wavefronts(address, own, key[1])
        return self._costs[key]

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


def _numbers(mask: Mask, places: np.ndarray) -> tuple[int, ...]:
    """Return lanes of the batch by their places in the warp."""
    return tuple(mask.lanes.lane[places].tolist())
