"""A seeded generator of random small kernels that are correct by construction, and their check against the reference.

Correct means: indices in bounds, no division by zero, every float finite, each thread writes only cells of its own,
shared memory is written, then a barrier, then read, barriers stand where all threads pass, atomics commute and are not
read back.
Everything else is random: nesting, dtypes, loop bounds that differ by lane, break, continue, return, device functions.

`python -m tests.simt.fuzz SEED` prints a kernel.
"""

from __future__ import annotations

import linecache
import math
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core.errors import TypingError

from labkit.simt import cuda

from . import reference

ELEMENTS = 24  # of each input array
INT_DTYPES = ("int64", "int32", "int16", "uint8", "uint32", "int8")
FLOAT_DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class FuzzCase:
    """A random kernel with its launch and its arguments."""

    seed: int
    source: str
    function: Callable[..., None]
    grid: int
    block: int
    dtypes: tuple[str, ...]

    def arguments(self) -> tuple[np.ndarray, ...]:
        """Fresh inputs and cleared outputs: a, b (integers), x, z (floats), m (2-D), out_i, out_f, counts."""
        rng = np.random.default_rng(self.seed)
        a, b = (rng.integers(0 if d[0] == "u" else -40, 100, ELEMENTS).astype(d) for d in self.dtypes[:2])
        x, z = (rng.uniform(-9, 9, ELEMENTS).astype(d) for d in self.dtypes[2:4])
        matrix = rng.integers(-9, 9, (4, 6)).astype(self.dtypes[4])
        threads = self.grid * self.block
        outputs = np.zeros((threads, 3), self.dtypes[5]), np.zeros((threads, 3), self.dtypes[6])
        return (a, b, x, z, matrix, *outputs, np.zeros(5, np.int64))


class _Writer:
    """Writes one kernel; all randomness comes from one generator."""

    def __init__(self, rng: random.Random, block: int) -> None:
        self.rng, self.block = rng, block
        self.lines: list[str] = []
        self.loops = 0
        self.loop_variables: list[str] = []
        self.shared: str | None = None  # "int" or "float" while the shared array may be read by anyone
        self.shared_kind = rng.choice(("int", "float"))
        self.has_device_function = rng.random() < 0.4
        self.may_return = False
        self.in_loop = False

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    # expressions -----------------------------------------------------------------------------------------------
    def integer(self, depth: int = 2) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return self._integer_leaf()
        e, f = self.integer(depth - 1), self.integer(depth - 1)
        choices = [
            f"({e} + {f})", f"({e} - {f})", f"({e} * {f})", f"({e} // ({f} % 5 + 6))", f"({e} % ({f} % 3 + 7))",
            f"({e} & {f})", f"({e} | {f})", f"({e} ^ {f})", f"({e} << ({f} & 3))", f"({e} >> ({f} & 7))",
            f"(-{e})", f"(~{e})", f"abs({e} % 1000)", f"min({e}, {f})", f"max({e}, {f})",
            f"(({e} % 9) ** {rng.choice((2, 3))})",
            f"({e} if {self.condition(depth - 1)} else {f})", f"np.{rng.choice(INT_DTYPES)}({e} % 300)",
            self._integer_of(self.floating(depth - 1)), f"({self.condition(depth - 1)} + {e})",
            f"({self.varying()} and {f})", f"({self.varying()} or {f})",
        ]  # fmt: skip
        if self.has_device_function:
            choices += [f"helper({e} % 50, {f} % 50)"] * 2
        return rng.choice(choices)

    def _integer_of(self, value: str) -> str:
        return f"int(min(max({value}, -500.0), 500.0))"

    def _storable(self, value: str) -> str:
        """Bring into range: uint64 and int64 may unify to float64, and a float too large for an integer is UB."""
        return f"int(({value}) % {self.rng.choice((1000003, 65521, 2**31 - 1))})"

    def _integer_leaf(self) -> str:
        rng = self.rng
        index = rng.choice(("t", "g", "i0", "i1", *self.loop_variables))
        leaves = [
            "i0", "i1", "i2", "t", "g", str(rng.randint(-20, 20)), str(rng.randint(0, 3)), "LIMIT",
            f"a[{self.place(index)}]", f"b[{self.place(index)}]", "cuda.blockIdx.x", "a.shape[0]", "mine[i0 % 4]",
            f"m[{index} % 4, {rng.choice(('t', 'i1'))} % 6]", f"m[{index} % 4][{rng.randint(-6, 5)}]", "out_i[g, 1]",
            *self.loop_variables * 2,
        ]  # fmt: skip
        if self.shared == "int":
            leaves += [f"s[({index} + {rng.randint(0, 9)}) % {self.block}]"] * 4
        return rng.choice(leaves)

    def varying(self) -> str:
        """An integer that is no constant: Numba drops a branch whose condition is made of constants, types and all."""
        return f"{self.rng.choice('ab')}[{self.place(self.rng.choice('tg'))}]"

    def place(self, index: str) -> str:
        kinds = (f"{index} % {ELEMENTS}", f"({index} * 3 + 1) % {ELEMENTS}", f"-1 - {index} % {ELEMENTS}")
        return self.rng.choice(kinds)

    def floating(self, depth: int = 2) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return self._float_leaf()
        e, f = self.floating(depth - 1), self.floating(depth - 1)
        return rng.choice([
            f"({e} + {f})", f"({e} - {f})", f"({e} * {f})",
            f"({e} / (abs({f}) + {rng.choice(('0.5', '1', 'np.float32(2)'))}))",
            f"({e} % {rng.choice(('7.5', '16', 'np.float32(3.25)'))})", f"(({e} % 64) // {rng.choice(('2.5', '3'))})",
            f"(-{e})", f"abs({e})", f"min({e}, {f})", f"max({e}, {f})", f"math.sqrt(abs({e}))", f"math.fabs({e})",
            f"({e} if {self.condition(depth - 1)} else {f})", f"np.float32({e})",
            f"float({self.integer(depth - 1)} % 30)",
            f"({e} + {self.integer(depth - 1)} % 30)", f"({e} * ({self.integer(depth - 1)} % 8))",
            f"({self.integer(depth - 1)} % 50 / ({self.integer(depth - 1)} % 5 + 6))",
        ])  # fmt: skip

    def _float_leaf(self) -> str:
        rng = self.rng
        index = rng.choice(("t", "g", "i0", *self.loop_variables))
        leaves = [
            "f0", "f1", f"x[{self.place(index)}]", f"z[{self.place(index)}]", "0.1", "-2.5", "np.float32(0.3)", "scale",
            "out_f[g, 0]", f"{rng.randint(-3, 3)}.0", "FACTOR",
        ]  # fmt: skip
        if self.shared == "float":
            leaves += [f"s[({index} + {rng.randint(0, 9)}) % {self.block}]"] * 4
        return rng.choice(leaves)

    def condition(self, depth: int = 1) -> str:
        rng = self.rng
        compare = rng.choice(("<", "<=", ">", ">=", "==", "!="))
        if depth <= 0:
            return rng.choice(
                (f"({self._integer_leaf()} {compare} {self.varying()})", f"(t % {rng.randint(2, 5)} == 1)")
            )
        p, q = self.condition(depth - 1), self.condition(depth - 1)
        e, f = self.integer(depth - 1), self.integer(depth - 1)
        return rng.choice([
            f"({p} and {q})", f"({p} or {q})", f"(not {p})", f"({e} {compare} {f} + {self.varying()})",
            f"({e} % 40 {compare} {f} % 30 < t)",
            f"({self.floating(depth - 1)} < {self.floating(depth - 1)} + x[{self.place('t')}])", f"bool({e} & 1)",
        ])  # fmt: skip

    # statements ------------------------------------------------------------------------------------------------
    def statements(self, depth: int, count: int, nesting: int = 2) -> None:
        for _ in range(count):
            self.statement(depth, nesting)

    def statement(self, depth: int, nesting: int) -> None:
        rng = self.rng
        kinds = ["integer", "integer", "float", "float", "augmented", "local", "output", "atomic", "swap"]
        kinds += ["if", "if", "for", "while"] if nesting else []
        kinds += ["leave"] if self.in_loop else []
        kinds += ["return"] if self.may_return and depth > 1 and rng.random() < 0.5 else []
        getattr(self, f"_put_{rng.choice(kinds)}")(depth, nesting)

    def _put_integer(self, depth: int, nesting: int) -> None:
        self.put(depth, f"{self.rng.choice(('i0', 'i1', 'i2'))} = {self.integer()}")

    def _put_float(self, depth: int, nesting: int) -> None:
        name = self.rng.choice(("f0", "f1"))
        self.put(depth, f"{name} = {self.floating()}")
        self._bound(depth, name)

    def _bound(self, depth: int, name: str) -> None:
        """Keep a float below 1000 in size, so that products of a few stay finite in float32."""
        self.put(depth, f"{name} %= {self.rng.choice(('97', '97.5', 'np.float32(61)'))}")

    def _put_augmented(self, depth: int, nesting: int) -> None:
        if self.rng.random() < 0.5:
            operator = self.rng.choice(("+=", "-=", "*=", "&=", "|=", "^="))
            self.put(depth, f"{self.rng.choice(('i0', 'i1'))} {operator} {self.integer(1)}")
        else:
            name = self.rng.choice(("f0", "f1"))
            self.put(depth, f"{name} {self.rng.choice(('+=', '-=', '*='))} {self.floating(1)}")
            self._bound(depth, name)

    def _put_local(self, depth: int, nesting: int) -> None:
        self.put(depth, f"mine[({self.integer(1)}) % 4] = {self._storable(self.integer(1))}")

    def _put_output(self, depth: int, nesting: int) -> None:
        if self.rng.random() < 0.5:
            self.put(
                depth,
                f"out_i[g, {self.rng.randint(0, 2)}] {self.rng.choice(('=', '+='))} {self._storable(self.integer(1))}",
            )
        else:
            self.put(depth, f"out_f[g, {self.rng.randint(0, 2)}] = ({self.floating(1)}) % 50")

    def _put_atomic(self, depth: int, nesting: int) -> None:
        name, slot = self.rng.choice((("add", 0), ("max", 1), ("min", 2), ("xor", 3), ("add", 4)))
        self.put(depth, f"cuda.atomic.{name}(counts, {slot}, {self._storable(self.integer(1))})")

    def _put_swap(self, depth: int, nesting: int) -> None:
        self.put(depth, "i0, i1 = i1, i0" if self.rng.random() < 0.5 else "f0, f1 = f1, f0")

    def _put_if(self, depth: int, nesting: int) -> None:
        self.put(depth, f"if {self.condition()}:")
        self.statements(depth + 1, self.rng.randint(1, 2), nesting - 1)
        if self.rng.random() < 0.3:
            self.put(depth, f"elif {self.condition()}:")
            self.statements(depth + 1, self.rng.randint(1, 2), nesting - 1)
        if self.rng.random() < 0.5:
            self.put(depth, "else:")
            self.statements(depth + 1, self.rng.randint(1, 2), nesting - 1)

    def _put_for(self, depth: int, nesting: int) -> None:
        variable = self._new_loop()
        bounds = self.rng.choice((
            f"{self.rng.randint(1, 4)}", f"({self.integer(1)}) % 5", f"t % 4, {self.rng.randint(2, 6)}",
            f"({self.integer(1)}) % 6, -1, -{self.rng.randint(1, 3)}", f"1, ({self.integer(1)}) % 7, 2",
        ))  # fmt: skip
        self.put(depth, f"for {variable} in range({bounds}):")
        self._loop_body(depth, nesting, variable)

    def _put_while(self, depth: int, nesting: int) -> None:
        variable = self._new_loop()
        self.put(depth, f"{variable} = ({self.integer(1)}) % 5")
        self.put(
            depth, f"while {variable} > 0{self.rng.choice(('', ' and i0 % 11 != 3', ' and (i1 > -99 or t < 5)'))}:"
        )
        self.put(depth + 1, f"{variable} -= 1")
        self._loop_body(depth, nesting, variable)

    def _new_loop(self) -> str:
        self.loops += 1
        return f"j{self.loops}"

    def _loop_body(self, depth: int, nesting: int, variable: str) -> None:
        outer, self.in_loop = self.in_loop, True
        self.loop_variables.append(variable)
        self.statements(depth + 1, self.rng.randint(1, 2), nesting - 1)
        self.loop_variables.pop()
        self.in_loop = outer

    def _put_leave(self, depth: int, nesting: int) -> None:
        self.put(depth, f"if {self.condition()}:")
        self.put(depth + 1, self.rng.choice(("break", "continue")))

    def _put_return(self, depth: int, nesting: int) -> None:
        self.put(depth, f"if {self.condition()}:")
        self.put(depth + 1, "return")

    # the whole kernel ------------------------------------------------------------------------------------------
    def kernel(self) -> str:
        if self.has_device_function:
            self._device_function()
        dtype = self.rng.choice(INT_DTYPES if self.shared_kind == "int" else FLOAT_DTYPES)
        self.put(0, "def kernel(a, b, x, z, m, out_i, out_f, counts):")
        for line in (
            f"s = cuda.shared.array({self.block}, np.{dtype})",
            f"mine = cuda.local.array(4, np.{self.rng.choice(INT_DTYPES)})",
            "t = cuda.threadIdx.x", "g = cuda.grid(1)", "scale = np.float32(1.25)",
            "for j in range(4):", "    mine[j] = j * t",
            f"i0 = {self.rng.choice(('t', '0', 'a[t % 24]', 'g * 7'))}", f"i1 = {self.rng.choice(('1', 'b[g % 24]'))}",
            "i2 = g - 5", f"f0 = {self.rng.choice(('0', '0.0', 'x[t % 24]', 'np.float32(1)'))}",
            f"f1 = {self.rng.choice(('z[g % 24]', '1.5', 'scale'))}",
        ):  # fmt: skip
            self.put(1, line)
        self.statements(1, self.rng.randint(1, 3))
        for _ in range(self.rng.randint(0, 2)):
            self._phase()
        self.may_return = True
        self.statements(1, self.rng.randint(1, 3))
        self.put(1, f"out_i[g, 2] += {self._storable('i0 + 3 * i1 - i2')}")
        self.put(1, "out_f[g, 2] = f0 - f1")
        return "\n".join(self.lines) + "\n"

    def _phase(self) -> None:
        """Store, barrier, work that may read any cell, barrier; sometimes in a loop or branch that all threads take."""
        depth = 1
        form = self.rng.choice(("plain", "plain", "loop", "branch"))
        if form == "loop":
            self.put(1, f"for round_{len(self.lines)} in range({self.rng.choice(('2', '3', 'cuda.blockIdx.x + 1'))}):")
        if form == "branch":
            self.put(1, f"if cuda.blockIdx.x % 2 == {self.rng.randint(0, 1)}:")
        depth += form != "plain"
        self.put(
            depth,
            f"s[t] = {self._storable(self.integer()) if self.shared_kind == 'int' else f'({self.floating()}) % 40'}",
        )
        self.put(depth, "cuda.syncthreads()")
        self.shared = self.shared_kind
        self.statements(depth, self.rng.randint(1, 2))
        self.shared = None
        self.put(depth, self.rng.choice(("cuda.syncthreads()", "i1 += cuda.syncthreads_count(np.int32(t % 3))")))
        if self.block % 32 == 0 and self.rng.random() < 0.6:
            self.put(depth, self.rng.choice((
                f"i0 += cuda.shfl_down_sync({0xFFFFFFFF}, np.int32(i1 % 99), {self.rng.randint(1, 9)})",
                f"i2 += cuda.shfl_xor_sync({0xFFFFFFFF}, np.int64(i0 % 99), {self.rng.choice((1, 2, 4, 16))})",
                f"f0 = cuda.shfl_sync({0xFFFFFFFF}, np.float32(f1), (t + {self.rng.randint(0, 31)}) % 32)",
                f"i1 ^= cuda.ballot_sync({0xFFFFFFFF}, {self.condition()})",
            )))  # fmt: skip

    def _device_function(self) -> None:
        for line in (
            "@cuda.jit(device=True)", "def helper(p, q):", f"    r = p * {self.rng.randint(1, 5)} - q",
            f"    if p {self.rng.choice(('<', '>'))} q:", f"        return r // {self.rng.randint(2, 5)}",
            "    while r > 9:", f"        r -= {self.rng.randint(4, 9)}",
            "        if r == 13:", "            return r + p", "    return r", "", "",
        ):  # fmt: skip
            self.put(0, line)


def generate(seed: int) -> FuzzCase:
    """The kernel of a seed: the first draft that Numba's compiler types (it refuses `&` on what unified to a float)."""
    for draft in range(100):
        rng = random.Random(f"{seed}/{draft}")
        block = rng.choice((20, 32, 32, 33, 48, 64))
        grid = rng.choice((1, 1, 2)) if block <= 33 else 1
        source = _Writer(rng, block).kernel()
        dtypes = (*rng.choices(INT_DTYPES, k=2), *rng.choices(FLOAT_DTYPES, k=2), rng.choice(INT_DTYPES))
        dtypes += (rng.choice(INT_DTYPES), rng.choice(FLOAT_DTYPES))
        case = FuzzCase(seed, source, compile_source(source, f"<fuzz {seed}.{draft}>"), grid, block, dtypes)
        try:
            reference.types_of(case.function, *case.arguments())
        except TypingError:
            continue
        return case
    raise AssertionError(f"no draft of seed {seed} can be typed")


def compile_source(source: str, filename: str) -> Callable[..., None]:
    """A function from source text that inspect.getsource can find again, as it finds a notebook's cell."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"cuda": cuda, "np": np, "math": math, "LIMIT": 9, "FACTOR": 0.75, "__name__": "fuzz"}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["kernel"]


def mismatches(case: FuzzCase, run: Callable[..., Any]) -> list[str]:
    """What differs, array by array, between the reference and `run(function, grid, block, *arguments)`."""
    expected, given = case.arguments(), case.arguments()
    reference.launch(case.function, case.grid, case.block, *expected)
    run(case.function, case.grid, case.block, *given)
    names = ("a", "b", "x", "z", "m", "out_i", "out_f", "counts")
    found = []
    for name, wanted, came in zip(names, expected, given, strict=True):
        if not np.array_equal(wanted, came, equal_nan=wanted.dtype.kind == "f"):
            where = np.argwhere(~((wanted == came) | ((wanted != wanted) & (came != came))))[0]
            found.append(f"{name}{where.tolist()}: expected {wanted[tuple(where)]!r}, came {came[tuple(where)]!r}")
    return found


def report(case: FuzzCase, problems: list[str]) -> str:
    """The seed, the launch, what is wrong, and the source: all that is needed to try again."""
    launch = f"seed {case.seed}: kernel[{case.grid}, {case.block}], dtypes {case.dtypes}"
    return "\n".join([launch, *problems, case.source])


if __name__ == "__main__":
    chosen = generate(int(sys.argv[1]))
    print(report(chosen, []))
