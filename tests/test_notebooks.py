"""The notebooks as files: finding the course, filling in solutions, and what is refused on the way."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from lessons import NOTEBOOKS, ROOT
from nbformat import v4

from labkit.errors import InputError, RecordError
from labkit.notebooks import (
    course_folder,
    lesson_paths,
    read_notebook,
    read_solutions,
    solved,
    write_notebook,
    write_solved,
)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course with one lesson of two exercises, and its solutions."""
    course = tmp_path / "notebooks"
    (course / "solutions").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    nbformat.write(lesson(), course / "07_buy_or_rent.ipynb")
    (course / "solutions" / "07_buy_or_rent.py").write_text(SOLUTIONS)
    return course


SOLUTIONS = """\
# %% [markdown]
# A word to the reader.

# %% add_up
def add_up(a, b):
    return a + b


# %% twice
def twice(x):
    return 2 * x
"""


def lesson() -> v4.nbbase.NotebookNode:
    cells = [
        v4.new_markdown_cell("# Buy or rent?", id="title"),
        v4.new_code_cell("def add_up(a, b):\n    return ...", id="exercise-add-up", metadata={"tags": ["exercise"]}),
        v4.new_markdown_cell("Now double it.", id="exercise-twice-md"),
        v4.new_code_cell("def twice(x):\n    return ...", id="exercise-twice"),
        v4.new_code_cell("print('kept')", id="finish"),
    ]
    return v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "x"}})


# --- where the course is -----------------------------------------------------------------------------------------


def test_the_course_is_found_from_any_folder_in_the_checkout(course: Path) -> None:
    for start in (course.parent, course, course / "solutions"):
        assert course_folder(start) == course


def test_the_course_is_found_from_the_working_directory(course: Path, monkeypatch) -> None:
    monkeypatch.chdir(course)
    assert course_folder() == course


def test_outside_a_checkout_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()  # some folder of that name, but no checkout
    with pytest.raises(RecordError, match=f"{tmp_path}: there is no notebooks/ folder here"):
        course_folder(tmp_path)


def test_lessons_come_in_order_and_nothing_else_does(course: Path) -> None:
    for name in ("01_b.ipynb", "00_a.ipynb", "scratch.ipynb", "02_c.py", "1_d.ipynb"):
        (course / name).touch()
    assert [path.name for path in lesson_paths(course)] == ["00_a.ipynb", "01_b.ipynb", "07_buy_or_rent.ipynb"]


# --- notebooks ---------------------------------------------------------------------------------------------------


def test_a_notebook_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    path = write_notebook(lesson(), tmp_path / "new" / "folder" / "07_x.ipynb")
    assert read_notebook(path) == lesson()


@pytest.mark.parametrize(
    "content",
    ["", "no JSON", "{}", "[]", "null", "3", '{"nbformat": 4}', '{"nbformat": 99, "nbformat_minor": 0}', "\x00\x01"]
    + ['{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}']
    + ['{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}'],
)
def test_what_is_no_notebook_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "07_x.ipynb").write_text(content)
    with pytest.raises(RecordError, match=r"07_x.ipynb: this is not a readable notebook \("):
        read_notebook(tmp_path / "07_x.ipynb")


def test_a_missing_notebook_is_said(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="No such file"):
        read_notebook(tmp_path / "07_x.ipynb")


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RecordError, match="the notebook could not be written"):
        write_notebook(lesson(), tmp_path / "file" / "07_x.ipynb")


# --- solutions ---------------------------------------------------------------------------------------------------


def test_solutions_are_read_by_the_name_of_their_exercise(course: Path) -> None:
    assert read_solutions(course / "solutions" / "07_buy_or_rent.py") == {
        "add_up": "def add_up(a, b):\n    return a + b",
        "twice": "def twice(x):\n    return 2 * x",
    }


@pytest.mark.parametrize("cell", ["# %%\nx = 1\n", "# %% twice\nx = 1\n"], ids=["no name", "a name that is there"])
def test_a_cell_without_a_name_of_its_own_is_refused(course: Path, cell: str) -> None:
    path = course / "solutions" / "07_buy_or_rent.py"
    path.write_text(SOLUTIONS + "\n\n" + cell)
    with pytest.raises(RecordError, match="'x = 1': each cell must name its exercise, once"):
        read_solutions(path)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"# %% \xff\xfe\n")])
def test_solutions_that_cannot_be_read_are_refused(course: Path, damage) -> None:
    path = course / "solutions" / "07_buy_or_rent.py"
    damage(path)
    with pytest.raises(RecordError, match=r"07_buy_or_rent.py: these solutions cannot be read"):
        read_solutions(path)


def test_solving_replaces_the_exercises_and_nothing_else() -> None:
    made = solved(lesson(), {"add_up": "A", "twice": "B"}, "07_x.ipynb")
    assert [cell.source for cell in made.cells] == ["# Buy or rent?", "A", "Now double it.", "B", "print('kept')"]
    assert [cell.id for cell in made.cells] == [cell.id for cell in lesson().cells]


@pytest.mark.parametrize(
    ("solutions", "odd"),
    [({"add_up": "A"}, "twice"), ({"add_up": "A", "twice": "B", "thrice": "C"}, "thrice"), ({}, "add_up, twice")],
)
def test_exercises_and_solutions_must_pair_up(solutions: dict[str, str], odd: str) -> None:
    with pytest.raises(RecordError, match=f"07_x.ipynb: {odd}: exercises and solutions must pair up"):
        solved(lesson(), solutions, "07_x.ipynb")


def test_solved_notebooks_are_written_elsewhere(course: Path, tmp_path: Path) -> None:
    (path,) = write_solved(course, tmp_path / "out")
    assert path == tmp_path / "out" / "07_buy_or_rent.ipynb"
    assert read_notebook(path).cells[1].source == "def add_up(a, b):\n    return a + b"
    assert read_notebook(course / path.name) == lesson()


def test_the_lessons_themselves_are_never_replaced(course: Path) -> None:
    with pytest.raises(InputError, match="the folder of the lessons themselves"):
        write_solved(course, course / "solutions" / "..")
    assert read_notebook(course / "07_buy_or_rent.ipynb") == lesson()


def test_every_lesson_of_the_course_can_be_solved(tmp_path: Path) -> None:
    assert [path.name for path in write_solved(NOTEBOOKS, tmp_path)] == [path.name for path in lesson_paths(NOTEBOOKS)]
    assert course_folder(ROOT / "src" / "labkit") == NOTEBOOKS
