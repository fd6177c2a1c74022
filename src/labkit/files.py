"""Reading JSON files, and writing them and others so that an interrupt never loses what was there."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from labkit.errors import InputError, RecordError, check_text

DAMAGED = "The file is damaged or is no record; delete it, or run the lesson again to write a new one."


def write_json(path: str | os.PathLike[str], data: Any) -> Path:
    """Write data as JSON to a temporary file beside path, then rename it into place.

    Raises RecordError if the folder cannot be written to or data has no exact JSON form (NaN, infinity).
    """
    path = checked_path(path)
    try:
        content = f"{json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise RecordError(str(path), f"this cannot be written as JSON ({problem})") from problem
    return _replace(path, content)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write text as UTF-8 to a temporary file beside path, then rename it into place.

    Raises RecordError if the folder cannot be written to or text holds what UTF-8 cannot.
    """
    path = checked_path(path)
    check_text("text", text, empty_ok=True)
    try:
        content = text.encode()
    except UnicodeEncodeError as problem:
        raise RecordError(str(path), f"this cannot be written as UTF-8 ({problem})") from problem
    return _replace(path, content)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside path to write to, and rename it into place; on any error path stays as it was.

    The folder is made if need be; a link stays one, and what it leads to is replaced. An OSError of writing or renaming
    is the caller's to explain.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{uuid.uuid4().hex}.part")  # short: path's own name may be as long as a name can be
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _replace(path: Path, content: bytes) -> Path:
    try:
        with replaced(path) as temporary:
            temporary.write_bytes(content)
    except OSError as problem:
        advice = "Make room, or choose another folder: os.environ['LABKIT_RESULTS'] = …, then start the lesson again."
        raise RecordError(str(path), f"the file could not be written ({problem.strerror})", advice) from problem
    return path


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return what the JSON file at path holds. Raises RecordError if it is missing, damaged or not text."""
    path = checked_path(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"), parse_constant=partial(_refuse_constant, path))
        json.dumps(data, ensure_ascii=False).encode()  # half a character, as "\\ud800", could not be written again
        return data
    except FileNotFoundError as problem:
        raise RecordError(str(path), "there is no such file", f"Look into {path.parent}.") from problem
    except OSError as problem:
        raise RecordError(str(path), f"the file could not be read ({problem.strerror})") from problem
    except UnicodeEncodeError as problem:
        raise RecordError(str(path), "it holds characters that do not exist", DAMAGED) from problem
    except (ValueError, RecursionError) as problem:
        raise RecordError(str(path), f"this is not readable as JSON ({problem})", DAMAGED) from problem


def checked_path(path: Any, *, name: str = "path", example: str = "results/my.json") -> Path:
    """Return path if it can be that of a file, with ~ as the home folder; else raise InputError with an example.

    >>> checked_path("net.pt").name
    'net.pt'
    """
    if not isinstance(path, (str, os.PathLike)) or not Path(path).name or "\0" in str(path):
        raise InputError(f"{name}={path!r}", "this is not the path of a file", f'Try {name}="{example}".')
    return Path(os.path.expanduser(path))


def _refuse_constant(path: Path, name: str) -> NoReturn:
    """Python's reader takes NaN and Infinity, which are no JSON and no times."""
    raise RecordError(str(path), f"this is not readable as JSON ({name} is no number)", DAMAGED)
