"""The shared memory that worker processes hand their batches through: how much is free, and how much a loader takes."""

from __future__ import annotations

import os
from typing import Any

SHARED_MEMORY = "/dev/shm"  # where PyTorch puts batches on Linux; a Docker container gets 64 MiB unless told otherwise
NUMBER_BYTES = 8  # a Python number becomes one element of an int64 or float64 tensor


def free_shared_bytes() -> int | None:
    """Return the free bytes of shared memory, or None where the system has no such limit (macOS, Windows)."""
    try:
        found = os.statvfs(SHARED_MEMORY)
    except (AttributeError, OSError):
        return None
    return found.f_bavail * found.f_frsize


def sample_bytes(sample: Any) -> int:
    """Return the bytes of one item of a dataset once it is a tensor; texts and other objects count nothing.

    >>> import torch
    >>> sample_bytes((torch.zeros(3, 4, 4), 7))
    200
    """
    if hasattr(sample, "nbytes"):  # a tensor or an array
        return int(sample.nbytes)
    if isinstance(sample, (int, float)):
        return NUMBER_BYTES
    if isinstance(sample, dict):
        return sum(map(sample_bytes, sample.values()))
    if isinstance(sample, (list, tuple)):
        return sum(map(sample_bytes, sample))
    return 0
