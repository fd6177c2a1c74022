"""Operators and functions: values that must come out to the bit, and transcendental ones within a few ulp."""

from __future__ import annotations

import math

import numpy as np

from labkit.simt import cuda

from .case import case, floats, whole


@case(
    1, 40, lambda rng: (whole(rng, 40, low=-99, high=100), whole(rng, 40, low=1, high=9), np.zeros((40, 14), np.int64))
)
def integer_operators(a, b, y):
    i = cuda.threadIdx.x
    p = a[i]
    q = b[i]
    y[i, 0] = p + q
    y[i, 1] = p - q
    y[i, 2] = p * q
    y[i, 3] = p // q
    y[i, 4] = p % q
    y[i, 5] = p // -q
    y[i, 6] = p % -q
    y[i, 7] = p & q
    y[i, 8] = p | q
    y[i, 9] = p ^ q
    y[i, 10] = p << q
    y[i, 11] = p >> q
    y[i, 12] = ~p + -p + +q
    y[i, 13] = q**3


@case(1, 40, lambda rng: (whole(rng, 40, low=1, high=40), np.zeros(40, np.int64)))
def augmented_operators(a, y):
    i = cuda.threadIdx.x
    v = a[i]
    v += 5
    v -= i
    v *= 7
    v //= 3
    v %= 41
    v <<= 3
    v >>= 1
    v |= 9
    v &= 0x7E
    v ^= 0x15
    v **= 2
    y[i] = v
    y[i] += 3
    y[i] -= a[i]


@case(1, 40, lambda rng: (floats(rng, 40, dtype=np.float64), floats(rng, 40, dtype=np.float64), np.zeros((40, 8))))
def float_operators(a, b, y):
    i = cuda.threadIdx.x
    p = a[i]
    q = b[i]
    y[i, 0] = p + q
    y[i, 1] = p - q
    y[i, 2] = p * q
    y[i, 3] = p / q
    y[i, 4] = p // q
    y[i, 5] = p % q
    y[i, 6] = -p
    y[i, 7] = +q


@case(1, 40, lambda rng: (whole(rng, 40), whole(rng, 40), np.zeros((40, 8), np.bool_)))
def comparisons(a, b, y):
    i = cuda.threadIdx.x
    y[i, 0] = a[i] < b[i]
    y[i, 1] = a[i] <= b[i]
    y[i, 2] = a[i] > b[i]
    y[i, 3] = a[i] >= b[i]
    y[i, 4] = a[i] == b[i]
    y[i, 5] = a[i] != b[i]
    y[i, 6] = not a[i]
    y[i, 7] = (a[i] < 0) ^ (b[i] < 0)


@case(1, 32, lambda rng: (np.float32(0), np.zeros((32, 6), np.float32)))
def division_by_zero_gives_infinity(zero, y):
    """Floats do not raise on a GPU."""
    i = cuda.threadIdx.x
    v = np.float32(i) - np.float32(3)
    y[i, 0] = v / zero
    y[i, 1] = -v / zero
    y[i, 2] = math.isinf(v / zero)
    y[i, 3] = math.isnan(v / zero)
    y[i, 4] = 1 / (v / zero)


@case(1, 40, lambda rng: (floats(rng, 40), np.zeros((40, 12), np.float32)), ulp=4)
def transcendental_float32(x, y):
    i = cuda.threadIdx.x
    v = x[i]
    w = math.fabs(v) + np.float32(0.5)
    y[i, 0] = math.sin(v)
    y[i, 1] = math.cos(v)
    y[i, 2] = math.tan(v)
    y[i, 3] = math.exp(v)
    y[i, 4] = math.log(w)
    y[i, 5] = math.log2(w)
    y[i, 6] = math.log10(w)
    y[i, 7] = math.tanh(v)
    y[i, 8] = math.atan2(v, w)
    y[i, 9] = math.pow(w, v)
    y[i, 10] = math.expm1(v)
    y[i, 11] = math.log1p(w)


@case(1, 40, lambda rng: (floats(rng, 40, dtype=np.float64), np.zeros((40, 13))), ulp=4)
def transcendental_float64(x, y):
    i = cuda.threadIdx.x
    v = x[i]
    w = v / 2.5
    y[i, 0] = math.asin(w)
    y[i, 1] = math.acos(w)
    y[i, 2] = math.atan(v)
    y[i, 3] = math.sinh(v)
    y[i, 4] = math.cosh(v)
    y[i, 5] = math.asinh(v)
    y[i, 6] = math.acosh(abs(v) + 1)
    y[i, 7] = math.atanh(w)
    y[i, 8] = math.hypot(v, w)
    y[i, 9] = math.erf(v)
    y[i, 10] = math.erfc(v)
    y[i, 11] = math.exp(v) ** w
    y[i, 12] = math.pi * v + math.e


@case(1, 40, lambda rng: (floats(rng, 40) * np.float32(9), np.zeros((40, 9), np.float32)))
def exact_functions(x, y):
    i = cuda.threadIdx.x
    v = x[i]
    y[i, 0] = math.floor(v)
    y[i, 1] = math.ceil(v)
    y[i, 2] = math.trunc(v)
    y[i, 3] = math.sqrt(math.fabs(v))
    y[i, 4] = math.copysign(np.float32(2), v)
    y[i, 5] = math.fmod(v, np.float32(1.5))
    y[i, 6] = abs(v)
    y[i, 7] = round(v)
    y[i, 8] = math.isfinite(v)


@case(1, 40, lambda rng: (whole(rng, 40), whole(rng, 40), floats(rng, 40), np.zeros((40, 6))))
def min_max_abs(a, b, x, y):
    i = cuda.threadIdx.x
    y[i, 0] = min(a[i], b[i])
    y[i, 1] = max(a[i], b[i])
    y[i, 2] = max(a[i], 0)
    y[i, 3] = min(x[i], 0.25)
    y[i, 4] = abs(a[i])
    y[i, 5] = max(a[i], b[i], 2)


@case(
    1, 40, lambda rng: (whole(rng, 40, low=-(2**31), high=2**31, dtype=np.int32), np.zeros((40, 4), np.int64)),
    expected=lambda x, y: {1: np.stack([np.bitwise_count(x.view(np.uint32)).astype(np.int64)], 1) * [1, 0, 0, 0]},
    simulator=False,
)  # fmt: skip
def population_count(x, y):
    """popc counts the bits of the type it is given: 32 for an int32."""
    i = cuda.threadIdx.x
    y[i, 0] = cuda.popc(x[i])


@case(
    1, 40,
    lambda rng: (whole(rng, 40, low=0, high=2**32, dtype=np.uint32), whole(rng, 40, low=-(2**62), high=2**62),
                 np.zeros((40, 6), np.int64), np.zeros((40, 2), np.uint64)),
    simulator=False,
)  # fmt: skip
def bit_functions(narrow, wide, y, z):
    i = cuda.threadIdx.x
    small = narrow[i] >> i
    y[i, 0] = cuda.clz(np.uint32(small))
    y[i, 1] = cuda.ffs(np.uint32(small))
    y[i, 2] = cuda.popc(wide[i])
    y[i, 3] = cuda.clz(wide[i])
    y[i, 4] = cuda.ffs(wide[i])
    z[i, 0] = cuda.brev(np.uint32(small))


@case(1, 40, lambda rng: (floats(rng, 40, dtype=np.float64), np.zeros((40, 2)), whole(rng, 40), np.zeros(40, np.int64)))
def fma_and_selp(x, y, a, b):
    i = cuda.threadIdx.x
    y[i, 0] = cuda.fma(x[i], x[i], -1.0)
    y[i, 1] = cuda.selp(x[i] > 0, x[i], 0.5)
    b[i] = cuda.selp(a[i] > 0, a[i], np.int64(i))


@case(1, 32, lambda rng: (np.zeros((32, 4), np.uint32),))
def linear_congruential(out):
    """A random generator needs 32-bit wrap-around, which the stores give."""
    i = cuda.threadIdx.x
    state = np.uint32(i * 747796405 + 1)
    for round_ in range(4):
        state = np.uint32(state * np.uint32(1664525) + np.uint32(1013904223))
        state ^= state >> 13
        out[i, round_] = state


@case(1, 40, lambda rng: (whole(rng, 40, low=1, high=50), np.zeros((40, 3))))
def integer_power_and_true_division(a, y):
    i = cuda.threadIdx.x
    y[i, 0] = a[i] / 7
    y[i, 1] = a[i] ** 2
    y[i, 2] = a[i] ** 0.5


@case(1, 32, lambda rng: (floats(rng, 32, 3), np.zeros((32, 3), np.float32)), ulp=4)
def all_pairs_forces(position, force):
    """Every thread walks over all bodies: the same address for all lanes."""
    i = cuda.threadIdx.x
    fx = np.float32(0)
    fy = np.float32(0)
    fz = np.float32(0)
    for j in range(position.shape[0]):
        dx = position[j, 0] - position[i, 0]
        dy = position[j, 1] - position[i, 1]
        dz = position[j, 2] - position[i, 2]
        squared = dx * dx + dy * dy + dz * dz + np.float32(0.25)
        inverse = np.float32(1) / math.sqrt(squared)
        strength = inverse * inverse * inverse
        fx += dx * strength
        fy += dy * strength
        fz += dz * strength
    force[i, 0] = fx
    force[i, 1] = fy
    force[i, 2] = fz


@case(1, 32, lambda rng: (floats(rng, 32), floats(rng, 32, dtype=np.float64), np.zeros((32, 4), np.float32),
                          np.zeros((32, 4))), ulp=4)  # fmt: skip
def float_powers(x, z, y, w):
    """A literal exponent is a chain of products; float32 ** 2 stays float32."""
    i = cuda.threadIdx.x
    y[i, 0] = x[i] ** 2
    y[i, 1] = x[i] ** 3
    w[i, 0] = z[i] ** 2
    w[i, 1] = z[i] ** 5
    w[i, 2] = abs(z[i]) ** 1.5
    w[i, 3] = x[i] ** 2
