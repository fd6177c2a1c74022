"""load(): a checkpoint from anywhere, safely, on the device that is here, with a note of each change."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from labkit import devices
from labkit.checkpoints.contents import Contents, State, bytes_of, contents_of
from labkit.checkpoints.digests import check_digest
from labkit.checkpoints.fitting import check_fit, fit, pour
from labkit.checkpoints.formats import checked_file
from labkit.checkpoints.names import bare_names, notes_on
from labkit.checkpoints.reading import read
from labkit.devices.dtypes import dtype_name
from labkit.errors import CheckpointError, check_kind
from labkit.html import escape
from labkit.nets import check_ready
from labkit.units import count_of, format_bytes, format_count

# What a CPU computes slowly or not at all; NumPy does not even know bfloat16.
NARROW = {torch.float16, torch.bfloat16, *(dtype for name, dtype in vars(torch).items() if name.startswith("float8_"))}


@dataclass(frozen=True, repr=False)
class Loaded:
    """What a checkpoint held: the weights by name, the model that has them now (if one was given), and the rest.

    notes says what was changed on the way. optimiser is what optimizer.load_state_dict takes, or None.
    """

    state: State
    model: nn.Module | None = None
    notes: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    optimiser: dict[str, Any] | None = None

    def __repr__(self) -> str:
        tensors = [value for value in self.state.values() if isinstance(value, torch.Tensor)]
        count = sum(value.numel() for value in tensors)
        size = format_bytes(sum(map(bytes_of, tensors)))
        into = f", in the model {type(self.model).__name__}" if self.model is not None else ""
        lines = [f"{len(tensors)} tensors with {format_count(count)} numbers, {size}{into}."]
        if self.metadata:
            lines.append(f"Metadata: {', '.join(map(str, self.metadata))}.")
        return "\n".join([*lines, *(f"- {note}" for note in self.notes or ("Nothing had to be changed.",))])

    def _repr_html_(self) -> str:
        first, *others = (escape(line) for line in repr(self).splitlines())
        items = "".join(f"<li>{line.removeprefix('- ')}</li>" for line in others)
        return f"<p>{first}</p><ul>{items}</ul>"


def load(
    path: str | os.PathLike[str],
    into: nn.Module | None = None,
    *,
    device: Any = "auto",
    sha256: str | None = None,
    size_bytes: int | None = None,
    strict: bool = True,
) -> Loaded:
    """Load a checkpoint on this machine, wherever it was trained: its weights, and the model that they are put into.

    The file may come from any GPU, from a wrapped model, in half precision, with an optimiser, as .pt or .safetensors;
    its format is told from its bytes. Weights become float32 on a CPU and into is set to eval mode. Nothing in the file
    is executed: what is not plain data is refused by name. With into, Loaded.state is the model's own.

    strict=False takes what fits by name and shape, and notes the rest. sha256 (64 hexadecimal digits) and size_bytes
    are those that the author published. Raises CheckpointError for a file that is missing, damaged, unsafe, not the
    expected one or made for another model (the model is then as before), DeviceError for a GPU that is not there.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from labkit.checkpoints import save
    >>> net = nn.Linear(2, 3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save(Path(folder, "net.pt"), net, metadata={"epoch": 7})
    ...     load(path, into=nn.Linear(2, 3), device="cpu").metadata
    {'epoch': 7}
    """
    if into is not None:
        check_ready(check_kind("into", into, nn.Module, "Give a model, not its class: into=Net()."))
    check_kind("strict", strict, bool)
    target = devices.pick(device)
    path = checked_file(path)
    check_digest(path, sha256, size_bytes)
    found = read(path)
    contents = contents_of(found, path.name)
    notes = [*_notes_on_tags(found.tags, target), *_notes_on_plain(found.seen)]
    if into is None:
        place = next(iter(contents.states))
        state, more = _bare(contents, place, target)
    else:
        place, state, more = _into(into, contents, target, path.name, strict)
    notes += [*_notes_on_place(contents, place), *more]
    return Loaded(state, into, tuple(notes), contents.metadata(place), contents.optimiser)


def _bare(contents: Contents, place: str, target: devices.Device) -> tuple[State, list[str]]:
    """Return the weights by their own names, in dtypes that the device computes with."""
    state = contents.states[place]
    _check_values(state)
    renamed = {} if contents.is_ours else bare_names(state)
    notes = notes_on(renamed)
    counts: Counter[str] = Counter()
    found = {}
    for name, value in state.items():
        dtype = _dtype_on(value, target)
        if dtype is not None:
            counts[dtype_name(value)] += 1
        moved = value.to(target.torch_name, dtype) if isinstance(value, torch.Tensor) else value
        found[renamed.get(name, name)] = moved
    notes += [f"{count_of(count, 'tensor')} turned from {old} into float32." for old, count in counts.items()]
    return found, notes


def _into(
    model: nn.Module, contents: Contents, target: devices.Device, given: str, strict: bool
) -> tuple[str, State, list[str]]:
    """Put the set of weights that fits best into the model, on the device and in eval mode."""
    fits = {place: fit(state, model) for place, state in contents.states.items()}
    place = max(fits, key=lambda place: (fits[place].is_complete, len(fits[place].state)))
    best = fits[place]
    unfit = check_fit(best, model, given, strict=strict)
    _check_values(best.state)
    notes = [*notes_on(best.renamed), *unfit, *_notes_on_model(model, target)]
    _settle(model, target)
    notes += pour(best, model, contents.raw)
    if any(part.training for part in model.modules()):
        notes.append("The model was set to eval mode: dropout and batch norm act as in use, not as in training.")
        model.eval()
    return place, model.state_dict(), notes


def _settle(model: nn.Module, target: devices.Device) -> None:
    """Move the model to the device, where a CPU holds no half precision. Parameters stay the objects that they are."""
    model.to(target.torch_name)
    for tensor in (*model.parameters(), *model.buffers()):
        dtype = _dtype_on(tensor, target)
        if dtype is not None:
            tensor.data = tensor.data.to(dtype)


def _dtype_on(value: Any, target: devices.Device) -> torch.dtype | None:
    """Return float32 for a tensor that the device should not or cannot hold in its own dtype, else None."""
    if not isinstance(value, torch.Tensor):
        return None
    needs = (target.kind == "cpu" and value.dtype in NARROW) or (target.kind == "mps" and value.dtype == torch.float64)
    return torch.float32 if needs else None


def _check_values(state: Mapping[str, Any]) -> None:
    empty = [name for name, value in state.items() if isinstance(value, torch.Tensor) and value.is_meta]
    if empty:
        problem = "these tensors have a shape and no values (they lay on torch's meta device when they were saved)"
        raise CheckpointError(", ".join(empty[:3]), problem, "Ask the author for a file with the values.")


def _notes_on_tags(tags: Mapping[str, int], target: devices.Device) -> list[str]:
    moved = {tag: count for tag, count in tags.items() if tag not in ("cpu", target.torch_name)}
    return [
        f"{count_of(count, 'tensor')} saved on {tag}, now on {target.torch_name}."
        for tag, count in sorted(moved.items())
    ]


def _notes_on_plain(seen: Mapping[str, int]) -> list[str]:
    return [f"In the metadata: {what} ({count}×)." for what, count in seen.items()]


def _notes_on_place(contents: Contents, place: str) -> list[str]:
    others = [repr(other) for other in contents.states if other != place]
    if others:
        listed = ", ".join(others)
        return [f"Weights taken from {place!r}; the file also holds {listed}. With into=model the best fit is taken."]
    return [f"Weights taken from {place!r}."] if place and not contents.is_ours else []


def _notes_on_model(model: nn.Module, target: devices.Device) -> list[str]:
    narrow = Counter(dtype_name(tensor) for tensor in model.parameters() if _dtype_on(tensor, target) is not None)
    return [
        f"{count_of(count, 'parameter')} of the model turned from {old} into float32." for old, count in narrow.items()
    ]
