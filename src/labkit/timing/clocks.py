"""The two clocks of a timing: the host's, read after the right synchronisation, and the GPU's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit import devices
from labkit.errors import DeviceError
from labkit.workload import tensors_in

Clock = Callable[[], float]

CACHE_BYTES = 256 * 2**20  # larger than the last cache of today's CPUs and GPUs; see the catalogue's l2_bytes


class Ticker:
    """A timer function for timeit: synchronises the device, reads the host's clock, and records CUDA events.

    timeit calls its timer once before and once after each sample. Before, the queue is drained, the event recorded and
    the host's clock read last, so that the host's time does not contain the making of an event; after, the event is
    recorded right behind the work, and the clock is read once the queue is drained.
    """

    def __init__(self, device: devices.Device, clock: Clock) -> None:
        self.device = device
        self.clock = clock
        self._synchronize = devices.synchronizer(device)
        self._event_pairs: list[tuple[Any, Any]] = []
        self._start_event: Any = None
        self._running = False

    def __call__(self) -> float:
        """Return the host time in seconds at which the device has nothing left to do."""
        self._running = not self._running
        if self._running:
            self._synchronize()
            self._start_event = self._recorded_event()
        else:
            self._event_pairs.append((self._start_event, self._recorded_event()))
            self._synchronize()
        return self.clock()

    def device_times_s(self, samples: int, calls: int) -> tuple[float, ...]:
        """Return seconds per call by the GPU's clock for the last samples, or () for a device that has none."""
        if self.device.kind != "cuda":
            return ()
        return tuple(start.elapsed_time(end) / 1000 / calls for start, end in self._event_pairs[-samples:])

    def _recorded_event(self) -> Any:
        if self.device.kind != "cuda":
            return None
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record(torch.cuda.current_stream(self.device.index))
        return event


def cache_flusher(device: devices.Device) -> Callable[[], Any]:
    """Return a function that overwrites a buffer larger than the device's caches, so that the next read is cold."""
    import torch

    buffer = torch.zeros(CACHE_BYTES // 4, dtype=torch.int32, device=device.torch_name)
    return buffer.zero_


def check_result_device(result: Any, device: devices.Device) -> str | None:
    """Return the dtype of the first tensor in result. Raises DeviceError if any tensor lies on another device."""
    dtype = None
    for tensor in tensors_in(result):
        lies_on = tensor.device
        same_index = lies_on.index is None or device.index is None or lies_on.index == device.index
        if lies_on.type != device.kind or not same_index:
            raise DeviceError(
                f"device={device.torch_name!r}, but fn returns a tensor on {str(lies_on)!r}",
                "the time would be counted for a device that did not do the work",
                f"Create the inputs with device={device.torch_name!r}, or name {str(lies_on)!r}.",
            )
        dtype = dtype or str(tensor.dtype).removeprefix("torch.")
    return dtype
