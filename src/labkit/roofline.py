"""The roofline model: how fast a machine can be at most, and how long a piece of work should take on it.

S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model for multicore
architectures", Communications of the ACM 52(4), 2009: attainable FLOP/s = min(peak, intensity × bandwidth).
Everything that this module returns about a machine not measured here is a prediction and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .errors import DeviceError, InputError, check_choice, check_kind, check_positive
from .hardware import Estimate, Gpu, PredictionModel, prediction_model
from .measurement import SOURCES
from .units import format_bytes_per_s, format_flop_per_s, format_s

# A cool card runs above the boost clock that its maker promises (an RTX 4090 at 2.7 GHz instead of 2.52), and a
# measured roof may be beaten by as much on a quieter day.
PEAK_MARGIN = 0.10

FROM_CATALOGUE = 'Take one from the catalogue: labkit.hardware.gpu("T4").'

# FLOP, and arrays read or written, for each element.
ELEMENTWISE = {"copy": (0, 2), "scale": (1, 2), "add": (1, 3), "triad": (2, 3)}


def attainable_flop_per_s(
    intensity_flop_per_byte: float, peak_flop_per_s: float, bandwidth_bytes_per_s: float
) -> float:
    """Return the most FLOP/s that work of this arithmetic intensity (FLOP/byte) can reach; InputError on nonsense.

    >>> attainable_flop_per_s(10, peak_flop_per_s=8.1e12, bandwidth_bytes_per_s=320e9)
    3200000000000.0
    """
    check_positive("intensity_flop_per_byte", intensity_flop_per_byte, unit="FLOP/byte", zero_ok=True)
    _check_machine(peak_flop_per_s, bandwidth_bytes_per_s)
    return min(peak_flop_per_s, intensity_flop_per_byte * bandwidth_bytes_per_s)


def ridge_point(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> float:
    """Return the intensity (FLOP/byte) from which memory no longer limits a machine; InputError on nonsense.

    >>> ridge_point(peak_flop_per_s=8e12, bandwidth_bytes_per_s=320e9)
    25.0
    """
    _check_machine(peak_flop_per_s, bandwidth_bytes_per_s)
    return peak_flop_per_s / bandwidth_bytes_per_s


def _check_machine(peak_flop_per_s: float, bandwidth_bytes_per_s: float) -> None:
    check_positive("peak_flop_per_s", peak_flop_per_s, unit="FLOP/s")
    check_positive("bandwidth_bytes_per_s", bandwidth_bytes_per_s, unit="bytes/s")


def _check_whole(name: str, value: int) -> None:
    if check_positive(name, value) != int(value):
        raise InputError(f"{name}={value!r}", f"{name} must be a whole number")


@dataclass(frozen=True)
class Work:
    """What an operation costs on any machine: FLOP, and bytes that must cross the memory bus at least once.

    >>> matmul_work(1024, itemsize_bytes=4).intensity_flop_per_byte
    170.66666666666666
    """

    flop: float
    bytes_moved: float

    def __post_init__(self) -> None:
        check_positive("flop", self.flop, unit="FLOP", zero_ok=True)
        check_positive("bytes_moved", self.bytes_moved, unit="bytes")

    @property
    def intensity_flop_per_byte(self) -> float:
        """Arithmetic intensity, FLOP/byte."""
        return self.flop / self.bytes_moved


def matmul_work(m: int, k: int | None = None, n: int | None = None, *, itemsize_bytes: int) -> Work:
    """Return the work of (m, k) @ (k, n), square where only m is given; InputError on nonsense.

    2mkn FLOP (a multiply and an add per term); each matrix crosses the bus once, which is the least possible.

    >>> matmul_work(2, 3, 4, itemsize_bytes=4)
    Work(flop=48, bytes_moved=104)
    """
    k, n = (m if k is None else k), (m if n is None else n)
    for name, size in {"m": m, "k": k, "n": n, "itemsize_bytes": itemsize_bytes}.items():
        _check_whole(name, size)
    return Work(flop=2 * m * k * n, bytes_moved=(m * k + k * n + m * n) * itemsize_bytes)


def elementwise_work(kind: str, n: int, *, itemsize_bytes: int) -> Work:
    """Return the work of a STREAM kernel on n elements; InputError on nonsense.

    kind: copy (a=b), scale (a=s*b), add (a=b+c) or triad (a=b+s*c), counted as STREAM counts them (J. McCalpin, 1995).

    >>> elementwise_work("triad", 1000, itemsize_bytes=4)
    Work(flop=2000, bytes_moved=12000)
    """
    flop, arrays = ELEMENTWISE[check_choice("kind", kind, ELEMENTWISE)]
    _check_whole("n", n)
    _check_whole("itemsize_bytes", itemsize_bytes)
    return Work(flop=flop * n, bytes_moved=arrays * n * itemsize_bytes)


@dataclass(frozen=True)
class Roof:
    """The two limits of a machine, and where they come from: source is "measured", "recorded" or "predicted".

    A datasheet's figures count as predicted: no machine was here to confirm them. origin names what was read.
    """

    label: str
    source: str
    peak_flop_per_s: float
    bandwidth_bytes_per_s: float
    origin: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label.strip():
            raise InputError(f"label={self.label!r}", "a roof needs a label, such as 'T4 float32'")
        check_choice("source", self.source, SOURCES)
        _check_machine(self.peak_flop_per_s, self.bandwidth_bytes_per_s)

    @classmethod
    def from_gpu(cls, gpu: Gpu, dtype: Any) -> Roof:
        """Return the datasheet's roof of a GPU for a dtype; DeviceError if the GPU lacks the dtype.

        >>> from labkit.hardware import gpu
        >>> Roof.from_gpu(gpu("T4"), "float32")
        T4 float32 (predicted): at most 8.1 TFLOP/s and 320 GB/s, ridge point 25.3 FLOP/byte
        """
        peak = check_kind("gpu", gpu, Gpu, FROM_CATALOGUE).peak(dtype)
        dtype = str(dtype).removeprefix("torch.")
        origin = f"{gpu.sources[f'peak_flop_per_s.{dtype}']}; {gpu.sources['bandwidth_bytes_per_s']}"
        return cls(f"{gpu.key} {dtype}", "predicted", peak, gpu.bandwidth_bytes_per_s, origin)

    def scaled(self, peak_fraction: float, bandwidth_fraction: float) -> Roof:
        """Return the roof lowered to shares of its limits, as real programs reach them; always a prediction."""
        for name, share in {"peak_fraction": peak_fraction, "bandwidth_fraction": bandwidth_fraction}.items():
            if check_positive(name, share) > 1:
                raise InputError(f"{name}={share!r}", "a share of a limit is at most 1")
        return replace(
            self,
            label=f"{self.label}, expected",
            source="predicted",
            peak_flop_per_s=self.peak_flop_per_s * peak_fraction,
            bandwidth_bytes_per_s=self.bandwidth_bytes_per_s * bandwidth_fraction,
        )

    @property
    def ridge_point_flop_per_byte(self) -> float:
        """The intensity where the memory's slope meets the peak."""
        return ridge_point(self.peak_flop_per_s, self.bandwidth_bytes_per_s)

    def attainable_flop_per_s(self, intensity_flop_per_byte: float) -> float:
        """Return the most FLOP/s at this intensity (FLOP/byte)."""
        return attainable_flop_per_s(intensity_flop_per_byte, self.peak_flop_per_s, self.bandwidth_bytes_per_s)

    def __repr__(self) -> str:
        limits = f"{format_flop_per_s(self.peak_flop_per_s)} and {format_bytes_per_s(self.bandwidth_bytes_per_s)}"
        ridge = f"ridge point {self.ridge_point_flop_per_byte:.3g} FLOP/byte"
        return f"{self.label} ({self.source}): at most {limits}, {ridge}"


@dataclass(frozen=True)
class Prediction:
    """A time from the model, never measured: expected, with the range that the model's constants leave open."""

    label: str
    time_s: float
    low_s: float
    high_s: float
    bound_by: str
    source: str = "predicted"

    def __post_init__(self) -> None:
        if not 0 < self.low_s <= self.time_s <= self.high_s:
            raise InputError(
                f"{self.low_s!r}, {self.time_s!r}, {self.high_s!r}", "a predicted time lies within its range"
            )
        check_choice("source", self.source, ("predicted",))

    def __repr__(self) -> str:
        span = f"{format_s(self.low_s)} to {format_s(self.high_s)}"
        return f"{self.label}: predicted {format_s(self.time_s)} ({span}), bound by {self.bound_by}"


def predicted_time_s(*, flop: float, bytes_moved: float, roof: Roof, launch_s: float) -> float:
    """Return launch_s + max(flop / peak, bytes_moved / bandwidth), in seconds; InputError on nonsense.

    >>> t4 = Roof("T4 float32", "predicted", peak_flop_per_s=8e12, bandwidth_bytes_per_s=320e9)
    >>> predicted_time_s(flop=2e9, bytes_moved=12e6, roof=t4, launch_s=5e-6)
    0.000255
    """
    return _total_s(_costs_s(flop, bytes_moved, launch_s, roof))


def predict(work: Work, gpu: Gpu, dtype: Any, *, launches: int = 1, model: PredictionModel | None = None) -> Prediction:
    """Return the predicted time of work on a GPU, launches included; DeviceError if the GPU lacks the dtype.

    The datasheet's roof is lowered by the model's fractions, caches are left out, and launches (how many operations
    share the work) cost the model's launch_s each. The range takes every constant at its best and at its worst.

    >>> from labkit.hardware import gpu
    >>> predict(matmul_work(1024, itemsize_bytes=4), gpu("T4"), "float32")
    T4 float32: predicted 336 µs (298 µs to 540 µs), bound by compute
    """
    check_kind("work", work, Work, "Try matmul_work(1024, itemsize_bytes=4).")
    model = prediction_model() if model is None else check_kind("model", model, PredictionModel)
    _check_whole("launches", launches)
    roof = Roof.from_gpu(gpu, dtype)
    launch, peak, bandwidth = model.launch_s, model.peak_fraction, model.bandwidth_fraction
    expected = _costs_s(work.flop, work.bytes_moved, launches * launch.value, roof.scaled(peak.value, bandwidth.value))
    best = _costs_s(work.flop, work.bytes_moved, launches * launch.low, roof.scaled(peak.high, bandwidth.high))
    worst = _costs_s(work.flop, work.bytes_moved, launches * launch.high, roof.scaled(peak.low, bandwidth.low))
    return Prediction(
        label=roof.label,
        time_s=_total_s(expected),
        low_s=_total_s(best),
        high_s=_total_s(worst),
        bound_by=max(expected, key=expected.__getitem__),
    )


def _costs_s(flop: float, bytes_moved: float, launch_s: float, roof: Roof) -> dict[str, float]:
    check_kind("roof", roof, Roof)
    check_positive("flop", flop, unit="FLOP", zero_ok=True)
    check_positive("bytes_moved", bytes_moved, unit="bytes", zero_ok=True)
    check_positive("launch_s", launch_s, unit="seconds", zero_ok=True)
    return {
        "launch": launch_s,
        "compute": flop / roof.peak_flop_per_s,
        "memory": bytes_moved / roof.bandwidth_bytes_per_s,
    }


def _total_s(costs_s: dict[str, float]) -> float:
    return costs_s["launch"] + max(costs_s["compute"], costs_s["memory"])


def predicted_transfer_s(n_bytes: float, gpu: Gpu, *, pinned: bool, model: PredictionModel | None = None) -> float:
    """Return the predicted seconds to carry n_bytes between host and GPU: a round trip + bytes / share of the link.

    DeviceError if the GPU's link is not published, InputError on nonsense.

    >>> from labkit.hardware import gpu
    >>> format_s(predicted_transfer_s(1e9, gpu("T4"), pinned=True))
    '84.7 ms'
    """
    return predict_transfer(n_bytes, gpu, pinned=pinned, model=model).time_s


def predict_transfer(n_bytes: float, gpu: Gpu, *, pinned: bool, model: PredictionModel | None = None) -> Prediction:
    """Return predicted_transfer_s with its range; errors alike.

    >>> from labkit.hardware import gpu
    >>> predict_transfer(1e9, gpu("T4"), pinned=False)
    T4, PCIe 3.0 x16, pageable: predicted 181 ms (127 ms to 423 ms), bound by transfer
    """
    check_positive("n_bytes", n_bytes, unit="bytes", zero_ok=True)
    model = prediction_model() if model is None else check_kind("model", model, PredictionModel)
    link = check_kind("gpu", gpu, Gpu, FROM_CATALOGUE).host_link
    if link is None:
        raise DeviceError(
            gpu.key, "its link to the host is not published", "Measure a transfer, or choose another GPU."
        )
    share: Estimate = model.pinned_fraction if pinned else model.pageable_fraction

    def carry_s(fraction: float) -> float:
        return n_bytes / (fraction * link.bytes_per_s)

    trip = model.round_trip_s
    return Prediction(
        label=f"{gpu.key}, {link}, {'pinned' if pinned else 'pageable'}",
        time_s=trip.value + carry_s(share.value),
        low_s=trip.low + carry_s(share.high),
        high_s=trip.high + carry_s(share.low),
        bound_by="transfer" if carry_s(share.value) > trip.value else "round trip",
    )


def exceeds_peak(roof: Roof, *, flop_per_s: float | None = None, bytes_per_s: float | None = None) -> bool:
    """Return whether a throughput is above what the roof allows: then it is a launch, a cache or a missing synchronise.

    PEAK_MARGIN is granted, but not to a datasheet's bandwidth: no bus runs faster. InputError if no rate is given.

    >>> t4 = Roof("T4 float32", "predicted", peak_flop_per_s=8e12, bandwidth_bytes_per_s=320e9)
    >>> exceeds_peak(t4, flop_per_s=60e12), exceeds_peak(t4, bytes_per_s=250e9)
    (True, False)
    """
    check_kind("roof", roof, Roof)
    if flop_per_s is None and bytes_per_s is None:
        raise InputError("exceeds_peak(roof)", "no throughput was given", "Give flop_per_s= or bytes_per_s=.")
    flop_per_s = 0 if flop_per_s is None else check_positive("flop_per_s", flop_per_s, unit="FLOP/s", zero_ok=True)
    bytes_per_s = 0 if bytes_per_s is None else check_positive("bytes_per_s", bytes_per_s, unit="bytes/s", zero_ok=True)
    granted = 1 + PEAK_MARGIN
    granted_to_bus = 1 if roof.source == "predicted" else granted
    return flop_per_s > granted * roof.peak_flop_per_s or bytes_per_s > granted_to_bus * roof.bandwidth_bytes_per_s
