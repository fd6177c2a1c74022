"""Find races: for every cell, who wrote it last, who read it since, and what has ordered them.

Time advances by one with each access of a batch. A cell keeps its last write and two reads (the first and a later one
by a thread as far away as possible) as one number each: time, thread and whether it was atomic. Two accesses of a cell
are ordered if one thread made both, if the block passed a barrier in between, or if both lanes of one warp took part
in a syncwarp in between. Nothing orders two blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labkit.simt.lanes import WARP_SIZE, Lanes

_THREAD_BITS = 33
_TIME_SHIFT = _THREAD_BITS + 1
_THREAD_MASK = (1 << _THREAD_BITS) - 1


@dataclass(frozen=True)
class Conflict:
    """Unordered pairs found at one access: who is at it now, who was there before, and when."""

    what: str  # for example "read after write"
    lanes: np.ndarray  # lanes of the batch
    earlier_thread: np.ndarray  # threads numbered over the grid
    earlier_time: np.ndarray


class Shadow:
    """What is known about each cell of one array, in global, shared or local memory."""

    def __init__(self, cells: int, space: str) -> None:
        self.crosses_blocks = space == "global"
        self.is_private = space == "local"  # one thread's own: nothing to race with
        self.starts_empty = space != "global"
        self.write = np.zeros(cells, np.int64)
        self.first_read = np.zeros(0 if self.is_private else cells, np.int64)
        self.later_read = np.zeros(0 if self.is_private else cells, np.int64)
        self.other_atomic: np.ndarray | None = None  # beside `write`: an atomic by another thread than the last one's

    def never_written(self, access: Access) -> np.ndarray:
        """Return which cells of an access nothing has written yet."""
        return self.write.take(access.cells) == 0

    def read(self, access: Access) -> list[Conflict]:
        """Note a read; return the writes that it races with."""
        if self.is_private:
            return []
        conflicts = self._unordered(access, self.write, "read after write")
        if self.other_atomic is not None:
            conflicts += self._unordered(access, self.other_atomic, "read after write")
        self._note_read(access)
        return conflicts

    def _note_read(self, access: Access) -> None:
        """Keep, of the reads that nothing has ordered before this one, the first and the farthest later one."""
        cells, keys = access.cells, access.keys
        first, later = self.first_read.take(cells), self.later_read.take(cells)
        first_is_settled = access.settled(first, self.crosses_blocks)
        later_is_settled = access.settled(later, self.crosses_blocks) if self.crosses_blocks else first_is_settled
        if first_is_settled.all() and later_is_settled.all():
            # Assignment goes in order, so one way round keeps the first lane on a cell and the other way the last.
            self.first_read[cells[::-1]] = keys[::-1]
            self.later_read[cells] = keys
            return
        reader, first_reader = thread_of(keys), thread_of(first)
        farther = access.distance(reader, first_reader) >= access.distance(thread_of(later), first_reader)
        replace_first = first_is_settled | (reader == first_reader)
        replace_later = later_is_settled | (~replace_first & farther)
        self.first_read[cells[replace_first][::-1]] = keys[replace_first][::-1]
        self.later_read[cells[replace_later]] = keys[replace_later]

    def store(self, access: Access) -> tuple[list[Conflict], list[Conflict]]:
        """Note a write; return the reads and the writes that it races with."""
        if self.is_private:
            self.write[access.cells] = access.keys
            return [], []
        after_reads = self._unordered(access, self.first_read, "write after read")
        after_reads += self._unordered(access, self.later_read, "write after read", beside=self.first_read)
        after_writes = self._unordered(access, self.write, "write after write")
        if self.other_atomic is not None and not access.atomic:
            after_writes += self._unordered(access, self.other_atomic, "write after write")
        cells, keys = access.cells, access.keys
        if access.atomic:
            self._note_atomics(access)
        self.write[cells] = keys
        if not access.atomic:
            winner = self.write.take(cells)
            lost = np.flatnonzero(winner != keys)
            if len(lost):
                after_writes.append(
                    Conflict("write after write", access.lanes[lost], thread_of(winner[lost]), time_of(winner[lost]))
                )
        return after_reads, after_writes

    def _note_atomics(self, access: Access) -> None:
        """Remember one atomic by another thread than the last one's, for the plain access that may follow."""
        if self.other_atomic is None:
            self.other_atomic = np.zeros(len(self.write), np.int64)
        cells, keys = access.cells, access.keys
        before = self.write.take(cells)
        keep = (before & 1 == 1) & ~access.settled(before, self.crosses_blocks) & (thread_of(before) != thread_of(keys))
        self.other_atomic[cells[::-1]] = keys[::-1]
        self.other_atomic[cells[keep]] = before[keep]

    def _unordered(
        self, access: Access, shadow: np.ndarray, what: str, beside: np.ndarray | None = None
    ) -> list[Conflict]:
        earlier = shadow.take(access.cells)
        open_ = ~access.settled(earlier, self.crosses_blocks)
        if not open_.any():
            return []
        open_ &= thread_of(earlier) != access.threads
        if access.atomic:
            open_ &= earlier & 1 == 0
        if beside is not None:
            open_ &= earlier != beside.take(access.cells)
        places = np.flatnonzero(open_)
        places = places[~access.ordered_in_warp(earlier, places)]
        if not len(places):
            return []
        earlier = earlier[places]
        return [Conflict(what, access.lanes[places], thread_of(earlier), time_of(earlier))]


def thread_of(key: np.ndarray) -> np.ndarray:
    """The thread in an access key, numbered over the grid."""
    return key >> 1 & _THREAD_MASK


def time_of(key: np.ndarray) -> np.ndarray:
    """The time in an access key."""
    return key >> _TIME_SHIFT


class Access:
    """One access by the active lanes of a batch: their cells, and their keys (time, thread, atomic)."""

    def __init__(self, lanes: Lanes, which: np.ndarray | None, cells: np.ndarray, time: int, *, atomic: bool) -> None:
        self.batch = lanes
        self.cells = cells
        self.atomic = atomic
        self.lanes = lanes.numbers if which is None else which
        self.threads = lanes.thread_in_grid if which is None else lanes.thread_in_grid[which]
        self.keys = (self.threads << 1) + (time << _TIME_SHIFT | int(atomic))
        barrier = lanes.barrier_time
        barrier = barrier if isinstance(barrier, int) or which is None else barrier[which]
        self._threshold = (barrier + 1) << _TIME_SHIFT

    def settled(self, earlier: np.ndarray, crosses_blocks: bool) -> np.ndarray:
        """Which earlier accesses a barrier has ordered before this one (or never were)."""
        before = earlier < self._threshold
        if not crosses_blocks or not before.any():
            return before
        size = self.batch.block_size
        return before & ((earlier == 0) | (thread_of(earlier) // size == self.threads // size))

    def distance(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """How far apart threads are: 0 the same, 1 in one warp, 2 in one block, 3 in different blocks."""
        size = self.batch.block_size
        same_block = a // size == b // size
        same_warp = same_block & (a % size // WARP_SIZE == b % size // WARP_SIZE)
        return np.where(a == b, 0, np.where(same_warp, 1, np.where(same_block, 2, 3)))

    def ordered_in_warp(self, earlier: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Which of these pairs a syncwarp has ordered: both lanes took part in one after the earlier access."""
        times = self.batch.warp_time
        if times is None or not len(places):
            return np.zeros(len(places), bool)
        lane, time = thread_of(earlier[places]) - self.batch.first_thread_in_grid, time_of(earlier[places])
        near = self.distance(self.threads[places], thread_of(earlier[places])) == 1
        lane = np.where(near, lane, 0)
        return near & (times[lane] >= time) & (times[self.lanes[places]] >= time)
