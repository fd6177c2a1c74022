"""Putting weights into a model: which names and shapes fit, and what does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from labkit.checkpoints.contents import State, bytes_of, storage_of
from labkit.checkpoints.names import matched
from labkit.devices.dtypes import dtype_name
from labkit.errors import CheckpointError
from labkit.units import count_of
from labkit.workload import tensors_in

MOST_SHOWN = 6
LARGE_BYTES = 2**20
COUNTER = "num_batches_tracked"  # of a batch norm: files from before PyTorch 0.4.1 have none, and no result needs it


@dataclass(frozen=True)
class Fit:
    """How a file's weights and a model's meet: the weights by the model's names, and what is left on either side.

    uncounted is how many counters of batches are infinite in the file."""

    state: State
    renamed: dict[str, str]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    misshapen: dict[str, tuple[str, str]]
    uncounted: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every name is on both sides, in the same shape."""
        return not (self.missing or self.unexpected or self.misshapen)


def fit(state: Mapping[str, torch.Tensor], model: nn.Module) -> Fit:
    """Match weights with a model by name and shape; nothing is changed."""
    wanted = model.state_dict()
    renamed = matched(state, wanted)
    by_name = {renamed[name]: value for name, value in state.items()}
    # In half precision a counter above 65,504 is infinite: no number is better than a wrong one.
    uncounted = [name for name, value in by_name.items() if name.endswith(COUNTER) and _is_infinite(value)]
    for name in uncounted:
        del by_name[name]
    _fill_in(by_name, wanted)
    misshapen = {name: found for name, value in by_name.items() if (found := _clash(value, wanted.get(name)))}
    missing = tuple(name for name in wanted if name not in by_name and not name.endswith(COUNTER))
    unexpected = tuple(name for name in by_name if name not in wanted)
    fitting = {name: value for name, value in by_name.items() if name in wanted and name not in misshapen}
    return Fit(fitting, renamed, missing, unexpected, misshapen, len(uncounted))


def check_fit(found: Fit, model: nn.Module, given: str, *, strict: bool) -> list[str]:
    """Return notes on what does not fit. Raises CheckpointError for that if strict, or if no name fits at all."""
    kind = type(model).__name__
    if not found.state:
        sides = f"the file has {_some(found.renamed)}; the model has {_some(model.state_dict())}"
        shapes = f"; {_clashes(found)}" if found.misshapen else ""
        advice = "The file belongs to another model: build that one."
        raise CheckpointError(given, f"nothing in it fits the model {kind}: {sides}{shapes}", advice)
    parts = []
    if found.missing:
        parts.append(f"missing in the file: {_some(found.missing)}")
    if found.unexpected:
        parts.append(f"unknown to the model: {_some(found.unexpected)}")
    if found.misshapen:
        parts.append(f"of another shape: {_clashes(found)}")
    if parts and strict:
        advice = "Build the model as it was trained (layers, width, classes), or take what fits with strict=False."
        raise CheckpointError(given, f"its weights do not fit the model {kind}; {'; '.join(parts)}", advice)
    notes = [f"Not loaded, as strict=False allows; {part}." for part in parts]
    if found.uncounted:
        notes.append(
            f"{count_of(found.uncounted, 'counter')} of batches left out: infinite in the file, unused in use."
        )
    return notes


def pour(found: Fit, model: nn.Module, raw: Any) -> list[str]:
    """Put the weights that fit into the model, in the model's dtypes. Return a note on each change of dtype.

    raw is all that the file holds: what else in it shares memory with a weight must not change when the model learns.
    """
    wanted = model.state_dict()
    pairs = [(value, wanted[name]) for name, value in found.state.items() if _is_tensor(value)]
    dense = {name: _in_layout_of(wanted[name], value) for name, value in found.state.items()}
    changes = Counter((dtype_name(theirs), dtype_name(ours)) for theirs, ours in pairs if theirs.dtype != ours.dtype)
    handed = hand_over(dense, model, Counter(map(storage_of, tensors_in(raw))))
    model.load_state_dict({name: value for name, value in dense.items() if name not in handed}, strict=False)
    return [f"{count_of(count, 'tensor')} turned from {old} into {new}." for (old, new), count in changes.items()]


def _in_layout_of(ours: object, theirs: object) -> object:
    sparse = _is_tensor(theirs) and _is_tensor(ours) and theirs.layout != torch.strided == ours.layout
    return theirs.to_dense() if sparse else theirs


def hand_over(state: State, model: nn.Module, users: Counter[int], *, from_bytes: int = LARGE_BYTES) -> set[str]:
    """Give large tensors to the model's parameters without a copy, and return their names; all others are left.

    users counts the tensors in the file by the memory that they use. A copy of 100 MB takes as long as reading them. It
    is left out only where nobody can tell the difference: a tensor has its memory for itself on both sides, in one
    layout and dtype, and the module has no way of its own to load.
    """
    handed = set()
    for place, module in model.named_modules():
        if type(module)._load_from_state_dict is not nn.Module._load_from_state_dict or _has_hooks(module):
            continue
        for key, parameter in module._parameters.items():
            name = f"{place}.{key}" if place else key
            value = state.get(name)
            if parameter is None or not _is_tensor(value) or bytes_of(value) < from_bytes:
                continue
            if users[storage_of(value)] > 1:
                continue
            if _looks(value) == _looks(parameter) and _is_alone(value) and _is_alone(parameter):
                parameter.data = value
                handed.add(name)
    return handed


def _has_hooks(module: nn.Module) -> bool:
    return bool(module._load_state_dict_pre_hooks) or isinstance(module, nn.RNNBase)


def _looks(tensor: torch.Tensor) -> tuple[object, ...]:
    strides = tensor.stride() if tensor.layout == torch.strided else ()
    return type(tensor.data), tensor.dtype, tensor.device, tensor.layout, tensor.shape, strides


def _is_alone(tensor: torch.Tensor) -> bool:
    whole = tensor.untyped_storage().nbytes() == tensor.nbytes if tensor.layout == torch.strided else False
    return whole and not tensor.is_shared() and not tensor.is_pinned()


def _fill_in(by_name: State, wanted: Mapping[str, torch.Tensor]) -> None:
    """Add a name that the file leaves out because the model shares its tensor with one that the file has."""
    shared = {_place(wanted[name]): name for name in by_name if name in wanted and _is_tensor(wanted[name])}
    for name, tensor in wanted.items():
        if name not in by_name and _is_tensor(tensor) and tensor.numel() and _place(tensor) in shared:
            by_name[name] = by_name[shared[_place(tensor)]]


def _place(tensor: torch.Tensor) -> tuple[object, ...]:
    if tensor.layout != torch.strided:
        return (id(tensor),)
    return (tensor.device, tensor.data_ptr(), tuple(tensor.shape), tensor.stride())


def _is_infinite(value: object) -> bool:
    return _is_tensor(value) and not value.is_meta and not bool(value.isfinite().all())


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return ", ".join(names[:MOST_SHOWN]) + more


def _clash(theirs: object, ours: object) -> tuple[str, str] | None:
    """Return both shapes if they differ, or both dtypes if their kinds do: whole, real or complex numbers."""
    if not (_is_tensor(theirs) and _is_tensor(ours)):
        return None
    if theirs.shape != ours.shape:
        return str(tuple(theirs.shape)), str(tuple(ours.shape))
    if _kind(theirs) != _kind(ours) and not _counts(theirs, ours):
        return dtype_name(theirs), dtype_name(ours)
    return None


def _counts(theirs: torch.Tensor, ours: torch.Tensor) -> bool:
    """Tell whether numbers stand as real ones for whole ones: who halves all tensors of a file halves counters, too."""
    if _kind(ours) != "whole" or _kind(theirs) != "real" or theirs.is_meta:
        return False
    return bool((theirs == theirs.round()).all())


def _kind(tensor: torch.Tensor) -> str:
    return "complex" if tensor.is_complex() else "real" if tensor.is_floating_point() else "whole"


def _clashes(found: Fit) -> str:
    pairs = found.misshapen.items()
    return _some(f"{name} is {theirs} in the file, {ours} in the model" for name, (theirs, ours) in pairs)
