"""Gathering facts: what is seen is passed on, and nothing that goes wrong on the way raises."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import warnings
from types import SimpleNamespace

import pytest

from labkit.devices import facts


@pytest.fixture
def no_driver(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(facts.ctypes, "CDLL", missing)
    monkeypatch.setattr(facts.shutil, "which", lambda tool, path=None: None)
    monkeypatch.setattr(facts.platform, "system", lambda: "Linux")


def test_a_probe_believes_only_the_right_value(with_torch):
    torch = with_torch(
        cuda="12.6",
        gpus=[("good", (8, 0), None), ("wrong", (8, 0), 15), ("broken", (8, 0), RuntimeError("CUDA error: x\nmore"))],
    )
    # by hand: 0, 1, 2, 3 times two plus one is 1, 3, 5, 7, together 16
    assert facts.probe(torch, "cuda:0") == ""
    assert facts.probe(torch, "cuda:1") == "1 + 3 + 5 + 7 came out as 15"
    assert facts.probe(torch, "cuda:2") == "RuntimeError: CUDA error: x"


def test_the_probe_runs_on_the_real_torch():
    import torch

    assert facts.probe(torch, "cpu") == ""
    assert "Error" in facts.probe(torch, "hpu")


def test_gpus_with_what_their_probe_gave(with_torch, no_driver, tmp_path):
    with_torch(
        cuda="12.6",
        gpus=[("Tesla T4", (7, 5), None), ("GTX 980", (5, 2), RuntimeError("no kernel image"))],
        arch_list=("sm_75",),
    )
    seen = facts.gather(tmp_path)
    assert [(gpu.index, gpu.name, gpu.capability, gpu.error) for gpu in seen.gpus] == [
        (0, "Tesla T4", (7, 5), ""),
        (1, "GTX 980", (5, 2), "RuntimeError: no kernel image"),
    ]
    assert [gpu.name for gpu in seen.usable_gpus] == ["Tesla T4"]
    assert (seen.cuda_build, seen.arch_list, seen.torch_version) == ("12.6", ("sm_75",), "2.13.0")


def test_apples_gpu(with_torch, no_driver, tmp_path):
    with_torch(mps=(None,))
    (gpu,) = facts.gather(tmp_path).gpus
    assert (gpu.kind, gpu.error, gpu.memory_bytes) == ("mps", "", 12 * 2**30)


def test_why_apples_gpu_is_unavailable_is_asked(with_torch, no_driver, tmp_path):
    with_torch(mps_built=True)
    seen = facts.gather(tmp_path)
    assert (seen.mps_built, seen.mps_available, seen.gpus) == (True, False, ())
    assert seen.mps_error == "RuntimeError: no mps in this build"


def test_torch_is_made_to_say_why_even_where_it_has_said_so_before(with_torch, no_driver, tmp_path):
    torch = with_torch(cuda="12.6", init_error=RuntimeError("The NVIDIA driver on your system is too old"))
    assert facts.gather(tmp_path).cuda_error == "RuntimeError: The NVIDIA driver on your system is too old"

    def warn():
        warnings.warn("CUDA initialization: said once", stacklevel=1)
        return False

    torch.cuda.is_available, torch.cuda.init = warn, lambda: None
    assert facts.gather(tmp_path).cuda_error == "CUDA initialization: said once"


def test_devices_and_driver_that_linux_lists(with_torch, no_driver, linux_root):
    with_torch()
    root = linux_root(
        {
            "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n",
            "sys/bus/pci/devices/0000:01:00.1/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",  # its sound device
            "sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
            "sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
            "proc/driver/nvidia/version": (
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.133.20  Release Build  (dvs)\n"
                "GCC version:  gcc version 13.3.0\n"
            ),
            "proc/version": "Linux version 6.8.0-45-generic (buildd@lcy02) #45-Ubuntu SMP",
        }
    )
    seen = facts.gather(root)
    assert (seen.nvidia_devices, seen.driver_version, seen.is_wsl) == (("PCI 0000:01:00.0",), "570.133.20", False)


def test_wsl_is_recognised_and_its_devices_are_not_known(with_torch, no_driver, linux_root):
    with_torch()
    seen = facts.gather(linux_root({"proc/version": "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@x)"}))
    assert (seen.is_wsl, seen.nvidia_devices) == (True, None)


def test_an_embedded_gpu_is_not_on_the_pci_bus(with_torch, no_driver, linux_root):
    with_torch()
    seen = facts.gather(linux_root({"proc/device-tree/compatible": "nvidia,p3768\0nvidia,tegra234\0"}))
    assert seen.nvidia_devices == ("NVIDIA Tegra",)


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("NVIDIA H200, 570.133.20\nNVIDIA H200, 570.133.20\n", (("NVIDIA H200", "570.133.20"),) * 2),
        ("Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.133\n", ()),
        ("No devices were found\n", ()),
        ("", ()),
    ],
)
def test_what_nvidia_smi_prints(printed, found):
    assert facts.parse_nvidia_smi(printed) == found


def test_nvidia_smi_names_devices_and_driver(with_torch, no_driver, monkeypatch, tmp_path):
    with_torch()
    monkeypatch.setattr(facts.shutil, "which", lambda tool, path=None: path and f"{path}/{tool}")
    ran = []
    monkeypatch.setattr(
        facts.subprocess,
        "run",
        lambda command, **_: ran.append(command[0]) or SimpleNamespace(stdout="NVIDIA RTX A2000, 552.22\n"),
    )
    seen = facts.gather(tmp_path)
    assert (seen.nvidia_devices, seen.driver_version) == (("NVIDIA RTX A2000",), "552.22")
    assert ran == ["/usr/lib/wsl/lib/nvidia-smi"]


@pytest.mark.parametrize(("status", "version", "found"), [(0, 12040, 12040), (0, 0, None), (3, 12040, None)])
def test_the_drivers_library_is_asked_for_its_cuda_version(monkeypatch, status, version, found):
    def get_version(pointer):
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int))[0] = version
        return status

    monkeypatch.setattr(facts.ctypes, "CDLL", lambda name: SimpleNamespace(cuDriverGetVersion=get_version))
    assert facts._driver_cuda() == found


@pytest.mark.parametrize(("status", "value", "translated"), [(0, 1, True), (0, 0, False), (-1, 0, False)])
def test_rosetta_is_asked_for_on_a_mac_only(monkeypatch, status, value, translated):
    def by_name(name, pointer, size, new, new_size):
        assert name == b"sysctl.proc_translated"
        ctypes.cast(pointer, ctypes.POINTER(ctypes.c_int))[0] = value
        return status

    monkeypatch.setattr(facts.ctypes, "CDLL", lambda name: SimpleNamespace(sysctlbyname=by_name))
    monkeypatch.setattr(facts.platform, "system", lambda: "Darwin")
    assert facts._is_translated() is translated
    monkeypatch.setattr(facts.platform, "system", lambda: "Linux")
    assert facts._is_translated() is False


class _Hostile:
    def __getattr__(self, name):
        raise RuntimeError(f"{name} is broken")


# C09-06
def test_gathering_never_raises(monkeypatch, tmp_path):
    def broken(*_, **__):
        raise subprocess.TimeoutExpired("nvidia-smi", 10)

    monkeypatch.setattr(facts.ctypes, "CDLL", broken)
    monkeypatch.setattr(facts.shutil, "which", lambda tool, path=None: tool)
    monkeypatch.setattr(facts.subprocess, "run", broken)
    monkeypatch.setitem(sys.modules, "torch", _Hostile())
    assert facts.gather(tmp_path / "nowhere").torch_version is None
    monkeypatch.setitem(sys.modules, "torch", None)  # import torch now fails
    assert "ModuleNotFoundError" in facts.gather(tmp_path).torch_error


def test_this_machine_is_seen_as_it_is():
    import platform

    import torch

    seen = facts.gather()
    assert (seen.system, seen.architecture) == (platform.system(), platform.machine())
    assert (seen.torch_version, seen.cuda_build) == (torch.__version__, torch.version.cuda)
    assert len([gpu for gpu in seen.gpus if gpu.kind == "cuda"]) == torch.cuda.device_count()
