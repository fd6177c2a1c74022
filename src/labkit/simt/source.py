"""Find a kernel's source text, its syntax tree with the file's own line numbers, and what its names stand for."""

from __future__ import annotations

import ast
import builtins
import contextlib
import inspect
import linecache
import textwrap
from collections.abc import Callable
from typing import Any, NoReturn

from labkit.errors import KernelError

MISSING = object()


class KernelSource:
    """The text of one kernel or device function: `tree` (its FunctionDef), `lines`, `filename` and `lookup`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        self.filename = function.__code__.co_filename
        linecache.checkcache(self.filename)
        try:
            lines, first_line = inspect.getsourcelines(function)
        except (OSError, TypeError):
            raise KernelError(
                f"kernel {self.name}",
                "its source text cannot be found, and the simulator reads a kernel's source",
                "Define it in a notebook cell or in a file with `def`.",
            ) from None
        self.first_line = max(first_line, 1)
        self.lines = lines
        self.tree = self._parse(textwrap.dedent("".join(lines)))
        closure = inspect.getclosurevars(function)
        self._names = {**vars(builtins), **function.__globals__, **closure.nonlocals}

    def _parse(self, text: str) -> ast.FunctionDef:
        tree = None
        with contextlib.suppress(SyntaxError):
            tree = next((n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)), None)
        if tree is None:
            raise KernelError(
                f"kernel {self.name}",
                "its source is not a plain `def` (a lambda, or part of a longer expression)",
                "Write it as a function with `def`.",
            )
        ast.increment_lineno(tree, self.first_line - 1)
        return tree

    def lookup(self, name: str) -> Any:
        """Return what a name outside the kernel stands for (closure, module, builtin), or MISSING."""
        return self._names.get(name, MISSING)

    def line_text(self, line: int) -> str:
        """Return one line of the source, stripped, for messages."""
        place = line - self.first_line
        return self.lines[place].strip() if 0 <= place < len(self.lines) else ""

    def refuse(self, node: ast.AST, construct: str, advice: str, problem: str = "") -> NoReturn:
        """Raise KernelError for a construct that kernels may not use: the line, the construct, what to write."""
        line = getattr(node, "lineno", self.first_line)
        raise KernelError(
            f"{self.name}, line {line}: {construct} in `{self.line_text(line)}`",
            problem or "this is not supported in a kernel",
            advice,
        )
