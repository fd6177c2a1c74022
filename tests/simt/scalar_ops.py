"""Scalar arithmetic with Numba's types: ints are Python ints in range, floats are Python floats that fit their type."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
from numba import cuda as numba_cuda
from numba import types
from numba_frontend import maximum, minimum


def cast(value: Any, to: Any) -> Any:
    """Convert a scalar (or tuple of scalars) to a Numba type: integers wrap, floats round, floats to ints truncate."""
    return converter(to)(value)


@cache
def converter(to: Any) -> Callable[[Any], Any]:
    """The function that converts a value to a Numba type."""
    to = types.unliteral(to)
    if isinstance(to, types.Boolean):
        return bool
    if isinstance(to, types.Integer):
        return partial(_to_integer, to.bitwidth, to.signed)
    if isinstance(to, types.Float):
        return float if to.bitwidth == 64 else partial(_round_float, {32: np.float32, 16: np.float16}[to.bitwidth])
    if isinstance(to, types.BaseTuple):
        parts = tuple(converter(item) for item in to.types)
        return lambda value: tuple(part(item) for part, item in zip(parts, value, strict=True))
    return lambda value: value


def _to_integer(bits: int, signed: bool, value: Any) -> int:
    """Bring a number into the range of a fixed-width type, as two's complement does."""
    value = int(value) & ((1 << bits) - 1)
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def _round_float(narrow: Any, value: Any) -> float:
    if isinstance(value, int) and not -(2**53) <= value <= 2**53:
        value = np.int64(value) if value < 2**63 else np.uint64(value)  # one rounding, not two
    with np.errstate(over="ignore"):
        return float(narrow(value))


def binary(function: Callable[..., Any], left: Any, right: Any, signature: Any) -> Any:
    """Apply an operator as its Numba signature says: convert the operands, then bring the result into its type."""
    left, right = cast(left, signature.args[0]), cast(right, signature.args[1])
    if isinstance(left, int) and isinstance(right, int) and isinstance(signature.return_type, types.Integer):
        # int64(uint64, int64): the machine works on the bits as the result's type reads them
        left, right = cast(left, signature.return_type), cast(right, signature.return_type)
    try:
        result = function(left, right)
    except (ZeroDivisionError, OverflowError):  # a GPU raises nothing: floats go to inf or nan
        with np.errstate(all="ignore"):
            result = float(function(np.float64(left), np.float64(right)))
    if isinstance(result, complex):  # a negative base to a fractional power
        result = math.nan
    return cast(result, signature.return_type)


def unary(function: Callable[[Any], Any], value: Any, signature: Any) -> Any:
    """Apply -, ~, + or not. Numba negates in the operand's own width, then widens: -uint8(10) is 246, an uint64."""
    operand, result_type = signature.args[0], types.unliteral(signature.return_type)
    if function is operator.invert and isinstance(result_type, types.Boolean):
        return not value
    result = function(cast(value, operand))
    return cast(cast(result, operand) if isinstance(operand, types.Integer) else result, result_type)


def _bits(value: int, of: Any) -> str:
    return format(value & ((1 << of.bitwidth) - 1), f"0{of.bitwidth}b")


def _popc(signature: Any, value: int) -> int:
    return _bits(value, signature.args[0]).count("1")


def _clz(signature: Any, value: int) -> int:
    bits = _bits(value, signature.args[0])
    return len(bits) - len(bits.lstrip("0"))


def _ffs(signature: Any, value: int) -> int:
    bits = _bits(value, signature.args[0])[::-1]
    return bits.find("1") + 1


def _brev(signature: Any, value: int) -> int:
    return int(_bits(value, signature.args[0])[::-1], 2)


def _fma(signature: Any, a: float, b: float, c: float) -> float:
    from fractions import Fraction  # exact product and sum, one rounding

    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def _through_numpy(name: str) -> Callable[..., Any]:
    ufunc = getattr(np, name)

    def call(signature: Any, *values: Any) -> Any:
        with np.errstate(all="ignore"):
            return ufunc(*(np.float64(value) for value in values)).item()

    return call


def _integral(name: str) -> Callable[..., Any]:
    ufunc = getattr(np, name)
    return lambda signature, value: value if isinstance(value, int) else float(ufunc(value))


def _gamma_like(function: Callable[[float], float]) -> Callable[..., Any]:
    return lambda signature, value: function(value)


_NUMPY_NAMES = {
    "sqrt": "sqrt", "exp": "exp", "expm1": "expm1", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "atan2": "arctan2", "pow": "power", "fmod": "fmod", "hypot": "hypot", "copysign": "copysign", "fabs": "fabs",
}  # fmt: skip

PURE: dict[Any, Callable[..., Any]] = {
    getattr(math, name): _through_numpy(numpy_name) for name, numpy_name in _NUMPY_NAMES.items()
}
PURE |= {math.floor: _integral("floor"), math.ceil: _integral("ceil"), math.trunc: _integral("trunc")}
PURE |= {function: _gamma_like(function) for function in (math.erf, math.erfc, math.gamma, math.lgamma)}
PURE |= {
    math.isnan: lambda s, x: x != x,
    math.isinf: lambda s, x: x in (math.inf, -math.inf),
    math.isfinite: lambda s, x: x - x == 0,
    math.degrees: lambda s, x: math.degrees(x),
    math.radians: lambda s, x: math.radians(x),
    math.ldexp: lambda s, x, n: math.ldexp(x, n),
    abs: lambda s, x: abs(x),
    minimum: lambda s, *xs: min(xs),
    maximum: lambda s, *xs: max(xs),
    round: lambda s, *xs: round(*xs),
    int: lambda s, x=0: x,
    float: lambda s, x=0.0: x,
    bool: lambda s, x=False: x,
    numba_cuda.popc: _popc,
    numba_cuda.clz: _clz,
    numba_cuda.ffs: _ffs,
    numba_cuda.brev: _brev,
    numba_cuda.fma: _fma,
    numba_cuda.selp: lambda s, condition, a, b: a if condition else b,
}

ATOMIC: dict[str, Callable[..., Any]] = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "max": lambda old, value: max(old, value),
    "min": lambda old, value: min(old, value),
    "and_": lambda old, value: old & value,
    "or_": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exch": lambda old, value: value,
    "inc": lambda old, value: 0 if old >= value else old + 1,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
}
