"""A small net, and files as other programs write them: by torch itself, never by labkit's own saver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_nets import Net, trained


@pytest.fixture
def net() -> Net:
    return trained()


@pytest.fixture
def fresh() -> Net:
    """A net of the same shape with other weights, in training mode."""
    return trained(seed=2)


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes an object by torch.save."""
    numbers = itertools.count()

    def write(content: Any, **options: Any) -> Path:
        path = tmp_path / f"file_{next(numbers)}.pt"
        torch.save(content, path, **options)
        return path

    return write


@pytest.fixture
def tagged(monkeypatch: pytest.MonkeyPatch, written: Callable[..., Path]) -> Callable[..., Path]:
    """A function that writes an object as if its tensors lay on these devices, taking turns."""

    def write(content: Any, *tags: str) -> Path:
        turns = itertools.cycle(tags)
        with monkeypatch.context() as patched:
            patched.setattr(torch.serialization, "location_tag", lambda storage: next(turns))
            return written(content)

    return write
