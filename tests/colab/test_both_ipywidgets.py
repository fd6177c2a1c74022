"""The controls with Colab's ipywidgets and with the current one: the same tests pass, the same notebook comes out."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from colab_environment import IPYWIDGETS, Environment
from jupyter_client.manager import AsyncKernelManager
from lessons import ROOT
from nbclient import NotebookClient
from nbformat import v4

# What lessons do with controls, without anything that a clock decides.
CELLS = [
    "import ipywidgets\nimport labkit as lab\nfrom labkit.widgets import ask_choice, ask_number, live",
    "def draw(children, start_s, carry, kind, both):\n"
    "    worker = lab.Team('worker', workers=1, carry=carry, trip_s=60, start_s=1)\n"
    "    crowd = lab.Team(kind, workers=children, carry=0.5, trip_s=60, start_s=start_s)\n"
    "    return lab.plot_teams(worker, crowd)",
    "explorer = lab.explore(draw, children=lab.log_slider(10, 100_000, value=10_000, label='children'),\n"
    "    start_s=lab.slider(1, 100, 1, value=60), carry=lab.steps([20, 50, 100], value=50),\n"
    "    kind=lab.choice(['children', 'robots'], label='who'), both=True)\n"
    "explorer",
    "explorer.set(children=100, kind='robots')\nexplorer.html",
    "ask_choice('Which?', ['CPU', 'GPU'], print).pick('GPU').commit()",
    "ask_number('How many?', 1, 1000, print)",
    "curve = live()\nfor count in range(3):\n    curve.update(f'{count} of 2')",
    "print(ipywidgets.__version__)",
]
# What differs between any two runs: the ids of widgets and of folded copies, and the time of a commitment.
IDS = re.compile(r"[0-9a-f]{32}|model_id=\S+|(?<=labkit-saved-)[0-9a-f]+|committed \d[\d: -]+")


# C08-01
@pytest.mark.notebook
def test_the_tests_of_the_controls_pass_with_the_ipywidgets_of_colab(bare: Environment) -> None:
    command = ["-m", "pytest", "--quiet", "tests/widgets", "-p", "no:cacheprovider"]
    done = bare.run(*command, cwd=ROOT, PYTHONPATH=str(ROOT / "src"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d+ passed", done.stdout, re.MULTILINE), done.stdout


# C08-01
@pytest.mark.notebook
def test_a_notebook_of_controls_has_the_same_outputs_with_both(bare: Environment) -> None:
    there, here = outputs_with(bare.python), outputs_with(Path(sys.executable))
    assert (there.pop(), here.pop()) == ([{"stdout": f"{IPYWIDGETS}\n"}], [{"stdout": f"{version('ipywidgets')}\n"}])
    assert version("ipywidgets") != IPYWIDGETS
    assert "robots" in str(here[3])
    assert there == here


def outputs_with(python: Path) -> list[list[dict[str, Any]]]:
    """Return what each cell shows when the notebook is executed by this Python."""
    manager = AsyncKernelManager(kernel_name="python3")
    manager.kernel_spec.argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(source) for source in CELLS])
    client = NotebookClient(notebook, km=manager, timeout=120)
    done = client.execute(env=os.environ | {"PYTHONPATH": str(ROOT / "src")})
    return [[shown(output) for output in cell.outputs] for cell in done.cells]


def shown(output: dict[str, Any]) -> dict[str, str]:
    """Return the name or MIME type of each part of an output with its text, less what differs between any two runs."""
    if output["output_type"] == "stream":
        return {output["name"]: output["text"]}
    parts = {kind: IDS.sub("…", str(text)) for kind, text in output["data"].items()}
    if "application/vnd.jupyter.widget-view+json" in parts:
        parts["text/plain"] = "a widget"  # its repr lists traits, and 8 has more of them
    return parts
