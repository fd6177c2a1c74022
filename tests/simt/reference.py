"""A plain scalar interpreter of CUDA kernels: one Python generator per thread, statement by statement.

It shares no line with labkit. Control flow and types come from Numba's CUDA front end (numba_frontend), each value is
one Python number, threads stop at barriers and warp operations and go on when those they wait for have arrived.
`launch(function, grid, block, *arrays)` changes the arrays as a launch on a GPU would. `reverse=True` runs the threads
the other way round: a kernel whose result depends on that has a race.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numba import cuda as numba_cuda
from numba import typeof, types
from numba.core import ir
from numba.np.numpy_support import as_dtype
from numba_frontend import TypedFunction, for_numba, infer

from . import scalar_ops
from .scalar_ops import cast

WARP_SIZE = 32
_BARRIERS = {numba_cuda.syncthreads: "sync", numba_cuda.syncthreads_count: "count",
             numba_cuda.syncthreads_and: "and", numba_cuda.syncthreads_or: "or"}  # fmt: skip
_WARP_OPERATIONS = {
    getattr(numba_cuda, name): name
    for name in ("shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "ballot_sync", "all_sync", "any_sync",
                 "syncwarp", "activemask")
}  # fmt: skip


class DeadlockError(Exception):
    """Threads wait for others that will never come."""


def launch(function: Any, grid: Any, block: Any, *arguments: Any, shared_bytes: int = 0, reverse: bool = False) -> None:
    """Run a kernel thread by thread; NumPy arrays are changed in place."""
    function = for_numba(function)
    typed = infer(function, tuple(typeof(argument) for argument in arguments))
    grid, block = _three(grid), _three(block)
    for block_index in np.ndindex(*grid[::-1]):
        Block(grid, block, block_index[::-1], shared_bytes).run(typed, arguments, reverse)


def types_of(function: Any, *arguments: Any) -> dict[str, str]:
    """The Numba type of every named variable (all of its SSA versions) for these arguments."""
    typed = infer(for_numba(function), tuple(typeof(argument) for argument in arguments))
    named = {name: str(types.unliteral(kind)) for name, kind in typed.typemap.items()}
    return {name: kind for name, kind in named.items() if not name.startswith(("$", "arg."))}


def _three(extent: Any) -> tuple[int, int, int]:
    extent = tuple(extent) if isinstance(extent, (tuple, list)) else (extent,)
    return (*extent, 1, 1, 1)[:3]


class Block:
    """One block of threads with its shared memory."""

    def __init__(self, grid: tuple, block: tuple, index: tuple, shared_bytes: int) -> None:
        self.grid_dim, self.block_dim, self.index = grid, block, index
        self.shared: dict[Any, np.ndarray] = {}
        self.dynamic = np.full(shared_bytes, 0xA5, np.uint8)

    def run(self, typed: TypedFunction, arguments: tuple, reverse: bool) -> None:
        """Run all threads to their end."""
        width, height, depth = self.block_dim
        places = [(x, y, z) for z in range(depth) for y in range(height) for x in range(width)]
        self.threads = [Thread(self, rank, place) for rank, place in enumerate(places)]
        ready = self.threads[::-1] if reverse else list(self.threads)
        for thread in ready:
            thread.start(typed, arguments)
        while ready:
            for thread in ready:
                thread.resume()
            ready = self._released()
            if reverse:
                ready.reverse()
        stuck = [thread.rank for thread in self.threads if thread.waits_for]
        if stuck:
            raise DeadlockError(f"threads {stuck} of block {self.index} wait for ever")

    def _released(self) -> list[Thread]:
        live = [thread for thread in self.threads if not thread.done]
        if live and all(thread.waits_for[0] == "barrier" for thread in live):
            predicates = [bool(thread.waits_for[2]) for thread in live]
            answers = {"sync": None, "count": sum(predicates), "and": int(all(predicates)), "or": int(any(predicates))}
            for thread in live:
                thread.answer = answers[thread.waits_for[1]]
            return live
        for start in range(0, len(self.threads), WARP_SIZE):
            warp = self.threads[start : start + WARP_SIZE]
            released = _complete_warp_operation(warp)
            if released:
                return released
        return []


def _complete_warp_operation(warp: list[Thread]) -> list[Thread]:
    """Answer the first operation of a warp that all lanes named in its mask have reached."""
    for thread in warp:
        if thread.done or thread.waits_for[0] != "warp":
            continue
        _, name, mask, *_ = thread.waits_for
        members = [other for other in warp if mask >> (other.rank % WARP_SIZE) & 1 and not other.done]
        if all(other.waits_for[:3] == ("warp", name, mask) for other in members):
            for other in members:
                other.answer = _warp_answer(name, other, members)
            return members
    return []


def _warp_answer(name: str, thread: Thread, members: list[Thread]) -> Any:
    values = {member.rank % WARP_SIZE: member.waits_for[3:] for member in members}
    lane, own = thread.rank % WARP_SIZE, thread.waits_for[3:]
    if name == "syncwarp":
        return None
    if name == "activemask":
        return sum(1 << member for member in values)
    if name == "ballot_sync":
        return sum(1 << member for member, (predicate,) in values.items() if predicate)
    if name in ("all_sync", "any_sync"):
        return (all if name == "all_sync" else any)(bool(predicate) for (predicate,) in values.values())
    value, by = own
    source = {"shfl_sync": by % WARP_SIZE, "shfl_up_sync": lane - by, "shfl_down_sync": lane + by,
              "shfl_xor_sync": lane ^ by}[name]  # fmt: skip
    return values[source][0] if source in values else value


class Thread:
    """One thread: a generator that yields what it waits for."""

    def __init__(self, block: Block, rank: int, place: tuple[int, int, int]) -> None:
        self.block, self.rank, self.place = block, rank, place
        self.done, self.answer, self.waits_for = False, None, ()

    def start(self, typed: TypedFunction, arguments: tuple) -> None:
        """Prepare to run; nothing is executed yet."""
        self.running = self.function(typed, arguments)

    def resume(self) -> None:
        """Run on to the next barrier or warp operation, or to the end."""
        try:
            answer, self.answer = self.answer, None
            self.waits_for = self.running.send(answer)
        except StopIteration:
            self.done, self.waits_for = True, ()

    def function(self, typed: TypedFunction, arguments: tuple) -> Generator[tuple, Any, Any]:
        """Interpret one function's blocks; return what it returns."""
        frame = Frame(typed, arguments, {})
        previous, label = None, typed.entry
        while True:
            frame.previous = previous
            for statement in typed.blocks[label].body:
                if isinstance(statement, ir.Assign):
                    value = statement.value
                    if isinstance(value, ir.Expr) and value.op == "call":
                        result = yield from self.call(frame, value, statement)
                    else:
                        result = self.evaluate(frame, value)
                    frame.assign(statement.target.name, result)
                elif isinstance(statement, (ir.SetItem, ir.StaticSetItem)):
                    self.store(frame, statement)
                elif isinstance(statement, ir.Jump):
                    previous, label = label, statement.target
                elif isinstance(statement, ir.Branch):
                    taken = frame.variables[statement.cond.name]
                    previous, label = label, statement.truebr if taken else statement.falsebr
                elif isinstance(statement, ir.Return):
                    return cast(frame.variables[statement.value.name], typed.return_type)
                elif isinstance(statement, (ir.Raise, ir.StaticRaise)):
                    raise AssertionError(f"the kernel raised: {statement}")
                elif not isinstance(statement, (ir.Del, ir.Print)):
                    raise NotImplementedError(statement)

    def evaluate(self, frame: Frame, value: Any) -> Any:
        """The value of anything but a call."""
        if isinstance(value, ir.Var):
            return frame.variables[value.name]
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return value.value.item() if isinstance(value.value, np.generic) else value.value
        if isinstance(value, ir.Arg):
            given = frame.arguments[value.index]
            return given.item() if isinstance(given, np.generic) else given
        return getattr(self, f"_{value.op}")(frame, value)

    def _phi(self, frame: Frame, expr: ir.Expr) -> Any:
        incoming = expr.incoming_values[expr.incoming_blocks.index(frame.previous)]
        return None if incoming is ir.UNDEFINED else frame.variables.get(incoming.name)

    def _binop(self, frame: Frame, expr: ir.Expr) -> Any:
        function = expr.immutable_fn if expr.op == "inplace_binop" else expr.fn
        left, right = frame.variables[expr.lhs.name], frame.variables[expr.rhs.name]
        return scalar_ops.binary(function, left, right, frame.typed.calltypes[expr])

    _inplace_binop = _binop

    def _unary(self, frame: Frame, expr: ir.Expr) -> Any:
        return scalar_ops.unary(expr.fn, frame.variables[expr.value.name], frame.typed.calltypes[expr])

    def _cast(self, frame: Frame, expr: ir.Expr) -> Any:
        return frame.variables[expr.value.name]

    def _build_tuple(self, frame: Frame, expr: ir.Expr) -> Any:
        return tuple(frame.variables[item.name] for item in expr.items)

    def _exhaust_iter(self, frame: Frame, expr: ir.Expr) -> Any:
        return tuple(frame.variables[expr.value.name])

    def _getiter(self, frame: Frame, expr: ir.Expr) -> Any:
        return iter(frame.variables[expr.value.name])

    def _iternext(self, frame: Frame, expr: ir.Expr) -> Any:
        try:
            return next(frame.variables[expr.value.name]), True
        except StopIteration:
            return 0, False

    def _pair_first(self, frame: Frame, expr: ir.Expr) -> Any:
        return frame.variables[expr.value.name][0]

    def _pair_second(self, frame: Frame, expr: ir.Expr) -> Any:
        return frame.variables[expr.value.name][1]

    def _getattr(self, frame: Frame, expr: ir.Expr) -> Any:
        owner = frame.variables[expr.value.name]
        places = {
            numba_cuda.threadIdx: self.place,
            numba_cuda.blockIdx: self.block.index,
            numba_cuda.blockDim: self.block.block_dim,
            numba_cuda.gridDim: self.block.grid_dim,
        }
        for special, place in places.items():
            if owner is special:
                return place["xyz".index(expr.attr)]
        if owner is numba_cuda and expr.attr in ("laneid", "warpsize"):
            return {"laneid": self.rank % WARP_SIZE, "warpsize": WARP_SIZE}[expr.attr]
        return getattr(owner, expr.attr)

    def _getitem(self, frame: Frame, expr: ir.Expr) -> Any:
        owner = frame.variables[expr.value.name]
        index = frame.index(expr)
        if isinstance(owner, np.ndarray):
            _check_bounds(owner, index)
        item = owner[index]
        return item.item() if isinstance(item, np.generic) else item

    _static_getitem = _getitem

    def store(self, frame: Frame, statement: Any) -> None:
        """Store one item, converted to the array's type."""
        array, index = frame.variables[statement.target.name], frame.index(statement)
        _check_bounds(array, index)
        dtype = frame.typed.typemap[statement.target.name].dtype
        array[index] = cast(frame.variables[statement.value.name], dtype)

    def call(self, frame: Frame, expr: ir.Expr, statement: ir.Assign) -> Generator[tuple, Any, Any]:
        """Call a device function, a barrier, a warp operation, an atomic or a pure function."""
        callee, signature = frame.variables[expr.func.name], frame.typed.calltypes[expr]
        arguments = [frame.variables[argument.name] for argument in expr.args]
        keywords = {name: frame.variables[variable.name] for name, variable in expr.kws}
        if callee in _BARRIERS:
            return (yield ("barrier", _BARRIERS[callee], *(arguments or [None])))
        if callee in _WARP_OPERATIONS:
            mask = arguments.pop(0) & 0xFFFFFFFF if arguments else 0xFFFFFFFF
            answer = yield ("warp", _WARP_OPERATIONS[callee], mask, *arguments)
            return cast(answer, frame.typed.typemap[statement.target.name])
        if isinstance(callee, type(_DEVICE)):
            converted = tuple(cast(value, kind) for value, kind in zip(arguments, signature.args, strict=True))
            return (yield from self.function(infer(callee.py_func, signature.args), converted))
        return self._immediate(frame, expr, statement, callee, signature, arguments, keywords)

    def _immediate(self, frame, expr, statement, callee, signature, arguments, keywords) -> Any:
        if callee in (numba_cuda.grid, numba_cuda.gridsize):
            return self._grid(callee, arguments[0])
        if callee in (numba_cuda.shared.array, numba_cuda.local.array):
            kind = frame.typed.typemap[statement.target.name]
            shape = keywords.get("shape", arguments[0] if arguments else None)
            return self._allocate(callee is numba_cuda.shared.array, expr, shape, as_dtype(kind.dtype))
        if callee is numba_cuda.const.array_like or callee is len:
            return arguments[0] if callee is not len else len(arguments[0])
        if callee is range:
            return range(*(cast(value, kind) for value, kind in zip(arguments, signature.args, strict=True)))
        if getattr(callee, "__qualname__", "").startswith("atomic."):
            return _atomic(callee.__name__, frame.typed.typemap[expr.args[0].name].dtype, *arguments)
        if callee in scalar_ops.PURE:
            values = [cast(value, kind) for value, kind in zip(arguments, signature.args, strict=True)]
            return cast(scalar_ops.PURE[callee](signature, *values), signature.return_type)
        if isinstance(frame.typed.typemap[expr.func.name], (types.NumberClass, types.ClassType)):
            return cast(arguments[0], signature.return_type)
        raise NotImplementedError(callee)

    def _grid(self, callee: Any, dimensions: int) -> Any:
        axes = range(dimensions)
        block_dim, grid_dim, block_index = self.block.block_dim, self.block.grid_dim, self.block.index
        if callee is numba_cuda.grid:
            answer = tuple(block_index[axis] * block_dim[axis] + self.place[axis] for axis in axes)
        else:
            answer = tuple(grid_dim[axis] * block_dim[axis] for axis in axes)
        return answer[0] if dimensions == 1 else answer

    def _allocate(self, is_shared: bool, expr: ir.Expr, shape: Any, dtype: np.dtype) -> np.ndarray:
        shape = tuple(shape) if isinstance(shape, tuple) else (shape,)
        garbage = np.frombuffer(b"\xa5" * (int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape).copy()
        if not is_shared:
            return garbage
        if shape == (0,):
            return self.block.dynamic[: self.block.dynamic.size // dtype.itemsize * dtype.itemsize].view(dtype)
        return self.block.shared.setdefault(id(expr), garbage)


class Frame:
    """The variables of one call."""

    def __init__(self, typed: TypedFunction, arguments: tuple, variables: dict[str, Any]) -> None:
        self.typed, self.arguments, self.variables, self.previous = typed, arguments, variables, None
        self.converters = typed.converters

    def assign(self, name: str, value: Any) -> None:
        """Give a variable its value, in the type that Numba gave the variable."""
        convert = self.converters.get(name)
        if convert is None:
            convert = self.converters[name] = scalar_ops.converter(self.typed.typemap[name])
        self.variables[name] = convert(value) if value is not None else None

    def index(self, node: Any) -> Any:
        """The index of an item access: from its variable where there is one, else a constant."""
        parts = node._kws if isinstance(node, ir.Expr) else vars(node)
        variable = parts.get("index_var") or (parts["index"] if isinstance(parts["index"], ir.Var) else None)
        return self.variables[variable.name] if variable is not None else parts["index"]


@numba_cuda.jit(device=True)
def _DEVICE() -> None:  # noqa: N802 (only its type is of use)
    pass


def _check_bounds(array: np.ndarray, index: Any) -> None:
    indices = index if isinstance(index, tuple) else (index,)
    for position, extent in zip(indices, array.shape, strict=False):
        if not isinstance(position, slice) and not -extent <= position < extent:
            raise IndexError(f"index {index} is outside an array of shape {array.shape}")


def _atomic(name: str, dtype: Any, array: np.ndarray, index: Any, *operands: Any) -> Any:
    if name == "compare_and_swap":
        index, operands = 0, (index, *operands)
    _check_bounds(array, index)
    old = array[index].item()
    operands = tuple(cast(operand, dtype) for operand in operands)
    if name in ("cas", "compare_and_swap"):
        array[index] = operands[1] if old == operands[0] else old
    else:
        array[index] = cast(scalar_ops.ATOMIC[name](old, *operands), dtype)
    return old
