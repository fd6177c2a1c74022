"""The set-up cell of the lessons as they are: it installs labkit where it is missing, and nothing anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from colab_environment import Environment
from lessons import NOTEBOOKS, ROOT, lesson_paths

from labkit.colab import build_wheel
from labkit.notebooks import read_notebook

LESSON = lesson_paths()[0]
SET_UP = next(cell.source for cell in read_notebook(LESSON).cells if "setup" in cell.metadata.get("tags", ()))
NOWHERE = "/nowhere/labkit"
# pip is to build with the hatchling that is here, instead of fetching one; "0" is how its option is switched on.
QUICK = {"PIP_NO_BUILD_ISOLATION": "0", "LABKIT_PROFILE": "quick"}


def set_up(environment: Environment, cwd: Path, **variables: str):
    return environment.run("-c", SET_UP, cwd=cwd, LABKIT_RESULTS=str(environment.folder / "results"), **variables)


def installs_labkit(environment: Environment, cwd: Path, **variables: str) -> bool:
    """Run the cell, require the lesson to start and all other packages to stay, and say whether labkit came."""
    before = environment.packages()
    done = set_up(environment, cwd, **QUICK, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Lesson {LESSON.name[:2]} on ")
    after = environment.packages()
    came = after.pop("labkit", (None, None))[1] == environment.site_packages
    assert after == before
    return came


def test_where_labkit_is_importable_nothing_is_installed(bare: Environment, tmp_path: Path) -> None:
    assert not installs_labkit(bare, tmp_path, PYTHONPATH=str(ROOT / "src"), LABKIT_SOURCE=NOWHERE)


def test_the_checkout_beside_is_installed_before_any_other_source(bare: Environment) -> None:
    assert installs_labkit(bare, NOTEBOOKS, LABKIT_SOURCE=NOWHERE)


def test_without_a_checkout_labkit_source_is_installed(bare: Environment, tmp_path: Path) -> None:
    name, wheel = build_wheel(ROOT)
    (tmp_path / name).write_bytes(wheel)
    assert installs_labkit(bare, tmp_path, LABKIT_SOURCE=str(tmp_path / name))


@pytest.mark.parametrize("variables", [{}, {"LABKIT_SOURCE": ""}], ids=["unset", "empty"])
def test_without_any_source_two_lines_say_what_to_do(bare: Environment, tmp_path: Path, variables) -> None:
    done = set_up(bare, tmp_path, **variables)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "labkit is missing. Keep this notebook in its folder, or set",
        "LABKIT_SOURCE to that folder or its address; then run this cell again.",
    ]
    assert "labkit" not in bare.packages()
