"""How much memory a device has and how much of it is free, container limits counted."""

from __future__ import annotations

from typing import Any

from labkit.devices.cpus import free_cpu_memory_bytes, total_cpu_memory_bytes
from labkit.devices.gpus import Device, parse_name, pick
from labkit.errors import LabkitError

# What torch says on CUDA, on MPS and on CPUs (Linux and macOS, Windows).
NO_MEMORY_TEXTS = ("out of memory", "status_alloc_failed", "invalid buffer size")
NO_MEMORY_TEXTS += ("can't allocate memory", "not enough memory")


def total_memory_bytes(device: Any = "cpu") -> int:
    """Return the bytes of memory that the device has for this process. Raises DeviceError for one that is not there.

    >>> total_memory_bytes("cpu") >= free_memory_bytes("cpu") > 0
    True
    """
    picked = _picked(device)
    if picked.kind == "cuda":
        return _cuda().mem_get_info(picked.index)[1]
    if picked.kind == "mps" and picked.memory_bytes is not None:
        return picked.memory_bytes
    return total_cpu_memory_bytes()


def free_memory_bytes(device: Any = "cpu") -> int:
    """Return the bytes that could still be allocated on the device. Raises DeviceError for one that is not there.

    On a GPU this includes what torch keeps cached and would hand out again; Apple's GPU shares the CPU's memory, so
    both limits hold.
    """
    picked = _picked(device)
    if picked.kind == "cuda":
        cuda = _cuda()
        cached_bytes = cuda.memory_reserved(picked.index) - cuda.memory_allocated(picked.index)
        return cuda.mem_get_info(picked.index)[0] + max(0, cached_bytes)
    free_bytes = free_cpu_memory_bytes()
    if picked.kind == "mps" and picked.memory_bytes is not None:
        import torch

        return min(free_bytes, max(0, picked.memory_bytes - torch.mps.driver_allocated_memory()))
    return free_bytes


def _picked(device: Any) -> Device:
    if isinstance(device, (Device, str)):
        return pick(device)
    kind, index = parse_name(device)
    return pick(kind if index is None or kind != "cuda" else f"{kind}:{index}")


def _cuda() -> Any:
    import torch

    return torch.cuda


def is_out_of_memory(problem: Exception) -> bool:
    """Tell whether an error of Python or torch says that memory ran out, on any device.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")), is_out_of_memory(ValueError("2"))
    (True, False)
    """
    if isinstance(problem, LabkitError):
        return False
    return isinstance(problem, MemoryError) or any(text in str(problem).lower() for text in NO_MEMORY_TEXTS)
