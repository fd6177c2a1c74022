"""The lens in JupyterLab: stepped with the keyboard, played, and led to a hazard."""

from __future__ import annotations

import nbformat
import pytest
from jupyterlab import wait_for
from lessons import ROOT

SCREENSHOTS = ROOT / "build" / "screenshots"
KERNEL = """\
import numpy as np
from labkit.simt import cuda, trace
from labkit.widgets import lens
"""
LENS = """\
@cuda.jit
def rounds(x, y):
    cells = cuda.shared.array(32, np.float32)
    i = cuda.threadIdx.x
    for _ in range(3):
        cells[i] = x[2 * i]
        cuda.syncthreads()
        y[i] = cells[31 - i]

lens(trace(rounds, 2, 32, np.ones(64, np.float32), np.zeros(32, np.float32)))
"""
# Line 6: load x, store cells; line 7: barrier; line 8: load cells, store y; three times over.
STEPS = 15
STORE_OF_ROUND_1, LOAD_OF_ROUND_0 = 7, 4  # the race, counted from 1


@pytest.fixture(scope="module")
def address(browser, serve, tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("lens")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (KERNEL, LENS)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "lens.ipynb")
    return serve(folder)


def test_the_lens_steps_plays_and_finds_the_hazard(address, open_lab) -> None:
    lab = open_lab(address, "lens.ipynb")
    lab.run_all()
    assert lab.red_outputs() == []
    lens = lab.page.locator(".labkit-lens")
    lens.wait_for(timeout=30_000)
    keys = lab.page.keyboard

    def shown() -> tuple[str, str, str]:
        line = lens.locator("tr[aria-current=step] .ll-line-number").inner_text()
        return lens.locator(".ll-where").inner_text(), line, lens.locator(".ll-say b").inner_text()

    def step() -> int:
        return int(shown()[0].split()[1])

    # The script runs: the sliders that stand in for it, and the copy for saved notebooks, give way.
    assert not lab.cell(1).locator(".labkit-fields").is_visible()
    assert not lab.cell(1).locator("details").is_visible()
    saved = lab.cell(1).locator("details img").get_attribute("alt")

    # Stepping with the keys: the line, the sentence, the picture and the counters follow.
    lens.locator(".ll-picture").focus()
    assert shown() == (f"step 1 of {STEPS}", "6", "Load from x (global memory): 32 lanes, 128 bytes, 8 sectors.")
    assert lens.locator(".ll-touched").count() == 8
    keys.press("ArrowRight")
    assert shown() == (
        f"step 2 of {STEPS}",
        "6",
        "Store to cells (shared memory): 32 lanes, 128 bytes, 1 wavefront, no bank conflict.",
    )
    assert lens.locator(".ll-cell").count() == 64  # lanes and words
    keys.press("ArrowRight")
    assert shown()[1:] == ("7", "Barrier: the threads of the block wait here for each other.")
    keys.press("End")
    assert step() == STEPS
    counted = lens.locator(".ll-counts tr", has_text="global load sectors").locator("td").all_inner_texts()
    assert counted == ["0", "24", "48"]  # this step, this warp so far, both warps
    keys.press("Home")
    keys.press("ArrowLeft")
    assert step() == 1
    keys.press("ArrowDown")
    assert lens.locator("select").first.evaluate("box => box.selectedOptions[0].text").startswith("1 (block 1")
    keys.press("ArrowUp")

    # Keeping to a line.
    lens.get_by_role("button", name="Keep to line 8").click()
    assert shown() == (
        "step 1 of 6",
        "8",
        "Load from cells (shared memory): 32 lanes, 128 bytes, 1 wavefront, no bank conflict.",
    )
    lens.get_by_role("button", name="Keep to line 8").click()

    # Playing: it moves by itself, stops at a second press, and runs to the end at which it stops.
    lens.locator(".ll-picture").focus()
    keys.press("Home")
    lens.get_by_label("Speed").select_option("fast")
    lens.locator(".ll-picture").focus()
    keys.press(" ")
    wait_for(lambda: step() > 3, 10, "the lens to play")
    keys.press(" ")
    paused = step()
    lab.page.wait_for_timeout(600)
    assert step() == paused
    lens.get_by_role("button", name="Play").click()
    wait_for(lambda: step() == STEPS, 20, "the lens to come to the end")
    lens.get_by_role("button", name="Play").wait_for(timeout=5_000)  # no longer Pause

    # The hazard: both accesses, the lanes concerned, the lines.
    lens.get_by_role("button", name="Later access").click()
    assert (step(), shown()[1]) == (STORE_OF_ROUND_1, "6")
    assert lens.locator("tr.ll-other .ll-line-number").inner_text() == "8"
    later = set(lens.locator(".ll-pinned").evaluate_all("cells => cells.map(cell => cell.dataset.lanes)"))
    lens.screenshot(path=SCREENSHOTS / "lens_hazard.png")
    lens.get_by_role("button", name="Earlier access").click()
    assert (step(), shown()[1]) == (LOAD_OF_ROUND_0, "8")
    earlier = set(lens.locator(".ll-pinned").evaluate_all("cells => cells.map(cell => cell.dataset.lanes)"))
    assert len(later) == len(earlier) == 1
    assert int(*later) + int(*earlier) == 31  # thread i writes what thread 31 - i read
    lens.locator(".ll-red").first.click()
    assert step() in (STORE_OF_ROUND_1, LOAD_OF_ROUND_0)

    # The saved copy follows where the lens rests, and nothing complained.
    lens.get_by_role("button", name="Earlier access").click()
    copy = lab.cell(1).locator("details img")
    wait_for(lambda: "line 8, warp 0, execution 1 of 3" in copy.get_attribute("alt"), 30, "the saved copy to follow")
    assert saved != copy.get_attribute("alt")
    assert lab.red_outputs() == []


def test_without_the_script_the_sliders_are_there(address, open_lab) -> None:
    lab = open_lab(address, "lens.ipynb")
    # anywidget imports the script from a blob; where that is forbidden, nothing of it runs.
    lab.page.add_init_script("URL.createObjectURL = () => { throw new Error('forbidden'); }")
    lab.open_notebook("lens.ipynb")
    lab.run_all()
    assert lab.page.locator(".labkit-lens").count() == 0
    assert lab.cell(1).locator(".labkit-fields").is_visible()
    assert lab.move_and_see(1)
