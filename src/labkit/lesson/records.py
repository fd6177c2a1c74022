"""The record of one lesson on one machine: predictions, verdicts, measurements and checks, in one file."""

from __future__ import annotations

import datetime
import os
import threading
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.claims import Verdict
from labkit.devices import Machine
from labkit.errors import InputError, RecordError, check_number, check_text
from labkit.files import read_json, write_json
from labkit.measurement import FORMAT_VERSION, Measurement, Sweep
from labkit.recordings import load_entry

VARIABLE = "LABKIT_RESULTS"
PARTS = ("predictions", "verdicts", "measurements", "checks")


def results_folder() -> Path:
    """Return the folder of the records: LABKIT_RESULTS, else results/ in the checkout, else results/ here."""
    if os.environ.get(VARIABLE):
        return Path(os.path.expanduser(os.environ[VARIABLE]))
    here = Path.cwd()
    checkout = next((folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()), here)
    return checkout / "results"


@dataclass
class LessonRecord:
    """What one lesson found on one machine. Every change is written at once, so that nothing recorded is lost.

    Where writing fails, a lesson goes on without: the reason is printed once, and each later change tries again.
    Another kernel may run the same lesson: what it has written meanwhile is taken over first.
    """

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
        self._unwritten: dict[str, dict[str, Any]] = {part: {} for part in PARTS}
        self._seen: tuple[int, ...] | None = None  # the file as it was when last read or written
        self._said = ""

    @classmethod
    def open(cls, lesson: str, machine: Machine, profile: str, folder: Path | None = None) -> LessonRecord:
        """Return the record of this lesson on this machine: the one on file, or a new one.

        What cannot be read is renamed, never overwritten. Measurements of another profile are kept apart in a file
        of their own.
        """
        path = (folder or results_folder()) / f"lesson-{lesson}-{machine.id}-{profile}.json"
        record = cls(path, lesson, machine, profile, now())
        record._take_over()
        return record

    @classmethod
    def load(cls, path: Path) -> LessonRecord:
        """Return the record in a file, of whichever machine. Raises RecordError if any part of it is damaged."""
        data = read_json(path)
        if not isinstance(data, dict) or data.get("format_version") != FORMAT_VERSION:
            raise RecordError(path.name, f"this is not a record of format {FORMAT_VERSION}")
        fields = {name: data.get(name) for name in cls.__dataclass_fields__ if name not in ("path", "machine")}
        kinds = {name: (str if name in ("lesson", "profile", "started") else dict) for name in fields}
        wrong = [name for name, value in fields.items() if not isinstance(value, kinds[name])]
        wrong += [] if wrong or all(map(_is_answered, fields["predictions"].values())) else ["predictions"]
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
            self._unwritten[part].update(entries)
            self._write()

    def save(self) -> Path | None:
        """Write the record, through a temporary file and a rename; return its path, or None if that failed."""
        with self._lock:
            return self._write()

    def _write(self) -> Path | None:
        try:
            self._take_over()
            for part, entries in self._unwritten.items():
                getattr(self, part).update(entries)
            path = write_json(self.path, self.to_dict())
        except RecordError as problem:
            if str(problem) != self._said:
                print(f"Nothing can be recorded, all else goes on. {problem}")
            self._said = str(problem)
            return None
        self._unwritten = {part: {} for part in PARTS}
        self._seen = _state_of(path)
        return path

    def _take_over(self) -> None:
        """Add what the file holds, unless it is known; rename a file that is no record of this lesson."""
        state = _state_of(self.path)
        if state in (None, self._seen):
            return
        try:
            other = self.load(self.path)
            if (other.lesson, other.machine.id, other.profile) != (self.lesson, self.machine.id, self.profile):
                raise RecordError(self.path.name, "it belongs to another lesson, machine or profile")
        except RecordError as problem:
            print(f"The earlier record could not be read and is kept as {_set_aside(self.path).name}. {problem}")
            return
        self._seen, self.started = state, other.started
        for part in PARTS:
            getattr(self, part).update(getattr(other, part))


def _state_of(path: Path) -> tuple[int, ...] | None:
    """Return what changes with every new content of a file, or None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _set_aside(path: Path) -> Path:
    """Rename a file that is no record, and return its new path. Raises RecordError if that cannot be done."""
    aside = path.with_suffix(f".damaged-{datetime.datetime.now():%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}")
    try:
        return path.replace(aside)
    except OSError as problem:
        advice = f"Delete it, or name another folder in {VARIABLE}."
        raise RecordError(str(path), f"it is damaged and cannot be renamed ({problem.strerror})", advice) from problem


def _is_answered(prediction: Any) -> bool:
    """Say whether a prediction holds what was answered, that as text, and when."""
    try:
        check_text("text", prediction["text"], empty_ok=True)
        datetime.datetime.fromisoformat(prediction["at"])
        return isinstance(prediction["value"], str) or check_number("value", prediction["value"]) is not None
    except (TypeError, KeyError, ValueError, InputError):
        return False


def now() -> str:
    """Return the present moment as text, to the second, with its time zone."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
