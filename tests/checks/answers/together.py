"""Answers to the puzzles in which banks or many writers matter: transpose, block sum, histogram."""

from __future__ import annotations

import numpy as np

from labkit.simt import cuda

from .register import right, wrong

# --- transpose -------------------------------------------------------------------------------------------------------


def turn_with(pitch: int, barrier: bool = True):
    """A transpose through a tile of that pitch."""

    def turned(a, out):
        tile = cuda.shared.array((32, pitch), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        if row < a.shape[0] and col < a.shape[1]:
            tile[y, x] = a[row, col]
        if barrier:
            cuda.syncthreads()
        col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
        if row < out.shape[0] and col < out.shape[1]:
            out[row, col] = tile[x, y]

    return turned


right("conflict_free_transpose")(turn_with(pitch=33))
wrong("conflict_free_transpose", "budget", "a column lies in one bank")(turn_with(pitch=32))
wrong("conflict_free_transpose", "budget", "any even length shares some")(turn_with(pitch=34))
wrong("conflict_free_transpose", "hazard", "Put cuda.syncthreads() between the two")(turn_with(33, barrier=False))


@right("conflict_free_transpose")
def turn_flat(a, out):
    tile = cuda.shared.array(32 * 33, np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    across, down = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    if down + y < a.shape[0] and across + x < a.shape[1]:
        tile[33 * y + x] = a[down + y, across + x]
    cuda.syncthreads()
    if across + y < out.shape[0] and down + x < out.shape[1]:
        out[across + y, down + x] = tile[33 * x + y]


@right("conflict_free_transpose")
def turn_on_the_way_in(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    tile[x, y] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if col < a.shape[0] and row < a.shape[1]:
        out[row, col] = tile[y, x]


@right("conflict_free_transpose")
def turn_with_skewed_places(a, out):
    tile = cuda.shared.array((32, 32), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        tile[y, x ^ y] = a[row, col]
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[x, y ^ x]


@wrong("conflict_free_transpose", "budget", "Go through a tile in shared memory")
def turn_directly(a, out):
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        out[col, row] = a[row, col]


@wrong("conflict_free_transpose", "budget", "Load along a row of a")
def turn_by_loading_columns(a, out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[col, row]


@wrong("conflict_free_transpose", "budget", "Use 33, in the index, too")
def turn_padded_with_the_old_stride(a, out):
    tile = cuda.shared.array(32 * 33, np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        tile[32 * y + x] = a[row, col]
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[32 * x + y]


@wrong("conflict_free_transpose", "values", "Inside a tile nothing was turned")
def turn_blocks_only(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    tile[y, x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[y, x]


@wrong("conflict_free_transpose", "values", "its blockIdx.x and blockIdx.y swap places")
def turn_inside_tiles_only(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    tile[y, x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0
    cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[x, y]


@wrong("conflict_free_transpose", "hazard", "a[0, 50] is out of bounds")
def turn_with_unguarded_load(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    tile[y, x] = a[row, col]
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[x, y]


@wrong("conflict_free_transpose", "hazard", "Let only threads whose index lies inside")
def turn_with_unguarded_store(a, out):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    tile[y, x] = a[row, col] if row < a.shape[0] and col < a.shape[1] else 0
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    out[row, col] = tile[x, y]


# --- block sum -------------------------------------------------------------------------------------------------------


@right("block_sum")
def sum_by_halving(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@right("block_sum")
def sum_by_shuffles(x, out):
    s = cuda.shared.array(4, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    value = np.float32(0)
    if i < x.size:
        value = x[i]
    for level in range(5):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, 16 >> level)
    if t % 32 == 0:
        s[t // 32] = value
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = s[0] + s[1] + s[2] + s[3]


@right("block_sum")
def sum_by_one_warp(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = 0
    if i < x.size:
        s[t] = x[i]
    cuda.syncthreads()
    if t < 32:
        value = s[t] + s[t + 32] + s[t + 64] + s[t + 96]
        for level in range(5):
            value += cuda.shfl_xor_sync(0xFFFFFFFF, value, 1 << level)
        if t == 0:
            out[cuda.blockIdx.x] = value


@right("block_sum")
def sum_with_a_shared_atomic(x, out):
    total = cuda.shared.array(1, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t == 0:
        total[0] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(total, 0, x[i])
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = total[0]


@wrong("block_sum", "hazard", "end each round with cuda.syncthreads()")
def sum_without_barrier_in_the_loop(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "hazard", "Put cuda.syncthreads() between the two")
def sum_without_first_barrier(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "hazard", "All threads of the block must pass the same barrier")
def sum_with_barrier_in_the_branch(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
            cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "budget", "thread t adds the place t + step")
def sum_with_conflicts(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 1
    while step < 128:
        at = 2 * step * t
        if at < 128:
            s[at] += s[at + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "budget", "keep those that work side by side")
def sum_by_modulo(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 1
    while step < 128:
        if t % (2 * step) == 0:
            s[t] += s[t + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "budget", "Halve the number of working threads")
def sum_by_one_thread(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    if t == 0:
        total = np.float32(0)
        for k in range(128):
            total += s[k]
        out[cuda.blockIdx.x] = total


@wrong("block_sum", "values", "x[1000] is out of bounds")
def sum_without_guard(x, out):
    s = cuda.shared.array(128, np.float32)
    t = cuda.threadIdx.x
    s[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "values", "before it is read")
def sum_without_zeros(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < x.size:
        s[t] = x[i]
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "values", "Only one element of each block arrived")
def sum_that_adds_nothing(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "values", "Follow the rounds for a block of four threads")
def sum_that_forgets_half(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 32
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = s[0]


@wrong("block_sum", "budget", "One thread stores")
def sum_stored_by_all(x, out):
    s = cuda.shared.array(128, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if t < step:
            s[t] += s[t + step]
        cuda.syncthreads()
        step //= 2
    out[cuda.blockIdx.x] = s[0]


# --- histogram -------------------------------------------------------------------------------------------------------


@right("histogram")
def count_in_shared_memory(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(counted, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@right("histogram")
def count_with_zeros_by_one_thread(x, out):
    counted = cuda.shared.array(16, np.int32)
    t = cuda.threadIdx.x
    if t == 0:
        for value in range(16):
            counted[value] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counted, x[i], 1)
    cuda.syncthreads()
    if t < 16 and counted[t] > 0:
        cuda.atomic.add(out, t, counted[t])


@right("histogram")
def count_by_value(x, out):
    s = cuda.shared.array(128, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    s[t] = x[i] if i < x.size else -1
    cuda.syncthreads()
    if t < 16:
        count = 0
        for k in range(128):
            if s[k] == t:
                count += 1
        cuda.atomic.add(out, t, count)


@wrong("histogram", "budget", "Count in shared memory first")
def count_in_global_memory(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, x[i], 1)


@wrong("histogram", "values", "Counts were lost")
def count_without_atomics(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        counted[x[i]] += 1
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "values", "Every place must be written")
def count_without_zeros(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < x.size:
        cuda.atomic.add(counted, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "hazard", "Put cuda.syncthreads() between the two")
def count_without_first_barrier(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    if i < x.size:
        cuda.atomic.add(counted, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "hazard", "race: thread")
def count_without_second_barrier(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(counted, x[i], 1)
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "hazard", "x[300] is out of bounds")
def count_without_guard(x, out):
    counted = cuda.shared.array(17, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 17:
        counted[t] = 0
    cuda.syncthreads()
    value = x[i]
    cuda.atomic.add(counted, value if i < x.size else 16, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "hazard", "is out of bounds")
def count_flushed_by_all(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(counted, x[i], 1)
    cuda.syncthreads()
    if t < 17:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "values", "Counts were lost")
def count_flushed_without_atomics(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(counted, x[i], 1)
    cuda.syncthreads()
    if t < 16:
        out[t] += counted[t]


@wrong("histogram", "values", "Something was counted more than once")
def count_of_missing_elements(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(counted, x[i] if i < x.size else 0, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "values", "An index below 0 counts from the end")
def count_one_place_off(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(counted, x[i] - 1, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "values", "Work this element out by hand")
def count_of_the_value_above(x, out):
    counted = cuda.shared.array(17, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 17:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        cuda.atomic.add(counted, x[i] + 1, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])


@wrong("histogram", "budget", "Each thread loads its own element, once")
def count_that_loads_for_every_value(x, out):
    counted = cuda.shared.array(16, np.int32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if t < 16:
        counted[t] = 0
    cuda.syncthreads()
    if i < x.size:
        for value in range(16):
            if x[i] == value:
                cuda.atomic.add(counted, value, 1)
    cuda.syncthreads()
    if t < 16:
        cuda.atomic.add(out, t, counted[t])
