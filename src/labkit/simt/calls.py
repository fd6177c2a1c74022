"""Compile array elements and calls: builtins, math, casts, device functions. The cuda.* calls are in intrinsics.py."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.simt.intrinsics import IntrinsicCompiler
from labkit.simt.operations import MATH, MATH_ARITY, MATH_TO_BOOL, MATH_TO_INTEGER
from labkit.simt.program import Expr
from labkit.simt.source import MISSING, KernelSource
from labkit.simt.types import (
    BOOL,
    F64,
    I64,
    ArrayType,
    TupleType,
    as_dtype,
    is_float,
    is_integer,
    math_type,
    unary_type,
    unify,
)


class CallCompiler(IntrinsicCompiler):
    """Array elements and calls."""

    # ---- array elements ----

    def element(self, node: ast.Subscript) -> tuple[Expr, tuple[Expr, ...]]:
        """Compile `array[i, j]` or `array[i][j]` to the array and one index per dimension."""
        places: list[ast.expr] = []
        owner: ast.expr = node
        while isinstance(owner, ast.Subscript):
            inner = owner.slice.elts if isinstance(owner.slice, ast.Tuple) else [owner.slice]
            places = [*inner, *places]
            owner = owner.value
        array = self.expression(owner)
        if not isinstance(array.type, ArrayType):
            self.source.refuse(node, "an index into something that is no array", "Index arrays and tuples.")
        index: list[Expr] = []
        for place in places:
            value = self.expression(place)
            index += [self.keep(item) for item in value.items or (value,)]
        for value in index:
            if not is_integer(self.as_scalar(value, node).type) or value.type == BOOL:
                self.source.refuse(
                    node, f"a {value.type.name} index", "Convert it with int(…).", "indices are integers"
                )
        if len(index) != array.type.ndim:
            given = f"{len(index)} ind{'ex' if len(index) == 1 else 'ices'} for {array.type.ndim} dimensions"
            advice = "Write one integer per dimension, as in a[i, j]; loop where you want a row."
            self.source.refuse(node, given, advice, "rows and slices are not supported in a kernel")
        return array, tuple(index)

    def load(self, node: ast.AST, array: Expr, index: tuple[Expr, ...]) -> Expr:
        """Compile the read of an element."""
        name = f"t{self.new_number()}"
        codes = "".join(f", {i.code}" for i in index)
        self.emit(f"{name} = {array.code}.load({self.site(node, 'load')}, m{codes})")
        return Expr(name, array.type.dtype)

    def store(self, node: ast.AST, array: Expr, index: tuple[Expr, ...], value: Expr) -> None:
        """Compile the write of an element."""
        if array.type.read_only:
            self.source.refuse(node, "a write to a constant array", "Write to an array that the kernel is given.")
        self.mark_stored(array)
        codes = "".join(f", {i.code}" for i in index)
        code = self.cast(value, array.type.dtype).code
        self.emit(f"{array.code}.store({self.site(node, 'store')}, m, {code}{codes})")

    def constant_array(self, value: np.ndarray, node: ast.AST) -> Expr:
        """Return an array from outside the kernel: a constant, as in Numba."""
        frozen = self.program.freeze(value)
        name = self.program.constant(frozen, "array")
        code = f"k.constant_array({self.site(node, 'constant')}, {self._array_name(node)!r}, {name})"
        return Expr(code, ArrayType(frozen.dtype, frozen.ndim, read_only=True))

    def _array_name(self, node: ast.AST) -> str:
        return self.assigned_to or getattr(node, "id", "constant")

    def _subscript(self, node: ast.Subscript) -> Expr:
        if not isinstance(node.value, ast.Subscript):
            owner = self.expression(node.value)
            if isinstance(owner.type, TupleType):
                return self._tuple_item(node, owner)
        array, index = self.element(node)
        return self.load(node, array, index)

    def _tuple_item(self, node: ast.Subscript, owner: Expr) -> Expr:
        place = self.scalar(node.slice)
        count = len(owner.items)
        if not place.is_constant or not is_integer(place.type) or not -count <= place.constant < count:
            self.source.refuse(node, "this index into a tuple", f"Use a constant between 0 and {count - 1}.")
        return owner.items[int(place.constant)]

    # ---- calls ----

    def _call(self, node: ast.Call) -> Expr:
        function = self.static(node.func)
        if function is MISSING:
            name = ast.unparse(node.func)
            self.source.refuse(node, f"the call of {name}(…)", "Call functions that are defined outside the kernel.")
        if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
            self.source.refuse(node, "* or ** in a call", "Write the arguments out.")
        intrinsic = self.intrinsic_name(function)
        if intrinsic is not None:
            return self.intrinsic(node, intrinsic)
        device_function = self.device_function(function)
        if device_function is not None:
            return self._call_device_function(node, device_function)
        builtin = self._BUILTINS.get(function) if isinstance(function, Callable) and _hashable(function) else None
        if builtin is not None and not node.keywords and (node.args or function is print):
            return builtin(self, node)
        if getattr(function, "__module__", "") == "math" and not node.keywords:
            return self._call_math(node, function.__name__)
        dtype = as_dtype(function)
        if dtype is not None and len(node.args) == 1:
            return self._convert_number(self.scalar(node.args[0]), dtype)
        name = ast.unparse(node.func)
        advice = "Kernels have math.*, abs, min, max, round, int, float, bool, len, print, range, and device functions."
        if getattr(function, "__module__", "").startswith("numpy") or isinstance(function, np.ufunc):
            advice = (
                f"Write math.{getattr(function, '__name__', 'sqrt')} or a loop: kernels compute with single numbers."
            )
        elif inspect.isfunction(function):
            advice = f"Decorate {name} with @cuda.jit(device=True)."
        self.source.refuse(node, f"the call of {name}(…)", advice)

    def _call_device_function(self, node: ast.Call, function: Callable[..., Any]) -> Expr:
        if function in self.callers:
            self.source.refuse(node, f"recursion in {function.__name__}", "Write a loop.")
        try:
            bound = inspect.signature(function).bind(*node.args, **{k.arg: k.value for k in node.keywords})
        except TypeError as error:
            self.source.refuse(node, f"this call of {function.__name__}", "Give it the arguments it takes.", str(error))
        bound.apply_defaults()
        arguments = {
            name: self.keep(self.expression(value) if isinstance(value, ast.AST) else self.outside(value, node))
            for name, value in bound.arguments.items()
        }
        for argument in arguments.values():
            if not isinstance(argument.type, ArrayType):
                self.as_scalar(argument, node)
        name, callee = self._compiled(function, {n: a.type for n, a in arguments.items()})
        self.has_barrier |= callee.has_barrier
        for parameter, argument in arguments.items():
            if callee.variable(parameter, argument.type) in callee.stored:
                self.mark_stored(argument)
        call = f"{name}(k, m{''.join(f', {a.code}' for a in arguments.values())})"
        if callee.has_barrier:
            call = f"yield from {call}"
        if callee.result is None:
            self.emit(call)
            return Expr("", None)
        result = f"t{self.new_number()}"
        self.emit(f"{result} = {call}")
        if isinstance(callee.result, TupleType):
            items = tuple(Expr(f"{result}[{i}]", dtype) for i, dtype in enumerate(callee.result.items))
            return Expr("", callee.result, MISSING, items)
        return Expr(result, callee.result)

    def _compiled(self, function: Callable[..., Any], types: dict[str, Any]) -> tuple[str, Any]:
        """Return a device function compiled for these types: its generated name and its compiler."""
        key = (function, tuple(types.items()))
        if key not in self.program.functions:
            source = KernelSource(function)
            callee = type(self)(self.program, source, types, is_kernel=False, callers=self.callers)
            name = f"{function.__name__}_{len(self.program.functions)}"
            callee.compile(name)
            self.program.functions[key] = (name, callee)
        return self.program.functions[key]

    def _call_math(self, node: ast.Call, name: str) -> Expr:
        arguments = [self.scalar(a) for a in node.args]
        arity = MATH_ARITY.get(name, 1)
        if len(arguments) != arity or name not in {**MATH, **MATH_TO_INTEGER, **MATH_TO_BOOL}:
            advice = f"Kernels have math.{', math.'.join(sorted({**MATH, **MATH_TO_INTEGER, **MATH_TO_BOOL}))}."
            self.source.refuse(node, f"math.{name} with {len(arguments)} arguments", advice)
        dtype = math_type(*(a.type for a in arguments))
        codes = ", ".join(self.cast(a, dtype).code for a in arguments)
        if name in MATH_TO_BOOL:
            return Expr(f"ops.MATH_TO_BOOL[{name!r}]({codes})", BOOL)
        if name in MATH_TO_INTEGER:
            if is_integer(arguments[0].type):
                return self.cast(arguments[0], unary_type("UAdd", arguments[0].type))
            return Expr(f"ops.MATH_TO_INTEGER[{name!r}]({codes}).astype({self.program.constant(I64, 'd')})", I64)
        if name not in ("fabs", "copysign"):
            self.add_flop(dtype)
        return Expr(f"ops.MATH[{name!r}]({codes})", dtype)

    def _convert_number(self, value: Expr, dtype: np.dtype) -> Expr:
        return self.cast(value, dtype)

    def _call_int(self, node: ast.Call) -> Expr:
        value = self.scalar(node.args[0])
        return value if is_integer(value.type) and value.type != BOOL else self.cast(value, I64)

    def _call_float(self, node: ast.Call) -> Expr:
        value = self.scalar(node.args[0])
        return value if is_float(value.type) else self.cast(value, F64)

    def _call_bool(self, node: ast.Call) -> Expr:
        return self.truth(node.args[0])

    def _call_abs(self, node: ast.Call) -> Expr:
        value = self.scalar(node.args[0])
        value = self.cast(value, I64) if value.type == BOOL else value
        return Expr(f"np.abs({value.code})", value.type)

    def _call_min(self, node: ast.Call) -> Expr:
        return self._extreme(node, "minimum")

    def _call_max(self, node: ast.Call) -> Expr:
        return self._extreme(node, "maximum")

    def _extreme(self, node: ast.Call, name: str) -> Expr:
        values = self._arguments(node)
        result = values[0]
        for value in values[1:]:
            dtype = unify(result.type, value.type)
            result = Expr(f"ops.{name}({self.cast(result, dtype).code}, {self.cast(value, dtype).code})", dtype)
        return result

    def _arguments(self, node: ast.Call) -> list[Expr]:
        """Compile the arguments; a single tuple stands for its items."""
        if len(node.args) == 1:
            only = self.expression(node.args[0])
            if only.items:
                return list(only.items)
            return [self.as_scalar(only, node)]
        return [self.scalar(a) for a in node.args]

    def _call_round(self, node: ast.Call) -> Expr:
        value = self.scalar(node.args[0])
        if len(node.args) == 2:
            value = value if is_float(value.type) else self.cast(value, F64)
            return Expr(
                f"ops.round_to_digits({value.code}, {self.cast(self.scalar(node.args[1]), I64).code})", value.type
            )
        return Expr(f"ops.round_to_integer({value.code})", I64) if is_float(value.type) else self.cast(value, I64)

    def _call_pow(self, node: ast.Call) -> Expr:
        return self.binary(node, "Pow", *(self.keep(self.scalar(a)) for a in node.args))

    def _call_len(self, node: ast.Call) -> Expr:
        value = self.expression(node.args[0])
        if isinstance(value.type, TupleType):
            return self.number(len(value.items))
        if not isinstance(value.type, ArrayType):
            self.source.refuse(node, "len of a number", "Arrays and tuples have a length.")
        return Expr(f"{value.code}.shape[0]", I64)

    def _call_print(self, node: ast.Call) -> Expr:
        values = [self.expression(a) for a in node.args]
        parts = []
        for value in values:
            text = value.type is None and isinstance(value.constant, str)
            parts += [repr(value.constant)] if text else [p.code for p in value.items or (self.as_scalar(value, node),)]
        self.emit(f"k.print({self.site(node, 'print')}, m, {', '.join(parts)})")
        return Expr("", None)

    _BUILTINS: dict[Any, Callable[[CallCompiler, ast.Call], Expr]] = {
        int: _call_int,
        float: _call_float,
        bool: _call_bool,
        abs: _call_abs,
        min: _call_min,
        max: _call_max,
        round: _call_round,
        pow: _call_pow,
        len: _call_len,
        print: _call_print,
    }


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
