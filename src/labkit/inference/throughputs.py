"""How many items are answered in a second, by how many are answered at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from labkit.errors import InputError, check_kind
from labkit.inference.calls import by_batch, inference_work
from labkit.measurement import Measurement, Sweep
from labkit.timing import sweep


def throughput(
    model: Any, example: Any, batches: Iterable[int], *, device: Any = "cpu", label: str = "inference", **options: Any
) -> Sweep:
    """Time the model on batches of these sizes, and return the times of a call as a Sweep over "batch".

    The batch repeats the first item of example and lies on the device already. The FLOP of a call are counted, so that
    the sweep has its FLOP per second, too; images_per_s gives the images per second. options are those of sweep; raises
    what sweep raises.

    >>> import torch
    >>> found = throughput(torch.nn.Linear(4, 2), torch.ones(1, 4), [1, 8], progress=False, min_time_s=0.001)
    >>> found.parameter, found.values, found.at(8).task.flop
    ('batch', (1, 8), 128)
    """
    work = inference_work(model, example)
    options = {"flop": work["flop"], "bytes_moved": work["bytes_moved"]} | options
    return sweep(by_batch(model, example), batches, device=device, parameter="batch", label=label, **options)


def best_throughput(found: Sweep) -> Measurement:
    """Return the measurement of a sweep over "batch" that answers most items in a second.

    Raises InputError for anything else, and for a sweep in which nothing was measured.
    """
    check_kind("found", found, Sweep)
    rates = [m for m in found.measurements if m.images_per_s]
    if found.parameter != "batch" or not rates:
        advice = "Try throughput(model, example, [1, 8, 64])."
        raise InputError(f"{found.label} over {found.parameter}", "it has no times of a batch", advice)
    return max(rates, key=lambda measurement: measurement.images_per_s)
