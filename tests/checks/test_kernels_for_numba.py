"""Numba's CUDA compiler accepts every kernel of lesson 04 and every right answer: here they type, without a GPU."""

from __future__ import annotations

import ast
import dataclasses
import warnings
from typing import Any

import numba
import numba.cuda
import numpy as np
import pytest
from lessons import NOTEBOOKS
from notebook_style import Notebook, source_of
from numba_frontend import for_numba, infer

from labkit.checks.lesson_04_puzzles import PUZZLES
from labkit.notebooks import read_solutions
from labkit.simt import cuda

from .answers import maps, tiles, together
from .answers.register import ANSWERS

LESSON = "04_shared_memory"
BY_NAME = {puzzle.name: puzzle for puzzle in PUZZLES}
RIGHT_ONES = [answer for answer in ANSWERS if not answer.kind]
VECTOR, MATRIX = numba.float32[::1], numba.float32[:, ::1]
ARGUMENTS = {
    "add": (VECTOR,) * 3,
    "add_staged": (VECTOR,) * 3,
    "strided": (VECTOR, VECTOR, numba.int64, numba.int64),
    "chunks": (VECTOR,) * 2,
    "naive": (MATRIX,) * 3,
    "make_tiled": (MATRIX,) * 3,
    "turn": (MATRIX,) * 2,
    "make_turn_tiled": (MATRIX,) * 2,
    **dict.fromkeys(("modulo", "scattered", "sequential", "first_add", "shuffle"), (VECTOR,) * 2),
}
FACTORIES = {"make_tiled": (16,), "make_turn_tiled": (33, 33)}


def defined(sources: list[str]) -> dict[str, Any]:
    """Execute the function definitions of these sources, and nothing else in them."""
    names: dict[str, Any] = {"cuda": cuda, "np": np}
    for source in sources:
        kept = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        exec(compile(ast.Module(kept, []), "<cell>", "exec"), names)
    return names


def puzzle_types(name: str) -> tuple[Any, ...]:
    return tuple(numba.typeof(value) for value in BY_NAME[name].launches[0].arguments.values())


@pytest.fixture(scope="module")
def lesson() -> dict[str, Any]:
    cells = Notebook.read(NOTEBOOKS / f"{LESSON}.ipynb").cells("code")
    return defined([source_of(cell) for cell in cells])


# C07-01
@pytest.mark.parametrize("name", ARGUMENTS)
def test_kernel_of_the_lesson_types(lesson, name: str) -> None:
    kernel = lesson[name](*FACTORIES[name]) if name in FACTORIES else lesson[name]
    assert infer(for_numba(kernel), ARGUMENTS[name]).return_type == numba.types.none


def test_no_kernel_of_the_lesson_is_left_out(lesson) -> None:
    kernels = {
        name for name, value in lesson.items() if isinstance(value, type(cuda.jit(maps.map_with_guard)))
    } | FACTORIES.keys()
    assert kernels - BY_NAME.keys() - {"add_unguarded"} == ARGUMENTS.keys()


@pytest.mark.parametrize("name", BY_NAME)
def test_solution_types(name: str) -> None:
    solution = defined([read_solutions(NOTEBOOKS / "solutions" / f"{LESSON}.py")[name]])[name]
    assert infer(for_numba(solution), puzzle_types(name)).return_type == numba.types.none


@pytest.mark.parametrize("answer", RIGHT_ONES, ids=lambda answer: answer.kernel.__name__)
def test_right_answer_types(answer) -> None:
    assert infer(for_numba(answer.kernel), puzzle_types(answer.puzzle)).return_type == numba.types.none


def test_the_answers_are_those_of_the_register() -> None:
    assert {answer.kernel.__module__ for answer in ANSWERS} == {m.__name__ for m in (maps, tiles, together)}


def test_what_numba_cannot_type_is_seen() -> None:
    def sized_by_argument(x, out):
        s = cuda.shared.array(x.size, np.float32)
        out[0] = s[0]

    with pytest.raises(numba.core.errors.TypingError):
        infer(for_numba(sized_by_argument), (VECTOR, VECTOR))


def with_advice(configuration: Any) -> Any:
    """Configure a launch with Numba, which says here what it thinks of small grids (once per kernel)."""
    return numba.cuda.jit(maps.map_with_guard)[configuration]


# C07-08
def test_the_lesson_and_its_checks_silence_numbas_advice_on_small_grids() -> None:
    imports = next(c for c in Notebook.read(NOTEBOOKS / f"{LESSON}.ipynb").cells("code") if c["id"] == "imports")
    (line,) = (line for line in source_of(imports).splitlines() if "filterwarnings" in line)
    launched = []

    class Gpu:
        def is_available(self) -> bool:
            return True

        def to_device(self, array: np.ndarray) -> Any:
            return cuda.to_device(array)

        def jit(self, function: Any) -> Any:
            return Configured(function)

    class Configured:
        def __init__(self, function: Any) -> None:
            self.function = function

        def __getitem__(self, configuration: Any) -> Any:
            launched.append(with_advice(configuration))
            return cuda.jit(self.function)[configuration]

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert dataclasses.replace(BY_NAME["guarded_map"], on=Gpu()).check(maps.map_with_guard).right
        assert launched and not said
        exec(line, {"warnings": warnings})
        with_advice((1, 32))
        assert not said
        warnings.simplefilter("always")
        with_advice((1, 32))
        assert "under-utilization" in str(said[0].message)
