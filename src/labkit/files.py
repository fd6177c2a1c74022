"""Reading and writing JSON files so that an interrupt never loses what was there."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from labkit.errors import RecordError


def write_json(path: str | os.PathLike[str], data: Any) -> Path:
    """Write data as JSON to a temporary file beside path, then rename it into place.

    Raises RecordError if the folder cannot be written to or data has no exact JSON form (NaN, infinity).
    """
    path = Path(path)
    try:
        text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as problem:
        raise RecordError(str(path), f"this cannot be written as JSON ({problem})") from problem
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(path)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as problem:
        advice = "Choose a folder that you may write to: set LABKIT_RESULTS."
        raise RecordError(str(path), f"the file could not be written ({problem.strerror})", advice) from problem
    return path


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return what the JSON file at path holds. Raises RecordError if it is missing, damaged or not text."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as problem:
        raise RecordError(str(path), "there is no such file", f"Look into {path.parent}.") from problem
    except OSError as problem:
        raise RecordError(str(path), f"the file could not be read ({problem.strerror})") from problem
    except ValueError as problem:
        advice = "The file is damaged or is no record; delete it, or run the lesson again to write a new one."
        raise RecordError(str(path), f"this is not readable as JSON ({problem})", advice) from problem
