"""Free and total memory by device."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from labkit.devices import cgroups, free_memory_bytes, total_memory_bytes
from labkit.errors import DeviceError

GIB = 2**30


@pytest.fixture(autouse=True)
def _a_machine_with_8_gib(monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=8 * GIB, available=6 * GIB))
    monkeypatch.setattr(cgroups, "memory_limits", lambda root=None: [])


def test_a_cpu():
    assert (total_memory_bytes("cpu"), free_memory_bytes("cpu"), free_memory_bytes()) == (8 * GIB, 6 * GIB, 6 * GIB)


def test_a_cpu_in_a_container(monkeypatch):
    limits = [cgroups.MemoryLimit(4 * GIB, 1 * GIB), cgroups.MemoryLimit(5 * GIB, 3 * GIB)]
    monkeypatch.setattr(cgroups, "memory_limits", lambda root=None: limits)
    assert (total_memory_bytes("cpu"), free_memory_bytes("cpu")) == (4 * GIB, 2 * GIB)


def test_a_cuda_gpu_can_hand_out_again_what_torch_keeps_cached(t4):
    # the stand-in: 16 GiB, 10 free, 3 held by torch's allocator of which 1 is in use, so 10 + (3 - 1)
    assert (total_memory_bytes("cuda"), free_memory_bytes("cuda:0")) == (16 * GIB, 12 * GIB)


def test_apples_gpu_shares_the_memory_of_the_cpu(with_torch):
    torch = with_torch(mps=(None,))  # Metal recommends at most 12 GiB, 2 are in use
    assert (total_memory_bytes("mps"), free_memory_bytes("mps")) == (12 * GIB, 6 * GIB)
    torch.mps.driver_allocated_memory = lambda: 11 * GIB
    assert free_memory_bytes("mps") == 1 * GIB


@pytest.mark.parametrize("device", ["cuda", "tpu", None])
def test_a_device_that_is_not_there_has_no_memory(with_torch, device):
    with_torch(version="2.13.0+cpu")
    for function in (free_memory_bytes, total_memory_bytes):
        with pytest.raises(DeviceError):
            function(device)
