"""The Makefile: what it would do in each situation (`make --dry-run`), and how it answers what cannot work."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from lessons import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
FIRST = "notebooks/00_start_here.ipynb"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout, in a folder with a space in its name, in which nothing was made yet."""
    folder = tmp_path / "my course"
    (folder / "notebooks").mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "tools"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for name in ("01_is_a_gpu_faster.ipynb", "00_start_here.ipynb"):
        (folder / "notebooks" / name).write_text("{}")
    return folder


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make, free of the make that may run these tests."""
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in ("MAKEFLAGS", "MAKELEVEL", "TORCH_INDEX", "PYTHON")
    }
    return subprocess.run(["make", *arguments], cwd=folder, env=clean, capture_output=True, text=True)


def plan(folder: Path, *arguments: str) -> str:
    """Return the commands that make would run."""
    return make(folder, "--dry-run", *arguments).stdout


def pretend_made(folder: Path, *, made_in: Path | None = None, made_from: str = "") -> None:
    """Put the marks of a finished environment in place."""
    venv = folder / ".venv"
    venv.mkdir()
    (venv / "made-from").write_text(f"{made_from}\n")
    (venv / "made-in").write_text(f"{made_in or folder}\n")
    for mark in ("lab-ready", "test-ready"):
        (venv / mark).touch()


# --- help --------------------------------------------------------------------------------------------------------


def test_make_alone_lists_every_command(checkout: Path) -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1).split()
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", make(checkout).stdout, re.MULTILINE)
    assert sorted(listed) == sorted(set(phony) - {"FORCE"})
    assert make(checkout).stdout == make(checkout, "help").stdout


# --- what is installed when --------------------------------------------------------------------------------------


def test_first_lab_makes_installs_and_opens_the_first_lesson(checkout: Path) -> None:
    commands = plan(checkout, "lab")
    steps = ["-m venv", '--editable ".[lab]"', "overrides.json", "-m jupyterlab", f"/lab/tree/{FIRST}"]
    places = [commands.index(step) for step in steps]
    assert places == sorted(places)
    assert ".[lab,test]" not in commands


def test_second_lab_only_opens(checkout: Path) -> None:
    pretend_made(checkout)
    commands = plan(checkout, "lab")
    assert "-m jupyterlab" in commands
    assert "pip install" not in commands
    assert "-m venv" not in commands


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_changed_dependencies_are_installed_again(checkout: Path, changed: str) -> None:
    pretend_made(checkout)
    later_s = (checkout / ".venv" / "lab-ready").stat().st_mtime + 10
    os.utime(checkout / changed, (later_s, later_s))
    commands = plan(checkout, "lab")
    assert "pip install" in commands
    assert "-m venv" not in commands


def test_moved_folder_gets_a_new_environment(checkout: Path) -> None:
    pretend_made(checkout, made_in=checkout.parent / "elsewhere")
    commands = plan(checkout, "lab")
    assert "anew: this folder was moved" in commands
    assert "-m venv --clear" in commands


def test_every_install_is_held_to_the_pins(checkout: Path) -> None:
    installs = [line for line in plan(checkout, "unit").splitlines() if "pip install" in line]
    assert len(installs) == 2
    assert all("--constraint constraints.txt" in line for line in installs)


# --- where PyTorch comes from ------------------------------------------------------------------------------------


def test_no_index_is_named_unless_asked_for(checkout: Path) -> None:
    assert "index-url" not in plan(checkout, "unit")


def test_the_index_asked_for_stands_beside_the_default_one(checkout: Path) -> None:
    installs = [
        line for line in plan(checkout, "lab", "TORCH_INDEX=file:///wheels/cpu").splitlines() if "pip install" in line
    ]
    assert installs
    assert all('--extra-index-url "file:///wheels/cpu"' in line for line in installs)


def test_later_installs_keep_the_index(checkout: Path) -> None:
    pretend_made(checkout, made_from="file:///wheels/cpu")
    (checkout / ".venv" / "test-ready").unlink()
    commands = plan(checkout, "unit")
    assert '--extra-index-url "file:///wheels/cpu"' in commands
    assert "-m venv" not in commands


def test_another_index_makes_the_environment_anew(checkout: Path) -> None:
    pretend_made(checkout)
    assert "-m venv --clear" in plan(checkout, "lab", "TORCH_INDEX=file:///wheels/cpu")


def test_the_same_index_again_changes_nothing(checkout: Path) -> None:
    pretend_made(checkout, made_from="file:///wheels/cpu")
    assert "-m venv" not in plan(checkout, "lab", "TORCH_INDEX=file:///wheels/cpu")


# --- make test ---------------------------------------------------------------------------------------------------


# C09-01
def test_checks_run_in_order(checkout: Path) -> None:
    pretend_made(checkout)
    commands = plan(checkout, "test")
    steps = [
        "-m ruff check",
        "-m ruff format --check",
        "src tests --ignore",
        "tests/test_notebook_style.py",
        "--nbmake-timeout=120 notebooks",
        "-m labkit solutions",
        "--nbmake-timeout=120 build/solutions",
        "pytest --quiet tests/colab",
        "pytest --quiet tests/browser",
    ]
    places = [commands.rindex(step) for step in steps]
    assert places == sorted(places)


def test_notebooks_are_never_listed_by_hand() -> None:
    for name in ("Makefile", ".ci/run"):
        assert not re.search(r"\d\d_\w+|--deselect|-k ", (ROOT / name).read_text())


# C09-07: kernels that start side by side race for ports
def test_notebooks_run_one_after_the_other() -> None:
    for name in ("Makefile", ".ci/run", "pyproject.toml", "conftest.py"):
        assert not re.search(r"xdist|--numprocesses|pytest.* -n\b|--dist\b", (ROOT / name).read_text())
    assert ".NOTPARALLEL:" in (ROOT / "Makefile").read_text()


def test_nothing_lets_a_failure_pass() -> None:
    for name in ("Makefile", ".ci/run"):
        text = (ROOT / name).read_text()
        assert not re.search(r"\|\|\s*(true|:)|^\t@?-|--exit-zero|continue", text, re.MULTILINE)
    assert "set -euo pipefail" in (ROOT / ".ci" / "run").read_text()


def test_a_failing_check_stops_make(checkout: Path) -> None:
    pretend_made(checkout)
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text('#!/bin/sh\ncase "$*" in *ruff*) echo "ruff was here"; exit 1;; esac\necho "ran: $*"\n')
    python.chmod(0o755)
    done = make(checkout, "test")
    assert done.returncode != 0
    assert "ruff was here" in done.stdout
    assert "ran:" not in done.stdout


# --- what cannot work --------------------------------------------------------------------------------------------


def fake_python(path: Path, *, version: str, too_old: bool = False, no_venv: bool = False) -> str:
    """Write a stand-in for a Python that is too old, or that lacks venv, and return its path."""
    path.write_text(
        "#!/bin/sh\n"
        f'case "$*" in --version) echo "Python {version}";;\n'
        f'*version_info*) exit {int(too_old)};;\n*ensurepip*) exit {int(no_venv)};;\n*"-m venv"*) echo made;;\nesac\n'
    )
    path.chmod(0o755)
    return path.as_posix()


def test_a_missing_python_is_said(checkout: Path) -> None:
    done = make(checkout, "lab", "PYTHON=no-such-python")
    assert done.returncode != 0
    assert "There is no 'no-such-python' here. Install Python 3.11 or newer" in done.stdout


def test_an_old_python_is_said_with_its_version(checkout: Path, tmp_path: Path) -> None:
    old = fake_python(tmp_path / "python3.9", version="3.9.2", too_old=True)
    done = make(checkout, "lab", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stdout
    assert "is Python 3.9.2" in done.stdout
    assert "make lab PYTHON=python3.12" in done.stdout
    assert not (checkout / ".venv").exists()


def test_a_python_without_venv_is_said(checkout: Path, tmp_path: Path) -> None:
    bare = fake_python(tmp_path / "python3.11", version="3.11.2", no_venv=True)
    done = make(checkout, "lab", f"PYTHON={bare}")
    assert done.returncode != 0
    assert "apt install python3-venv" in done.stdout


def test_clean_keeps_the_results(checkout: Path) -> None:
    pretend_made(checkout)
    (checkout / "results").mkdir()
    (checkout / "results" / "01.json").write_text("{}")
    assert make(checkout, "clean").returncode == 0
    assert not (checkout / ".venv").exists()
    assert (checkout / "results" / "01.json").exists()
