"""What can be seen of the GPUs and of all that stands between them and PyTorch: one frozen snapshot.

`gather()` looks and never raises; what follows from the facts is decided elsewhere, so that every case can be tested
without the machine it happens on.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.devices.cpus import cpu_name

# CUDA reads the variable once, when it starts: a later change in the notebook has no effect on this process.
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
VISIBLE_DEVICES_AT_IMPORT = os.environ.get(VISIBLE_DEVICES)

_NVIDIA_PCI_VENDOR = "0x10de"


@dataclass(frozen=True)
class GpuFact:
    """A GPU that PyTorch lists, and what the probe made of it: error is "" where the tiny operation came out right."""

    kind: str
    index: int
    name: str
    memory_bytes: int | None = None
    capability: tuple[int, int] | None = None
    error: str = ""


@dataclass(frozen=True)
class Facts:
    """A snapshot of system, PyTorch build, driver and GPUs; None where a thing could not be found out.

    `driver_cuda` is the newest CUDA that the driver supports, as the driver writes it (12040 is CUDA 12.4);
    `cuda_error` and `mps_error` are what PyTorch said; `nvidia_devices` are the NVIDIA devices that the system lists.
    """

    system: str = ""
    architecture: str = ""
    is_wsl: bool = False
    is_translated: bool = False
    torch_version: str | None = None
    torch_error: str = ""
    cuda_build: str | None = None
    hip_build: str | None = None
    mps_built: bool = False
    mps_available: bool = False
    mps_error: str = ""
    arch_list: tuple[str, ...] = ()
    gpus: tuple[GpuFact, ...] = ()
    cuda_error: str = ""
    visible_devices: str | None = None
    visible_devices_now: str | None = None
    driver_version: str | None = None
    driver_cuda: int | None = None
    nvidia_devices: tuple[str, ...] | None = None

    @property
    def usable_gpus(self) -> tuple[GpuFact, ...]:
        """The GPUs that passed the probe."""
        return tuple(gpu for gpu in self.gpus if not gpu.error)


@functools.cache
def snapshot() -> Facts:
    """Return what `gather()` sees, looked up once a process: CUDA itself caches its devices."""
    return gather()


def gather(root: Path = Path("/")) -> Facts:
    """Return the facts of this machine and process; never raises. `root` holds `proc`, `sys` and `dev`."""
    is_wsl = _quietly(lambda: "microsoft" in (root / "proc/version").read_text().lower(), False)
    smi = _quietly(_nvidia_smi, ())
    devices = tuple(name for name, _ in smi) or _quietly(lambda: _linux_nvidia_devices(root, is_wsl), None)
    version = _quietly(lambda: parse_kernel_driver((root / "proc/driver/nvidia/version").read_text()), None)
    return Facts(
        system=platform.system(),
        architecture=platform.machine(),
        is_wsl=is_wsl,
        is_translated=_quietly(_is_translated, False),
        visible_devices=VISIBLE_DEVICES_AT_IMPORT,
        visible_devices_now=os.environ.get(VISIBLE_DEVICES),
        driver_version=version or (smi[0][1] if smi else None),
        driver_cuda=_quietly(_driver_cuda, None),
        nvidia_devices=devices,
        **_quietly(_torch_facts, {}),
    )


def parse_kernel_driver(text: str) -> str | None:
    """Return the driver's version from `/proc/driver/nvidia/version`, or None.

    >>> parse_kernel_driver("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024")
    '550.54.15'
    """
    found = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)\s", text)
    return found[1] if found else None


def parse_nvidia_smi(text: str) -> tuple[tuple[str, str], ...]:
    """Return (name, driver version) of each GPU from `nvidia-smi --query-gpu=name,driver_version`, as CSV.

    >>> parse_nvidia_smi("Tesla T4, 550.54.15\\n")
    (('Tesla T4', '550.54.15'),)
    """
    found = re.findall(r"^(.+), (\d+(?:\.\d+)+)\s*$", text, flags=re.MULTILINE)
    return tuple((name.strip(), version) for name, version in found)


def probe(torch: Any, torch_name: str) -> str:
    """Run one tiny operation on the device and check its value; return "" or, in one line, what went wrong."""
    try:
        total = (torch.arange(4, dtype=torch.float32, device=torch_name) * 2 + 1).sum().item()
    except Exception as error:
        return _one_line(error)
    return "" if total == 16 else f"1 + 3 + 5 + 7 came out as {total}"


def _torch_facts() -> dict[str, Any]:
    try:
        import torch
    except Exception as error:
        return {"torch_error": _one_line(error)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gpus = _quietly(lambda: _cuda_gpus(torch), ()) + _quietly(lambda: _mps_gpus(torch), ())
    mps = getattr(torch.backends, "mps", None)
    cuda_build = getattr(torch.version, "cuda", None)
    cuda_error = "; ".join(str(warning.message) for warning in caught if "CUDA" in str(warning.message))
    if cuda_build and not any(gpu.kind == "cuda" for gpu in gpus):
        # torch warns of its reason only once a process; starting CUDA by hand makes it say so again.
        cuda_error = _error_of(torch.cuda.init) or cuda_error
    mps_built, mps_available = (_quietly(lambda ask=ask: bool(getattr(mps, ask)()), False) for ask in _MPS_QUESTIONS)
    return {
        "torch_version": str(torch.__version__),
        "cuda_build": cuda_build,
        "hip_build": getattr(torch.version, "hip", None),
        "mps_built": mps_built,
        "mps_available": mps_available,
        "mps_error": probe(torch, "mps") if mps_built and not mps_available else "",
        "arch_list": tuple(_quietly(torch.cuda.get_arch_list, ())),
        "gpus": gpus,
        "cuda_error": cuda_error,
    }


_MPS_QUESTIONS = ("is_built", "is_available")


def _cuda_gpus(torch: Any) -> tuple[GpuFact, ...]:
    if not torch.cuda.is_available():
        return ()
    return tuple(_cuda_gpu(torch, index) for index in range(torch.cuda.device_count()))


def _cuda_gpu(torch: Any, index: int) -> GpuFact:
    properties = _quietly(lambda: torch.cuda.get_device_properties(index), None)
    known = properties is not None
    return GpuFact(
        kind="cuda",
        index=index,
        name=(known and properties.name) or f"cuda:{index}",
        memory_bytes=properties.total_memory if known else None,
        capability=(properties.major, properties.minor) if known else None,
        error=probe(torch, f"cuda:{index}"),
    )


def _mps_gpus(torch: Any) -> tuple[GpuFact, ...]:
    if not torch.backends.mps.is_available():
        return ()
    memory_bytes = _quietly(lambda: int(torch.mps.recommended_max_memory()), None)
    return (GpuFact("mps", 0, f"{cpu_name()} GPU", memory_bytes, error=probe(torch, "mps")),)


def _driver_cuda() -> int | None:
    """Ask the driver's own library, which answers without PyTorch and without starting CUDA."""
    library = ctypes.CDLL("nvcuda.dll" if platform.system() == "Windows" else "libcuda.so.1")
    version = ctypes.c_int(0)
    failed = library.cuDriverGetVersion(ctypes.byref(version))
    return version.value if not failed and version.value > 0 else None


def _nvidia_smi() -> tuple[tuple[str, str], ...]:
    tool = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/lib/wsl/lib")
    if tool is None:
        return ()
    command = [tool, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return parse_nvidia_smi(subprocess.run(command, capture_output=True, text=True, timeout=10).stdout)


def _linux_nvidia_devices(root: Path, is_wsl: bool) -> tuple[str, ...] | None:
    if platform.system() != "Linux" or is_wsl:  # under WSL the GPU is not on the PCI bus that Linux sees
        return None
    found = [f"PCI {path.parent.name}" for path in sorted((root / "sys/bus/pci/devices").glob("*/vendor"))
             if path.read_text().strip() == _NVIDIA_PCI_VENDOR and _is_display(path.parent)]  # fmt: skip
    model = root / "proc/device-tree/compatible"
    if model.exists() and b"nvidia,tegra" in model.read_bytes():
        found.append("NVIDIA Tegra")
    return tuple(found)


def _is_display(device: Path) -> bool:
    """Tell a GPU from the sound and USB devices on the same card: PCI class 0x03 is a display controller."""
    return (device / "class").read_text().startswith("0x03")


def _is_translated() -> bool:
    """Tell whether this is an Intel Python that an Apple silicon Mac runs through Rosetta."""
    if platform.system() != "Darwin":
        return False
    value, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    failed = ctypes.CDLL(None).sysctlbyname(
        b"sysctl.proc_translated", ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    )
    return not failed and value.value == 1


def _error_of(function: Callable[[], Any]) -> str:
    try:
        function()
    except Exception as error:
        return _one_line(error)
    return ""


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _quietly(look: Callable[[], Any], otherwise: Any) -> Any:
    """Return what look() finds; a fact that cannot be had is no reason to fail."""
    try:
        return look()
    except Exception:
        return otherwise
