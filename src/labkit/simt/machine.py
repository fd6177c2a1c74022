"""Run a compiled kernel over its grid: batches of blocks in step, or the warps of each block one after another.

A compiled kernel is a generator that stops at each barrier. In the *lockstep* schedule one generator runs all threads
of a batch of blocks. In the *interleaved* schedule every warp has its own; they run from barrier to barrier in a random
order.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.simt.batch import Batch, SharedMemory, Steps
from labkit.simt.hazards import show
from labkit.simt.lanes import Lanes, Mask, Value
from labkit.simt.program import Program
from labkit.simt.watch import Watch

# Lanes of a batch: enough to make NumPy's cost per call small, few enough for their arrays to stay in the cache.
BATCH_LANES = 8_192
BATCH_BYTES = 64 * 2**20
_TRACED_BYTES_PER_CELL = 32

Request = tuple[int, Mask, str | None, Value | None]  # site, who waits, count/and/or, predicate


@dataclass
class Run:
    """All that is needed to run a kernel once."""

    program: Program
    grid_dim: tuple[int, int, int]
    block_dim: tuple[int, int, int]
    arguments: Sequence[Any]
    dynamic_shared_bytes: int
    watch: Watch
    step_limit: int

    def lockstep(self, blocks: range | None = None) -> None:
        """Run batches of blocks, all threads of a batch in step."""
        total = self.grid_dim[0] * self.grid_dim[1] * self.grid_dim[2]
        blocks = range(total) if blocks is None else blocks
        size = self._blocks_per_batch()
        with np.errstate(all="ignore"):
            for first in range(blocks.start, blocks.stop, size):
                count = min(size, blocks.stop - first)
                lanes = Lanes(self.grid_dim, self.block_dim, first, count)
                self._run_batch(lanes)
                lanes.close()

    def _blocks_per_batch(self) -> int:
        threads = self.block_dim[0] * self.block_dim[1] * self.block_dim[2]
        cell = _TRACED_BYTES_PER_CELL if self.watch.tracing else 1
        per_block = sum(self.program.shared_bytes.values()) + self.dynamic_shared_bytes
        per_block += sum(self.program.local_bytes.values()) * threads
        return max(1, min(BATCH_LANES // threads, BATCH_BYTES // (per_block * cell + 1)))

    def _run_batch(self, lanes: Lanes) -> None:
        batch = Batch(
            lanes, SharedMemory(lanes.blocks, self.dynamic_shared_bytes, self.watch), self._steps(), self.watch
        )
        kernel = self.program.entry(batch, lanes.all, *self.arguments)
        answer = None
        while True:
            try:
                request = kernel.send(answer)
            except StopIteration:
                return
            answer = self._meet(lanes, [(batch, request)])[0]

    def interleaved(self, seed: int) -> None:
        """Run one block after another, each warp by warp between barriers, in a random order."""
        order = np.random.default_rng(seed)
        total = self.grid_dim[0] * self.grid_dim[1] * self.grid_dim[2]
        with np.errstate(all="ignore"):
            for block in order.permutation(total):
                self._run_block(int(block), order)

    def _run_block(self, block: int, order: np.random.Generator) -> None:
        whole = Lanes(self.grid_dim, self.block_dim, block, 1)
        shared, steps = SharedMemory(1, self.dynamic_shared_bytes, self.watch), self._steps()
        batches, kernels = [], []
        for warp in range(whole.warps):
            batch = Batch(Lanes(self.grid_dim, self.block_dim, block, 1, warp), shared, steps, self.watch)
            batches.append(batch)
            kernels.append(self.program.entry(batch, batch.lanes.all, *self.arguments))
        answers: list[Any] = [None] * len(kernels)
        running = set(range(len(kernels)))
        while running:
            requests: list[Request | None] = [None] * len(kernels)
            for warp in order.permutation(sorted(running)):
                requests[warp] = _advance(kernels[warp], answers[warp])
            running = {warp for warp, request in enumerate(requests) if request is not None}
            if running:
                answers = self._meet(whole, list(zip(batches, requests, strict=True)))

    def _steps(self) -> Steps:
        return Steps(self.step_limit, self.watch)

    # ---- barriers ----

    def _meet(self, lanes: Lanes, parts: list[tuple[Batch, Request | None]]) -> list[Any]:
        """Complete a barrier: see who is missing, order the memory accesses, and answer count/and/or.

        `parts` are the batches that make up `lanes`: one in lockstep, one per warp when interleaved (None: has ended).
        """
        waiting = _join([b.none.active if r is None else r[1].active for b, r in parts])
        if not waiting.any():
            return [np.int32(0)] * len(parts)
        live = ~_join([b.exited.active for b, _ in parts])
        sites = sorted({request[0] for _, request in parts if request is not None and request[1]})
        by_block = waiting.reshape(lanes.blocks, -1).any(axis=1)
        missing = live & ~waiting & by_block[lanes.slot]
        if missing.any() or len(sites) > 1:
            self._report_divergence(lanes, parts, waiting, missing, sites)
        elif not live.all():
            self._note_returned(lanes, live, by_block, sites[0])
        self.watch.barrier(sites[0], lanes, by_block)
        for batch, _ in parts:
            batch.lanes.barrier_time = lanes.barrier_time
        return self._answers(lanes, parts, waiting)

    def _report_divergence(
        self,
        lanes: Lanes,
        parts: list[tuple[Batch, Request | None]],
        waiting: np.ndarray,
        missing: np.ndarray,
        sites: list[int],
    ) -> None:
        line_of = self.program.sites
        for site in sites:
            here = _join([b.none.active if r is None or r[0] != site else r[1].active for b, r in parts])
            absent = missing | (waiting & ~here)
            where = "others of its block do not reach it"
            if absent.any():
                thread = self.watch.who(lanes, int(absent.argmax())).thread
                others = [line_of[other].line for other in sites if other != site]
                where = f"thread {show(thread)} of its block does not reach it"
                if others:
                    where = f"thread {show(thread)} of its block waits at another one, in line {others[0]}"
            self.watch.divergent_barrier(site, lanes, here, absent, where)

    def _note_returned(self, lanes: Lanes, live: np.ndarray, by_block: np.ndarray, site: int) -> None:
        if (~live & by_block[lanes.slot]).any():
            self.watch.note(
                site, "threads that returned earlier do not take part in this barrier: a GPU allows it today"
            )

    def _answers(self, lanes: Lanes, parts: list[tuple[Batch, Request | None]], waiting: np.ndarray) -> list[Any]:
        """Return what syncthreads_count, _and or _or gives in each batch: int32."""
        kinds = {request[2] for _, request in parts if request is not None} - {None}
        if not kinds:
            return [None] * len(parts)
        true = [b.none.active if r is None or r[3] is None else r[1].spread(r[3]) & r[1].active for b, r in parts]
        count = _join(true).reshape(lanes.blocks, -1).sum(axis=1)
        present = waiting.reshape(lanes.blocks, -1).sum(axis=1)
        results = {"count": count, "and": count == present, "or": count > 0, None: count}
        return [
            None if request is None else results[request[2]].astype(np.int32)[batch.lanes.slot]
            for batch, request in parts
        ]


def _advance(kernel: Generator, answer: Any) -> Request | None:
    """Run a kernel to its next barrier; None when it has ended."""
    try:
        return kernel.send(answer)
    except StopIteration:
        return None


def _join(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
