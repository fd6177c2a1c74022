"""What labkit's import and its timer cost, and whether the timer agrees with torch.utils.benchmark."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from bench._pairs import paired
from bench._table import middle_half, row

SIZES = (64, 128, 256, 512, 1024)
MIN_TIME_S = 0.05
# The timers are compared, not the machine's other programs: on one thread, by the time that this thread was given.
# By the wall clock their samples differ on a busy machine, since the longer ones contain other programs' turns.
THREADS = 1
CLOCK = time.thread_time
HEAVY = ("numpy", "torch", "matplotlib", "ipywidgets", "IPython", "tqdm")

MOST_IMPORT_S = 0.1
RATIOS = (0.95, 1.05)
MOST_OVERHEAD_S = 1e-6


def main() -> int:
    """Print each figure beside its target; return 1 if one was missed, else 0."""
    reached = [import_time(), modules_loaded(), *(agreement(n) for n in SIZES), overhead()]
    return 0 if all(reached) else 1


def import_time() -> bool:
    """Compare Python with and without `import labkit`, in pairs that take turns."""
    differences_s = paired(lambda: _start_s("import labkit"), lambda: _start_s("pass"), lambda a, b: a - b)
    found_s = statistics.median(differences_s)
    return _row(
        "import labkit adds", f"{found_s * 1e3:.1f} ms", "≤ 100 ms", found_s <= MOST_IMPORT_S, differences_s, 1e3
    )


def modules_loaded() -> bool:
    """Name the heavy packages that `import labkit` loads."""
    program = f"import sys, labkit; print(*(name for name in {HEAVY} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    return _row("import labkit loads", ", ".join(loaded) or "nothing heavy", "nothing heavy", not loaded)


def agreement(n: int) -> bool:
    """Compare measure with adaptive_autorange on torch.mm of n × n, both on THREADS, in pairs that take turns."""
    import torch
    from torch.utils.benchmark import Timer

    from labkit.timing import measure

    a, b = torch.rand(n, n), torch.rand(n, n)
    timer = Timer("torch.mm(a, b)", globals={"a": a, "b": b}, num_threads=THREADS, timer=CLOCK)

    def ours() -> float:
        found = measure(lambda: torch.mm(a, b), device="cpu", threads=THREADS, min_time_s=MIN_TIME_S, clock=CLOCK)
        return found.median_s

    def theirs() -> float:
        return timer.adaptive_autorange(min_run_time=MIN_TIME_S, max_run_time=10 * MIN_TIME_S).median

    ratios = paired(ours, theirs, lambda x, y: x / y)
    found = statistics.median(ratios)
    target = f"{RATIOS[0]}–{RATIOS[1]}"
    return _row(f"torch.mm n={n}: ours / theirs", f"{found:.3f}", target, RATIOS[0] <= found <= RATIOS[1], ratios)


def overhead() -> bool:
    """Measure a function that does nothing: all that is found is the cost of the loop and of the call itself."""
    from labkit.timing import measure

    def nothing() -> None:
        pass

    found = [measure(nothing, device="cpu", min_time_s=MIN_TIME_S).median_s for _ in range(5)]
    found_s = statistics.median(found)
    return _row("a call that does nothing", f"{found_s * 1e9:.0f} ns", "< 1 µs", found_s < MOST_OVERHEAD_S, found, 1e9)


def _start_s(program: str) -> float:
    start_s = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start_s


def _row(what: str, found: str, target: str, reached: bool, series: Sequence[float] = (), scale: float = 1.0) -> bool:
    return row(what, found, target, reached, middle_half(series, scale) if series else "")


if __name__ == "__main__":
    sys.exit(main())
