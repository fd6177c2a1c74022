"""What is fed: a real device that takes batches, or a stand-in whose step takes a stated time.

Both work as a GPU does behind PyTorch: submit() hands a batch over and returns, and the CPU prepares the next one
meanwhile. One step may run and one more may wait in the queue; then submit() itself waits.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from labkit import devices
from labkit.errors import InputError, check_positive, check_text
from labkit.timing.clocks import Clock
from labkit.units import format_s


class Step(NamedTuple):
    """When an accelerator began a step and ended it, in seconds of one clock; transfer_s is the first part of it."""

    start_s: float
    end_s: float
    transfer_s: float = 0.0


class StandIn:
    """An accelerator whose every step takes step_s seconds: it stands in for a GPU where there is none.

    It computes nothing and only keeps the times at which a GPU would start and finish. Like one, it leaves the CPU
    free: whoever waits for it sleeps. source is predicted, since its step time is stated and not measured.
    Raises InputError for a time that is not positive.

    >>> gpu = StandIn(0.001)
    >>> gpu.submit("a batch"), gpu.submit("another"), gpu.synchronise()
    (None, None, None)
    >>> [round(step.end_s - step.start_s, 6) for step in gpu.steps()]
    [0.001, 0.001]
    """

    source = "predicted"

    def __init__(
        self,
        step_s: float,
        *,
        name: str = "",
        clock: Clock = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.step_s = float(check_positive("step_s", step_s, unit="seconds"))
        stated = f"{format_s(self.step_s)} a step"
        self.name = check_text("name", name, empty_ok=True) or f"stand-in of {stated}"
        self._said = f"{name}, {stated}" if name else self.name
        self._clock, self._sleep = clock, sleep
        self._steps: list[Step] = []

    def __repr__(self) -> str:
        return f"{self._said} ({self.source})"

    def begin(self) -> None:
        """Forget all steps: a new run begins."""
        self._steps.clear()

    def submit(self, batch: Any) -> None:
        """Queue one step on this batch; wait first while a step is still queued behind the running one."""
        free_s = self._clock()
        if self._steps:
            self._sleep_until(self._steps[-1].start_s)
            free_s = self._steps[-1].end_s
        start_s = max(self._clock(), free_s)
        self._steps.append(Step(start_s, start_s + self.step_s))

    def synchronise(self) -> None:
        """Wait until the last step is done."""
        if self._steps:
            self._sleep_until(self._steps[-1].end_s)

    def steps(self) -> tuple[Step, ...]:
        """Return the steps since begin()."""
        return tuple(self._steps)

    def _sleep_until(self, then_s: float) -> None:
        left_s = then_s - self._clock()
        if left_s > 0:
            self._sleep(left_s)


class Accelerator:
    """A real device: each batch is copied to it and handed to step, and its own clock tells when it was at work.

    step takes what the loader gives, with every tensor on the device. On an NVIDIA GPU the times come from CUDA events;
    elsewhere submit() waits for the step. Raises DeviceError for a device that is not there.

    >>> import torch
    >>> cpu = Accelerator(lambda batch: batch.sum(), device="cpu")
    >>> cpu.submit(torch.ones(8))
    >>> len(cpu.steps()), cpu.source
    (1, 'measured')
    """

    source = "measured"

    def __init__(self, step: Callable[[Any], Any], *, device: Any, clock: Clock = time.perf_counter) -> None:
        if not callable(step):
            raise InputError(f"step={step!r}", "step is a function of a batch", "Try step=lambda batch: …")
        self.device = devices.pick(device)
        self.name = self.device.name
        self._step = step
        self._clock = clock
        self._synchronize = devices.synchronizer(self.device)
        self._steps: list[Step] = []
        self._events: list[tuple[Any, Any, Any]] = []

    def __repr__(self) -> str:
        return f"{self.name} ({self.source})"

    def begin(self) -> None:
        """Forget all steps: a new run begins."""
        self._steps.clear()
        self._events.clear()

    def submit(self, batch: Any) -> None:
        """Copy the batch to the device and start the step; wait first while a step is still queued behind another."""
        if self.device.kind == "cuda":
            self._submit_to_cuda(batch)
            return
        start_s = self._clock()
        batch = to_device(batch, self.device.torch_name)
        self._synchronize()
        carried_s = self._clock()
        self._step(batch)
        self._synchronize()
        self._steps.append(Step(start_s, self._clock(), carried_s - start_s))

    def synchronise(self) -> None:
        """Wait until the last step is done."""
        self._synchronize()

    def steps(self) -> tuple[Step, ...]:
        """Return the steps since begin(); on an NVIDIA GPU it waits for them, and counts from the first one's start."""
        if self.device.kind != "cuda" or not self._events:
            return tuple(self._steps)
        self._synchronize()
        origin = self._events[0][0]
        at_s = [tuple(origin.elapsed_time(event) / 1000 for event in events) for events in self._events]
        return tuple(Step(start_s, end_s, carried_s - start_s) for start_s, carried_s, end_s in at_s)

    def _submit_to_cuda(self, batch: Any) -> None:
        if len(self._events) > 1:
            self._events[-2][2].synchronize()
        events = [self._recorded()]
        batch = to_device(batch, self.device.torch_name)
        events.append(self._recorded())
        self._step(batch)
        events.append(self._recorded())
        self._events.append(tuple(events))

    def _recorded(self) -> Any:
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device.index))
        return event


def to_device(batch: Any, device: str) -> Any:
    """Return the batch with its tensors on the device; from pinned memory they travel while the CPU goes on."""
    if hasattr(batch, "to") and hasattr(batch, "device"):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: to_device(part, device) for name, part in batch.items()}
    if isinstance(batch, (list, tuple)):
        parts = [to_device(part, device) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch
