"""How long one task took: every sample, and what they say."""

from __future__ import annotations

import dataclasses
import html
import os
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import InputError, check_choice, check_count, check_positive, check_text, listed
from labkit.files import read_json, write_json
from labkit.measurement.record_format import FORMAT_VERSION, checked_record, read_as, unknown_format
from labkit.measurement.task import Task
from labkit.profiles import PROFILES
from labkit.units import format_bytes_per_s, format_flop_per_s, format_s

SOURCES = ("measured", "recorded", "predicted")
NOISY_SPREAD = 0.10  # torch.utils.benchmark warns from the same ratio of IQR to median
FEWEST_SAMPLES = 4
SAME_IN_A_MERGE = ("task", "source", "provenance", "machine", "device", "device_name", "threads", "profile", "notes")


@dataclass(frozen=True, kw_only=True, repr=False)
class Measurement:
    """How long one task took: every sample in seconds per call, with the first calls kept apart.

    times_s is the host's clock, which contains the cost of launching work on a GPU; device_times_s is the GPU's
    own clock where there is one. implausible says why a time cannot be believed; then no throughput is given.

    >>> m = Measurement(task=Task(label="add", flop=1e6), times_s=[1e-3, 1.1e-3, 1.2e-3, 1.1e-3])
    >>> m.median_s, round(m.flop_per_s)
    (0.0011, 909090909)
    """

    task: Task
    times_s: tuple[float, ...]
    warm_up_s: tuple[float, ...] = ()
    device_times_s: tuple[float, ...] = ()
    calls_per_sample: int = 1
    source: str = "measured"
    device: str = "cpu"
    device_name: str = ""
    machine: str = ""
    threads: int | None = None
    profile: str = "normal"
    provenance: str = ""
    implausible: str = ""
    notes: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if not isinstance(self.task, Task):
            raise InputError(f"task={self.task!r}", "this is not a Task", 'Try Task(label="matmul").')
        for name in ("times_s", "warm_up_s", "device_times_s"):
            times = [float(check_positive(name, it, unit="seconds")) for it in listed(name, getattr(self, name))]
            object.__setattr__(self, name, tuple(times))
        if not self.times_s:
            raise InputError("times_s=()", "a measurement needs at least one time")
        if self.device_times_s and len(self.device_times_s) != len(self.times_s):
            given = f"{len(self.device_times_s)} device times for {len(self.times_s)} samples"
            raise InputError(given, "each sample has one host time and one device time")
        check_choice("source", self.source, SOURCES)
        check_choice("profile", self.profile, PROFILES)
        object.__setattr__(self, "calls_per_sample", check_count("calls_per_sample", self.calls_per_sample))
        if self.threads is not None:
            object.__setattr__(self, "threads", check_count("threads", self.threads))
        self._check_texts()
        if self.format_version != FORMAT_VERSION:
            raise unknown_format(self.format_version)

    def _check_texts(self) -> None:
        check_text("device", self.device)
        for name in ("device_name", "machine", "provenance", "implausible"):
            check_text(name, getattr(self, name), empty_ok=True)
        object.__setattr__(self, "notes", tuple(check_text("a note", note) for note in listed("notes", self.notes)))
        if self.source != "measured" and not self.provenance.strip():
            advice = "Name the model or the record file in provenance=…"
            raise InputError(
                f"source={self.source!r}", "a number that was not measured here must say its origin", advice
            )

    @property
    def median_s(self) -> float:
        """The median time of a call in seconds."""
        return statistics.median(self.times_s)

    @property
    def mean_s(self) -> float:
        """The mean time of a call in seconds."""
        return statistics.fmean(self.times_s)

    @property
    def min_s(self) -> float:
        """The shortest time of a call in seconds."""
        return min(self.times_s)

    @property
    def quartiles_s(self) -> tuple[float, float]:
        """The times in seconds below which a quarter and three quarters of the samples lie."""
        return _quartiles(self.times_s)

    @property
    def iqr_s(self) -> float:
        """The interquartile range in seconds: how wide the middle half of the samples is."""
        low, high = self.quartiles_s
        return high - low

    @property
    def relative_spread(self) -> float:
        """The interquartile range over the median."""
        return self.iqr_s / self.median_s

    @property
    def device_median_s(self) -> float | None:
        """The median time of a call by the GPU's own clock in seconds, or None where there is none."""
        return statistics.median(self.device_times_s) if self.device_times_s else None

    @property
    def first_s(self) -> float | None:
        """The time of the very first call in seconds, or None if it was not kept."""
        return self.warm_up_s[0] if self.warm_up_s else None

    @property
    def dtype(self) -> str | None:
        """The dtype of the task."""
        return self.task.dtype

    @property
    def flop_per_s(self) -> float | None:
        """FLOP per second at the median, or None where the FLOP are not known or the time is implausible."""
        return None if self.implausible or self.task.flop is None else self.task.flop / self.median_s

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes moved per second at the median, or None where they are not known or the time is implausible."""
        return None if self.implausible or self.task.bytes_moved is None else self.task.bytes_moved / self.median_s

    @property
    def images_per_s(self) -> float | None:
        """Images per second at the median, or None where the task has no parameter batch or the time is implausible."""
        batch = self.task.parameters.get("batch")
        return None if self.implausible or isinstance(batch, str | bool | None) else batch / self.median_s

    @property
    def legend(self) -> str:
        """The device with its threads and the source of the number, for a table row or a legend."""
        return legend_of(self.device, self.device_name, self.threads, self.source)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know before believing the numbers: too few samples, noise, an implausible time."""
        found = [f"IMPLAUSIBLE: {self.implausible}"] if self.implausible else []
        if self.source != "predicted":
            if len(self.times_s) < FEWEST_SAMPLES:
                found.append(
                    f"only {len(self.times_s)} sample{'s' if len(self.times_s) > 1 else ''}: no spread to trust"
                )
            elif self.relative_spread > NOISY_SPREAD:
                found.append(
                    f"NOISY: the middle half of the samples spreads over {self.relative_spread:.0%} of the median"
                )
        return (*found, *self.notes)

    def __repr__(self) -> str:
        kept = f"{len(self.times_s)} samples" if len(self.times_s) > 1 else "1 sample"
        parts = [f"{self.task} on {self.legend}: median {format_s(self.median_s)}"]
        if self.source == "predicted":
            parts.append(f"predicted by {self.provenance}")
        else:
            parts.append(f"middle half within {format_s(self.iqr_s) if self.iqr_s else '0 s'}")
            parts.append(f"{kept}, {self.profile} profile")
            if self.first_s is not None:
                parts.append(f"first call {format_s(self.first_s)} (not counted)")
        if self.device_median_s is not None:
            parts.append(f"{format_s(self.device_median_s)} by the device's own clock")
        if self.flop_per_s:
            parts.append(format_flop_per_s(self.flop_per_s))
        elif self.bytes_per_s:
            parts.append(format_bytes_per_s(self.bytes_per_s))
        sentence = ", ".join(parts) + "."
        return " ".join([sentence, *(f"{warning}." for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(repr(self))}</p>"

    def merge(self, other: Measurement) -> Measurement:
        """Return one measurement with the samples of both. Raises InputError if anything but the times differs."""
        if not isinstance(other, Measurement):
            raise InputError(f"other={other!r}", "only a Measurement can be merged with a Measurement")
        for name in SAME_IN_A_MERGE:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                shown = repr if str(mine) == str(theirs) else str
                given = f"{name} '{shown(mine)}' and '{shown(theirs)}'"
                advice = "Keep them as two measurements and compare those."
                raise InputError(given, "only runs of one task on one machine make one measurement", advice)
        both_clocks = bool(self.device_times_s) and bool(other.device_times_s)
        return dataclasses.replace(
            self,
            times_s=self.times_s + other.times_s,
            warm_up_s=self.warm_up_s + other.warm_up_s,
            device_times_s=self.device_times_s + other.device_times_s if both_clocks else (),
            implausible=self.implausible or other.implausible,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the measurement as plain JSON types; floats survive the round trip exactly."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        lists = {name: list(value) for name, value in shown.items() if isinstance(value, tuple)}
        return shown | lists | {"task": self.task.to_dict()}

    @classmethod
    def from_dict(cls, data: Any) -> Measurement:
        """Return the measurement that to_dict wrote. Raises RecordError if data is not one."""
        data = checked_record(data, "measurement", needs={"task", "times_s", "format_version"}, cls=cls)
        return read_as(cls, data | {"task": Task.from_dict(data["task"])}, "a measurement in a record")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the measurement to a JSON file, through a temporary file and a rename."""
        return write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Measurement:
        """Read a measurement from a JSON file. Raises RecordError if the file is missing or damaged."""
        return cls.from_dict(read_json(path))


def legend_of(device: str, device_name: str, threads: int | None, source: str) -> str:
    """Return what a legend calls numbers of this source from this device; threads are a CPU's.

    >>> legend_of("cpu", "AMD EPYC", 2, "measured"), legend_of("cuda:0", "T4", 2, "predicted")
    ('AMD EPYC, 2 threads (measured)', 'T4 (predicted)')
    """
    shown = f", {threads} thread{'s' if threads > 1 else ''}" if threads and device.startswith("cpu") else ""
    return f"{device_name or device}{shown} ({source})"


def _quartiles(times_s: tuple[float, ...]) -> tuple[float, float]:
    if len(times_s) == 1:
        return times_s[0], times_s[0]
    low, _, high = statistics.quantiles(times_s, n=4, method="inclusive")
    return low, high
