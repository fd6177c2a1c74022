import dataclasses
import json
import math
import pickle

import numpy as np
import pytest

from labkit.errors import InputError, RecordError
from labkit.measurement import MEASURED, OUT_OF_MEMORY, Measurement, Point, Sweep, Task


def measurement(time_s=1.0, **fields):
    return Measurement(**{"task": Task(label="add"), "times_s": [time_s] * 4, "device_name": "EPYC"} | fields)


def point(value, time_s=1.0, **fields):
    return Point(value=value, measurement=measurement(time_s, **fields))


def too_large(value, detail="needs 8 TB"):
    return Point(value=value, outcome=OUT_OF_MEMORY, detail=detail)


def sweep(*points, **fields):
    return Sweep(**{"label": "add", "parameter": "n", "points": points} | fields)


THREE = sweep(point(1000, 3.0), too_large(10**6), point(10, 0.5), complete=False)


def test_points_stand_in_rising_order():
    assert [point.value for point in THREE.points] == [10, 1000, 10**6]
    assert THREE.values == (10, 1000)
    assert THREE.medians_s == (0.5, 3.0)
    assert [found.median_s for found in THREE.measurements] == [0.5, 3.0]
    assert [point.value for point in THREE.out_of_memory] == [10**6]


def test_a_value_gives_its_measurement():
    assert THREE.at(1000).median_s == 3.0
    for missing, said in ((10**6, "out of memory"), (11, "It has 10, 1000."), (-1, "positive"), ("10", "positive")):
        with pytest.raises(InputError) as caught:
            THREE.at(missing)
        assert f"n={missing!r}" in str(caught.value)
        assert said in str(caught.value)


def test_the_repr_shows_every_point_and_what_happened_to_it():
    lines = repr(THREE).splitlines()
    assert lines[0] == "add over n, add, EPYC (measured):"
    assert [line.strip() for line in lines[1:4]] == [
        "n=10: 500 ms",
        "n=1000: 3 s",
        "n=1000000: out of memory (needs 8 TB)",
    ]
    assert "interrupted" in lines[4]
    assert "interrupted" not in repr(sweep(point(1)))


def test_the_repr_carries_the_warnings_of_a_point():
    noisy = Measurement(task=Task(label="add"), times_s=[1, 1, 2, 2])
    assert "NOISY" in repr(sweep(Point(value=1, measurement=noisy)))
    assert "NOISY" in sweep(Point(value=1, measurement=noisy))._repr_html_()


def test_threads_are_named_once_and_only_if_all_points_have_the_same():
    assert sweep(point(1, threads=2), point(2, threads=2)).legend == "add, EPYC, 2 threads (measured)"
    assert sweep(point(1, threads=1), point(2, threads=2)).legend == "add, EPYC (measured)"


def test_a_sweep_in_which_nothing_fitted_says_so():
    empty = sweep(too_large(1), too_large(2, detail=""))
    assert (empty.values, empty.medians_s, empty.measurements) == ((), (), ())
    assert empty.legend == "add (nothing measured)"
    assert "n=2: out of memory" in repr(empty)
    assert "nothing measured" in empty._repr_html_()


def test_html_is_a_table_escaped():
    evil = sweep(point(1, device_name="<i>"), too_large(2, "<b>8 TB</b>"), label="<u>", parameter="<s>")
    shown = evil._repr_html_()
    assert not any(tag in shown for tag in ("<i>", "<b>", "<u>", "<s>"))
    assert shown.count("<tr>") == 3
    assert "&lt;b&gt;8 TB&lt;/b&gt;" in shown
    assert "Interrupted" in THREE._repr_html_()


@pytest.mark.parametrize("found", [THREE, sweep(point(0.1), point(1 / 3)), sweep(too_large(1))])
def test_json_round_trip_is_exact(found, tmp_path):
    assert Sweep.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert Sweep.load(found.save(tmp_path / "a.json")) == found
    assert pickle.loads(pickle.dumps(found)) == found
    assert {found: 1}[dataclasses.replace(found)] == 1


def test_values_from_numpy_can_be_saved(tmp_path):
    found = sweep(*(point(n) for n in np.logspace(1, 3, 3).astype(int)), point(np.float32(0.5)))
    assert found.values == (0.5, 10, 100, 1000)
    assert Sweep.load(found.save(tmp_path / "a.json")) == found


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("points", ()),
        ("points", None),
        ("points", [3]),
        ("points", [measurement()]),
        ("label", ""),
        ("label", None),
        ("parameter", " "),
        ("parameter", 3),
        ("complete", "no"),
        ("complete", None),
    ],
)
def test_nonsense_is_refused_and_repeated(field, bad):
    with pytest.raises(InputError) as caught:
        sweep(**{"points": [point(1)]} | {field: bad})
    shown = tuple(bad) if isinstance(bad, list) else bad
    assert f"{field}={shown!r}" in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "10", None, True])
def test_a_value_that_is_no_size_is_refused_and_repeated(value):
    with pytest.raises(InputError) as caught:
        point(value)
    assert f"value={value!r}" in str(caught.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"outcome": "crashed"},
        {"outcome": OUT_OF_MEMORY, "measurement": measurement()},
        {"outcome": MEASURED},
        {"measurement": 3.0},
        {"measurement": measurement(), "detail": None},
    ],
)
def test_a_point_has_a_measurement_or_a_reason_for_having_none(fields):
    with pytest.raises(InputError):
        Point(value=1, **fields)


def test_each_value_stands_once():
    with pytest.raises(InputError, match=r"n=\[1, 1, 2\].*once"):
        sweep(point(2), point(1), too_large(1))


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("machine", {"machine": "another"}),
        ("device", {"device": "cuda:0"}),
        ("device_name", {"device_name": "T4"}),
        ("source", {"source": "predicted", "provenance": "a model"}),
    ],
)
def test_a_sweep_belongs_to_one_device_of_one_machine(field, other):
    with pytest.raises(InputError, match="one device of one machine") as caught:
        sweep(point(1), point(2, **other))
    assert caught.value.given.startswith(field)
    assert next(iter(other.values())) in str(caught.value)


WITHOUT = object()


@pytest.mark.parametrize(
    ("field", "damaged"),
    [
        ("label", WITHOUT),
        ("label", 3),
        ("parameter", WITHOUT),
        ("parameter", None),
        ("points", WITHOUT),
        ("points", []),
        ("points", None),
        ("points", "points"),
        ("points", {"value": 1}),
        ("points", [None]),
        ("points", [[]]),
        ("points", ["value"]),
        ("points", [{}]),
        ("points", [{"value": 1}]),
        ("points", [{"value": 1, "measurement": None}]),
        ("points", [{"value": 1, "measurement": 3}]),
        ("points", [{"value": 1, "measurement": {"times_s": [1]}}]),
        ("points", [{"value": -1, "measurement": None, "outcome": OUT_OF_MEMORY}]),
        ("points", [{"value": 1, "measurement": None, "outcome": "crashed"}]),
        ("points", [{"value": 1, "measurement": None, "outcome": OUT_OF_MEMORY, "colour": 1}]),
        ("points", [{"value": 1, "measurement": None, "outcome": OUT_OF_MEMORY}] * 2),
        ("complete", "yes"),
        ("format_version", WITHOUT),
        ("format_version", 2),
        ("colour", "red"),
    ],
)
def test_a_damaged_record_is_refused(field, damaged):
    data = THREE.to_dict() | {field: damaged}
    if damaged is WITHOUT:
        del data[field]
    with pytest.raises(RecordError):
        Sweep.from_dict(data)


@pytest.mark.parametrize("data", [None, 3, "text", [], {}, measurement().to_dict()])
def test_what_is_no_sweep_is_refused(data):
    with pytest.raises(RecordError):
        Sweep.from_dict(data)


def test_a_measurement_s_file_is_no_sweep_and_the_other_way_round(tmp_path):
    with pytest.raises(RecordError, match="not a sweep"):
        Sweep.load(measurement().save(tmp_path / "m.json"))
    with pytest.raises(RecordError, match="not a measurement"):
        Measurement.load(THREE.save(tmp_path / "s.json"))
