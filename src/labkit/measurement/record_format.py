"""The format of records: its version, and the checks that every reader of one makes first."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

from labkit.errors import InputError, RecordError

FORMAT_VERSION = 1

T = TypeVar("T")


def checked_record(data: Any, kind: str, *, needs: set[str], cls: type) -> dict[str, Any]:
    """Return data if it has the fields of cls, in this format version if it needs one, else raise RecordError."""
    if not isinstance(data, dict) or not needs <= data.keys():
        raise RecordError(f"a record with {_shape(data)}", f"this is not a {kind}")
    if "format_version" in needs and data["format_version"] != FORMAT_VERSION:
        raise unknown_format(data["format_version"])
    unknown = data.keys() - {f.name for f in dataclasses.fields(cls)}
    if unknown:
        raise RecordError(
            f"a {kind} with {', '.join(sorted(map(repr, unknown)))}",
            "this version of labkit does not know these fields",
        )
    return data


def read_as(cls: type[T], fields: dict[str, Any], given: str) -> T:
    """Return cls(**fields), or raise RecordError where the constructor refuses what the record holds."""
    try:
        return cls(**fields)
    except (TypeError, InputError) as problem:
        raise RecordError(given, f"it is damaged ({problem})") from problem


def unknown_format(version: Any) -> RecordError:
    """Return the error for a record of another format version."""
    advice = "Update labkit, or run the lesson again to write a new record."
    return RecordError(f"format_version={version!r}", f"this labkit reads format {FORMAT_VERSION}", advice)


def _shape(data: Any) -> str:
    return (
        f"the keys {', '.join(map(str, sorted(data, key=str)))}"
        if isinstance(data, dict)
        else f"a {type(data).__name__}"
    )
