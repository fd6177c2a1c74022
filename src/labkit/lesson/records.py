"""The record of one lesson on one machine: predictions, verdicts, measurements and checks, in one file."""

from __future__ import annotations

import datetime
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.devices import Machine
from labkit.errors import RecordError
from labkit.files import read_json, write_json
from labkit.measurement import FORMAT_VERSION

VARIABLE = "LABKIT_RESULTS"


def results_folder() -> Path:
    """Return the folder of the records: LABKIT_RESULTS, else results/ in the checkout, else results/ here."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    here = Path.cwd()
    checkout = next((folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()), here)
    return checkout / "results"


@dataclass
class LessonRecord:
    """What one lesson found on one machine. Every change is written at once, so that nothing recorded is lost."""

    path: Path
    lesson: str
    machine: Machine
    profile: str
    started: str
    predictions: dict[str, Any] = field(default_factory=dict)
    verdicts: dict[str, Any] = field(default_factory=dict)
    measurements: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, str] = field(default_factory=dict)

    @classmethod
    def open(cls, lesson: str, machine: Machine, profile: str, folder: Path | None = None) -> LessonRecord:
        """Return the record of this lesson on this machine: the one on file, or a new one.

        What cannot be read is renamed, never overwritten. Measurements of another profile are kept apart in a file
        of their own.
        """
        path = (folder or results_folder()) / f"lesson-{lesson}-{machine.id}-{profile}.json"
        if path.exists():
            try:
                return cls._read(path, machine)
            except RecordError as problem:
                aside = path.with_suffix(f".damaged-{datetime.datetime.now():%Y%m%d-%H%M%S}")
                path.replace(aside)
                print(f"The earlier record could not be read and is kept as {aside.name}. {problem}")
        return cls(path, lesson, machine, profile, now())

    @classmethod
    def _read(cls, path: Path, machine: Machine) -> LessonRecord:
        data = read_json(path)
        if not isinstance(data, dict) or data.get("format_version") != FORMAT_VERSION:
            raise RecordError(path.name, f"this is not a record of format {FORMAT_VERSION}")
        fields = {name: data.get(name) for name in cls.__dataclass_fields__ if name not in ("path", "machine")}
        kinds = {name: (str if name in ("lesson", "profile", "started") else dict) for name in fields}
        wrong = [name for name, value in fields.items() if not isinstance(value, kinds[name])]
        if wrong or Machine.from_dict(data.get("machine")).id != machine.id:
            raise RecordError(path.name, f"the record is damaged at {', '.join(wrong) or 'machine'}")
        return cls(path=path, machine=machine, **fields)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types."""
        kept = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("path", "machine")}
        return {"format_version": FORMAT_VERSION, "machine": self.machine.to_dict(), **kept}

    def save(self) -> Path:
        """Write the record, through a temporary file and a rename."""
        return write_json(self.path, self.to_dict())


def now() -> str:
    """Return the present moment as text, to the second, with its time zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
