"""Compile expressions to NumPy code that treats all lanes at once.

Code without side effects is written inline; a load, a call with an effect or a guarded operand becomes a statement of
its own with its result in a temporary, so that the order of the kernel's text is kept. `and`, `or` and conditional
expressions run an operand that has effects under a narrowed mask.
"""

from __future__ import annotations

import ast
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from labkit.simt.emitter import Emitter
from labkit.simt.operations import OPERATORS
from labkit.simt.program import Expr
from labkit.simt.source import MISSING
from labkit.simt.types import (
    BOOL,
    I64,
    U64,
    ArrayType,
    TupleType,
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


class ExpressionCompiler(Emitter):
    """Expressions of all kinds but array elements and calls, which calls.py adds."""

    def contains_barrier(self, statements: Iterable[ast.stmt]) -> bool:
        """Return whether a barrier stands in these statements (or in a device function called there)."""
        for statement in statements:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and self.is_barrier(self.static(node.func)):
                    return True
        return False

    @abstractmethod
    def is_barrier(self, function: Any) -> bool:
        """Return whether calling this runs into a barrier; calls.py knows."""

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

    @abstractmethod
    def constant_array(self, value: np.ndarray, node: ast.AST) -> Expr:
        """Return an array from outside the kernel, which a kernel may only read."""

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
                code = self.program.constant(np.int64(value))
                # Python itself works out 32 * 33; TILE + 1 is no constant to Numba, and so is no array's shape.
                return Expr(code, I64, value) if _only_literals(node) else Expr(code, I64)
        if op in _FLOP_OPERATORS:
            self.add_flop(dtype)
        a, b = self.cast(left, dtype).code, self.cast(right, dtype).code
        return Expr(OPERATORS[op].format(a=a, b=b), dtype)

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


def _only_literals(node: ast.AST) -> bool:
    """Say whether an expression is made of numbers alone, so that Python works it out before Numba sees it."""
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
    return isinstance(node, ast.BinOp) and all(isinstance(part, kinds) for part in ast.walk(node))
