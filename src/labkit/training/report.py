"""The history of a training at any moment, made from its counters and clocks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from labkit import devices
from labkit.errors import LabkitError
from labkit.measurement import SAME_IN_A_MERGE, Measurement, Task
from labkit.profiles import current_profile
from labkit.training.history import History
from labkit.training.step import work_of
from labkit.training.watch import PHASES

if TYPE_CHECKING:
    from labkit.training.steps import Training


class Report:
    """Writes the history of one training; before is that of its earlier part, read from a checkpoint."""

    def __init__(self, training: Training, threads: int, before: History | None = None) -> None:
        self.training, self.threads, self.before = training, threads, before
        self.model_name = name_of(training.model)
        self.machine = devices.machine().id
        self.profile = current_profile().name

    def history(self, stopped: str = "") -> History:
        """Return the history until now; stopped says where an interrupt came."""
        training, watch, before = self.training, self.training.watch, self.before
        flop = self._flop if watch.steps_s else None
        steps = self._measurement("training step", watch.steps_s, warm_up_s=watch.first_steps_s, flop=flop)
        profiled = self._measurement("profiled training step", watch.profiled_s)
        phases = {name: self._measurement(name, times_s) for name, times_s in watch.phases_s.items()}
        if before is not None:
            steps, profiled = _joined(before.steps, steps), _joined(before.profiled, profiled)
            phases = {name: _joined(before.phases.get(name), phases.get(name)) for name in PHASES}
        return History(
            label=f"{self.model_name} on {training.data!r}",
            planned_epochs=training.settings.epochs,
            epochs=tuple(training.epochs),
            steps=steps,
            phases={name: phase for name, phase in phases.items() if phase},
            profiled=profiled,
            stopped=stopped,
            notes=tuple(filter(None, [training.precision.note, *training.notes])),
        )

    def where(self) -> str:
        """Say where the training stands."""
        done, into = len(self.training.epochs), self.training.steps_into_epoch
        if not into:
            return f"after epoch {done}" if done else "before the first step"
        return f"in epoch {done + 1}, after step {into} of {self.training.steps_per_epoch}"

    @functools.cached_property
    def _flop(self) -> int | None:
        """The FLOP of a step, or None for a model that cannot be counted, such as one that looks at its data."""
        try:
            return work_of(self.training.model, (self.training.settings.batch, *self.training.data.shape)).flop
        except (RuntimeError, NotImplementedError, TypeError, LabkitError):
            return None

    def _measurement(self, label: str, times_s: Sequence[float], **fields: Any) -> Measurement | None:
        if not times_s:
            return None
        training = self.training
        task = Task(
            label=f"{label} of {self.model_name}",
            dtype=training.precision.name,
            parameters={"batch": training.settings.batch},
            flop=fields.pop("flop", None),
        )
        return Measurement(
            task=task,
            times_s=times_s,
            device=training.device.torch_name,
            device_name=training.device.name,
            machine=self.machine,
            threads=self.threads,
            profile=self.profile,
            notes=tuple(filter(None, [devices.timing_note(training.device)])),
            **fields,
        )


def _joined(before: Measurement | None, now: Measurement | None) -> Measurement | None:
    """Return the times of both parts of a training, or of the later one alone if it went on under other conditions."""
    if before is None or now is None:
        return now or before
    same = all(getattr(before, name) == getattr(now, name) for name in SAME_IN_A_MERGE)
    return before.merge(now) if same else now


def name_of(model: nn.Module) -> str:
    """Return what a model is called: its own name if it has one, else that of its class."""
    name = getattr(model, "name", None)
    return name if isinstance(name, str) and name.strip() else type(model).__name__
