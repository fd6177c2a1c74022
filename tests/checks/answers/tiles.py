"""Answers to the puzzles that reuse values: stencil and tiled product."""

from __future__ import annotations

import numpy as np

from labkit.simt import cuda

from .register import right, wrong

# --- stencil ---------------------------------------------------------------------------------------------------------


@right("stencil")
def stencil_with_halo(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    cuda.syncthreads()
    if i < x.size:
        out[i] = part[t] + part[t + 1] + part[t + 2]


@right("stencil")
def stencil_with_first_two_threads(x, out):
    part = cuda.shared.array(shape=66, dtype=np.float32)
    t, start = cuda.threadIdx.x, cuda.blockIdx.x * 64 - 1
    for k in range(t, 66, 64):
        part[k] = 0
        if start + k >= 0 and start + k < x.size:
            part[k] = x[start + k]
    cuda.syncthreads()
    if start + 1 + t < x.size:
        total = np.float32(0)
        for k in range(3):
            total += part[t + k]
        out[start + 1 + t] = total


@right("stencil")
def stencil_with_separate_halo(x, out):
    own, ends = cuda.shared.array(64, np.float32), cuda.shared.array(2, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    own[t] = x[i] if i < x.size else 0
    if t < 2:
        outside = cuda.blockIdx.x * 64 + (64 if t else -1)
        ends[t] = x[outside] if outside >= 0 and outside < x.size else 0
    cuda.syncthreads()
    left = own[t - 1] if t > 0 else ends[0]
    right_one = own[t + 1] if t < 63 else ends[1]
    if i < x.size:
        out[i] = left + own[t] + right_one


@wrong("stencil", "hazard", "Put cuda.syncthreads() between the two")
def stencil_without_barrier(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    if i < x.size:
        out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "values", "the halo")
def stencil_without_halo(x, out):
    part = cuda.shared.array(64, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t] = x[i] if i < x.size else 0
    cuda.syncthreads()
    if i < x.size:
        left = part[t - 1] if t > 0 else np.float32(0)
        right_one = part[t + 1] if t < 63 else np.float32(0)
        out[i] = left + part[t] + right_one


@wrong("stencil", "values", "treat the first element apart")
def stencil_that_wraps_around(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1]
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    cuda.syncthreads()
    if i < x.size:
        out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "budget", "Load each element once into shared memory")
def stencil_from_global_memory(x, out):
    i = cuda.grid(1)
    if i < x.size:
        total = x[i]
        if i > 0:
            total += x[i - 1]
        if i + 1 < x.size:
            total += x[i + 1]
        out[i] = total


@wrong("stencil", "values", "An index below 0")
def stencil_one_place_off(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    cuda.syncthreads()
    if i < x.size:
        out[i] = part[t - 1] + part[t] + part[t + 1]  # t - 1 is -1 in the first thread


@wrong("stencil", "values", "Everything is one place off")
def stencil_one_place_late(x, out):
    part = cuda.shared.array(68, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 2] = x[i] if i < x.size else 0
    if t == 0:
        part[1] = x[i - 1] if i > 0 else 0
        part[0] = 0
    if t == 63:
        part[66] = x[i + 1] if i + 1 < x.size else 0
    cuda.syncthreads()
    if i < x.size:
        out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "values", "x[64] is out of bounds")
def stencil_with_unguarded_halo(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1]
    cuda.syncthreads()
    if i < x.size:
        out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "hazard", "out[200] is out of bounds")
def stencil_with_unguarded_store(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    cuda.syncthreads()
    out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "values", "before it is read")
def stencil_that_returns_before_loading_zeros(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i >= x.size:
        return
    part[t + 1] = x[i]
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    cuda.syncthreads()
    out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "hazard", "move it out of the branch")
def stencil_with_barrier_in_a_branch(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    if t == 0:
        part[0] = x[i - 1] if i > 0 else 0
    if t == 63:
        part[65] = x[i + 1] if i + 1 < x.size else 0
    if i < x.size:
        cuda.syncthreads()
        out[i] = part[t] + part[t + 1] + part[t + 2]


@wrong("stencil", "values", "nothing has written yet")
def stencil_that_leaves_the_halo_unwritten(x, out):
    part = cuda.shared.array(66, np.float32)
    i, t = cuda.grid(1), cuda.threadIdx.x
    part[t + 1] = x[i] if i < x.size else 0
    cuda.syncthreads()
    if i < x.size:
        out[i] = part[t] + part[t + 1] + part[t + 2]


# --- tiled product ---------------------------------------------------------------------------------------------------


@right("tiled_matmul")
def product_in_tiles(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for at in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, at + x] if row < a.shape[0] and at + x < a.shape[1] else 0
        b_tile[y, x] = b[at + y, col] if at + y < b.shape[0] and col < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


@right("tiled_matmul")
def product_with_short_inner_loop(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    row, col = cuda.blockIdx.y * 8 + y, cuda.blockIdx.x * 8 + x
    (m, shared), n = a.shape, b.shape[1]
    total = np.float32(0)
    for tile in range((shared + 7) // 8):
        left = min(8, shared - 8 * tile)
        if row < m and x < left:
            a_tile[y, x] = a[row, 8 * tile + x]
        if col < n and y < left:
            b_tile[y, x] = b[8 * tile + y, col]
        cuda.syncthreads()
        if row < m and col < n:
            for k in range(left):
                total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < m and col < n:
        out[row, col] = total


@right("tiled_matmul")
def product_with_flat_tiles(a, b, out):
    tiles = cuda.shared.array(128, np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total, at = np.float32(0), 0
    while at < b.shape[0]:
        tiles[8 * y + x] = 0
        tiles[64 + 8 * y + x] = 0
        if row < out.shape[0] and at + x < b.shape[0]:
            tiles[8 * y + x] = a[row, at + x]
        if col < out.shape[1] and at + y < b.shape[0]:
            tiles[64 + 8 * y + x] = b[at + y, col]
        cuda.syncthreads()
        for k in range(8):
            total += tiles[8 * y + k] * tiles[64 + 8 * k + x]
        cuda.syncthreads()
        at += 8
    if row < out.shape[0]:  # noqa: SIM102
        if col < out.shape[1]:
            out[row, col] = total


def product_without(first: bool, second: bool):
    """A product that leaves out barriers."""

    def product(a, b, out):
        a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
        col, row = cuda.grid(2)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        total = np.float32(0)
        for at in range(0, a.shape[1], 8):
            a_tile[y, x] = a[row, at + x] if row < a.shape[0] and at + x < a.shape[1] else 0
            b_tile[y, x] = b[at + y, col] if at + y < b.shape[0] and col < b.shape[1] else 0
            if first:
                cuda.syncthreads()
            for k in range(8):
                total += a_tile[y, k] * b_tile[k, x]
            if second:
                cuda.syncthreads()
        if row < out.shape[0] and col < out.shape[1]:
            out[row, col] = total

    return product


wrong("tiled_matmul", "hazard", "Put cuda.syncthreads() between the two")(product_without(first=False, second=True))
wrong("tiled_matmul", "hazard", "end each round with cuda.syncthreads()")(product_without(first=True, second=False))


@wrong("tiled_matmul", "budget", "the products read shared memory")
def product_naive(a, b, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, col]
        out[row, col] = total


@wrong("tiled_matmul", "values", "is out of bounds")
def product_without_guards(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for at in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, at + x]
        b_tile[y, x] = b[at + y, col]
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


@wrong("tiled_matmul", "values", "round the number of tiles up")
def product_of_whole_tiles_only(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for tile in range(a.shape[1] // 8):
        a_tile[y, x] = a[row, 8 * tile + x] if row < a.shape[0] else 0
        b_tile[y, x] = b[8 * tile + y, col] if col < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


@wrong("tiled_matmul", "values", "Only the last tile was counted")
def product_that_starts_over(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for at in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, at + x] if row < a.shape[0] and at + x < a.shape[1] else 0
        b_tile[y, x] = b[at + y, col] if at + y < b.shape[0] and col < b.shape[1] else 0
        cuda.syncthreads()
        total = np.float32(0)
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


@wrong("tiled_matmul", "values", "Only the first tile was counted")
def product_of_one_tile(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    a_tile[y, x] = a[row, x] if row < a.shape[0] and x < a.shape[1] else 0
    b_tile[y, x] = b[y, col] if y < b.shape[0] and col < b.shape[1] else 0
    cuda.syncthreads()
    total = np.float32(0)
    for k in range(8):
        total += a_tile[y, k] * b_tile[k, x]
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


@wrong("tiled_matmul", "values", "Follow one element")
def product_with_turned_tile(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for at in range(0, a.shape[1], 8):
        a_tile[x, y] = a[row, at + x] if row < a.shape[0] and at + x < a.shape[1] else 0
        b_tile[y, x] = b[at + y, col] if at + y < b.shape[0] and col < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


@wrong("tiled_matmul", "hazard", "out[0, 11] is out of bounds")
def product_with_unguarded_store(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for at in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, at + x] if row < a.shape[0] and at + x < a.shape[1] else 0
        b_tile[y, x] = b[at + y, col] if at + y < b.shape[0] and col < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    out[row, col] = total


@wrong("tiled_matmul", "budget", "store it once at the end")
def product_that_stores_after_each_tile(a, b, out):
    a_tile, b_tile = cuda.shared.array((8, 8), np.float32), cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for at in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, at + x] if row < a.shape[0] and at + x < a.shape[1] else 0
        b_tile[y, x] = b[at + y, col] if at + y < b.shape[0] and col < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
        if row < out.shape[0] and col < out.shape[1]:
            out[row, col] = total
