"""Compile what stands behind `cuda.` in a kernel: indices, arrays, barriers, atomics, warp functions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from labkit.errors import KernelError
from labkit.simt.expressions import ExpressionCompiler
from labkit.simt.program import Expr
from labkit.simt.source import MISSING
from labkit.simt.types import (
    BOOL,
    F32,
    F64,
    I32,
    I64,
    SCALARS,
    U64,
    ArrayType,
    TupleType,
    as_dtype,
    is_integer,
)

_U32 = SCALARS["uint32"]
_ATOMIC_TYPES = {
    "add": {F64, F32, I32, I64, _U32, U64},
    "and_": {I32, I64, _U32, U64},
    "inc": {_U32, U64},
}
_ATOMIC_TYPES |= dict.fromkeys(("sub", "max", "min", "nanmax", "nanmin"), _ATOMIC_TYPES["add"])
_ATOMIC_TYPES |= dict.fromkeys(("or_", "xor", "exch", "cas", "compare_and_swap"), _ATOMIC_TYPES["and_"])
_ATOMIC_TYPES["dec"] = _ATOMIC_TYPES["inc"]

_BARRIERS = ("syncthreads", "syncthreads_count", "syncthreads_and", "syncthreads_or")
_INDICES = {
    f"{name}.{axis}": f"k.{method}({number})"
    for name, method in {
        "threadIdx": "thread_index",
        "blockIdx": "block_index",
        "blockDim": "block_dim",
        "gridDim": "grid_dim",
    }.items()
    for number, axis in enumerate("xyz")
}
_SHUFFLES = ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync")
_VOTES = {"ballot_sync": I32, "all_sync": BOOL, "any_sync": BOOL, "eq_sync": BOOL}
_BITS = {
    "popc": "population_count",
    "clz": "leading_zeros",
    "ffs": "find_first_set",
    "brev": "reverse_bits",
}
_FENCES = ("threadfence", "threadfence_block", "threadfence_system")


class Intrinsic:
    """Something behind `cuda.` that exists only inside a kernel, such as cuda.threadIdx.x or cuda.shared.array."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Intrinsic:
        if name.startswith("__"):
            raise AttributeError(name)
        return Intrinsic(f"{self._path}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: there are no threads outside a kernel."""
        raise KernelError(
            f"cuda.{self._path}", "this exists only inside a kernel", "Call it in a function decorated with @cuda.jit."
        )

    def __repr__(self) -> str:
        return f"<cuda.{self._path}, inside kernels only>"


DEVICE_NAMES = {
    *(path.split(".")[0] for path in _INDICES),
    *("laneid", "warpsize", "grid", "gridsize", "shared", "local", "const", "atomic", "syncwarp", "activemask"),
    *("lanemask_lt", "fma", "selp"),
    *_BARRIERS,
    *_SHUFFLES,
    *_VOTES,
    *_BITS,
    *_FENCES,
}


class IntrinsicCompiler(ExpressionCompiler):
    """The names behind `cuda.`, whether ours or Numba's."""

    def static_attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of an object outside the kernel; of `cuda`, the intrinsic of that name."""
        is_cuda = getattr(owner, "is_cuda_namespace", False) is True
        if is_cuda or (isinstance(owner, ModuleType) and owner.__name__.endswith("numba.cuda")):
            return Intrinsic(name)
        return getattr(owner, name, MISSING)

    def intrinsic_name(self, value: Any) -> str | None:
        """Return the path behind `cuda.` of an intrinsic, or None for anything else."""
        return value._path if isinstance(value, Intrinsic) else None

    def device_function(self, value: Any) -> Callable[..., Any] | None:
        """Return the Python function of what @cuda.jit has decorated, ours or Numba's, or None."""
        function = getattr(value, "py_func", None)
        return function if callable(function) and not isinstance(value, Intrinsic) else None

    def is_barrier(self, function: Any) -> bool:
        """Return whether calling this runs into a barrier."""
        if self.intrinsic_name(function) is not None:
            return function._path in _BARRIERS
        inner = self.device_function(function)
        return inner is not None and any(name.startswith("syncthreads") for name in inner.__code__.co_names)

    def outside(self, value: Any, node: ast.AST) -> Expr:
        """Return something from outside the kernel as an expression; an index intrinsic becomes its value."""
        path = self.intrinsic_name(value)
        if path is None:
            return super().outside(value, node)
        if path in _INDICES:
            return Expr(_INDICES[path], I32)
        if path == "laneid":
            return Expr("k.lane_id", I32)
        if path == "warpsize":
            return self.cast(self.number(32), I32)
        if path.split(".")[0] not in DEVICE_NAMES:
            advice = "Kernels have threadIdx, blockIdx, grid, shared.array, syncthreads, atomic.add and their kin."
            self.source.refuse(node, f"cuda.{path}", advice)
        return Expr("", None, value)

    # ---- calls ----

    def intrinsic(self, node: ast.Call, path: str) -> Expr:
        """Compile a call of something behind `cuda.`."""
        name = path.replace(".", "_")
        if path.startswith("atomic."):
            return self._atomic(node, path.removeprefix("atomic."))
        if path in _BARRIERS:
            return self._barrier(node, path)
        if path in _SHUFFLES:
            return self._shuffle(node, path)
        if path in _VOTES:
            return self._vote(node, path)
        if path in _BITS:
            return self._bits(node, path)
        method = getattr(self, f"_cuda_{name}", None)
        if method is None:
            advice = "See the documentation of labkit.simt for what kernels have."
            if path in _FENCES:
                advice = "Let the kernel end and launch a second one: only that orders the blocks of a grid."
            self.source.refuse(node, f"cuda.{path}(…)", advice)
        return method(node)

    def _inputs(self, node: ast.Call, path: str, *names: str, optional: int = 0) -> list[ast.expr]:
        """Return the arguments of a call in order, whether given by place or by name."""
        given = dict(zip(names, node.args, strict=False)) | {k.arg: k.value for k in node.keywords}
        missing = [n for n in names[: len(names) - optional] if n not in given]
        if len(node.args) > len(names) or missing or set(given) - set(names):
            self.source.refuse(
                node, f"these arguments of cuda.{path}", f"Call cuda.{path}({', '.join(names)}).", "they do not fit"
            )
        return [given[n] for n in names if n in given]

    def _temporary(self, code: str, dtype: np.dtype) -> Expr:
        name = f"t{self.new_number()}"
        self.emit(f"{name} = {code}")
        return Expr(name, dtype)

    def _cuda_grid(self, node: ast.Call) -> Expr:
        return self._per_axis(node, "grid")

    def _cuda_gridsize(self, node: ast.Call) -> Expr:
        return self._per_axis(node, "gridsize")

    def _per_axis(self, node: ast.Call, name: str) -> Expr:
        (argument,) = self._inputs(node, name, "ndim")
        ndim = self.scalar(argument).constant
        if ndim not in (1, 2, 3):
            self.source.refuse(node, f"cuda.{name} of this argument", "Give it the constant 1, 2 or 3.")
        items = tuple(Expr(f"k.{name}({axis})", I64) for axis in range(ndim))
        return items[0] if ndim == 1 else Expr("", TupleType((I64,) * ndim), MISSING, items)

    # ---- arrays ----

    def _cuda_shared_array(self, node: ast.Call) -> Expr:
        shape, dtype = self._shape_and_dtype(node, "shared.array")
        site = self.site(node, "shared")
        name = self.assigned_to or "shared"
        if 0 in shape:
            self.program.dynamic_dtypes.add(dtype)
            code = f"k.dynamic_shared({name!r}, {self.program.constant(dtype, 'd')})"
            return Expr(code, ArrayType(dtype, 1))
        self.program.shared_bytes[site] = math.prod(shape) * dtype.itemsize
        code = f"k.shared({site}, {name!r}, {shape}, {self.program.constant(dtype, 'd')})"
        return Expr(code, ArrayType(dtype, len(shape)))

    def _cuda_local_array(self, node: ast.Call) -> Expr:
        shape, dtype = self._shape_and_dtype(node, "local.array")
        site = self.site(node, "local")
        self.program.local_bytes[site] = math.prod(shape) * dtype.itemsize
        code = f"k.local({site}, {self.assigned_to or 'local'!r}, {shape}, {self.program.constant(dtype, 'd')})"
        return Expr(code, ArrayType(dtype, len(shape)))

    def _shape_and_dtype(self, node: ast.Call, path: str) -> tuple[tuple[int, ...], np.dtype]:
        shape_node, dtype_node = self._inputs(node, path, "shape", "dtype")
        shape = self.expression(shape_node)
        items = shape.items or (shape,)
        if not all(item.is_constant and is_integer(item.type) for item in items):
            advice = (
                "Use a number or a global constant such as TILE = 16 (and PADDED = TILE + 1, outside the kernel), or "
                "cuda.shared.array(0, dtype) and give the bytes at launch: kernel[grid, block, stream, bytes]."
            )
            problem = "a GPU lays out its memory when the kernel is compiled, so the shape must be known then"
            self.source.refuse(node, f"cuda.{path} with a shape that is not a constant", advice, problem)
        sizes = tuple(int(item.constant) for item in items)
        dtype = as_dtype(self.expression(dtype_node).constant)
        if dtype is None or not 1 <= len(sizes) <= 4 or min(sizes) < 0 or (0 in sizes and path != "shared.array"):
            advice = "Give 1 to 4 positive sizes and a scalar type such as np.float32."
            self.source.refuse(node, f"this shape or type of cuda.{path}", advice)
        return sizes, dtype

    def _cuda_const_array_like(self, node: ast.Call) -> Expr:
        (argument,) = self._inputs(node, "const.array_like", "array")
        value = self.expression(argument)
        if not (isinstance(value.type, ArrayType) and value.type.read_only):
            advice = "Give it a NumPy array that is defined outside the kernel."
            self.source.refuse(node, "cuda.const.array_like of this argument", advice)
        return value

    # ---- synchronisation ----

    def _barrier(self, node: ast.Call, path: str) -> Expr:
        self.has_barrier = True
        site = self.site(node, "barrier")
        if path == "syncthreads":
            self._inputs(node, path)
            self.emit(f"yield {site}, m, None, None")
            return Expr("", None)
        predicate = self.scalar(*self._inputs(node, path, "predicate"))
        if not is_integer(predicate.type) or predicate.type == BOOL:
            given = f"cuda.{path} of a {predicate.type.name}"
            self.source.refuse(node, given, "Write np.int32(…) around it.", "the predicate is an integer")
        test = self.as_bool(predicate)
        return self._temporary(f"yield {site}, m, {path.removeprefix('syncthreads_')!r}, {test.code}", I32)

    def _cuda_syncwarp(self, node: ast.Call) -> Expr:
        members = [self.scalar(a) for a in self._inputs(node, "syncwarp", "mask", optional=1)]
        code = self.cast(members[0], I64).code if members else "None"
        self.emit(f"k.syncwarp({self.site(node, 'syncwarp')}, m, {code})")
        return Expr("", None)

    def _atomic(self, node: ast.Call, name: str) -> Expr:
        if name not in _ATOMIC_TYPES:
            self.source.refuse(node, f"cuda.atomic.{name}", f"There are {', '.join(sorted(_ATOMIC_TYPES))}.")
        names = {"cas": ("ary", "idx", "old", "val"), "compare_and_swap": ("ary", "old", "val")}
        inputs = self._inputs(node, f"atomic.{name}", *names.get(name, ("ary", "idx", "val")))
        array = self.expression(inputs[0])
        if not isinstance(array.type, ArrayType) or array.type.read_only:
            self.source.refuse(node, f"cuda.atomic.{name} on this", "Give it an array that may be written.")
        if array.type.dtype not in _ATOMIC_TYPES[name]:
            known = ", ".join(sorted(t.name for t in _ATOMIC_TYPES[name]))
            self.source.refuse(
                node,
                f"cuda.atomic.{name} on {array.type.dtype.name}",
                f"Use one of {known}.",
                "a GPU has no such atomic",
            )
        self.mark_stored(array)
        if name == "compare_and_swap":
            inputs.insert(1, ast.copy_location(ast.Constant(0), node))
            name = "cas"
        place = self.expression(inputs[1])
        index = [self.keep(self.as_scalar(item, node)) for item in place.items or (place,)]
        if len(index) != array.type.ndim or not all(is_integer(i.type) for i in index):
            self.source.refuse(node, "this index", f"Give {array.type.ndim} integers, as a tuple if more than one.")
        values = [self.cast(self.scalar(v), array.type.dtype).code for v in inputs[2:]]
        wanted = node is not self.unused
        arguments = ", ".join([f"({', '.join(values)},)", f"({', '.join(i.code for i in index)},)", str(wanted)])
        return self._temporary(
            f"k.atomic({self.site(node, 'atomic')}, m, {name!r}, {array.code}, {arguments})", array.type.dtype
        )

    # ---- warps ----

    def _shuffle(self, node: ast.Call, path: str) -> Expr:
        last = {"shfl_sync": "src_lane", "shfl_xor_sync": "lane_mask"}.get(path, "delta")
        mask, value, place = (self.scalar(a) for a in self._inputs(node, path, "mask", "value", last))
        small = value.type.kind in "iub" and value.type.itemsize <= 4 and value.type != _U32
        dtype = value.type if value.type in (F32, F64) else I32 if small else F64 if value.type.kind == "f" else I64
        codes = f"{self.cast(mask, I64).code}, {self.cast(value, dtype).code}, {self.cast(place, I64).code}"
        return self._temporary(f"k.shuffle({self.site(node, 'shuffle')}, m, {path!r}, {codes})", dtype)

    def _vote(self, node: ast.Call, path: str) -> Expr:
        mask, predicate = (self.scalar(a) for a in self._inputs(node, path, "mask", "predicate"))
        codes = f"{self.cast(mask, I64).code}, {self.as_bool(predicate).code}"
        return self._temporary(f"k.vote({self.site(node, 'vote')}, m, {path!r}, {codes})", _VOTES[path])

    def _cuda_activemask(self, node: ast.Call) -> Expr:
        self._inputs(node, "activemask")
        return self._temporary("k.activemask(m)", _U32)

    def _cuda_lanemask_lt(self, node: ast.Call) -> Expr:
        self._inputs(node, "lanemask_lt")
        return Expr("k.lanemask_lt()", _U32)

    # ---- numbers ----

    def _bits(self, node: ast.Call, path: str) -> Expr:
        value = self.scalar(self._inputs(node, path, "x")[0])
        if not is_integer(value.type):
            self.source.refuse(node, f"cuda.{path} of a {value.type.name}", "Give it an integer.")
        dtype = I32 if value.type == BOOL else value.type
        if path == "brev":
            dtype = U64 if dtype.itemsize == 8 else _U32
        result = _U32 if path == "ffs" else dtype
        code = f"ops.{_BITS[path]}({self.cast(value, dtype).code})"
        return Expr(code if path == "brev" else f"{code}.astype({self.program.constant(result, 'd')})", result)

    def _cuda_fma(self, node: ast.Call) -> Expr:
        values = [self.scalar(a) for a in self._inputs(node, "fma", "a", "b", "c")]
        dtype = F32 if all(v.type == F32 for v in values) else F64
        self.add_flop(dtype, 2)
        return Expr(f"ops.fma({', '.join(self.cast(v, dtype).code for v in values)})", dtype)

    def _cuda_selp(self, node: ast.Call) -> Expr:
        test, a, b = (self.keep(self.scalar(x)) for x in self._inputs(node, "selp", "test", "a", "b"))
        if a.type != b.type:
            given = f"cuda.selp between {a.type.name} and {b.type.name}"
            self.source.refuse(node, given, "Convert one of the two.", "both values must have one type")
        return Expr(f"ops.select({self.as_bool(test).code}, {a.code}, {b.code})", a.type)
