"""Rules about labkit's own source, read from its syntax trees: layers, owners of libraries, errors, sizes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "labkit"
# A module may import from lower layers, and from its own as long as no circle arises.
LAYERS = (
    {"units", "errors", "files", "profiles", "html"},
    {"hardware", "measurement"},
    {
        "devices",
        "roofline",
        "occupancy",
        "recordings",
        "datasets",
        "simt",
        "comparison",
        "sand",
        "prediction",
        "nets",
        "workload",
        "precision",
    },
    {"timing", "checkpoints"},
    {"training", "loading", "inference", "energy", "costs"},
    {"plotting", "checks"},
    {"widgets", "lens"},
    {"lesson", "claims", "notebooks", "colab", "report", "__main__"},
)
LAYER_OF = {name: number for number, names in enumerate(LAYERS) for name in names}
# Libraries that only these modules import.
OWNERS = {
    "matplotlib": {"plotting"},
    "ipywidgets": {"widgets"},
    "anywidget": {"widgets", "lens"},
}
# Libraries that these modules do without: they must work, and start fast, where there is no torch.
WITHOUT = {
    "units": {"torch", "numpy"},
    "errors": {"torch", "numpy"},
    "hardware": {"torch"},
    "measurement": {"torch"},
    "simt": {"torch", "threading", "multiprocessing", "concurrent"},
}
MODULE_LINES = 440  # "about 400"
FUNCTION_LINES = 45  # "about 40", docstring and blank lines not counted
BUILTIN_ERRORS = {
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
}
# Raised for a library that expects it, and caught in the same module.
CAUGHT_WITHIN = {("files", "_refuse_constant", "ValueError")}
# A missing attribute of a module or object must be an AttributeError, and a command ends with SystemExit.
PROTOCOL_ERRORS = {"AttributeError": "__getattr__", "SystemExit": "main"}


@dataclass(frozen=True)
class Source:
    """One module of the package: its dotted name under labkit ("" for the package itself) and its text."""

    name: str
    text: str
    is_package: bool = False

    @classmethod
    def read(cls, path: Path, root: Path) -> Source:
        """Read a file that lies under the package's folder root."""
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        return cls(".".join(parts[:-1] if is_package else parts), path.read_text(encoding="utf-8"), is_package)

    @property
    def top(self) -> str:
        """The module's first name under labkit, which decides its layer."""
        return self.name.split(".")[0]

    @property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)


def sources(root: Path) -> list[Source]:
    """Return every module of the package whose folder is root."""
    return [Source.read(path, root) for path in sorted(root.rglob("*.py"))]


def imports_of(source: Source) -> Iterator[str]:
    """Yield the dotted names that a module imports, wherever in it, relative ones made absolute.

    >>> list(imports_of(Source("simt.trace", "from ..units import si; from . import warp; import numpy as np")))
    ['labkit.units.si', 'labkit.simt.warp', 'numpy']
    """
    package = [PACKAGE, *source.name.split(".")] if source.name else [PACKAGE]
    package = package if source.is_package else package[:-1]
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield from (".".join([*base, *filter(None, [node.module]), alias.name]) for alias in node.names)


def tops_imported(source: Source, known: set[str]) -> Iterator[str]:
    """Yield the top-level modules of labkit that a module imports."""
    for name in imports_of(source):
        parts = name.split(".")
        if parts[0] == PACKAGE and len(parts) > 1 and parts[1] in known:
            yield parts[1]


# --- the rules ---------------------------------------------------------------------------------------------------


def unknown_modules(all_sources: list[Source]) -> list[str]:
    """Every module has its place in the layers."""
    return sorted({source.top for source in all_sources if source.top} - LAYER_OF.keys())


def upward_imports(all_sources: list[Source]) -> list[str]:
    """No module imports from a layer above its own; the package's __init__ imports lazily and is left out."""
    found = []
    for source in all_sources:
        own = LAYER_OF.get(source.top)
        for top in sorted(set(tops_imported(source, set(LAYER_OF)))):
            if own is not None and LAYER_OF[top] > own:
                found.append(f"{source.name} (layer {own}) imports {top} (layer {LAYER_OF[top]})")
    return found


def circles(all_sources: list[Source]) -> list[str]:
    """No circle of imports between top-level modules."""
    graph: dict[str, set[str]] = {}
    for source in all_sources:
        if source.top:
            graph.setdefault(source.top, set()).update(set(tops_imported(source, set(LAYER_OF))) - {source.top})

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        todo = [start]
        while todo:
            new = graph.get(todo.pop(), set()) - seen
            seen |= new
            todo += new
        return seen

    return sorted(name for name in graph if name in reachable(name))


def strangers(all_sources: list[Source]) -> list[str]:
    """Libraries stay with their owners, and some modules do without some libraries."""
    found = []
    for source in all_sources:
        libraries = {name.split(".")[0] for name in imports_of(source)}
        for library in sorted(libraries):
            if library in OWNERS and source.top not in OWNERS[library]:
                found.append(f"{source.name or PACKAGE} imports {library}; only {sorted(OWNERS[library])} may")
            if library in WITHOUT.get(source.top, ()):
                found.append(f"{source.name} imports {library} and should do without")
    return found


def foreign_errors(source: Source) -> list[str]:
    """Only LabkitError and its children are raised on purpose, and no error class stands apart from them."""
    found = []
    for function, node in _walk_with_function(source.tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = raised.id if isinstance(raised, ast.Name) else ""
            allowed = PROTOCOL_ERRORS.get(name) == function or (name == "SystemExit" and source.top == "__main__")
            allowed = allowed or (source.name, function, name) in CAUGHT_WITHIN
            if name in BUILTIN_ERRORS and not allowed:
                found.append(f"{source.name}:{node.lineno} raises {name}")
        elif isinstance(node, ast.ClassDef) and node.name != "LabkitError":
            bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
            if bases & BUILTIN_ERRORS:
                found.append(f"{source.name}:{node.lineno} defines {node.name} apart from LabkitError")
    return found


def _walk_with_function(tree: ast.AST, function: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the name of the function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        yield function, node
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _walk_with_function(node, node.name if is_function else function)


def too_long(source: Source) -> list[str]:
    """Modules of about 400 lines at most, functions of about 40."""
    lines = source.text.splitlines()
    found = [f"{source.name} has {len(lines)} lines"] if len(lines) > MODULE_LINES else []
    for node in ast.walk(source.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            length = sum(1 for line in lines[body[0].lineno - 1 : node.end_lineno] if line.strip())
            if length > FUNCTION_LINES:
                found.append(f"{source.name}.{node.name} has {length} lines")
    return found
