"""The lessons as they run on a machine with a GPU, but with one CPU and little memory.

No GPU is needed to find a cell that only works without one: the lesson is told that its GPU is the CPU, so that every
branch for a GPU that was found is taken, and all numbers are measured. What a real GPU would say is not tested here.
A single CPU leaves nothing to scale over, and where 100 MB are free the largest point of a sweep is out of memory.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from lessons import lesson_paths
from nbclient import NotebookClient

from labkit.files import read_json

UNUSUAL = """
from labkit import devices

lesson.gpu = lesson.cpu
devices.usable_cpus = lambda: 1
devices.free_memory_bytes = lambda device="cpu": 100_000_000
"""


@pytest.mark.notebook
@pytest.mark.parametrize("path", lesson_paths(), ids=lambda path: path.stem)
def test_every_gpu_number_is_measured_where_there_is_a_gpu(path: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_RESULTS", str(tmp_path))
    notebook = nbformat.read(path, as_version=4)
    setup = next(index for index, cell in enumerate(notebook.cells) if cell.id == "setup")
    notebook.cells.insert(setup + 1, nbformat.v4.new_code_cell(UNUSUAL))
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    (record,) = (read_json(found) for found in tmp_path.glob("lesson-*.json"))
    kept = [entry for entry in record["measurements"].values() if "points" in entry]
    assert kept or path.name.startswith("00")
    for sweep in kept:
        measured = [point["measurement"]["source"] for point in sweep["points"] if point["measurement"]]
        assert set(measured) == {"measured"}, sweep["label"]
