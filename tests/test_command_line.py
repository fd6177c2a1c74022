"""python -m labkit: what each command writes and prints, and how it ends when something is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from lessons import NOTEBOOKS, ROOT

from labkit.__main__ import main
from labkit.errors import InputError
from labkit.notebooks import lesson_paths

NAMES = [path.name for path in lesson_paths(NOTEBOOKS)]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("command", [["solutions"], ["colab", "--repo", "owner/name"]], ids=lambda words: words[0])
def test_a_command_prints_what_it_wrote(command: list[str], tmp_path: Path, capsys) -> None:
    assert main([*command, "--to", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [str(tmp_path / name) for name in NAMES]
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES


@pytest.mark.parametrize("command", [["solutions"], ["colab", "--repo", "owner/name"]], ids=lambda words: words[0])
def test_without_a_folder_it_is_build(command: list[str], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("labkit.__main__.course_folder", lambda: NOTEBOOKS)
    monkeypatch.chdir(tmp_path)
    assert main(command) == 0
    assert sorted(path.name for path in (tmp_path / "build" / command[0]).iterdir()) == NAMES


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["colab", "--repo", "nonsense"], "labkit: repository='nonsense': this names no repository"),
        (["colab", "--repo", ""], "labkit: repository='': this names no repository"),
        (["solutions", "--to", "notebooks"], "labkit: notebooks: this is the folder of the lessons themselves"),
    ],
)
def test_an_error_is_one_line_and_status_2(command: list[str], line: str, capsys) -> None:
    assert main(command) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(line)
    assert err.count("\n") == 1


def test_an_error_of_several_lines_becomes_one(monkeypatch, capsys) -> None:
    def fail(*_) -> None:
        raise InputError("x", "first\n  second", "Third.")

    monkeypatch.setattr("labkit.__main__.write_solved", fail)
    assert main(["solutions"]) == 2
    assert capsys.readouterr().err == "labkit: x: first second. Third.\n"


def test_any_other_error_is_not_hidden(monkeypatch) -> None:
    monkeypatch.setattr("labkit.__main__.write_solved", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["solutions"])


def test_as_a_program_outside_a_checkout_it_ends_with_status_2_and_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "labkit", "solutions"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"labkit: {tmp_path}: there is no notebooks/ folder here. Run this inside a checkout of the course.\n"
    )


@pytest.mark.parametrize("words", [[], ["unknown"], ["colab", "--to"]])
def test_a_command_that_is_none_shows_the_usage(words: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: python -m labkit" in capsys.readouterr().err
