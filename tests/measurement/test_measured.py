import dataclasses
import json
import math
import pickle
import random

import numpy as np
import pytest
import torch
from torch.utils.benchmark import Measurement as TorchMeasurement
from torch.utils.benchmark import TaskSpec

from labkit.errors import InputError, RecordError
from labkit.measurement import Measurement, Task

ADD = Task(label="add", dtype="float32", parameters={"n": 1000})
EXTREME = (5e-324, 2.2250738585072014e-308, 1e-9, 0.1, 1 / 3, 0.1 + 0.2, 1.7976931348623157e308)
FULL = Measurement(
    task=Task(label="mätmul", dtype="float32", parameters={"n": 512, "layout": "odd"}, flop=2 * 512**3, bytes_moved=7),
    times_s=EXTREME,
    warm_up_s=(1.5, 0.25),
    device_times_s=EXTREME[::-1],
    calls_per_sample=20,
    source="recorded",
    device="cuda:0",
    device_name="Tesla T4",
    machine="a1b2c3",
    threads=3,
    profile="quick",
    provenance="t4.json",
    implausible="above the stated peak",
    notes=("caches emptied before every call",),
)


def measurement(times_s=(1.0, 1.0, 1.0, 1.0), **fields):
    return Measurement(**{"task": ADD, "times_s": times_s} | fields)


@pytest.mark.parametrize(
    ("times_s", "median_s", "mean_s", "low_s", "high_s"),
    [
        # Quartiles by linear interpolation at positions (n - 1)/4 and 3(n - 1)/4 of the sorted series, by hand.
        ([4, 1, 3, 2], 2.5, 2.5, 1.75, 3.25),
        ([5, 1, 2, 4, 3], 3, 3, 2, 4),
        ([10, 20], 15, 15, 12.5, 17.5),
        ([7], 7, 7, 7, 7),
        ([1, 1, 1, 1, 100], 1, 20.8, 1, 1),
        ([0, 1, 2, 3, 4, 5, 6], 3, 3, 1.5, 4.5),
    ],
)
def test_statistics_of_known_series(times_s, median_s, mean_s, low_s, high_s):
    shift = 1 - min(times_s)  # a time is above zero, and every one of these moves with a shift
    found = measurement([time_s + shift for time_s in times_s])
    assert found.median_s == median_s + shift
    assert found.mean_s == pytest.approx(mean_s + shift)
    assert found.min_s == 1
    assert found.quartiles_s == (low_s + shift, high_s + shift)
    assert found.iqr_s == high_s - low_s
    assert found.relative_spread == pytest.approx((high_s - low_s) / (median_s + shift))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 100])
def test_statistics_agree_with_torch_utils_benchmark(n):
    draw = random.Random(n)
    times_s = [draw.lognormvariate(-7, 1) for _ in range(n)]
    ours = measurement(times_s)
    theirs = TorchMeasurement(number_per_run=1, raw_times=times_s, task_spec=TaskSpec("fn()", "pass"))
    assert (ours.median_s, ours.mean_s) == (pytest.approx(theirs.median), pytest.approx(theirs.mean))
    assert ours.iqr_s == pytest.approx(theirs.iqr, abs=1e-18)


def test_the_order_of_the_samples_is_kept():
    assert measurement([3, 1, 2]).times_s == (3, 1, 2)


def test_the_first_calls_stand_apart_and_never_in_the_statistics():
    found = measurement([1, 1, 1, 1], warm_up_s=[30.0, 2.0])
    assert (found.first_s, found.median_s, found.mean_s, found.iqr_s) == (30.0, 1, 1, 0)
    assert "first call 30 s (not counted)" in repr(found)
    assert measurement().first_s is None
    assert "first call" not in repr(measurement())


def test_throughput_is_the_work_over_the_median():
    task = Task(label="matmul", flop=2 * 10**9, bytes_moved=3 * 10**6)
    found = measurement([0.4, 0.5, 0.6, 100], task=task)
    assert found.flop_per_s == pytest.approx(2e9 / 0.55)
    assert found.bytes_per_s == pytest.approx(3e6 / 0.55)
    assert (measurement().flop_per_s, measurement().bytes_per_s) == (None, None)


def test_images_per_second_are_the_batch_over_the_median():
    found = measurement([0.4, 0.5, 0.6, 100], task=Task(label="step", parameters={"batch": 11}))
    assert found.images_per_s == pytest.approx(20)
    assert measurement().images_per_s is None
    assert measurement(task=Task(label="step", parameters={"batch": "all"})).images_per_s is None


def test_an_implausible_time_gives_no_throughput():
    task = Task(label="matmul", flop=2e9, bytes_moved=3e6, parameters={"batch": 8})
    found = measurement(task=task, implausible="2 PFLOP/s is above the stated peak")
    assert (found.flop_per_s, found.bytes_per_s, found.images_per_s) == (None, None, None)
    assert "IMPLAUSIBLE: 2 PFLOP/s is above the stated peak" in repr(found)
    assert "GFLOP/s" not in repr(found)


def test_the_device_s_own_clock_has_its_own_median():
    found = measurement([2, 3, 4, 5], device_times_s=[0.5, 0.25, 0.75, 0.5], device="cuda:0")
    assert found.device_median_s == 0.5
    assert found.median_s == 3.5
    assert "500 ms by the device's own clock" in repr(found)
    assert measurement().device_median_s is None


def test_the_repr_is_one_sentence_with_everything_a_reader_needs():
    # Sorted 1.0, 1.1, 1.1, 1.2 ms: quartiles 1.075 and 1.125 ms, 4.5 % of the median. 2 · 512³ FLOP in 1.1 ms.
    task = Task(label="matmul", dtype="float32", parameters={"n": 512}, flop=2 * 512**3)
    times_s = [1.0e-3, 1.1e-3, 1.2e-3, 1.1e-3]
    sentence = repr(measurement(times_s, task=task, device_name="EPYC", threads=2, profile="quick"))
    assert sentence.startswith("matmul n=512 float32 on EPYC, 2 threads (measured): median 1.1 ms")
    for part in ("50 µs", "4 samples", "quick profile", "244 GFLOP/s"):
        assert part in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert "NOISY" not in sentence


def test_bandwidth_is_told_where_no_flop_are_known():
    assert "3 MB/s" in repr(measurement(task=Task(label="copy", bytes_moved=3e6)))


@pytest.mark.parametrize(("spread", "noisy"), [(0.09, False), (0.11, True), (0.5, True), (0, False)])
def test_the_repr_carries_the_noise_warning(spread, noisy):
    # Nine samples from 1 - spread to 1 + spread, evenly: the middle half is as wide as spread.
    found = measurement([1 + spread * (i - 4) / 4 for i in range(9)])
    assert found.relative_spread == pytest.approx(spread)
    assert ("NOISY" in repr(found)) == noisy
    assert (f"{spread:.0%} of the median" in repr(found)) == noisy


@pytest.mark.parametrize(("n", "words"), [(1, "only 1 sample:"), (2, "only 2 samples:"), (3, "only 3 samples:")])
def test_too_few_samples_are_told(n, words):
    assert words in repr(measurement([1, 2, 3][:n]))
    assert "only" not in repr(measurement([1, 1, 1, 1]))


def test_a_prediction_has_no_samples_and_names_its_model():
    found = measurement([1], source="predicted", provenance="the roofline of a T4", device="cuda:0", device_name="T4")
    assert "T4 (predicted)" in repr(found)
    assert "predicted by the roofline of a T4" in repr(found)
    assert "sample" not in repr(found)
    assert not found.warnings


# C02-07
@pytest.mark.parametrize(
    ("fields", "legend"),
    [
        ({"device_name": "EPYC", "threads": 1}, "EPYC, 1 thread (measured)"),
        ({"device_name": "EPYC", "threads": 8}, "EPYC, 8 threads (measured)"),
        ({"threads": 8}, "cpu, 8 threads (measured)"),
        ({"device_name": "EPYC"}, "EPYC (measured)"),
        ({"device": "cuda:0", "device_name": "T4", "threads": 8}, "T4 (measured)"),
        ({"device": "mps", "source": "recorded", "provenance": "m2.json"}, "mps (recorded)"),
    ],
)
def test_the_legend_names_device_threads_and_source(fields, legend):
    assert measurement(**fields).legend == legend
    assert legend in repr(measurement(**fields))


def test_html_is_the_same_sentence_escaped():
    found = measurement(task=Task(label="<b>a & b</b>"), device_name='"<script>"')
    assert "<b>" not in found._repr_html_()
    assert "<script>" not in found._repr_html_()
    assert "&lt;b&gt;a &amp; b&lt;/b&gt;" in found._repr_html_()


@pytest.mark.parametrize("found", [FULL, measurement(), measurement([1], source="predicted", provenance="a model")])
def test_json_round_trip_is_exact(found, tmp_path):
    assert Measurement.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert Measurement.load(found.save(tmp_path / "a.json")) == found
    assert Measurement.load(tmp_path / "a.json").to_dict() == found.to_dict()
    assert pickle.loads(pickle.dumps(found)) == found


def test_every_field_is_in_the_record():
    assert set(FULL.to_dict()) == {field.name for field in dataclasses.fields(Measurement)}
    assert FULL.to_dict()["times_s"] == list(EXTREME)
    assert FULL.to_dict()["format_version"] == 1


def test_random_times_survive_the_file_bit_by_bit(tmp_path):
    draw = random.Random(5)
    times_s = [draw.random() * 10 ** draw.randint(-300, 300) or 1.0 for _ in range(500)]
    loaded = Measurement.load(measurement(times_s).save(tmp_path / "a.json"))
    assert [time_s.hex() for time_s in loaded.times_s] == [time_s.hex() for time_s in times_s]


@pytest.mark.parametrize("times_s", [np.array([0.5, 1]), np.float32([0.5, 1]), torch.tensor([0.5, 1]), (0.5, 1)])
def test_times_of_any_library_are_kept_as_floats(times_s, tmp_path):
    found = measurement(times_s, calls_per_sample=np.int64(5), threads=np.int64(2))
    assert found.times_s == (0.5, 1)
    assert [type(value) for value in (*found.times_s, found.calls_per_sample, found.threads)] == [
        float,
        float,
        int,
        int,
    ]
    assert Measurement.load(found.save(tmp_path / "a.json")) == found


def test_a_measurement_cannot_be_changed_and_can_be_a_key():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.times_s = (1,)
    assert {FULL: 1}[dataclasses.replace(FULL)] == 1


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("task", "add"),
        ("task", None),
        ("times_s", ()),
        ("times_s", []),
        ("times_s", 1.0),
        ("times_s", "1.0"),
        ("times_s", None),
        ("warm_up_s", 1.0),
        ("notes", "a note"),
        ("notes", 3),
        ("calls_per_sample", 0),
        ("calls_per_sample", 1.5),
        ("calls_per_sample", None),
        ("threads", 0),
        ("threads", -2),
        ("threads", True),
        ("threads", "2"),
        ("source", "guessed"),
        ("source", None),
        ("profile", "fast"),
        ("device", ""),
        ("device", torch.device("cpu")),
        ("device_name", None),
        ("machine", 7),
        ("implausible", True),
    ],
)
def test_nonsense_is_refused_and_repeated(field, bad):
    with pytest.raises(InputError) as caught:
        measurement(**{field: bad})
    shown = () if bad == [] else bad
    assert f"{field}={shown!r}" in str(caught.value)


@pytest.mark.parametrize("field", ["times_s", "warm_up_s", "device_times_s"])
@pytest.mark.parametrize("bad", [0, -1e-9, math.nan, math.inf, "1", None, True, [1], 10**400])
def test_a_time_that_cannot_be_is_refused_and_repeated(field, bad):
    with pytest.raises(InputError) as caught:
        measurement(**{field: [1.0, bad]})
    assert f"{field}={bad!r}" in str(caught.value)
    assert "positive number of seconds" in str(caught.value)


def test_each_sample_needs_both_clocks():
    with pytest.raises(InputError, match="2 device times for 3 samples"):
        measurement([1, 1, 1], device_times_s=[1, 1])


@pytest.mark.parametrize("source", ["recorded", "predicted"])
@pytest.mark.parametrize("provenance", ["", "  "])
def test_a_number_from_elsewhere_must_say_its_origin(source, provenance):
    with pytest.raises(InputError, match="origin") as caught:
        measurement(source=source, provenance=provenance)
    assert f"source={source!r}" in str(caught.value)


def test_merging_keeps_every_sample_of_both():
    one = measurement([1, 2], warm_up_s=[9], device_times_s=[0.5, 0.25])
    two = measurement([3, 4], warm_up_s=[8], device_times_s=[0.75, 1], implausible="too fast")
    both = one.merge(two)
    assert both.times_s == (1, 2, 3, 4)
    assert both.warm_up_s == (9, 8)
    assert both.device_times_s == (0.5, 0.25, 0.75, 1)
    assert both.implausible == "too fast"
    assert two.merge(one).implausible == "too fast"
    assert one.times_s == (1, 2)


def test_merging_with_one_clock_missing_keeps_the_host_s():
    both = measurement([1, 2], device_times_s=[1, 1]).merge(measurement([3]))
    assert (both.times_s, both.device_times_s) == ((1, 2, 3), ())


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("machine", "another"),
        ("device", "cuda:0"),
        ("device_name", "another CPU"),
        ("threads", 1),
        ("threads", None),
        ("profile", "quick"),
        ("task", dataclasses.replace(ADD, dtype="float64")),
        ("task", dataclasses.replace(ADD, parameters={"n": 1001})),
        ("task", dataclasses.replace(ADD, flop=5)),
        ("notes", ("caches emptied before every call",)),
        ("provenance", "another file"),
    ],
)
def test_runs_of_different_kinds_refuse_to_merge(field, other):
    mine = measurement(machine="here", threads=2)
    with pytest.raises(InputError) as caught:
        mine.merge(dataclasses.replace(mine, **{field: other}))
    shown = repr(other) if field == "task" and str(other) == str(ADD) else str(other)
    assert shown in str(caught.value)
    assert caught.value.given.startswith(field)


def test_only_measurements_of_one_source_merge():
    with pytest.raises(InputError, match="source 'measured' and 'predicted'"):
        measurement().merge(measurement(source="predicted", provenance="a model"))
    for other in (None, 1.0, [measurement()]):
        with pytest.raises(InputError) as caught:
            measurement().merge(other)
        assert repr(other) in str(caught.value)


WITHOUT = object()


@pytest.mark.parametrize(
    ("field", "damaged"),
    [
        ("times_s", WITHOUT),
        ("times_s", []),
        ("times_s", None),
        ("times_s", [1.0, None]),
        ("times_s", [[1.0]]),
        ("times_s", [-1.0]),
        ("times_s", [math.nan]),
        ("times_s", [10**400]),
        ("times_s", "1.0"),
        ("times_s", {"0": 1.0, "1": 2.0}),
        ("task", WITHOUT),
        ("task", None),
        ("task", "add"),
        ("task", {}),
        ("task", {"label": "add", "colour": "red"}),
        ("task", {"label": "add", "flop": -1}),
        ("format_version", WITHOUT),
        ("format_version", 0),
        ("format_version", 2),
        ("format_version", "1"),
        ("format_version", None),
        ("colour", "red"),
        ("source", "guessed"),
        ("provenance", ""),
        ("threads", 1.5),
        ("device", 3),
        ("implausible", None),
        ("notes", [1, 2]),
        ("notes", None),
    ],
)
def test_a_damaged_record_is_refused(field, damaged):
    data = FULL.to_dict() | {field: damaged}
    if damaged is WITHOUT:
        del data[field]
    with pytest.raises(RecordError):
        Measurement.from_dict(data)


@pytest.mark.parametrize("data", [None, 3, "text", [], {}, [FULL.to_dict()], {"label": "add", "points": []}])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(RecordError):
        Measurement.from_dict(data)


def test_a_record_of_another_version_or_with_unknown_fields_says_so():
    with pytest.raises(RecordError, match="format_version=2: this labkit reads format 1.*Update labkit"):
        Measurement.from_dict(FULL.to_dict() | {"format_version": 2})
    with pytest.raises(RecordError, match="'colour', 'shape'.*does not know"):
        Measurement.from_dict(FULL.to_dict() | {"shape": 1, "colour": 2})


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_file_is_told_by_its_name(tmp_path, share):
    path = FULL.save(tmp_path / "a.json")
    text = path.read_text()
    path.write_text(text[: int(len(text.rstrip()) * share)])
    with pytest.raises(RecordError) as caught:
        Measurement.load(path)
    assert str(path) in str(caught.value)
