"""Compile one kernel or device function: its head and tail, its variables, and its simple statements.

The generated function runs every lane of a batch at once; `m` is the mask of the lanes that execute the line at hand,
`k` the batch (see batch.py). An assignment merges: active lanes get the new value, the others keep the old one.
A barrier is a `yield`, so one compiled form can run all lanes in step or one warp after another.

A variable is kept once per type that Numba would give it (`acc__float32`). Control flow is in control.py, expressions
are in expressions.py and calls.py.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from labkit.simt.calls import CallCompiler
from labkit.simt.control import ControlCompiler
from labkit.simt.program import Expr, Program
from labkit.simt.source import KernelSource
from labkit.simt.types import ArrayType, TupleType, Type, unify


def compile_kernel(source: KernelSource, types: dict[str, Type]) -> Program:
    """Compile a kernel for arguments of these types; KernelError with the line for what kernels may not do."""
    program = Program(source)
    compiler = FunctionCompiler(program, source, types, is_kernel=True)
    compiler.compile("kernel")
    program.stored = {name for name, type_ in types.items() if compiler.variable(name, type_) in compiler.stored}
    program.finish()
    return program


class FunctionCompiler(ControlCompiler, CallCompiler):
    """Compiles one function for one set of argument types; device functions are compiled when first called."""

    def __init__(
        self,
        program: Program,
        source: KernelSource,
        types: dict[str, Type],
        *,
        is_kernel: bool,
        callers: tuple[Callable[..., Any], ...] = (),
    ) -> None:
        super().__init__(program, source, types, is_kernel=is_kernel, callers=(*callers, source.function))
        self._bindings: dict[str, ast.AST] = {}

    def compile(self, name: str) -> None:
        """Compile the whole function and append its text to the program."""
        types = dict(self.env)
        self._check_signature()
        while True:  # until the type of the returned value stands still
            result, self.env, self.lines = self.result, dict(types), []
            self.block(self.source.tree.body)
            if self.result == result:
                break
        parameters = [self.variable(p, t) for p, t in types.items()]
        starts = {code: dtype for code, dtype in self.locals.items() if code not in parameters}
        starts |= {place.code: place.type for place in self.result_parts()}
        head = [f"def {name}({', '.join(['k', 'm', *parameters])}):"]
        head += [f"    {code} = {self.program.constant(dtype.type(0))}" for code, dtype in starts.items()]
        tail = [] if self.is_kernel else [f"    return {self._result_code()}"]
        if self.is_kernel or self.has_barrier:
            tail += ["    if False:", "        yield"]  # a function without a barrier is a generator, too
        self.program.text += [*head, "    gone = k.none", *(f"    {line}" for line in self.lines), *tail, ""]

    def _check_signature(self) -> None:
        """Refuse parameter lists beyond plain names, and count how often each name is set."""
        arguments = self.source.tree.args
        if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
            self.source.refuse(self.source.tree, "*args, **kwargs or keyword-only parameters", "List the parameters.")
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.assignments[node.id] = self.assignments.get(node.id, 0) + 1
        for parameter in self.parameters:
            self.assignments[parameter] = self.assignments.get(parameter, 0) + 1

    # ---- the returned value of a device function ----

    def result_parts(self) -> list[Expr]:
        """The variables that hold the returned value."""
        return [] if self.result is None else self.parts("result", self.result)

    def _result_code(self) -> str:
        codes = [part.code for part in self.result_parts()]
        if isinstance(self.result, TupleType):
            return f"({', '.join(codes)},)"
        return codes[0] if codes else "None"

    def do_Return(self, node: ast.Return) -> None:  # noqa: N802
        """Retire the lanes from the function, with the value where a device function has one."""
        if node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            if self.is_kernel:
                self.source.refuse(
                    node, "a kernel that returns a value", "Store the result in an array.", "a kernel returns nothing"
                )
            value = self.expression(node.value)
            if not isinstance(value.type, TupleType):
                value = self.as_scalar(value, node)
            joined = value.type if self.result is None else unify(self.result, value.type)
            if joined is None:
                self.source.refuse(node, "two kinds of returned value", "Return the same kind of value everywhere.")
            self.result = joined
            for place, part in zip(self.result_parts(), value.items or (value,), strict=True):
                self.emit(f"{place.code} = m.merge({self.cast(part, place.type).code}, {place.code})")
        self.count(node)
        self.emit("gone = gone | m")
        if self.is_kernel:
            self.emit(f"k.leave(m, {self.site(node, 'return')})")
        self.retire()

    # ---- simple statements ----

    def do_Pass(self, node: ast.Pass) -> None:  # noqa: N802
        """Compile `pass`: nothing."""

    def do_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        """Compile an expression on a line of its own: a call, or a docstring."""
        if isinstance(node.value, ast.Constant):
            return
        self.unused = node.value
        self.expression(node.value)
        self.count(node)

    def do_Assert(self, node: ast.Assert) -> None:  # noqa: N802
        """Compile `assert`."""
        condition = self.truth(node.test)
        message = str(node.msg.value) if isinstance(node.msg, ast.Constant) else ""
        self.emit(f"k.check({self.site(node, 'assert')}, m, {condition.code}, {message!r})")
        self.count(node)

    def do_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        """Compile `a = …`, `a = b = …`, `a, b = …` and `array[i] = …`."""
        value = self._right_side(node.targets[0], node.value)
        if len(node.targets) > 1 or not isinstance(node.targets[0], ast.Name):
            value = self.keep(value)
        for target in node.targets:
            self._assign(target, value, node)
        self.count(node)

    def _right_side(self, target: ast.expr, value: ast.expr) -> Expr:
        """Compile what is assigned; an array that is made there is called by the name on the left."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = zip(target.elts, value.elts, strict=True)
            return self.as_tuple(self.keep(self._right_side(name, item)) for name, item in pairs)
        self.assigned_to = target.id if isinstance(target, ast.Name) else ""
        return self.expression(value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        """Compile `a: type = …`; the annotation says nothing to the compiler, as in Numba."""
        if node.value is not None:
            self.do_Assign(ast.copy_location(ast.Assign([node.target], node.value), node))

    def do_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        """Compile `a += …` and `array[i] += …`."""
        op = type(node.op).__name__
        if isinstance(node.target, ast.Subscript):
            array, index = self.element(node.target)
            value = self.binary(node, op, self.load(node.target, array, index), self.scalar(node.value))
            self.store(node.target, array, index, value)
        elif isinstance(node.target, ast.Name):
            old = self.scalar(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            self._assign(node.target, self.binary(node, op, old, self.scalar(node.value)), node)
        else:
            self.refuse_node(node.target)
        self.count(node)

    def _assign(self, target: ast.expr, value: Expr, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.assign_name(target.id, value, node)
        elif isinstance(target, ast.Subscript):
            self.store(target, *self.element(target), self.as_scalar(value, node))
        elif isinstance(target, ast.Tuple | ast.List):
            if len(value.items) != len(target.elts):
                given = f"{len(target.elts)} names for {len(value.items) or 1} value{'s' * (len(value.items) > 1)}"
                self.source.refuse(node, given, "Give as many names as there are values.", "the two sides do not match")
            for part, item in zip(target.elts, value.items, strict=True):
                self._assign(part, item, node)
        else:
            self.refuse_node(target)

    def assign_name(self, name: str, value: Expr, node: ast.AST) -> None:
        """Give a variable its value in the active lanes."""
        once = self.assignments.get(name) == 1
        if value.type is None:
            if not (once and value.is_constant) or value.constant is None or isinstance(value.constant, str):
                self.source.refuse(
                    node, f"a variable `{name}` that holds no number (a string, say)", "Use numbers, tuples and arrays."
                )
            self.aliases[name] = value
            return
        if isinstance(value.type, ArrayType):
            if self._bindings.setdefault(name, node) is not node or name in self.parameters:
                advice = "Give each array its own name, or use one array and one more index."
                self.source.refuse(node, f"a second array for the name `{name}`", advice)
            self.same_array[self.variable(name, value.type)] = value.code
            self.emit(f"{self.variable(name, value.type)} = {value.code}")
        else:
            if once and value.is_constant:
                self.constants[name] = value.constant
            for place, part in zip(self.parts(name, value.type), value.items or (value,), strict=True):
                fresh = self.depth == 0 and place.code not in self.locals and name not in self.parameters
                self.locals[place.code] = place.type
                self.emit(f"{place.code} = {part.code if fresh else f'm.merge({part.code}, {place.code})'}")
        self.env[name] = value.type
