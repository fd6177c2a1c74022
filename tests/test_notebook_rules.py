"""The rules of notebook style, on a small lesson that keeps them all and on ones that break them one at a time."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from nbformat import v4
from notebook_style import RULES, Notebook, set_up_without_number, units_spelt_right

SETUP = 'from labkit import lesson\n\nlab = lesson.start("01")'
# 4 lines of code outside the set-up cell; 10 words a line is in the middle of what is allowed.
PROSE = "one two three four five six seven eight nine ten " * 4


def good_notebook() -> dict[str, Any]:
    """Return the JSON of a lesson that keeps every rule."""
    cells = [
        v4.new_markdown_cell("# Is a GPU faster?\n\n" + PROSE),
        v4.new_code_cell(SETUP, metadata={"tags": ["setup"]}),
        v4.new_code_cell("time = 1", metadata={"tags": ["experiment"]}),
        *(v4.new_code_cell(f"answer_{n} = ...", metadata={"tags": ["exercise"]}) for n in (1, 2, 3)),
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def broken_rules(raw: dict[str, Any]) -> set[str]:
    """Return the names of the rules that a notebook breaks."""
    notebook = Notebook(Path("01_speed.ipynb"), raw)
    return {rule.__name__ for rule in RULES if list(rule(notebook))}


def code(raw: dict[str, Any], number: int) -> dict[str, Any]:
    """Return one of the code cells."""
    return [cell for cell in raw["cells"] if cell["cell_type"] == "code"][number]


def test_good_notebook_keeps_every_rule() -> None:
    assert broken_rules(good_notebook()) == set()


def store_output(raw: dict[str, Any]) -> None:
    code(raw, 1)["outputs"] = [v4.new_output("stream", text="1.2 s")]


def store_count(raw: dict[str, Any]) -> None:
    code(raw, 1)["execution_count"] = 3


def store_widgets(raw: dict[str, Any]) -> None:
    raw["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}


def store_cell_notes(raw: dict[str, Any]) -> None:
    code(raw, 1)["metadata"]["execution"] = {"iopub.status.busy": "2026-01-01T00:00:00Z"}


def drop_id(raw: dict[str, Any]) -> None:
    del code(raw, 1)["id"]


def share_id(raw: dict[str, Any]) -> None:
    code(raw, 1)["id"] = code(raw, 2)["id"]


def old_format(raw: dict[str, Any]) -> None:
    raw["nbformat_minor"] = 4


def other_kernel(raw: dict[str, Any]) -> None:
    raw["metadata"]["kernelspec"]["name"] = "gpu-course"


def long_limit(raw: dict[str, Any]) -> None:
    raw["metadata"]["execution"] = {"timeout": 600}


def no_limit(raw: dict[str, Any]) -> None:
    raw["metadata"]["execution"] = {"timeout": -1}


def shell_line(raw: dict[str, Any]) -> None:
    code(raw, 1)["source"] = "!nvidia-smi"


def shell_assignment(raw: dict[str, Any]) -> None:
    code(raw, 1)["source"] = "lines = !nvidia-smi"


def shell_cell(raw: dict[str, Any]) -> None:
    code(raw, 1)["source"] = "%%bash\nnvidia-smi"


def pip_magic(raw: dict[str, Any]) -> None:
    code(raw, 1)["source"] = "%pip install ipywidgets"


def two_setups(raw: dict[str, Any]) -> None:
    code(raw, 1)["metadata"]["tags"] = ["setup"]


def other_number(raw: dict[str, Any]) -> None:
    code(raw, 0)["source"] = SETUP.replace("01", "02")


def no_question(raw: dict[str, Any]) -> None:
    raw["cells"][0]["source"] = "# Speed\n\n" + PROSE


def two_exercises(raw: dict[str, Any]) -> None:
    code(raw, 4)["metadata"]["tags"] = []


def long_cell(raw: dict[str, Any]) -> None:
    raw["cells"].append(v4.new_code_cell("# a comment is read too\n" * 21))


def long_median(raw: dict[str, Any]) -> None:
    for number in (1, 2, 3):
        code(raw, number)["source"] = "x = 1\n" + "# why\n" * 6


def too_many_middling_cells(raw: dict[str, Any]) -> None:
    code(raw, 1)["source"] = "x = 1\n" + "# why\n" * 12


def little_prose(raw: dict[str, Any]) -> None:
    raw["cells"][0]["source"] = "# Is a GPU faster?\n\nnot enough words here"


def too_much_prose(raw: dict[str, Any]) -> None:
    raw["cells"][0]["source"] += PROSE


# C08-05, C09-01, C09-02, C09-06
@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        (store_output, "no_outputs"),
        (store_count, "no_outputs"),
        (store_widgets, "no_leftover_metadata"),
        (store_cell_notes, "no_leftover_metadata"),
        (drop_id, "cell_ids"),
        (share_id, "cell_ids"),
        (old_format, "valid_format"),
        (other_kernel, "own_kernel"),
        (long_limit, "time_limit"),
        (no_limit, "time_limit"),
        (shell_line, "no_shell_lines"),
        (shell_assignment, "no_shell_lines"),
        (shell_cell, "no_shell_lines"),
        (pip_magic, "no_shell_lines"),
        (two_setups, "setup_cell_first"),
        (other_number, "setup_cell_first"),
        (no_question, "title_is_a_question"),
        (two_exercises, "enough_exercises"),
        (long_cell, "short_cells"),
        (long_median, "short_cells"),
        (too_many_middling_cells, "short_cells"),
        (little_prose, "enough_prose"),
        (too_much_prose, "enough_prose"),
    ],
)
def test_broken_notebook_is_caught(spoil: Any, rule: str) -> None:
    raw = copy.deepcopy(good_notebook())
    spoil(raw)
    assert rule in broken_rules(raw)


@pytest.mark.parametrize(
    "text",
    [
        "the utilisation of the GPU",
        "Operational intensity",
        "a roof line",
        "a speed-up of two",
        "we synchronize first",
        "its behavior",
        "90 GFLOPS",
        "90 gflop/s",
        "15 us",
        "2.5us",
        "30 sec",
        "48 KB",
        "48KB",
        "900 GBps",
        "5ms later",
        "16GB of memory",
    ],
)
def test_words_and_units_that_are_refused(text: str) -> None:
    raw = good_notebook()
    raw["cells"].append(v4.new_markdown_cell(text))
    assert broken_rules(raw) & {"one_word_per_thing", "units_spelt_right"}


@pytest.mark.parametrize(
    "text",
    [
        "occupancy, and the share of the time; arithmetic intensity; roofline; speedup; an optimizer",
        "90 GFLOP/s after 2 TFLOP in 15 µs, 2.5 ms or 30 s; 48 kB, 48 KiB, 900 GB/s, 16 GB, 70 W",
        "the 1990s, an H100, T4s, C02-01 and 3D; FLOPs counted",
        "in code `a_flops` and `15us`, [a link](https://example.org/speed-up), <span color='x'>text</span>",
    ],
)
def test_words_and_units_that_are_right(text: str) -> None:
    raw = good_notebook()
    raw["cells"].append(v4.new_markdown_cell(text))
    assert not broken_rules(raw) & {"one_word_per_thing", "units_spelt_right"}


def test_kernel_under_study_may_be_long() -> None:
    raw = good_notebook()
    raw["cells"].append(v4.new_code_cell("# a kernel\n" * 21, metadata={"tags": ["kernel-under-study"]}))
    raw["cells"] += [v4.new_code_cell("# short") for _ in range(10)]
    assert broken_rules(raw) == set()


def test_set_up_cells_differ_in_the_number_alone() -> None:
    first, second = good_notebook(), good_notebook()
    code(second, 0)["source"] = SETUP.replace("01", "02")
    same = [Notebook(Path("01_a.ipynb"), first), Notebook(Path("02_b.ipynb"), second)]
    assert set_up_without_number(same[0]) == set_up_without_number(same[1])
    code(second, 0)["source"] += "  # copied, then changed"
    assert set_up_without_number(same[0]) != set_up_without_number(same[1])


def test_a_fault_names_what_was_found_and_what_to_write() -> None:
    raw = good_notebook()
    raw["cells"].append(v4.new_markdown_cell("15 us"))
    assert list(units_spelt_right(Notebook(Path("01_a.ipynb"), raw))) == ["'15 us': write µs"]
