"""How long each lesson takes in the quick profile, and whether lesson 02's best FLOP/s is what the machine can do."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench._table import middle_half, row

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
NBMAKE = ["--override-ini=addopts=--import-mode=importlib", "--nbmake", "--nbmake-timeout=120"]

MOST_S = 40.0
LEAST_SHARE = 0.95
PAIRS = 41
BARE_S = 0.15  # what the quick profile grants to a measurement
AFTER = "sweep-products"  # the cell of lesson 02 that measures the products, and sets the names used below
COMPARE = "from bench.lessons import compare\n\ncompare(make_product, every)"


def main() -> int:
    """Print each figure beside its target; return 1 if one was missed, else 0."""
    return 0 if all([seconds_of_lessons(), best_flop_per_s()]) else 1


# --- seconds -----------------------------------------------------------------------------------------------------


def seconds_of_lessons() -> bool:
    """Execute every lesson as the tests do, and compare the seconds of each with what it may take."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "--quiet", *NBMAKE, f"--junitxml={report}", str(NOTEBOOKS)]
        environment = os.environ | {"LABKIT_PROFILE": "quick"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if not report.is_file():
            print(done.stdout + done.stderr)
            return row("the lessons", "not executed", f"≤ {MOST_S:.0f} s", False)
        cases = list(ElementTree.parse(report).iter("testcase"))
    return all([bool(cases), *(seconds_of(case) for case in cases)])


def seconds_of(case: ElementTree.Element) -> bool:
    """Print the row of one executed notebook; one that failed has missed its target, however fast."""
    what, seconds = f"{case.get('name')}, quick profile", float(case.get("time", "nan"))
    failed = case.find("failure") is not None or case.find("error") is not None
    return row(what, f"{seconds:.1f} s", f"≤ {MOST_S:.0f} s", not failed and seconds <= MOST_S, "FAILED" * failed)


# --- FLOP/s ------------------------------------------------------------------------------------------------------


def best_flop_per_s() -> bool:
    """Run lesson 02 up to its products, then compare its best FLOP/s with that of a bare loop, in the same kernel."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(next(NOTEBOOKS.glob("02_*.ipynb")), as_version=4)
    last = next(index for index, cell in enumerate(notebook.cells) if cell.id == AFTER)
    notebook.cells = [*notebook.cells[: last + 1], nbformat.v4.new_code_cell(COMPARE)]
    with tempfile.TemporaryDirectory() as results:
        path = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        environment = os.environ | {"LABKIT_PROFILE": "quick", "LABKIT_RESULTS": results, "PYTHONPATH": path}
        client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(NOTEBOOKS)}})
        client.execute(env=environment)
    return row_of_pairs(*json.loads(notebook.cells[-1].outputs[-1].text))


def row_of_pairs(n: int, pairs: list[list[float]]) -> bool:
    """Print the median over pairs of what the lesson finds over what the bare loop reaches, both in FLOP/s."""
    ratios = [lesson / bare for lesson, bare in pairs]
    found = statistics.median(ratios)
    best_lesson, best_bare = (max(column) / 1e9 for column in zip(*pairs, strict=True))
    note = f"{middle_half(ratios)}; n={n}, at best {best_lesson:.0f} and {best_bare:.0f} GFLOP/s"
    what = "lesson 02's best CPU FLOP/s over a bare torch.mm loop's"
    return row(what, f"{found:.3f}", f"≥ {LEAST_SHARE}", found >= LEAST_SHARE, note)


def compare(make_product: Callable[[int, str], Callable[[], Any]], every: Any) -> None:
    """Print, as JSON, the size where the lesson's sweep found the most FLOP/s, and pairs of FLOP/s at that size.

    It is called inside the lesson. A pair is what the lesson's way of measuring finds and what a bare loop on the same
    threads reaches; which of them comes first changes from pair to pair. The first pair holds the lesson's own number.
    """
    import torch

    from labkit.timing import measure

    found = max(every.measurements, key=lambda m: m.flop_per_s)
    n, threads, flop = found.task.parameters["n"], found.threads, found.task.flop
    product = make_product(n, "cpu")
    torch.set_num_threads(threads)
    pairs = [[found.flop_per_s, bare_flop_per_s(n, found.calls_per_sample)]]
    while len(pairs) < PAIRS:
        bare = [bare_flop_per_s(n, found.calls_per_sample)] if len(pairs) % 2 else []
        found = measure(product, device="cpu", label="torch", flop=flop, threads=threads)
        bare = bare or [bare_flop_per_s(n, found.calls_per_sample)]
        pairs.append([found.flop_per_s, *bare])
    print(json.dumps([n, pairs]))


def bare_flop_per_s(n: int, calls: int) -> float:
    """Return the FLOP/s of torch.mm in a bare loop: the median of samples of so many calls, as measure takes them.

    Samples of the same length meet other programs' turns alike: the ratio means something on a busy machine, too.
    """
    import torch

    a = torch.rand(n, n)
    torch.mm(a, a)
    times_s, now_s = [], time.perf_counter()
    end_s = now_s + BARE_S
    while now_s < end_s:
        for _ in range(calls):
            torch.mm(a, a)
        before_s, now_s = now_s, time.perf_counter()
        times_s.append(now_s - before_s)
    return 2 * n**3 * calls / statistics.median(times_s)


if __name__ == "__main__":
    sys.exit(main())
