"""What compiled kernels call `k`: the threads that run together, and all that they can do besides arithmetic."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from labkit.errors import KernelError
from labkit.simt import warps
from labkit.simt.atomics import update
from labkit.simt.hazards import show
from labkit.simt.lanes import Lanes, Mask, Value
from labkit.simt.memory import DeviceMemory, open_global, poison
from labkit.simt.watch import PRINTED_LINES, Watch


class SharedMemory:
    """The shared arrays of the blocks that run together: one copy per block, found by the place that makes them."""

    def __init__(self, blocks: int, dynamic_bytes: int, watch: Watch) -> None:
        self.blocks = blocks
        self.watch = watch
        self.arrays: dict[object, DeviceMemory] = {}
        # Copies start at whole 8-byte words, so that any type fits; all ones is NaN for floats.
        self._dynamic_bytes = dynamic_bytes
        self._pitch = max(8, -(-dynamic_bytes // 8) * 8)
        self._dynamic = np.full(blocks * self._pitch, 0xFF, np.uint8)

    def get(self, site: int, name: str, shape: tuple[int, ...], dtype: np.dtype, lanes: Lanes) -> DeviceMemory:
        """Return the array made at a place, filled with poison when it is new."""
        array = self.arrays.get(site)
        if array is None:
            pitch = -(-math.prod(shape) // 4) * 4  # a block's copy starts at a whole word, as on a GPU
            array = self._add(site, name, np.full(self.blocks * pitch, poison(dtype)), shape, pitch, lanes)
            self.watch.new_array(array)
        return array

    def dynamic(self, name: str, dtype: np.dtype, lanes: Lanes) -> DeviceMemory:
        """Return the launch's dynamic shared memory as an array of this type: one buffer, whatever the type."""
        array = self.arrays.get(dtype)
        if array is None:
            shape, pitch = (self._dynamic_bytes // dtype.itemsize,), self._pitch // dtype.itemsize
            array = self._add(dtype, name, self._dynamic.view(dtype), shape, pitch, lanes)
            self.watch.new_view(array, [a for key, a in self.arrays.items() if isinstance(key, np.dtype)])
        return array

    def _add(
        self, key: object, name: str, cells: np.ndarray, shape: tuple[int, ...], pitch: int, lanes: Lanes
    ) -> DeviceMemory:
        base = lanes.slot * pitch if self.blocks > 1 else None
        self.arrays[key] = DeviceMemory(name, "shared", cells, shape, self.watch, base=base)
        return self.arrays[key]


class Steps:
    """Counts loop trips, to stop a kernel that never ends."""

    def __init__(self, limit: int, watch: Watch) -> None:
        self.left = limit
        self.limit = limit
        self.watch = watch

    def step(self, site: int, mask: Mask) -> None:
        """Count one trip of a loop."""
        self.left -= 1
        if self.left < 0:
            lanes = np.flatnonzero(mask.active)
            place = self.watch.program.sites[site]
            threads = ", ".join(show(self.watch.who(mask.lanes, int(lane)).thread) for lane in lanes[:4])
            raise KernelError(
                f"{place.function}, line {place.line}: `{place.text}`",
                f"the loop is still running after {self.limit:,} trips, in {len(lanes)} threads "
                f"(thread {threads}{', …' if len(lanes) > 4 else ''})",
                "Check what ends the loop; trace(…, step_limit=…) allows more trips.",
            )


class Batch:
    """The threads that run together, as the compiled kernel sees them."""

    def __init__(self, lanes: Lanes, shared: SharedMemory, steps: Steps, watch: Watch) -> None:
        self.lanes = lanes
        self.none = lanes.none
        self.exited = lanes.none  # the lanes that left the kernel by `return`
        self.watch = watch
        self.count = watch.count
        self.count_operand = watch.count_operand
        self.step = steps.step
        self._shared = shared
        self._own: dict[object, DeviceMemory] = {}
        self._kept: dict[object, Value] = {}

    # ---- control ----

    def branch(self, site: int, mask: Mask, condition: Value) -> tuple[Mask, Mask]:
        """Split the lanes of a condition."""
        taken, left = mask.split(condition)
        if self.watch.tracing:
            self.watch.branch(site, mask, taken)
        return taken, left

    def leave(self, mask: Mask, site: int) -> None:
        """Retire lanes from the kernel."""
        self.exited = self.exited | mask

    def trips(
        self, site: int, mask: Mask, dtype: np.dtype, start: Value, stop: Value, step: Value | None = None
    ) -> Trips:
        """Begin a loop over range(start, stop, step)."""
        step = stop.dtype.type(1) if step is None else step
        if ((step == 0) & mask.active).any():
            place = self.watch.program.sites[site]
            given = f"{place.function}, line {place.line}: `{place.text}`"
            raise KernelError(given, "range() with a step of 0 never ends", "Use a step above or below 0.")
        return Trips(dtype, start, stop, step)

    def check(self, site: int, mask: Mask, condition: Value, message: str) -> None:
        """Execute an assert."""
        failed = mask.split(condition)[1]
        if failed:
            self.watch.failed_assertion(site, failed, message)

    def print(self, site: int, mask: Mask, *parts: str | Value) -> None:
        """Print one line per active thread."""
        for lane in np.flatnonzero(mask.active):
            who = self.watch.who(self.lanes, int(lane))
            words = [str(part[lane] if isinstance(part, np.ndarray) else part) for part in parts]
            self.watch.say(f"[block {show(who.block)}, thread {show(who.thread)}] {' '.join(words)}")
            if self.watch.printed > PRINTED_LINES:
                return

    # ---- who am I ----

    def _keep(self, key: object, make: object) -> Value:
        value = self._kept.get(key)
        if value is None:
            value = self._kept[key] = make()
        return value

    def thread_index(self, axis: int) -> Value:
        """threadIdx.x, .y, .z as int32."""
        return self._keep(("thread", axis), lambda: self.lanes.thread_index(axis))

    def block_index(self, axis: int) -> Value:
        """blockIdx.x, .y, .z as int32."""
        return self._keep(("block", axis), lambda: self.lanes.block_index(axis))

    def block_dim(self, axis: int) -> Value:
        """blockDim.x, .y, .z as int32."""
        return np.int32(self.lanes.block_dim[axis])

    def grid_dim(self, axis: int) -> Value:
        """gridDim.x, .y, .z as int32."""
        return np.int32(self.lanes.grid_dim[axis])

    def grid(self, axis: int) -> Value:
        """One part of cuda.grid as int64."""

        def position() -> Value:
            return self.block_index(axis).astype(np.int64) * self.lanes.block_dim[axis] + self.thread_index(axis)

        return self._keep(("grid", axis), position)

    def gridsize(self, axis: int) -> Value:
        """One part of cuda.gridsize as int64."""
        return np.int64(self.lanes.grid_dim[axis] * self.lanes.block_dim[axis])

    @cached_property
    def lane_id(self) -> Value:
        """cuda.laneid as int32."""
        return self.lanes.lane.astype(np.int32)

    # ---- arrays ----

    def shared(self, site: int, name: str, shape: tuple[int, ...], dtype: np.dtype) -> DeviceMemory:
        """Return the shared array made at this place."""
        return self._shared.get(site, name, shape, dtype, self.lanes)

    def dynamic_shared(self, name: str, dtype: np.dtype) -> DeviceMemory:
        """Return the launch's dynamic shared memory as an array of this type."""
        return self._shared.dynamic(name, dtype, self.lanes)

    def local(self, site: int, name: str, shape: tuple[int, ...], dtype: np.dtype) -> DeviceMemory:
        """Return the local array made at this place: one copy per lane."""
        array = self._own.get(site)
        if array is None:
            size = math.prod(shape)
            cells = np.full(self.lanes.count * size, poison(dtype))
            base = np.arange(self.lanes.count) * size
            array = self._own[site] = DeviceMemory(name, "local", cells, shape, self.watch, base=base)
            self.watch.new_array(array)
        return array

    def constant_array(self, site: int, name: str, array: np.ndarray) -> DeviceMemory:
        """Return an array from outside the kernel, to be read only."""
        found = self._own.get((site, id(array)))
        if found is None:
            found = self._own[site, id(array)] = open_global(name, array, self.watch, "constant")[0]
        return found

    def atomic(
        self,
        site: int,
        mask: Mask,
        name: str,
        array: DeviceMemory,
        values: tuple[Value, ...],
        index: tuple,
        wanted: bool,
    ) -> Value:
        """Update one element per active lane, one lane after another; return what each found there."""
        at = array.locate(site, mask, index)
        if self.watch.tracing and at.mask:
            self.watch.atomic(site, array, at)
        return update(name, array.cells, at, values, wanted)

    # ---- warps ----

    def syncwarp(self, site: int, mask: Mask, members: Value | None) -> None:
        """Order the memory accesses of the lanes of each warp."""
        self.watch.syncwarp(site, warps.among(mask, members))

    def shuffle(self, site: int, mask: Mask, kind: str, members: Value, value: Value, place: Value) -> Value:
        """Return another lane's value; poison where that lane does not take part."""
        self.watch.warp_function(site, mask, "shuffle")
        result, lost = warps.shuffle(warps.among(mask, members), kind, value, place)
        if lost.any():
            self.watch.note(site, "a shuffle reads from a lane that does not take part: what it gets is undefined")
            result = np.where(lost, poison(result.dtype), result)
        return result

    def vote(self, site: int, mask: Mask, kind: str, members: Value, predicate: Value) -> Value:
        """Return what the lanes of each warp say together."""
        self.watch.warp_function(site, mask, "vote")
        return warps.vote(warps.among(mask, members), kind, predicate)

    def activemask(self, mask: Mask) -> Value:
        """Return the active lanes of each warp as bits."""
        return warps.bits(mask, mask.active).astype(np.uint32)

    def lanemask_lt(self) -> Value:
        """Return the bits of the lanes before this one."""
        return (np.uint64(1) << self.lanes.lane.astype(np.uint64)).astype(np.uint32) - np.uint32(1)


class Trips:
    """The trips of a loop over range(…), whose bounds may differ from lane to lane."""

    def __init__(self, dtype: np.dtype, start: Value, stop: Value, step: Value) -> None:
        self._dtype = dtype
        self._step = step
        self._next = start
        if any(isinstance(bound, np.ndarray) for bound in (start, stop, step)):
            forward = np.where(stop > start, (stop - start + step - 1) // step, 0)
            backward = np.where(stop < start, (stop - start + step + 1) // step, 0)
            self._count = np.where(step > 0, forward, backward).astype(np.int64)
        else:
            self._count = len(range(int(start), int(stop), int(step)))
        self._trip = 0

    def more(self) -> Value:
        """Return which lanes have another trip."""
        return self._trip < self._count

    def value(self) -> Value:
        """Return the loop variable of this trip."""
        return self._next.astype(self._dtype)

    def advance(self) -> None:
        """Go on to the next trip."""
        self._trip += 1
        self._next = self._next + self._step
