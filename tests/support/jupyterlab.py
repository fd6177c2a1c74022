"""Drive real JupyterLab in a headless browser, as a student would: open, Run All, move a control, look."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, sync_playwright

CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Without windowing every cell is in the page, on screen or not, and can be looked for.
QUIET_SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "docmanager-extension/plugin": {"autosave": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
}
VIEWPORT = {"width": 1280, "height": 860}
NOTEBOOK = ".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook"
CONTROL = ".noUi-handle, .widget-dropdown select"
FIGURE = "img, .jp-RenderedSVG svg, .jp-OutputArea-output svg[role=img], canvas"
RED = '[data-mime-type="application/vnd.jupyter.stderr"], [data-mime-type="application/vnd.jupyter.error"]'
START_S = 60.0
NO_PROGRESS_S = 90.0
SETTLED_S = 5.0  # for which the kernel is idle before cells without a number count as not run


class LabTimeoutError(AssertionError):
    """JupyterLab did not come to where it should be in time."""


def wait_for(condition: Callable[[], Any], timeout_s: float, what: str) -> Any:
    """Return the first true value of condition, asked four times a second."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise LabTimeoutError(f"after {timeout_s:.0f} s still waiting for {what}")
        time.sleep(0.25)


# --- the server --------------------------------------------------------------------------------------------------


def free_port() -> int:
    """Return a port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def quiet_environment(home: Path) -> dict[str, str]:
    """Return an environment whose Jupyter reads and writes nothing outside home."""
    folders = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    for name, value in QUIET_SETTINGS.items():
        path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))
    return os.environ | {variable: str(home / folder) for variable, folder in folders.items()}


@contextlib.contextmanager
def jupyter_server(folder: Path, home: Path) -> Iterator[str]:
    """Run JupyterLab on a folder, its own settings under home, and yield its address."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    options = {
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.token": "",
        "ServerApp.password": "",
        "ServerApp.disable_check_xsrf": True,
        "ServerApp.root_dir": folder,
        "LabApp.news_url": None,
    }
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{name}={value}" for name, value in options.items()]
    log_path = home / "server.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("w") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=subprocess.STDOUT, env=quiet_environment(home), cwd=folder
        )
    try:
        wait_for(lambda: _answers(server, address, log_path), START_S, "JupyterLab's server")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


def _answers(server: subprocess.Popen, address: str, log: Path) -> bool:
    if server.poll() is not None:
        raise LabTimeoutError(f"JupyterLab ended with {server.returncode}:\n{log.read_text()[-2000:]}")
    try:
        with urllib.request.urlopen(f"{address}/api/status", timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


@contextlib.contextmanager
def headless_browser(executable: str) -> Iterator[Browser]:
    """Run the Chromium found on this machine and yield it."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


# --- the lab -----------------------------------------------------------------------------------------------------


class Lab:
    """One page of JupyterLab. Use it as a context manager: at its end the kernels are shut down."""

    def __init__(self, browser: Browser, address: str) -> None:
        self.address = address
        self.page: Page = browser.new_page(viewport=VIEWPORT)
        self.page.on("dialog", lambda dialog: dialog.accept())  # leaving a notebook with unsaved changes

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.page.close()
        with urllib.request.urlopen(f"{self.address}/api/sessions", timeout=10) as answer:
            sessions = json.load(answer)
        for session in sessions:
            request = urllib.request.Request(f"{self.address}/api/sessions/{session['id']}", method="DELETE")
            urllib.request.urlopen(request, timeout=30).close()

    @property
    def notebook(self) -> Locator:
        """The notebook on screen."""
        return self.page.locator(NOTEBOOK)

    def cell(self, index: int) -> Locator:
        """One cell, counted from 0 over all kinds of cells."""
        return self.notebook.locator(".jp-Cell").nth(index)

    # opening and running

    def open_notebook(self, path: str) -> None:
        """Open a notebook of the server's folder and wait until its kernel stands ready."""
        self.page.goto(f"{self.address}/lab/tree/{path}?reset")
        self.notebook.wait_for(timeout=1000 * START_S)
        wait_for(self.is_idle, START_S, f"the kernel of {path}")

    def is_idle(self) -> bool:
        """Tell whether a kernel is connected and has nothing to do."""
        return "| Idle" in self.page.locator("#jp-main-statusbar").inner_text()

    def prompts(self) -> list[str]:
        """Return what stands before each code cell that holds anything: a number, '*' while it waits, '' before."""
        script = """cells => cells.filter(cell => cell.querySelector('.cm-content')?.textContent.trim())
            .map(cell => (cell.querySelector('.jp-InputPrompt')?.textContent ?? '').replace(/[\\[\\]:\\s]/g, ''))"""
        return self.notebook.locator(".jp-CodeCell").evaluate_all(script)

    def run_all(self, no_progress_s: float = NO_PROGRESS_S) -> None:
        """Choose Run All Cells and wait for the end, as long as one cell after the other gets its number.

        A cell that fails on purpose takes the stars from all that wait, though they still run, and between two of them
        the kernel is idle for a moment. So the end is when every cell has its number, or nothing moves for a while.
        """
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_text("Run All Cells", exact=True).click()
        wait_for(lambda: any(self.prompts()), START_S, "the first cell to start")
        done, since, busy_at = -1, time.monotonic(), time.monotonic()
        while True:
            prompts, now = self.prompts(), time.monotonic()
            now_done = sum(prompt.isdigit() for prompt in prompts)
            if now_done != done:
                done, since, busy_at = now_done, now, now
            if "*" in prompts or not self.is_idle():
                busy_at = now
            elif done == len(prompts) or now - busy_at > SETTLED_S:
                return
            if now - since > no_progress_s:
                raise LabTimeoutError(f"no cell ended for {no_progress_s:.0f} s: {done} of {len(prompts)} did")
            time.sleep(0.25)

    # looking

    def cells_not_run(self) -> int:
        """Return how many code cells have no number: after an error the rest is not run."""
        return sum(not prompt.isdigit() for prompt in self.prompts())

    def red_outputs(self, allowed: Collection[int] = ()) -> list[str]:
        """Return the text of all that is shown in red, inside widgets as well, but for the cells that are allowed to.

        JupyterLab shows errors, a LabkitError too, and what is written to stderr alike; a student takes both for a
        fault, so no lesson shows either unless a failure is its subject.
        """
        script = f"""cells => cells.map(cell => [...cell.querySelectorAll({RED!r})].map(node => node.textContent))"""
        by_cell = self.notebook.locator(".jp-Cell").evaluate_all(script)
        return [text for index, texts in enumerate(by_cell) if index not in allowed for text in texts]

    def figure_sources(self, index: int | None = None) -> list[str]:
        """Return the contents of the figures in one cell, or in all of them: two that look alike are equal."""
        where = self.notebook if index is None else self.cell(index)
        script = """nodes => nodes.map(node => node.tagName == 'CANVAS' ? node.toDataURL()
            : node.tagName == 'IMG' ? node.src : node.outerHTML)"""
        return where.locator(".jp-OutputArea").locator(FIGURE).evaluate_all(script)

    def cells_with_control(self) -> list[int]:
        """Return the cells that show a slider or a drop-down list, not a hidden one, together with a figure."""
        visible = f"[...cell.querySelectorAll({CONTROL!r})].some(node => node.offsetParent)"
        script = f"cells => cells.map(cell => {visible} && !!cell.querySelector({FIGURE!r}))"
        has_both = self.notebook.locator(".jp-Cell").evaluate_all(script)
        return [index for index, both in enumerate(has_both) if both]

    # touching

    def move_control(self, index: int) -> str:
        """Move the first slider of a cell one step, or take another item of its first list; return what was moved."""
        control = self.cell(index).locator(CONTROL).locator("visible=true").first
        control.scroll_into_view_if_needed()
        if control.evaluate("node => node.tagName") == "SELECT":
            chosen = control.evaluate("node => (node.selectedIndex + 1) % node.options.length")
            control.select_option(index=chosen)
            return f"list set to {control.input_value()!r}"
        before, top = control.get_attribute("aria-valuenow"), control.get_attribute("aria-valuemax")
        control.focus()
        control.press("ArrowLeft" if before == top else "ArrowRight")
        return f"slider moved from {before} to {control.get_attribute('aria-valuenow')}"

    def move_and_see(self, index: int, timeout_s: float = 30.0) -> bool:
        """Move a cell's first control, press its button if nothing follows; tell whether a figure of it changed."""
        before = self.figure_sources(index)

        def changed() -> bool:
            now = self.figure_sources(index)
            return bool(now) and now != before and self.is_idle()

        self.move_control(index)
        button = self.cell(index).locator("button.jupyter-button").first
        for press, wait_s in ((False, 3.0), (True, timeout_s)):
            if press and button.count():
                button.click()
            with contextlib.suppress(LabTimeoutError):
                return wait_for(changed, wait_s, "the figure to change")
        return False

    def unfold(self) -> int:
        """Open every folded <details> and return how many there were."""
        folded = self.notebook.locator("details:not([open])")
        return folded.evaluate_all("nodes => nodes.map(node => node.setAttribute('open', '')).length")

    def screenshot(self, stem: str, folder: Path) -> list[Path]:
        """Page through the notebook from the top and write stem_01.png, stem_02.png, …"""
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{stem}_[0-9][0-9].png"):
            old.unlink()
        scroller = self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-WindowedPanel-outer")
        scroller.evaluate("node => node.scrollTo(0, 0)")
        taken = []
        while True:
            self.page.wait_for_timeout(200)
            taken.append(folder / f"{stem}_{len(taken) + 1:02}.png")
            self.page.screenshot(path=taken[-1])
            at_end = """node => { const before = node.scrollTop; node.scrollBy(0, 0.92 * node.clientHeight);
                return node.scrollTop == before; }"""
            if scroller.evaluate(at_end):
                return taken
