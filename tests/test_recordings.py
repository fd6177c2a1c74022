"""Recordings: which one stands in for a GPU, how it is marked, and which files are refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from labkit import recordings
from labkit.devices import Machine
from labkit.errors import RecordError
from labkit.measurement import OUT_OF_MEMORY, Measurement, Point, Sweep, Task
from labkit.recordings import find_recorded, find_recorded_sweep, has_recordings, load_entry

T4 = Machine("Xeon", 2, ("Tesla T4",), "Linux", "3.12.3", "2.11.0", "550.54", 13 * 10**9)
ORIGIN = "Tesla T4, driver 550.54, PyTorch 2.11.0, 2026-11-30 ({})"


def task(n: int = 1000, **changes: Any) -> Task:
    return Task(**{"label": "add", "dtype": "float32", "flop": n, "bytes_moved": 12 * n, **changes})


def on_gpu(n: int = 1000, time_s: float = 2e-5, **changes: Any) -> Measurement:
    fields = {"device": "cuda", "device_name": "Tesla T4", "times_s": [time_s] * 5, "device_times_s": [time_s / 2] * 5}
    return Measurement(**{"task": task(n), **fields, **changes})


def swept(*values: int, **changes: Any) -> Sweep:
    points = [Point(value=n, measurement=on_gpu(n, **changes)) for n in values]
    return Sweep(label="add", parameter="n", points=[*points, Point(value=10**12, outcome=OUT_OF_MEMORY)])


def write(folder: Path, *found: Measurement | Sweep, name: str = "t4.json", **changes: Any) -> Path:
    """Write a record as a lesson would, and return its folder."""
    entries = {f"entry {number}": item.to_dict() for number, item in enumerate(found)}
    record = {"machine": T4.to_dict(), "started": "2026-11-30T12:00:00+00:00", "measurements": entries}
    (folder / name).write_text(json.dumps(record | changes))
    return folder


def test_without_files_nothing_is_found(tmp_path: Path) -> None:
    assert find_recorded(task(), tmp_path) is None
    assert find_recorded_sweep("n", {1000: task()}, tmp_path) is None
    assert not has_recordings(tmp_path)


def test_a_measurement_is_found_and_marked_with_its_origin(tmp_path: Path) -> None:
    found = find_recorded(task(), write(tmp_path, swept(1000), on_gpu()))
    assert found == dataclasses.replace(on_gpu(), source="recorded", provenance=ORIGIN.format("t4.json"))
    assert has_recordings(tmp_path)


def test_a_sweep_is_found_with_every_point_marked(tmp_path: Path) -> None:
    found = find_recorded_sweep("n", {10: task(10), 1000: task()}, write(tmp_path, on_gpu(), swept(10, 100, 1000)))
    assert (found.values, found.source) == ((10, 100, 1000), "recorded")
    assert [point.outcome for point in found.points][-1] == OUT_OF_MEMORY
    assert {measurement.provenance for measurement in found.measurements} == {ORIGIN.format("t4.json")}
    assert "(recorded)" in found.legend


@pytest.mark.parametrize(
    "change", [{"label": "mul"}, {"dtype": "float16"}, {"flop": 2}, {"bytes_moved": 1}, {"n": 999}]
)
def test_only_the_very_same_work_is_taken(tmp_path: Path, change: dict[str, Any]) -> None:
    write(tmp_path, on_gpu(), swept(1000))
    assert find_recorded(task(**change), tmp_path) is None
    assert find_recorded_sweep("n", {1000: task(**change)}, tmp_path) is None


def test_a_sweep_must_hold_every_value_asked_for_over_the_same_parameter(tmp_path: Path) -> None:
    write(tmp_path, swept(10, 1000))
    assert find_recorded_sweep("n", {10: task(10), 20: task(20)}, tmp_path) is None
    assert find_recorded_sweep("batch", {10: task(10)}, tmp_path) is None
    assert find_recorded_sweep("n", {10: task(10), 10**12: task(10**12)}, tmp_path) is not None


@pytest.mark.parametrize(
    "changes",
    [
        {"device": "cpu", "device_times_s": ()},
        {"source": "predicted", "provenance": "the roofline"},
        {"source": "recorded", "provenance": "elsewhere"},
    ],
    ids=["cpu", "predicted", "recorded"],
)
def test_only_what_a_gpu_really_did_is_taken(tmp_path: Path, changes: dict[str, Any]) -> None:
    write(tmp_path, on_gpu(**changes), swept(1000, **changes))
    assert find_recorded(task(), tmp_path) is None
    assert find_recorded_sweep("n", {1000: task()}, tmp_path) is None


def test_the_first_file_by_name_wins(tmp_path: Path) -> None:
    write(tmp_path, on_gpu(time_s=2e-5), name="b.json")
    write(tmp_path, on_gpu(time_s=1e-5), name="a.json")
    found = find_recorded(task(), tmp_path)
    assert (found.median_s, found.provenance) == (1e-5, ORIGIN.format("a.json"))


DAMAGE = {
    "no JSON": "{",
    "no record": "[]",
    "no measurements": json.dumps({"machine": T4.to_dict()}),
    "measurements is a list": json.dumps({"machine": T4.to_dict(), "measurements": []}),
    "an entry is a number": json.dumps({"machine": T4.to_dict(), "measurements": {"add": 3}}),
    "an entry is nothing": json.dumps({"machine": T4.to_dict(), "measurements": {"add": None}}),
    "a negative time": {"times_s": [-1.0]},
    "no time": {"times_s": []},
    "another format": {"format_version": 99},
    "an unknown field": {"colour": "red"},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_is_refused_and_named(tmp_path: Path, damage: str | dict[str, Any]) -> None:
    if isinstance(damage, dict):
        entry = on_gpu().to_dict() | damage
        damage = json.dumps({"machine": T4.to_dict(), "measurements": {"add": entry}})
    (tmp_path / "t4.json").write_text(damage)
    with pytest.raises(RecordError, match=r"t4\.json"):
        find_recorded(task(), tmp_path)


@pytest.mark.parametrize("machine", [None, {}, "a T4", T4.to_dict() | {"gpus": ["H100"]}])
def test_a_recording_must_name_its_machine(tmp_path: Path, machine: Any) -> None:
    write(tmp_path, on_gpu(), machine=machine)
    with pytest.raises(RecordError, match=r"t4\.json, entry 0: machine"):
        find_recorded(task(), tmp_path)


def test_an_entry_is_a_sweep_or_a_measurement() -> None:
    assert load_entry(swept(10).to_dict()) == swept(10)
    assert load_entry(on_gpu().to_dict()) == on_gpu()


def test_every_recording_that_is_shipped_can_be_read_and_comes_from_a_gpu() -> None:
    for path in recordings.FOLDER.glob("*.json"):
        assert any(path.name in origin for _, origin in recordings._gpu_entries(recordings.FOLDER)), path.name
