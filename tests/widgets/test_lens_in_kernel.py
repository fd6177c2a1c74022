"""The lens in a real kernel: what lands in the notebook that is saved."""

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.notebook

SET_UP = "import numpy\nfrom labkit.simt import cuda, trace\nfrom labkit.widgets import lens"
LENS = """def twice(x):
    i = cuda.grid(1)
    x[i] = 2 * x[i]
shown = lens(trace(twice, 2, 32, numpy.ones(64)))
shown"""
REST = 'shown.browser.set_state({"place": {"warp": 1, "line": 3, "occurrence": 0}})'


@pytest.fixture(scope="module")
def notebook():
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (SET_UP, LENS, REST)])
    return NotebookClient(made, timeout=60, kernel_name="python3").execute()


def test_the_cell_keeps_the_view_and_one_figure_of_where_the_lens_rests(notebook):
    data = [output.data for output in notebook.cells[1].outputs]
    assert sum("application/vnd.jupyter.widget-view+json" in each for each in data) == 1
    (copy,) = [each["text/html"] for each in data if "text/html" in each]
    assert copy.count("<details") == copy.count("<img") == 1
    assert "line 3, warp 1, execution 1 of 1. Load from x (global memory) by 32 lanes, 256 bytes: 8 sectors" in copy


def test_following_the_browser_prints_nothing(notebook):
    assert notebook.cells[2].outputs == []
