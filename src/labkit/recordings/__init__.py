"""Record files from real machines, shipped with the package: the second source of a number.

Each *.json file beside this module is a lesson's record as written on the machine that it names. Its GPU sweeps and
measurements stand in for a GPU that the reader does not have, always marked as recorded, with their origin.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from labkit.errors import RecordError
from labkit.files import read_json
from labkit.measurement import Measurement, Sweep

FOLDER = Path(__file__).parent


def find_recorded(
    label: str, *, parameter: str | None = None, folder: Path | None = None
) -> Sweep | Measurement | None:
    """Return the recorded GPU sweep (or, without a parameter, measurement) of that label, or None if there is none.

    Files are read in the order of their names and the first match is taken. Raises RecordError for a damaged file.
    """
    for path in sorted((folder or FOLDER).glob("*.json")):
        record = read_json(path)
        for found in _gpu_entries(record, path):
            if isinstance(found, Sweep) and found.label == label and found.parameter == parameter:
                return _as_recorded_sweep(found, _origin(record, path))
            if isinstance(found, Measurement) and parameter is None and found.task.label == label:
                return _as_recorded(found, _origin(record, path))
    return None


def has_recordings(folder: Path | None = None) -> bool:
    """Say whether any record file is shipped."""
    return any((folder or FOLDER).glob("*.json"))


def load_entry(entry: Mapping[str, Any]) -> Sweep | Measurement:
    """Return the sweep or measurement that a record holds as a dictionary."""
    return Sweep.from_dict(entry) if "points" in entry else Measurement.from_dict(entry)


def _gpu_entries(record: Any, path: Path) -> Iterator[Sweep | Measurement]:
    if not isinstance(record, dict) or not isinstance(record.get("measurements"), dict):
        raise RecordError(path.name, "this is not a lesson's record: it has no measurements")
    for entry in record["measurements"].values():
        found = load_entry(entry)
        first = found.measurements[0] if isinstance(found, Sweep) and found.measurements else found
        if isinstance(first, Measurement) and first.source == "measured" and not first.device.startswith("cpu"):
            yield found


def _origin(record: Mapping[str, Any], path: Path) -> str:
    machine = record.get("machine", {})
    gpus = ", ".join(machine.get("gpus", ())) or "unknown GPU"
    versions = f"driver {machine.get('driver')}, PyTorch {machine.get('torch')}"
    return f"{gpus}, {versions}, {str(record.get('started', 'no date'))[:10]} ({path.name})"


def _as_recorded(measurement: Measurement, origin: str) -> Measurement:
    return dataclasses.replace(measurement, source="recorded", provenance=origin)


def _as_recorded_sweep(sweep: Sweep, origin: str) -> Sweep:
    points = tuple(
        dataclasses.replace(point, measurement=point.measurement and _as_recorded(point.measurement, origin))
        for point in sweep.points
    )
    return dataclasses.replace(sweep, points=points)
