"""A pytest plugin for nbmake: no stalls, faults that nbmake does not see, and the seconds of each notebook.

nbmake fails a notebook when a cell raises. Four kinds of fault stay unseen by it and are looked for here in the
executed notebook: an exception inside `interact` or `with Output():` (it is stored in the widget state), a traceback
or a warning of ours among the printed text, a cell tagged `raises-exception` that raised nothing, and an exercise
whose check does not say "right" in a notebook under solutions/, or "not attempted" in any other.
"""

from __future__ import annotations

import queue
import re
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.channels import AsyncZMQSocketChannel
from nbformat import NotebookNode
from nbmake import pytest_items
from nbmake.nb_result import NotebookError, NotebookResult
from nbmake.nb_run import NotebookRun

BUDGET_S = 40.0
CELL_BUDGET_S = 20.0
POLL_SLICE_S = 0.25
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
# A font without the glyph, a font that is missing, and matplotlib's RuntimeWarning about figures left open.
OUR_WARNINGS = re.compile(r"^.*(Glyph \d+ .*missing from|findfont:|More than \d+ figures have been opened).*$", re.M)
# A check's result as it is shown: a mark, the exercise, the status, and what there is to say about a wrong answer.
CHECK = re.compile(r"^\S \w+: (not attempted|not yet|right|not testable here)$(\n  .*)*", re.MULTILINE)
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

timings: list[tuple[Path, float, float]] = []


# --- the stall ---------------------------------------------------------------------------------------------------


async def get_msg_in_slices(self: AsyncZMQSocketChannel, timeout: float | None = None) -> dict[str, Any]:
    """Wait for a message as jupyter_client does, in short polls: one long poll can miss its wake-up on a busy core."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left_s = POLL_SLICE_S if deadline is None else deadline - time.monotonic()
        if await self.socket.poll(int(1000 * min(POLL_SLICE_S, max(0.0, left_s)))):
            return await self._recv()
        if deadline is not None and time.monotonic() >= deadline:
            raise queue.Empty


# --- the faults --------------------------------------------------------------------------------------------------


def output_text(output: dict[str, Any]) -> str:
    """Return all text of one output: what was printed, or the text form and the HTML of what was shown."""
    if output["output_type"] == "error":
        return ""
    if output["output_type"] == "stream":
        pieces = [output["text"]]
    else:
        pieces = [output.get("data", {}).get(kind, "") for kind in ("text/plain", "text/html", "text/markdown")]
    return ANSI_COLOUR.sub("", "\n".join("".join(piece) for piece in pieces))


def faults_of_output(output: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong in one output, error outputs left aside."""
    text = output_text(output)
    if "Traceback (most recent call last)" in text:
        yield f"a traceback was printed: {text.strip().splitlines()[-1]}"
    for warning in OUR_WARNINGS.finditer(text):
        yield f"a warning was printed: {warning.group(0).strip()}"


def widget_outputs(notebook: NotebookNode) -> Iterator[dict[str, Any]]:
    """Yield the outputs that Output widgets hold, those of interact among them."""
    state = notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {})
    for model in state.values():
        yield from model.get("state", {}).get("outputs", ())


def find_faults(notebook: NotebookNode) -> list[tuple[int, str]]:
    """Return (index of the cell, what is wrong) for all that nbmake lets pass; index -1 stands for a widget."""
    faults = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        raised = any(output.output_type == "error" for output in cell.outputs)
        allowed = "raises-exception" in cell.metadata.get("tags", ())
        if raised != allowed:
            faults.append((index, "an error passed" if raised else "tagged raises-exception, but nothing was raised"))
        faults += [(index, fault) for output in cell.outputs for fault in faults_of_output(output)]
    for output in widget_outputs(notebook):
        if output["output_type"] == "error":
            faults.append((-1, f"a callback raised {output['ename']}: {output['evalue']}"))
        faults += [(-1, fault) for fault in faults_of_output(output)]
    return list(dict.fromkeys(faults))


def faults_of_exercises(notebook: NotebookNode, expected: str) -> list[tuple[int, str]]:
    """Return (index of the cell, what is wrong) for each exercise whose check does not have the expected status."""
    faults = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and "exercise" in cell.metadata.get("tags", ()):
            check = CHECK.search("\n".join(map(output_text, cell.outputs)))
            if check is None or check[1] != expected:
                shown = check[0] if check else "it shows no check"
                faults.append((index, f"an exercise that must be {expected!r} is not\n{shown}"))
    return faults


def as_error(notebook: NotebookNode, faults: list[tuple[int, str]]) -> NotebookError | None:
    """Return the faults as one nbmake error, or None where there are none."""
    if not faults:
        return None
    lines = []
    for index, fault in faults:
        source = f"\n    {notebook.cells[index].source.splitlines()[0]}" if index >= 0 and fault else ""
        lines.append(f"{f'cell {index}' if index >= 0 else 'in a widget'}: {fault}{source}")
    return NotebookError(summary=lines[0].splitlines()[0], trace="\n".join(lines), failing_cell_index=faults[0][0])


# --- hooks -------------------------------------------------------------------------------------------------------


def cell_seconds(cell: NotebookNode) -> float:
    """Return how long a cell ran, from the times that nbclient notes down; 0 for one that did not run."""
    times = cell.metadata.get("execution", {})
    start, stop = times.get("iopub.execute_input"), times.get("shell.execute_reply")
    if not (start and stop):
        return 0.0
    return (datetime.fromisoformat(stop) - datetime.fromisoformat(start)).total_seconds()


class CheckedRun(NotebookRun):
    """A notebook run by nbmake that also fails on the faults above and keeps the executed notebook in build/."""

    root: Path

    def execute(self) -> NotebookResult:
        """Execute the notebook, time it, look for faults."""
        started = time.perf_counter()
        result = super().execute()
        slowest_s = max(map(cell_seconds, result.nb.cells), default=0.0)
        timings.append((self.filename, time.perf_counter() - started, slowest_s))
        if result.error is None:
            status = "right" if self.filename.parent.name == "solutions" else "not attempted"
            faults = [*find_faults(result.nb), *faults_of_exercises(result.nb, status)]
            result.error = as_error(result.nb, faults)
        self.keep(result.nb)
        return result

    def keep(self, notebook: NotebookNode) -> None:
        """Write the executed notebook to build/executed/, for a person to read."""
        folder = self.root / "build" / "executed" / self.filename.parent.name
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, folder / self.filename.name)


def pytest_configure(config: pytest.Config) -> None:
    """Put the two patches in place."""
    CheckedRun.root = config.rootpath
    AsyncZMQSocketChannel.get_msg = get_msg_in_slices
    pytest_items.NotebookRun = CheckedRun


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each notebook against the budget of the quick profile."""
    if not timings:
        return
    terminalreporter.section("seconds per notebook")
    for path, seconds, slowest_s in timings:
        over = "   over the budget" if seconds > BUDGET_S or slowest_s > CELL_BUDGET_S else ""
        terminalreporter.line(
            f"{path.name:32} {seconds:6.1f} s of {BUDGET_S:.0f} s, slowest cell {slowest_s:5.1f} s of"
            f" {CELL_BUDGET_S:.0f} s{over}"
        )
