"""The record of one lesson on one machine: predictions, verdicts, measurements and checks, in one file."""

from __future__ import annotations

import dataclasses
import datetime
import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.claims import Verdict
from labkit.devices import Machine
from labkit.errors import InputError, RecordError
from labkit.files import read_json, write_json
from labkit.measurement import FORMAT_VERSION, Measurement, Sweep
from labkit.recordings import load_entry

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

    def __post_init__(self) -> None:
        # A prediction is committed on the thread of the controls, while a cell may be recording on the main one.
        self._lock = threading.Lock()

    @classmethod
    def open(cls, lesson: str, machine: Machine, profile: str, folder: Path | None = None) -> LessonRecord:
        """Return the record of this lesson on this machine: the one on file, or a new one.

        What cannot be read is renamed, never overwritten. Measurements of another profile are kept apart in a file
        of their own.
        """
        path = (folder or results_folder()) / f"lesson-{lesson}-{machine.id}-{profile}.json"
        if path.exists():
            try:
                record = cls.load(path)
                if (record.lesson, record.machine.id, record.profile) == (lesson, machine.id, profile):
                    return dataclasses.replace(record, machine=machine)  # its memory may have changed since
                raise RecordError(path.name, "it belongs to another lesson, machine or profile")
            except RecordError as problem:
                aside = path.with_suffix(f".damaged-{datetime.datetime.now():%Y%m%d-%H%M%S}")
                path.replace(aside)
                print(f"The earlier record could not be read and is kept as {aside.name}. {problem}")
        return cls(path, lesson, machine, profile, now())

    @classmethod
    def load(cls, path: Path) -> LessonRecord:
        """Return the record in a file, of whichever machine. Raises RecordError if any part of it is damaged."""
        data = read_json(path)
        if not isinstance(data, dict) or data.get("format_version") != FORMAT_VERSION:
            raise RecordError(path.name, f"this is not a record of format {FORMAT_VERSION}")
        fields = {name: data.get(name) for name in cls.__dataclass_fields__ if name not in ("path", "machine")}
        kinds = {name: (str if name in ("lesson", "profile", "started") else dict) for name in fields}
        wrong = [name for name, value in fields.items() if not isinstance(value, kinds[name])]
        wrong += [] if wrong or _all_answered(fields["predictions"]) else ["predictions"]
        if wrong:
            raise RecordError(path.name, f"the record is damaged at {', '.join(wrong)}")
        record = cls(path=path, machine=Machine.from_dict(data.get("machine")), **fields)
        record.found()
        record.decided()
        return record

    def found(self) -> tuple[Sweep | Measurement, ...]:
        """Return the sweeps and measurements. Raises RecordError for one that is damaged."""
        return tuple(load_entry(entry) for entry in self.measurements.values())

    def decided(self) -> dict[str, Verdict]:
        """Return the verdicts by the id of their claim. Raises RecordError for one that is damaged."""
        verdicts = {}
        for claim_id, entry in self.verdicts.items():
            try:
                verdicts[claim_id] = Verdict(**{name: entry[name] for name in Verdict.__dataclass_fields__})
            except (TypeError, KeyError, InputError) as problem:
                raise RecordError(self.path.name, f"the record is damaged at the verdict on {claim_id}") from problem
        return verdicts

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types."""
        kept = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in ("path", "machine")}
        return {"format_version": FORMAT_VERSION, "machine": self.machine.to_dict(), **kept}

    def keep(self, part: str, entries: dict[str, Any]) -> None:
        """Put entries into one part of the record ("predictions", "measurements", …) and write it."""
        with self._lock:
            getattr(self, part).update(entries)
            self._write()

    def save(self) -> Path:
        """Write the record, through a temporary file and a rename, and return its path."""
        with self._lock:
            return self._write()

    def _write(self) -> Path:
        return write_json(self.path, self.to_dict())


def _all_answered(predictions: dict[str, Any]) -> bool:
    """Say whether each prediction holds what was answered, and that as text."""
    entries = predictions.values()
    kinds = {"value": (str, int, float), "text": str}
    return all(
        isinstance(it, dict) and all(isinstance(it.get(name), kind) for name, kind in kinds.items()) for it in entries
    )


def now() -> str:
    """Return the present moment as text, to the second, with its time zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
