"""Predicted measurements against the model worked out by hand from the T4's datasheet."""

from __future__ import annotations

import math
from typing import Any

import pytest

from labkit.comparison import interval_s
from labkit.errors import DeviceError, InputError
from labkit.hardware import gpu
from labkit.measurement import OUT_OF_MEMORY, Measurement, Task
from labkit.prediction import extrapolate, predict_measurement, predict_sweep

T4 = gpu("T4")
# T4: 8.1 TFLOP/s in float32, 320 GB/s, 16 GiB, PCIe 3.0 x16: 16 lanes of 8 GT/s, 128 of 130 bits are data.
LINK_BYTES_PER_S = 16 * 8e9 * 128 / 130 / 8
# The model: expected, best, worst.
LAUNCH_S = (5e-6, 3e-6, 10e-6)
TRIP_S = (20e-6, 10e-6, 40e-6)
PEAK = tuple(share * 8.1e12 for share in (0.8, 0.9, 0.5))
BANDWIDTH = tuple(share * 320e9 for share in (0.75, 0.92, 0.6))
PINNED = tuple(share * LINK_BYTES_PER_S for share in (0.75, 0.85, 0.6))
PAGEABLE = tuple(share * LINK_BYTES_PER_S for share in (0.35, 0.5, 0.15))


def found_times(measurement: Measurement) -> list[float]:
    """Expected, best, worst: the median and the ends of the middle half."""
    return [measurement.median_s, *measurement.quartiles_s]


def test_an_addition_is_bound_by_memory() -> None:
    m = predict_measurement(gpu=T4, label="add", flop=1e8, bytes_moved=1.2e9)
    assert found_times(m) == pytest.approx([launch + 1.2e9 / b for launch, b in zip(LAUNCH_S, BANDWIDTH, strict=True)])
    assert m.provenance.endswith("bound by memory")


def test_a_product_is_bound_by_compute() -> None:
    m = predict_measurement(gpu=T4, label="matmul", flop=2e12, bytes_moved=1.2e9)
    assert found_times(m) == pytest.approx([launch + 2e12 / peak for launch, peak in zip(LAUNCH_S, PEAK, strict=True)])
    assert m.provenance.endswith("bound by compute")
    assert m.flop_per_s == pytest.approx(2e12 / (5e-6 + 2e12 / 6.48e12))


def test_a_tiny_one_is_bound_by_its_launches() -> None:
    m = predict_measurement(gpu=T4, label="chain", bytes_moved=8, launches=1000)
    assert found_times(m) == pytest.approx([1000 * launch for launch in LAUNCH_S], rel=1e-4)
    assert m.provenance.endswith("bound by launch")


def test_a_round_trip_adds_the_wait_for_the_answer() -> None:
    m = predict_measurement(gpu=T4, label="add", bytes_moved=12, round_trip=True)
    expected = [launch + trip for launch, trip in zip(LAUNCH_S, TRIP_S, strict=True)]
    assert found_times(m) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("kind", "rates"), [("pinned", PINNED), ("pageable", PAGEABLE)])
def test_a_transfer_is_one_trip_over_the_link(kind: str, rates: tuple[float, ...]) -> None:
    m = predict_measurement(gpu=T4, label="copy", bytes_moved=1e9, transfer=kind, round_trip=True)
    assert found_times(m) == pytest.approx([trip + 1e9 / rate for trip, rate in zip(TRIP_S, rates, strict=True)])


def test_it_says_that_it_is_predicted_and_for_what() -> None:
    m = predict_measurement(gpu=T4, label="add", dtype="float16", bytes_moved=6e6, parameters={"n": 10**6})
    assert (m.source, m.device, m.device_name, m.machine) == ("predicted", "cuda", "T4", "")
    assert (m.task.label, m.dtype, dict(m.task.parameters)) == ("add", "float16", {"n": 10**6})
    assert "(predicted)" in m.legend


@pytest.mark.parametrize(
    "changes",
    [
        {"bytes_moved": 0},
        {"bytes_moved": -1},
        {"bytes_moved": math.nan},
        {"flop": -1},
        {"flop": math.inf},
        {"launches": 0},
        {"launches": 1.5},
        {"transfer": "by post"},
        {"label": ""},
    ],
    ids=str,
)
def test_nonsense_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        predict_measurement(**{"gpu": T4, "label": "add", "flop": 1, "bytes_moved": 12, **changes})


def test_a_dtype_that_the_gpu_lacks_is_refused() -> None:
    with pytest.raises(DeviceError, match="bfloat16"):
        predict_measurement(gpu=T4, label="matmul", dtype="bfloat16", flop=1, bytes_moved=12)


# --- sweeps ------------------------------------------------------------------------------------------------------

MATMUL = {"flop": lambda n: 2 * n**3, "bytes_moved": lambda n: 12 * n**2, "needs_bytes": lambda n: 12 * n**2}


def test_a_sweep_follows_the_roofline() -> None:
    s = predict_sweep([16, 256, 4096, 100_000], gpu=T4, label="matmul", **MATMUL)
    # 16: 12 kB and 8 kFLOP vanish behind the launch; from 256 on compute decides; 120 GB do not fit into 16 GiB.
    assert s.at(16).median_s == pytest.approx(5e-6 + 12 * 16**2 / 240e9)
    assert s.at(256).median_s == pytest.approx(5e-6 + 2 * 256**3 / 6.48e12)
    assert s.at(4096).median_s == pytest.approx(5e-6 + 2 * 4096**3 / 6.48e12)
    (point,) = s.out_of_memory
    assert (point.value, point.outcome, point.detail) == (100_000, OUT_OF_MEMORY, "needs 120 GB, a T4 has 17.2 GB")
    assert (s.source, s.parameter, s.label) == ("predicted", "n", "matmul")
    assert [dict(m.task.parameters) for m in s.measurements] == [{"n": 16}, {"n": 256}, {"n": 4096}]


def test_no_call_is_shorter_than_the_host_needs_to_start_it() -> None:
    # A T4 adds 3 MB in 5 µs + 3e6 / 240e9 s = 17.5 µs; the host's 1 ms varies as a launch does: 3 to 10 for 5 µs.
    short = predict_measurement(gpu=T4, label="step", bytes_moved=3e6, host_s=1e-3)
    assert short.times_s == pytest.approx([0.6e-3, 0.6e-3, 1e-3, 2e-3, 2e-3])
    assert short.provenance.endswith("bound by the host")
    # 240 MB take 1.005 ms: longer than the host, but for the upper end of its range.
    long = predict_measurement(gpu=T4, label="step", bytes_moved=240e6, host_s=1e-3)
    assert long.median_s == pytest.approx(1.005e-3)
    assert long.quartiles_s[1] == pytest.approx(2e-3)
    assert long.provenance.endswith("bound by memory")


def test_without_a_host_time_the_prediction_is_the_roofline() -> None:
    plain = predict_measurement(gpu=T4, label="step", bytes_moved=3e6)
    assert predict_measurement(gpu=T4, label="step", bytes_moved=3e6, host_s=0) == plain


@pytest.mark.parametrize("host_s", [-1, math.nan, math.inf, "long", None])
def test_a_host_time_of_nonsense_is_refused(host_s) -> None:
    with pytest.raises(InputError, match="^host_s="):
        predict_measurement(gpu=T4, label="step", bytes_moved=3e6, host_s=host_s)


def test_launches_may_grow_with_the_value() -> None:
    s = predict_sweep(
        [10, 100], gpu=T4, label="chain", parameter="steps", bytes_moved=lambda n: 8, launches=lambda n: n
    )
    assert s.medians_s == pytest.approx([10 * 5e-6, 100 * 5e-6], rel=1e-4)
    assert s.parameter == "steps"


def test_the_values_may_come_one_by_one() -> None:
    assert predict_sweep(iter([1, 2]), gpu=T4, label="add", bytes_moved=lambda n: 12 * n).values == (1, 2)


@pytest.mark.parametrize("values", [[], [0], [-1], [math.nan], [1, 1]], ids=str)
def test_values_of_nonsense_are_refused(values: list[float]) -> None:
    with pytest.raises(InputError):
        predict_sweep(values, gpu=T4, label="add", bytes_moved=lambda n: 12 * n)


# --- extrapolation -----------------------------------------------------------------------------------------------


def test_an_extrapolation_scales_times_and_work_and_says_so() -> None:
    small = Measurement(
        task=Task(label="loop", parameters={"n": 100}, flop=2e6, bytes_moved=12e4),
        times_s=[0.1, 0.12, 0.14],
        warm_up_s=[9.0],
        threads=1,
    )
    large = extrapolate(small, 1000, law="time grows with n³", parameters={"n": 1000})
    assert large.times_s == pytest.approx([100, 120, 140])
    assert (large.task.flop, large.task.bytes_moved, dict(large.task.parameters)) == (2e9, 12e7, {"n": 1000})
    assert large.flop_per_s == pytest.approx(small.flop_per_s)
    assert (large.source, large.warm_up_s, large.threads) == ("predicted", (), 1)
    assert large.provenance == "time grows with n³, from loop n=100 measured here"
    assert large.task.label == "loop"


def test_a_lone_sample_does_not_make_a_prediction_without_a_range() -> None:
    """One slow step is 58 % unsure, so a thousand of them are, too."""
    step = Measurement(task=Task(label="step"), times_s=[2.0])
    training = extrapolate(step, 1000, law="time grows with the steps", parameters={})
    assert training.median_s == pytest.approx(2000)
    assert interval_s(training) == pytest.approx((2000 / 1.58, 2000 * 1.58))
    assert interval_s(extrapolate(training, 10, law="as above", parameters={})) == pytest.approx(
        (20_000 / 1.58, 20_000 * 1.58)
    )


def test_what_is_extrapolated_to_may_have_a_name_of_its_own() -> None:
    step = Measurement(task=Task(label="step"), times_s=[0.1])
    training = extrapolate(step, 1000, law="time grows with the steps", parameters={}, label="training")
    assert (training.task.label, training.provenance) == (
        "training",
        "time grows with the steps, from step measured here",
    )


@pytest.mark.parametrize("source", ["recorded", "predicted"])
def test_an_extrapolation_of_what_was_not_measured_here_does_not_say_so(source: str) -> None:
    small = Measurement(task=Task(label="step"), times_s=[0.1], source=source, provenance="a T4, 2026")
    large = extrapolate(small, 10, law="time grows with the steps", parameters={})
    assert (large.source, large.provenance) == (
        "predicted",
        f"time grows with the steps, from step {source} (a T4, 2026)",
    )


@pytest.mark.parametrize("factor", [0, -1, math.nan, math.inf, "twice"])
def test_a_factor_of_nonsense_is_refused(factor) -> None:
    small = Measurement(task=Task(label="loop"), times_s=[1.0])
    with pytest.raises(InputError, match="^factor="):
        extrapolate(small, factor, law="time grows with n", parameters={})
