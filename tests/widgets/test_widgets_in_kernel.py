"""The controls in a real kernel: what lands in the notebook that is saved, and on which thread work is done."""

import json

import ipywidgets
import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.notebook

SET_UP = """
import base64, io, threading, time
import ipywidgets
from matplotlib import pyplot
from labkit.widgets import ask_choice, explore, live

drawn_on = []

def draw(n):
    print("drawing", n)
    drawn_on.append(threading.current_thread() is threading.main_thread())
    figure, ax = pyplot.subplots(figsize=(1, 1))
    ax.plot([0, n])
    if n == 35:
        raise ValueError("thirty-five")
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    return f'<img src="data:image/svg+xml;base64,{base64.b64encode(file.getvalue()).decode()}"><p>n is {n}</p>'

def move(position):
    explorer.fields["n"].widget.set_state({"index": position})
"""
CELLS = {
    "set-up": SET_UP,
    "explore": "explorer = explore(draw, n=(0, 40))\nexplorer",
    "moves": "for position in range(1, 31):\n    move(position)",
    "error": "explorer.set(n=35)",
    "shown": "print(explorer.html)",
    "thread": "threading.Thread(target=move, args=(12,)).start()",
    "wait": "time.sleep(0.5)",
    "result": "print(all(drawn_on), pyplot.get_fignums(), explorer.html.endswith('<p>n is 12</p>'))",
    "last": "move(14)",  # nbclient drops what another thread sends, the picture of 12 among it
    "question": "kept = []\nquestion = ask_choice('Which?', ['CPU', 'GPU'], kept.append)\nquestion",
    "commit": "question.pick('GPU').commit()",
    "live": "curve = live()\nfor count in range(5):\n    curve.update(f'{count} of 4')",
    "version": "print(ipywidgets.__version__)",
}


@pytest.fixture(scope="module")
def notebook():
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    cells[list(CELLS).index("error")].metadata["tags"] = ["raises-exception"]
    made = nbformat.v4.new_notebook(cells=cells)
    return NotebookClient(made, timeout=60, kernel_name="python3").execute()


@pytest.fixture
def outputs(notebook):
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}


@pytest.fixture
def state(notebook):
    return notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]


def html_outputs(outputs):
    return [output.data["text/html"] for output in outputs if "text/html" in output.get("data", {})]


def test_the_kernel_runs_the_ipywidgets_under_test(outputs):
    assert outputs["version"][0].text.strip() == ipywidgets.__version__


# C08-03
def test_after_thirty_moves_there_is_one_image_among_the_widgets(state):
    values = [model["state"].get("value") for model in state.values()]
    assert sum(value.count("<img") for value in values if isinstance(value, str)) == 1


# C08-03
def test_no_cell_shows_a_figure_of_its_own(outputs):
    assert "image/png" not in json.dumps(outputs)


def test_the_explorer_leaves_its_controls_and_one_folded_copy_of_the_last_figure(outputs):
    views = [
        output for output in outputs["explore"] if "application/vnd.jupyter.widget-view+json" in output.get("data", {})
    ]
    assert len(views) == 1
    (copy,) = html_outputs(outputs["explore"])
    assert copy.count("<details") == copy.count("<img") == 1
    assert "<p>n is 14</p>" in copy


def test_moving_prints_nothing_into_the_cells(outputs):
    assert outputs["moves"] == []
    assert outputs["thread"] == []


def test_what_draw_prints_stands_below_the_figure_and_is_replaced(state):
    (log,) = [model["state"]["outputs"] for model in state.values() if model["model_name"] == "OutputModel"]
    assert [output["text"] for output in log] == ["drawing 14\n"]


def test_an_error_fails_the_cell_and_is_shown(outputs):
    assert [output.ename for output in outputs["error"] if output.output_type == "error"] == ["ValueError"]
    assert "ValueError: thirty-five" in outputs["shown"][0].text


def test_a_move_on_another_thread_is_drawn_on_the_main_one(outputs):
    assert outputs["result"][0].text.strip() == "True [] True"


def test_a_commitment_reaches_the_copy_that_is_saved(outputs):
    (copy,) = html_outputs(outputs["question"])
    assert "Which?" in copy
    assert "<b>GPU</b> · committed 20" in copy


def test_a_live_figure_is_one_output(outputs):
    assert html_outputs(outputs["live"]) == ["4 of 4"]
    assert len(outputs["live"]) == 1
