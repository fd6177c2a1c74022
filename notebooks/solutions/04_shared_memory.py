# %% [markdown]
# Solutions of lesson 04. Each cell is titled with the exercise that it solves.


# %% guarded_map
@cuda.jit
def guarded_map(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + 10


lesson.check("guarded_map", guarded_map)


# %% map_2d
@cuda.jit
def map_2d(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[row, col] + 100 * row + col


lesson.check("map_2d", map_2d)


# %% stride_fix
@cuda.jit
def stride_fix(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = 2 * x[i]


lesson.check("stride_fix", stride_fix)


# %% sectors_saved
def sectors_saved(tile):
    rows, wide = 32 / tile, tile / 8  # rows of a warp, sectors of a row of the block
    return tile * (rows + wide) / (2 * rows * wide)


lesson.check("sectors_saved", sectors_saved)


# %% stencil
@cuda.jit
def stencil(x, out):
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


lesson.check("stencil", stencil)


# %% tiled_matmul
@cuda.jit
def tiled_matmul(a, b, out):
    a_tile = cuda.shared.array((8, 8), np.float32)
    b_tile = cuda.shared.array((8, 8), np.float32)
    col, row = cuda.grid(2)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    total = np.float32(0)
    for start in range(0, a.shape[1], 8):
        a_tile[y, x] = a[row, start + x] if row < a.shape[0] and start + x < a.shape[1] else 0
        b_tile[y, x] = b[start + y, col] if start + y < b.shape[0] and col < b.shape[1] else 0
        cuda.syncthreads()
        for k in range(8):
            total += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = total


lesson.check("tiled_matmul", tiled_matmul)


# %% conflict_free_transpose
@cuda.jit
def conflict_free_transpose(a, out):
    tile = cuda.shared.array((32, 33), np.float32)  # a row is one place longer than it needs
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < a.shape[0] and col < a.shape[1]:
        tile[y, x] = a[row, col]
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * 32 + x, cuda.blockIdx.x * 32 + y
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = tile[x, y]


lesson.check("conflict_free_transpose", conflict_free_transpose)


# %% block_sum
@cuda.jit
def block_sum(x, out):
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


lesson.check("block_sum", block_sum)


# %% histogram
@cuda.jit
def histogram(x, out):
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


lesson.check("histogram", histogram)


# %% blocks_by_shared
def blocks_by_shared(sm_bytes, block_bytes, sm_threads, block_threads):
    return min(sm_bytes // block_bytes, sm_threads // block_threads)


lesson.check("blocks_by_shared", blocks_by_shared)
