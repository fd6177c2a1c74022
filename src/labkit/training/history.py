"""What a training did: quality and time of every epoch, the time of its steps, and where that time went."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from labkit import html
from labkit.comparison import Speedup, speedup
from labkit.errors import InputError, RecordError, check_count, check_kind, check_number, check_positive, check_text
from labkit.errors import listed as listed_in
from labkit.files import read_json, write_json
from labkit.measurement import FORMAT_VERSION, Measurement
from labkit.measurement.record_format import checked_record, read_as, unknown_format
from labkit.units import format_count, format_s


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """One pass over the training data: mean loss and accuracy (0 to 1) while it went on, on the test data after it.

    seconds is the time of the training alone, without the test. A training loss may be no finite number: then the
    training has gone astray, and that is what a reader must see.
    """

    number: int
    loss: float
    train_accuracy: float
    seconds: float
    test_loss: float | None = None
    test_accuracy: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", check_count("number", self.number))
        check_positive("seconds", self.seconds, unit="seconds")
        for name in ("train_accuracy", "test_accuracy"):
            share = getattr(self, name)
            if share is not None and check_number(name, share) is not None and not 0 <= share <= 1:
                raise InputError(f"{name}={share!r}", "an accuracy lies between 0 and 1")


@dataclass(frozen=True, kw_only=True, repr=False)
class History:
    """What train() did: epochs, of which planned_epochs were asked for, and the time of its steps.

    steps is the time of a step with a full batch, the first of each epoch left out; None where there was no such step.
    phases holds the time of each part of a step where it was asked for, profiled the time of the steps so taken apart.
    stopped says where an interrupt came. parameters, FLOP of a step and batch stand in the task of steps.
    """

    label: str
    planned_epochs: int
    epochs: tuple[Epoch, ...] = ()
    steps: Measurement | None = None
    phases: Mapping[str, Measurement] = field(default_factory=dict, hash=False)
    profiled: Measurement | None = None
    stopped: str = ""
    notes: tuple[str, ...] = ()
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        check_text("label", self.label)
        check_text("stopped", self.stopped, empty_ok=True)
        object.__setattr__(self, "planned_epochs", check_count("planned_epochs", self.planned_epochs))
        object.__setattr__(
            self, "epochs", tuple(check_kind("epoch", it, Epoch) for it in listed_in("epochs", self.epochs))
        )
        object.__setattr__(self, "notes", tuple(check_text("a note", it) for it in listed_in("notes", self.notes)))
        if [epoch.number for epoch in self.epochs] != list(range(1, len(self.epochs) + 1)):
            raise InputError("epochs", "their numbers go from 1 on, without a gap")
        measurements = [*check_kind("phases", self.phases, Mapping).values(), self.steps, self.profiled]
        for measurement in measurements:
            if measurement is not None:
                check_kind("a time in a history", measurement, Measurement)
        object.__setattr__(self, "phases", MappingProxyType(dict(self.phases)))
        if self.format_version != FORMAT_VERSION:
            raise unknown_format(self.format_version)

    @property
    def complete(self) -> bool:
        """Whether all planned epochs were trained."""
        return len(self.epochs) >= self.planned_epochs

    @property
    def throughput(self) -> Measurement:
        """The time of one step with a full batch; images_per_s turns it into images. Raises InputError if none was."""
        if self.steps is None:
            advice = "Train longer, on more images or with a smaller batch."
            raise InputError(self.label, "no step with a full batch was timed but the first of an epoch", advice)
        return self.steps

    @property
    def images_per_s(self) -> float:
        """Images trained on per second, at the median step. Raises InputError where there was no step to time."""
        return batch_of(self.throughput) / self.throughput.median_s

    @property
    def images_per_s_range(self) -> tuple[float, float]:
        """Images per second at the slower and at the faster quartile of the steps."""
        low_s, high_s = self.throughput.quartiles_s
        return batch_of(self.throughput) / high_s, batch_of(self.throughput) / low_s

    @property
    def test_accuracy(self) -> float | None:
        """The accuracy on the test data after the last epoch, or None where there was no test."""
        return self.epochs[-1].test_accuracy if self.epochs else None

    @property
    def train_s(self) -> float:
        """Seconds of all epochs, without the tests."""
        return sum(epoch.seconds for epoch in self.epochs)

    @property
    def phase_shares(self) -> dict[str, float]:
        """The share of each phase in the time of the profiled steps' phases, from 0 to 1; empty without a profile."""
        totals_s = {name: sum(phase.times_s) for name, phase in self.phases.items()}
        whole_s = sum(totals_s.values())
        return {name: total_s / whole_s for name, total_s in totals_s.items()}

    @property
    def profiling_cost(self) -> Speedup | None:
        """How many times as long a profiled step took as those beside it that were not; None without a profile."""
        if self.profiled is None or self.steps is None:
            return None
        return speedup(self.profiled, self.steps)

    @property
    def _astray(self) -> str:
        first = next((epoch.number for epoch in self.epochs if not math.isfinite(epoch.loss)), None)
        if first is None:
            return ""
        return f"The loss was no finite number in epoch {first}: the weights ran away. Try a smaller learning_rate"

    def __repr__(self) -> str:
        lines = [f"{self.label}: {len(self.epochs)} of {self.planned_epochs} epochs in {_seconds(self.train_s)}"]
        if self.epochs:
            last = self.epochs[-1]
            test = "" if last.test_accuracy is None else f", {last.test_accuracy:.2%} on the test images"
            lines[0] += f", loss {last.loss:.3g}, accuracy {last.train_accuracy:.2%} while training{test}"
        if self.steps is not None:
            low, high = (format_count(round(rate)) for rate in self.images_per_s_range)
            rate = format_count(round(self.images_per_s))
            lines.append(f"{rate} images/s (middle half {low} to {high}), {self.steps.legend}")
        if self.phases:
            shares = ", ".join(f"{name} {share:.1%}" for name, share in self.phase_shares.items())
            lines.append(f"Of a step: {shares}")
        return ". ".join([*lines, *self._warnings()]) + "."

    def _warnings(self) -> tuple[str, ...]:
        cost = self.profiling_cost
        said = [f"A profiled step took {cost} as long as one that was not"] if cost else []
        said += [self._astray] if self._astray else []
        said += [self.stopped[0].upper() + self.stopped[1:]] if self.stopped else []
        return (*said, *self.notes)

    def _repr_html_(self) -> str:
        percent = "{:.2%}".format
        rows = [
            (e.number, f"{e.loss:.4f}", percent(e.train_accuracy),
             "" if e.test_accuracy is None else percent(e.test_accuracy), format_s(e.seconds))
            for e in self.epochs
        ]  # fmt: skip
        head = ("epoch", "loss", "accuracy while training", "test accuracy", "time")
        table = html.table(rows, head=head, caption=self.label).html if rows else ""
        return f"{html.folded('Every epoch', table).html if table else ''}<p>{html.escape(repr(self))}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return the history as plain JSON types; a loss that is no finite number becomes a text."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return shown | {
            "epochs": [_plain_epoch(epoch) for epoch in self.epochs],
            "steps": self.steps and self.steps.to_dict(),
            "profiled": self.profiled and self.profiled.to_dict(),
            "phases": {name: phase.to_dict() for name, phase in self.phases.items()},
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Any) -> History:
        """Return the history that to_dict wrote. Raises RecordError if data is not one."""
        data = checked_record(data, "history", needs={"label", "epochs", "phases", "format_version"}, cls=cls)
        if not isinstance(data["epochs"], list) or not isinstance(data["phases"], dict):
            raise RecordError("a history in a record", "it is damaged (its epochs or phases are no list)")
        read = {
            "epochs": tuple(_read_epoch(epoch) for epoch in data["epochs"]),
            "phases": {name: Measurement.from_dict(phase) for name, phase in data["phases"].items()},
        }
        for name in ("steps", "profiled"):
            read[name] = None if data.get(name) is None else Measurement.from_dict(data[name])
        return read_as(cls, data | read, "a history in a record")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the history to a JSON file, through a temporary file and a rename."""
        return write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> History:
        """Read a history from a JSON file. Raises RecordError if the file is missing or damaged."""
        return cls.from_dict(read_json(path))


def batch_of(step: Measurement) -> int:
    """Return the number of images of a step. Raises InputError if its task does not name it."""
    batch = check_kind("step", step, Measurement).task.parameters.get("batch")
    if batch is None:
        raise InputError(f"{step.task}", "this task does not say how many images a call has", 'Try {"batch": 64}.')
    return check_count("batch", batch)


def _seconds(seconds: float) -> str:
    return format_s(seconds) if seconds else "0 s"


def _plain_epoch(epoch: Epoch) -> dict[str, Any]:
    plain = dataclasses.asdict(epoch)
    for name in ("loss", "test_loss"):
        if plain[name] is not None and not math.isfinite(plain[name]):  # JSON has no NaN
            plain[name] = str(plain[name])
    return plain


def _read_epoch(data: Any) -> Epoch:
    data = dict(checked_record(data, "epoch", needs={"number", "loss", "train_accuracy", "seconds"}, cls=Epoch))
    for name in ("loss", "test_loss"):
        if data.get(name) in ("nan", "inf", "-inf"):
            data[name] = float(data[name])
    return read_as(Epoch, data, "an epoch in a record")
