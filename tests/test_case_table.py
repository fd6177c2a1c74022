"""The table of cases in tests/README.md: every test that it names is there and names the case."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest
from lessons import ROOT

ROW = re.compile(r"^\| (C\d\d-\d\d) \| (.+?) \| (.+) \|$", re.MULTILINE)
CASES_OF = {
    "01": 6,  # checkpoints
    "02": 5,  # wrong timings
    "03": 3,  # missing GPUs
    "04": 2,  # memory
    "05": 4,  # loading
    "06": 2,  # threads
    "07": 5,  # kernels
    "08": 3,  # widgets
    "09": 4,  # execution
    "10": 2,  # figures
    "11": 2,  # environments
    "12": 5,  # precision, randomness, power
}
ROWS = ROW.findall((ROOT / "tests" / "README.md").read_text(encoding="utf-8"))
NAMED = [(case, node) for case, _, cell in ROWS for node in re.findall(r"`(tests/[^`]+)`", cell)]


def marks_of(node: str) -> str:
    """Return the comment lines above a test, its decorators and its first line. Fails if there is no such test."""
    path, *names = node.split("::")
    text = (ROOT / path).read_text(encoding="utf-8")
    found: ast.AST = ast.parse(text)
    for name in names:
        found = next((child for child in found.body if getattr(child, "name", None) == name), None)
        assert found is not None, f"{path} has no {'::'.join(names)}"
    lines = text.splitlines()
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)]) - 1
    while first > 0 and lines[first - 1].strip().startswith("#"):
        first -= 1
    return "\n".join(lines[first : found.body[0].lineno - 1])


def test_cases_stand_in_order_and_every_topic_has_some() -> None:
    cases = [case for case, _, _ in ROWS]
    assert cases == sorted(set(cases))
    assert Counter(case[1:3] for case in cases) == CASES_OF


def test_every_case_has_a_test() -> None:
    assert {case for case, _ in NAMED} == {case for case, _, _ in ROWS}


@pytest.mark.parametrize(("case", "node"), NAMED, ids=[f"{case}-{Path(node).name}" for case, node in NAMED])
def test_a_named_test_exists_and_names_its_case(case: str, node: str) -> None:
    assert node.split("::")[-1].startswith("test_")
    assert case in marks_of(node)


def test_a_case_named_above_a_test_stands_in_the_table() -> None:
    marked = {
        case
        for path in (ROOT / "tests").rglob("test_*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        for case in re.findall(r"(?:^\s*#|  #) .*?(C\d\d-\d\d)", line)
        if case[1:3] in CASES_OF
    }
    assert marked <= {case for case, _, _ in ROWS}
