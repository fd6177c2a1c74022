"""What all parts of the compiler share: the lines of generated code, the names in it, and the places that count.

Each variable of the kernel is kept once per type that Numba would give it (`acc__float32`); temporaries are t1, t2, …
"""

from __future__ import annotations

import ast
from typing import Any, NoReturn

import numpy as np

from labkit.simt.program import Expr, Program
from labkit.simt.source import KernelSource
from labkit.simt.types import TupleType, Type, is_float

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

_NAMES = {
    "With": "`with`",
    "Try": "`try`",
    "Raise": "`raise`",
    "FunctionDef": "a function inside a kernel",
    "Lambda": "a lambda",
    "ListComp": "a list comprehension",
    "List": "a list",
    "Dict": "a dictionary",
    "Set": "a set",
    "GeneratorExp": "a generator",
    "JoinedStr": "an f-string",
    "Slice": "a slice",
    "Import": "`import`",
    "ImportFrom": "`import`",
    "Global": "`global`",
    "NamedExpr": "an assignment inside an expression",
    "Match": "`match`",
}


class Emitter:
    """The state of compiling one function: the lines written so far, the types of its variables, its sites."""

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
            return [Expr(self.variable(f"{name}__{i}", item), item) for i, item in enumerate(type_.items)]
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
        self.source.refuse(
            node, _NAMES.get(kind, f"`{kind}`"), _ADVICE.get(kind, "Use numbers, arrays, if, for, while and functions.")
        )
