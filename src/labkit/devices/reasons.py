"""Why there is no GPU: one of a fixed set of reasons, decided from a snapshot of facts, and what to do about it."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from labkit.devices.facts import VISIBLE_DEVICES, Facts, GpuFact, snapshot

# Oldest NVIDIA driver for each major version of CUDA, Linux and Windows alike:
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
OLDEST_DRIVER = {11: "450", 12: "525", 13: "580"}

# Compute capabilities of Jetson boards and the like: code for desktop GPUs does not run on them, nor theirs elsewhere.
# https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility, and PyTorch's own table (torch/cuda).
_EMBEDDED = {(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)}

_INSTALL = "https://pytorch.org/get-started/locally/"
_GO_ON = "Until then every lesson runs on the CPU."


class Reason(StrEnum):
    """The reasons for which there is no GPU to use."""

    ROSETTA = "Intel Python under Rosetta"
    CPU_ONLY_BUILD = "CPU-only build"
    MPS_UNAVAILABLE = "MPS built but unavailable"
    DRIVER_TOO_OLD = "driver too old"
    ARCHITECTURE_NOT_IN_BUILD = "architecture not in this build"
    HIDDEN = "hidden by CUDA_VISIBLE_DEVICES"
    WSL_WITHOUT_DRIVER = "WSL without the driver"
    NO_DRIVER = "no NVIDIA driver"
    NO_NVIDIA_DEVICE = "no NVIDIA device"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class NoGpu:
    """Why there is no GPU: the reason, what was seen that says so, and what to do."""

    reason: Reason
    explanation: str
    advice: str

    def __str__(self) -> str:
        return f"No GPU ({self.reason}): {self.explanation} {self.advice}"


def why_no_gpu(gpus: Iterable[GpuFact] | None = None) -> NoGpu | None:
    """Return the reason why this process has no GPU, or None if it has one that passed the probe.

    With `gpus`, only these are looked at: why does cuda:1 not work, although cuda:0 does?
    """
    facts = snapshot()
    return decide(
        dataclasses.replace(
            facts,
            gpus=facts.gpus if gpus is None else tuple(gpus),
            visible_devices_now=os.environ.get(VISIBLE_DEVICES),
        )
    )


def decide(facts: Facts) -> NoGpu | None:
    """Return the first reason that the facts support, what is certain before what is likely; None if a GPU works.

    >>> decide(Facts(system="Linux", torch_version="2.13.0+cpu")).reason
    <Reason.CPU_ONLY_BUILD: 'CPU-only build'>
    """
    if facts.usable_gpus:
        return None
    rules = (_rosetta, _mps, _cpu_only, _driver_too_old, _architecture, _no_device, _wsl, _no_driver, _changed, _hidden)
    return next((found for rule in rules if (found := rule(facts))), None) or _unknown(facts)


def visible_devices_notice() -> str | None:
    """Return what to tell a student who changed CUDA_VISIBLE_DEVICES after the import, or None if nobody did."""
    return _notice(snapshot().visible_devices, os.environ.get(VISIBLE_DEVICES))


def decode_cuda(version: int) -> str:
    """Return a CUDA version as people write it from the number that the driver gives.

    >>> decode_cuda(12040), decode_cuda(11080)
    ('12.4', '11.8')
    """
    return f"{version // 1000}.{version % 1000 // 10}"


def has_code_for(capability: tuple[int, int], arch_list: Iterable[str]) -> bool:
    """Tell whether a build with these architectures has code that runs on a GPU of this compute capability.

    Machine code (`sm_86`) runs on the same major version from its minor version on. PTX (`compute_86`) is compiled by
    the driver for every later GPU. The suffix `a` ties either to exactly one capability, `f` to its family.

    >>> has_code_for((8, 9), ["sm_86"]), has_code_for((9, 0), ["sm_86"]), has_code_for((9, 0), ["compute_86"])
    (True, False, True)
    """
    return any(_runs_on(capability, arch) for arch in arch_list)


def _runs_on(capability: tuple[int, int], arch: str) -> bool:
    found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", arch)
    if found is None:
        return False
    target = (int(found[2]), int(found[3]))
    if found[4] == "a":
        return capability == target
    if found[1] == "compute" and not found[4]:
        return capability >= target
    if target in _EMBEDDED or capability in _EMBEDDED:
        return capability == target
    return capability[0] == target[0] and capability[1] >= target[1]


def _rosetta(facts: Facts) -> NoGpu | None:
    if not facts.is_translated:
        return None
    return NoGpu(
        Reason.ROSETTA,
        "This Mac has Apple silicon, but this Python is built for Intel and runs through Rosetta.",
        "Install a Python for arm64 (`python3 -c 'import platform; print(platform.machine())'` must print arm64) "
        "and PyTorch in it.",
    )


def _mps(facts: Facts) -> NoGpu | None:
    if facts.system != "Darwin" or not facts.mps_built or facts.mps_available:
        return None
    said = f" PyTorch says: {facts.mps_error}." if facts.mps_error else ""
    return NoGpu(
        Reason.MPS_UNAVAILABLE,
        f"This PyTorch was built with MPS, but macOS offers it no Metal device.{said}",
        "MPS needs Apple silicon, macOS 14 or newer, and a process that may see the GPU (a virtual machine or a "
        "sandbox may not). If all of that holds, install the newest PyTorch: older ones misread newer macOS versions.",
    )


def _cpu_only(facts: Facts) -> NoGpu | None:
    if facts.torch_version is None or facts.cuda_build or facts.hip_build or facts.mps_built:
        return None
    explanation = f"PyTorch {facts.torch_version} is a CPU-only build: it contains no code for CUDA, ROCm or MPS."
    if facts.system == "Darwin":
        advice = f"On Apple silicon, reinstall PyTorch for macOS: {_INSTALL}. An Intel Mac has no GPU that it can use."
    elif facts.nvidia_devices:
        explanation += f" The machine does have an NVIDIA device ({', '.join(facts.nvidia_devices)})."
        advice = f"Reinstall PyTorch for GPU: choose a CUDA version at {_INSTALL}, then restart the kernel. {_GO_ON}"
    elif facts.nvidia_devices == ():
        explanation += " The system lists no NVIDIA device either."
        advice = (
            "Reinstalling PyTorch for GPU helps only where there is one. Every lesson runs on the CPU; "
            "on Google Colab choose Runtime > Change runtime type > T4 GPU."
        )
    else:
        advice = f"If this machine has an NVIDIA GPU, reinstall PyTorch for GPU: {_INSTALL}. {_GO_ON}"
    return NoGpu(Reason.CPU_ONLY_BUILD, explanation, advice)


def _driver_too_old(facts: Facts) -> NoGpu | None:
    if not facts.cuda_build:
        return None
    found = re.search(r"driver on your system is too old \(found version (\d+)\)", facts.cuda_error)
    driver_cuda = int(found[1]) if found else facts.driver_cuda
    built_major = int(facts.cuda_build.split(".")[0])
    # Within one major version of CUDA an older driver will do.
    if driver_cuda is None or not (found or driver_cuda // 1000 < built_major):
        return None
    driver = f"The NVIDIA driver{f' {facts.driver_version}' if facts.driver_version else ''}"
    said = f" PyTorch says: {facts.cuda_error}" if facts.cuda_error else ""
    needed = f" to version {OLDEST_DRIVER[built_major]} or newer" if built_major in OLDEST_DRIVER else ""
    return NoGpu(
        Reason.DRIVER_TOO_OLD,
        f"{driver} supports CUDA up to {decode_cuda(driver_cuda)}, "
        f"and this PyTorch was built for CUDA {facts.cuda_build}.{said}",
        f"Update the driver{needed}{' (in Windows, not in WSL)' if facts.is_wsl else ''}, "
        f"or install a PyTorch built for CUDA {driver_cuda // 1000}: {_INSTALL}. {_GO_ON}",
    )


def _architecture(facts: Facts) -> NoGpu | None:
    lacking = [gpu for gpu in facts.gpus if _lacks_code(gpu, facts.arch_list)]
    if not lacking:
        return None
    gpu = lacking[0]
    major, minor = gpu.capability or (0, 0)
    targets = sorted(_target(arch) for arch in facts.arch_list)
    if targets and (major, minor) > targets[-1]:
        advice = "Install a newer PyTorch: this GPU is newer than the build."
    elif targets and (major, minor) < targets[0]:
        advice = (
            "This GPU is older than the build: install one for an older CUDA (such as cu126) or an older PyTorch, "
            "https://pytorch.org/get-started/previous-versions/."
        )
    else:
        advice = f"Install a PyTorch build that has code for sm_{major}{minor}: {_INSTALL}."
    return NoGpu(
        Reason.ARCHITECTURE_NOT_IN_BUILD,
        f"{gpu.name} has compute capability {major}.{minor}, and PyTorch {facts.torch_version} has no code for that, "
        f"only for {', '.join(facts.arch_list) or 'none'}. The probe says: {gpu.error}.",
        f"{advice} {_GO_ON}",
    )


def _lacks_code(gpu: GpuFact, arch_list: tuple[str, ...]) -> bool:
    if gpu.kind != "cuda" or gpu.capability is None:
        return False
    return "no kernel image" in gpu.error or bool(arch_list) and not has_code_for(gpu.capability, arch_list)


def _target(arch: str) -> tuple[int, int]:
    found = re.fullmatch(r"(?:sm|compute)_(\d+)(\d)[af]?", arch)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _no_device(facts: Facts) -> NoGpu | None:
    if not facts.cuda_build or facts.gpus or facts.driver_cuda is not None or facts.nvidia_devices != ():
        return None
    return NoGpu(
        Reason.NO_NVIDIA_DEVICE,
        "The system lists no NVIDIA device, and no NVIDIA driver is installed.",
        "Every lesson runs on the CPU; on Google Colab choose Runtime > Change runtime type > T4 GPU.",
    )


def _wsl(facts: Facts) -> NoGpu | None:
    if not facts.is_wsl or not facts.cuda_build or facts.driver_cuda is not None or facts.gpus:
        return None
    return NoGpu(
        Reason.WSL_WITHOUT_DRIVER,
        "This is Linux inside Windows (WSL), and the driver library libcuda.so.1 that Windows lends to WSL is missing.",
        "If the machine has an NVIDIA GPU: install the NVIDIA driver in Windows (never in WSL), update WSL with "
        f"`wsl --update`, then `wsl --shutdown`; /usr/lib/wsl/lib must hold libcuda.so.1. {_GO_ON}",
    )


def _no_driver(facts: Facts) -> NoGpu | None:
    if not facts.cuda_build or facts.driver_cuda is not None or facts.gpus:
        return None
    if facts.nvidia_devices:
        explanation = f"The machine has an NVIDIA device ({', '.join(facts.nvidia_devices)})"
        if facts.driver_version:
            return NoGpu(
                Reason.NO_DRIVER,
                f"{explanation} and the system runs driver {facts.driver_version}, but its library libcuda.so.1 "
                "cannot be loaded here.",
                "In a container, start it with `--gpus all` (NVIDIA Container Toolkit); elsewhere reinstall the driver "
                f"and restart the machine. {_GO_ON}",
            )
        return NoGpu(
            Reason.NO_DRIVER,
            f"{explanation}, but no NVIDIA driver is loaded.",
            "Install the driver that your system itself offers (on Ubuntu `sudo ubuntu-drivers install`), then restart "
            f"the machine; the CUDA toolkit is not needed, PyTorch brings its own. {_GO_ON}",
        )
    if "Found no NVIDIA driver" not in facts.cuda_error:
        return None
    return NoGpu(
        Reason.NO_NVIDIA_DEVICE,
        "PyTorch found no NVIDIA driver: the machine has no NVIDIA GPU, or none whose driver is installed.",
        f"If it has one, install its driver: https://www.nvidia.com/drivers. {_GO_ON}",
    )


def _changed(facts: Facts) -> NoGpu | None:
    notice = _notice(facts.visible_devices, facts.visible_devices_now)
    if not notice or facts.gpus:
        return None
    return NoGpu(Reason.HIDDEN, notice, f"Then set {VISIBLE_DEVICES} in the first cell, before `import torch`.")


def _hidden(facts: Facts) -> NoGpu | None:
    value = facts.visible_devices
    if value is None or facts.gpus or not (facts.cuda_build or facts.hip_build):
        return None
    explanation = f"{VISIBLE_DEVICES} is {value!r}, and CUDA then sees"
    if _hides_all(value):
        explanation += " no GPU at all."
    elif "No CUDA GPUs are available" in facts.cuda_error or not facts.cuda_error:
        explanation += " no GPU: there is none of that number or name."
    else:
        return None
    return NoGpu(
        Reason.HIDDEN,
        explanation,
        f"Remove the variable, or set it to a GPU that `nvidia-smi -L` lists (such as {VISIBLE_DEVICES}=0), and "
        "restart the kernel. On a cluster NoDevFiles means that the job was given no GPU: ask for one.",
    )


def _hides_all(value: str) -> bool:
    """CUDA ignores the first entry that is no GPU and all after it: "", "-1", "NoDevFiles", "none"."""
    first = value.split(",")[0].strip()
    return not (first.isdigit() or first.startswith(("GPU-", "MIG-")))


def _notice(at_import: str | None, now: str | None) -> str | None:
    if at_import == now:
        return None
    before, after = ("not set" if value is None else repr(value) for value in (at_import, now))
    return (
        f"{VISIBLE_DEVICES} was {before} when labkit was imported and is {after} now, and CUDA reads it only once: "
        "restart the kernel for the new value to count."
    )


def _unknown(facts: Facts) -> NoGpu:
    errors = [f"{gpu.name} failed the probe ({gpu.error})" for gpu in facts.gpus]
    errors += [text for text in (facts.torch_error, facts.cuda_error, facts.mps_error) if text]
    driver = facts.driver_version or (f"for CUDA {decode_cuda(facts.driver_cuda)}" if facts.driver_cuda else "none")
    devices = "not known" if facts.nvidia_devices is None else ", ".join(facts.nvidia_devices) or "none"
    build = facts.cuda_build and f"CUDA {facts.cuda_build}" or facts.hip_build and f"ROCm {facts.hip_build}"
    return NoGpu(
        Reason.UNKNOWN,
        f"No known reason fits. Seen: {facts.system or 'unknown system'} {facts.architecture}, "
        f"PyTorch {facts.torch_version} ({build or 'no CUDA'}), NVIDIA driver {driver}, NVIDIA devices {devices}"
        f"{'; ' + '; '.join(errors) if errors else ''}.",
        "Restart the machine if its driver was just updated. Else run `nvidia-smi` and `python -m "
        f"torch.utils.collect_env` in a terminal, and show both to whoever helps you. {_GO_ON}",
    )
