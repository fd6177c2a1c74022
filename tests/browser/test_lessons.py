"""Every lesson in real JupyterLab: Run All shows no error, and a figure follows its control."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lessons import NOTEBOOKS, ROOT, lesson_paths

SCREENSHOTS = ROOT / "build" / "screenshots"


@pytest.fixture(scope="module")
def lessons_address(browser, serve, tmp_path_factory) -> str:
    """JupyterLab on a copy of the lessons, so that nothing in the checkout changes."""
    copy = tmp_path_factory.mktemp("lessons") / "notebooks"
    shutil.copytree(NOTEBOOKS, copy, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    return serve(copy)


@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_lesson_runs_and_its_figure_follows_a_control(path: Path, lessons_address, open_lab) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    fails_on_purpose = {
        index for index, cell in enumerate(cells) if "raises-exception" in cell["metadata"].get("tags", [])
    }
    lab = open_lab(lessons_address, path.relative_to(NOTEBOOKS).as_posix())
    lab.run_all()
    lab.screenshot(path.stem[:2], SCREENSHOTS)
    assert (lab.red_outputs(fails_on_purpose), lab.cells_not_run()) == ([], 0)
    if lab.unfold():
        lab.screenshot(f"{path.stem[:2]}_unfolded", SCREENSHOTS)
    candidates = lab.cells_with_control()
    assert candidates, "no cell shows a slider or list together with a figure"
    assert any(lab.move_and_see(index) for index in candidates), "no figure changed when its control was moved"
    assert lab.red_outputs(fails_on_purpose) == []
