"""Devices: the CPU and every GPU that proved to work, how to pick one, and how to wait for one."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from labkit.devices.cpus import cpu_name, total_cpu_memory_bytes, usable_cpus
from labkit.devices.facts import GpuFact, snapshot
from labkit.devices.reasons import visible_devices_notice, why_no_gpu
from labkit.errors import DeviceError, check_choice, check_positive

if TYPE_CHECKING:
    from labkit.hardware import Gpu

_CHOICES = 'Choose one of "auto", "cpu", "cuda", "cuda:1" (a GPU by its number) or "mps".'


@dataclass(frozen=True)
class Device:
    """A device that work runs on: the CPU, an NVIDIA (or ROCm) GPU that torch calls cuda, or Apple's GPU, mps.

    `memory_bytes` is all the memory that this process could use there, `spec` the entry of the hardware catalogue
    (None where there is none, and always for a CPU, which is measured instead), `cpus` the usable CPUs of a CPU.
    """

    kind: str
    index: int
    name: str
    memory_bytes: int | None = None
    spec: Gpu | None = None
    cpus: int | None = None
    capability: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("cpu", "cuda", "mps"))
        check_positive("index", self.index, zero_ok=True)

    @property
    def torch_name(self) -> str:
        """What torch calls the device: "cpu", "cuda:0", "mps"."""
        return f"cuda:{self.index}" if self.kind == "cuda" else self.kind

    @property
    def is_gpu(self) -> bool:
        """Whether this is a GPU."""
        return self.kind != "cpu"

    def __str__(self) -> str:
        if self.kind == "cpu":
            return f"{self.name} ({self.cpus} CPU{'' if self.cpus == 1 else 's'})" if self.cpus else self.name
        return f"{self.name} (cuda:{self.index})" if self.index else self.name


def find() -> tuple[Device, ...]:
    """Return the devices that work here: the CPU first, then each GPU that passed the probe.

    A GPU is believed in only after one tiny operation on it gave the right value; `why_no_gpu()` tells of one that did
    not.

    >>> find()[0].torch_name
    'cpu'
    """
    return (_cpu(), *(_device(gpu) for gpu in snapshot().usable_gpus))


def pick(name: str | Device = "auto") -> Device:
    """Return the device of that name: "auto", "cpu", "cuda", "cuda:1" or "mps".

    Only "auto" falls back to the CPU. Raises DeviceError for a GPU that is not there (with the reason and what to do)
    and for a name that means no device.

    >>> pick("cpu").kind
    'cpu'
    """
    if isinstance(name, Device):
        return name
    kind, index = ("auto", None) if isinstance(name, str) and name == "auto" else parse_name(name)
    if notice := visible_devices_notice():
        warnings.warn(notice, stacklevel=2)
    if kind == "cpu":
        return _cpu()
    gpus = [device for device in find() if device.is_gpu]
    if kind == "auto":
        return gpus[0] if gpus else _cpu()
    for gpu in gpus:
        if gpu.kind == kind and index in (None, gpu.index):
            return gpu
    raise _absent(str(name), kind)


def parse_name(name: Any) -> tuple[str, int | None]:
    """Return (kind, index or None) of a Device, a torch.device, a tensor or a name such as "cuda:1".

    Raises DeviceError for what means no device that labkit knows.

    >>> parse_name("cuda:1"), parse_name("cpu")
    (('cuda', 1), ('cpu', None))
    """
    if isinstance(name, Device):
        return name.kind, name.index
    device = getattr(name, "device", name)  # a tensor
    if hasattr(device, "type") and hasattr(device, "index"):  # a torch.device
        device = device.type if device.index is None else f"{device.type}:{device.index}"
    found = re.fullmatch(r"(cpu|cuda|mps)(?::(\d+))?", device) if isinstance(device, str) else None
    if found is None:
        raise DeviceError(f"device={device!r}", "this is no device that labkit knows", _CHOICES)
    return found[1], None if found[2] is None else int(found[2])


def synchronizer(device: Any) -> Callable[[], None]:
    """Return the function that waits until the device has done all work given to it; looked up once, for timers.

    The device's type decides: cuda and mps wait, a CPU has no queue and nothing is done. Takes a Device, a
    torch.device, a tensor or a name. Raises DeviceError for a GPU that is not there.

    >>> synchronizer("cpu")()
    """
    kind, index = parse_name(device)
    if kind == "cpu":
        return _nothing
    import torch

    if kind == "mps":
        if not torch.backends.mps.is_available():
            raise _absent("mps", kind)
        return torch.mps.synchronize
    if not torch.cuda.is_available() or (index or 0) >= torch.cuda.device_count():
        raise _absent("cuda" if index is None else f"cuda:{index}", kind)
    return functools.partial(torch.cuda.synchronize, index)


def synchronize(device: Any) -> None:
    """Wait until the device has done all work given to it; nothing to wait for on a CPU. Else as `synchronizer`.

    >>> synchronize("cpu")
    """
    synchronizer(device)()


def _nothing() -> None:
    """Do nothing: a CPU has finished an operation when torch returns from it."""


def _cpu() -> Device:
    return Device("cpu", 0, cpu_name(), total_cpu_memory_bytes(), cpus=usable_cpus())


def _device(gpu: GpuFact) -> Device:
    from labkit.hardware import match

    return Device(gpu.kind, gpu.index, gpu.name, gpu.memory_bytes, match(gpu.name), capability=gpu.capability)


def _absent(given: str, kind: str) -> DeviceError:
    """Return the error that says why this GPU cannot be used."""
    said = f'device="{given}"'
    instead = f"Choose one of {', '.join(device.torch_name for device in find())}."
    facts = snapshot()
    if kind == "mps" and facts.system != "Darwin":
        return DeviceError(said, f"mps is Apple's GPU, and this is {facts.system}", instead)
    failed = [gpu for gpu in facts.gpus if gpu.kind == kind and gpu.error and given in (kind, f"{kind}:{gpu.index}")]
    no_gpu = why_no_gpu(failed) if failed else why_no_gpu()
    if no_gpu is not None:
        advice = f'Choose device "auto" or "cpu". {no_gpu.advice}'
        return DeviceError(said, f"no such GPU here ({no_gpu.reason}). {no_gpu.explanation}", advice)
    there = ", ".join(device.torch_name for device in find() if device.kind == kind)
    problem = f"this machine has {there} only" if there else f"this machine has no {kind} device"
    return DeviceError(said, problem, f"{instead} {visible_devices_notice() or ''}".rstrip())
