"""Threads that work together: barriers, reductions, scans, atomics, warp operations."""

from __future__ import annotations

import numpy as np

from labkit.simt import cuda

from .case import case, whole

ALL = 0xFFFFFFFF
SIZE = 64


def _block_sums(x, out):
    return {1: x.reshape(-1, SIZE).sum(1)}


@case(2, SIZE, lambda rng: (whole(rng, 128), np.zeros(2, np.int64)), expected=_block_sums)
def block_reduction(x, out):
    """A tree in shared memory with a barrier after each level."""
    sums = cuda.shared.array(SIZE, np.int64)
    t = cuda.threadIdx.x
    sums[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    step = SIZE // 2
    while step > 0:
        if t < step:
            sums[t] += sums[t + step]
        cuda.syncthreads()
        step //= 2
    if t == 0:
        out[cuda.blockIdx.x] = sums[0]


@case(1, SIZE, lambda rng: (whole(rng, 64), np.zeros(64, np.int64)), expected=lambda x, y: {1: np.cumsum(x)})
def inclusive_scan(x, y):
    """Hillis and Steele: read, barrier, write, barrier."""
    values = cuda.shared.array(SIZE, np.int64)
    t = cuda.threadIdx.x
    values[t] = x[t]
    cuda.syncthreads()
    offset = 1
    while offset < SIZE:
        addend = values[t - offset] if t >= offset else 0
        cuda.syncthreads()
        values[t] += addend
        cuda.syncthreads()
        offset *= 2
    y[t] = values[t]


@case(1, 32, lambda rng: (whole(rng, 32),), expected=lambda x: {0: np.sort(x)})
def bitonic_sort(x):
    values = cuda.shared.array(32, np.int64)
    t = cuda.threadIdx.x
    values[t] = x[t]
    cuda.syncthreads()
    size = 2
    while size <= 32:
        distance = size // 2
        while distance > 0:
            partner = t ^ distance
            if partner > t:
                rising = t & size == 0
                if (values[t] > values[partner]) == rising:
                    values[t], values[partner] = values[partner], values[t]
            cuda.syncthreads()
            distance //= 2
        size *= 2
    x[t] = values[t]


@case(
    2, 32, lambda rng: (whole(rng, 200, low=0, high=10), np.zeros(10, np.int64)),
    expected=lambda x, bins: {1: np.bincount(x, minlength=10)},
)  # fmt: skip
def histogram(x, bins):
    """Shared counters first, then one atomic per bin and block."""
    counts = cuda.shared.array(10, np.int32)
    t = cuda.threadIdx.x
    if t < 10:
        counts[t] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(counts, x[i], 1)
    cuda.syncthreads()
    if t < 10:
        cuda.atomic.add(bins, t, counts[t])


@case(2, 24, lambda rng: (whole(rng, 48, dtype=np.int32), np.zeros(4, np.int32)))
def atomic_add_sub_max_min(x, y):
    i = cuda.grid(1)
    cuda.atomic.add(y, 0, x[i])
    cuda.atomic.sub(y, 1, x[i])
    cuda.atomic.max(y, 2, x[i])
    cuda.atomic.min(y, 3, x[i])


@case(2, 24, lambda rng: (whole(rng, 48, low=0, high=2**31, dtype=np.uint32), np.array([0, 2**32 - 1, 5], np.uint32)))
def atomic_bits(x, y):
    i = cuda.grid(1)
    cuda.atomic.or_(y, 0, x[i])
    cuda.atomic.and_(y, 1, x[i])
    cuda.atomic.xor(y, 2, x[i])


@case(1, 40, lambda rng: (np.array([3, 3, 9], np.uint32), np.zeros((1, 2), np.float64)))
def atomic_inc_dec_float(counters, sums):
    """inc and dec wrap at their limit; float atomics on a two-dimensional place."""
    i = cuda.threadIdx.x
    cuda.atomic.inc(counters, 0, 10)
    cuda.atomic.dec(counters, 1, 6)
    cuda.atomic.add(sums, (0, 1), i * 0.5)
    if i == 7:
        cuda.atomic.exch(counters, 2, 77)


@case(1, 20, lambda rng: (np.zeros(1, np.int64),), expected=lambda y: {0: [20]})
def compare_and_swap_loop(y):
    """Add one by retrying: each round one thread gets through."""
    done = False
    while not done:
        seen = cuda.atomic.cas(y, 0, 0, 0)
        done = cuda.atomic.cas(y, 0, seen, seen + 1) == seen


@case(1, 32, lambda rng: (np.zeros(33, np.int64),), simulator=False)
def atomic_returns_the_old_value(y):
    """Whoever comes first, the tickets are 0 to 31."""
    ticket = cuda.atomic.add(y, 32, 1)
    y[ticket] = ticket * 2


@case(2, 64, lambda rng: (whole(rng, 128), np.zeros(4, np.int64)), expected=lambda x, y: {1: x.reshape(4, 32).sum(1)},
      simulator=False)  # fmt: skip
def shuffle_down_reduction(x, y):
    i = cuda.grid(1)
    total = x[i]
    offset = 16
    while offset > 0:
        total += cuda.shfl_down_sync(ALL, total, offset)
        offset //= 2
    if cuda.laneid == 0:
        y[i // cuda.warpsize] = total


@case(1, 32, lambda rng: (whole(rng, 32, dtype=np.float32), np.zeros(32, np.float32)),
      expected=lambda x, y: {1: np.cumsum(x)}, simulator=False)  # fmt: skip
def shuffle_up_scan(x, y):
    lane = cuda.laneid
    value = x[lane]
    offset = 1
    while offset < 32:
        other = cuda.shfl_up_sync(ALL, value, offset)
        if lane >= offset:
            value += other
        offset *= 2
    y[lane] = value


@case(1, 64, lambda rng: (whole(rng, 64, dtype=np.int32), np.zeros(64, np.int32)), simulator=False)
def shuffle_xor_butterfly(x, y):
    i = cuda.threadIdx.x
    value = np.int32(x[i])
    mask = 1
    while mask < 32:
        value = np.int32(max(value, cuda.shfl_xor_sync(ALL, value, mask)))
        mask <<= 1
    y[i] = value


@case(1, 64, lambda rng: (whole(rng, 64, dtype=np.float64), np.zeros((64, 2))), simulator=False)
def shuffle_broadcast(x, y):
    i = cuda.threadIdx.x
    y[i, 0] = cuda.shfl_sync(ALL, x[i], 5)
    y[i, 1] = cuda.shfl_sync(ALL, x[i], (i + 3) % 32)


@case(1, 64, lambda rng: (whole(rng, 64), np.zeros((64, 5), np.int64)), simulator=False)
def votes(x, y):
    i = cuda.threadIdx.x
    ballot = cuda.ballot_sync(ALL, x[i] > 0)
    y[i, 0] = ballot
    y[i, 1] = cuda.popc(ballot)
    y[i, 2] = cuda.all_sync(ALL, x[i] > -10)
    y[i, 3] = cuda.any_sync(ALL, x[i] == 9)
    y[i, 4] = cuda.activemask() & ALL


@case(1, 40, lambda rng: (whole(rng, 40), np.zeros((40, 3), np.int64)))
def barriers_that_count(x, y):
    i = cuda.threadIdx.x
    y[i, 0] = cuda.syncthreads_count(np.int32(x[i] > 0))
    y[i, 1] = cuda.syncthreads_and(np.int32(x[i] > -10))
    y[i, 2] = cuda.syncthreads_or(np.int32(x[i] == 100))


@case(1, 64, lambda rng: (whole(rng, 64), np.zeros(2, np.int64)), expected=lambda x, y: {1: x.reshape(2, 32).sum(1)},
      simulator=False)  # fmt: skip
def warp_reduction_with_syncwarp(x, y):
    """Within a warp, syncwarp orders what the lanes do to shared memory."""
    sums = cuda.shared.array(64, np.int64)
    t = cuda.threadIdx.x
    lane = t % 32
    sums[t] = x[t]
    cuda.syncwarp()
    step = 16
    while step > 0:
        if lane < step:
            sums[t] += sums[t + step]
        cuda.syncwarp()
        step //= 2
    if lane == 0:
        y[t // 32] = sums[t]


@cuda.jit(device=True)
def reverse_in_block(buffer, t, value):
    """A device function with barriers: every thread of the block calls it."""
    buffer[t] = value
    cuda.syncthreads()
    other = buffer[cuda.blockDim.x - 1 - t]
    cuda.syncthreads()
    return other


@case(2, 32, lambda rng: (whole(rng, 64), np.zeros(64, np.int64)), expected=lambda x, y: {1: 2 * x})
def barrier_in_a_device_function(x, y):
    buffer = cuda.shared.array(32, np.int64)
    t = cuda.threadIdx.x
    once = reverse_in_block(buffer, t, x[cuda.grid(1)])
    twice = reverse_in_block(buffer, t, once)
    y[cuda.grid(1)] = twice + x[cuda.grid(1)]


@case(1, 32, lambda rng: (np.zeros(1, np.int64), np.zeros(32, np.int64)), expected=lambda y, z: {0: [42]})
def all_store_the_same_value(y, z):
    """Legal, and noted."""
    y[0] = 42
    z[cuda.threadIdx.x] = 1


@case(2, 32, lambda rng: (whole(rng, 64), np.zeros(64, np.int64)))
def barrier_in_a_uniform_branch(x, y):
    """All threads of a block take the same way, so the barrier is fine."""
    buffer = cuda.shared.array(32, np.int64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.blockIdx.x == 0:
        buffer[t] = x[i]
        cuda.syncthreads()
        y[i] = buffer[31 - t]
    else:
        y[i] = -x[i]


@case(1, 48, lambda rng: (np.zeros(48, np.int64),))
def work_between_barriers_differs_by_lane(y):
    """Lanes come late to a barrier that all of them reach."""
    t = cuda.threadIdx.x
    buffer = cuda.shared.array(48, np.int64)
    total = 0
    for j in range(t % 5):
        total += j * t
    buffer[t] = total
    cuda.syncthreads()
    for j in range(t % 3 + 1):
        total += buffer[(t + j) % 48]
    y[t] = total
