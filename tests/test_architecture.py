"""labkit's source against the rules of its design, and the rules against sources that break them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lessons import ROOT
from source_rules import (
    Source,
    circles,
    foreign_errors,
    sources,
    strangers,
    too_long,
    unknown_modules,
    upward_imports,
)

LABKIT = sources(ROOT / "src" / "labkit")


@pytest.mark.parametrize("rule", [unknown_modules, upward_imports, circles, strangers], ids=lambda rule: rule.__name__)
def test_package_keeps(rule) -> None:
    assert rule(LABKIT) == [], rule.__doc__


@pytest.mark.parametrize("rule", [foreign_errors, too_long], ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("source", LABKIT, ids=lambda source: source.name or "labkit")
def test_module_keeps(source, rule) -> None:
    assert rule(source) == [], rule.__doc__


def test_importing_labkit_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'torch', 'matplotlib', 'ipywidgets', 'IPython', 'nbformat'}"
    program = f"import sys, labkit; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the rules themselves ----------------------------------------------------------------------------------------


def test_a_module_without_a_place_is_found() -> None:
    assert unknown_modules([Source("units", ""), Source("helpers.text", "")]) == ["helpers"]


@pytest.mark.parametrize(
    "text",
    [
        "import labkit.timing",
        "from labkit import timing",
        "from labkit.timing import measure",
        "from .timing import measure",
        "from . import timing",
        "def later():\n    from .timing import measure",
    ],
)
def test_an_upward_import_is_found_however_written(text: str) -> None:
    assert upward_imports([Source("units", text)]) == ["units (layer 0) imports timing (layer 3)"]


def test_a_relative_import_is_read_from_inside_a_package() -> None:
    found = ["simt (layer 2) imports lesson (layer 7)"]
    assert upward_imports([Source("simt", "from ..lesson import start", is_package=True)]) == found
    assert upward_imports([Source("simt", "from .lesson import start", is_package=True)]) == []
    assert upward_imports([Source("simt.trace", "from .lesson import start")]) == []
    assert len(upward_imports([Source("simt.trace", "from ..lesson import start")])) == 1


def test_downward_and_own_layer_imports_are_free() -> None:
    assert upward_imports([Source("timing", "from . import units, checkpoints\nimport torch")]) == []


def test_a_circle_is_found_even_through_a_third() -> None:
    three = [
        Source("devices", "from . import roofline"),
        Source("roofline", "from .simt.trace import x"),
        Source("simt.launch", "from ..devices import find"),
        Source("timing", "from . import devices"),
    ]
    assert circles(three) == ["devices", "roofline", "simt"]
    assert circles(three[:2]) == []


def test_a_library_outside_its_owner_is_found() -> None:
    assert strangers([Source("plotting", "import matplotlib.pyplot as plt")]) == []
    assert strangers([Source("widgets.controls", "from ipywidgets import VBox")]) == []
    assert len(strangers([Source("lesson", "import matplotlib\nfrom ipywidgets import VBox")])) == 2
    assert len(strangers([Source("measurement", "import torch"), Source("simt.launch", "import threading")])) == 2
    assert strangers([Source("", "import ipywidgets")]) == ["labkit imports ipywidgets; only ['widgets'] may"]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("raise ValueError('x')", 1),
        ("raise TypeError", 1),
        ("raise NotImplementedError()", 1),
        ("class Odd(RuntimeError): pass", 1),
        ("raise InputError('x', 'y')", 0),
        ("raise errors.InputError('x', 'y')", 0),
        ("try: f()\nexcept OSError as e: raise RecordError('x', 'y') from e", 0),
        ("try: f()\nexcept OSError: raise", 0),
        ("def __getattr__(name): raise AttributeError(name)", 0),
        ("def look(name): raise AttributeError(name)", 1),
        ("class Bad(LabkitError): pass", 0),
        ("class LabkitError(Exception): pass", 0),
    ],
)
def test_errors_of_another_family_are_found(text: str, count: int) -> None:
    assert len(foreign_errors(Source("units", text))) == count


def test_long_modules_and_functions_are_found() -> None:
    body = "".join(f"    x{n} = {n}\n" for n in range(46))
    assert too_long(Source("units", f"def f():\n{body}")) == ["units.f has 46 lines"]
    assert (
        too_long(Source("units", 'def f():\n    """One.\n\n    Two.\n    """\n' + body[: body.index("    x45")])) == []
    )
    assert too_long(Source("units", "x = 1\n" * 441)) == ["units has 441 lines"]
