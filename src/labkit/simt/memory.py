"""Arrays as a kernel sees them: every lane's index becomes the place of a cell in one flat buffer, checked first.

Global arrays are the caller's own memory; a shared array has one copy per block of the batch, a local one per lane, one
after another in the same buffer (`base` says where a lane's copy starts).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from labkit.simt.lanes import Mask, Value

if TYPE_CHECKING:
    from labkit.simt.races import Shadow


def poison(dtype: np.dtype) -> np.generic:
    """Return what a read of nothing gives: NaN, or an integer that nobody would take for a result.

    >>> poison(np.dtype("float32")), poison(np.dtype("int8"))
    (np.float32(nan), np.int8(-128))
    """
    if dtype.kind == "f":
        return dtype.type("nan")
    if dtype.kind == "b":
        return np.bool_(True)
    info = np.iinfo(dtype)
    return dtype.type(info.min if info.min else info.max)


@dataclass
class Address:
    """Where the lanes of one access go: `start + shift`, and the lanes that may go there.

    `start` (one cell per lane, or None when all lanes share one cell) is kept from one execution of a line to the next
    as long as the same index arrays come in, so that what is derived from it can be kept, too.
    """

    start: np.ndarray | None
    shift: int
    mask: Mask
    bad: np.ndarray | None = None

    @property
    def cell(self) -> Value:
        """The flat cell of each lane; outside the mask any cell of the buffer."""
        if self.start is None:
            return np.int64(self.shift)
        return self.start + self.shift if self.shift else self.start


class Listener(Protocol):
    """Who an array tells what happens to it; the classes are in watch.py and observer.py."""

    tracing: bool

    def load(self, site: int, array: DeviceMemory, at: Address) -> None:
        """Each active lane is about to read a cell."""

    def store(self, site: int, array: DeviceMemory, at: Address, value: Value) -> None:
        """Each active lane is about to write its value to a cell."""

    def negative_index(self, site: int, array: DeviceMemory) -> None:
        """Some lanes use a negative index, which counts from the end."""

    def out_of_bounds(
        self, site: int, array: DeviceMemory, mask: Mask, bad: np.ndarray, index: tuple[Value, ...]
    ) -> None:
        """Some lanes use an index that the array does not have."""


class DeviceMemory:
    """One array in one memory space, for the lanes of a batch; what compiled kernels load from and store to."""

    def __init__(
        self,
        name: str,
        space: str,
        cells: np.ndarray,
        shape: Sequence[int],
        watch: Listener,
        *,
        strides: Sequence[int] | None = None,
        origin: int = 0,
        base: np.ndarray | None = None,
    ) -> None:
        self.name = name
        self.space = space
        self.cells = cells
        self.shape = tuple(np.int64(n) for n in shape)
        self.size = np.int64(math.prod(shape))
        self.strides = tuple(strides) if strides is not None else _c_strides(shape)
        self.origin = origin  # the cell of element 0, when strides run backwards
        self.base = base
        self.watch = watch
        self.shadow: Shadow | None = None  # who touched which cell, while hazards are looked for
        self.shadow_offset = 0
        self.shadow_units = 1  # cells of the shadow for each element
        self._starts: dict[int, tuple[tuple[Value, ...], np.ndarray]] = {}

    def load(self, site: int, mask: Mask, *index: Value) -> Value:
        """Return the element at an index for every lane; poison where the index is out of bounds."""
        at = self.locate(site, mask, index)
        if self.watch.tracing:
            self.watch.load(site, self, at)
        value = self.cells.take(at.cell, mode="clip")
        return value if at.bad is None else np.where(at.bad, poison(self.cells.dtype), value)

    def store(self, site: int, mask: Mask, value: Value, *index: Value) -> None:
        """Store each active lane's value; among lanes that share an element the last one wins."""
        at = self.locate(site, mask, index)
        if not at.mask:
            return
        if self.watch.tracing:
            self.watch.store(site, self, at, value)
        cell = at.cell
        if at.mask.full and isinstance(cell, np.ndarray):
            self.cells[cell] = value
        elif isinstance(cell, np.ndarray):
            active = at.mask.active
            self.cells[cell[active]] = value[active] if isinstance(value, np.ndarray) else value
        else:
            last = len(at.mask.active) - 1 - int(at.mask.active[::-1].argmax())
            self.cells[cell] = value[last] if isinstance(value, np.ndarray) else value

    def index_of(self, cell: int) -> tuple[int, ...]:
        """Return the index of a cell, counted from the start of its block's or lane's copy."""
        index = [0] * len(self.shape)
        for axis in sorted(range(len(self.shape)), key=lambda axis: -abs(self.strides[axis])):
            stride, last = self.strides[axis], int(self.shape[axis]) - 1
            if stride:
                place = min(cell // abs(stride), last)
                cell -= place * abs(stride)
                index[axis] = place if stride > 0 else last - place
        return tuple(index)

    def locate(self, site: int, mask: Mask, index: tuple[Value, ...]) -> Address:
        """Return the cells that an index means, after the bounds check."""
        shift = self.origin
        varying: list = []
        for i, extent, stride in zip(index, self.shape, self.strides, strict=True):
            if isinstance(i, np.ndarray):
                varying += (i, stride, extent)
            elif 0 <= i < extent:
                shift += int(i) * stride
            else:
                return self._locate_slowly(site, mask, index)
        if not varying and self.base is None:
            return Address(None, shift, mask)
        kept = self._starts.get(site)
        if kept is not None and len(kept[0]) == len(varying) and all(map(_same, kept[0], varying)):
            return Address(kept[1], shift, mask)
        start = self.base
        for i, stride, extent in zip(varying[::3], varying[1::3], varying[2::3], strict=True):
            place = i.astype(np.int64, copy=False)
            if place.view(np.uint64).max() >= extent:
                return self._locate_slowly(site, mask, index)
            place = place if stride == 1 else place * stride
            start = place if start is None else start + place
        self._starts[site] = (tuple(varying), start)
        return Address(start, shift, mask)

    def _locate_slowly(self, site: int, mask: Mask, index: tuple[Value, ...]) -> Address:
        """The same, lane by lane, for an index that some lane takes out of bounds or below zero."""
        start = np.zeros(len(mask.active), np.int64) if self.base is None else self.base
        bad = np.zeros(len(mask.active), bool)
        for i, extent, stride in zip(index, self.shape, self.strides, strict=True):
            place = mask.spread(i)
            # An unsigned index beyond 2**63 must not turn into a small negative one, which would wrap around.
            beyond = place >= np.uint64(2**63) if place.dtype == np.uint64 else False
            place = place.astype(np.int64)
            negative = (place < 0) & ~np.asarray(beyond)
            if (negative & mask.active).any():
                self.watch.negative_index(site, self)
                place = np.where(negative, place + extent, place)
            bad |= (place < 0) | (place >= extent)
            start = start + np.clip(place, 0, max(extent - 1, 0)) * stride
        bad &= mask.active
        if not bad.any():
            return Address(start, self.origin, mask)
        self.watch.out_of_bounds(site, self, mask, bad, index)
        return Address(start, self.origin, mask.split(~bad)[0], bad)


def _same(a: object, b: object) -> bool:
    return a is b or (isinstance(a, int | np.integer) and a == b)


def _c_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def open_global(name: str, array: np.ndarray, watch: Listener, space: str = "global") -> tuple[DeviceMemory, bool]:
    """Return a caller's array as kernel memory, and whether it is a copy that must be written back.

    A view keeps its strides: its cells are all elements between its first and its last address.
    """
    size = array.itemsize
    if array.size == 0:
        return DeviceMemory(name, space, np.zeros(1, array.dtype), array.shape, watch), False
    if array.flags.c_contiguous:
        return DeviceMemory(name, space, array.reshape(-1), array.shape, watch), False
    if any(stride % size for stride in array.strides):
        copy = np.ascontiguousarray(array)
        return DeviceMemory(name, space, copy.reshape(-1), array.shape, watch), True
    steps = [stride // size for stride in array.strides]
    reach = [step * (extent - 1) for step, extent in zip(steps, array.shape, strict=True)]
    lowest, highest = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    corner = array[tuple(slice(-1, None) if step < 0 else slice(0, 1) for step in steps)]
    cells = np.lib.stride_tricks.as_strided(corner, (highest - lowest + 1,), (size,), writeable=array.flags.writeable)
    return DeviceMemory(name, space, cells, array.shape, watch, strides=steps, origin=-lowest), False


def copy_with_strides(array: np.ndarray) -> np.ndarray:
    """Return a copy of an array whose elements lie as far apart as the original's."""
    if array.flags.c_contiguous or array.flags.f_contiguous or array.size == 0:
        return array.copy(order="K")
    reach = [stride * (extent - 1) for stride, extent in zip(array.strides, array.shape, strict=True)]
    lowest, highest = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    buffer = np.empty(highest - lowest + array.itemsize, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, buffer, -lowest, array.strides)
    copy[...] = array
    return copy
