"""The format of records: its version, and the checks that every reader of one makes first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from labkit.errors import InputError, RecordError

FORMAT_VERSION = 1


def listed(name: str, values: Any) -> Iterable[Any]:
    """Return values if they can be listed, else raise InputError: a lone number is a common slip."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InputError(f"{name}={values!r}", f"{name} must be a list or tuple", f"Try {name}=[{values!r}].")
    return values


def checked_record(data: Any, kind: str, *, needs: set[str], cls: type) -> dict[str, Any]:
    """Return data if it has the fields of cls in this format version, else raise RecordError."""
    if not isinstance(data, dict) or not needs <= data.keys():
        raise RecordError(f"a record with {_shape(data)}", f"this is not a {kind}")
    if data["format_version"] != FORMAT_VERSION:
        raise unknown_format(data["format_version"])
    unknown = data.keys() - {f.name for f in dataclasses.fields(cls)}
    if unknown:
        raise RecordError(
            f"a {kind} with {', '.join(sorted(unknown))}", "this version of labkit does not know these fields"
        )
    return data


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
