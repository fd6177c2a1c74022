"""Notebooks for Google Colab: each enough on its own, since an instructor uploads one file and runs it.

The set-up cell carries the labkit wheel, or installs it from a repository. It never touches Colab's own torch, numpy,
matplotlib or ipywidgets: labkit is installed without its dependencies, all of which Colab has.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import io
import lzma
import re
import subprocess
import sys
import tempfile
import textwrap
import zipfile
from pathlib import Path
from typing import Any

from labkit.errors import InputError, RecordError
from labkit.notebooks import lesson_paths, read_notebook, refuse_sources, write_notebook

MOST_BYTES = 400_000  # of the whole set-up cell: an editor must still open it
SETUP_TAG = "setup"
FIRST_USE = "from labkit import start"  # what the set-up cell does from here on is the same everywhere
GITHUB_NAME = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")

# @NAME@ is filled in: the cells hold braces and percent signs of their own.
_FROM_WHEEL = '''\
# @title Set-up: run this cell first { display-mode: "form" }
import base64
import hashlib
import importlib
import importlib.util
import lzma
import pathlib
import subprocess
import sys
import tempfile

NAME = "@NAME@"
SHA256 = "@SHA256@"
WHEEL = """
@WHEEL@
"""
if importlib.util.find_spec("labkit") is None:
    packed = "".join(WHEEL.split())
    if hashlib.sha256(packed.encode()).hexdigest() != SHA256:
        raise SystemExit("""The labkit inside this cell is damaged, so it was not installed.
Take the notebook anew from where you got it, then run this cell again.""")
    with tempfile.TemporaryDirectory() as folder:
        wheel = pathlib.Path(folder, NAME)
        wheel.write_bytes(lzma.decompress(base64.b64decode(packed)))
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--no-deps"]
        subprocess.run([*install, str(wheel)], check=True)
    importlib.invalidate_caches()
'''

_FROM_REPOSITORY = """\
# @title Set-up: run this cell first { display-mode: "form" }
import importlib
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("labkit") is None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--no-deps"]
    subprocess.run([*install, "git+https://github.com/@REPOSITORY@"], check=True)
    importlib.invalidate_caches()
"""


def write_colab(course: Path, folder: Path, repository: str | None = None) -> list[Path]:
    """Write every lesson for Colab to folder and return the paths.

    Without a repository ("owner/name") the wheel is built from the checkout and travels in the set-up cell. Raises
    InputError for a repository that is none or the course's own folder, RecordError if the wheel cannot be built or
    is too large, or a lesson has no set-up cell.
    """
    refuse_sources(course, folder)
    install = from_wheel(*build_wheel(course.parent)) if repository is None else from_repository(repository)
    made = {path: for_colab(read_notebook(path), install, path.name) for path in lesson_paths(course)}
    return [write_notebook(notebook, folder / path.name) for path, notebook in made.items()]


def for_colab(notebook: Any, install: str, name: str) -> Any:
    """Return a copy of the notebook for Colab: its set-up cell installs, folded as a form, and a T4 is preset.

    Only the part of the set-up cell that installs is replaced. Raises RecordError for a notebook without a set-up
    cell, or if the cell becomes too large; name is the notebook's, for the message.
    """
    notebook = copy.deepcopy(notebook)
    setup = next((cell for cell in notebook.cells if SETUP_TAG in cell.metadata.get("tags", ())), None)
    if setup is None or FIRST_USE not in setup.source:
        advice = f'Tag the cell with "{FIRST_USE}" as "{SETUP_TAG}".'
        raise RecordError(name, "the notebook has no set-up cell", advice)
    setup.source = install + setup.source[setup.source.index(FIRST_USE) :]
    size_bytes = len(setup.source.encode())
    if size_bytes > MOST_BYTES:
        problem = f"its set-up cell would have {size_bytes:,} bytes, an editor opens at most {MOST_BYTES:,}"
        raise RecordError(name, problem, "Install from a repository instead: make colab REPO=owner/name.")
    setup.metadata["cellView"] = "form"
    notebook.metadata["accelerator"] = "GPU"
    notebook.metadata["colab"] = {"gpuType": "T4", "provenance": []}
    return notebook


def from_wheel(name: str, wheel: bytes) -> str:
    """Return source that installs this wheel, which it carries: compressed, and compared with its hash first."""
    packed = base64.b64encode(lzma.compress(_uncompressed(wheel), preset=9 | lzma.PRESET_EXTREME)).decode()
    parts = {"NAME": name, "SHA256": hashlib.sha256(packed.encode()).hexdigest(), "WHEEL": _lines(packed)}
    return re.sub("@([A-Z0-9]+)@", lambda part: parts[part[1]], _FROM_WHEEL)


def from_repository(repository: str) -> str:
    """Return source that installs labkit from a repository on GitHub. Raises InputError unless it is "owner/name"."""
    if not GITHUB_NAME.fullmatch(repository):
        problem = "this names no repository on GitHub"
        raise InputError(f"repository={repository!r}", problem, "Give its owner and name, such as owner/name.")
    return _FROM_REPOSITORY.replace("@REPOSITORY@", repository)


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


def _uncompressed(wheel: bytes) -> bytes:
    """Return the same archive with its files stored as they are: compressed as one they take a third less."""
    stored = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(wheel)) as source, zipfile.ZipFile(stored, "w", zipfile.ZIP_STORED) as target:
        for member in source.infolist():
            target.writestr(member, source.read(member), compress_type=zipfile.ZIP_STORED)
    return stored.getvalue()


def _lines(packed: str) -> str:
    return "\n".join(textwrap.wrap(packed, 120))
