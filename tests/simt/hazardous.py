"""Kernels that have a hazard, and near misses that do not: at least five of each for every kind and scope.

A comment `# <-- ` marks the line that a hazard must name: the later access, or the place of the fault.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.simt import cuda

N = 32
TWO_N = 2 * N  # a sum or product inside a kernel is no constant to Numba
ALL = 0xFFFFFFFF


@dataclass(frozen=True)
class Suspect:
    """A kernel with its launch, and the hazard that it has (kind, scope) or narrowly misses."""

    kernel: Callable[..., None]
    kind: str
    scope: str | None
    guilty: bool
    grid: Any
    block: Any
    arguments: tuple[Any, ...]
    shared_bytes: int = 0

    @property
    def line(self) -> int | None:
        """The marked line, counted within this file."""
        lines, start = inspect.getsourcelines(self.kernel)
        marked = [start + offset for offset, line in enumerate(lines) if "# <--" in line]
        return marked[0] if marked else None

    def fresh(self) -> tuple[Any, ...]:
        """Copies of the arguments."""
        return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments)


SUSPECTS: list[Suspect] = []


def numbers(*shape: int, dtype: Any = np.int64) -> np.ndarray:
    """Distinct whole numbers, so that a wrong order gives wrong values."""
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def zeros(*shape: int) -> np.ndarray:
    """Cleared 64-bit integers."""
    return np.zeros(shape, np.int64)


def has(kind: str, scope: str | None, grid: Any, block: Any, *arguments: Any) -> Callable[[Callable], Callable]:
    """The decorated kernel has this hazard."""
    return _register(kind, scope, True, grid, block, arguments)


def misses(kind: str, scope: str | None, grid: Any, block: Any, *arguments: Any) -> Callable[[Callable], Callable]:
    """The decorated kernel narrowly misses this hazard and has no other."""
    return _register(kind, scope, False, grid, block, arguments)


def _register(kind: str, scope: str | None, guilty: bool, grid: Any, block: Any, arguments: tuple) -> Callable:
    def register(kernel: Callable[..., None]) -> Callable[..., None]:
        SUSPECTS.append(Suspect(kernel, kind, scope, guilty, grid, block, arguments))
        return kernel

    return register


# ---- race, scope warp -----------------------------------------------------------------------------------------------


@has("race", "warp", 1, N, numbers(N), zeros(N))
def neighbours_of_a_warp_without_a_barrier(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    y[t] = s[N - 1 - t]  # <-- read after write


@has("race", "warp", 1, N, numbers(N), zeros(N))
def shift_in_place_in_one_statement(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    s[t] = s[(t + 1) % N]  # <-- write after read
    y[t] = s[t]


@has("race", "warp", 1, N, numbers(N), zeros(1))
def warp_reduction_that_trusts_lockstep(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    step = 16
    while step > 0:
        if t < step:
            s[t] += s[t + step]  # <-- read after write of the level before
        step //= 2
    if t == 0:
        y[0] = s[0]


@has("race", "warp", 1, N, zeros(N))
def two_lanes_store_different_values(y):
    t = cuda.threadIdx.x
    y[t // 2] = t  # <-- write after write


@has("race", "warp", 1, N, zeros(N), zeros(N))
def global_neighbour(y, z):
    t = cuda.threadIdx.x
    y[t] = t * t
    z[t] = y[(t + 1) % N]  # <-- read after write, in global memory


@has("race", "warp", 1, N, numbers(N), zeros(N))
def second_barrier_forgotten(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    for i in range(2):
        s[t] = x[t] + i  # <-- write after read of the round before
        cuda.syncthreads()
        y[t] += s[N - 1 - t]


@has("race", "warp", 1, N, numbers(N), zeros(N))
def syncwarp_in_the_wrong_place(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    cuda.syncwarp()
    s[t] = x[t]
    y[t] = s[t ^ 1]  # <-- read after write


@misses("race", "warp", 1, N, numbers(N), zeros(N))
def neighbours_of_a_warp_with_a_barrier(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[N - 1 - t]


@misses("race", "warp", 1, N, numbers(N), zeros(N))
def shift_through_a_variable(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    v = s[(t + 1) % N]
    cuda.syncwarp()
    s[t] = v
    y[t] = s[t]


@misses("race", "warp", 1, N, zeros(N))
def two_lanes_store_the_same_value(y):
    t = cuda.threadIdx.x
    y[t // 2] = t // 2


@misses("race", "warp", 1, N, numbers(N), zeros(N))
def own_cell_only(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    s[t] = s[t] + 1
    y[t] = s[t]


@misses("race", "warp", 1, N, zeros(N))
def lanes_meet_only_in_atomics(y):
    t = cuda.threadIdx.x
    cuda.atomic.add(y, t // 2, t)
    cuda.atomic.max(y, t // 2, t)


@misses("race", "warp", 1, N, numbers(N), zeros(N))
def shuffle_instead_of_memory(x, y):
    t = cuda.threadIdx.x
    y[t] = cuda.shfl_xor_sync(ALL, x[t], 1)


@misses("race", "warp", 1, N, numbers(N), zeros(N))
def interleaved_cells(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[2 * t] = x[t]
    s[2 * t + 1] = -x[t]
    y[t] = s[2 * t] - s[2 * t + 1]


# ---- race, scope block ----------------------------------------------------------------------------------------------


@has("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def other_warp_without_a_barrier(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    y[t] = s[(t + N) % (2 * N)]  # <-- read after write


@has("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def syncwarp_does_not_order_two_warps(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    y[t] = s[(t + N) % (2 * N)]  # <-- read after write


@has("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def overwritten_while_the_other_warp_reads(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[(t + N) % (2 * N)]
    s[t] = 0  # <-- write after read


@has("race", "block", 1, 2 * N, zeros(N))
def two_warps_store_to_one_row(y):
    t = cuda.threadIdx.x
    y[t % N] = t  # <-- write after write


@has("race", "block", 1, 2 * N, zeros(2 * N), zeros(2 * N))
def global_memory_of_the_other_warp(y, z):
    t = cuda.threadIdx.x
    y[t] = t
    z[t] = y[(t + N) % (2 * N)]  # <-- read after write, in global memory


@has("race", "block", 1, 2 * N, numbers(2 * N), zeros(1))
def block_reduction_with_one_barrier_missing(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    if t < N:
        s[t] += s[t + N]  # <-- read after write
    cuda.syncthreads()
    if t == 0:
        for i in range(N):
            y[0] += s[i]


@misses("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def other_warp_with_a_barrier(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    y[t] = s[(t + N) % (2 * N)]


@misses("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def syncwarp_orders_lanes_of_one_warp(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncwarp()
    y[t] = s[t ^ 1]


@misses("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def double_buffer_needs_one_barrier_a_round(x, y):
    s = cuda.shared.array((2, TWO_N), np.int64)
    t = cuda.threadIdx.x
    for i in range(4):
        s[i % 2, t] = x[t] * i
        cuda.syncthreads()
        y[t] += s[i % 2, (t + N) % (2 * N)]


@misses("race", "block", 1, 2 * N, zeros(N))
def two_warps_add_atomically(y):
    cuda.atomic.add(y, cuda.threadIdx.x % N, cuda.threadIdx.x)


@misses("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def two_arrays_on_one_line(x, y):
    s, r = cuda.shared.array(TWO_N, np.int64), cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    cuda.syncthreads()
    r[t] = s[(t + N) % (2 * N)]
    y[t] = r[t]


@misses("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def counting_barrier_is_a_barrier(x, y):
    s = cuda.shared.array(TWO_N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t]
    n = cuda.syncthreads_count(np.int32(t))
    y[t] = s[(t + N) % (2 * N)] + n


@misses("race", "block", 1, 2 * N, numbers(2 * N), zeros(2 * N))
def everybody_reads_one_cell(x, y):
    y[cuda.threadIdx.x] = x[0] + x[5]


# ---- race, scope grid -----------------------------------------------------------------------------------------------


@has("race", "grid", 2, N, zeros(2 * N), zeros(2 * N))
def a_barrier_does_not_order_blocks(y, z):
    g = cuda.grid(1)
    y[g] = g
    cuda.syncthreads()
    z[g] = y[2 * N - 1 - g]  # <-- read after write


@has("race", "grid", 4, 1, zeros(1))
def counter_without_atomics(y):
    y[0] += cuda.blockIdx.x + 1  # <-- read, write and write again


@has("race", "grid", 3, 1, zeros(1))
def last_block_wins(y):
    y[0] = cuda.blockIdx.x  # <-- write after write


@has("race", "grid", 2, N, numbers(2 * N + 1))
def stencil_in_place_across_blocks(x):
    g = cuda.grid(1)
    v = x[g + 1]
    cuda.syncthreads()
    x[g] = v  # <-- the first cell of block 1 is read by block 0


@has("race", "grid", 4, N, zeros(1), zeros(4 * N))
def plain_read_of_an_atomic_counter(y, z):
    cuda.atomic.add(y, 0, 1)
    z[cuda.grid(1)] = y[0]  # <-- read while other blocks add


@has("race", "grid", (2, 2), (4, 4), zeros(8, 8), zeros(8, 8))
def transposed_read_across_blocks(a, b):
    i, j = cuda.grid(2)
    a[i, j] = i * 8 + j
    cuda.syncthreads()
    b[i, j] = a[j, i]  # <-- read after write


@misses("race", "grid", 2, N, zeros(2 * N), zeros(2 * N))
def blocks_stay_in_their_part(y, z):
    g = cuda.grid(1)
    y[g] = g
    cuda.syncthreads()
    z[g] = y[cuda.blockIdx.x * N + N - 1 - cuda.threadIdx.x]


@misses("race", "grid", 4, 8, zeros(1))
def counter_with_atomics(y):
    cuda.atomic.add(y, 0, cuda.blockIdx.x + 1)


@misses("race", "grid", 4, 8, zeros(1))
def all_blocks_raise_the_same_flag(y):
    y[0] = 1


@misses("race", "grid", 2, N, numbers(2 * N + 1), zeros(2 * N))
def stencil_out_of_place(x, y):
    g = cuda.grid(1)
    y[g] = x[g + 1] - x[g]


@misses("race", "grid", 4, 8, zeros(33))
def tickets(y):
    ticket = cuda.atomic.add(y, 32, 1)
    y[ticket] = ticket


@misses("race", "grid", 3, N, numbers(N), zeros(3 * N))
def shared_memory_is_per_block(x, y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = x[t] * cuda.blockIdx.x
    cuda.syncthreads()
    y[cuda.grid(1)] = s[N - 1 - t]


# ---- out of bounds --------------------------------------------------------------------------------------------------


@has("out_of_bounds", None, 2, N, numbers(40), zeros(64))
def guard_forgotten(x, y):
    g = cuda.grid(1)
    y[g] = x[g]  # <-- threads 40 to 63


@has("out_of_bounds", None, 1, N, numbers(N), zeros(N))
def off_by_one_guard(x, y):
    t = cuda.threadIdx.x
    if t + 1 <= x.size:
        y[t] = x[t + 1]  # <-- thread 31


@has("out_of_bounds", None, 1, N, numbers(N), zeros(N))
def too_far_from_the_end(x, y):
    t = cuda.threadIdx.x
    y[t] = x[-2 - t]  # <-- thread 31 reads cell -33


@has("out_of_bounds", None, 1, (4, 8), numbers(4, 8), zeros(4, 8))
def rows_and_columns_mixed_up(a, b):
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    b[x, y] = a[y, x]  # <-- row 4 of four


@has("out_of_bounds", None, 1, N, zeros(N))
def shared_array_too_small(y):
    s = cuda.shared.array(16, np.int64)
    t = cuda.threadIdx.x
    s[t] = t  # <-- threads 16 to 31
    y[t] = t


@has("out_of_bounds", None, 1, N, zeros(N))
def local_array_too_small(y):
    mine = cuda.local.array(4, np.int64)
    for i in range(5):
        mine[i] = i  # <-- i = 4
    y[cuda.threadIdx.x] = mine[3]


@has("out_of_bounds", None, 1, N, zeros(8))
def atomic_outside(y):
    cuda.atomic.add(y, cuda.threadIdx.x, 1)  # <-- bin 8 and above


@misses("out_of_bounds", None, 2, N, numbers(40), zeros(64))
def guard_in_place(x, y):
    g = cuda.grid(1)
    if g < x.size:
        y[g] = x[g]


@misses("out_of_bounds", None, 1, N, numbers(N), zeros(N))
def negative_but_inside(x, y):
    t = cuda.threadIdx.x
    y[t] = x[-1 - t]


@misses("out_of_bounds", None, 1, N, numbers(20), zeros(N))
def guarded_by_a_ternary(x, y):
    t = cuda.threadIdx.x
    y[t] = x[t] if t < 20 else 0


@misses("out_of_bounds", None, 1, N, numbers(20), zeros(N))
def guarded_by_and(x, y):
    t = cuda.threadIdx.x
    if t < x.shape[0] and x[t] > 3:
        y[t] = 1


@misses("out_of_bounds", None, 1, N, numbers(20), zeros(N))
def guarded_by_min(x, y):
    t = cuda.threadIdx.x
    y[t] = x[min(t, x.size - 1)]


@misses("out_of_bounds", None, 1, N, numbers(20), zeros(N))
def guarded_by_an_early_return(x, y):
    t = cuda.threadIdx.x
    if t >= x.size:
        return
    y[t] = x[t]


# ---- uninitialised shared memory ------------------------------------------------------------------------------------


@has("uninitialised_shared", None, 1, N, zeros(N))
def never_written(y):
    s = cuda.shared.array(N, np.int64)
    y[cuda.threadIdx.x] = s[cuda.threadIdx.x]  # <-- nothing was written


@has("uninitialised_shared", None, 1, N, zeros(N))
def half_written(y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    if t < 16:
        s[t] = t
    cuda.syncthreads()
    y[t] = s[N - 1 - t]  # <-- cells 16 to 31


@has("uninitialised_shared", None, 1, N, zeros(N))
def written_too_late(y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    for i in range(2):
        y[t] += s[t]  # <-- the first round
        s[t] = i


@has("uninitialised_shared", None, 1, N, zeros(N))
def the_other_array_was_written(y):
    s, r = cuda.shared.array(N, np.int64), cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    y[t] = s[N - 1 - t] + r[t]  # <-- r was not


@has("uninitialised_shared", None, 1, N, zeros(4))
def histogram_that_was_not_cleared(y):
    counts = cuda.shared.array(4, np.int64)
    t = cuda.threadIdx.x
    cuda.atomic.add(counts, t % 4, 1)  # <-- adds to what was there
    cuda.syncthreads()
    if t < 4:
        y[t] = counts[t]


@has("uninitialised_shared", None, 2, N, zeros(2 * N))
def only_the_first_block_writes(y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    if cuda.blockIdx.x == 0:
        s[t] = t
    cuda.syncthreads()
    y[cuda.grid(1)] = s[N - 1 - t]  # <-- block 1


@misses("uninitialised_shared", None, 1, N, zeros(N))
def all_written(y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    y[t] = s[N - 1 - t]


@misses("uninitialised_shared", None, 1, N, zeros(N))
def written_by_one_thread(y):
    s = cuda.shared.array(8, np.int64)
    t = cuda.threadIdx.x
    if t == 0:
        for i in range(8):
            s[i] = i
    cuda.syncthreads()
    y[t] = s[t % 8]


@misses("uninitialised_shared", None, 1, N, zeros(N))
def only_the_written_half_is_read(y):
    s = cuda.shared.array(N, np.int64)
    t = cuda.threadIdx.x
    if t < 16:
        s[t] = t
    cuda.syncthreads()
    y[t] = s[t % 16]


@misses("uninitialised_shared", None, 1, N, zeros(4))
def histogram_cleared_first(y):
    counts = cuda.shared.array(4, np.int64)
    t = cuda.threadIdx.x
    if t < 4:
        counts[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(counts, t % 4, 1)
    cuda.syncthreads()
    if t < 4:
        y[t] = counts[t]


@misses("uninitialised_shared", None, 1, N, zeros(1))
def written_by_an_atomic_exchange_loop(y):
    s = cuda.shared.array(100, np.int64)
    for i in range(cuda.threadIdx.x, 100, N):
        s[i] = i
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        for i in range(100):
            y[0] += s[i]


# ---- uninitialised local memory -------------------------------------------------------------------------------------


@has("uninitialised_local", None, 1, N, zeros(N))
def local_never_written(y):
    mine = cuda.local.array(4, np.int64)
    y[cuda.threadIdx.x] = mine[2]  # <-- nothing was written


@has("uninitialised_local", None, 1, N, zeros(N))
def local_sum_without_a_start(y):
    total = cuda.local.array(1, np.int64)
    for i in range(3):
        total[0] += i  # <-- the first round
    y[cuda.threadIdx.x] = total[0]


@has("uninitialised_local", None, 1, N, zeros(N))
def local_partly_written(y):
    mine = cuda.local.array(4, np.int64)
    for i in range(3):
        mine[i] = i
    y[cuda.threadIdx.x] = mine[3]  # <-- the last cell


@has("uninitialised_local", None, 1, N, zeros(N))
def local_written_by_some_lanes(y):
    mine = cuda.local.array(2, np.int64)
    t = cuda.threadIdx.x
    if t < 20:
        mine[0] = t
    y[t] = mine[0]  # <-- lanes 20 to 31


@has("uninitialised_local", None, 1, N, zeros(N))
def local_row_forgotten(y):
    mine = cuda.local.array((2, 2), np.float32)
    mine[0, 0] = 1
    mine[0, 1] = 2
    y[cuda.threadIdx.x] = mine[1, 0]  # <-- row 1


@misses("uninitialised_local", None, 1, N, zeros(N))
def local_written_first(y):
    mine = cuda.local.array(4, np.int64)
    for i in range(4):
        mine[i] = i
    y[cuda.threadIdx.x] = mine[3]


@misses("uninitialised_local", None, 1, N, zeros(N))
def local_only_the_written_cell(y):
    mine = cuda.local.array(4, np.int64)
    t = cuda.threadIdx.x
    mine[t % 4] = t
    y[t] = mine[t % 4]


@misses("uninitialised_local", None, 1, N, zeros(N))
def local_guarded_as_it_was_written(y):
    mine = cuda.local.array(1, np.int64)
    t = cuda.threadIdx.x
    if t < 20:
        mine[0] = t
    if t < 20:
        y[t] = mine[0]


@misses("uninitialised_local", None, 1, N, zeros(N))
def local_two_branches_write(y):
    mine = cuda.local.array(1, np.int64)
    t = cuda.threadIdx.x
    if t < 20:
        mine[0] = 1
    else:
        mine[0] = 2
    y[t] = mine[0]


@misses("uninitialised_local", None, 2, N, zeros(2 * N))
def local_is_private(y):
    mine = cuda.local.array(2, np.int64)
    g = cuda.grid(1)
    mine[0] = g
    mine[1] = -g
    y[g] = mine[g % 2]


# ---- divergent barriers ---------------------------------------------------------------------------------------------


@has("divergent_barrier", None, 1, N, zeros(N))
def half_a_warp_waits(y):
    t = cuda.threadIdx.x
    if t < 16:
        cuda.syncthreads()  # <-- lanes 16 to 31 never come
    y[t] = 1


@has("divergent_barrier", None, 1, 2 * N, zeros(2 * N))
def one_of_two_warps_waits(y):
    t = cuda.threadIdx.x
    y[t] = 1
    if t < N:
        cuda.syncthreads()  # <-- warp 1 never comes


@has("divergent_barrier", None, 1, 2 * N, zeros(2 * N))
def two_barriers_in_two_branches(y):
    t = cuda.threadIdx.x
    if t < N:
        y[t] = 1
        cuda.syncthreads()  # <-- one place
    else:
        y[t] = 2
        cuda.syncthreads()


@has("divergent_barrier", None, 1, N, zeros(N))
def rounds_that_differ_by_lane(y):
    t = cuda.threadIdx.x
    for i in range(t % 3):
        y[t] += i
        cuda.syncthreads()  # <-- lanes leave the loop at different rounds


@has("divergent_barrier", None, 1, N, numbers(N), zeros(N))
def some_break_before_the_barrier(x, y):
    t = cuda.threadIdx.x
    for i in range(3):
        if x[t] > 20 and i == 1:
            break
        cuda.syncthreads()  # <-- twelve lanes have left the loop
    y[t] = 1


@cuda.jit(device=True)
def wait(y, t):
    """A barrier in a device function."""
    y[t] = 1
    cuda.syncthreads()


@has("divergent_barrier", None, 1, N, zeros(N))
def device_function_with_a_barrier_under_a_condition(y):
    t = cuda.threadIdx.x
    if t % 2 == 0:
        wait(y, t)


@has("divergent_barrier", None, 1, N, zeros(N))
def continue_skips_the_barrier(y):
    t = cuda.threadIdx.x
    for i in range(2):
        if (t + i) % 2:
            continue
        y[t] += 1
        cuda.syncthreads()  # <-- half of the lanes skip it


@misses("divergent_barrier", None, 2, N, zeros(2 * N))
def whole_blocks_take_one_way(y):
    if cuda.blockIdx.x == 0:
        cuda.syncthreads()
    y[cuda.grid(1)] = 1


@misses("divergent_barrier", None, 1, N, zeros(N))
def barrier_after_the_branch(y):
    t = cuda.threadIdx.x
    if t < 16:
        y[t] = 1
    cuda.syncthreads()


@misses("divergent_barrier", None, 1, N, zeros(N), 3)
def rounds_are_the_same_for_all(y, rounds):
    for i in range(rounds):
        y[cuda.threadIdx.x] += i
        cuda.syncthreads()


@misses("divergent_barrier", None, 1, N, zeros(20))
def early_return_is_only_a_note(y):
    t = cuda.threadIdx.x
    if t >= y.size:
        return
    y[t] = 1
    cuda.syncthreads()
    y[t] += 1


@misses("divergent_barrier", None, 1, 2 * N, zeros(2 * N))
def one_warp_syncs_within_itself(y):
    t = cuda.threadIdx.x
    if t < N:
        cuda.syncwarp()
    y[t] = 1
    cuda.syncthreads()


@misses("divergent_barrier", None, 1, 40, zeros(40))
def late_is_not_absent(y):
    t = cuda.threadIdx.x
    for i in range(t):
        y[t] += i
    cuda.syncthreads()
    y[t] += 1


@misses("divergent_barrier", None, 2, N, zeros(N))
def whole_block_returns(y):
    if cuda.blockIdx.x == 1:
        return
    y[cuda.threadIdx.x] = 1
    cuda.syncthreads()
    y[cuda.threadIdx.x] += 1
