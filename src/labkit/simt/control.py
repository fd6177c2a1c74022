"""Compile control flow: branches narrow the mask, loops run until no lane is left in them.

`if` splits m, runs each side that has lanes, and goes on with the lanes that neither side retired. `break`, `continue`
and `return` collect lanes in the masks `broken`, `continued` and `gone`, which are taken out of m from there on.
Where paths meet with different types of one variable, the lanes of each path are converted to the unified type, as
Numba's phi nodes do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from labkit.simt.expressions import ExpressionCompiler
from labkit.simt.program import Expr
from labkit.simt.types import BOOL, I64, U64, Type, range_type, unify

_DEEPEST_GUARD = 40  # Python itself allows 100 levels of indentation

Env = dict[str, Type | None]


@dataclass
class _Loop:
    """A loop being compiled: the types at its head and after it, and the paths found to lead there."""

    number: int
    head: Env
    after: Env
    to_head: list[Env] = field(default_factory=list)
    to_after: list[Env] = field(default_factory=list)


class ControlCompiler(ExpressionCompiler):
    """Blocks, branches, loops and jumps."""

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Compile statements in order; behind one that may retire lanes, the rest runs only if some are left."""
        depth = self.depth
        for statement in statements:
            if self.env is None:
                break  # no path leads here
            compile_statement = getattr(self, f"do_{type(statement).__name__}", None)
            if compile_statement is None:
                self.refuse_node(statement)
            compile_statement(statement)
            if self.env is not None and jumps([statement]) and self.depth < _DEEPEST_GUARD:
                self.emit("if m:")
                self.depth += 1
                self.emit("pass")
        self.depth = depth

    @contextmanager
    def _separate(self) -> Iterator[list[str]]:
        """Collect the lines emitted meanwhile, one level deeper, in a list of their own."""
        lines, self.lines = self.lines, []
        depth = self.depth
        self.depth += 1
        try:
            yield self.lines
        finally:
            self.lines = lines
            self.depth = depth

    def _convert(self, target: Env, mask: str = "m") -> None:
        """Convert the variables of this path to the types of the place that it leads to."""
        for name, type_ in self.env.items():
            wanted = target.get(name, type_)
            if wanted == type_ or wanted is None or type_ is None:
                continue
            for old, new in zip(self.parts(name, type_), self.parts(name, wanted), strict=True):
                if old.code != new.code:
                    self.locals[new.code] = new.type
                    self.emit(f"{new.code} = {mask}.merge({self.cast(old, new.type).code}, {new.code})")

    def retire(self) -> None:
        """End this path: its lanes are in one of the collecting masks."""
        self.emit("m = k.none")
        self.env = None

    # ---- branches ----

    def do_If(self, node: ast.If) -> None:  # noqa: N802
        """Compile if/elif/else."""
        condition = self.truth(node.test)
        if condition.is_constant:
            self.count(node)
            self.block(node.body if condition.constant else node.orelse)
            return
        number = self.new_number()
        yes, no = f"yes{number}", f"no{number}"
        self.emit(f"{yes}, {no} = k.branch({self.site(node, 'branch')}, m, {condition.code})")
        self.emit(f"before{number} = m")
        self.count(node)
        sides = [(yes, node.body), (no, node.orelse)]
        if self.contains_barrier(node.body) and not self.contains_barrier(node.orelse):
            sides.reverse()  # threads that return on that side must be gone before the others meet at the barrier
        start, compiled = self.env, []
        for mask, body in sides:
            self.env = dict(start)
            with self._separate() as lines:
                self.emit(f"m = {mask}")
                self.block(body)
            compiled.append((mask, lines, self.env))
        joined = meet([env for _, _, env in compiled])
        for mask, lines, env in compiled:
            self.env = env
            with self._separate() as tail:
                if env is not None:
                    self._convert(joined)
            if len(lines) + len(tail) > 1:
                self.emit(f"if {mask}:")
                self.lines += lines + tail
        self.env = joined
        self.emit(f"m = before{number}{self._without(jumps([node]))}")

    def _without(self, kinds: set[str]) -> str:
        """Code that takes out of a mask the lanes which these kinds of jumps have retired."""
        masks = {"Return": "gone"}
        if self.loops:
            masks |= {"Break": f"broken{self.loops[-1].number}", "Continue": f"continued{self.loops[-1].number}"}
        return "".join(f" - {masks[kind]}" for kind in sorted(kinds))

    # ---- loops ----

    def do_While(self, node: ast.While) -> None:  # noqa: N802
        """Compile a while loop."""
        self._loop(node, lambda: self.truth(node.test))

    def do_For(self, node: ast.For) -> None:  # noqa: N802
        """Compile a for loop over range(…), whose bounds may differ from lane to lane."""
        call = node.iter
        is_range = isinstance(call, ast.Call) and self.static(call.func) is range and not call.keywords
        if not is_range or not 1 <= len(call.args) <= 3:
            self.source.refuse(node, "a loop over something other than range(…)", "Loop over range(…), index inside.")
        if not isinstance(node.target, ast.Name):
            self.source.refuse(node, "a loop with more than one variable", "Use one loop variable.")
        arguments = [self.keep(self.scalar(a)) for a in call.args]
        for argument in arguments:
            if argument.type.kind == "f":
                self.source.refuse(node, "range() of a float", "Convert it with int(…).", "range() counts in integers")
        dtype = range_type(*(a.type for a in arguments))
        wide = U64 if dtype == U64 else I64
        if len(arguments) == 1:
            arguments.insert(0, self.number(0))
        trips = f"trips{self.new_number()}"
        codes = ", ".join(self.cast(a, wide).code for a in arguments)
        self.emit(f"{trips} = k.trips({self.site(node, 'range')}, m, {self.program.constant(dtype)}, {codes})")
        self._loop(node, lambda: Expr(f"{trips}.more()", BOOL), Expr(f"{trips}.value()", dtype), f"{trips}.advance()")

    def _loop(
        self, node: ast.While | ast.For, condition: Callable[[], Expr], value: Expr | None = None, advance: str = ""
    ) -> None:
        """Compile a loop again and again until the types at its head and after it stand still."""
        if node.orelse:
            self.source.refuse(node.orelse[0], "else on a loop", "Set a flag before `break` and test it afterwards.")
        entry = self.env
        loop = _Loop(self.new_number(), entry, entry)
        while True:
            loop.to_head, loop.to_after = [], []
            self.env = dict(loop.head)
            self.loops.append(loop)
            with self._separate() as lines:
                self._loop_body(loop, node, condition, value, advance)
            self.loops.pop()
            head, after = meet([loop.head, *loop.to_head]), meet(loop.to_after)
            if head == loop.head and (after or entry) == loop.after:
                break
            loop.head, loop.after = head, after or entry
        self.env = entry
        self._convert(loop.head)
        self.emit(f"before{loop.number} = m")
        self.emit(f"broken{loop.number} = k.none")
        self.emit("while True:")
        self.lines += lines
        self.env = after
        self.emit(f"m = before{loop.number}{self._without(jumps([node]))}")

    def _loop_body(
        self, loop: _Loop, node: ast.While | ast.For, condition: Callable[[], Expr], value: Expr | None, advance: str
    ) -> None:
        number = loop.number
        test = condition()
        if not (test.is_constant and test.constant):
            self.emit(f"m, out{number} = k.branch({self.site(node, 'branch')}, m, {test.code})")
            self._convert(loop.after, f"out{number}")
            loop.to_after.append(dict(self.env))
        self.count(node)
        self.emit("if not m: break")
        self.emit(f"k.step({self.site(node, 'loop')}, m)")
        if value is not None:
            self.assign_name(node.target.id, value, node)
        self.emit(f"inside{number} = m")
        kinds = jumps(node.body)
        if "Continue" in kinds:
            self.emit(f"continued{number} = k.none")
        self.block(node.body)
        if self.env is not None:
            self._convert(loop.head)
            loop.to_head.append(self.env)
        self.emit(f"m = inside{number}{self._without(kinds - {'Continue'})}")
        if advance:
            self.emit(advance)

    def do_Break(self, node: ast.Break) -> None:  # noqa: N802
        """Retire the lanes from the innermost loop."""
        loop = self.loops[-1]
        self._convert(loop.after)
        loop.to_after.append(self.env)
        self.emit(f"broken{loop.number} = broken{loop.number} | m")
        self.retire()

    def do_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        """Retire the lanes from this trip of the innermost loop."""
        loop = self.loops[-1]
        self._convert(loop.head)
        loop.to_head.append(self.env)
        self.emit(f"continued{loop.number} = continued{loop.number} | m")
        self.retire()


def meet(paths: Sequence[Env | None]) -> Env | None:
    """Return the types that variables have where paths meet; a name has None where no one type fits."""
    live = [env for env in paths if env is not None]
    if not live:
        return None
    joined = dict(live[0])
    for env in live[1:]:
        for name, type_ in env.items():
            known = joined.get(name, type_)
            joined[name] = None if known is None or type_ is None else unify(known, type_)
    return joined


def jumps(statements: Sequence[ast.stmt]) -> set[str]:
    """Return which of Break, Continue and Return can leave these statements.

    >>> sorted(jumps(ast.parse("for i in r:\\n  if i: break\\n  if j: return").body))
    ['Return']
    """
    found: set[str] = set()
    for statement in statements:
        kind = type(statement).__name__
        if kind in ("Break", "Continue", "Return"):
            found.add(kind)
        elif kind == "If":
            found |= jumps(statement.body + statement.orelse)
        elif kind in ("For", "While"):
            found |= jumps(statement.body) & {"Return"}
    return found
