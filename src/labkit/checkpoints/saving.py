"""save(): weights in a file that any machine can load, written whole or not at all."""

from __future__ import annotations

import argparse
import datetime
import os
import types
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch
from torch import nn

from labkit.checkpoints.contents import is_optimiser, is_state
from labkit.checkpoints.marks import MARK, mark
from labkit.checkpoints.names import WRAPPERS, bare_names
from labkit.errors import CheckpointError, InputError, check_kind
from labkit.files import checked_path, replaced

PLAIN = (bool, int, float, complex, str, bytes, bytearray, type(None), torch.dtype, torch.device, torch.Size)
DEEPEST = 100  # levels of metadata: Python and the pickle in the file allow a few hundred


def save(
    path: str | os.PathLike[str],
    model_or_state: nn.Module | Mapping[str, Any],
    *,
    optimiser: torch.optim.Optimizer | Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Write weights, an optimiser's state and metadata to path, and return the path. labkit.load reads them anywhere.

    The file is written beside path and renamed into place: an interrupt leaves what was there. Tensors are written as
    CPU tensors in their dtype, under names without wrappers' prefixes. Metadata is numbers, texts, tensors, and lists
    and dictionaries of those; NumPy's numbers become Python's, its arrays tensors, paths and dates texts.

    A path that ends with .safetensors gives that format, in which no code can hide: tied tensors are written twice,
    metadata is texts and whatever JSON can hold, and there is no room for an optimiser.

    Raises InputError for what is no model, no weights or no plain metadata, CheckpointError if path cannot be written.
    """
    path = checked_path(path, example="weights.pt")
    state = own_tensors(state_of(model_or_state))
    metadata = {} if metadata is None else check_kind("metadata", metadata, Mapping, 'Try metadata={"epoch": 3}.')
    plain = _plain(metadata, "metadata")
    if path.suffix.lower() == ".safetensors":
        if optimiser is not None:
            advice = "Save with the suffix .pt, or the weights alone."
            raise InputError("optimiser=…", "a safetensors file holds tensors and texts only", advice)
        return write(path, lambda target: _write_safetensors(target, state, plain))
    content = {MARK: 1, "model": state, "metadata": plain}
    if optimiser is not None:
        held = optimiser.state_dict() if hasattr(optimiser, "state_dict") else optimiser
        content["optimiser"] = _plain(_checked_optimiser(held), "optimiser")
    return write(path, lambda target: torch.save(content, target))


def state_of(model_or_state: Any) -> dict[str, Any]:
    """Return the weights of a model or of a dictionary by their bare names. Raises InputError if it is neither.

    A model's own parts may have any name, even a wrapper's: its wrappers are known by their class. In a dictionary they
    are known by name alone.
    """
    if isinstance(model_or_state, nn.Module):
        return _state_of_model(model_or_state)
    if not is_state(model_or_state):
        advice = "Give a model, or model.state_dict()."
        raise InputError(f"a {type(model_or_state).__name__}", "this is no model and no dictionary of tensors", advice)
    names = bare_names(model_or_state)
    return {names[name]: value for name, value in model_or_state.items()}


def _state_of_model(model: nn.Module) -> dict[str, Any]:
    fronts = [f"{place}." if place else "" for place, part in model.named_modules() if _is_wrapper(part)]
    found = {}
    for name, value in model.state_dict().items():
        for front in sorted(fronts, key=len, reverse=True):  # the inner wrappers first: their place does not change
            if name.startswith(front):
                segment, _, rest = name[len(front) :].partition(".")
                name = front + rest if segment in WRAPPERS else name
        found[name] = value
    return found


def _is_wrapper(part: nn.Module) -> bool:
    return type(part).__module__.startswith(("torch.nn.parallel", "torch._dynamo", "torch.distributed"))


def own_tensors(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return CPU tensors that own no more memory than they show; those that were one tensor stay one."""
    made: dict[tuple[Any, ...], torch.Tensor] = {}
    empty = [name for name, value in state.items() if isinstance(value, torch.Tensor) and value.is_meta]
    if empty:
        problem = "these tensors have a shape and no values: they lie on torch's meta device"
        raise InputError(", ".join(empty[:3]), problem, "Build the model on a CPU or GPU, and train or load it.")
    return {name: _own(value, made) if isinstance(value, torch.Tensor) else value for name, value in state.items()}


def _own(tensor: torch.Tensor, made: dict[tuple[Any, ...], torch.Tensor]) -> torch.Tensor:
    if tensor.layout != torch.strided or tensor.is_nested:  # it has no one memory of its own
        return tensor.detach().to("cpu")
    key = (tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())
    if key not in made or tensor.numel() == 0:
        found = tensor.detach().to("cpu")
        wasteful = found.untyped_storage().nbytes() > found.nbytes
        made[key] = found.clone() if wasteful else found
    return made[key]


def _plain(value: Any, place: str, depth: int = DEEPEST) -> Any:
    """Return value as what torch's safe reader takes. Raises InputError that names the place of what it does not."""
    if isinstance(value, torch.Tensor):
        return value.detach().to("cpu")
    if isinstance(value, np.generic) and isinstance(value.item(), PLAIN):
        return value.item()
    if type(value) in PLAIN:
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return torch.from_numpy(np.array(value, order="C", dtype=value.dtype.newbyteorder("=")))
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, (datetime.date, datetime.time)):  # a datetime is a date, too
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if not depth:
        raise InputError(f"{place[:40]}…", f"it is more than {DEEPEST} levels deep", "Does a part of it hold itself?")
    if isinstance(value, (argparse.Namespace, types.SimpleNamespace)):
        value = vars(value)
    if isinstance(value, Mapping):
        return {
            _plain(key, f"a key of {place}", depth - 1): _plain(item, f"{place}[{key!r}]", depth - 1)
            for key, item in value.items()
        }
    if type(value) in (list, tuple, set):
        return type(value)(_plain(item, f"{place}[{index}]", depth - 1) for index, item in enumerate(value))
    advice = "Write it as numbers, texts, tensors, or lists and dictionaries of those."
    raise InputError(place, f"a {type(value).__name__} is no plain value, and would be code in the file", advice)


def _checked_optimiser(held: Any) -> Any:
    if not is_optimiser(held):
        advice = "Give an optimiser, or optimiser.state_dict()."
        raise InputError(f"optimiser={type(held).__name__}", "this is no optimiser and no state of one", advice)
    return held


def _write_safetensors(target: Path, state: Mapping[str, torch.Tensor], metadata: Mapping[str, Any]) -> None:
    from safetensors.torch import save_file

    others = [name for name, value in state.items() if not _fits_safetensors(name, value)]
    if others:
        problem = "a safetensors file holds plain dense tensors and texts only"
        raise InputError(", ".join(others), problem, "Save with the suffix .pt.")
    # It refuses tensors that share memory, and any layout but the plain one.
    save_file(
        {name: value.clone(memory_format=torch.contiguous_format) for name, value in state.items()},
        target,
        mark(metadata),
    )


def _fits_safetensors(name: str, value: Any) -> bool:
    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested
    return dense and not value.is_quantized and name != "__metadata__"  # the format's own name for its texts


def write(path: Path, write_to: Callable[[Path], None]) -> Path:
    """Call write_to with a temporary path and rename that into place. Raises CheckpointError if that fails."""
    try:
        with replaced(path) as temporary:
            write_to(temporary)
    except (OSError, RuntimeError) as problem:  # torch's writer reports a full disk as a RuntimeError
        reason = getattr(problem, "strerror", None) or str(problem).splitlines()[0]
        advice = "Make room, or choose another folder. What was there before is still there."
        raise CheckpointError(str(path), f"the file could not be written ({reason})", advice) from problem
    return path
