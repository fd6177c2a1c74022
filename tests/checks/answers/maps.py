"""Answers to the puzzles with no shared memory: guarded map, 2-D map, stride fix."""

from __future__ import annotations

from labkit.simt import cuda

from .register import right, wrong

# --- guarded map -----------------------------------------------------------------------------------------------------


@right("guarded_map")
def map_with_guard(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + 10


@right("guarded_map")
def map_that_returns_early(x, out):
    i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i >= x.shape[0]:
        return
    value = x[i]
    out[i] = value + 10


@right("guarded_map")
def map_with_grid_stride(x, out):
    for i in range(cuda.grid(1), len(x), cuda.gridsize(1)):
        out[i] = 10 + x[i]


@wrong("guarded_map", "hazard", "Let only threads whose index lies inside")
def map_without_guard(x, out):
    i = cuda.grid(1)
    out[i] = x[i] + 10


@wrong("guarded_map", "hazard", "x[100] is out of bounds")
def map_guard_one_too_far(x, out):
    i = cuda.grid(1)
    if i <= out.size:
        out[i] = x[i] + 10


@wrong("guarded_map", "values", "The last element is missing")
def map_guard_one_too_short(x, out):
    i = cuda.grid(1)
    if i < out.size - 1:
        out[i] = x[i] + 10


@wrong("guarded_map", "values", "cuda.grid(1), not threadIdx.x")
def map_by_thread_in_block(x, out):
    i = cuda.threadIdx.x
    if i < out.size:
        out[i] = x[i] + 10


@wrong("guarded_map", "values", "An index below 0 counts from the end")
def map_off_by_one(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i - 1] + 10


@wrong("guarded_map", "values", "Work this element out by hand")
def map_constant(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = 12


@wrong("guarded_map", "values", "x is an input")
def map_in_place(x, out):
    i = cuda.grid(1)
    if i < out.size:
        x[i] += 10
        out[i] = x[i]


@wrong("guarded_map", "values", "Nothing was stored in out")
def map_that_stores_nothing(x, out):
    i = cuda.grid(1)
    if i < out.size:
        value = x[i] + 10  # noqa: F841


@wrong("guarded_map", "budget", "keep a value that you need twice")
def map_that_loads_its_output(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i]
        out[i] += 10


@wrong("guarded_map", "budget", "finish the value first")
def map_that_stores_twice(x, out):
    i = cuda.grid(1)
    if i < out.size:
        value = x[i]
        out[i] = value
        out[i] = value + 10


@wrong("guarded_map", "refused", "math")
def map_with_unknown_call(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = sorted(x)[i]


@wrong("guarded_map", "refused", "line")
def map_that_never_ends(x, out):
    i = cuda.grid(1)
    while i < out.size:
        out[i] = x[i] + 10


# --- 2-D map ---------------------------------------------------------------------------------------------------------


@right("map_2d")
def plane(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[row, col] + 100 * row + col


@right("map_2d")
def plane_by_hand(a, out):
    rows, columns = a.shape
    col = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    if row >= rows or col >= columns:
        return
    out[row, col] = col + row * 100 + a[row, col]


@right("map_2d")
def plane_chained(a, out):
    x, y = cuda.grid(2)
    if y < a.shape[0]:  # noqa: SIM102
        if x < a.shape[1]:
            out[y][x] = a[y][x] + (100 * y + x)


@wrong("map_2d", "values", "gives the column first, a.shape the rows")
def plane_with_axes_swapped(a, out):
    row, col = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[row, col] + 100 * row + col


@wrong("map_2d", "values", "Rows and columns are swapped")
def plane_with_formula_swapped(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = a[row, col] + 100 * col + row


@wrong("map_2d", "hazard", "is out of bounds")
def plane_without_guard_for_columns(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0]:
        out[row, col] = a[row, col] + 100 * row + col


@wrong("map_2d", "hazard", "is out of bounds")
def plane_without_guard_for_rows(a, out):
    col, row = cuda.grid(2)
    if col < out.shape[1]:
        out[row, col] = a[row, col] + 100 * row + col


@wrong("map_2d", "values", "Elements are missing")
def plane_with_guards_swapped(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[1] and col < out.shape[0]:
        out[row, col] = a[row, col] + 100 * row + col


@wrong("map_2d", "values", "Work this element out by hand")
def plane_without_input(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = 100 * row + col


@wrong("map_2d", "budget", "with x as the column")
def plane_row_by_row(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col == 0:
        for c in range(out.shape[1]):
            out[row, c] = a[row, c] + 100 * row + c


@wrong("map_2d", "budget", "One load per output is enough")
def plane_loaded_twice(a, out):
    col, row = cuda.grid(2)
    if row < out.shape[0] and col < out.shape[1]:
        out[row, col] = (a[row, col] + 100 * row + a[row, col] + 100 * row + 2 * col) / 2


# --- stride fix ------------------------------------------------------------------------------------------------------


@right("stride_fix")
def stride_by_range(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = 2 * x[i]


@right("stride_fix")
def stride_by_while(x, out):
    i = cuda.grid(1)
    while i < out.size:
        out[i] = x[i] * 2
        i += cuda.gridDim.x * cuda.blockDim.x


@right("stride_fix")
def stride_by_rounds(x, out):
    threads = cuda.gridsize(1)
    for turn in range((x.size + threads - 1) // threads):
        i = turn * threads + cuda.grid(1)
        if i < x.size:
            value = x[i]
            out[i] = value + value


@wrong("stride_fix", "budget", "the element after that of thread i")
def stride_in_chunks(x, out):
    each = (x.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    first = cuda.grid(1) * each
    for i in range(first, min(first + each, x.size)):
        out[i] = 2 * x[i]


@wrong("stride_fix", "values", "Only the first elements were done")
def stride_once(x, out):
    i = cuda.grid(1)
    if i < x.size:
        out[i] = 2 * x[i]


@wrong("stride_fix", "budget", "does each element belong to one thread?")
def stride_of_a_block(x, out):
    for i in range(cuda.grid(1), x.size, cuda.blockDim.x):
        out[i] = 2 * x[i]


@wrong("stride_fix", "values", "No thread stored out[0]")
def stride_from_one(x, out):
    for i in range(cuda.grid(1) + 1, x.size, cuda.gridsize(1)):
        out[i] = 2 * x[i]


@wrong("stride_fix", "hazard", "x[1000] is out of bounds")
def stride_one_too_far(x, out):
    for i in range(cuda.grid(1), x.size + 1, cuda.gridsize(1)):
        out[i] = 2 * x[i]


@wrong("stride_fix", "values", "No thread stored out[999]")
def stride_one_too_short(x, out):
    for i in range(cuda.grid(1), x.size - 1, cuda.gridsize(1)):
        out[i] = 2 * x[i]


@wrong("stride_fix", "values", "Write down which elements")
def stride_squared(x, out):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        out[i] = x[i] * x[i]


@wrong("stride_fix", "values", "No thread stored out[64]")
def stride_skips_a_block(x, out):
    for i in range(cuda.threadIdx.x, x.size, cuda.gridsize(1)):
        out[i] = 2 * x[i]
