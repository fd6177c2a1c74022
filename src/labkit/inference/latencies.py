"""How long one answer takes, and how long the slow ones take."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labkit.errors import InputError, check_count, check_positive, listed
from labkit.inference.calls import check_batch, inference_call
from labkit.measurement import Measurement
from labkit.timing import measure
from labkit.units import format_s

CALLS = 200  # the 99th percentile of 200 is the third largest, and not the one call that something else delayed
FEWEST_FOR_P99 = 100


@dataclass(frozen=True)
class Percentiles:
    """Times in seconds that half, 95 % and 99 % of so many calls do not exceed."""

    p50_s: float
    p95_s: float
    p99_s: float
    count: int

    def __str__(self) -> str:
        shown = f"p50 {format_s(self.p50_s)}, p95 {format_s(self.p95_s)}, p99 {format_s(self.p99_s)}"
        few = "" if self.count >= FEWEST_FOR_P99 else "; with fewer than 100, p99 is the slowest of all"
        return f"{shown} (of {self.count}{few})"


def latency(
    model: Any, example: Any, *, device: Any = "cpu", calls: int = CALLS, label: str = "latency", **options: Any
) -> Measurement:
    """Time the model on one item, every call on its own, at least so many calls (fewer where five budgets are spent).

    Only the first item of example is used: batch 1 is what a single caller waits for. On a GPU the way there and back
    counts. options are those of measure; raises what measure and inference_call raise.

    >>> import torch
    >>> m = latency(torch.nn.Linear(4, 2), torch.ones(1, 4), calls=20)
    >>> m.calls_per_sample, m.task.parameters["batch"], len(m.times_s) >= 20
    (1, 1, True)
    """
    call = inference_call(model, check_batch(example)[:1], device)
    fixed = {"calls_per_sample": 1, "min_samples": check_count("calls", calls), "parameters": {"batch": 1}}
    return measure(call, device=device, label=label, **(fixed | options))


def percentile(times_s: Iterable[float], q: float) -> float:
    """Return the smallest of the times that at least q percent of them do not exceed: the nearest rank.

    Hyndman and Fan, Sample quantiles in statistical packages, The American Statistician 50(4), 1996, definition 1.
    Raises InputError for no times, for what is no time, and for q outside of 0 < q <= 100.

    >>> percentile([10, 20, 30, 40], 50), percentile([10, 20, 30, 40], 95)
    (20, 40)
    """
    check_positive("q", q)
    if q > 100:
        raise InputError(f"q={q!r}", "a percentile is at most 100")
    times_s = sorted(check_positive("times_s", time_s, zero_ok=True) for time_s in listed("times_s", times_s))
    if not times_s:
        raise InputError("times_s=[]", "without a time there is no percentile")
    # Rounded first: 0.07 · 100 is a little more than 7 in binary, and would make it rank 8.
    return times_s[max(math.ceil(round(q / 100 * len(times_s), 9)), 1) - 1]


def percentiles(times_s: Measurement | Iterable[float]) -> Percentiles:
    """Return p50, p95 and p99 of a measurement, or of times in seconds.

    Raises InputError for a prediction, which has no calls, and for samples that are the mean of several calls, in which
    the slow ones hide.

    >>> str(percentiles([0.001] * 98 + [0.005, 0.020]))
    'p50 1 ms, p95 1 ms, p99 5 ms (of 100)'
    """
    if isinstance(times_s, Measurement):
        if times_s.source == "predicted":
            raise InputError(times_s.legend, "a prediction has a range, but no single calls")
        if times_s.calls_per_sample > 1:
            problem = f"each sample is the mean of {times_s.calls_per_sample} calls, in which slow ones hide"
            raise InputError(str(times_s.task), problem, "Measure it with calls_per_sample=1, or use latency(…).")
        times_s = times_s.times_s
    times_s = list(listed("times_s", times_s))
    return Percentiles(*(percentile(times_s, q) for q in (50, 95, 99)), count=len(times_s))
