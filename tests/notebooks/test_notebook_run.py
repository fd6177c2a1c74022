"""The nbmake plugin: which notebooks it must fail and which it must let pass, run as `make notebooks` runs them."""

from __future__ import annotations

import asyncio
import os
import queue
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import nbformat
import notebook_run
import pytest
from lessons import ROOT
from nbformat import v4

from labkit.checks import NOT_ATTEMPTED, RIGHT, STATUSES, CheckResult

INTERACT = "from ipywidgets import interact\n@interact(n=(1, 9))\ndef draw(n=3):\n    "
OPEN_FIGURES = "import matplotlib.pyplot as plt\nfor _ in range(25):\n    plt.figure(figsize=(1, 1))"
PASSES = {
    "plain": ["print('Traceback is only a word here')"],
    "interact": [INTERACT + "print(n)"],
    "warns_of_something_else": ["import warnings\nwarnings.warn('a word to the student')"],
    "raises_on_purpose": ["#raises-exception\n1 / 0", "print('and goes on')"],
    "error_shown_as_text": ["print('InputError: n=-1: a size is positive.')"],
    "shell_line_that_fails": ["!exit 3"],
    "inline_figures": ["import matplotlib.pyplot as plt", "plt.plot([1, 2]);\nprint(plt.get_backend())"],
}
# The notebook, and what the report must say about it.
FAILS = {
    "cell_raises": (["1 / 0"], "ZeroDivisionError: division by zero"),
    "callback_raises": ([INTERACT + "raise ValueError('boom')"], "in a widget: a callback raised ValueError: boom"),
    "output_swallows": (
        ["from ipywidgets import Output\nout = Output()\nwith out:\n    raise KeyError('gone')\nout"],
        "in a widget: a callback raised KeyError: 'gone'",
    ),
    "prints_traceback": (
        ["import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()"],
        "cell 0: a traceback was printed: ZeroDivisionError: division by zero",
    ),
    "callback_warns": (
        [OPEN_FIGURES.split("\n")[0], INTERACT + "[plt.figure(figsize=(1, 1)) for _ in range(25)]"],
        "More than 20 figures have been opened",
    ),
    "leaves_figures_open": ([OPEN_FIGURES], "More than 20 figures have been opened"),
    "misses_a_glyph": (["import matplotlib.pyplot as plt\nplt.title('\\u4e2d');"], "Glyph 20013"),
    "misses_a_font": (
        ["import matplotlib.pyplot as plt\nplt.rcParams['font.family'] = 'SimHei'\nplt.title('a');"],
        "findfont:",
    ),
    "does_not_raise": (["#raises-exception\n1 + 1"], "tagged raises-exception, but nothing was raised"),
    "takes_too_long": (["import time\ntime.sleep(60)"], "timed out"),
    "other_kernel": (["1"], "No such kernel: 'gpu-course'"),
}


# Exercises in a notebook that is handed out and in one with solutions, each with what its check shows.
EXERCISE = "#exercise\nprint('{}')"
SKELETON, SOLUTION = EXERCISE.format("○ add_up: not attempted"), EXERCISE.format("✓ add_up: right")
EXERCISES = {
    "handed_out": ([SKELETON, "print('done')"], ""),
    "handed_out_solved": ([SKELETON, SOLUTION], "cell 1: an exercise that must be 'not attempted' is not"),
    "solutions/fits": ([SOLUTION, SOLUTION], ""),
    "solutions/left_out": ([SOLUTION, SKELETON], "cell 1: an exercise that must be 'right' is not"),
}


def write_notebook(path: Path, sources: list[str]) -> None:
    """Write a notebook; a first line `#tag` tags its cell."""
    kernel = {"name": "gpu-course" if path.stem == "other_kernel" else "python3", "display_name": "x"}
    cells = [v4.new_code_cell(source) for source in sources]
    for cell in cells:
        if cell.source.startswith("#"):
            cell.metadata["tags"] = [cell.source.splitlines()[0].removeprefix("#")]
    nbformat.write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], str, Path]:
    """Every notebook above, run once: the failure message of each ("" if it passed), what was printed, the folder."""
    folder = tmp_path_factory.mktemp("nbmake")
    for name, sources in PASSES.items():
        write_notebook(folder / f"{name}.ipynb", sources)
    (folder / "solutions").mkdir()
    for name, (sources, _) in (FAILS | EXERCISES).items():
        write_notebook(folder / f"{name}.ipynb", sources)
    command = [sys.executable, "-m", "pytest", "-p", "notebook_run", "--nbmake", "--nbmake-timeout=10"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests" / "support")}
    done = subprocess.run(
        [*command, "--junitxml=report.xml", "."], cwd=folder, env=environment, capture_output=True, text=True
    )
    results = {}
    for case in ElementTree.parse(folder / "report.xml").iter("testcase"):
        failure = case.find("failure")
        text = "" if failure is None else f"{failure.get('message')}\n{failure.text}"
        name = case.get("classname").removesuffix(".ipynb").replace(".", "/")
        results[name] = re.sub(r"#x1B\[\d+m", "", text)  # colours, as JUnit's XML writes them
    return results, done.stdout, folder


def test_every_notebook_was_found_by_walking_the_folder(run) -> None:
    assert run[0].keys() == PASSES.keys() | FAILS.keys() | EXERCISES.keys()


@pytest.mark.parametrize("name", PASSES)
def test_sound_notebook_passes(run, name: str) -> None:
    assert run[0][name] == ""


# C09-01, C09-02, C10-01, C10-03
@pytest.mark.parametrize("name", FAILS)
def test_fault_fails_the_notebook_and_is_named(run, name: str) -> None:
    assert FAILS[name][1] in run[0][name]


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_must_have_the_status_that_belongs_to_its_folder(run, name: str) -> None:
    expected = EXERCISES[name][1]
    assert expected in run[0][name] if expected else run[0][name] == ""


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("expected", [RIGHT, NOT_ATTEMPTED])
def test_the_status_is_read_from_what_a_check_shows(status: str, expected: str) -> None:
    check = CheckResult("add_up", status, given="a=1, b=2", expected="3", got="-1", hint="Add.")
    data = {"text/plain": repr(check), "text/html": check._repr_html_()}
    cell = v4.new_code_cell(metadata={"tags": ["exercise"]}, outputs=[v4.new_output("execute_result", data)])
    faults = notebook_run.faults_of_exercises(v4.new_notebook(cells=[v4.new_markdown_cell(), cell]), expected)
    if status == expected:
        assert faults == []
    else:
        assert faults == [(1, f"an exercise that must be '{expected}' is not\n{check!r}")]


def test_an_exercise_without_a_check_is_found() -> None:
    said = v4.new_output("stream", name="stdout", text="all right: right\nadd_up: right\n")
    cell = v4.new_code_cell(metadata={"tags": ["exercise"]}, outputs=[said])
    ((index, fault),) = notebook_run.faults_of_exercises(v4.new_notebook(cells=[cell]), RIGHT)
    assert (index, fault.splitlines()[-1]) == (0, "it shows no check")


# C09-01
def test_seconds_are_reported_against_the_budget(run) -> None:
    lines = {line.split()[0]: line for line in run[1].splitlines() if " s of 40 s" in line}
    assert lines.keys() == {f"{Path(name).name}.ipynb" for name in run[0]}
    assert float(lines["takes_too_long.ipynb"].split()[1]) > 10


def test_executed_notebooks_are_kept_for_reading(run) -> None:
    kept = nbformat.read(run[2] / "build" / "executed" / run[2].name / "inline_figures.ipynb", as_version=4)
    figure, text = sorted(kept.cells[1].outputs, key=lambda output: output.output_type)
    assert "image/png" in figure.data
    assert "inline" in text.text


# --- the stall ---------------------------------------------------------------------------------------------------


class LateSocket:
    """A socket whose message arrives late, and whose long polls would miss it; its clock moves by what is waited."""

    def __init__(self, arrives_s: float) -> None:
        self.now_s = 0.0
        self.arrives_s = arrives_s
        self.polled_ms: list[int] = []

    async def poll(self, timeout_ms: int) -> int:
        self.polled_ms.append(timeout_ms)
        self.now_s += timeout_ms / 1000
        return int(self.now_s >= self.arrives_s)


class Channel:
    """A channel around such a socket."""

    def __init__(self, arrives_s: float) -> None:
        self.socket = LateSocket(arrives_s)

    async def _recv(self) -> dict[str, str]:
        return {"msg_type": "status"}


@pytest.fixture
def channel_with_clock(monkeypatch: pytest.MonkeyPatch):
    """A function that makes a channel and puts its clock in place of the real one."""

    def make(arrives_s: float) -> Channel:
        channel = Channel(arrives_s)
        monkeypatch.setattr(notebook_run.time, "monotonic", lambda: channel.socket.now_s)
        return channel

    return make


# C09-07
@pytest.mark.parametrize("timeout_s", [None, 30.0])
def test_a_late_message_is_taken_within_a_slice(channel_with_clock, timeout_s: float | None) -> None:
    channel = channel_with_clock(arrives_s=2.1)
    message = asyncio.run(notebook_run.get_msg_in_slices(channel, timeout_s))
    assert message == {"msg_type": "status"}
    assert channel.socket.polled_ms == [250] * 9
    assert channel.socket.now_s == 2.25


def test_the_deadline_is_kept(channel_with_clock) -> None:
    channel = channel_with_clock(arrives_s=99.0)
    with pytest.raises(queue.Empty):
        asyncio.run(notebook_run.get_msg_in_slices(channel, 0.6))
    assert channel.socket.now_s == pytest.approx(0.6, abs=0.01)


def test_no_time_at_all_is_one_look(channel_with_clock) -> None:
    channel = channel_with_clock(arrives_s=1.0)
    with pytest.raises(queue.Empty):
        asyncio.run(notebook_run.get_msg_in_slices(channel, 0))
    assert channel.socket.polled_ms == [0]
