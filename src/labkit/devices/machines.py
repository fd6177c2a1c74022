"""The machine that a number was measured on: what a record says of it, and the report that lesson 00 shows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from labkit import units
from labkit.devices import cgroups
from labkit.devices.cpus import (
    affinity_cpus,
    cpu_name,
    default_threads,
    host_cpus,
    simd_bits,
    total_cpu_memory_bytes,
    usable_cpus,
)
from labkit.devices.dtypes import FALLBACK, mps_fallback_enabled
from labkit.devices.facts import Facts, snapshot
from labkit.devices.gpus import Device, find
from labkit.devices.memory import free_memory_bytes, total_memory_bytes
from labkit.devices.reasons import decode_cuda, visible_devices_notice, why_no_gpu
from labkit.errors import InputError, RecordError


@dataclass(frozen=True)
class Machine:
    """A machine as far as it decides timings: hardware, and the versions of what runs on it. Holds no personal data."""

    cpu: str
    cpus: int
    gpus: tuple[str, ...]
    os: str
    python: str
    torch: str | None
    driver: str | None
    memory_bytes: int

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if not _fits(name, getattr(self, name)):
                raise InputError(f"{name}={getattr(self, name)!r}", "a Machine cannot have that")

    @property
    def id(self) -> str:
        """A short stable hash of what makes timings comparable: everything but the memory and Python's patch number."""
        python = ".".join(self.python.split(".")[:2])
        parts = [self.cpu, self.cpus, list(self.gpus), self.os, python, self.torch, self.driver]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]

    def __str__(self) -> str:
        gpus = ", ".join(self.gpus) or "no GPU"
        driver = f", driver {self.driver}" if self.driver else ""
        cpus = f"{self.cpus} CPU{'' if self.cpus == 1 else 's'}"
        memory = units.format_bytes(self.memory_bytes, binary=True)
        return (
            f"{self.cpu} ({cpus}, {memory}); {gpus}; {self.os}, Python {self.python}, PyTorch {self.torch}{driver} "
            f"[{self.id}]"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the machine as plain JSON values; `from_dict` takes them back."""
        return {**asdict(self), "gpus": list(self.gpus), "id": self.id}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Machine:
        """Return the machine that `to_dict` wrote. Raises RecordError where a field is missing, odd or was changed."""
        if not isinstance(data, Mapping):
            raise RecordError(f"machine={data!r}", "a machine is an object with named fields", _DAMAGED)
        missing = [name for name in cls.__dataclass_fields__ if name not in data]
        if missing:
            raise RecordError(f"machine without {', '.join(missing)}", "a field is missing", _DAMAGED)
        fields = {name: data[name] for name in cls.__dataclass_fields__}
        if isinstance(fields["gpus"], list):  # JSON has no tuples
            fields["gpus"] = tuple(fields["gpus"])
        try:
            found = cls(**fields)
        except InputError as error:
            raise RecordError(f"machine.{error.given}", error.problem, _DAMAGED) from None
        if data.get("id", found.id) != found.id:
            raise RecordError(f"machine.id={data['id']!r}", f"its fields give {found.id}", _DAMAGED)
        return found


_DAMAGED = "The record was damaged or edited: measure again."


def _fits(name: str, value: Any) -> bool:
    if name in ("cpus", "memory_bytes"):
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if name == "gpus":
        return isinstance(value, tuple) and all(isinstance(gpu, str) for gpu in value)
    return (isinstance(value, str) and value != "") or (value is None and name in ("torch", "driver"))


class Row(NamedTuple):
    """One line of the report: what it is about, what was found, and what that means (or "")."""

    label: str
    value: str
    note: str


def machine() -> Machine:
    """Return this machine; only GPUs that passed the probe are named.

    >>> Machine.from_dict(machine().to_dict()) == machine()
    True
    """
    facts = snapshot()
    gpus = tuple(device.name for device in find() if device.is_gpu)
    return Machine(
        cpu=cpu_name(),
        cpus=usable_cpus(),
        gpus=gpus,
        os=os_name(),
        python=platform.python_version(),
        torch=facts.torch_version,
        driver=facts.driver_version if gpus else None,
        memory_bytes=total_cpu_memory_bytes(),
    )


def os_name() -> str:
    """Return system, release and architecture, as in "Debian GNU/Linux 12 (bookworm), x86_64"."""
    system = platform.system()
    if system == "Linux":
        with contextlib.suppress(OSError):
            system = platform.freedesktop_os_release().get("PRETTY_NAME", system)
    elif system == "Darwin":
        system = f"macOS {platform.mac_ver()[0].split('.')[0]}".strip()
    elif system == "Windows":
        system = f"Windows {platform.release()}"
    return f"{system}, {platform.machine()}"


def report() -> list[Row]:
    """Return what is in this machine and what this process may use of it, line by line, for a table."""
    facts = snapshot()
    cpu, *gpus = find()
    rows = [
        Row("CPU", cpu.name, _simd()),
        _cpus_row(),
        Row("Threads of PyTorch", str(default_threads()), "what PyTorch uses by itself, capped by the usable CPUs"),
        _memory_row("Memory", cpu),
        *(row for gpu in gpus for row in _gpu_rows(gpu)),
        *_no_gpu_rows(facts),
        _driver_row(facts),
        Row("PyTorch", str(facts.torch_version), _build(facts)),
        Row("Python", platform.python_version(), os_name()),
        Row("Machine", machine().id, "timings with the same mark can be compared"),
    ]
    if notice := visible_devices_notice():
        rows.append(Row("CUDA_VISIBLE_DEVICES", "changed", notice))
    if mps_fallback_enabled():
        rows.append(Row(FALLBACK, os.environ[FALLBACK], "timings on mps are marked: contains CPU fallback"))
    return rows


def _simd() -> str:
    """Say how wide the vector instructions are that torch uses."""
    import torch

    width = simd_bits()
    return f"SIMD {torch.backends.cpu.get_cpu_capability()}, {width} bits: {width // 32} float32 at once"


def _cpus_row() -> Row:
    usable, affinity, host = usable_cpus(), affinity_cpus(), host_cpus()
    quotas = cgroups.cpu_quotas()
    smallest = min(quotas, key=lambda quota: quota.cpus, default=None)
    if smallest and smallest.cpus < affinity:
        why = f"this container's quota is {smallest.cpus:g} CPUs' worth of time ({smallest.path}: {smallest.text})"
    elif affinity < host:
        why = f"this process is bound to {affinity} of them (CPU affinity)"
    else:
        why = "all of them; no quota"
    return Row("Usable CPUs", f"{usable} of {host}", why)


def _memory_row(label: str, device: Device) -> Row:
    total, free = (units.format_bytes(read(device), binary=True) for read in (total_memory_bytes, free_memory_bytes))
    limits = cgroups.memory_limits() if device.kind == "cpu" else []
    import psutil

    host = psutil.virtual_memory().total
    limited = any(limit.limit_bytes < host for limit in limits)
    note = f"this container's limit; the machine has {units.format_bytes(host, binary=True)}" if limited else ""
    return Row(label, f"{total}, {free} free", note)


def _gpu_rows(gpu: Device) -> list[Row]:
    capability = f"compute capability {gpu.capability[0]}.{gpu.capability[1]}" if gpu.capability else gpu.torch_name
    known = "" if gpu.spec else "; not in the hardware catalogue: peaks will be measured, not looked up"
    return [Row("GPU", str(gpu), f"passed the probe; {capability}{known}"), _memory_row("GPU memory", gpu)]


def _no_gpu_rows(facts: Facts) -> list[Row]:
    if no_gpu := why_no_gpu():
        return [Row("GPU", f"none ({no_gpu.reason})", f"{no_gpu.explanation} {no_gpu.advice}")]
    return [Row("GPU", f"{gpu.name}: not usable", gpu.error) for gpu in facts.gpus if gpu.error]


def _driver_row(facts: Facts) -> Row:
    supports = f"supports CUDA up to {decode_cuda(facts.driver_cuda)}" if facts.driver_cuda else ""
    return Row("NVIDIA driver", facts.driver_version or ("found" if supports else "none"), supports)


def _build(facts: Facts) -> str:
    if facts.cuda_build:
        return f"built for CUDA {facts.cuda_build}"
    if facts.hip_build:
        return f"built for ROCm {facts.hip_build}"
    return "built with MPS" if facts.mps_built else "CPU-only build"
