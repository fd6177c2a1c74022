"""Record files from real machines, shipped with the package: the second source of a number.

Each *.json file beside this module is a lesson's record as written on the machine that it names. Its GPU sweeps and
measurements stand in for a GPU that the reader does not have, always marked as recorded, with their origin.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from labkit.devices import Machine
from labkit.errors import RecordError
from labkit.files import read_json
from labkit.measurement import Measurement, Sweep, Task

FOLDER = Path(__file__).parent


def find_recorded(task: Task, folder: Path | None = None) -> Measurement | None:
    """Return the recorded GPU measurement of this very task (label, dtype, FLOP, bytes), or None if there is none.

    Files are read in the order of their names and the first match is taken. Raises RecordError for a damaged file.
    """
    for found, origin in _gpu_entries(folder or FOLDER):
        if isinstance(found, Measurement) and _work(found.task) == _work(task):
            return _as_recorded(found, origin)
    return None


def find_recorded_sweep(parameter: str, tasks: Mapping[float, Task], folder: Path | None = None) -> Sweep | None:
    """Return the recorded GPU sweep over parameter that holds each of these tasks at its value, or None.

    A sweep may hold more values than asked for. Raises RecordError for a damaged file.
    """
    for found, origin in _gpu_entries(folder or FOLDER):
        if isinstance(found, Sweep) and found.parameter == parameter and _holds(found, tasks):
            points = [
                dataclasses.replace(point, measurement=point.measurement and _as_recorded(point.measurement, origin))
                for point in found.points
            ]
            return dataclasses.replace(found, points=tuple(points))
    return None


def has_recordings(folder: Path | None = None) -> bool:
    """Say whether any record file is shipped."""
    return any((folder or FOLDER).glob("*.json"))


def load_entry(entry: Any) -> Sweep | Measurement:
    """Return the sweep or measurement that a record holds as a dictionary. Raises RecordError if it is neither."""
    is_sweep = isinstance(entry, dict) and "points" in entry
    return Sweep.from_dict(entry) if is_sweep else Measurement.from_dict(entry)


def _gpu_entries(folder: Path) -> Iterator[tuple[Sweep | Measurement, str]]:
    """Yield what was measured on a GPU, with its origin; recordings of recordings and predictions are left out."""
    for path in sorted(folder.glob("*.json")):
        record = read_json(path)
        if not isinstance(record, dict) or not isinstance(record.get("measurements"), dict):
            raise RecordError(path.name, "this is not a lesson's record: it has no measurements")
        for key, entry in record["measurements"].items():
            try:
                found, origin = load_entry(entry), _origin(record, path)
            except RecordError as problem:
                raise RecordError(f"{path.name}, {key}: {problem.given}", problem.problem, problem.advice) from problem
            first = next(iter(found.measurements), None) if isinstance(found, Sweep) else found
            if first and first.source == "measured" and not first.device.startswith("cpu"):
                yield found, origin


def _origin(record: Mapping[str, Any], path: Path) -> str:
    machine = Machine.from_dict(record.get("machine"))
    versions = f"driver {machine.driver}, PyTorch {machine.torch}"
    return f"{', '.join(machine.gpus)}, {versions}, {str(record.get('started', 'no date'))[:10]} ({path.name})"


def _as_recorded(measurement: Measurement, origin: str) -> Measurement:
    return dataclasses.replace(measurement, source="recorded", provenance=origin)


def _work(task: Task) -> tuple[Any, ...]:
    return task.label, task.dtype, task.flop, task.bytes_moved


def _holds(sweep: Sweep, tasks: Mapping[float, Task]) -> bool:
    points = {point.value: point.measurement for point in sweep.points}
    return all(
        value in points and (points[value] is None or _work(points[value].task) == _work(task))
        for value, task in tasks.items()
    )
