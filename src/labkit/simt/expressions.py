"""Compile expressions to NumPy code that treats all lanes at once.

Code without side effects is written inline; a load, a call with an effect or a guarded operand becomes a statement of
its own with its result in a temporary, so that the order of the kernel's text is kept. `and`, `or` and conditional
expressions run an operand that has effects under a narrowed mask.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from labkit.simt.operations import OPERATORS
from labkit.simt.program import Expr, Program
from labkit.simt.source import MISSING, KernelSource
from labkit.simt.types import (
    BOOL,
    I64,
    U64,
    ArrayType,
    TupleType,
    Type,
    arithmetic_type,
    binary_type,
    is_float,
    type_of_number,
    unary_type,
    unify,
)

_COMPARISONS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
_PYTHON_OPERATORS = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
}
_FLOP_OPERATORS = {"Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow"}

_ADVICE = {
    "With": "Leave it out: kernels have no context managers.",
    "Try": "Test with `if` beforehand: a GPU has no exceptions.",
    "Raise": "Write an error code to an array: a GPU has no exceptions.",
    "FunctionDef": "Define it outside with @cuda.jit(device=True).",
    "Lambda": "Define a function outside with @cuda.jit(device=True).",
    "ListComp": "Use a loop and cuda.local.array.",
    "List": "Use cuda.local.array.",
    "Dict": "Use arrays.",
    "Set": "Use arrays.",
    "GeneratorExp": "Use a loop.",
    "JoinedStr": "Pass the values to print one after another.",
    "Slice": "Use a loop over the elements.",
    "Starred": "Write the arguments out.",
    "Import": "Import at the top of the file or cell.",
    "ImportFrom": "Import at the top of the file or cell.",
    "NamedExpr": "Assign on a line of its own.",
    "Match": "Use if/elif/else.",
}


class ExpressionCompiler:
    """What all parts of the compiler share (lines, names, sites), and expressions."""

    def __init__(
        self, program: Program, source: KernelSource, types: dict[str, Type], *, is_kernel: bool, callers: tuple
    ) -> None:
        self.program = program
        self.source = source
        self.is_kernel = is_kernel
        self.callers = callers  # the functions being compiled, to see recursion
        self.parameters = list(types)
        self.env: dict[str, Type | None] | None = dict(types)
        self.result: Type | None = None
        self.has_barrier = False
        self.lines: list[str] = []
        self.depth = 0
        self.loops: list[Any] = []
        self.locals: dict[str, np.dtype] = {}  # generated variable -> its dtype
        self.assignments: dict[str, int] = {}  # how often each name is set
        self.constants: dict[str, Any] = {}  # values of the names that are set once, to a constant
        self.aliases: dict[str, Expr] = {}  # names that stand for functions or dtypes
        self.assigned_to = ""  # the name on the left of the line at hand: what an array is called
        self.unused: ast.expr | None = None  # the call whose result nobody reads
        self.stored: set[str] = set()  # generated variables of the arrays that may be written
        self.same_array: dict[str, str] = {}  # generated variable -> what it was set to
        self._flop: dict[str, int] = {}
        self._numbers = 0

    # ---- what all parts share ----

    def emit(self, line: str) -> None:
        """Write one line of generated code."""
        self.lines.append("    " * self.depth + line)

    def new_number(self) -> int:
        """Return a number that no generated name has yet."""
        self._numbers += 1
        return self._numbers

    def keep(self, value: Expr) -> Expr:
        """Put a value into temporaries, so that it can be used more than once and later."""
        if value.items:
            return Expr("", value.type, value.constant, tuple(self.keep(item) for item in value.items))
        if (
            not isinstance(value.type, np.dtype)
            or value.is_constant
            or value.code.isidentifier()
            and "__" not in value.code
        ):
            return value
        name = f"t{self.new_number()}"
        self.emit(f"{name} = {value.code}")
        return Expr(name, value.type)

    def site(self, node: ast.AST, kind: str, flop: dict[str, int] | None = None) -> int:
        """Return the number of a place in the kernel's text."""
        return self.program.site(self, self.source, node, kind, flop or {})

    def count(self, node: ast.AST) -> None:
        """Count the statement, with the FLOP that its expressions were found to do per lane."""
        self.emit(f"k.count({self.site(node, 'statement', self._flop)}, m)")
        self._flop = {}

    def add_flop(self, dtype: np.dtype, flop: int = 1) -> None:
        """Note floating-point operations of the statement at hand."""
        if is_float(dtype):
            self._flop[dtype.name] = self._flop.get(dtype.name, 0) + flop

    def variable(self, name: str, type_: Type) -> str:
        """Return the generated variable that holds a name while it has this type."""
        return f"{name}__{type_.name if isinstance(type_, np.dtype) else 'array'}"

    def parts(self, name: str, type_: Type) -> list[Expr]:
        """Return the generated variables of a name: one, or one for each part of a tuple."""
        if isinstance(type_, TupleType):
            return [Expr(self.variable(f"{name}_{i}", item), item) for i, item in enumerate(type_.items)]
        return [Expr(self.variable(name, type_), type_)]

    def mark_stored(self, array: Expr) -> None:
        """Note that an array may be written."""
        code = array.code
        while code is not None:
            self.stored.add(code)
            code = self.same_array.get(code)

    def refuse_node(self, node: ast.AST) -> NoReturn:
        """Refuse a piece of Python that kernels do not have."""
        kind = type(node).__name__
        names = {"JoinedStr": "an f-string", "ListComp": "a list comprehension", "With": "`with`", "Try": "`try`"}
        self.source.refuse(
            node, names.get(kind, f"`{kind}`"), _ADVICE.get(kind, "Use numbers, arrays, if, for, while and functions.")
        )

    def contains_barrier(self, statements: Iterable[ast.stmt]) -> bool:
        """Return whether a barrier stands in these statements (or in a device function called there)."""
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and self.is_barrier(self.static(node.func)):
                    return True
        return False

    def is_barrier(self, function: Any) -> bool:
        """Return whether calling this runs into a barrier."""
        raise NotImplementedError

    # ---- values known at compile time ----

    def static(self, node: ast.expr) -> Any:
        """Return the Python object that a name or attribute outside the kernel stands for, or MISSING."""
        if isinstance(node, ast.Name):
            if node.id in self.aliases:
                return self.aliases[node.id].constant
            if node.id in self.assignments:
                return MISSING
            return self.source.lookup(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.static(node.value)
            return MISSING if owner is MISSING else self.static_attribute(owner, node.attr)
        return MISSING

    def static_attribute(self, owner: Any, name: str) -> Any:
        """Return an attribute of an object outside the kernel, or MISSING."""
        return getattr(owner, name, MISSING)

    def number(self, value: Any) -> Expr:
        """Return a constant as an expression."""
        dtype = type_of_number(value)
        return Expr(self.program.constant(dtype.type(value)), dtype, value)

    def outside(self, value: Any, node: ast.AST) -> Expr:
        """Return something from outside the kernel as an expression."""
        if type_of_number(value) is not None:
            return self.number(value)
        if isinstance(value, tuple) and all(type_of_number(item) is not None for item in value):
            items = tuple(self.number(item) for item in value)
            return Expr("", TupleType(tuple(item.type for item in items)), value, items)
        if isinstance(value, np.ndarray):
            return self.constant_array(value, node)
        return Expr("", None, value)

    def constant_array(self, value: np.ndarray, node: ast.AST) -> Expr:
        """Return an array from outside the kernel, which a kernel may only read."""
        raise NotImplementedError

    # ---- expressions ----

    def expression(self, node: ast.expr) -> Expr:
        """Compile an expression of any kind."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            self.refuse_node(node)
        return method(node)

    def scalar(self, node: ast.expr) -> Expr:
        """Compile an expression that must be a number."""
        return self.as_scalar(self.expression(node), node)

    def as_scalar(self, value: Expr, node: ast.AST) -> Expr:
        """Refuse what is not a number."""
        if not isinstance(value.type, np.dtype):
            what = "an array" if isinstance(value.type, ArrayType) else "a tuple" if value.items else "this object"
            advice = "Index it, as in a[i]." if value.type is not None else "Use a number."
            self.source.refuse(node, f"{what} where a number is needed", advice, "kernels compute with single numbers")
        return value

    def truth(self, node: ast.expr) -> Expr:
        """Compile a condition."""
        value = self.scalar(node)
        if value.is_constant:
            return self.number(bool(value.constant))
        return self.as_bool(value)

    def as_bool(self, value: Expr) -> Expr:
        """Return whether a number is not zero."""
        if value.type == BOOL:
            return value
        return Expr(f"({value.code} != {self.program.constant(value.type.type(0))})", BOOL)

    def cast(self, value: Expr, dtype: np.dtype) -> Expr:
        """Convert a number to another type."""
        if value.type == dtype:
            return value
        if dtype == BOOL:
            return self.as_bool(value)
        if value.is_constant and not (is_float(value.type) and not is_float(dtype)):
            with np.errstate(all="ignore"):
                converted = value.type.type(value.constant).astype(dtype)
            return Expr(self.program.constant(converted), dtype, converted.item())
        name = self.program.constant(dtype, "d")
        if is_float(value.type) and dtype.kind == "u":
            return Expr(f"ops.cast({value.code}, {name})", dtype)
        return Expr(f"{value.code}.astype({name})", dtype)

    def _constant(self, node: ast.Constant) -> Expr:
        if type_of_number(node.value) is None:
            if isinstance(node.value, str) or node.value is None:
                return Expr("", None, node.value)
            kind = "complex number" if isinstance(node.value, complex) else "constant"
            self.source.refuse(node, f"the {kind} {node.value!r}", "Use integers, floats, True and False.")
        return self.number(node.value)

    def _name(self, node: ast.Name) -> Expr:
        name = node.id
        if name in self.aliases:
            return self.aliases[name]
        if name in self.assignments:
            if name not in self.env:
                advice = "Give it a value on every path that leads here."
                self.source.refuse(node, f"the variable `{name}`", advice, "it has no value yet")
            type_ = self.env[name]
            if type_ is None:
                advice = "Use two names."
                self.source.refuse(
                    node, f"the variable `{name}`", advice, "it holds an array on one path, not on another"
                )
            parts = self.parts(name, type_)
            constant = self.constants.get(name, MISSING)
            if isinstance(type_, TupleType):
                return Expr("", type_, constant, tuple(parts))
            return Expr(parts[0].code, type_, constant)
        value = self.source.lookup(name)
        if value is MISSING:
            self.source.refuse(node, f"the name `{name}`", "Define it above the kernel.", "nothing has this name")
        return self.outside(value, node)

    def _tuple(self, node: ast.Tuple) -> Expr:
        return self.as_tuple(self.keep(self.expression(item)) for item in node.elts)

    def as_tuple(self, items: Iterable[Expr]) -> Expr:
        """Return a tuple; one that holds more than numbers can only be taken apart again."""
        items = tuple(items)
        if not all(isinstance(item.type, np.dtype) for item in items):
            return Expr("", None, MISSING, items)
        constant = tuple(item.constant for item in items) if all(item.is_constant for item in items) else MISSING
        return Expr("", TupleType(tuple(item.type for item in items)), constant, items)

    def _attribute(self, node: ast.Attribute) -> Expr:
        value = self.static(node)
        if value is not MISSING:
            return self.outside(value, node)
        owner = self.expression(node.value)
        if isinstance(owner.type, ArrayType):
            if node.attr == "shape":
                items = tuple(Expr(f"{owner.code}.shape[{axis}]", I64) for axis in range(owner.type.ndim))
                return Expr("", TupleType((I64,) * owner.type.ndim), MISSING, items)
            if node.attr == "size":
                return Expr(f"{owner.code}.size", I64)
            if node.attr == "ndim":
                return self.number(owner.type.ndim)
            if node.attr == "dtype":
                return Expr("", None, owner.type.dtype)
        self.source.refuse(node, f"the attribute `.{node.attr}`", "Arrays have .shape, .size and .ndim in a kernel.")

    # ---- operators ----

    def _binop(self, node: ast.BinOp) -> Expr:
        left = self.scalar(node.left)
        return self.binary(node, type(node.op).__name__, left, self.scalar(node.right))

    def binary(self, node: ast.AST, op: str, left: Expr, right: Expr) -> Expr:
        """Compile `left op right` for an operator's name as in the ast module."""
        left, right = self.as_scalar(left, node), self.as_scalar(right, node)
        dtype = binary_type(op, left.type, right.type) if op in OPERATORS else None
        if dtype is None:
            given = f"the operator {op} between {left.type.name} and {right.type.name}"
            self.source.refuse(node, given, "Convert with int(…) first, or use +, -, *, /.")
        if left.is_constant and right.is_constant and op in _PYTHON_OPERATORS and dtype == I64 and right.constant:
            value = _PYTHON_OPERATORS[op](int(left.constant), int(right.constant))
            if type_of_number(value) == I64:
                return self.number(value)
        if op in _FLOP_OPERATORS:
            self.add_flop(dtype)
        a, b = self.cast(left, dtype).code, self.cast(right, dtype).code
        how = OPERATORS[op]
        return Expr(f"({a} {how} {b})" if isinstance(how, str) else f"ops.{how.__name__}({a}, {b})", dtype)

    def _unaryop(self, node: ast.UnaryOp) -> Expr:
        op = type(node.op).__name__
        if op == "Not":
            value = self.truth(node.operand)
            return self.number(not value.constant) if value.is_constant else Expr(f"(~{value.code})", BOOL)
        value = self.scalar(node.operand)
        dtype = unary_type(op, value.type)
        if dtype is None:
            self.source.refuse(node, f"the operator {op} on {value.type.name}", "Convert with int(…) first.")
        if value.is_constant and value.type == dtype and dtype != U64 and op in ("USub", "UAdd"):
            number = dtype.type(-value.constant if op == "USub" else value.constant)
            return Expr(self.program.constant(number), dtype, number.item())
        if op == "UAdd":
            return self.cast(value, dtype)
        # Numba negates and inverts in the operand's own width and widens the result.
        operand = self.cast(value, dtype) if value.type == BOOL else value
        return self.cast(Expr(f"({'-' if op == 'USub' else '~'}{operand.code})", operand.type), dtype)

    def _compare(self, node: ast.Compare) -> Expr:
        operands = [node.left, *node.comparators]
        if len(operands) == 2:
            left = self.scalar(node.left)
            return self._comparison(node, node.ops[0], left, self.scalar(operands[1]))
        left = self.keep(self.scalar(operands[0]))
        right = self.keep(self.scalar(operands[1]))
        result = self._comparison(node, node.ops[0], left, right)
        for op, operand in zip(node.ops[1:], operands[2:], strict=True):

            def rest(op: ast.cmpop = op, left: Expr = right, operand: ast.expr = operand) -> Expr:
                nonlocal right
                right = self.keep(self.scalar(operand)) if operand is not operands[-1] else self.scalar(operand)
                return self._comparison(node, op, left, right)

            result = self._guarded(operand, result, rest, when=True)
        return result

    def _comparison(self, node: ast.AST, op: ast.cmpop, left: Expr, right: Expr) -> Expr:
        kind = type(op).__name__
        if kind not in _COMPARISONS:
            self.source.refuse(node, f"`{kind}`", "Compare numbers with ==, !=, <, <=, > and >=.")
        symbol = _COMPARISONS[kind]
        if {left.type.kind, right.type.kind} == {"i", "u"} and U64 in (left.type, right.type):
            # NumPy compares integers of mixed sign by value; NumPy 1 does so through float64.
            return Expr(f"ops.compare({left.code}, {right.code}, {symbol!r})", BOOL)
        dtype = BOOL if left.type == right.type == BOOL else arithmetic_type(left.type, right.type)
        return Expr(f"({self.cast(left, dtype).code} {symbol} {self.cast(right, dtype).code})", BOOL)

    def _boolop(self, node: ast.BoolOp) -> Expr:
        result = self.scalar(node.values[0])
        for value in node.values[1:]:
            is_and = isinstance(node.op, ast.And)
            result = self._guarded(value, result, lambda value=value: self.scalar(value), when=is_and)
        return result

    def _guarded(self, node: ast.AST, first: Expr, compile_second: Callable[[], Expr], *, when: bool) -> Expr:
        """Compile `first and second` (when=True) or `first or second`: the second runs in the lanes that need it."""
        if first.is_constant:
            return compile_second() if bool(first.constant) == when else first
        first = self.keep(first)
        second, lines, flop = self._aside(compile_second)
        dtype = unify(first.type, second.type)
        test = self.as_bool(first)
        a, b = self.cast(first, dtype), self.cast(second, dtype)
        if not lines and not flop:
            if dtype == BOOL:
                return Expr(f"({a.code} {'&' if when else '|'} {b.code})", BOOL)
            return Expr(f"ops.select({test.code}, {(b if when else a).code}, {(a if when else b).code})", dtype)
        name, mask = f"t{self.new_number()}", f"need{self.new_number()}"
        self.emit(f"{name} = {a.code}")
        self.emit(f"{mask} = m.split({test.code})[{0 if when else 1}]")
        self._run_aside(node, mask, name, lines, b, flop)
        return Expr(name, dtype)

    def _ifexp(self, node: ast.IfExp) -> Expr:
        test = self.truth(node.test)
        if test.is_constant:
            return self.scalar(node.body if test.constant else node.orelse)
        test = self.keep(test)
        first, first_lines, first_flop = self._aside(lambda: self.scalar(node.body))
        second, second_lines, second_flop = self._aside(lambda: self.scalar(node.orelse))
        dtype = unify(first.type, second.type)
        a, b = self.cast(first, dtype), self.cast(second, dtype)
        if not (first_lines or second_lines or first_flop or second_flop):
            return Expr(f"ops.select({test.code}, {a.code}, {b.code})", dtype)
        number = self.new_number()
        name, yes, no = f"t{number}", f"need{number}", f"other{number}"
        self.emit(f"{name} = {self.program.constant(dtype.type(0))}")
        self.emit(f"{yes}, {no} = m.split({test.code})")
        self._run_aside(node.body, yes, name, first_lines, a, first_flop)
        self._run_aside(node.orelse, no, name, second_lines, b, second_flop)
        return Expr(name, dtype)

    def _aside(self, compile_part: Callable[[], Expr]) -> tuple[Expr, list[str], dict[str, int]]:
        """Compile a part of an expression apart from the rest: its value, its statements and its FLOP."""
        lines, flop, self.lines, self._flop = self.lines, self._flop, [], {}
        self.depth += 1
        value = compile_part()
        self.depth -= 1
        lines, self.lines = self.lines, lines
        flop, self._flop = self._flop, flop
        return value, lines, flop

    def _run_aside(
        self, node: ast.AST, mask: str, name: str, lines: list[str], value: Expr, flop: dict[str, int]
    ) -> None:
        """Run a part compiled aside under its mask and merge its value into a temporary."""
        outer = f"outer{self.new_number()}"
        self.emit(f"if {mask}:")
        self.lines += [f"{'    ' * (self.depth + 1)}{line}" for line in (f"{outer} = m", f"m = {mask}")]
        self.lines += lines
        self.depth += 1
        if flop:
            self.emit(f"k.count_operand({self.site(node, 'operand', flop)}, m)")
        self.emit(f"{name} = m.merge({value.code}, {name})")
        self.emit(f"m = {outer}")
        self.depth -= 1
