"""Finding, picking and waiting for devices."""

from __future__ import annotations

import pytest
import torch as real_torch

from labkit import hardware
from labkit.devices import facts, gpus
from labkit.devices.gpus import Device, find, pick, synchronize
from labkit.errors import DeviceError, LabkitError

BROKEN = RuntimeError("CUDA error: no kernel image is available for execution on the device")


@pytest.fixture(autouse=True)
def _a_machine_of_its_own(monkeypatch):
    """Let the tests of this module find the same operating system and driver wherever they run."""
    monkeypatch.setattr(facts, "_driver_cuda", lambda: 12080)
    monkeypatch.setattr(facts, "_nvidia_smi", lambda: ())
    monkeypatch.setattr(facts, "VISIBLE_DEVICES_AT_IMPORT", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_the_cpu_comes_first_then_each_gpu_that_passed_the_probe(with_torch):
    with_torch(
        cuda="12.6",
        gpus=[("Tesla T4", (7, 5), None), ("GTX 980", (5, 2), BROKEN), ("NVIDIA H200", (9, 0), None)],
    )
    assert [device.torch_name for device in find()] == ["cpu", "cuda:0", "cuda:2"]
    assert [str(device) for device in find()[1:]] == ["Tesla T4", "NVIDIA H200 (cuda:2)"]


def test_a_gpu_carries_its_entry_of_the_catalogue(t4):
    (_, gpu) = find()
    assert gpu.spec is hardware.match("Tesla T4") is not None
    assert (gpu.memory_bytes, gpu.capability, gpu.is_gpu) == (16 * 2**30, (7, 5), True)


def test_a_cpu_reads_as_a_legend():
    assert str(Device("cpu", 0, "AMD EPYC", cpus=2)) == "AMD EPYC (2 CPUs)"
    assert str(Device("cpu", 0, "AMD EPYC", cpus=1)) == "AMD EPYC (1 CPU)"
    assert str(Device("mps", 0, "Apple M2 GPU")) == "Apple M2 GPU"
    assert Device("mps", 0, "Apple M2 GPU").torch_name == "mps"


@pytest.mark.parametrize(("kind", "index"), [("tpu", 0), ("cuda", -1), ("cuda", float("nan"))])
def test_a_device_that_makes_no_sense_is_refused(kind, index):
    with pytest.raises(LabkitError):
        Device(kind, index, "x")


def test_only_auto_falls_back_to_the_cpu(with_torch):
    with_torch(cuda="12.6", init_error=RuntimeError("No CUDA GPUs are available"))
    assert pick("auto").kind == pick("cpu").kind == pick().kind == "cpu"
    for name in ("cuda", "cuda:0", "mps"):
        with pytest.raises(DeviceError):
            pick(name)


def test_picking_a_gpu(with_torch):
    with_torch(cuda="12.6", gpus=[("A", (8, 0), BROKEN), ("B", (8, 0), None), ("C", (8, 0), None)])
    assert pick("auto").torch_name == pick("cuda").torch_name == pick("cuda:1").torch_name == "cuda:1"
    assert pick("cuda:2").torch_name == "cuda:2"
    assert pick("cpu").kind == "cpu"
    device = pick("cuda:2")
    assert pick(device) is device


def test_a_gpu_that_is_not_there_is_told_which_are(with_torch):
    with_torch(cuda="12.6", gpus=[("A", (8, 0), None)])
    with pytest.raises(DeviceError, match=r'device="cuda:3": this machine has cuda:0 only\. Choose one of cpu, cuda:0'):
        pick("cuda:3")


def test_a_gpu_that_failed_the_probe_is_refused_with_its_own_reason(with_torch):
    with_torch(cuda="12.6", gpus=[("A", (8, 0), None), ("GTX 980", (5, 2), BROKEN)], arch_list=("sm_80",))
    with pytest.raises(DeviceError, match=r"architecture not in this build.*GTX 980 has compute capability 5\.2"):
        pick("cuda:1")


# C03-01: torch's AssertionError is never the student's first sight
def test_cuda_on_a_cpu_only_build_names_the_reason_and_what_to_do(with_torch):
    with_torch(version="2.13.0+cpu")
    with pytest.raises(DeviceError, match=r"CPU-only build.*2\.13\.0\+cpu") as caught:
        pick("cuda")
    assert 'Choose device "auto" or "cpu".' in str(caught.value)


def test_mps_elsewhere_than_on_a_mac(t4, monkeypatch):
    monkeypatch.setattr(facts.platform, "system", lambda: "Linux")
    with pytest.raises(DeviceError, match="mps is Apple's GPU, and this is Linux. Choose one of cpu, cuda:0"):
        pick("mps")


def test_cuda_on_a_mac_whose_gpu_works(with_torch, monkeypatch):
    with_torch(mps=(None,))
    monkeypatch.setattr(facts.platform, "system", lambda: "Darwin")
    assert pick("auto").kind == pick("mps").kind == pick("mps:0").kind == "mps"
    with pytest.raises(DeviceError, match="this machine has no cuda device. Choose one of cpu, mps"):
        pick("cuda")


@pytest.mark.parametrize("name", ["gpu", "CUDA", "cuda:-1", "cuda:x", "", None, 0, "xpu", real_torch.device("meta")])
def test_a_name_that_means_no_device_is_refused(name):
    for function in (pick, synchronize):
        with pytest.raises(DeviceError, match="no device that labkit knows.*Choose one of"):
            function(name)


# C03-04: it does not pretend
def test_picking_after_the_variable_was_changed_says_restart_the_kernel(t4, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.warns(UserWarning, match="restart the kernel"):
        assert pick("auto").torch_name == "cuda:0"
    with pytest.warns(UserWarning), pytest.raises(DeviceError, match="restart the kernel"):
        pick("cuda:1")


# C02-05: the type of the device decides, and on a CPU nothing ever raises
@pytest.mark.parametrize("device", ["cpu", "cpu:0", real_torch.device("cpu"), real_torch.zeros(1)])
def test_waiting_for_a_cpu_calls_nothing_of_torch(monkeypatch, device):
    def never(*_):
        raise AssertionError("Torch not compiled with CUDA enabled")

    for module in (real_torch.cuda, real_torch.mps, real_torch.accelerator):
        monkeypatch.setattr(module, "synchronize", never)
    assert synchronize(device) is None
    assert synchronize(pick("cpu")) is None


@pytest.mark.parametrize(
    ("device", "called"),
    [
        ("cuda", ("cuda", None)),
        ("cuda:1", ("cuda", 1)),
        (Device("cuda", 1, "B"), ("cuda", 1)),
        (real_torch.device("cuda:1"), ("cuda", 1)),
        (real_torch.device("cuda"), ("cuda", None)),
    ],
)
def test_waiting_for_a_gpu_waits_for_that_one(with_torch, device, called):  # C02-05
    torch = with_torch(cuda="12.6", gpus=[("A", (8, 0), None), ("B", (8, 0), None)])
    synchronize(device)
    assert torch.log == [called]


def test_waiting_for_apples_gpu(with_torch):  # C02-05
    torch = with_torch(mps=(None,))
    for device in ("mps", "mps:0", real_torch.device("mps"), Device("mps", 0, "Apple M2 GPU")):
        synchronize(device)
    assert torch.log == [("mps",)] * 4


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "mps", real_torch.device("cuda", 0)])
def test_waiting_for_a_gpu_that_is_not_there_is_a_device_error(with_torch, device):
    with_torch(version="2.13.0+cpu")
    with pytest.raises(DeviceError):
        synchronize(device)


def test_waiting_for_one_gpu_too_many(t4):
    with pytest.raises(DeviceError, match="this machine has cuda:0 only"):
        synchronize("cuda:1")


@pytest.mark.skipif(real_torch.cuda.is_available(), reason="this machine has a CUDA GPU: nothing to refuse")
def test_a_gpu_is_refused_on_this_very_machine():
    with pytest.raises(DeviceError):
        pick("cuda")
    with pytest.raises(DeviceError):
        gpus.synchronizer("cuda:0")
