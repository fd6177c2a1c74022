"""The types of Numba's compiler: what `a + b` is, what a variable becomes, what an argument arrives as.

A scalar type is a NumPy dtype. The rules below were read off Numba 0.68 (`numba.njit`), not off NumPy: an integer
literal is int64, int32 + int32 is int64, float32 * int64 is float64, and int64 + uint64 stays int64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from labkit.errors import KernelError

BOOL = np.dtype(np.bool_)
I32 = np.dtype(np.int32)
I64 = np.dtype(np.int64)
U64 = np.dtype(np.uint64)
F16 = np.dtype(np.float16)
F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)

SCALARS = {
    dtype.name: dtype
    for dtype in map(np.dtype, ("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"))
}
SCALARS |= {"boolean": BOOL, "bool_": BOOL, "intp": I64, "uintp": U64}

# Types that fit into float32 without loss keep an expression in float32; wider integers pull it up to float64.
_EXACT_IN_F32 = {BOOL, SCALARS["int8"], SCALARS["int16"], SCALARS["uint8"]}


@dataclass(frozen=True)
class ArrayType:
    """An array as the compiler sees it: the type of its elements and its number of dimensions."""

    dtype: np.dtype
    ndim: int
    read_only: bool = False

    def __str__(self) -> str:
        return f"array of {self.dtype.name} with {self.ndim} dimension{'s' * (self.ndim != 1)}"


@dataclass(frozen=True)
class TupleType:
    """A tuple of scalars, such as a shape or what cuda.grid(2) returns."""

    items: tuple[np.dtype, ...]

    def __str__(self) -> str:
        return f"tuple of {len(self.items)}"


Type = np.dtype | ArrayType | TupleType


def is_float(dtype: Type) -> bool:
    """True for float16, float32 and float64."""
    return isinstance(dtype, np.dtype) and dtype.kind == "f"


def is_integer(dtype: Type) -> bool:
    """True for the signed and unsigned integers, and for bool, which counts as one."""
    return isinstance(dtype, np.dtype) and dtype.kind in "iub"


def unify(a: Type, b: Type) -> Type | None:
    """Return the one type that a variable takes when two paths give it a and b, or None if there is none.

    >>> str(unify(I64, F32)), str(unify(I64, U64))
    ('float64', 'float64')
    """
    if a == b:
        return a
    if isinstance(a, np.dtype) and isinstance(b, np.dtype):
        return np.promote_types(a, b)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.items) == len(b.items):
        return TupleType(tuple(np.promote_types(x, y) for x, y in zip(a.items, b.items, strict=True)))
    return None


def arithmetic_type(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of a + b, a - b, a * b, a // b and a % b.

    >>> str(arithmetic_type(I32, I32)), str(arithmetic_type(F32, F32)), str(arithmetic_type(F32, I64))
    ('int64', 'float32', 'float64')
    """
    if is_float(a) or is_float(b):
        if F64 in (a, b):
            return F64
        if a.kind == b.kind:
            return max(a, b, key=lambda dtype: dtype.itemsize)
        integer = b if is_float(a) else a
        floating = a if is_float(a) else b
        return max(floating, F32, key=lambda dtype: dtype.itemsize) if integer in _EXACT_IN_F32 else F64
    return U64 if a.kind == "u" and b.kind == "u" else I64


def binary_type(op: str, a: np.dtype, b: np.dtype) -> np.dtype | None:
    """Return the type of `a op b` for an operator's name as in the ast module, or None if there is no such operation.

    >>> str(binary_type("Div", I64, I64)), str(binary_type("Pow", F32, I64)), binary_type("BitAnd", F32, I64)
    ('float64', 'float32', None)
    """
    floating = is_float(a) or is_float(b)
    if op == "Div":
        return arithmetic_type(a, b) if floating else F64
    if op == "Pow":
        return a if is_float(a) and not is_float(b) else arithmetic_type(a, b)
    if op in ("LShift", "RShift"):
        return None if floating else (U64 if a.kind == "u" else I64)
    if op in ("BitAnd", "BitOr", "BitXor"):
        if floating:
            return None
        return BOOL if a == b == BOOL else arithmetic_type(a, b)
    return arithmetic_type(a, b)


def unary_type(op: str, a: np.dtype) -> np.dtype | None:
    """Return the type of -a, +a, ~a or `not a`, or None if there is no such operation."""
    if op == "Not" or (op == "Invert" and a == BOOL):
        return BOOL
    if is_float(a):
        return None if op == "Invert" else a
    return U64 if a.kind == "u" else I64


def math_type(*arguments: np.dtype) -> np.dtype:
    """Return the type of a math function: float32 only if nothing wider comes in, an integer gives float64.

    >>> str(math_type(F32)), str(math_type(I64))
    ('float32', 'float64')
    """
    return F32 if all(dtype in (F32, F16) for dtype in arguments) else F64


def range_type(*arguments: np.dtype) -> np.dtype:
    """Return the type of the loop variable of range(…)."""
    if all(dtype.kind == "u" for dtype in arguments):
        return U64
    return I32 if all(dtype.kind in "ib" and dtype.itemsize <= 4 for dtype in arguments) else I64


def as_dtype(value: Any) -> np.dtype | None:
    """Return the dtype that a scalar type names (np.float32, numba's float32, float, 'float32'), or None."""
    if value in (int, float, bool):
        return {int: I64, float: F64, bool: BOOL}[value]
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return SCALARS.get(np.dtype(value).name)
    # Numba's types are recognised by their module and printed name, so that numba is never imported here.
    if isinstance(value, str) or type(value).__module__.startswith(("numba.", "labkit.")):
        return SCALARS.get(str(value))
    return None


def type_of_number(value: Any) -> np.dtype | None:
    """Return the type that a Python or NumPy number has inside a kernel, or None if a kernel cannot hold it.

    >>> str(type_of_number(2)), str(type_of_number(2.0)), str(type_of_number(np.float32(2)))
    ('int64', 'float64', 'float32')
    """
    if isinstance(value, np.generic):
        return SCALARS.get(value.dtype.name)
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return I64
        return U64 if 0 <= value < 2**64 else None
    return F64 if isinstance(value, float) else None


def array_type(name: str, array: np.ndarray) -> ArrayType:
    """Return the type of a kernel's array argument; KernelError if a kernel cannot hold its elements."""
    if array.dtype.name not in SCALARS or not array.dtype.isnative:
        raise KernelError(
            f"{name} with elements of type {array.dtype}",
            "kernels here hold bool, integers, float16, float32 and float64",
            "Convert it first, for example with .astype(np.float32).",
        )
    if not 1 <= array.ndim <= 4:
        raise KernelError(
            f"{name} with {array.ndim} dimensions", "kernels here take arrays of 1 to 4", "Reshape it first."
        )
    return ArrayType(array.dtype, array.ndim)
