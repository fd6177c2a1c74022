"""The browser harness itself, on three notebooks whose behaviour is known: it must see what it claims to see."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyterlab import Lab, LabTimeoutError, wait_for
from nbformat import v4

IMPORTS = """import sys
import matplotlib.pyplot as plt
from IPython.display import HTML, clear_output
from ipywidgets import Button, IntSlider, Output, VBox, interact
print(sys.executable)"""
FOLLOWS = """@interact(n=(1, 9))
def draw(n=3):
    plt.plot(range(n))
    plt.show()"""
FOLLOWS_LIST = FOLLOWS.replace("(1, 9)", "[2, 5, 9]").replace("n=3", "n")
FOLLOWS_BUTTON = """slider, button, output = IntSlider(3, 1, 9), Button(description="Run"), Output()
def draw(_):
    with output:
        clear_output(wait=True)
        plt.plot(range(slider.value))
        plt.show()
button.on_click(draw)
draw(None)
VBox([slider, button, output])"""
STANDS_STILL = """@interact(n=(1, 9))
def draw(n=3):
    plt.plot([1, 2])
    plt.show()"""
RAISES_WHEN_MOVED = (
    STANDS_STILL
    + """
    if n > 3:
        raise ValueError('boom')"""
)
FOLDED = "HTML('<details><summary>Open</summary><p id=inside>hidden</p></details>')"
LONG = "print('line\\n' * 120)"
GOOD = [IMPORTS, FOLLOWS, FOLLOWS_LIST, FOLLOWS_BUTTON, STANDS_STILL, RAISES_WHEN_MOVED, FOLDED, LONG, ""]
RAISES_AT_ONCE = """from ipywidgets import interact
@interact(n=(1, 9))
def draw(n=3):
    raise ValueError('boom')"""
WRITES_STDERR = "import sys\nprint('a warning', file=sys.stderr)"
BROKEN = [RAISES_AT_ONCE, WRITES_STDERR, "1 / 0", "print('never reached')"]
FAILS = "1 / 0  # on purpose"
ON_PURPOSE = [FAILS, *["import time; time.sleep(0.5)"] * 6]


@pytest.fixture(scope="module")
def address(browser, serve, tmp_path_factory) -> str:
    """JupyterLab on the three notebooks."""
    folder = tmp_path_factory.mktemp("samples")
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    for name, sources in (("good", GOOD), ("broken", BROKEN), ("on_purpose", ON_PURPOSE)):
        cells = [v4.new_markdown_cell("# A sample"), *map(v4.new_code_cell, sources)]
        for cell in cells:
            cell.metadata["tags"] = ["raises-exception"] if cell.source == FAILS else []
        nbformat.write(v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), folder / f"{name}.ipynb")
    return serve(folder)


@pytest.fixture(scope="module")
def good(browser, address) -> Iterator[Lab]:
    """The first notebook after Run All; the tests below move one control each."""
    with Lab(browser, address) as lab:
        lab.open_notebook("good.ipynb")
        lab.run_all()
        yield lab


def index_of(source: str) -> int:
    """Return the place of a cell among all cells of the first notebook, its title included."""
    return GOOD.index(source) + 1


def test_a_good_notebook_shows_nothing_red_and_runs_to_its_end(good: Lab) -> None:
    assert (good.red_outputs(), good.cells_not_run()) == ([], 0)


def test_the_kernel_is_the_python_that_runs_the_server(good: Lab) -> None:
    assert good.cell(1).locator(".jp-OutputArea pre").inner_text().strip() == sys.executable


def test_cells_with_a_control_and_a_figure_are_found(good: Lab) -> None:
    with_both = [FOLLOWS, FOLLOWS_LIST, FOLLOWS_BUTTON, STANDS_STILL, RAISES_WHEN_MOVED]
    assert good.cells_with_control() == [index_of(source) for source in with_both]
    assert len(good.figure_sources()) == 5


@pytest.mark.parametrize("source", [FOLLOWS, FOLLOWS_LIST, FOLLOWS_BUTTON], ids=["slider", "list", "button"])
def test_a_figure_that_follows_its_control_is_seen_to_change(good: Lab, source: str) -> None:
    assert good.move_and_see(index_of(source))
    assert len(good.figure_sources(index_of(source))) == 1


def test_a_figure_that_stands_still_is_not_taken_for_a_change(good: Lab) -> None:
    assert not good.move_and_see(index_of(STANDS_STILL), timeout_s=2)


def test_folded_parts_open(good: Lab) -> None:
    assert not good.page.locator("#inside").is_visible()
    assert (good.unfold(), good.unfold()) == (1, 0)
    assert good.page.locator("#inside").is_visible()


def test_screenshots_page_through_the_whole_notebook(good: Lab, tmp_path: Path) -> None:
    (tmp_path / "07_99.png").write_bytes(b"from an earlier run")
    taken = good.screenshot("07", tmp_path)
    # Five figures of some 430 pixels and 120 lines of some 17 are 4200 pixels; a page shows less than 800 of them.
    assert 6 <= len(taken) <= 12
    assert sorted(tmp_path.glob("*.png")) == taken


def test_an_error_that_comes_with_a_move_is_seen(good: Lab) -> None:
    good.move_and_see(index_of(RAISES_WHEN_MOVED), timeout_s=2)
    (error,) = good.red_outputs()
    assert "ValueError: boom" in error


def test_what_is_red_is_seen_and_what_was_not_run_counted(browser, address) -> None:
    with Lab(browser, address) as lab:
        lab.open_notebook("broken.ipynb")
        lab.run_all()
        in_callback, written, in_cell = lab.red_outputs()
        assert "ValueError: boom" in in_callback
        assert written.strip() == "a warning"
        assert "ZeroDivisionError" in in_cell
        assert lab.red_outputs(allowed={1, 2}) == [in_cell]
        assert lab.cells_not_run() == 1


def test_after_a_failure_on_purpose_the_rest_is_waited_for(browser, address) -> None:
    with Lab(browser, address) as lab:
        lab.open_notebook("on_purpose.ipynb")
        lab.run_all()
        assert lab.cells_not_run() == 0
        (error,) = lab.red_outputs()
        assert "ZeroDivisionError" in error and lab.red_outputs(allowed={1}) == []


def test_waiting_ends_and_says_for_what() -> None:
    with pytest.raises(LabTimeoutError, match="still waiting for a miracle"):
        wait_for(lambda: False, 0.3, "a miracle")
