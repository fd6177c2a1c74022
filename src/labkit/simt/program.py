"""What compiling a kernel yields: generated Python source, its sites (places in the kernel's text), and its arrays."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labkit.simt import operations
from labkit.simt.source import MISSING, KernelSource
from labkit.simt.types import Type


@dataclass(frozen=True)
class Site:
    """One place in the kernel's text where something is counted: its line, what it does, its FLOP per lane."""

    line: int
    function: str
    filename: str
    text: str
    flop: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Expr:
    """A compiled expression: code without side effects, its type, and its value where that is known already.

    `items` holds the parts of a tuple. A `type` of None is something that only the compiler handles: a function, a
    module, a dtype, in `constant`.
    """

    code: str
    type: Type | None
    constant: Any = MISSING
    items: tuple[Expr, ...] = ()

    @property
    def is_constant(self) -> bool:
        """True if the value is known at compile time."""
        return self.constant is not MISSING


@dataclass
class Program:
    """A kernel compiled for one set of argument types."""

    source: KernelSource
    sites: list[Site] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    shared_bytes: dict[int, int] = field(default_factory=dict)  # static allocations: site -> bytes per block
    local_bytes: dict[int, int] = field(default_factory=dict)  # site -> bytes per thread
    dynamic_dtypes: set[np.dtype] = field(default_factory=set)  # the types under which dynamic shared memory is used
    stored: set[str] = field(default_factory=set)  # the kernel's array parameters that it may write
    namespace: dict[str, Any] = field(default_factory=dict)
    entry: Callable[..., Any] | None = None
    sources: dict[tuple[str, str, int], KernelSource] = field(default_factory=dict)  # of the sites: file, name, line
    _site_numbers: dict[Any, int] = field(default_factory=dict)
    _constants: dict[Any, str] = field(default_factory=dict)
    _frozen: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    functions: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.namespace |= {"np": np, "ops": operations}

    def site(self, unit: Any, source: KernelSource, node: ast.AST, kind: str, flop: dict[str, int]) -> int:
        """Return the number of a place in the text; the same place keeps its number when it is compiled again."""
        line = getattr(node, "lineno", source.first_line)
        entry = Site(line, source.name, source.filename, source.line_text(line), tuple(sorted(flop.items())))
        self.sources.setdefault((source.filename, source.name, source.first_line), source)
        key = (id(unit), id(node), kind)
        if key not in self._site_numbers:
            self._site_numbers[key] = len(self.sites)
            self.sites.append(entry)
        self.sites[self._site_numbers[key]] = entry
        return self._site_numbers[key]

    def line_key(self, site: int) -> int | str:
        """Return a site's line; "name:line" for that of a device function in another file than the kernel's."""
        place = self.sites[site]
        return place.line if place.filename == self.source.filename else f"{place.function}:{place.line}"

    def line_key_of(self, source: KernelSource, line: int) -> int | str:
        """Return the same for any line of a function's source."""
        return line if source.filename == self.source.filename else f"{source.name}:{line}"

    def constant(self, value: Any, hint: str = "c") -> str:
        """Return a name in the generated code for a value made at compile time."""
        key = (type(value), value.dtype.str, value.tobytes()) if isinstance(value, np.generic) else id(value)
        if key not in self._constants:
            name = f"{hint}{len(self._constants)}"
            self._constants[key] = name
            self.namespace[name] = value
        return self._constants[key]

    def freeze(self, array: np.ndarray) -> np.ndarray:
        """Return a copy of an array from outside the kernel, as it is at the first use: a constant of the program."""
        if id(array) not in self._frozen:
            self._frozen[id(array)] = (array, np.array(array, order="C"))
        return self._frozen[id(array)][1]

    def finish(self) -> None:
        """Turn the generated text into functions."""
        code = "\n".join(self.text)
        exec(compile(code, f"<labkit.simt: {self.source.name}>", "exec"), self.namespace)
        self.entry = self.namespace["kernel"]
