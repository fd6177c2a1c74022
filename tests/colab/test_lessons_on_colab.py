"""Each notebook for Colab on its own, where labkit is missing: it installs labkit, changes nothing else, and runs."""

from __future__ import annotations

import filecmp
from pathlib import Path

import nbformat
import pytest
from colab_environment import IPYWIDGETS, Environment
from lessons import NOTEBOOKS, ROOT, lesson_paths

from labkit.colab import write_colab

# As in the Makefile's NBMAKE.
NBMAKE = ["-m", "pytest", "--override-ini=addopts=--import-mode=importlib -ra", "--nbmake", "--nbmake-timeout=120"]
FOLDER = ROOT / "build" / "colab-test"

pytestmark = pytest.mark.notebook


@pytest.fixture(scope="module")
def notebooks() -> Path:
    write_colab(NOTEBOOKS, FOLDER)
    return FOLDER


# C08-01
@pytest.mark.parametrize("lesson", lesson_paths(), ids=lambda path: path.stem)
def test_lesson_brings_labkit_along_and_runs(bare: Environment, notebooks: Path, lesson: Path) -> None:
    before = bare.packages()
    assert "labkit" not in before
    assert before["ipywidgets"][0] == IPYWIDGETS

    done = bare.run(*NBMAKE, notebooks / lesson.name, cwd=ROOT, LABKIT_PROFILE="quick")
    assert done.returncode == 0, done.stdout + done.stderr

    after = bare.packages()
    assert after.pop("labkit")[1] == bare.site_packages
    assert after == before
    assert files_that_differ(bare.site_packages / "labkit") == []

    executed = nbformat.read(ROOT / "build" / "executed" / FOLDER.name / lesson.name, as_version=4)
    setup = next(cell for cell in executed.cells if "setup" in cell.metadata.get("tags", ()))
    assert [output.output_type for output in setup.outputs] == ["stream"], setup.outputs
    assert setup.outputs[0].text.startswith(f"Lesson {lesson.name[:2]} on ")
    assert setup.outputs[0].text.count("\n") == 1


def files_that_differ(installed: Path) -> list[str]:
    """Return the files of labkit, data included, that are missing in a folder or differ from this checkout's."""
    source = ROOT / "src" / "labkit"
    names = [str(path.relative_to(source)) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    same, *_ = filecmp.cmpfiles(source, installed, names, shallow=False)
    return sorted(set(names) - set(same))
