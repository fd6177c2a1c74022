"""Take the picture of a lesson that the README shows: one verdict of lesson 02, open, as JupyterLab shows it.

It measures, so run it on a quiet machine: python tools/lesson_picture.py. It needs Chromium, as the browser tests do.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from chromium import find_chromium, how_to_get_chromium  # noqa: E402
from jupyterlab import Lab, headless_browser, jupyter_server, wait_for  # noqa: E402

LESSON = ROOT / "notebooks" / "02_matrix_multiplication.ipynb"
PICTURE = ROOT / "docs" / "lesson.png"
PREDICTION, VERDICT = "predict-tens", "at-thousand"  # ids of cells
STEPS = 32  # of the slider of the prediction, from its left end
SIZE = {"width": 1000, "height": 1400}
COLOURS = 64


def main() -> None:
    """Run the lesson in the normal profile and write the picture."""
    executable = find_chromium()
    if executable is None:
        sys.exit(how_to_get_chromium())
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "lesson" / LESSON.name
        shutil.copytree(LESSON.parent, copy.parent)
        notebook = nbformat.read(copy, as_version=4)
        ids = [cell.id for cell in notebook.cells]
        notebook.cells = notebook.cells[: ids.index(VERDICT) + 1]
        nbformat.write(notebook, copy)
        with (
            jupyter_server(copy.parent, Path(folder) / "home") as address,
            headless_browser(executable) as browser,
            Lab(browser, address) as lab,
        ):
            picture = take(lab, copy.name, ids.index(PREDICTION), ids.index(VERDICT))
    PICTURE.parent.mkdir(exist_ok=True)
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURE, optimize=True)
    print(f"{PICTURE}: {PICTURE.stat().st_size / 1000:.0f} kB")


def take(lab: Lab, name: str, prediction: int, verdict: int) -> Image.Image:
    """Commit to a prediction, run all, open the verdict, and return the cell with the words before it."""
    lab.page.set_viewport_size(SIZE)
    lab.open_notebook(name)
    lab.page.keyboard.press("Control+b")  # folds the sidebar away
    lab.run_all()
    slider = lab.cell(prediction).locator(".noUi-handle").first
    slider.scroll_into_view_if_needed()
    slider.focus()
    for key in ["Home", *["ArrowRight"] * STEPS]:
        slider.press(key)
    lab.cell(prediction).locator("button.jupyter-button").first.click()
    wait_for(lambda: "You predicted" in lab.cell(verdict).inner_html(), 30, "the prediction to arrive")
    lab.unfold()
    lab.cell(verdict).scroll_into_view_if_needed()
    lab.page.wait_for_timeout(500)
    pieces = [Image.open(io.BytesIO(lab.cell(number).screenshot())) for number in (verdict - 1, verdict)]
    heading = lab.cell(verdict - 1).locator("h3").evaluate("node => node.offsetTop")
    pieces[0] = pieces[0].crop((0, heading, *pieces[0].size))
    page = Image.new("RGB", (max(it.width for it in pieces), sum(it.height for it in pieces)), "white")
    for number, piece in enumerate(pieces):
        page.paste(piece, (0, sum(it.height for it in pieces[:number])))
    return page


if __name__ == "__main__":
    main()
