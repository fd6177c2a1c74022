"""What a case of the corpus is: a kernel, its launch, its inputs and, where simple, what NumPy says it should give."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """One kernel with its launch; `expected` maps the position of an array argument to its value after the launch."""

    name: str
    kernel: Callable[..., None]
    grid: Any
    block: Any
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    expected: Callable[..., dict[int, Any]] | None = None
    shared_bytes: int = 0
    ulp: int = 0
    simulator: bool = True  # Numba's simulator can run it: no warp operations, one shared array a line

    def arguments(self) -> tuple[Any, ...]:
        """Fresh arguments, the same on every call."""
        return self.inputs(np.random.default_rng(zlib.crc32(self.name.encode())))


CASES: dict[str, Case] = {}


def case(grid: Any, block: Any, inputs: Callable[..., tuple], **options: Any) -> Callable[[Callable], Callable]:
    """Add the decorated kernel to the corpus; the function itself stays a plain function."""

    def register(kernel: Callable[..., None]) -> Callable[..., None]:
        assert kernel.__name__ not in CASES, f"{kernel.__name__} is there already"
        CASES[kernel.__name__] = Case(kernel.__name__, kernel, grid, block, inputs, **options)
        return kernel

    return register


def floats(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Random floats between -2 and 2."""
    return rng.uniform(-2, 2, shape).astype(dtype)


def whole(rng: np.random.Generator, *shape: int, low: int = -9, high: int = 10, dtype: Any = np.int64) -> np.ndarray:
    """Random whole numbers in any dtype, so that sums are exact whatever their order."""
    return rng.integers(low, high, shape).astype(dtype)
