"""The times of a training: every step, and of some steps every phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from labkit import devices
from labkit.timing.clocks import Clock

PHASES = ("waiting for data", "transfer", "forward", "backward", "optimiser")
WAITING, TRANSFER, FORWARD, BACKWARD, OPTIMISER = PHASES
PROFILED_IN_A_ROW = 4  # steps with and without phases take turns, so that a drift of the machine meets both alike


class StepWatch:
    """Takes the time of every step, and between marks that of each phase where it is asked to.

    A GPU works on while the host goes ahead: without a profile its steps are timed by events in its own queue, which
    nobody waits for until the epoch is over. To time a phase the host must wait for the GPU at the end of each, which
    takes away what running ahead saves; so PROFILED_IN_A_ROW steps are profiled, as many are not, and what the
    profile costs is seen by comparing the two. The first step of an epoch and those of partial batches are left out
    of all statistics.
    """

    def __init__(self, device: devices.Device, *, batch: int, profile: bool, clock: Clock) -> None:
        self.batch, self.profile, self.clock = batch, profile, clock
        self.steps_s: list[float] = []
        self.first_steps_s: list[float] = []
        self.profiled_s: list[float] = []
        self.phases_s: dict[str, list[float]] = {name: [] for name in PHASES} if profile else {}
        self._synchronize = devices.synchronizer(device)
        self._marks: list[Any] = []
        self._kinds: list[str] = []
        self._mark = _event_marker(device) if device.kind == "cuda" else self._time_mark(device)
        self._is_cuda = device.kind == "cuda"
        self._count = 0
        self._row: dict[str, float] = {}
        self._last_s = 0.0

    def start_epoch(self) -> None:
        """Take the time from which the next step counts."""
        self._synchronize()
        self._marks, self._kinds = [self._mark()], []

    def start_step(self) -> Callable[[str], None]:
        """Return what is to be called with the name of each phase when it is over."""
        self._count += 1
        if not self.profile or not self._kinds or (self._count // PROFILED_IN_A_ROW) % 2:
            self._row = {}
            return _nothing
        self._synchronize()
        self._row, self._last_s = {}, self.clock()
        return self._phase_done

    def end_step(self, images: int) -> None:
        """Take the time of a step with so many images."""
        self._marks.append(self._mark())
        if not self._kinds:
            kind = "first"
        elif images < self.batch:
            kind = "partial"
        else:
            kind = "profiled" if self._row else "whole"
        self._kinds.append(kind)
        if kind == "profiled":
            for name, seconds in self._row.items():
                self.phases_s[name].append(seconds)

    def end_epoch(self) -> None:
        """Sort the times of the epoch's steps into those that count and those that do not."""
        self._synchronize()
        lists = {"first": self.first_steps_s, "whole": self.steps_s, "profiled": self.profiled_s}
        for kind, start, end in zip(self._kinds, self._marks, self._marks[1:], strict=False):
            if kind in lists:
                seconds = start.elapsed_time(end) / 1000 if self._is_cuda else end - start
                lists[kind].append(max(seconds, 1e-9))  # no clock read is shorter, and zero would divide
        self._marks, self._kinds = [], []

    def _phase_done(self, name: str) -> None:
        self._synchronize()
        now_s = self.clock()
        self._row[name] = max(now_s - self._last_s, 1e-9)
        self._last_s = now_s

    def _time_mark(self, device: devices.Device) -> Callable[[], float]:
        """Return the host's clock; on a GPU without events that can be asked for their time, after waiting for it."""
        if not device.is_gpu:
            return self.clock

        def mark() -> float:
            self._synchronize()
            return self.clock()

        return mark


def _event_marker(device: devices.Device) -> Callable[[], Any]:
    def mark() -> Any:
        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(device.index))
        return event

    return mark


def _nothing(_phase: str) -> None:
    """Take no time: the step is not profiled."""
