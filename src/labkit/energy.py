"""The energy that a piece of work took: read from the chip's own counter where that is allowed, else estimated."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit import devices
from labkit.errors import DeviceError, InputError, check_choice, check_positive
from labkit.hardware import prediction_model
from labkit.measurement import SOURCES
from labkit.timing.clocks import Clock
from labkit.units import format_j, format_s

POWERCAP = Path("/sys/class/powercap")  # where Linux shows the counters of the CPU packages (RAPL), AMD's too


@dataclass(frozen=True)
class Energy:
    """Energy in joules with its range, over how long, and what it rests on: a counter, or "estimate: TDP × time"."""

    joules: float
    low_j: float
    high_j: float
    seconds: float
    source: str
    basis: str

    def __post_init__(self) -> None:
        check_choice("source", self.source, SOURCES)
        check_positive("joules", self.joules, unit="joules", zero_ok=True)
        check_positive("seconds", self.seconds, unit="seconds", zero_ok=True)
        if not 0 <= self.low_j <= self.joules <= self.high_j:
            raise InputError(repr(self), "the energy must lie within its range")

    def __str__(self) -> str:
        between = f", between {format_j(self.low_j)} and {format_j(self.high_j)}" if self.low_j < self.high_j else ""
        return f"{format_j(self.joules)} in {format_s(self.seconds)} ({self.source}; {self.basis}{between})"


class EnergyMeter:
    """A block of work and the energy that it took; see energy_meter."""

    def __init__(self, device: devices.Device, tdp_w: float | None, clock: Clock, powercap: Path) -> None:
        self._device = device
        self._tdp_w = None if tdp_w is None else check_positive("tdp_w", tdp_w, unit="watts")
        self._clock = clock
        self._counter = _gpu_counter(device) if device.is_gpu else _cpu_counter(Path(powercap))
        self._found: Energy | None = None
        self._powers_w()  # an unknown power is better known now than after an hour of work

    @property
    def energy(self) -> Energy:
        """The energy of the block. Raises InputError before its end."""
        if self._found is None:
            raise InputError("meter.energy", "the work has not ended yet", "Read it after the with block.")
        return self._found

    def __enter__(self) -> EnergyMeter:
        devices.synchronize(self._device)
        self._began_j = self._counter.read_j() if self._counter else None
        self._began_s = self._clock()
        return self

    def __exit__(self, *_: Any) -> None:
        devices.synchronize(self._device)
        seconds = self._clock() - self._began_s
        ended_j = self._counter.read_j() if self._counter else None
        is_read = self._began_j is not None and ended_j is not None
        joules = self._counter.between(self._began_j, ended_j) if is_read else None
        if joules:
            self._found = Energy(joules, joules, joules, seconds, "measured", self._counter.basis)
        else:  # a counter that stood still knows nothing: it is too coarse for this work, or no real one
            self._found = self._estimated(seconds)

    def _estimated(self, seconds: float) -> Energy:
        low_w, tdp_w, high_w = self._powers_w()
        which = "given" if self._tdp_w is not None else "of the datasheet" if self._device.is_gpu else "typical"
        basis = f"estimate: TDP × time, TDP {tdp_w:g} W ({which})"
        return Energy(tdp_w * seconds, low_w * seconds, high_w * seconds, seconds, "predicted", basis)

    def _powers_w(self) -> tuple[float, float, float]:
        """Return the lowest, the expected and the highest power in watts that the estimate assumes."""
        if self._tdp_w is not None:
            return self._tdp_w, self._tdp_w, self._tdp_w
        if not self._device.is_gpu:
            typical = prediction_model().cpu_tdp_w
            return typical.low, typical.value, typical.high
        if self._device.spec is None:
            advice = "Give the power that its maker states: tdp_w=…, in watts."
            raise DeviceError(str(self._device), "it has no energy counter and stands in no datasheet here", advice)
        return (self._device.spec.power_w,) * 3


def energy_meter(
    device: Any = "cpu", *, tdp_w: float | None = None, clock: Clock = time.perf_counter, powercap: Path = POWERCAP
) -> EnergyMeter:
    """Return a meter for a with block; its .energy is read from the chip's counter, else estimated as TDP × time.

    The counter of a CPU is that of the whole package, other programs included; only the administrator may read it on
    most systems, and a virtual machine has none. tdp_w states the power that the estimate assumes, in watts; without
    it a CPU's is taken from the range of typical ones, a GPU's from its datasheet. Both are upper bounds for a chip
    that is not fully loaded. Raises DeviceError for an absent device or an unknown power, InputError for nonsense.

    >>> with energy_meter("cpu", tdp_w=45, powercap=Path("/nowhere"), clock=iter([0.0, 2.0]).__next__) as meter:
    ...     pass  # the work
    >>> print(meter.energy)
    90 J in 2 s (predicted; estimate: TDP × time, TDP 45 W (given))
    """
    return EnergyMeter(devices.pick(device), tdp_w, clock, powercap)


# --- counters --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _PackageCounters:
    """The counters of a machine's CPU packages; each starts anew when it has reached its range."""

    folders: tuple[Path, ...]
    basis: str = "counter of the CPU package"

    def read_j(self) -> tuple[float, ...] | None:
        """Return what each counter shows in joules, or None where one may not be read."""
        try:
            found = tuple(int((folder / "energy_uj").read_text()) / 1e6 for folder in self.folders)
        except (OSError, ValueError):
            return None
        return found if min(found) >= 0 else None

    def between(self, began_j: tuple[float, ...], ended_j: tuple[float, ...]) -> float | None:
        """Return the joules between two readings, or None where a counter started anew and its range is not known."""
        spent = 0.0
        for folder, first, last in zip(self.folders, began_j, ended_j, strict=True):
            try:
                range_j = int((folder / "max_energy_range_uj").read_text()) / 1e6 if last < first else 0.0
            except (OSError, ValueError):
                return None
            if last - first + range_j < 0:
                return None
            spent += last - first + range_j
        return spent


@dataclass(frozen=True)
class _GpuCounter:
    """The energy counter of an NVIDIA GPU, through NVML."""

    handle: Any
    nvml: Any
    basis: str = "counter of the GPU"

    def read_j(self) -> float | None:
        """Return what the counter shows in joules, or None where the GPU has none."""
        try:
            return self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle) / 1e3
        except self.nvml.NVMLError:
            return None

    def between(self, began_j: float, ended_j: float) -> float | None:
        """Return the joules between two readings, or None where the counter started anew (its driver was loaded)."""
        return ended_j - began_j if ended_j >= began_j else None


def _cpu_counter(powercap: Path) -> _PackageCounters | None:
    """Return the counters of the CPU packages (intel-rapl:0, intel-rapl:1, …), or None where there is none."""
    found = []
    for folder in sorted(powercap.glob("intel-rapl:*")):
        is_package = folder.name.count(":") == 1
        try:
            named = (folder / "name").read_text().strip() if is_package else ""
        except (OSError, ValueError):
            named = ""
        if named.startswith("package"):  # not psys, which counts the packages once more
            found.append(folder)
    counters = _PackageCounters(tuple(found))
    return counters if found and counters.read_j() is not None else None


def _gpu_counter(device: devices.Device) -> _GpuCounter | None:
    """Return the counter of a CUDA device, or None without nvidia-ml-py or on another kind of GPU."""
    if device.kind != "cuda":
        return None
    try:
        import pynvml
    except ImportError:
        return None
    import torch

    try:
        pynvml.nvmlInit()
        # CUDA_VISIBLE_DEVICES changes torch's numbers and not NVML's: the identifier is the same in both.
        uuid = torch.cuda.get_device_properties(device.index).uuid
        return _GpuCounter(pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}"), pynvml)
    except pynvml.NVMLError:
        return None
