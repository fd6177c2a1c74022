"""Predict how long a traced kernel would take on a GPU, from a stated bottleneck model. Never a measurement.

The model: the launch costs a constant; after that the slowest of three resources decides, each running on its own at a
stated share of its peak. A small grid cannot use all multiprocessors, so on-chip rates are scaled by those it fills.

- memory: sectors × 32 bytes / bandwidth. Every sector is taken to come from memory, which is right for data read once
  and too slow where a cache serves it again.
- shared memory: wavefronts / (multiprocessors × clock), one wavefront per clock and multiprocessor.
- arithmetic: FLOP / peak, for each dtype; the datasheet's peak counts a fused multiply-add as two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from labkit.errors import InputError
from labkit.hardware import Estimate, Gpu, gpu, prediction_model
from labkit.simt.counters import SECTOR_BYTES
from labkit.simt.trace import Trace
from labkit.units import format_s


@dataclass(frozen=True)
class KernelPrediction:
    """A predicted kernel time: `seconds` expected, `low_s` to `high_s` within the ranges of the model's constants.

    bottleneck: memory, shared memory, arithmetic or launch. parts_s: the expected seconds of each.
    """

    kernel_name: str
    device: str
    seconds: float
    low_s: float
    high_s: float
    bottleneck: str
    parts_s: Mapping[str, float] = field(hash=False)
    source: str = "predicted"

    def __str__(self) -> str:
        return (
            f"{self.kernel_name} on {self.device}: {format_s(self.seconds)} predicted "
            f"({format_s(self.low_s)} to {format_s(self.high_s)}), limited by {self.bottleneck}"
        )


def predict(trace: Trace, device: str | Gpu = "T4") -> KernelPrediction:
    """Return the predicted time of a traced kernel on a GPU of the catalogue; InputError if it was not run.

    >>> import numpy as np
    >>> from labkit.simt import cuda, trace
    >>> @cuda.jit
    ... def scale(x):
    ...     i = cuda.grid(1)
    ...     x[i] = np.float32(2) * x[i]
    >>> prediction = predict(trace(scale, 4096, 256, np.ones(2**20, np.float32)), "T4")
    >>> prediction.source, prediction.bottleneck, round(prediction.parts_s["memory"] * 1e6)
    ('predicted', 'memory', 35)
    """
    if not isinstance(trace, Trace):
        raise InputError(f"trace={trace!r}", "a prediction starts from a trace", "Give it what trace(…) returned.")
    if trace.counters["blocks"] == 0:
        raise InputError(f"the trace of {trace.kernel_name}", "the kernel was not run: its launch breaks a limit")
    on = gpu(device) if isinstance(device, str) else device
    model = prediction_model()
    parts = {
        which: _parts(
            trace.counters,
            on,
            launch_s=_pick(model.launch_s, which),
            bandwidth=_pick(model.bandwidth_fraction, _opposite(which)),
            peak=_pick(model.peak_fraction, _opposite(which)),
        )
        for which in ("low", "value", "high")
    }
    total = {which: part["launch"] + max(v for k, v in part.items() if k != "launch") for which, part in parts.items()}
    bottleneck = max(parts["value"], key=parts["value"].__getitem__)
    return KernelPrediction(
        trace.kernel_name, on.name, total["value"], total["low"], total["high"], bottleneck, parts["value"]
    )


def _parts(counters: Mapping[str, Any], on: Gpu, *, launch_s: float, bandwidth: float, peak: float) -> dict[str, float]:
    """Return the seconds that each resource needs on its own."""
    sectors = counters["global_load_sectors"] + counters["global_store_sectors"] + counters["atomic_requests"]
    wavefronts = counters["shared_load_wavefronts"] + counters["shared_store_wavefronts"]
    filled = min(1.0, counters["blocks"] / on.sms)
    flop_s = 0.0
    for dtype in ("float16", "float32", "float64"):
        flop = counters.get(f"flop_{dtype}", 0)
        if flop:
            # The catalogue's peaks are those of tensor cores where there are any; plain code runs without them.
            name = {"float64": "float64_plain", "float16": "float32"}.get(dtype, dtype)
            rate = on.peak_flop_per_s.get(name) or on.peak(dtype)
            flop_s += flop / (rate * peak * filled)
    return {
        "launch": launch_s,
        "memory": sectors * SECTOR_BYTES / (on.bandwidth_bytes_per_s * bandwidth),
        "shared memory": wavefronts / (math.ceil(on.sms * filled) * on.boost_clock_hz),
        "arithmetic": flop_s,
    }


def _pick(estimate: Estimate, which: str) -> float:
    return getattr(estimate, which)


def _opposite(which: str) -> str:
    """A share of a peak makes a time short where it is high."""
    return {"low": "high", "high": "low"}.get(which, which)
