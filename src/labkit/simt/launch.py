"""Kernels, their launch configuration, and a simulated launch."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit.errors import InputError, KernelError
from labkit.simt.arrays import DeviceArray
from labkit.simt.compiler import compile_kernel
from labkit.simt.machine import Run
from labkit.simt.memory import copy_with_strides, open_global
from labkit.simt.program import Program
from labkit.simt.source import KernelSource
from labkit.simt.types import SCALARS, ArrayType, Type, array_type, type_of_number
from labkit.simt.watch import Watch

DEFAULT_STEP_LIMIT = 1_000_000

# NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", compute capability 7.5 (T4).
MAX_THREADS_PER_BLOCK = 1024
MAX_BLOCK_DIM = (1024, 1024, 64)
MAX_GRID_DIM = (2**31 - 1, 65_535, 65_535)
MAX_STATIC_SHARED_BYTES = 48 * 1024
MAX_SHARED_BYTES = 64 * 1024


def normalise_dim(name: str, value: Any) -> tuple[int, int, int]:
    """Return a grid or block as (x, y, z); InputError for what is not one to three integers.

    >>> normalise_dim("grid", 4), normalise_dim("block", (16, 16))
    ((4, 1, 1), (16, 16, 1))
    """
    sizes = tuple(value) if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str) else (value,)
    if not 1 <= len(sizes) <= 3 or any(isinstance(n, bool) or not isinstance(n, int | np.integer) for n in sizes):
        raise InputError(f"{name}={value!r}", f"a {name} is one to three integers", "For example 4 or (16, 16).")
    return tuple(int(n) for n in sizes) + (1,) * (3 - len(sizes))


def broken_limits(
    grid: tuple[int, int, int], block: tuple[int, int, int], shared_bytes: int, program: Program | None = None
) -> list[str]:
    """Return what a GPU would refuse about a launch, a sentence each."""
    problems = []
    for name, dims, limits in (("grid", grid, MAX_GRID_DIM), ("block", block, MAX_BLOCK_DIM)):
        for axis, size, limit in zip("xyz", dims, limits, strict=True):
            if size < 1:
                problems.append(f"the {name} has {size} along {axis}: it must be at least 1")
            elif size > limit:
                problems.append(f"the {name} has {size:,} along {axis}: a GPU allows {limit:,}")
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS_PER_BLOCK and not problems:
        problems.append(f"the block has {threads:,} threads: a GPU allows {MAX_THREADS_PER_BLOCK:,}")
    static = sum(program.shared_bytes.values()) if program else 0
    if static > MAX_STATIC_SHARED_BYTES:
        problems.append(
            f"the kernel has {static:,} bytes of static shared memory: a GPU allows {MAX_STATIC_SHARED_BYTES:,}"
        )
    elif shared_bytes < 0 or static + shared_bytes > MAX_SHARED_BYTES:
        problems.append(
            f"the launch asks for {shared_bytes:,} bytes of dynamic shared memory beside {static:,} static ones: "
            f"a T4 has {MAX_SHARED_BYTES:,} for a block"
        )
    return problems


class Kernel:
    """A function decorated with @cuda.jit, for the simulator: `kernel[grid, block](…)` runs it.

    It is compiled at its first launch or trace for each combination of argument types, not when it is decorated.
    """

    def __init__(self, function: Callable[..., Any], signature: Any = None) -> None:
        self.py_func = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.__module__ = function.__module__
        self._signature = signature
        self._programs: dict[tuple, Program] = {}

    def __getitem__(self, configuration: Any) -> Launch:
        """Return the kernel with its launch configuration: kernel[grid, block, stream, shared_bytes]."""
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 4:
            raise InputError(
                f"{self.__name__}[{configuration!r}]",
                "a launch needs a grid and a block",
                "Write kernel[grid, block](…).",
            )
        grid, block, *rest = configuration
        shared_bytes = rest[1] if len(rest) > 1 else 0
        return Launch(self, normalise_dim("grid", grid), normalise_dim("block", block), check_bytes(shared_bytes))

    def __call__(self, *args: Any) -> None:
        """Refuse a call without a configuration, which Numba refuses, too."""
        raise KernelError(
            f"{self.__name__}(…)", "a kernel needs a grid and a block", f"Write {self.__name__}[grid, block](…)."
        )

    def forall(self, ntasks: int, tpb: int = 0, stream: Any = 0, sharedmem: int = 0) -> Launch:
        """Return a one-dimensional launch with at least ntasks threads."""
        block = tpb or 128
        return self[max(1, -(-ntasks // block)), block, stream, sharedmem]

    def program(self, types: dict[str, Type]) -> Program:
        """Return the kernel compiled for these argument types."""
        key = tuple(types.items())
        if key not in self._programs:
            self._programs[key] = compile_kernel(KernelSource(self.py_func), types)
        return self._programs[key]

    def inspect_source(self) -> str:
        """Return the generated Python code of every compiled version."""
        return "\n\n".join("\n".join(program.text) for program in self._programs.values())

    def bind(self, args: Sequence[Any]) -> Arguments:
        """Return the arguments of a launch, typed."""
        if not isinstance(self._signature, list):
            return Arguments.bind(self.py_func, args, parse_signature(self._signature))
        for place, signature in enumerate(self._signature):
            try:
                return Arguments.bind(self.py_func, args, parse_signature(signature))
            except KernelError:
                if place == len(self._signature) - 1:
                    raise
        return Arguments.bind(self.py_func, args, None)


def check_bytes(value: Any) -> int:
    """Return a number of bytes; InputError for anything but an integer."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"shared_bytes={value!r}", "the dynamic shared memory is a whole number of bytes")
    return int(value)


@dataclass
class Arguments:
    """The arguments of a launch: their names, their types, and the arrays and numbers behind them."""

    names: list[str]
    types: dict[str, Type]
    values: list[Any]
    on_gpu: list[tuple[Any, np.ndarray]] = field(default_factory=list)  # arrays of a real GPU, and their copies here

    @classmethod
    def bind(cls, function: Callable[..., Any], args: Sequence[Any], signature: tuple[Type, ...] | None) -> Arguments:
        """Type the arguments of a kernel; KernelError for what a kernel cannot take."""
        names = list(inspect.signature(function).parameters)
        if len(names) != len(args):
            raise KernelError(
                f"{function.__name__} with {len(args)} arguments",
                f"it takes {len(names)} ({', '.join(names)})",
                "Give one argument for each parameter.",
            )
        if signature is not None and len(signature) != len(names):
            raise KernelError(
                f"{function.__name__} with a signature of {len(signature)} types", f"it has {len(names)} parameters"
            )
        types: dict[str, Type] = {}
        values, on_gpu = [], []
        for place, (name, given) in enumerate(zip(names, args, strict=True)):
            if not isinstance(given, DeviceArray) and hasattr(given, "copy_to_host"):
                on_gpu.append((given, given.copy_to_host()))
                given = on_gpu[-1][1]
            types[name], value = _typed(f"argument `{name}` of {function.__name__}", given)
            if signature is not None:
                types[name], value = _declared(f"argument `{name}`", signature[place], types[name], value)
            values.append(value)
        return cls(names, types, values, on_gpu)

    def copy(self) -> Arguments:
        """Return the arguments with copies of the arrays, strides and all."""
        values = [copy_with_strides(v) if isinstance(v, np.ndarray) else v for v in self.values]
        return Arguments(self.names, self.types, values)

    def require_contiguous(self) -> None:
        """Refuse arrays that Numba would refuse to copy to a GPU."""
        for name, value in zip(self.names, self.values, strict=True):
            if isinstance(value, np.ndarray) and not (value.flags.c_contiguous or value.flags.f_contiguous):
                raise KernelError(
                    f"argument `{name}`, an array with gaps (strides {value.strides})",
                    "only contiguous arrays can be copied to a GPU",
                    "Use np.ascontiguousarray(…), or trace(…), which honours strides.",
                )

    def require_writeable(self, stored: set[str]) -> None:
        """Refuse read-only arrays that the kernel may write."""
        for name, value in zip(self.names, self.values, strict=True):
            if name in stored and not value.flags.writeable:
                raise KernelError(f"argument `{name}`, a read-only array", "the kernel writes to it", "Pass a copy.")

    def open(self, watch: Watch) -> tuple[list[Any], Callable[[], None]]:
        """Return what the compiled kernel is called with, and what to call afterwards to write back copies."""
        opened, copies = [], []
        for name, value in zip(self.names, self.values, strict=True):
            if isinstance(value, np.ndarray):
                memory, is_copy = open_global(name, value, watch)
                opened.append(memory)
                if is_copy and value.flags.writeable:
                    copies.append((value, memory))
            else:
                opened.append(value)

        def write_back() -> None:
            for array, memory in copies:
                array[...] = memory.cells.reshape(array.shape)
            for device_array, host_array in self.on_gpu:
                device_array.copy_to_device(host_array)

        return opened, write_back


def _typed(what: str, given: Any) -> tuple[Type, Any]:
    value = given.array if isinstance(given, DeviceArray) else given
    if isinstance(value, np.ndarray) and value.ndim:
        return array_type(what, value), value
    value = value[()] if isinstance(value, np.ndarray) else value
    dtype = type_of_number(value)
    if dtype is None:
        advice = "Pass NumPy arrays and numbers; a list becomes an array with np.array(…)."
        raise KernelError(f"{what}: {type(given).__name__}", "a kernel cannot take this", advice)
    return dtype, dtype.type(value)


def _declared(what: str, declared: Type, given: Type, value: Any) -> tuple[Type, Any]:
    """Convert a number to its declared type; an array must have it already, as in Numba."""
    if isinstance(declared, np.dtype) and isinstance(given, np.dtype):
        with np.errstate(all="ignore"):
            return declared, np.asarray(value).astype(declared)[()]
    if declared != given:
        raise KernelError(
            f"{what}: {given}", f"the signature in @cuda.jit says {declared}", "Convert it, or leave the signature out."
        )
    return given, value


_ARRAY_IN_SIGNATURE = re.compile(r"array\((\w+), (\d)d")


def parse_signature(signature: Any) -> tuple[Type, ...] | None:
    """Return the types in a signature as @cuda.jit takes it: a string, a tuple of types, or one of Numba's objects.

    >>> parse_signature("void(float32[:,:], int32)")
    (ArrayType(dtype=dtype('float32'), ndim=2, read_only=False), dtype('int32'))
    """
    if signature is None:
        return None
    signature = getattr(signature, "args", signature)  # Numba's signature objects hold their types there
    if isinstance(signature, tuple):
        return tuple(_parse_type(str(item)) for item in signature)
    text = str(signature).strip()
    inside = text[text.index("(") + 1 :] if "(" in text else ""
    parts = re.findall(r"array\([^)]*\)|\w+(?:\[[^\]]*\])?", inside.rpartition(")")[0])
    return tuple(_parse_type(part) for part in parts)


def _parse_type(text: str) -> Type:
    aliases = {
        "f4": "float32",
        "f8": "float64",
        "i4": "int32",
        "i8": "int64",
        "u4": "uint32",
        "u8": "uint64",
        "b1": "bool",
    }
    match = _ARRAY_IN_SIGNATURE.match(text)
    name, ndim = (match[1], int(match[2])) if match else (text.partition("[")[0], 0)
    if "[" in text:
        ndim = text.count(",") + 1  # float32[:, ::1]
    dtype = SCALARS.get(aliases.get(name, name))
    if dtype is None:
        raise KernelError(
            f"{text} in a signature", "this type is not known", "Use for example float32, int64, float32[:]."
        )
    return ArrayType(dtype, ndim) if ndim else dtype


@dataclass(frozen=True)
class Launch:
    """A kernel with its grid, block and dynamic shared memory; calling it runs the kernel on the CPU."""

    kernel: Kernel
    grid_dim: tuple[int, int, int]
    block_dim: tuple[int, int, int]
    shared_bytes: int = 0

    def __call__(self, *args: Any) -> None:
        """Run the kernel on the arguments, in step; KernelError where a GPU would fail."""
        arguments = self.kernel.bind(args)
        arguments.require_contiguous()
        program = self.kernel.program(arguments.types)
        arguments.require_writeable(program.stored)
        problems = broken_limits(self.grid_dim, self.block_dim, self.shared_bytes, program)
        if problems:
            line = program.source.first_line
            raise KernelError(f"launch of {self.kernel.__name__} (line {line})", problems[0], "Use a smaller launch.")
        watch = Watch(program, self.grid_dim, self.block_dim)
        opened, write_back = arguments.open(watch)
        run = Run(program, self.grid_dim, self.block_dim, opened, self.shared_bytes, watch, DEFAULT_STEP_LIMIT)
        try:
            run.lockstep()
        finally:
            write_back()
