"""The types that Numba's CUDA compiler gives a kernel, without a GPU: its front end is run up to type inference.

Nothing of labkit is used here. Bytecode analysis, SSA and type unification are those of numba.cuda itself, so a
kernel has the types that it would have on a real GPU (Numba's CUDA simulator, by contrast, follows NumPy scalars).
"""

from __future__ import annotations

import types as python_types
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from numba import cuda as numba_cuda
from numba import types
from numba.core import bytecode, ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.target_extension import target_override
from numba.core.typed_passes import NopythonTypeInference
from numba.core.typing.templates import AbstractTemplate, signature
from numba.cuda import dispatcher
from numba.cuda.compiler import CUDACompiler, CUDAFlags
from numba.cuda.cudadecl import CudaModuleTemplate
from numba.cuda.cudadecl import registry as cuda_registry
from numba.cuda.descriptor import cuda_target

# Device functions are compiled for the capability of "the current device"; types do not depend on it.
dispatcher.get_current_device = lambda: python_types.SimpleNamespace(compute_capability=(7, 5))


def minimum(*values: Any) -> Any:
    """Stand for the built-in min: Numba 0.68 types it on the CUDA target no longer (its overload takes a tuple)."""
    return min(values)


def maximum(*values: Any) -> Any:
    """Stand for the built-in max, likewise."""
    return max(values)


class _Unified(AbstractTemplate):
    def generic(self, args: tuple, kws: dict) -> Any:
        return signature(self.context.unify_types(*args), *args)


for _stand_in in (minimum, maximum):
    cuda_registry.register_global(_stand_in)(type(f"_{_stand_in.__name__}", (_Unified,), {"key": _stand_in}))
cuda_target.typing_context.install_registry(cuda_registry)
CudaModuleTemplate.resolve_warpsize = lambda self, module: types.int32  # lost in 0.68 as well; an int32 in numba-cuda


@dataclass(frozen=True)
class TypedFunction:
    """A function in Numba's SSA form: blocks by label, a type for each variable, a signature for each expression."""

    blocks: dict[int, ir.Block]
    entry: int
    typemap: dict[str, Any]
    calltypes: dict[Any, Any]
    return_type: Any
    converters: dict[str, Any] = field(default_factory=dict)  # filled by the interpreter, variable by variable


class _TypingOnly(CUDACompiler):
    def define_pipelines(self) -> list[PassManager]:
        passes = PassManager("typing")
        for compiler_pass, description in super().define_pipelines()[0].passes:
            passes.add_pass(compiler_pass, description)
            if compiler_pass is NopythonTypeInference:
                break
        passes.finalize()
        return [passes]


@lru_cache(maxsize=256)
def infer(function: Any, argument_types: tuple[Any, ...]) -> TypedFunction:
    """Type a Python function for arguments of Numba types; raise Numba's TypingError where its compiler would."""
    compiler = _TypingOnly(
        cuda_target.typing_context, cuda_target.target_context, None, argument_types, None, CUDAFlags(), {}
    )
    state = compiler.state
    state.func_id = bytecode.FunctionIdentity.from_function(function)
    state.bc = bytecode.ByteCode(state.func_id)
    state.lifted, state.lifted_from = (), None
    with global_compiler_lock, target_override("cuda"):
        cuda_target.typing_context.refresh()
        compiler.define_pipelines()[0].run(state)
    blocks = state.func_ir.blocks
    return TypedFunction(blocks, min(blocks), state.typemap, state.calltypes, state.return_type)


@lru_cache(maxsize=256)
def for_numba(function: Any) -> Any:
    """Rebuild a labkit kernel or plain function so that its `cuda` is numba.cuda and its helpers are Numba's."""
    function = getattr(function, "py_func", function)
    names = set(function.__code__.co_names)
    used = {name: _translate(name, value) for name, value in function.__globals__.items() if name in names}
    used |= {"min": minimum, "max": maximum}
    cells = tuple(
        python_types.CellType(_translate(name, cell.cell_contents))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    )
    return python_types.FunctionType(function.__code__, used, function.__name__, function.__defaults__, cells)


def _translate(name: str, value: Any) -> Any:
    if name == "cuda":
        return numba_cuda
    is_helper = hasattr(value, "py_func") and not isinstance(value, dispatcher.CUDADispatcher)
    return numba_cuda.jit(device=True)(for_numba(value)) if is_helper else value
