"""A machine whose time is written in a script: its clock moves only when work is done, so no test waits or varies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, repeat
from typing import Any

import torch

from labkit import devices


class ScriptedClock:
    """A clock that moves by what is worked, and by read_s whenever somebody looks at it."""

    def __init__(self, read_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.read_s = read_s

    def __call__(self) -> float:
        self.now_s += self.read_s
        return self.now_s

    def work(self, seconds: float) -> None:
        self.now_s += seconds

    def job(self, seconds: float, *, first: Iterable[float] = (), result: Any = None) -> Callable[[], Any]:
        """Return a function that works so many seconds; its first calls may last otherwise."""
        durations = chain(first, repeat(seconds))

        def fn() -> Any:
            self.work(next(durations))
            return result

        return fn


class ScriptedGpu:
    """A GPU with a queue: a launch returns at once, the job is paid for by whoever waits for it.

    Times in seconds; events hold the time at which the queue reaches them, as CUDA's do.
    """

    def __init__(
        self, clock: ScriptedClock, launch_s: float = 10e-6, sync_s: float = 0.0, event_s: float = 0.0
    ) -> None:
        self.clock = clock
        self.launch_s, self.sync_s, self.event_s = launch_s, sync_s, event_s
        self.free_at_s = 0.0
        self.calls: list[str] = []

    def job(self, seconds: float, *, first: Iterable[float] = ()) -> Callable[[], None]:
        """Return a function that launches a job of so many seconds; its first jobs may last otherwise."""
        durations = chain(first, repeat(seconds))

        def fn() -> None:
            self.clock.work(self.launch_s)
            self.free_at_s = max(self.free_at_s, self.clock.now_s) + next(durations)
            self.calls.append("launch")

        return fn

    def synchronize(self) -> None:
        self.clock.now_s = max(self.clock.now_s, self.free_at_s) + self.sync_s
        self.calls.append("synchronize")

    def event(self, *, enable_timing: bool = False) -> ScriptedEvent:
        assert enable_timing, "an event without timing has no time to ask for"
        return ScriptedEvent(self)

    def install(self, monkeypatch: Any, kind: str = "cuda", spec: Any = None) -> devices.Device:
        """Put the GPU in the place of torch's own and return the device that stands for it."""
        device = devices.Device(kind, 0, "Scripted GPU", memory_bytes=16 * 10**9, spec=spec)
        of_torch = devices.synchronizer
        monkeypatch.setattr(
            devices, "synchronizer", lambda asked: self.synchronize if asked == device else of_torch(asked)
        )
        monkeypatch.setattr(torch.cuda, "Event", self.event)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda index: f"stream of {index}")
        return device


class ScriptedEvent:
    """An event of a ScriptedGpu."""

    def __init__(self, gpu: ScriptedGpu) -> None:
        self.gpu = gpu
        self.at_s: float | None = None

    def record(self, stream: Any) -> None:
        assert stream == "stream of 0"
        self.gpu.clock.work(self.gpu.event_s)
        self.at_s = max(self.gpu.free_at_s, self.gpu.clock.now_s)
        self.gpu.calls.append("event")

    def synchronize(self) -> None:
        assert self.at_s is not None
        self.gpu.clock.now_s = max(self.gpu.clock.now_s, self.at_s)
        self.gpu.calls.append("wait for event")

    def elapsed_time(self, end: ScriptedEvent) -> float:
        """Return milliseconds, as torch's does, and refuse as it does what was not recorded or not waited for."""
        assert self.at_s is not None and end.at_s is not None
        assert end.at_s <= self.gpu.clock.now_s, "the event was not waited for"
        return (end.at_s - self.at_s) * 1000


class TensorOn(torch.Tensor):
    """A tensor that says it lies on a device that is not here."""

    @staticmethod
    def __new__(cls, device: str, dtype: torch.dtype = torch.float32) -> TensorOn:
        return torch.Tensor._make_wrapper_subclass(cls, (1,), dtype=dtype, device=device)

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise AssertionError(f"{function} was called on a tensor without data")

    def __repr__(self) -> str:
        return f"TensorOn({str(self.device)!r})"
