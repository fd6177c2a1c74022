"""The speed, memory and correctness figures of labkit.simt, each beside its target: `python -m bench.simt`.

Everything is a ratio of two things measured in this run, in interleaved pairs, so that it means the same on any
machine. Numba's simulator takes seconds for one launch and is run once, in a process of its own. Exit status 1 if a
target is missed.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]
os.environ.setdefault("LABKIT_SIMT", "cpu")

from bench._table import row  # noqa: E402 (the path and the stand-in come first)
from labkit.simt import cuda, trace  # noqa: E402

TILE = 16
PAIRS = 9
FUZZED = 1000


@dataclass(frozen=True)
class Row:
    """One figure and what it must be."""

    what: str
    value: float
    target: float
    at_least: bool
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.target if self.at_least else self.value <= self.target

    def show(self) -> bool:
        """Print it and return whether the target is met."""
        sign = "≥" if self.at_least else "≤"
        return row(self.what, f"{self.value:,.2f} {self.unit}".rstrip(), f"{sign} {self.target:g}", self.met)


def tiled(a, b, c):
    """The tiled product: each block fills two 16×16 tiles, waits, multiplies, waits."""
    left = cuda.shared.array((TILE, TILE), np.float32)
    right = cuda.shared.array((TILE, TILE), np.float32)
    column, row = cuda.grid(2)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    total = np.float32(0)
    for step in range((a.shape[1] + TILE - 1) // TILE):
        k = step * TILE
        left[ty, tx] = a[row, k + tx] if row < a.shape[0] and k + tx < a.shape[1] else np.float32(0)
        right[ty, tx] = b[k + ty, column] if k + ty < b.shape[0] and column < b.shape[1] else np.float32(0)
        cuda.syncthreads()
        for i in range(TILE):
            total += left[ty, i] * right[i, tx]
        cuda.syncthreads()
    if row < c.shape[0] and column < c.shape[1]:
        c[row, column] = total


def lockstep_by_hand(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """The same kernel as one would write it in NumPy by hand: all threads of all blocks in step, guards included."""
    block_rows, block_columns = -(-c.shape[0] // TILE), -(-c.shape[1] // TILE)
    block, ty, tx = (
        index.ravel()
        for index in np.meshgrid(np.arange(block_rows * block_columns), *[np.arange(TILE)] * 2, indexing="ij")
    )
    row, column = block // block_columns * TILE + ty, block % block_columns * TILE + tx
    own = block * TILE * TILE + ty * TILE + tx
    left_start, right_start = block * TILE * TILE + ty * TILE, block * TILE * TILE + tx
    left, right = np.empty((2, len(block)), np.float32)
    total = np.zeros(len(block), np.float32)
    flat_a, flat_b = a.ravel(), b.ravel()
    for step in range(-(-a.shape[1] // TILE)):
        k = step * TILE
        inside = (row < a.shape[0]) & (k + tx < a.shape[1])
        left[own] = np.where(inside, flat_a.take(np.where(inside, row * a.shape[1] + k + tx, 0)), np.float32(0))
        inside = (k + ty < b.shape[0]) & (column < b.shape[1])
        right[own] = np.where(inside, flat_b.take(np.where(inside, (k + ty) * b.shape[1] + column, 0)), np.float32(0))
        for i in range(TILE):
            total += left.take(left_start + i) * right.take(right_start + i * TILE)
    inside = (row < c.shape[0]) & (column < c.shape[1])
    c[row[inside], column[inside]] = total[inside]


def inputs(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two random n×n matrices of float32 and room for their product."""
    rng = np.random.default_rng(n)
    return *rng.uniform(-1, 1, (2, n, n)).astype(np.float32), np.zeros((n, n), np.float32)


def seconds(action: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def launcher(n: int) -> Callable[[], None]:
    """A launch of the tiled product of n×n matrices, checked once."""
    kernel, (a, b, c) = cuda.jit(tiled), inputs(n)
    blocks = -(-n // TILE)

    def launch() -> None:
        kernel[(blocks, blocks), (TILE, TILE)](a, b, c)

    launch()
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    return launch


def tracer(n: int) -> Callable[[], None]:
    """A full trace of the same launch, which must find nothing."""
    kernel, (a, b, c) = cuda.jit(tiled), inputs(n)
    blocks = -(-n // TILE)

    def full_trace() -> None:
        assert trace(kernel, (blocks, blocks), (TILE, TILE), a, b, c).hazards == ()

    full_trace()
    return full_trace


def ratio(slow: Callable[[], object], fast: Callable[[], object], pairs: int) -> float:
    """How many times longer `slow` takes than `fast`: the median over interleaved pairs."""
    return statistics.median(seconds(slow) / seconds(fast) for _ in range(pairs))


def against_numba_simulator() -> Iterator[Row]:
    """64×64 tiled product: Numba's simulator once, ours before and after it."""
    launch, full_trace = launcher(64), tracer(64)
    ours = [(seconds(launch), seconds(full_trace)) for _ in range(PAIRS)]
    command = [sys.executable, str(Path(__file__).resolve()), "--numba-simulator"]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
    numba_s = float(run.stdout.split()[-1])
    ours += [(seconds(launch), seconds(full_trace)) for _ in range(PAIRS)]
    launch_s, trace_s = (statistics.median(column) for column in zip(*ours, strict=True))
    times = f"{numba_s:.2f} s, launch {launch_s * 1e3:.2f} ms, trace {trace_s * 1e3:.2f} ms"
    print(f"64×64 tiled product: Numba's simulator {times}")
    yield Row("64×64: launch, times faster than Numba's simulator", numba_s / launch_s, 1000, True)
    yield Row("64×64: full trace, times faster than Numba's simulator", numba_s / trace_s, 200, True)


def run_numba_simulator() -> None:
    """Time one launch of the same kernel in Numba's simulator; print seconds."""
    from numba import cuda as numba_cuda

    globals()["cuda"] = numba_cuda
    kernel, (a, b, c) = numba_cuda.jit(tiled), inputs(64)
    elapsed = seconds(lambda: kernel[(4, 4), (TILE, TILE)](a, b, c))
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    print(elapsed)


def scaling() -> Iterator[Row]:
    """Eight times the work must not take more than ten times as long."""
    for name, maker in (("launch", launcher), ("full trace", tracer)):
        actions = {n: maker(n) for n in (64, 128, 256)}
        for small, large in ((64, 128), (128, 256)):
            pairs = PAIRS if name == "launch" else 3
            growth = ratio(actions[large], actions[small], pairs)
            yield Row(f"{name}: time at {large} over time at {small}", growth, 10, False)


def overhead() -> Iterator[Row]:
    """Launch against the hand-written NumPy version."""
    a, b, c = inputs(128)
    lockstep_by_hand(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)
    value = ratio(launcher(128), lambda: lockstep_by_hand(a, b, c), 2 * PAIRS)
    yield Row("128×128: launch over hand-written NumPy lockstep", value, 3, False)


def peak_memory() -> Iterator[Row]:
    """Peak resident memory of a process that traces the 256×256 product."""
    command = [sys.executable, str(Path(__file__).resolve()), "--trace-once"]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    yield Row("256×256: peak memory of a full trace", float(run.stdout.split()[-1]), 1024, False, "MiB")


def fuzzing(count: int) -> Iterator[Row]:
    """Random kernels against the scalar reference: values under every schedule, and no hazard on any of them."""
    from tests.simt import fuzz
    from tests.simt.test_values import run_every_way

    failures = 0
    for seed in range(count):
        case = fuzz.generate(seed)
        try:
            problems = fuzz.mismatches(case, run_every_way)
        except Exception as error:  # a crash is a failure like any other: its source is printed
            problems = [f"{type(error).__name__}: {error}"]
        if problems:
            failures += 1
            print(fuzz.report(case, problems))
    yield Row(f"random kernels that differ or raise an alarm, of {count:,}", failures, 0, False, "")


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fuzz", type=int, default=FUZZED, help="random kernels to check (default %(default)s)")
    parser.add_argument("--numba-simulator", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--trace-once", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.numba_simulator:
        run_numba_simulator()
        return 0
    if options.trace_once:
        tracer(256)
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return 0
    rows: list[Row] = []
    for measure in (overhead, scaling, against_numba_simulator, peak_memory, lambda: fuzzing(options.fuzz)):
        rows += measure()
    met = [found.show() for found in rows]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
