"""What was timed, kept apart from how long it took."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from labkit.errors import InputError, check_number, check_positive, check_text
from labkit.measurement.record_format import checked_record, read_as


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one call does: its label, dtype, parameters such as {"n": 512}, FLOP, and bytes moved to and from memory."""

    label: str
    dtype: str | None = None
    parameters: Mapping[str, float | int | str] = field(default_factory=dict, hash=False)
    flop: float | None = None
    bytes_moved: float | None = None

    def __post_init__(self) -> None:
        check_text("label", self.label)
        if self.dtype is not None:
            check_text("dtype", self.dtype)
        for name in ("flop", "bytes_moved"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_positive(name, getattr(self, name), zero_ok=True))
        if not isinstance(self.parameters, Mapping):
            raise InputError(f"parameters={self.parameters!r}", "parameters must be a dictionary", 'Try {"n": 512}.')
        checked = {check_text("a parameter's name", name): _plain(name, it) for name, it in self.parameters.items()}
        object.__setattr__(self, "parameters", MappingProxyType(checked))

    def __str__(self) -> str:
        sizes = "".join(f" {name}={value}" for name, value in self.parameters.items())
        return f"{self.label}{sizes}{f' {self.dtype}' if self.dtype else ''}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Task.from_dict, (self.to_dict(),)  # a mapping proxy has no pickle of its own

    def to_dict(self) -> dict[str, Any]:
        """Return the task as plain JSON types."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return shown | {"parameters": dict(self.parameters)}

    @classmethod
    def from_dict(cls, data: Any) -> Task:
        """Return the task that to_dict wrote. Raises RecordError if data is not one."""
        return read_as(cls, checked_record(data, "task", needs={"label"}, cls=cls), "a task in a record")


def _plain(name: str, value: Any) -> float | int | str:
    return value if isinstance(value, (str, bool)) else check_number(name, value)
