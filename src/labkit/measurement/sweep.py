"""How one task's time changes with one parameter, out-of-memory points included."""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labkit.errors import InputError, RecordError, check_choice, check_positive, check_text, listed
from labkit.files import read_json, write_json
from labkit.measurement.measured import Measurement
from labkit.measurement.record_format import FORMAT_VERSION, checked_record, read_as, unknown_format
from labkit.units import format_s

MEASURED, OUT_OF_MEMORY = "measured", "out of memory"


@dataclass(frozen=True, kw_only=True)
class Point:
    """One value of a sweep: its measurement, or the outcome "out of memory" with the detail of what did not fit."""

    value: float | int
    measurement: Measurement | None = None
    outcome: str = MEASURED
    detail: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check_positive("value", self.value))
        check_choice("outcome", self.outcome, (MEASURED, OUT_OF_MEMORY))
        check_text("detail", self.detail, empty_ok=True)
        if not isinstance(self.measurement, Measurement | None):
            raise InputError(f"measurement={self.measurement!r}", "this is not a Measurement")
        if (self.measurement is None) == (self.outcome == MEASURED):
            raise InputError(
                f"outcome={self.outcome!r}", "a point has either a measurement or a reason for having none"
            )


@dataclass(frozen=True, kw_only=True, repr=False)
class Sweep:
    """One task measured over several values of one parameter on one device, in rising order of the value.

    complete is False if the sweep was interrupted; the points measured until then are kept.
    """

    label: str
    parameter: str
    points: tuple[Point, ...]
    complete: bool = True
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        check_text("label", self.label)
        check_text("parameter", self.parameter)
        if not isinstance(self.complete, bool):
            raise InputError(f"complete={self.complete!r}", "a sweep is complete or not: True or False")
        points = tuple(listed("points", self.points))
        if not points or not all(isinstance(point, Point) for point in points):
            raise InputError(f"points={points!r}", "a sweep needs at least one Point")
        points = tuple(sorted(points, key=lambda point: point.value))
        values = [point.value for point in points]
        if len(set(values)) < len(values):
            raise InputError(f"{self.parameter}={values}", "each value may stand in a sweep once")
        for name in ("source", "machine", "device", "device_name"):
            found = sorted({getattr(point.measurement, name) for point in points if point.measurement})
            if len(found) > 1:
                raise InputError(
                    f"{name}s {found}", "a sweep belongs to one device of one machine", "Make one a device."
                )
        if self.format_version != FORMAT_VERSION:
            raise unknown_format(self.format_version)
        object.__setattr__(self, "points", points)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The measurements of the points that have one, in rising order of the value."""
        return tuple(point.measurement for point in self.points if point.measurement)

    @property
    def values(self) -> tuple[float | int, ...]:
        """The values that have a measurement, in rising order."""
        return tuple(point.value for point in self.points if point.measurement)

    @property
    def medians_s(self) -> tuple[float, ...]:
        """The median times in seconds, in the order of values."""
        return tuple(measurement.median_s for measurement in self.measurements)

    @property
    def out_of_memory(self) -> tuple[Point, ...]:
        """The points that did not fit into memory."""
        return tuple(point for point in self.points if point.outcome == OUT_OF_MEMORY)

    @property
    def legend(self) -> str:
        """The device and the source of the numbers, for a legend; the label alone if nothing was measured."""
        if not self.measurements:
            return f"{self.label} (nothing measured)"
        threads = {measurement.threads for measurement in self.measurements}
        one_count = (
            self.measurements[0] if len(threads) == 1 else dataclasses.replace(self.measurements[0], threads=None)
        )
        return f"{self.label}, {one_count.legend}"

    @property
    def source(self) -> str:
        """Where the numbers come from: measured, recorded or predicted."""
        return self.measurements[0].source if self.measurements else "measured"

    def at(self, value: float | int) -> Measurement:
        """Return the measurement at value. Raises InputError, with the reason, if the sweep has none there."""
        wanted = check_positive(self.parameter, value)
        point = next((point for point in self.points if point.value == wanted), None)
        if point is not None and point.measurement:
            return point.measurement
        reason = f": {_point_cells(point)}" if point else "" if self.complete else ": it was interrupted"
        advice = f"It has {', '.join(map(str, self.values)) or 'none at all'}."
        raise InputError(f"{self.parameter}={value!r}", f"the sweep has no measurement there{reason}", advice)

    def __repr__(self) -> str:
        lines = [f"{self.label} over {self.parameter}, {self.legend}:" if self.measurements else f"{self.label}:"]
        for point in self.points:
            shown = _point_cells(point)
            lines.append(f"  {self.parameter}={point.value}: {shown}")
        if not self.complete:
            lines.append("  interrupted: the remaining values were not measured.")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{point.value}</td><td style='text-align:left'>{html.escape(_point_cells(point))}</td></tr>"
            for point in self.points
        )
        note = "" if self.complete else "<p>Interrupted: the remaining values were not measured.</p>"
        head = f"<tr><th>{html.escape(self.parameter)}</th><th>median time of a call</th></tr>"
        return f"<table><caption>{html.escape(self.legend)}</caption>{head}{rows}</table>{note}"

    def to_dict(self) -> dict[str, Any]:
        """Return the sweep as plain JSON types."""
        points = [
            {
                "value": point.value,
                "outcome": point.outcome,
                "detail": point.detail,
                "measurement": point.measurement.to_dict() if point.measurement else None,
            }
            for point in self.points
        ]
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return shown | {"points": points}

    @classmethod
    def from_dict(cls, data: Any) -> Sweep:
        """Return the sweep that to_dict wrote. Raises RecordError if data is not one."""
        data = checked_record(data, "sweep", needs={"label", "parameter", "points", "format_version"}, cls=cls)
        if not isinstance(data["points"], list):
            raise RecordError("a sweep in a record", f"it is damaged (points={data['points']!r} is no list)")
        points = tuple(_read_point(point) for point in data["points"])
        return read_as(cls, data | {"points": points}, "a sweep in a record")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the sweep to a JSON file, through a temporary file and a rename."""
        return write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Sweep:
        """Read a sweep from a JSON file. Raises RecordError if the file is missing or damaged."""
        return cls.from_dict(read_json(path))


def checked_values(parameter: str, values: Any) -> list[float]:
    """Return the values of a sweep as plain numbers. Raises InputError for none, one twice, or what is no size.

    >>> checked_values("n", (10, 100))
    [10, 100]
    """
    check_text("parameter", parameter)
    values = [check_positive(parameter, value) for value in listed("values", values)]
    if not values:
        raise InputError("values=[]", "a sweep needs at least one value", "Try [10, 100, 1000].")
    if len(set(values)) < len(values):
        raise InputError(f"values={values}", "each value may stand in a sweep once")
    return values


def check_functions(needed: Mapping[str, Any], **others: Any) -> None:
    """Raise InputError for the first function of a swept value, by its name, that is none; others may be None.

    >>> check_functions({"bytes_moved": lambda n: 12 * n}, flop=None)
    """
    for name, function in {**needed, **others}.items():
        if not (callable(function) or (function is None and name not in needed)):
            advice = f"Try {name}=lambda n: …" if name != "make" else "Try make(n, device), which returns a function."
            raise InputError(f"{name}={function!r}", f"{name} must be a function of the value", advice)


def _read_point(data: Any) -> Point:
    data = checked_record(data, "point", needs={"value", "measurement"}, cls=Point)
    measurement = data["measurement"]
    loaded = None if measurement is None else Measurement.from_dict(measurement)
    return read_as(Point, data | {"measurement": loaded}, "a point in a record")


def _point_cells(point: Point) -> str:
    if point.measurement is None:
        return f"{point.outcome} ({point.detail})" if point.detail else point.outcome
    marks = f"  [{'; '.join(point.measurement.warnings)}]" if point.measurement.warnings else ""
    return f"{format_s(point.measurement.median_s)}{marks}"
