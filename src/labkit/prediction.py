"""Predicted measurements: the stated model of a GPU in the shape of a measurement, always marked as predicted.

The model is the roofline with the datasheet's figures, lowered to what programs reach, plus a cost for every launch
and, where asked for, the way over the PCIe link; its constants and their sources stand in the hardware catalogue.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.comparison import interval_s
from labkit.errors import check_choice, check_kind, check_positive, check_text
from labkit.hardware import Gpu, prediction_model
from labkit.measurement import OUT_OF_MEMORY, Measurement, Point, Sweep, Task, check_functions, checked_values
from labkit.roofline import FROM_CATALOGUE, Prediction, Work, predict, predict_transfer
from labkit.units import format_bytes

TRANSFERS = (None, "pinned", "pageable")

OfValue = Callable[[Any], float]


def predict_measurement(
    *,
    gpu: Gpu,
    label: str,
    dtype: str = "float32",
    flop: float | None = None,
    bytes_moved: float,
    parameters: Mapping[str, Any] | None = None,
    launches: int = 1,
    round_trip: bool = False,
    transfer: str | None = None,
    host_s: float = 0,
) -> Measurement:
    """Return the predicted time of one task on a GPU of the catalogue, with the range that the model leaves open.

    launches is the number of operations that share the work. round_trip=True adds the wait for the answer: the latency
    of one call. transfer="pinned" or "pageable" predicts carrying bytes_moved between host and GPU instead. host_s is
    the host's time for starting all operations of a call, where that is known from a measurement: no call is shorter,
    and it varies from host to host as the model's launch_s does. The times are the low end, the expectation and the
    high end of the range, so that median and quartiles give these three.

    >>> from labkit.hardware import gpu
    >>> m = predict_measurement(gpu=gpu("T4"), label="add", flop=1e6, bytes_moved=12e6)
    >>> m.source, m.device_name
    ('predicted', 'T4')
    """
    check_choice("transfer", transfer, TRANSFERS)
    if transfer:
        found = predict_transfer(bytes_moved, gpu, pinned=transfer == "pinned")
        basis = f"the {gpu.host_link} link and a round trip"
    else:
        found = predict(Work(0 if flop is None else flop, bytes_moved), gpu, dtype, launches=launches)
        basis = "the roofline of the datasheet and the cost of a launch"
    extra = prediction_model().round_trip_s if round_trip and not transfer else None
    bound_by = found.bound_by
    times_s = _with_round_trip(found, extra)
    if check_positive("host_s", host_s, unit="seconds", zero_ok=True) > times_s[1]:
        basis, bound_by = f"the time of a host to start the operations, or {basis}", "the host"
    low_s, time_s, high_s = (max(pair) for pair in zip(times_s, _host_range_s(host_s), strict=True))
    return Measurement(
        task=Task(
            label=label,
            dtype=dtype,
            parameters={} if parameters is None else parameters,
            flop=flop,
            bytes_moved=bytes_moved,
        ),
        times_s=(low_s, low_s, time_s, high_s, high_s),  # five values, so that the quartiles are the ends of the range
        source="predicted",
        device="cuda",
        device_name=gpu.key,
        machine="",
        provenance=f"{basis}, bound by {bound_by}",
    )


def predict_sweep(
    values: Iterable[float],
    *,
    gpu: Gpu,
    label: str,
    parameter: str = "n",
    dtype: str = "float32",
    flop: OfValue | None = None,
    bytes_moved: OfValue,
    needs_bytes: OfValue | None = None,
    launches: OfValue | int = 1,
    **options: Any,
) -> Sweep:
    """Return the predicted sweep; what needs more than the GPU's memory is a point out of memory.

    flop, bytes_moved, needs_bytes and launches are functions of the value, as in sweep().

    >>> from labkit.hardware import gpu
    >>> s = predict_sweep([1e3, 1e12], gpu=gpu("T4"), label="add", bytes_moved=lambda n: 12 * n,
    ...                   needs_bytes=lambda n: 12 * n)
    >>> s.source, [point.outcome for point in s.points]
    ('predicted', ['measured', 'out of memory'])
    """
    values = checked_values(parameter, values)
    check_functions({"bytes_moved": bytes_moved}, flop=flop, needs_bytes=needs_bytes)
    check_kind("gpu", gpu, Gpu, FROM_CATALOGUE)
    points = []
    for value in values:
        wanted = check_positive("needs_bytes", needs_bytes(value), zero_ok=True) if needs_bytes else 0
        if wanted > gpu.memory_bytes:
            detail = f"needs {format_bytes(wanted)}, a {gpu.key} has {format_bytes(gpu.memory_bytes)}"
            points.append(Point(value=value, outcome=OUT_OF_MEMORY, detail=detail))
            continue
        predicted = predict_measurement(
            gpu=gpu,
            label=label,
            dtype=dtype,
            flop=flop(value) if flop else None,
            bytes_moved=bytes_moved(value),
            parameters={parameter: value},
            launches=launches(value) if callable(launches) else launches,
            **options,
        )
        points.append(Point(value=value, measurement=predicted))
    return Sweep(label=label, parameter=parameter, points=tuple(points))


def extrapolate(
    measurement: Measurement, factor: float, *, law: str, parameters: Mapping[str, Any], label: str = ""
) -> Measurement:
    """Return what a measurement predicts for factor times the work, by a stated law; marked as predicted.

    label names the larger task, where it is another one than the measured. A lone sample shows no spread; its
    prediction gets the range of interval_s.

    >>> from labkit.measurement import Measurement, Task
    >>> small = Measurement(task=Task(label="loop", parameters={"n": 100}), times_s=[0.1, 0.1])
    >>> large = extrapolate(small, 1000, law="time grows with n³", parameters={"n": 1000})
    >>> large.median_s, large.source
    (100.0, 'predicted')
    """
    check_positive("factor", factor)
    task = check_kind("measurement", measurement, Measurement).task
    here = measurement.source == "measured"
    origin = "measured here" if here else f"{measurement.source} ({measurement.provenance})"
    return dataclasses.replace(
        measurement,
        task=dataclasses.replace(
            task,
            label=check_text("label", label, empty_ok=True) or task.label,
            parameters=parameters,
            flop=task.flop and task.flop * factor,
            bytes_moved=task.bytes_moved and task.bytes_moved * factor,
        ),
        times_s=tuple(factor * time_s for time_s in _believed_s(measurement)),
        warm_up_s=(),
        device_times_s=(),
        source="predicted",
        provenance=f"{law}, from {task} {origin}",
    )


def _believed_s(measurement: Measurement) -> tuple[float, ...]:
    """Return the samples, or where there is one alone, the range that it is believed to have: a prediction keeps it."""
    if len(measurement.times_s) > 1:
        return measurement.times_s
    low_s, high_s = interval_s(measurement)
    return low_s, low_s, measurement.median_s, high_s, high_s


def _host_range_s(host_s: float) -> tuple[float, float, float]:
    launch = prediction_model().launch_s
    return host_s * launch.low / launch.value, host_s, host_s * launch.high / launch.value


def _with_round_trip(found: Prediction, extra: Any) -> tuple[float, float, float]:
    if extra is None:
        return found.low_s, found.time_s, found.high_s
    return found.low_s + extra.low, found.time_s + extra.value, found.high_s + extra.high
