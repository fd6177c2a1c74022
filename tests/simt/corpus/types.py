"""Types: what Numba's compiler makes of literals, mixed operands, casts, and a variable with several values."""

from __future__ import annotations

import numpy as np

from labkit.simt import cuda

from .case import case, floats, whole

HALF = 0.5
SCALE = np.float32(0.1)


@case(1, 32, lambda rng: (floats(rng, 32), np.zeros((32, 7))))
def float32_and_literals(x, y):
    """float32 * 2.0 is float64, float32 * float32 is float32, float32 * int64 is float64."""
    i = cuda.threadIdx.x
    v = x[i]
    y[i, 0] = v * 0.1
    y[i, 1] = v * v
    y[i, 2] = v * i
    y[i, 3] = v * np.float32(0.1)
    y[i, 4] = v / 3
    y[i, 5] = v * HALF + v * SCALE
    y[i, 6] = v + 1


@case(1, 32, lambda rng: (floats(rng, 32, 5), np.zeros(32), np.zeros(32)))
def accumulator_that_starts_as_an_integer(x, y, z):
    """`total = 0` and `total += float32` make total a float64; np.float32(0) keeps it float32."""
    i = cuda.threadIdx.x
    total = 0
    single = np.float32(0)
    for j in range(x.shape[1]):
        total += x[i, j] * x[i, j]
        single += x[i, j] * x[i, j]
    y[i] = total
    z[i] = single


@case(1, 32, lambda rng: (whole(rng, 32, dtype=np.int32), floats(rng, 32), np.zeros(32)))
def variable_of_two_types(a, x, y):
    """One branch gives an int32, the other a float32: the variable is a float64."""
    i = cuda.threadIdx.x
    if i % 2:  # noqa: SIM108 (the branches are what is tested)
        v = a[i]
    else:
        v = x[i]
    y[i] = v * 0.1 + v // 2


@case(1, 32, lambda rng: (np.full(32, 2**30, np.int32), np.zeros(32, np.int64), np.zeros(32, np.int32)))
def int32_products_are_int64(a, wide, narrow):
    """int32 * int32 is int64: no wrap in the product, only in the store."""
    i = cuda.threadIdx.x
    wide[i] = a[i] * (a[i] + i)
    narrow[i] = a[i] * 3 + i


@case(1, 64, lambda rng: (np.zeros((64, 6), np.int64),))
def narrow_casts_wrap(y):
    i = cuda.threadIdx.x
    v = i * 11 - 300
    y[i, 0] = np.int8(v)
    y[i, 1] = np.uint8(v)
    y[i, 2] = np.int16(v * 200)
    y[i, 3] = np.uint16(v * 200)
    y[i, 4] = np.int32(v * 40000000)
    y[i, 5] = np.uint32(v)


@case(1, 32, lambda rng: (floats(rng, 32, dtype=np.float64) * 40, np.zeros((32, 6)), np.zeros(32, np.int64)))
def casts_between_kinds(x, y, n):
    i = cuda.threadIdx.x
    v = x[i]
    y[i, 0] = int(v)
    y[i, 1] = float(i)
    y[i, 2] = bool(i & 2)
    y[i, 3] = np.float32(v)
    y[i, 4] = np.int64(v)
    y[i, 5] = round(v)
    n[i] = v


@case(1, 32, lambda rng: (whole(rng, 32, low=0, high=256, dtype=np.uint8), whole(rng, 32, dtype=np.int8),
                          np.zeros((32, 4), np.int64)))  # fmt: skip
def small_unsigned_arrays(a, b, y):
    """uint8 + uint8 does not wrap: small integers are widened first."""
    i = cuda.threadIdx.x
    y[i, 0] = a[i] + a[i]
    y[i, 1] = a[i] - b[i]
    y[i, 2] = a[i] * b[i]
    y[i, 3] = -b[i]


@case(1, 32, lambda rng: (np.arange(32, dtype=np.uint32), np.zeros(32, np.uint64), np.zeros(32)))
def unsigned_differences(a, y, z):
    """uint32 - uint32 is uint64 and wraps below zero; minus a signed literal it is signed."""
    i = cuda.threadIdx.x
    y[i] = a[i] - np.uint32(5)
    z[i] = a[i] - 5


@case(
    1, 32, lambda rng: (np.zeros(32, np.int8), np.zeros(32, np.uint8), np.zeros(32, np.int32), np.zeros(32, np.float32))
)
def stores_convert(a, b, c, d):
    i = cuda.threadIdx.x
    a[i] = i * 9
    b[i] = i * 9 - 100
    c[i] = i * -1.9
    d[i] = i / 7


@case(1, 32, lambda rng: (np.zeros(32, np.bool_), whole(rng, 32), np.zeros(32, np.int64)))
def booleans(flags, x, y):
    i = cuda.threadIdx.x
    flags[i] = x[i] > 0
    ready = flags[i] and i % 2 == 0
    y[i] = ready + flags[i] * 10
    if flags[i] | (x[i] == -1):
        y[i] += 100
    if not ready:
        y[i] += 1000


@case(1, 32, lambda rng: (np.int32(7), np.float32(0.1), 3, 0.1, True, np.zeros((32, 6))))
def scalar_arguments(a, b, c, d, flag, y):
    """Scalars keep the type that they are passed in."""
    i = cuda.threadIdx.x
    y[i, 0] = a * i
    y[i, 1] = b * b
    y[i, 2] = c / 7
    y[i, 3] = d * b
    y[i, 4] = d if flag else b
    y[i, 5] = b + c


@case(1, 32, lambda rng: (whole(rng, 32, low=2**53, high=2**62), np.zeros(32, np.int64), np.zeros(32)))
def large_integers_stay_exact(a, y, z):
    i = cuda.threadIdx.x
    total = a[i] // 3 + 1
    total = total * 2 - a[i] % 1000
    y[i] = total
    z[i] = a[i]


@case(1, 32, lambda rng: (np.zeros((32, 3)),))
def variable_reused_with_another_type(y):
    """The first x is an integer where it is used, whatever x becomes later."""
    i = cuda.threadIdx.x
    x = i + 3
    y[i, 0] = x // 2 + x % 2 * 0.5
    x = x / 4
    y[i, 1] = x
    y[i, 2] = x // 2


@case(1, 32, lambda rng: (np.zeros((32, 3), np.int64),))
def integer_wraparound(y):
    i = cuda.threadIdx.x
    v = 9223372036854775807
    y[i, 0] = v + i
    y[i, 1] = (v - i) * 3
    h = 14695981039346656037
    y[i, 2] = (h ^ i) * 1099511628211


@case(1, 32, lambda rng: (floats(rng, 32), np.zeros(32)))
def conditional_expression_unifies(x, y):
    """`a if c else b` has one type too: float32 and an integer literal give float64."""
    i = cuda.threadIdx.x
    v = x[i] * x[i] if i % 2 else 1
    y[i] = v * np.float32(0.1)


@case(1, 32, lambda rng: (whole(rng, 32, low=0, high=256, dtype=np.uint8), np.zeros((32, 2), np.int64)))
def swap_of_two_types_in_a_branch(a, y):
    """Both variables are integers of two widths where the branches meet."""
    i = cuda.threadIdx.x
    first = a[i]
    second = 1000
    if i % 3 == 0:
        y[i, 0] = 5
    else:
        first, second = second, first
    y[i, 0] += first
    y[i, 1] = second


@case(1, 32, lambda rng: (np.arange(8, 40, dtype=np.uint8), np.arange(-128, -96, dtype=np.int8),
                          np.arange(32, dtype=np.uint32), np.zeros((32, 6), np.int64)))  # fmt: skip
def negation_of_narrow_integers(a, b, c, y):
    """Numba negates and inverts in the operand's own width and widens after that."""
    i = cuda.threadIdx.x
    y[i, 0] = -a[i]
    y[i, 1] = ~a[i]
    y[i, 2] = -b[i]
    y[i, 3] = ~c[i]
    y[i, 4] = -(i > 4)
    y[i, 5] = -(a[i] + a[i])


@case(1, 32, lambda rng: (np.arange(32, dtype=np.uint32), np.full(32, 11, np.uint8), np.zeros((32, 8), np.int64),
                          np.zeros((32, 2))))  # fmt: skip
def unsigned_meets_signed(a, b, y, z):
    """uint64 with int64 is worked out as int64, with uint64 as uint64; true division and comparison see the values."""
    i = cuda.threadIdx.x
    difference = a[i] - b[i]
    y[i, 0] = difference % 7
    y[i, 1] = difference // 7
    y[i, 2] = difference % b[i]
    y[i, 3] = difference // b[i]
    y[i, 4] = difference >> 1
    y[i, 5] = difference < 7
    y[i, 6] = (difference & 255) ** 3
    y[i, 7] = -6 >> (difference & 3)
    z[i, 0] = difference / 7
    z[i, 1] = difference * 0.5
