"""Notebooks for Google Colab: each enough on its own, since an instructor uploads one file and runs it.

The set-up cell carries the labkit wheel, or installs it from a repository. It never touches Colab's own torch, numpy,
matplotlib or ipywidgets: the wheel is installed without its dependencies, all of which Colab has.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from labkit.errors import InputError, RecordError
from labkit.notebooks import lesson_paths, read_notebook, write_notebook

MOST_BYTES = 400_000  # of the whole set-up cell: an editor must still open it
SETUP_TAG = "setup"

_BEGIN = """\
# @title Set-up: run this cell first {{ display-mode: "form" }}
import base64
import hashlib
import importlib
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

{body}
from labkit import start

lesson = start("{number}")
"""

_FROM_WHEEL = '''\
NAME, SHA256 = "{name}", "{sha256}"
WHEEL = """
{data}
"""
if importlib.util.find_spec("labkit") is None:
    wheel = base64.b64decode(WHEEL)
    if hashlib.sha256(wheel).hexdigest() != SHA256:
        raise SystemExit("This notebook was damaged on its way: download it again.")
    path = pathlib.Path(tempfile.mkdtemp()) / NAME
    path.write_bytes(wheel)
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", str(path)], check=True)
    importlib.invalidate_caches()'''

_FROM_REPOSITORY = """\
if importlib.util.find_spec("labkit") is None:
    source = "git+https://github.com/{repository}"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", source], check=True)
    importlib.invalidate_caches()"""


def write_colab(course: Path, folder: Path, repository: str | None = None) -> list[Path]:
    """Write every lesson for Colab to folder and return the paths.

    Without a repository ("owner/name") the wheel is built from the checkout and travels in the set-up cell. Raises
    InputError for a repository that is none, RecordError if the wheel cannot be built or is too large.
    """
    body = _repository_body(repository) if repository else _wheel_body(build_wheel(course.parent))
    return [
        write_notebook(for_colab(read_notebook(path), body, path.name[:2]), folder / path.name)
        for path in lesson_paths(course)
    ]


def for_colab(notebook: Any, body: str, number: str) -> Any:
    """Return the notebook with its set-up cell replaced, folded away as a form, and a T4 runtime preset."""
    setup = next((cell for cell in notebook.cells if SETUP_TAG in cell.metadata.get("tags", [])), None)
    if setup is None:
        raise RecordError(f"lesson {number}", "the notebook has no set-up cell", f'Tag one cell "{SETUP_TAG}".')
    setup.source = _BEGIN.format(body=body, number=number)
    if len(setup.source.encode()) > MOST_BYTES:
        given = f"a set-up cell of {len(setup.source.encode()):,} bytes"
        raise RecordError(given, f"Colab's editor takes at most {MOST_BYTES:,}", "Use REPO=owner/name instead.")
    setup.metadata["cellView"] = "form"
    notebook.metadata["accelerator"] = "GPU"
    notebook.metadata["colab"] = {"gpuType": "T4", "provenance": []}
    return notebook


def build_wheel(checkout: Path) -> tuple[str, bytes]:
    """Return the name and bytes of the wheel built from a checkout. Raises RecordError if it cannot be built."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, str(checkout)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("labkit-*.whl"))
        if done.returncode or len(wheels) != 1:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
            advice = 'Install what the tests need: pip install "labkit[test]".'
            raise RecordError(str(checkout), f"the wheel could not be built ({last[0]})", advice)
        return wheels[0].name, wheels[0].read_bytes()


def _wheel_body(wheel: tuple[str, bytes]) -> str:
    name, data = wheel
    text = "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 120))
    return _FROM_WHEEL.format(name=name, sha256=hashlib.sha256(data).hexdigest(), data=text)


def _repository_body(repository: str) -> str:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        raise InputError(f"repository={repository!r}", "this names no repository", "Try owner/name.")
    return _FROM_REPOSITORY.format(repository=repository)
