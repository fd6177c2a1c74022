"""How much memory a device has and how much of it is free, container limits counted."""

from __future__ import annotations

from typing import Any

from labkit.devices.cpus import free_cpu_memory_bytes, total_cpu_memory_bytes
from labkit.devices.gpus import Device, parse_name, pick


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
