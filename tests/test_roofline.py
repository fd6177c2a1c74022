import math
from dataclasses import replace

import pytest

from labkit.errors import DeviceError, InputError
from labkit.hardware import Estimate, PredictionModel, gpu
from labkit.roofline import (
    Prediction,
    Roof,
    Work,
    attainable_flop_per_s,
    elementwise_work,
    exceeds_peak,
    matmul_work,
    predict,
    predict_transfer,
    predicted_time_s,
    predicted_transfer_s,
    ridge_point,
)

NONSENSE = [math.nan, math.inf, -1, "1", None]


def roof(peak_flop_per_s=8e12, bandwidth_bytes_per_s=320e9, source="predicted"):
    return Roof("a machine", source, peak_flop_per_s, bandwidth_bytes_per_s)


def exact(value):
    return Estimate(value, value, value, "by hand")


# Round numbers, so that the expected times can be worked out in the head.
MODEL = PredictionModel(
    launch_s=Estimate(5e-6, 4e-6, 10e-6, "by hand"),
    round_trip_s=exact(20e-6),
    bandwidth_fraction=exact(0.5),
    peak_fraction=exact(0.5),
    pinned_fraction=exact(0.8),
    pageable_fraction=Estimate(0.4, 0.2, 0.5, "by hand"),
    cpu_tdp_w=exact(50),
)


@pytest.mark.parametrize(
    ("intensity", "expected"),
    [
        (0, 0),
        (0.25, 80e9),  # 0.25 FLOP/byte x 320 GB/s
        (1 / 12, 320e9 / 12),
        (25, 8e12),  # the ridge: 8e12 / 320e9
        (24, 7.68e12),
        (26, 8e12),
        (1e6, 8e12),
    ],
)
def test_the_slope_ends_at_the_peak(intensity, expected):
    assert attainable_flop_per_s(intensity, 8e12, 320e9) == pytest.approx(expected)
    assert roof().attainable_flop_per_s(intensity) == pytest.approx(expected)


def test_the_ridge_point_is_where_both_limits_meet():
    assert ridge_point(8e12, 320e9) == 25
    assert roof().ridge_point_flop_per_byte == 25
    assert 25 * 320e9 == 8e12


@pytest.mark.parametrize("bad", [*NONSENSE, 0])
def test_a_machine_without_limits_is_refused(bad):
    for call in (
        lambda: attainable_flop_per_s(1, bad, 320e9),
        lambda: attainable_flop_per_s(1, 8e12, bad),
        lambda: ridge_point(bad, 320e9),
        lambda: ridge_point(8e12, bad),
        lambda: roof(peak_flop_per_s=bad),
        lambda: roof(bandwidth_bytes_per_s=bad),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert repr(bad) in str(caught.value)


@pytest.mark.parametrize("bad", NONSENSE)
def test_nonsense_is_refused_and_repeated(bad):
    for call in (
        lambda: attainable_flop_per_s(bad, 8e12, 320e9),
        lambda: predicted_time_s(flop=bad, bytes_moved=1, roof=roof(), launch_s=0),
        lambda: predicted_time_s(flop=1, bytes_moved=bad, roof=roof(), launch_s=0),
        lambda: predicted_time_s(flop=1, bytes_moved=1, roof=roof(), launch_s=bad),
        lambda: predicted_transfer_s(bad, gpu("T4"), pinned=True),
        lambda: exceeds_peak(roof(), flop_per_s=bad) if bad is not None else exceeds_peak(roof()),
        lambda: Work(bad, 1),
        lambda: Work(1, bad),
        lambda: elementwise_work("add", bad, itemsize_bytes=4),
        lambda: matmul_work(bad, itemsize_bytes=4),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert bad is None or repr(bad) in str(caught.value)


def test_square_matmul_by_hand():
    work = matmul_work(1000, itemsize_bytes=4)
    assert work == Work(flop=2_000_000_000, bytes_moved=12_000_000)
    # 2n^3 FLOP over 3n^2 elements of b bytes: 2n / 3b.
    assert work.intensity_flop_per_byte == pytest.approx(2 * 1000 / (3 * 4))
    assert matmul_work(1000, itemsize_bytes=2).intensity_flop_per_byte == pytest.approx(2 * 1000 / (3 * 2))


def test_matmul_of_any_shape_by_hand():
    # (2, 3) @ (3, 4): 8 results of 3 multiplies and 3 adds; 6 + 12 + 8 elements.
    assert matmul_work(2, 3, 4, itemsize_bytes=8) == Work(flop=48, bytes_moved=208)
    # A matrix times a vector reads each element once for one multiply and one add: half a FLOP per byte of float32.
    assert matmul_work(10_000, 10_000, 1, itemsize_bytes=4).intensity_flop_per_byte == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "flop", "bytes_moved"), [("copy", 0, 80), ("scale", 10, 80), ("add", 10, 120), ("triad", 20, 120)]
)
def test_elementwise_work_as_stream_counts_it(kind, flop, bytes_moved):
    assert elementwise_work(kind, 10, itemsize_bytes=4) == Work(flop, bytes_moved)


def test_sizes_are_whole_and_kinds_are_known():
    for call in (
        lambda: matmul_work(2.5, itemsize_bytes=4),
        lambda: matmul_work(2, itemsize_bytes=0),
        lambda: elementwise_work("add", 2.5, itemsize_bytes=4),
        lambda: predict(Work(1, 1), gpu("T4"), "float32", launches=0),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(InputError, match="'divide'.*'triad'"):
        elementwise_work("divide", 10, itemsize_bytes=4)


def test_time_is_launch_plus_the_slower_of_compute_and_memory():
    machine = roof(peak_flop_per_s=1e12, bandwidth_bytes_per_s=100e9)
    # 3 ms of compute over 1 ms of memory, and the other way round.
    assert predicted_time_s(flop=3e9, bytes_moved=100e6, roof=machine, launch_s=1e-3) == pytest.approx(4e-3)
    assert predicted_time_s(flop=1e9, bytes_moved=500e6, roof=machine, launch_s=1e-3) == pytest.approx(6e-3)
    assert predicted_time_s(flop=0, bytes_moved=0, roof=machine, launch_s=5e-6) == 5e-6


def test_a_roof_says_where_it_comes_from():
    t4 = Roof.from_gpu(gpu("T4"), "float32")
    assert (t4.peak_flop_per_s, t4.bandwidth_bytes_per_s) == (8.1e12, 320e9)
    assert t4.source == "predicted" and "T4" in t4.origin and "datasheet" in t4.origin
    assert "predicted" in repr(t4) and "8.1 TFLOP/s" in repr(t4)
    assert Roof.from_gpu(gpu("T4"), "float16").peak_flop_per_s == 65e12
    with pytest.raises(DeviceError, match="bfloat16"):
        Roof.from_gpu(gpu("T4"), "bfloat16")


def test_a_measured_roof_is_no_longer_measured_when_scaled():
    lowered = roof(source="measured").scaled(0.5, 0.25)
    assert (lowered.peak_flop_per_s, lowered.bandwidth_bytes_per_s) == (4e12, 80e9)
    assert lowered.source == "predicted" and lowered.label != roof().label
    for shares in ((1.1, 1), (1, 1.1), (0, 1), (1, math.nan)):
        with pytest.raises(InputError):
            roof().scaled(*shares)


@pytest.mark.parametrize(("label", "source"), [("", "measured"), (None, "measured"), ("a", "guessed"), ("a", "")])
def test_a_roof_needs_a_label_and_one_of_three_sources(label, source):
    with pytest.raises(InputError):
        Roof(label, source, 1e12, 1e11)


def test_a_prediction_by_hand():
    # Half of 8.1 TFLOP/s: 8.1e9 FLOP take 2 ms; half of 320 GB/s: 16 MB take 0.1 ms.
    prediction = predict(Work(8.1e9, 16e6), gpu("T4"), "float32", model=MODEL)
    assert prediction.time_s == pytest.approx(2e-3 + 5e-6)
    assert (prediction.low_s, prediction.high_s) == (pytest.approx(2e-3 + 4e-6), pytest.approx(2e-3 + 10e-6))
    assert prediction.bound_by == "compute" and prediction.source == "predicted"
    memory = predict(Work(0, 160e6), gpu("T4"), "float32", model=MODEL)
    assert memory.time_s == pytest.approx(1e-3 + 5e-6) and memory.bound_by == "memory"
    launch = predict(Work(0, 160e6), gpu("T4"), "float32", launches=1000, model=MODEL)
    assert launch.time_s == pytest.approx(1e-3 + 5e-3) and launch.bound_by == "launch"
    assert "predicted" in repr(launch) and "6 ms" in repr(launch)


def test_the_range_takes_every_constant_at_its_best_and_worst():
    model = replace(MODEL, peak_fraction=Estimate(0.5, 0.25, 1, "by hand"))
    prediction = predict(Work(8.1e9, 1), gpu("T4"), "float32", model=model)
    assert prediction.low_s == pytest.approx(1e-3 + 4e-6)
    assert prediction.high_s == pytest.approx(4e-3 + 10e-6)


def test_a_prediction_cannot_pose_as_a_measurement():
    with pytest.raises(InputError):
        Prediction("a", 1, 1, 1, "compute", source="measured")
    for times in ((1, 2, 3), (3, 1, 2), (0, 0, 0), (math.nan, 1, 2)):
        with pytest.raises(InputError):
            Prediction("a", *times, "compute")


def test_a_transfer_by_hand():
    # T4: PCIe 3.0 x16 = 8 GT/s x 16 lanes x 128/130 / 8 = 15.754 GB/s; 0.8 of it when pinned, 0.4 when not.
    n_bytes = 8e9 * 16 * 128 / 130 / 8
    assert predicted_transfer_s(n_bytes, gpu("T4"), pinned=True, model=MODEL) == pytest.approx(1.25 + 20e-6)
    pageable = predict_transfer(n_bytes, gpu("T4"), pinned=False, model=MODEL)
    assert pageable.time_s == pytest.approx(2.5 + 20e-6)
    assert (pageable.low_s, pageable.high_s) == (pytest.approx(2 + 20e-6), pytest.approx(5 + 20e-6))
    assert pageable.bound_by == "transfer" and "pageable" in repr(pageable) and "predicted" in repr(pageable)
    tiny = predict_transfer(4, gpu("T4"), pinned=True, model=MODEL)
    assert tiny.bound_by == "round trip" and tiny.time_s == pytest.approx(20e-6, rel=1e-3)
    assert predicted_transfer_s(0, gpu("T4"), pinned=True, model=MODEL) == 20e-6


def test_a_transfer_over_an_unknown_link_is_refused():
    with pytest.raises(DeviceError, match="RTX 4060 Laptop"):
        predicted_transfer_s(1e9, gpu("RTX 4060 Laptop"), pinned=True)


def test_predictions_with_the_models_own_constants_are_in_the_order_that_people_see():
    # A 1 GB copy over PCIe 3.0 x16: 10 to 13 GB/s pinned; a float32 matmul of 4096 on a T4: 17 ms at its peak.
    assert 1 / 13 < predicted_transfer_s(1e9, gpu("T4"), pinned=True) < 1 / 9
    prediction = predict(matmul_work(4096, itemsize_bytes=4), gpu("T4"), "float32")
    assert 2 * 4096**3 / 8.1e12 < prediction.low_s < prediction.time_s < prediction.high_s


def test_a_throughput_above_the_peak():
    assert exceeds_peak(roof(), flop_per_s=60e12)
    assert exceeds_peak(roof(), flop_per_s=8.9e12) and not exceeds_peak(roof(), flop_per_s=8.7e12)
    assert exceeds_peak(roof(), bytes_per_s=321e9) and not exceeds_peak(roof(), bytes_per_s=320e9)
    assert exceeds_peak(roof(), flop_per_s=1, bytes_per_s=1e12)
    assert not exceeds_peak(roof(), flop_per_s=0, bytes_per_s=0)
    measured = roof(source="measured")
    assert not exceeds_peak(measured, bytes_per_s=340e9) and exceeds_peak(measured, bytes_per_s=360e9)


def test_exceeds_peak_wants_a_throughput():
    with pytest.raises(InputError, match="flop_per_s="):
        exceeds_peak(roof())
