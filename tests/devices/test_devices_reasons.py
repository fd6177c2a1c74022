"""Every reason for having no GPU, decided from facts as they were reported from machines where it happened."""

from __future__ import annotations

import pytest

from labkit.devices import facts as facts_module
from labkit.devices import reasons
from labkit.devices.facts import Facts, GpuFact
from labkit.devices.reasons import Reason, decide, has_code_for

# A Linux machine with a working driver and a GPU, on which nothing else is known to be wrong.
LINUX = {"system": "Linux", "architecture": "x86_64", "torch_version": "2.13.0+cu126", "cuda_build": "12.6"}
DRIVER = {"driver_version": "550.54.15", "driver_cuda": 12040, "nvidia_devices": ("Tesla T4",)}
ARCHS = ("sm_75", "sm_80", "sm_86", "sm_90", "compute_90")

TOO_OLD = (
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by "
    "downloading and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"
)
NO_DRIVER = "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"
NO_GPUS = "RuntimeError: No CUDA GPUs are available"
NO_IMAGE = "AcceleratorError: CUDA error: no kernel image is available for execution on the device"


def gpu(capability=(7, 5), error="", name="Tesla T4", index=0):
    return GpuFact("cuda", index, name, 16 * 2**30, capability, error)


def test_a_gpu_that_passed_the_probe_needs_no_reason():
    assert decide(Facts(**LINUX, **DRIVER, gpus=(gpu(),))) is None
    assert decide(Facts(**LINUX, **DRIVER, gpus=(gpu(error="broken"), gpu(index=1)))) is None
    assert decide(Facts(system="Darwin", torch_version="2.13.0", gpus=(GpuFact("mps", 0, "Apple M2 GPU"),))) is None


# C03-01
def test_cpu_only_build():
    build = {"system": "Linux", "torch_version": "2.13.0+cpu"}
    found = decide(Facts(**build, nvidia_devices=("PCI 0000:01:00.0",)))
    assert found.reason is Reason.CPU_ONLY_BUILD
    assert "2.13.0+cpu" in found.explanation and "PCI 0000:01:00.0" in found.explanation
    assert "Reinstall PyTorch for GPU" in found.advice and "every lesson runs on the CPU" in found.advice


@pytest.mark.parametrize(("devices", "says"), [((), "lists no NVIDIA device either"), (None, "CPU-only build")])
def test_cpu_only_build_where_reinstalling_alone_may_not_help(devices, says):
    found = decide(Facts(system="Windows", torch_version="2.13.0+cpu", nvidia_devices=devices))
    assert found.reason is Reason.CPU_ONLY_BUILD
    assert says in found.explanation
    assert ("If this machine has an NVIDIA GPU" in found.advice) is (devices is None)


def test_driver_too_old_as_torch_says_it():
    found = decide(Facts(**LINUX, driver_version="470.82.01", driver_cuda=11040, cuda_error=TOO_OLD))
    assert found.reason is Reason.DRIVER_TOO_OLD
    assert "driver 470.82.01 supports CUDA up to 11.4" in found.explanation  # 11040, decoded
    assert "built for CUDA 12.6" in found.explanation
    assert TOO_OLD in found.explanation
    assert "version 525 or newer" in found.advice and "built for CUDA 11" in found.advice


def test_driver_too_old_by_its_numbers_alone():
    build = LINUX | {"cuda_build": "13.0", "torch_version": "2.13.0+cu130"}
    found = decide(Facts(**build, driver_cuda=12040))
    assert found.reason is Reason.DRIVER_TOO_OLD
    assert "up to 12.4" in found.explanation and "CUDA 13.0" in found.explanation
    assert "version 580 or newer" in found.advice


def test_an_older_driver_of_the_same_major_version_will_do():
    found = decide(Facts(**LINUX | {"cuda_build": "12.9"}, **DRIVER, cuda_error="RuntimeError: something else"))
    assert found.reason is Reason.UNKNOWN


def test_under_wsl_the_driver_is_updated_in_windows():
    found = decide(Facts(**LINUX, is_wsl=True, driver_cuda=11040, cuda_error=TOO_OLD))
    assert found.reason is Reason.DRIVER_TOO_OLD and "in Windows" in found.advice


@pytest.mark.parametrize(
    ("capability", "advice"),
    [((5, 2), "older CUDA"), ((12, 0), "newer PyTorch"), ((8, 7), "has code for sm_87")],
)
def test_architecture_not_in_this_build(capability, advice):
    archs = ("sm_75", "sm_80", "sm_86", "sm_90")
    found = decide(Facts(**LINUX, **DRIVER, gpus=(gpu(capability, NO_IMAGE, "Some GPU"),), arch_list=archs))
    assert found.reason is Reason.ARCHITECTURE_NOT_IN_BUILD
    major, minor = capability
    assert f"Some GPU has compute capability {major}.{minor}" in found.explanation
    assert "sm_75, sm_80, sm_86, sm_90" in found.explanation and "no kernel image" in found.explanation
    assert advice in found.advice


def test_a_broken_gpu_is_not_blamed_on_its_architecture():
    found = decide(Facts(**LINUX, **DRIVER, gpus=(gpu((8, 0), "AcceleratorError: ECC error"),), arch_list=ARCHS))
    assert found.reason is Reason.UNKNOWN and "ECC error" in found.explanation


# has_code_for: expected values from NVIDIA's rules for cubin and PTX compatibility
@pytest.mark.parametrize(
    ("capability", "archs", "runs"),
    [
        ((7, 5), ["sm_75"], True),
        ((8, 9), ["sm_80"], True),  # same major version, later minor version
        ((8, 0), ["sm_86"], False),  # never an earlier one
        ((9, 0), ["sm_80", "sm_86"], False),  # never another major version
        ((9, 0), ["sm_80", "compute_80"], True),  # PTX: every later GPU
        ((12, 0), ["compute_90"], True),
        ((7, 5), ["compute_80"], False),  # PTX: never an earlier GPU
        ((9, 0), ["sm_90a"], True),
        ((10, 0), ["compute_90a"], False),  # a: this capability only
        ((10, 3), ["sm_100f"], True),  # f: the family
        ((12, 0), ["compute_100f"], False),
        ((8, 7), ["sm_80", "sm_86"], False),  # embedded: its own code only
        ((8, 7), ["sm_87"], True),
        ((8, 9), ["sm_87"], False),
        ((8, 7), ["compute_80"], True),
        ((12, 1), ["sm_120"], True),
        ((7, 5), [], False),
        ((7, 5), ["gfx90a", "nonsense"], False),
    ],
)
def test_machine_code_and_ptx_forward_compatibility(capability, archs, runs):
    assert has_code_for(capability, archs) is runs


@pytest.mark.parametrize("value", ["", "-1", "NoDevFiles", "none", "-1,0", " "])
def test_hidden_by_cuda_visible_devices(value):
    found = decide(Facts(**LINUX, **DRIVER, visible_devices=value, visible_devices_now=value, cuda_error=NO_GPUS))
    assert found.reason is Reason.HIDDEN
    assert repr(value) in found.explanation and "no GPU at all" in found.explanation
    assert "restart the kernel" in found.advice


@pytest.mark.parametrize("value", ["7", "GPU-12345678", "3,0"])
def test_a_gpu_of_that_number_is_not_there(value):
    found = decide(Facts(**LINUX, **DRIVER, visible_devices=value, visible_devices_now=value, cuda_error=NO_GPUS))
    assert found.reason is Reason.HIDDEN and "none of that number" in found.explanation


def test_the_variable_is_not_blamed_where_cuda_names_another_error():
    error = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: unsupported driver combination"
    found = decide(Facts(**LINUX, **DRIVER, visible_devices="0", visible_devices_now="0", cuda_error=error))
    assert found.reason is Reason.UNKNOWN and "Error 803" in found.explanation
    assert "Restart the machine" in found.advice


# C03-04
def test_a_variable_changed_after_the_import_asks_for_a_restart():
    found = decide(Facts(**LINUX, **DRIVER, visible_devices="", visible_devices_now="0", cuda_error=NO_GPUS))
    assert found.reason is Reason.HIDDEN
    assert "was '' when labkit was imported and is '0' now" in found.explanation
    assert "restart the kernel" in found.explanation


# C03-04: helper remembers the value at import; change os.environ, call again
def test_the_value_at_import_is_remembered(monkeypatch, t4):
    monkeypatch.setattr(facts_module, "VISIBLE_DEVICES_AT_IMPORT", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert reasons.visible_devices_notice() is None
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    notice = reasons.visible_devices_notice()
    assert "was not set when labkit was imported and is '' now" in notice and "restart the kernel" in notice
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert reasons.visible_devices_notice() is None


def test_wsl_without_the_driver():
    found = decide(Facts(**LINUX, is_wsl=True, cuda_error=NO_DRIVER))
    assert found.reason is Reason.WSL_WITHOUT_DRIVER
    assert "in Windows (never in WSL)" in found.advice and "wsl --update" in found.advice


# C09-06
def test_no_nvidia_device():
    found = decide(Facts(**LINUX, nvidia_devices=(), cuda_error=NO_DRIVER))
    assert found.reason is Reason.NO_NVIDIA_DEVICE
    assert "lists no NVIDIA device" in found.explanation and "Every lesson runs on the CPU" in found.advice


def test_a_hidden_gpu_that_does_not_exist_is_not_called_hidden():
    found = decide(Facts(**LINUX, nvidia_devices=(), visible_devices="", visible_devices_now="", cuda_error=NO_DRIVER))
    assert found.reason is Reason.NO_NVIDIA_DEVICE


def test_windows_without_a_driver():
    found = decide(Facts(**LINUX | {"system": "Windows"}, cuda_error=NO_DRIVER))
    assert found.reason is Reason.NO_NVIDIA_DEVICE and "or none whose driver is installed" in found.explanation


def test_a_gpu_without_driver_and_a_container_without_the_gpu():
    found = decide(Facts(**LINUX, nvidia_devices=("PCI 0000:01:00.0",), cuda_error=NO_DRIVER))
    assert found.reason is Reason.NO_DRIVER and "no NVIDIA driver is loaded" in found.explanation
    assert "the CUDA toolkit is not needed" in found.advice
    container = Facts(**LINUX, nvidia_devices=("PCI 1",), driver_version="570.133.20", cuda_error=NO_DRIVER)
    found = decide(container)
    assert found.reason is Reason.NO_DRIVER and "570.133.20" in found.explanation
    assert "--gpus all" in found.advice


def test_mps_built_but_unavailable():
    mac = {"system": "Darwin", "architecture": "arm64", "torch_version": "2.13.0", "mps_built": True}
    found = decide(Facts(**mac, mps_error="RuntimeError: The MPS backend is supported on macOS 14.0+"))
    assert found.reason is Reason.MPS_UNAVAILABLE
    assert "supported on macOS 14.0+" in found.explanation
    # PyTorch says so also where macOS is new enough and Metal is hidden from the process
    assert "macOS 14 or newer" in found.advice and "virtual machine" in found.advice


def test_intel_python_under_rosetta():
    mac = {"system": "Darwin", "architecture": "x86_64", "is_translated": True, "torch_version": "2.2.2"}
    for mps_built in (False, True):
        found = decide(Facts(**mac, mps_built=mps_built))
        assert found.reason is Reason.ROSETTA and "arm64" in found.advice


def test_a_mac_whose_gpu_fails_the_probe_is_told_what_was_seen():
    broken = GpuFact("mps", 0, "Apple M1 GPU", error="1 + 3 + 5 + 7 came out as 0.0")
    found = decide(Facts(system="Darwin", torch_version="2.13.0", mps_built=True, mps_available=True, gpus=(broken,)))
    assert found.reason is Reason.UNKNOWN and "came out as 0.0" in found.explanation


def test_unknown_says_what_was_seen():
    found = decide(Facts(**LINUX, **DRIVER, cuda_error="RuntimeError: CUDA unknown error"))
    assert found.reason is Reason.UNKNOWN
    for seen in ("2.13.0+cu126", "CUDA 12.6", "550.54.15", "Tesla T4", "CUDA unknown error"):
        assert seen in found.explanation
    assert "collect_env" in found.advice


def test_without_torch_the_reason_is_torchs_own_error():
    found = decide(Facts(system="Linux", torch_error="ImportError: libcudart.so.13: cannot open shared object file"))
    assert found.reason is Reason.UNKNOWN and "libcudart.so.13" in found.explanation


def test_a_rocm_build_is_no_cpu_only_build():
    found = decide(Facts(system="Linux", torch_version="2.13.0+rocm6.4", hip_build="6.4"))
    assert found.reason is Reason.UNKNOWN and "ROCm 6.4" in found.explanation


def test_every_reason_can_be_read_by_a_student():
    cases = [
        Facts(system="Linux", torch_version="2.13.0+cpu"),
        Facts(**LINUX, cuda_error=TOO_OLD),
        Facts(**LINUX, **DRIVER, gpus=(gpu((5, 2), NO_IMAGE),), arch_list=ARCHS),
        Facts(**LINUX, **DRIVER, visible_devices="-1", visible_devices_now="-1"),
        Facts(**LINUX, is_wsl=True),
        Facts(**LINUX, nvidia_devices=("PCI 1",)),
        Facts(**LINUX, nvidia_devices=()),
        Facts(system="Darwin", torch_version="2.13.0", mps_built=True),
        Facts(system="Darwin", torch_version="2.2.2", is_translated=True),
        Facts(),
    ]
    found = [decide(case) for case in cases]
    assert {no_gpu.reason for no_gpu in found} == set(Reason)
    for no_gpu in found:
        text = str(no_gpu)
        assert text.startswith(f"No GPU ({no_gpu.reason}): ") and text.endswith(".")
        assert ".." not in text and "  " not in text


def test_this_process_gets_the_reason_that_its_torch_supports():
    import torch

    no_gpu = reasons.why_no_gpu()
    if torch.version.cuda is None and torch.version.hip is None and not torch.backends.mps.is_built():
        assert no_gpu.reason is Reason.CPU_ONLY_BUILD  # C03-01: runs as it is on the CPU wheel
    else:
        assert no_gpu is None or isinstance(no_gpu.reason, Reason)
