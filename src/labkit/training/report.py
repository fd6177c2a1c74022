"""The history of a training at any moment, made from its counters and clocks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from labkit import devices
from labkit.errors import InputError
from labkit.measurement import Measurement, Task
from labkit.profiles import current_profile
from labkit.training.history import History
from labkit.workload import count_work

if TYPE_CHECKING:
    from labkit.training.loop import Training


class Report:
    """Writes the history of one training."""

    def __init__(self, training: Training, threads: int) -> None:
        self.training, self.threads = training, threads
        self.model_name = name_of(training.model)
        self.flop = step_flop(training.model, (training.settings.batch, *training.data.shape))
        self.machine = devices.machine().id
        self.profile = current_profile().name

    def history(self, stopped: str = "") -> History:
        """Return the history until now; stopped says where an interrupt came."""
        training, watch = self.training, self.training.watch
        phases = {name: self._measurement(name, times_s) for name, times_s in watch.phases_s.items() if times_s}
        return History(
            label=f"{self.model_name} on {training.data!r}",
            planned_epochs=training.settings.epochs,
            epochs=tuple(training.epochs),
            steps=self._measurement("training step", watch.steps_s, warm_up_s=watch.first_steps_s, flop=self.flop),
            phases=phases,
            profiled=self._measurement("training step, taken apart", watch.profiled_s),
            stopped=stopped,
            notes=tuple(filter(None, [training.precision.note])),
        )

    def where(self) -> str:
        """Say where the training stands."""
        epoch, step = divmod(self.training.step, self.training.steps_per_epoch)
        return f"in epoch {epoch + 1}, after step {step} of {self.training.steps_per_epoch}"

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


def name_of(model: nn.Module) -> str:
    """Return what a model is called: its own name if it has one, else that of its class."""
    name = getattr(model, "name", None)
    return name if isinstance(name, str) and name.strip() else type(model).__name__


def step_flop(model: nn.Module, shape: Sequence[int]) -> int | None:
    """Return the FLOP of forward and backward for images of shape, by torch's counter, or None where it cannot tell.

    Nothing is computed: a copy of the model without data (device "meta") goes through the step.
    """
    try:
        twin = copy.deepcopy(model).to("meta").train()
        images = torch.empty(tuple(shape), dtype=next(twin.parameters()).dtype, device="meta")
        labels = torch.zeros(shape[0], dtype=torch.int64, device="meta")
        return count_work(lambda: functional.cross_entropy(twin(images), labels).backward()).flop
    except (RuntimeError, NotImplementedError, StopIteration, InputError):  # a model that looks at its data
        return None
