"""What was timed, kept apart from how long it took."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from labkit.errors import InputError, check_positive


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one call does: its label, dtype, parameters such as {"n": 512}, FLOP, and bytes moved to and from memory."""

    label: str
    dtype: str | None = None
    parameters: Mapping[str, float | int | str] = field(default_factory=dict)
    flop: float | None = None
    bytes_moved: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label.strip():
            raise InputError(f"label={self.label!r}", "a task needs a name", 'Try label="matmul".')
        for name in ("flop", "bytes_moved"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), zero_ok=True)
        if not isinstance(self.parameters, Mapping):
            raise InputError(f"parameters={self.parameters!r}", "parameters must be a dictionary", 'Try {"n": 512}.')
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))

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
    def from_dict(cls, data: Mapping[str, Any]) -> Task:
        """Return the task that to_dict wrote."""
        return cls(**data)
