"""The browser, JupyterLab on a folder of notebooks, and what happens where there is no browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from chromium import browser_is_required, find_chromium, how_to_get_chromium
from jupyterlab import Lab, headless_browser, jupyter_server
from playwright.sync_api import Browser


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Headless Chromium; without one the tests are skipped, or fail where LABKIT_REQUIRE_BROWSER=1."""
    executable = find_chromium()
    if executable is None:
        if browser_is_required():
            pytest.fail(how_to_get_chromium(), pytrace=False)
        pytest.skip("not run: no Chromium was found")
    with headless_browser(executable) as running:
        yield running


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Path], str]]:
    """A function that starts JupyterLab on a folder and returns its address; all end with the module."""
    with ExitStack() as stack:
        yield lambda folder: stack.enter_context(jupyter_server(folder, tmp_path_factory.mktemp("jupyter")))


@pytest.fixture
def open_lab(browser: Browser) -> Iterator[Callable[[str, str], Lab]]:
    """A function that opens a notebook of a served folder; the kernels end with the test."""
    with ExitStack() as stack:

        def open_notebook(address: str, path: str) -> Lab:
            lab = stack.enter_context(Lab(browser, address))
            lab.open_notebook(path)
            return lab

        yield open_notebook


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it once and in full where the browser tests were not run."""
    skipped = [report for report in terminalreporter.getreports("skipped") if "tests/browser" in report.nodeid]
    if skipped:
        terminalreporter.section("browser tests")
        terminalreporter.line(f"NOT RUN: {len(skipped)} browser tests. {how_to_get_chromium()}")
