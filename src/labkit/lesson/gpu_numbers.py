"""Numbers for a GPU from the best source there is: measured here, else recorded elsewhere, else predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from labkit.devices import Device
from labkit.hardware import Gpu
from labkit.measurement import Measurement, Sweep, Task
from labkit.prediction import predict_measurement, predict_sweep
from labkit.recordings import find_recorded, find_recorded_sweep
from labkit.timing import measure, sweep

ONLY_MEASURED = ("min_time_s", "cold", "calls_per_sample", "threads", "progress", "seed")
ONLY_PREDICTED = ("launches", "round_trip", "transfer")


def gpu_sweep(gpu: Device | None, reference: Gpu, make: Any, values: Iterable[float], **work: Any) -> Sweep:
    """Return the sweep on the GPU of this machine, else a recorded one, else the prediction for the reference GPU."""
    if gpu is not None:
        return sweep(make, values, device=gpu, **_without(work, ONLY_PREDICTED))
    values = list(values)
    recorded = find_recorded_sweep(work.get("parameter", "n"), {value: _task(work, value) for value in values})
    return recorded or predict_sweep(values, gpu=reference, **_without(work, ONLY_MEASURED))


def gpu_measurement(
    gpu: Device | None, reference: Gpu, make: Callable[[str], Callable[[], Any]], **work: Any
) -> Measurement:
    """Return the measurement of make(device)() on the GPU of this machine, else a recorded one, else a prediction."""
    if gpu is not None:
        return measure(make(gpu.torch_name), device=gpu, **_without(work, ONLY_PREDICTED))
    return find_recorded(_task(work)) or predict_measurement(gpu=reference, **_without(work, ONLY_MEASURED))


def _task(work: dict[str, Any], *value: float) -> Task:
    """Return the task that work describes: the same one must have been recorded. In a sweep the work is of a value."""
    amounts = {name: work[name] for name in ("flop", "bytes_moved") if work.get(name)}
    amounts = {name: amount(*value) if callable(amount) else amount for name, amount in amounts.items()}
    return Task(label=work["label"], dtype=work.get("dtype"), **amounts)


def _without(work: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in work.items() if name not in names}
