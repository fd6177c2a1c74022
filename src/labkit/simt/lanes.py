"""Lanes and masks: who the threads of a batch are, and which of them are active.

A batch is a number of whole blocks whose threads run together, one lane each. A value in the compiled kernel is either
one NumPy scalar, the same for all lanes, or an array with one element per lane. Values are never changed in place.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

WARP_SIZE = 32

Value = np.ndarray | np.generic


class Mask:
    """The active lanes of a batch. True if any lane is active. Immutable, so what it counts is worked out once."""

    def __init__(self, active: np.ndarray, count: int, lanes: Lanes) -> None:
        self.active = active
        self.count = count
        self.full = count == len(active)
        self.lanes = lanes

    def __bool__(self) -> bool:
        return self.count > 0

    @cached_property
    def per_warp(self) -> np.ndarray:
        """Active lanes in each warp of the batch."""
        return self.lanes.by_warp(self.active, False).sum(axis=1)

    @cached_property
    def per_block(self) -> np.ndarray:
        """Active lanes in each block of the batch."""
        return self.active.reshape(self.lanes.blocks, -1).sum(axis=1)

    @cached_property
    def warps(self) -> int:
        """Warps with at least one active lane."""
        return self.lanes.warps if self.full else int(np.count_nonzero(self.per_warp))

    def split(self, condition: Value) -> tuple[Mask, Mask]:
        """Return the lanes where the condition holds and those where it does not."""
        if not isinstance(condition, np.ndarray):
            return (self, self.lanes.none) if condition else (self.lanes.none, self)
        taken = condition if self.full else condition & self.active
        count = int(np.count_nonzero(taken))
        if count == self.count:
            return self, self.lanes.none
        if count == 0:
            return self.lanes.none, self
        left = ~condition if self.full else self.active & ~condition
        return Mask(taken, count, self.lanes), Mask(left, self.count - count, self.lanes)

    def __and__(self, other: Mask) -> Mask:
        if self is other or other.full or not self:
            return self
        return other if self.full else self._with(self.active & other.active)

    def __or__(self, other: Mask) -> Mask:
        if not other or self.full:
            return self
        return other if not self or other.full else self._with(self.active | other.active)

    def __sub__(self, other: Mask) -> Mask:
        if not other or not self:
            return self
        if self is other:
            return self.lanes.none
        return self._with(self.active & ~other.active)

    def _with(self, active: np.ndarray) -> Mask:
        return Mask(active, int(np.count_nonzero(active)), self.lanes)

    def merge(self, new: Value, old: Value) -> Value:
        """Return new in the active lanes and old in the others."""
        if self.full:
            return new
        return np.where(self.active, new, old) if self else old

    def spread(self, value: Value) -> np.ndarray:
        """Return a value as an array with one element per lane."""
        return value if isinstance(value, np.ndarray) else np.full(len(self.active), value)


class Lanes:
    """Who the lanes of a batch are: whole blocks one after another, or one warp of one block.

    `first_block` and `blocks` number the blocks in launch order (x fastest); `warp` picks a single warp.
    """

    def __init__(
        self,
        grid_dim: tuple[int, int, int],
        block_dim: tuple[int, int, int],
        first_block: int,
        blocks: int,
        warp: int | None = None,
    ) -> None:
        self.grid_dim = grid_dim
        self.block_dim = block_dim
        self.first_block = first_block
        self.blocks = blocks
        self.block_size = block_dim[0] * block_dim[1] * block_dim[2]
        self.first_thread = 0 if warp is None else warp * WARP_SIZE
        self.threads = self.block_size if warp is None else min(WARP_SIZE, self.block_size - self.first_thread)
        self.warps_per_block = -(-self.threads // WARP_SIZE)
        self.warps = blocks * self.warps_per_block
        self.count = blocks * self.threads
        self.all = Mask(np.ones(self.count, bool), self.count, self)
        self.none = Mask(np.zeros(self.count, bool), 0, self)
        # When each lane last passed a barrier, and last synchronised in its warp: one time for all, or one per lane.
        self.barrier_time: int | np.ndarray = 0
        self.warp_time: np.ndarray | None = None

    def close(self) -> None:
        """Let go of the masks, which point back here, so that a batch's memory is free as soon as it is done."""
        self.all = self.none = None

    @cached_property
    def thread(self) -> np.ndarray:
        """Each lane's thread number in its block (x fastest)."""
        return np.tile(np.arange(self.first_thread, self.first_thread + self.threads), self.blocks)

    @cached_property
    def slot(self) -> np.ndarray:
        """Each lane's block, counted from 0 within this batch."""
        return np.repeat(np.arange(self.blocks), self.threads)

    @cached_property
    def block(self) -> np.ndarray:
        """Each lane's block, counted over the whole grid (x fastest)."""
        return self.slot + self.first_block

    @property
    def first_thread_in_grid(self) -> int:
        """The number over the whole grid of lane 0; the other lanes follow one by one."""
        return self.first_block * self.block_size + self.first_thread

    @cached_property
    def thread_in_grid(self) -> np.ndarray:
        """Each lane's thread number over the whole grid: block times block size plus thread."""
        return self.first_thread_in_grid + self.numbers

    @cached_property
    def numbers(self) -> np.ndarray:
        """The lanes' places in the batch: 0, 1, 2, …"""
        return np.arange(self.count)

    @cached_property
    def warp(self) -> np.ndarray:
        """Each lane's warp, counted from 0 within this batch."""
        return self.slot * self.warps_per_block + (self.thread - self.first_thread) // WARP_SIZE

    @cached_property
    def lane(self) -> np.ndarray:
        """Each lane's place in its warp, 0 to 31."""
        return self.thread % WARP_SIZE

    @cached_property
    def first_warp(self) -> int:
        """The number over the whole grid of this batch's first warp."""
        return self.first_block * -(-self.block_size // WARP_SIZE) + self.first_thread // WARP_SIZE

    def by_warp(self, value: np.ndarray, fill: object) -> np.ndarray:
        """Return lane values as an array of shape (warps, 32); places without a thread hold fill."""
        if self.threads % WARP_SIZE == 0:
            return value.reshape(-1, WARP_SIZE)
        rows = np.full((self.blocks, self.warps_per_block * WARP_SIZE), fill, value.dtype)
        rows[:, : self.threads] = value.reshape(self.blocks, self.threads)
        return rows.reshape(-1, WARP_SIZE)

    def thread_index(self, axis: int) -> Value:
        """Return threadIdx along axis 0, 1 or 2 (x, y, z) as int32."""
        if self.block_dim[axis] == 1:
            return np.int32(0)
        return _along(self.thread, self.block_dim, axis)

    def block_index(self, axis: int) -> Value:
        """Return blockIdx along axis 0, 1 or 2 (x, y, z) as int32."""
        if self.grid_dim[axis] == 1:
            return np.int32(0)
        if self.blocks == 1:
            return np.int32(coordinates(self.first_block, self.grid_dim)[axis])
        return _along(self.block, self.grid_dim, axis)


def _along(number: np.ndarray, dims: tuple[int, int, int], axis: int) -> np.ndarray:
    below = int(np.prod(dims[:axis], dtype=np.int64))
    return (number // below % dims[axis]).astype(np.int32)


def coordinates(number: int, dims: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the (x, y, z) of a block in its grid or a thread in its block.

    >>> coordinates(5, (4, 2, 1))
    (1, 1, 0)
    """
    return number % dims[0], number // dims[0] % dims[1], number // (dims[0] * dims[1])
