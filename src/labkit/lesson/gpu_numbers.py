"""Numbers for a GPU from the best source there is: measured here, else recorded elsewhere, else predicted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from labkit.devices import Device
from labkit.errors import InputError
from labkit.hardware import Gpu
from labkit.loading import Accelerator, StandIn
from labkit.measurement import Measurement, Sweep, Task, checked_values
from labkit.prediction import predict_measurement, predict_sweep
from labkit.recordings import find_recorded, find_recorded_sweep
from labkit.simt import Trace
from labkit.simt import predict as predict_kernel
from labkit.timing import measure, sweep

ONLY_MEASURED = ("min_time_s", "cold", "calls_per_sample", "min_samples", "threads", "progress", "seed")
ONLY_PREDICTED = ("launches", "round_trip", "transfer", "host_s")


def gpu_sweep(gpu: Device | None, reference: Gpu, make: Any, values: Iterable[float], **work: Any) -> Sweep:
    """Return the sweep on the GPU of this machine, else a recorded one, else the prediction for the reference GPU."""
    if gpu is not None:
        return sweep(make, values, device=gpu, **_without(work, ONLY_PREDICTED))
    _check_described(work)
    values = checked_values(work.get("parameter", "n"), values)
    recorded = find_recorded_sweep(work.get("parameter", "n"), {value: _task(work, value) for value in values})
    return recorded or predict_sweep(values, gpu=reference, **_without(work, ONLY_MEASURED))


def gpu_measurement(
    gpu: Device | None, reference: Gpu, make: Callable[[str], Callable[[], Any]], **work: Any
) -> Measurement:
    """Return the measurement of make(device)() on the GPU of this machine, else a recorded one, else a prediction."""
    if gpu is not None:
        return measure(make(gpu.torch_name), device=gpu, **_without(work, ONLY_PREDICTED))
    _check_described(work)
    return find_recorded(_task(work)) or predict_measurement(gpu=reference, **_without(work, ONLY_MEASURED))


def accelerator(
    gpu: Device | None, reference: Gpu, make: Callable[[str], Callable[[Any], Any]], **work: Any
) -> tuple[Accelerator | StandIn, Measurement | None]:
    """Return the GPU of this machine at work on batches, else a stand-in, and what the stand-in's step time is from."""
    if gpu is not None:
        return Accelerator(make(gpu.torch_name), device=gpu), None
    found = gpu_measurement(gpu, reference, make, **work)
    return StandIn(found.median_s, name=f"stand-in for a {found.device_name}"), found


def _check_described(work: Mapping[str, Any]) -> None:
    """Raise InputError if work lacks what a recording is found by, or a prediction made from."""
    for name, why in (("label", "a recording is found by it"), ("bytes_moved", "a prediction is made from it")):
        if name not in work:
            given = f"work described by {', '.join(work) or 'nothing'}"
            raise InputError(given, f"{name} is missing: where there is no GPU, {why}", f"Add {name}=….")


def _task(work: dict[str, Any], *value: float) -> Task:
    """Return the task that work describes: the same one must have been recorded. In a sweep the work is of a value."""
    amounts = {name: work[name] for name in ("flop", "bytes_moved") if work.get(name)}
    amounts = {name: amount(*value) if callable(amount) else amount for name, amount in amounts.items()}
    return Task(label=work["label"], dtype=work.get("dtype"), **amounts)


def kernel_measurement(
    gpu: Device | None, reference: Gpu, traced: Trace, make: Callable[[str], Callable[[], Any]], **work: Any
) -> Measurement:
    """Return the time of a kernel: measured on the GPU of this machine, else recorded, else predicted from its trace.

    On a GPU it is timed with CUDA events, like everything that measure() times there. work is label and, where known,
    dtype and bytes_moved; the FLOP are those of the trace.
    """
    work["flop"] = traced.counters["flop"] or None
    if gpu is not None:
        return measure(make(gpu.torch_name), device=gpu, **work)
    recorded = find_recorded(_task(work))
    if recorded is not None:
        return recorded
    found = predict_kernel(traced, reference)
    return Measurement(
        task=_task(work),
        times_s=(found.low_s, found.low_s, found.seconds, found.high_s, found.high_s),  # quartiles are the range's ends
        source="predicted",
        device="cuda",
        device_name=reference.key,
        machine="",
        provenance=f"the bottleneck model of labkit.simt.predict, bound by {found.bottleneck}",
    )


def library_shared_bytes(operations: Mapping[str, Callable[[], Any]]) -> dict[str, int]:
    """Return the bytes of shared memory that a block takes, the most over each operation's kernels, by a profile."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    found = {}
    for name, operation in operations.items():
        operation()  # compiles and chooses kernels
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as run:
            operation()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            run.export_chrome_trace(str(path))
            found[name] = most_shared_bytes(json.loads(path.read_text(encoding="utf-8")))
    return found


def most_shared_bytes(chrome_trace: Mapping[str, Any]) -> int:
    """Return the most shared memory in bytes that a block takes, over the kernels of a profile in Chrome's format.

    >>> most_shared_bytes({"traceEvents": [{"cat": "kernel", "args": {"shared memory": 8192}}, {"cat": "cpu_op"}]})
    8192
    """
    kernels = [event for event in chrome_trace.get("traceEvents", ()) if event.get("cat") == "kernel"]
    return max((int(event.get("args", {}).get("shared memory", 0)) for event in kernels), default=0)


def _without(work: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in work.items() if name not in names}
