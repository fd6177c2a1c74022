"""Arrays of every shape, shared, local and constant memory, dynamic shared memory, indices of every form."""

from __future__ import annotations

import numpy as np

from labkit.simt import cuda

from .case import case, floats, whole

TILE = 4
WIDE = 8
PADDED = WIDE + 1  # Numba takes names and literals for a shape, no sums
WEIGHTS = np.array([1.0, -2.0, 3.0, 0.5], np.float32)


@case((3, 2), (4, 4), lambda rng: (floats(rng, 7, 9), np.zeros((9, 7), np.float32)), expected=lambda a, b: {1: a.T})
def transpose_2d(a, b):
    x, y = cuda.grid(2)
    if y < a.shape[0] and x < a.shape[1]:
        b[x, y] = a[y, x]


@case((2, 2), (8, 8), lambda rng: (floats(rng, 13, 11), np.zeros((11, 13), np.float32)), expected=lambda a, b: {1: a.T})
def transpose_through_a_padded_tile(a, b):
    tile = cuda.shared.array((WIDE, PADDED), np.float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    column = cuda.blockIdx.x * WIDE + tx
    row = cuda.blockIdx.y * WIDE + ty
    if row < a.shape[0] and column < a.shape[1]:
        tile[ty, tx] = a[row, column]
    cuda.syncthreads()
    column = cuda.blockIdx.y * WIDE + tx
    row = cuda.blockIdx.x * WIDE + ty
    if row < b.shape[0] and column < b.shape[1]:
        b[row, column] = tile[tx, ty]


@case(
    (2, 2), (TILE, TILE),
    lambda rng: (floats(rng, 5, 7), floats(rng, 7, 6), np.zeros((5, 6), np.float32)),
)  # fmt: skip
def tiled_matmul(a, b, c):
    row, column = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    tile_a = cuda.shared.array((TILE, TILE), np.float32)
    tile_b = cuda.shared.array((TILE, TILE), np.float32)
    total = np.float32(0)
    for t in range((a.shape[1] + TILE - 1) // TILE):
        tile_a[tx, ty] = 0
        tile_b[tx, ty] = 0
        if row < a.shape[0] and t * TILE + ty < a.shape[1]:
            tile_a[tx, ty] = a[row, t * TILE + ty]
        if column < b.shape[1] and t * TILE + tx < b.shape[0]:
            tile_b[tx, ty] = b[t * TILE + tx, column]
        cuda.syncthreads()
        for k in range(TILE):
            total += tile_a[tx, k] * tile_b[k, ty]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


@case(1, (2, 3, 4), lambda rng: (whole(rng, 4, 3, 2), np.zeros((2, 3, 4), np.int64)), expected=lambda a, b: {1: a.T})
def three_dimensions(a, b):
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    z = cuda.threadIdx.z
    b[x, y, z] = a[z, y, x]


@case((2, 2, 2), (2, 2, 2), lambda rng: (np.zeros((4, 4, 4), np.int64),))
def three_dimensional_grid(y):
    i, j, k = cuda.grid(3)
    y[i, j, k] = i + 10 * j + 100 * k + 1000 * cuda.blockIdx.z + 10000 * cuda.gridDim.y + 100000 * cuda.blockDim.z


@case(1, 24, lambda rng: (whole(rng, 2, 3, 2, 2), np.zeros((2, 2, 3, 2), np.int64)), expected=lambda a, b: {1: a.T})
def four_dimensions(a, b):
    n = cuda.threadIdx.x
    i = n // 12
    j = n // 4 % 3
    k = n // 2 % 2
    m = n % 2
    b[m, k, j, i] = a[i, j, k, m]


@case(1, 30, lambda rng: (floats(rng, 5, 6), np.zeros((5, 6), np.float32)), expected=lambda a, b: {1: a * 2})
def chained_indices(a, b):
    n = cuda.threadIdx.x
    b[n // 6][n % 6] = a[n // 6][n % 6] + a[n // 6, n % 6]


@case(1, 32, lambda rng: (floats(rng, 3, 4, 5), np.zeros((32, 7), np.int64)))
def array_attributes(a, y):
    i = cuda.threadIdx.x
    depth, rows, columns = a.shape
    y[i, 0] = depth
    y[i, 1] = rows
    y[i, 2] = columns
    y[i, 3] = a.size
    y[i, 4] = a.ndim
    y[i, 5] = len(a)
    y[i, 6] = a.shape[0] * a.shape[-1]


@case(1, 16, lambda rng: (whole(rng, 16), np.zeros(16, np.int64)), expected=lambda a, b: {1: np.roll(a[::-1], 3)})
def negative_indices(a, b):
    """A negative index counts from the end, as in Numba."""
    i = cuda.threadIdx.x
    b[i - 13] = a[-1 - i]


@case(1, 40, lambda rng: (floats(rng, 40), np.zeros(40, np.float32)))
def local_array(x, y):
    """Private memory of a thread."""
    i = cuda.threadIdx.x
    powers = cuda.local.array(5, np.float32)
    powers[0] = 1
    for k in range(1, 5):
        powers[k] = powers[k - 1] * x[i]
    total = np.float32(0)
    for k in range(5):
        total += powers[4 - k]
    y[i] = total


@case(1, 12, lambda rng: (whole(rng, 12, 6), np.zeros((12, 6), np.int64)), expected=lambda x, y: {1: np.sort(x, 1)})
def insertion_sort_in_a_local_array(x, y):
    i = cuda.threadIdx.x
    mine = cuda.local.array((6,), np.int64)
    for k in range(6):
        mine[k] = x[i, k]
    for k in range(1, 6):
        value = mine[k]
        place = k - 1
        while place >= 0 and mine[place] > value:
            mine[place + 1] = mine[place]
            place -= 1
        mine[place + 1] = value
    for k in range(6):
        y[i, k] = mine[k]


@case(1, 32, lambda rng: (floats(rng, 35), np.zeros(32, np.float32)), simulator=False)
def constant_array(x, y):
    weights = cuda.const.array_like(WEIGHTS)
    i = cuda.threadIdx.x
    total = np.float32(0)
    for k in range(weights.size):
        total += weights[k] * x[i + k]
    y[i] = total


@case(2, 32, lambda rng: (floats(rng, 66), np.zeros(64, np.float32)))
def stencil_with_a_halo(x, y):
    """Each block loads 34 elements; two threads load two each."""
    i = cuda.grid(1)
    t = cuda.threadIdx.x
    halo = cuda.shared.array(34, np.float32)
    halo[t] = x[i]
    if t < 2:
        halo[t + 32] = x[i + 32]
    cuda.syncthreads()
    y[i] = (halo[t] + halo[t + 1] + halo[t + 2]) / np.float32(3)


@case(2, 16, lambda rng: (whole(rng, 32), np.zeros(32, np.int64)), shared_bytes=16 * 8,
      expected=lambda a, b: {1: a.reshape(2, 16)[:, ::-1].ravel()})  # fmt: skip
def dynamic_shared_memory(a, b):
    buffer = cuda.shared.array(0, np.int64)
    t = cuda.threadIdx.x
    buffer[t] = a[cuda.grid(1)]
    cuda.syncthreads()
    b[cuda.grid(1)] = buffer[15 - t]


@case(1, 16, lambda rng: (whole(rng, 16, dtype=np.int32), floats(rng, 16), np.zeros(16)), shared_bytes=16 * 8,
      simulator=False)  # fmt: skip
def one_dynamic_buffer_seen_twice(a, x, y):
    """All dynamic arrays of a kernel are one buffer: the upper half of either is the same memory."""
    whole_numbers = cuda.shared.array(0, np.int32)
    singles = cuda.shared.array(0, np.float32)
    t = cuda.threadIdx.x
    whole_numbers[t] = a[t]
    singles[t + 16] = x[t]
    cuda.syncthreads()
    y[t] = whole_numbers[15 - t] + singles[31 - t]


@case(
    1, 16, lambda rng: (whole(rng, 16), np.zeros(16, np.int64)), expected=lambda a, b: {1: a[::-1] - a}, simulator=False
)
def two_shared_arrays_on_one_line(a, b):
    """Each allocation is its own memory, wherever it stands."""
    left, right = cuda.shared.array(16, np.int64), cuda.shared.array(16, np.int64)
    t = cuda.threadIdx.x
    left[t] = a[t]
    right[t] = a[t]
    cuda.syncthreads()
    b[t] = left[15 - t] - right[t]


@case(1, 16, lambda rng: (np.zeros(16, np.int64),))
def shared_memory_of_three_dimensions(y):
    cube = cuda.shared.array(shape=(2, 2, 4), dtype=np.int16)
    t = cuda.threadIdx.x
    cube[t // 8, t // 4 % 2, t % 4] = t * t
    cuda.syncthreads()
    y[t] = cube[1 - t // 8, t // 4 % 2, 3 - t % 4] + cube.size + cube.shape[2]


@case(1, 15, lambda rng: (whole(rng, 15), np.zeros((3, 5), np.int64)))
def tuple_assignment(a, b):
    i = cuda.threadIdx.x
    first = second = a[i]
    p, q = first + 1, second - 1
    p, q = q, p
    (r, s), t = (p, q), i
    b[t // 5, t % 5] = p * 100 + q + r - s


@case(2, (5, 7), lambda rng: (whole(rng, 2, 7, 5), np.zeros((2, 7, 5), np.int64)), expected=lambda a, b: {1: a * a})
def odd_block(a, b):
    """35 threads: the second warp is partly empty."""
    x = cuda.threadIdx.x
    y = cuda.threadIdx.y
    block = cuda.blockIdx.x
    b[block, y, x] = a[block, y, x] ** 2


@case(2, 32, lambda rng: (whole(rng, 8, 8, low=0, high=2, dtype=np.uint8), np.zeros((8, 8), np.uint8)))
def game_of_life(before, after):
    i = cuda.grid(1)
    row = i // 8
    column = i % 8
    neighbours = 0
    for dr in range(-1, 2):
        for dc in range(-1, 2):
            if dr != 0 or dc != 0:
                neighbours += before[(row + dr) % 8, (column + dc) % 8]
    alive = before[row, column] == 1
    after[row, column] = 1 if neighbours == 3 or (alive and neighbours == 2) else 0
