"""Where a browser is looked for, and what is said where there is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import chromium
import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-in browsers are POSIX executables")


@pytest.fixture
def empty_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose PATH is one empty folder and that has nothing in the usual places."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("LABKIT_CHROMIUM", raising=False)
    monkeypatch.setattr(chromium, "PLACES", (str(tmp_path / "Chrome.app"),))
    return tmp_path


def executable(path: Path) -> str:
    """Create an executable file and return its path."""
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_nothing_is_found_on_an_empty_machine(empty_machine: Path) -> None:
    assert chromium.find_chromium() is None


@pytest.mark.parametrize("name", ["chromium", "google-chrome", "msedge"])
def test_a_browser_on_the_path_is_found(empty_machine: Path, name: str) -> None:
    browser = executable(empty_machine / name)
    assert chromium.find_chromium() == browser


def test_an_application_in_its_usual_place_is_found(empty_machine: Path) -> None:
    browser = executable(empty_machine / "Chrome.app")
    assert chromium.find_chromium() == browser


def test_the_browser_asked_for_goes_first(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(empty_machine / "chromium")
    monkeypatch.setenv("LABKIT_CHROMIUM", executable(empty_machine / "mine"))
    assert chromium.find_chromium() == str(empty_machine / "mine")


def test_a_wrong_path_is_not_replaced_in_silence(empty_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(empty_machine / "chromium")
    monkeypatch.setenv("LABKIT_CHROMIUM", str(empty_machine / "absent"))
    assert chromium.find_chromium() is None


@pytest.mark.parametrize(
    ("system", "command"),
    [("linux", "apt-get install chromium"), ("darwin", "brew install"), ("win32", "winget install")],
)
def test_each_system_is_told_its_own_command(system: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert command in chromium.how_to_get_chromium()
    assert "LABKIT_CHROMIUM=" in chromium.how_to_get_chromium()


@pytest.mark.parametrize(("value", "required"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_a_browser_is_required_on_demand(value: str | None, required: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABKIT_REQUIRE_BROWSER", raising=False)
    if value is not None:
        monkeypatch.setitem(os.environ, "LABKIT_REQUIRE_BROWSER", value)
    assert chromium.browser_is_required() is required
