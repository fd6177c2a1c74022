"""make_gpu_tagged(): a file as a GPU's owner would save it, made on a machine that has none."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from labkit.checkpoints.saving import own_tensors, state_of, write
from labkit.errors import InputError, check_number, listed
from labkit.files import checked_path

_ONE_AT_A_TIME = threading.Lock()


def make_gpu_tagged(
    path: str | os.PathLike[str], model_or_state: nn.Module | Mapping[str, Any], *, index: int | Sequence[int] = 0
) -> Path:
    """Write weights as torch.save does for tensors on the GPU cuda:index, and return the path.

    torch.save writes beside each tensor's numbers the device that they lay on, and torch.load puts them back there. So
    torch.load(path) fails with torch's own message on a machine without a GPU, and on one that has no GPU of that
    index. Several indices take turns, as of a model that was spread over GPUs. labkit.load reads the file anywhere.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = make_gpu_tagged(Path(folder, "net.pt"), nn.Linear(2, 3), index=torch.cuda.device_count())
    ...     torch.load(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    RuntimeError: Attempting to deserialize object on ...
    """
    path = checked_path(path, example="weights.pt")
    tags = [f"cuda:{number}" for number in _checked_indices(index)]
    state = own_tensors(state_of(model_or_state))

    def write_tagged(target: Path) -> None:
        with _tagged(tags):
            torch.save(state, target)

    return write(path, write_tagged)


@contextmanager
def _tagged(tags: Sequence[str]) -> Iterator[None]:
    """Let torch.save write these tags, in turn, instead of the device that each tensor lies on."""
    turns = itertools.cycle(tags)
    with _ONE_AT_A_TIME:
        before = torch.serialization.location_tag
        torch.serialization.location_tag = lambda storage: next(turns)
        try:
            yield
        finally:
            torch.serialization.location_tag = before


def _checked_indices(index: Any) -> list[int]:
    numbers = list(listed("index", index)) if isinstance(index, (list, tuple, range)) else [index]
    for number in numbers:
        if not isinstance(check_number("index", number), int) or number < 0:
            raise InputError(f"index={number!r}", "a GPU's index is a whole number from 0 on", "Try index=0.")
    if not numbers:
        raise InputError("index=[]", "at least one GPU's index is needed", "Try index=0.")
    return [int(number) for number in numbers]
