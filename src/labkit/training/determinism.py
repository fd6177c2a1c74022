"""The same bits every time: only operations that have a deterministic form, and the rest named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from labkit.devices import Device
from labkit.errors import DeviceError, InputError

WORKSPACE = "CUBLAS_WORKSPACE_CONFIG"
FIXED_WORKSPACE = ":4096:8"  # https://docs.nvidia.com/cuda/cublas/#results-reproducibility


def fix_workspace() -> None:
    """Give cuBLAS the workspace with which it repeats its bits; it looks for it when it first multiplies.

    What the reader has set stays as it is. It changes nothing on a CPU.
    """
    os.environ.setdefault(WORKSPACE, FIXED_WORKSPACE)


@contextmanager
def deterministic(device: Device) -> Iterator[None]:
    """Run a block in which torch only uses operations that give the same bits every time; on a CPU most do anyway.

    Raises InputError naming an operation that has no deterministic form, DeviceError where cuBLAS has begun without it.
    """
    if device.kind == "cuda":
        fix_workspace()
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    cudnn = torch.backends.cudnn
    benchmark = cudnn.benchmark
    torch.use_deterministic_algorithms(True)
    cudnn.benchmark = False  # it would choose by time, which is never the same
    try:
        yield
    except RuntimeError as problem:
        _explain(problem)
        raise
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        cudnn.benchmark = benchmark


def _explain(problem: RuntimeError) -> None:
    """Raise an error for readers if problem is torch's refusal; else do nothing."""
    said = str(problem)
    if WORKSPACE in said:
        advice = f'Restart the kernel and begin with: import os; os.environ["{WORKSPACE}"] = "{FIXED_WORKSPACE}"'
        given = "deterministic=True"
        raise DeviceError(given, "cuBLAS has begun without a fixed workspace, and reads it once", advice) from problem
    named = re.match(r"(\S+) does not have a deterministic implementation", said)
    if named:
        advice = "Leave deterministic=True out, or use another operation in the model."
        raise InputError(
            "deterministic=True", f"the operation {named[1]} has no deterministic form in torch", advice
        ) from problem
