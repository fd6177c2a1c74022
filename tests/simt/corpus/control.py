"""Control flow: branches, loops whose bounds differ by lane, break, continue, return, guarded operands."""

from __future__ import annotations

import numpy as np

from labkit.simt import cuda

from .case import case, floats, whole

LIMIT = 50


@case(
    3, 32, lambda rng: (floats(rng, 77), floats(rng, 77), np.zeros(77, np.float32)),
    expected=lambda a, b, c: {2: a + b},
)  # fmt: skip
def vector_add(a, b, c):
    """The first kernel of every course: one element a thread, with a guard."""
    i = cuda.grid(1)
    if i < a.size:
        c[i] = a[i] + b[i]


@case(2, 32, lambda rng: (np.float32(1.5), floats(rng, 200), floats(rng, 200)), expected=lambda a, x, y: {2: a * x + y})
def grid_stride_saxpy(a, x, y):
    start = cuda.grid(1)
    for i in range(start, x.size, cuda.gridsize(1)):
        y[i] = a * x[i] + y[i]


@case(1, 48, lambda rng: (whole(rng, 48), np.zeros(48, np.int64)))
def elif_ladder(x, y):
    i = cuda.grid(1)
    v = x[i]
    if v < -5:
        y[i] = 1
    elif v < 0:
        if v % 2 == 0:
            y[i] = 2
        else:
            y[i] = 3
    elif v == 0:
        pass
    else:
        y[i] = 5 if v > 5 else 4


@case(2, 32, lambda rng: (np.arange(1, 65), np.zeros(64, np.int64)))
def collatz(x, steps):
    """Every lane leaves the loop at its own time."""
    i = cuda.grid(1)
    n = x[i]
    count = 0
    while n != 1:
        if n % 2 == 0:
            n //= 2
        else:
            n = 3 * n + 1
        count += 1
    steps[i] = count


@case(1, 40, lambda rng: (whole(rng, 40, 12), np.full(40, -1)))
def first_negative(x, where):
    """Break out of a loop; the loop variable keeps its value."""
    i = cuda.threadIdx.x
    found = -1
    for j in range(x.shape[1]):
        if x[i, j] < 0:
            found = j
            break
    where[i] = found


@case(
    1, 33, lambda rng: (whole(rng, 33, 9), np.zeros(33, np.int64)),
    expected=lambda x, y: {1: np.where(x > 0, x, 0).sum(1)},
)  # fmt: skip
def skip_with_continue(x, y):
    i = cuda.threadIdx.x
    total = 0
    for j in range(x.shape[1]):
        if x[i, j] <= 0:
            continue
        total += x[i, j]
    y[i] = total


@case(2, 20, lambda rng: (np.zeros(40, np.int64),))
def return_inside_a_loop(out):
    i = cuda.grid(1)
    for j in range(100):
        out[i] += j
        if j * j > i:
            return
    out[i] = -1


@case(1, 64, lambda rng: (np.zeros(64, np.int64),), expected=lambda y: {0: [sum(range(i)) for i in range(64)]})
def lane_dependent_bounds(y):
    i = cuda.threadIdx.x
    total = 0
    for j in range(i):
        total += j
    y[i] = total


@case(1, 32, lambda rng: (np.zeros((32, 8), np.int64),))
def ranges_of_every_kind(y):
    """Negative steps, empty ranges, and the loop variable after the loop."""
    i = cuda.threadIdx.x
    last = -7
    for j in range(i, 0, -3):
        y[i, 0] += j
        last = j
    y[i, 1] = last
    for j in range(5, i, 2):
        y[i, 2] = y[i, 2] * 3 + j
    for k in range(3):
        k += 10  # changes this pass only
        y[i, 3] += k
    for _ in range(4, 4):
        y[i, 4] = 1
    for _ in range(i % 3):
        y[i, 5] += 1


@case(1, 32, lambda rng: (np.zeros(32, np.int64),))
def nested_loops_and_breaks(y):
    i = cuda.threadIdx.x
    total = 0
    for a in range(6):
        for b in range(i % 7):
            if a * b > 8:
                break
            if (a + b) % 3 == 1:
                continue
            total += a * 10 + b
        else_value = a + i
        if else_value > 30:
            break
        total += 1000
    y[i] = total


@case(1, 32, lambda rng: (np.zeros(32, np.int64),))
def while_true(y):
    i = cuda.threadIdx.x
    n = i
    while True:
        n += 3
        if n % 5 == 0:
            break
        if n > 60:
            y[i] = -n
            return
    y[i] = n


@case(
    1, 40, lambda rng: (floats(rng, 33), np.zeros(40, np.float32)),
    expected=lambda x, y: {1: np.concatenate([x, np.full(7, -1, np.float32)])},
)  # fmt: skip
def ternary_guards_a_load(x, y):
    """Seven lanes have no element: the guarded load must not happen for them."""
    i = cuda.threadIdx.x
    y[i] = x[i] if i < x.size else np.float32(-1)


@case(1, 40, lambda rng: (whole(rng, 33), np.zeros(40, np.int64)))
def and_or_guard_their_second_operand(x, y):
    i = cuda.threadIdx.x
    if i < x.size and x[i] > 0:
        y[i] += 1
    if i >= x.size or x[i] < 0:
        y[i] += 2
    if not (i >= x.size or x[i] == 0) and (x[i] > 3 or x[i] < -3):
        y[i] += 4


@case(1, 32, lambda rng: (whole(rng, 32), np.zeros(32, np.int64)))
def and_or_give_values(x, y):
    """`and` and `or` give an operand, not a truth value."""
    i = cuda.threadIdx.x
    v = x[i]
    y[i] = (v and 7) + 100 * (v or 3)


@case(1, 32, lambda rng: (whole(rng, 32), np.zeros(32, np.int64)))
def chained_comparison(x, y):
    i = cuda.threadIdx.x
    if -4 <= x[i] < 4 != i:
        y[i] = 1
    y[i] += (0 < i < 20) * 10


@case(1, 32, lambda rng: (whole(rng, 32, low=0, high=200), np.zeros(32, np.int64)))
def numbers_as_conditions(x, y):
    i = cuda.threadIdx.x
    n = x[i]
    bits = 0
    while n:
        if n & 1:
            bits += 1
        n >>= 1
    y[i] = bits if not n else -1


@case(
    (2, 2), (8, 4),
    lambda rng: (floats(rng, 7, 9), floats(rng, 9, 13), np.zeros((7, 13), np.float32)),
    ulp=0,
)  # fmt: skip
def naive_matmul(a, b, c):
    column, row = cuda.grid(2)
    if row < c.shape[0] and column < c.shape[1]:
        total = np.float32(0)
        for k in range(a.shape[1]):
            total += a[row, k] * b[k, column]
        c[row, column] = total


@case(2, 32, lambda rng: (np.zeros((8, 8), np.int64),))
def mandelbrot(counts):
    i = cuda.grid(1)
    row = i // counts.shape[1]
    column = i % counts.shape[1]
    cr = -2 + column * 3 / counts.shape[1]
    ci = -1.5 + row * 3 / counts.shape[0]
    zr = 0.0
    zi = 0.0
    n = 0
    while zr * zr + zi * zi <= 4 and n < LIMIT:
        zr, zi = zr * zr - zi * zi + cr, 2 * zr * zi + ci
        n += 1
    counts[row, column] = n


@case(
    1, 40,
    lambda rng: (np.sort(whole(rng, 50, low=0, high=99)), whole(rng, 40, low=0, high=99), np.zeros(40, np.int64)),
    expected=lambda table, keys, out: {2: np.searchsorted(table, keys)},
)  # fmt: skip
def binary_search(table, keys, out):
    i = cuda.grid(1)
    low, high = 0, len(table)
    while low < high:
        middle = (low + high) // 2
        if table[middle] < keys[i]:
            low = middle + 1
        else:
            high = middle
    out[i] = low


@case(2, 32, lambda rng: (np.zeros(60, np.int64),))
def early_return_guard(y):
    """The other way to write a guard."""
    i = cuda.grid(1)
    if i >= y.size:
        return
    if i % 2:
        y[i] = i
        return
    y[i] = -i


@cuda.jit(device=True)
def greatest_common_divisor(a, b):
    """A device function with a loop whose length differs by lane."""
    while b:
        a, b = b, a % b
    return a


@cuda.jit(device=True)
def classify(v, low, high):
    """Several returns, one of them inside a branch."""
    if v < low:
        return -1
    if v > high:
        return 1
    return 0


@case(
    1, 40, lambda rng: (whole(rng, 40, low=1, high=200), whole(rng, 40, low=1, high=200), np.zeros(40, np.int64)),
    expected=lambda a, b, c: {2: np.gcd(a, b)},
)  # fmt: skip
def device_function_with_a_loop(a, b, c):
    i = cuda.threadIdx.x
    c[i] = greatest_common_divisor(a[i], b[i])


@case(1, 40, lambda rng: (whole(rng, 40), np.zeros(40, np.int64)))
def device_function_under_a_branch(x, y):
    i = cuda.threadIdx.x
    if i % 3:
        y[i] = classify(x[i], -3, 3) * 10 + classify(i, 5, 20)


@cuda.jit(device=True)
def minmax(a, b):
    if a < b:
        return a, b
    return b, a


@cuda.jit(device=True)
def put(array, place, value):
    """A device function that stores and returns nothing."""
    if place < array.shape[0]:
        array[place] = minmax(value, 3)[1]


@case(1, 40, lambda rng: (whole(rng, 33), whole(rng, 33), np.zeros(33, np.int64)))
def device_function_calls_another(x, y, z):
    i = cuda.threadIdx.x
    if i < x.size:
        low, high = minmax(x[i], y[i])
        x[i] = low
        y[i] = high
    put(z, i, i - 10)


@case(1, 32, lambda rng: (np.zeros(32, np.int64),))
def statements_that_do_nothing(y):
    """A docstring, an assert, a pass, a print."""
    i = cuda.threadIdx.x
    assert i < 32
    if i == 5:
        print("thread", i)
    if i > 3:
        pass
    else:
        y[i] = 1


def make_scaled(factor, offset):
    """A kernel factory: its closure variables are constants."""

    def scaled(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * factor + offset

    scaled.__name__ = f"closure_{factor}_{offset}".replace(".", "_")
    return scaled


case(1, 32, lambda rng: (whole(rng, 30), np.zeros(30, np.int64)), expected=lambda x, y: {1: x * 3 - 4})(
    make_scaled(3, -4)
)
case(1, 32, lambda rng: (whole(rng, 30, dtype=np.float32), np.zeros(30)), expected=lambda x, y: {1: x * 2.5 + 1})(
    make_scaled(2.5, 1)
)
