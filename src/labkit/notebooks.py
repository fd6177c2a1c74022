"""The notebooks as files: where they are, and the solved ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labkit.errors import InputError, RecordError

EXERCISE = "exercise-"  # the id of an exercise's cell is this and the exercise's name, with dashes


def course_folder(start: Path | None = None) -> Path:
    """Return the folder notebooks/ of the checkout that start (or the working directory) lies in.

    Raises RecordError where there is none.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "notebooks").is_dir() and (folder / "pyproject.toml").is_file():
            return folder / "notebooks"
    raise RecordError(str(start), "there is no notebooks/ folder here", "Run this inside a checkout of the course.")


def lesson_paths(course: Path) -> list[Path]:
    """Return the notebooks of the lessons, in order."""
    return sorted(course.glob("[0-9][0-9]_*.ipynb"))


def read_notebook(path: Path) -> Any:
    """Return the notebook at path. Raises RecordError if it is missing, damaged or no valid notebook."""
    import nbformat

    try:
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)  # read only logs what is wrong
    except (OSError, ValueError, AttributeError, KeyError, TypeError, nbformat.ValidationError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise RecordError(path.name, f"this is not a readable notebook ({reason})") from problem
    return notebook


def write_notebook(notebook: Any, path: Path) -> Path:
    """Write the notebook to path, making its folder. Raises RecordError if it cannot be written there."""
    import nbformat

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
    except OSError as problem:
        advice = "Choose a folder that you may write to."
        raise RecordError(str(path), f"the notebook could not be written ({problem.strerror})", advice) from problem
    return path


def refuse_sources(course: Path, folder: Path) -> None:
    """Raise InputError if folder is the course's own: made notebooks would replace the ones they are made from."""
    if folder.resolve() == course.resolve():
        problem = "this is the folder of the lessons themselves"
        raise InputError(str(folder), problem, "Choose another one, such as build/.")


def read_solutions(path: Path) -> dict[str, str]:
    """Return the source of each exercise in a percent-format file, whose cells are titled with the exercise's name.

    Raises RecordError if the file cannot be read, a cell has no title or a title stands twice.
    """
    try:
        import jupytext
    except ModuleNotFoundError as problem:
        advice = 'Install what the tests need: pip install "labkit[test]".'
        raise InputError("solutions", "reading them needs the package jupytext", advice) from problem
    try:
        cells = jupytext.read(path, fmt="py:percent").cells
    except (OSError, ValueError) as problem:
        raise RecordError(path.name, f"these solutions cannot be read ({problem})") from problem
    solutions: dict[str, str] = {}
    for cell in cells:
        if cell.cell_type != "code":
            continue
        name = cell.metadata.get("title") or cell.metadata.get("name")
        if not name or name in solutions:
            given = f"{path.name}: {cell.source[:40]!r}"
            raise RecordError(
                given, "each cell must name its exercise, once", "Begin it with # %% name_of_the_exercise."
            )
        solutions[name] = cell.source.strip("\n")
    return solutions


def solved(notebook: Any, solutions: dict[str, str], name: str) -> Any:
    """Return the notebook with the code cell of every exercise replaced by its solution.

    Raises RecordError if an exercise has no solution or a solution no exercise.
    """
    exercises = {
        cell.id.removeprefix(EXERCISE).replace("-", "_"): cell
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.id.startswith(EXERCISE)  # a text about it may be named after it, too
    }
    unmatched = exercises.keys() ^ solutions.keys()
    if unmatched:
        given = f"{name}: {', '.join(sorted(unmatched))}"
        raise RecordError(given, "exercises and solutions must pair up")
    for exercise, cell in exercises.items():
        cell.source = solutions[exercise]
    return notebook


def write_solved(course: Path, folder: Path) -> list[Path]:
    """Write every lesson with its solutions filled in to folder, and return the paths.

    Raises InputError for the course's own folder, RecordError for solutions that cannot be read or do not fit.
    """
    refuse_sources(course, folder)
    written = []
    for path in lesson_paths(course):
        solutions = read_solutions(course / "solutions" / f"{path.stem}.py")
        written.append(write_notebook(solved(read_notebook(path), solutions, path.name), folder / path.name))
    return written
