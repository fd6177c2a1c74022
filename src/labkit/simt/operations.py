"""The arithmetic of compiled kernels where NumPy's differs from Numba's or NumPy has no such function.

Operands have one dtype, as the compiler has cast them; all functions work on scalars and arrays alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from labkit.simt.lanes import Value


def cast(value: Value, dtype: np.dtype) -> Value:
    """Convert as C does: towards zero from float to integer, wrapping among integers; NaN and overflow as on x86."""
    if dtype.kind == "u" and value.dtype.kind == "f":
        # A negative float goes through int64, so that -1.0 becomes the largest unsigned number, as in Numba.
        return np.where(value < 0, value.astype(np.int64).astype(dtype), value.astype(dtype))[()]
    return value.astype(dtype)


def power(a: Value, b: Value) -> Value:
    """a ** b; an integer to a negative power is 1 / a**-b rounded towards zero, by repeated multiplication."""
    if a.dtype.kind not in "iu":
        return np.power(a, b)
    result = np.power(a, np.maximum(b, 0))
    return np.where(b >= 0, result, np.where(a == 1, 1, np.where(a == -1, 1 - 2 * (b & 1), 0)).astype(a.dtype))[()]


def shift_left(a: Value, b: Value) -> Value:
    """a << b; the count is taken modulo the width, as the machine does."""
    return np.left_shift(a, b & b.dtype.type(a.dtype.itemsize * 8 - 1))


def shift_right(a: Value, b: Value) -> Value:
    """a >> b; the count is taken modulo the width, as the machine does."""
    return np.right_shift(a, b & b.dtype.type(a.dtype.itemsize * 8 - 1))


def round_to_integer(a: Value) -> Value:
    """round(a): to the nearest integer, halves to even."""
    return np.rint(a).astype(np.int64)


def round_to_digits(a: Value, digits: Value) -> Value:
    """round(a, digits) for floats, scaled in float64."""
    scale = np.power(np.float64(10), digits.astype(np.float64))
    rounded = np.rint(a.astype(np.float64) * scale) / scale
    return np.where(np.isfinite(a), rounded, a)[()].astype(a.dtype)


def compare(a: Value, b: Value, symbol: str) -> Value:
    """Compare a signed with an unsigned 64-bit integer by value."""
    if a.dtype.kind == "u":
        return compare(b, a, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(symbol, symbol))
    unsigned = a.astype(np.uint64)
    if symbol in ("==", "!="):
        equal = (a >= 0) & (unsigned == b)
        return equal if symbol == "==" else ~equal
    if symbol in ("<", "<="):
        return (a < 0) | (unsigned < b if symbol == "<" else unsigned <= b)
    return (a >= 0) & (unsigned > b if symbol == ">" else unsigned >= b)


def select(condition: Value, a: Value, b: Value) -> Value:
    """Return a where the condition holds, else b."""
    if isinstance(condition, np.ndarray):
        return np.where(condition, a, b)
    return a if condition else b


def minimum(a: Value, b: Value) -> Value:
    """min(a, b) as Numba compiles it: b if b < a, else a; a NaN stays where it stands first."""
    return np.where(b < a, b, a)[()]


def maximum(a: Value, b: Value) -> Value:
    """max(a, b) as Numba compiles it: b if b > a, else a."""
    return np.where(b > a, b, a)[()]


def _by_element(function: Callable[..., float]) -> Callable[..., Value]:
    """Turn a function of Python's math module that NumPy lacks into one of arrays."""

    def guarded(*numbers: float) -> float:
        try:
            return function(*numbers)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    def apply(*values: Value) -> Value:
        out = np.asarray(np.vectorize(guarded, otypes=[float])(*values))
        return out.astype(values[0].dtype)[()]

    return apply


def _gamma(x: float) -> float:
    return math.inf if x == 0 else math.gamma(x)


def fma(a: Value, b: Value, c: Value) -> Value:
    """a * b + c rounded once: exact for float32 through float64 but for double rounding in rare cases."""
    if a.dtype == np.float32:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return wide.astype(np.float32)
    return (a.astype(np.longdouble) * b.astype(np.longdouble) + c.astype(np.longdouble)).astype(a.dtype)


def population_count(a: Value) -> Value:
    """Number of set bits."""
    bits = np.unpackbits(_bytes(a), axis=-1)
    return bits.sum(axis=-1, dtype=np.int32)[()]


def leading_zeros(a: Value) -> Value:
    """Number of zero bits above the highest set one."""
    bits = np.unpackbits(_bytes(a)[..., ::-1], axis=-1)
    return np.where(bits.any(axis=-1), bits.argmax(axis=-1), bits.shape[-1]).astype(np.int32)[()]


def find_first_set(a: Value) -> Value:
    """Place of the lowest set bit, counted from 1; 0 if there is none."""
    bits = np.unpackbits(_bytes(a), axis=-1, bitorder="little")
    return np.where(bits.any(axis=-1), bits.argmax(axis=-1) + 1, 0).astype(np.int32)[()]


def reverse_bits(a: Value) -> Value:
    """The bits in reverse order."""
    reversed_bits = np.packbits(np.unpackbits(_bytes(a), axis=-1, bitorder="little"), axis=-1)
    return np.ascontiguousarray(reversed_bits[..., ::-1]).view(a.dtype)[..., 0][()]


def _bytes(a: Value) -> np.ndarray:
    """The bytes of each number, lowest first, along a new last axis."""
    array = np.ascontiguousarray(a).reshape(np.shape(a) + (1,))
    return array.astype(a.dtype.newbyteorder("<")).view(np.uint8)


# What the compiler writes for an operator. By zero an integer division gives 0 and a float follows IEEE.
OPERATORS = {
    "Add": "({a} + {b})",
    "Sub": "({a} - {b})",
    "Mult": "({a} * {b})",
    "Div": "({a} / {b})",
    "FloorDiv": "np.floor_divide({a}, {b})",
    "Mod": "np.remainder({a}, {b})",
    "Pow": "ops.power({a}, {b})",
    "LShift": "ops.shift_left({a}, {b})",
    "RShift": "ops.shift_right({a}, {b})",
    "BitAnd": "({a} & {b})",
    "BitOr": "({a} | {b})",
    "BitXor": "({a} ^ {b})",
}

# Functions of the math module that take one or two floats and return one of the same type.
MATH: dict[str, Callable[..., Value]] = {
    name: getattr(np, numpy_name)
    for name, numpy_name in {
        "sqrt": "sqrt",
        "exp": "exp",
        "expm1": "expm1",
        "log": "log",
        "log2": "log2",
        "log10": "log10",
        "log1p": "log1p",
        "sin": "sin",
        "cos": "cos",
        "tan": "tan",
        "asin": "arcsin",
        "acos": "arccos",
        "atan": "arctan",
        "sinh": "sinh",
        "cosh": "cosh",
        "tanh": "tanh",
        "asinh": "arcsinh",
        "acosh": "arccosh",
        "atanh": "arctanh",
        "degrees": "degrees",
        "radians": "radians",
        "fabs": "fabs",
        "atan2": "arctan2",
        "hypot": "hypot",
        "pow": "power",
        "fmod": "fmod",
        "copysign": "copysign",
    }.items()
}
MATH |= {
    "erf": _by_element(math.erf),
    "erfc": _by_element(math.erfc),
    "gamma": _by_element(_gamma),
    "lgamma": _by_element(math.lgamma),
}
MATH_ARITY = {"atan2": 2, "hypot": 2, "pow": 2, "fmod": 2, "copysign": 2}
MATH_TO_INTEGER = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
MATH_TO_BOOL = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
