"""Running the cells of a lesson again keeps no more in memory: what a cell shows stays in Out, and so must be small."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from lessons import lesson_paths

pytestmark = pytest.mark.notebook

# Runs the cells given as arguments twice in one IPython, and prints how many tensors are alive after each.
PROGRAM = """
import gc, sys
import torch
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for run in range(2):
    for source in sys.argv[1:]:
        done = shell.run_cell(source, store_history=True)
        assert done.success, source
    gc.collect()
    print("alive:", sum(issubclass(type(it), (torch.Tensor, torch.nn.Module)) for it in gc.get_objects()))
"""


def alive_after_each_run(cells: list[str], folder: Path, results: Path) -> list[int]:
    environment = os.environ | {"LABKIT_PROFILE": "quick", "LABKIT_RESULTS": str(results), "MPLBACKEND": "agg"}
    command = [sys.executable, "-c", PROGRAM, *cells]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("alive: ")]


def up_to_the_first_verdict(path: Path) -> list[str]:
    """Return the code of a lesson up to its first verdict: set-up, experiments, figures, controls; no failures."""
    code = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    cells = [cell.source for cell in code if "raises-exception" not in cell.metadata.get("tags", [])]
    return cells[: next(number for number, source in enumerate(cells, 1) if "lesson.verdict(" in source)]


# C04-03
# C06-04
@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_a_lesson_run_again_keeps_no_more_tensors(path: Path, tmp_path: Path) -> None:
    first, second = alive_after_each_run(up_to_the_first_verdict(path), path.parent, tmp_path)
    assert first == second


def test_a_tensor_that_a_cell_shows_is_seen_to_stay(tmp_path: Path) -> None:
    first, second = alive_after_each_run(["import torch\nx = torch.ones(3)", "x"], tmp_path, tmp_path)
    assert second > first
