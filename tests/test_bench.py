"""The benchmarks' frame: what is found, what is printed, and how it ends; and the figures of the lessons by hand."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from lessons import ROOT
from nbformat import read

FAKE = """\
import sys
from bench._table import row
def main():
    return {0}
if __name__ == "__main__":
    sys.exit(main())
"""
FAKES = {
    "fast": FAKE.format("0 if row('speed', '5 s', '≤ 40 s', True) else 1"),
    "slow": FAKE.format("0 if row('speed', '50 s', '≤ 40 s', False, 'too slow') else 1"),
    "needs_gpu": FAKE.format("2"),
    "broken": "raise SystemExit(7)",
}


@pytest.fixture
def bench(tmp_path: Path):
    """A function that runs python -m bench with these fake benchmarks beside the real frame."""

    def run(*names: str, arguments: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "bench"
        folder.mkdir()
        for name in ("__init__.py", "__main__.py", "_table.py"):
            shutil.copy(ROOT / "bench" / name, folder / name)
        for name in names:
            (folder / f"{name}.py").write_text(FAKES[name], encoding="utf-8")
        command = [sys.executable, "-m", "bench", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def lessons(monkeypatch):
    """The module bench.lessons; bench is no part of the package and is imported from the checkout."""
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import lessons

    return lessons


def test_met_targets_end_with_0_and_one_row_a_figure(bench) -> None:
    done = bench("fast", "needs_gpu")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith("speed")] == [["speed", "5", "s", "≤", "40", "s", "met"]]
    assert "fast: all targets met" in lines
    assert "needs_gpu: not run: it cannot run on this machine" in lines


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("slow", "slow: a target is MISSED, or it stopped with an error"),
        ("broken", "broken: FAILED with exit status 7"),
    ],
)
def test_a_missed_target_or_a_failure_ends_with_1_after_all_have_run(bench, name: str, line: str) -> None:
    done = bench("fast", name)
    assert done.returncode == 1
    assert line in done.stdout.splitlines()
    assert "fast: all targets met" in done.stdout
    assert ("MISSED  too slow" in done.stdout) == (name == "slow")


def test_one_benchmark_can_be_named(bench) -> None:
    done = bench("fast", "slow", arguments=("fast",))
    assert done.returncode == 0
    assert "slow" not in done.stdout


def test_an_unknown_name_is_refused_with_the_known_ones(bench) -> None:
    done = bench("fast", "slow", arguments=("quick",))
    assert done.returncode == 2
    assert "there is no benchmark called quick; there are fast, slow" in done.stderr


def test_every_benchmark_can_be_run_on_its_own() -> None:
    for path in (ROOT / "bench").glob("[a-z]*.py"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r"^def main\(.*\) -> int:", text, re.MULTILINE), path.name
        assert text.endswith('if __name__ == "__main__":\n    sys.exit(main())\n'), path.name


# --- the lessons -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "met"),
    [
        ('<testcase name="00.ipynb" time="39.9" />', True),
        ('<testcase name="00.ipynb" time="40.1" />', False),
        ('<testcase name="00.ipynb" time="3.0"><failure message="x" /></testcase>', False),
        ('<testcase name="00.ipynb" time="3.0"><error message="x" /></testcase>', False),
        ('<testcase name="00.ipynb" />', False),
    ],
)
def test_a_lesson_meets_its_seconds_only_if_it_also_passed(lessons, case: str, met: bool, capsys) -> None:
    assert lessons.seconds_of(ElementTree.fromstring(case)) is met
    assert ("MISSED" in capsys.readouterr().out) is not met


def test_the_share_is_the_median_over_pairs(lessons, capsys) -> None:
    # Ratios 0.5, 0.96 and 2: one bad pair and one lucky one do not decide.
    assert lessons.row_of_pairs(512, [[50e9, 100e9], [96e9, 100e9], [80e9, 40e9]])
    assert "0.960" in capsys.readouterr().out
    assert not lessons.row_of_pairs(512, [[94e9, 100e9]] * 3)


def test_the_bare_loop_gives_its_median_sample(lessons, monkeypatch) -> None:
    # Samples of 0.01, 0.02 and 0.9 s, then the time is over; each is four calls of 2·10³ FLOP.
    ticks = iter([0, 0.01, 0.03, 0.93])
    monkeypatch.setattr(lessons.time, "perf_counter", lambda: next(ticks))
    assert lessons.bare_flop_per_s(10, calls=4) == pytest.approx(4 * 2 * 1000 / 0.02)


def test_lesson_02_still_has_what_the_comparison_uses(lessons) -> None:
    notebook = read(next(lessons.NOTEBOOKS.glob("02_*.ipynb")), as_version=4)
    ids = [cell.id for cell in notebook.cells]
    source = "\n".join(cell.source for cell in notebook.cells[: ids.index(lessons.AFTER) + 1])
    assert re.search(r"^def make_product\(n, device\):", source, re.MULTILINE)
    assert re.search(r"^every = lab.sweep\(make_product, ", source, re.MULTILINE)
