"""Compare the simulator with a real GPU: values, and Nsight Compute's counters: `python -m bench.gpu_counters`.

Needs an NVIDIA GPU with numba-cuda; `ncu` on the path and the permission to read counters for the second table, and
nvdisasm for the last column. This script has not been run on a GPU yet: no machine that has one was at hand.

Requests and sectors are compared with l1tex__t_requests_… and l1tex__t_sectors_…, shared wavefronts with the source
page's memory_l1_wavefronts_shared and …_ideal, because the l1tex conflict counters include arbitration. Where the
compiler merged two accesses (LDG.64) or predicated one away, the last column shows other counts of memory instructions
than the kernel's text has, and the row must be read with that in mind.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench.simt import tiled  # noqa: E402 (the path comes first)
from labkit.simt import Trace, cuda, trace  # noqa: E402

N = 1 << 16
METRICS = {
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "shared_load_requests": "smsp__inst_executed_op_shared_ld.sum",
    "shared_store_requests": "smsp__inst_executed_op_shared_st.sum",
    "shared wavefronts": "memory_l1_wavefronts_shared",
    "shared wavefronts, ideal": "memory_l1_wavefronts_shared_ideal",
}


@dataclass(frozen=True)
class Case:
    """A kernel with its launch."""

    kernel: Callable[..., None]
    grid: Any
    block: Any
    arguments: Callable[[], tuple[np.ndarray, ...]]


def make_strided(name: str, stride: int, offset: int) -> Callable[..., None]:
    """A copy that reads with a stride; its name tells ncu which one it is."""

    def strided(x, y):
        i = cuda.grid(1)
        y[i] = x[i * stride + offset]

    strided.__name__ = strided.__qualname__ = name
    return strided


def make_column(name: str, pitch: int) -> Callable[..., None]:
    """Each warp writes rows and reads columns of a shared array with this pitch."""

    def column(x, y):
        s = cuda.shared.array((32, pitch), np.float32)
        tx = cuda.threadIdx.x
        ty = cuda.threadIdx.y
        s[ty, tx] = x[ty, tx]
        cuda.syncthreads()
        y[ty, tx] = s[tx, ty]

    column.__name__ = column.__qualname__ = name
    return column


def _vectors() -> tuple[np.ndarray, ...]:
    return np.random.default_rng(0).random(4 * N + 8, np.float32), np.zeros(N, np.float32)


def _square(n: int) -> Callable[[], tuple[np.ndarray, ...]]:
    return lambda: (np.random.default_rng(0).random((n, n), np.float32), np.zeros((n, n), np.float32))


def _product() -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return rng.random((128, 128), np.float32), rng.random((128, 128), np.float32), np.zeros((128, 128), np.float32)


CASES = {
    "coalesced": Case(make_strided("coalesced", 1, 0), N // 256, 256, _vectors),
    "misaligned": Case(make_strided("misaligned", 1, 1), N // 256, 256, _vectors),
    "stride_two": Case(make_strided("stride_two", 2, 0), N // 256, 256, _vectors),
    "stride_four": Case(make_strided("stride_four", 4, 0), N // 256, 256, _vectors),
    "column_of_32": Case(make_column("column_of_32", 32), 1, (32, 32), _square(32)),
    "column_of_33": Case(make_column("column_of_33", 33), 1, (32, 32), _square(32)),
    "tiled": Case(tiled, (8, 8), (16, 16), _product),
}


def compare_values(name: str, case: Case) -> tuple[Trace, str]:
    """Run a case on the GPU and in the simulator; return the trace, and "equal" or the largest difference."""
    on_gpu, simulated = case.arguments(), case.arguments()
    cuda.jit(case.kernel)[case.grid, case.block](*on_gpu)
    cuda.synchronize()
    traced = trace(cuda.jit(case.kernel), case.grid, case.block, *simulated)
    worst = max(float(np.abs(a - b).max()) for a, b in zip(on_gpu, simulated, strict=True))
    return traced, "equal" if worst == 0 else f"differ by {worst:.3g}"


def memory_instructions(case: Case) -> str:
    """Return how many memory instructions of each kind the machine code has, as LDG.E=2, or why that is not known."""
    kernel = cuda.jit(case.kernel)
    kernel[case.grid, case.block](*case.arguments())
    try:
        sass = "\n".join(kernel.inspect_sass().values())
    except Exception as error:  # nvdisasm missing, or another version of numba-cuda
        return f"no machine code ({type(error).__name__})"
    found = Counter(re.findall(r"\b(?:LDG|STG|LDS|STS)[.\w]*", sass))
    return " ".join(f"{name}={count}" for name, count in sorted(found.items()))


def profile(name: str) -> dict[str, float]:
    """Run a case under Nsight Compute and return its metrics by our names."""
    command = ["ncu", "--csv", "--page", "raw", "--kernel-name", f"regex:{name}", "--launch-count", "1"]
    command += ["--metrics", ",".join(METRICS.values()), sys.executable, "-m", "bench.gpu_counters", "--launch", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    table = done.stdout[done.stdout.find('"ID"') :] if '"ID"' in done.stdout else ""
    rows = list(csv.DictReader(io.StringIO(table)))
    if done.returncode or len(rows) < 2:
        raise SystemExit(f"ncu failed for {name}:\n{(done.stdout + done.stderr)[-2000:]}")
    values = rows[1]  # row 0 holds the units
    return {ours: float(values[theirs].replace(",", "")) for ours, theirs in METRICS.items() if values.get(theirs)}


def simulated_counters(traced: Trace) -> dict[str, float]:
    """Return the simulator's counters under the names of METRICS."""
    counters = dict(traced.counters)
    wavefronts = counters["shared_load_wavefronts"] + counters["shared_store_wavefronts"]
    conflicts = counters["shared_load_bank_conflicts"] + counters["shared_store_bank_conflicts"]
    counters |= {"shared wavefronts": wavefronts, "shared wavefronts, ideal": wavefronts - conflicts}
    return {name: float(counters[name]) for name in METRICS}


def main() -> int:
    """Print the tables; exit status 1 if values or counters differ, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launch", choices=CASES, help="launch one kernel and leave (this is what ncu runs)")
    options = parser.parse_args()
    if not cuda.is_available():
        print("no usable NVIDIA GPU with numba-cuda here: nothing was compared")
        return 2
    if options.launch:
        case = CASES[options.launch]
        cuda.jit(case.kernel)[case.grid, case.block](*map(cuda.to_device, case.arguments()))
        cuda.synchronize()
        return 0
    differ = False
    for name, case in CASES.items():
        traced, verdict = compare_values(name, case)
        print(f"{name}: values {verdict}; {memory_instructions(case)}")
        if shutil.which("ncu"):
            ours, theirs = simulated_counters(traced), profile(name)
            for what, measured in theirs.items():
                mark = "" if measured == ours[what] else "  DIFFERS"
                differ |= bool(mark)
                print(f"    {what:<26} simulated {ours[what]:>10,.0f}  measured {measured:>10,.0f}{mark}")
        differ |= verdict != "equal" and name != "tiled"  # a GPU may fuse the product's multiply and add
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
