"""What a checkpoint holds: the weights under one of many usual names, the optimiser's state, and the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from labkit.checkpoints.marks import MARK
from labkit.checkpoints.reading import Read
from labkit.errors import CheckpointError

State = dict[str, torch.Tensor]

# Names under which training programs keep the weights, the most usual first. Averaged weights (ema) come last.
USUAL_NAMES = (
    *("model", "state_dict", "model_state_dict", "model_state", "net", "network", "weights", "params", "parameters"),
    *("module", "net_state_dict", "model_weights", "generator", "encoder", "ema", "model_ema", "ema_state_dict"),
)
USUAL_OPTIMISERS = ("optimiser", "optimizer", "optimizer_state_dict", "optimiser_state_dict", "optim", "opt")
DEEPEST = 3  # how far below the top the weights may lie
WHOLE_FILE = ""  # the place of weights that lie at the top of a file


@dataclass(frozen=True)
class Contents:
    """The sets of weights in a file by their place in it ("" is the file itself), and the optimiser's state.

    apart is metadata that stands beside the tensors, as in safetensors. is_ours: labkit wrote it, under bare names.
    """

    raw: Mapping[Any, Any]
    states: dict[str, State]
    optimiser: dict[str, Any] | None = None
    optimiser_place: str | None = None
    apart: Mapping[str, Any] = field(default_factory=dict)
    is_ours: bool = False

    def metadata(self, place: str) -> dict[Any, Any]:
        """Return all that the file holds beside the weights at that place and the optimiser."""
        if self.is_ours and place:
            return dict(self.raw["metadata"])
        return {**_without(self.raw, {place, self.optimiser_place} - {None}), **self.apart}


def contents_of(found: Read, given: str) -> Contents:
    """Sort what was read from a file. Raises CheckpointError if it holds no weights."""
    raw = found.raw
    if not isinstance(raw, Mapping) or not raw:
        what = f"a {type(raw).__name__}" if not isinstance(raw, Mapping) else "an empty dictionary"
        advice = "Weights are a dictionary of tensors by name: torch.save(model.state_dict(), path) writes one."
        raise CheckpointError(given, f"it holds no weights but {what}", advice)
    if is_state(raw):
        return Contents(raw, {WHOLE_FILE: dict(raw)}, apart=found.metadata, is_ours=found.is_ours)
    is_ours = _is_marked(raw)
    states = {"model": dict(raw["model"])} if is_ours else dict(_states(raw))
    optimisers = dict(_optimisers(raw))
    first = min(optimisers, key=lambda place: _rank(place, USUAL_OPTIMISERS), default=None)
    return Contents(raw, states or _loose(raw, given), optimisers.get(first), first, is_ours=is_ours)


def _is_marked(raw: Mapping[Any, Any]) -> bool:
    mark = raw.get(MARK)
    return type(mark) is int and mark == 1 and is_state(raw.get("model")) and isinstance(raw.get("metadata"), dict)


def is_state(value: Any) -> bool:
    """Tell whether value is a set of weights: tensors by name; what nn.Module calls extra state may be anything."""
    if not isinstance(value, Mapping) or not value:
        return False
    tensors = sum(isinstance(item, torch.Tensor) for item in value.values())
    extra = sum(isinstance(key, str) and key.endswith("_extra_state") for key in value)
    return tensors > 0 and tensors + extra >= len(value) and all(isinstance(key, str) for key in value)


def _states(raw: Mapping[Any, Any], place: str = "", depth: int = DEEPEST) -> Iterator[tuple[str, State]]:
    """Yield each set of weights below the top with its place, those with usual names first."""
    found = []
    for key, value in raw.items():
        where = f"{place}.{key}" if place else str(key)
        if is_optimiser(value):
            continue
        if is_state(value):
            found.append((where, dict(value)))
        elif isinstance(value, Mapping) and depth > 1:
            found.extend(_states(value, where, depth - 1))
    yield from sorted(found, key=lambda item: _rank(item[0], USUAL_NAMES))


def is_optimiser(value: Any) -> bool:
    """Tell whether value is the state of an optimiser, as its state_dict() gives it."""
    return isinstance(value, Mapping) and {"state", "param_groups"} <= value.keys()


def _optimisers(raw: Mapping[Any, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, value in raw.items():
        if is_optimiser(value):
            yield str(key), dict(value)
        elif isinstance(value, list) and len(value) == 1 and is_optimiser(value[0]):  # as Lightning writes it
            yield str(key), dict(value[0])


def storage_of(tensor: torch.Tensor) -> int:
    """Return what is the same for tensors that share memory."""
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else id(tensor)


def bytes_of(tensor: torch.Tensor) -> int:
    """Return the bytes of a tensor's numbers; of a sparse one those of a dense one of this shape."""
    return tensor.numel() * tensor.element_size()


def _loose(raw: Mapping[Any, Any], given: str) -> dict[str, State]:
    """Return the tensors at the top of a file that keeps its metadata among them."""
    state = {key: value for key, value in raw.items() if isinstance(value, torch.Tensor) and isinstance(key, str)}
    if not state:
        held = ", ".join(f"{key!r} ({type(value).__name__})" for key, value in list(raw.items())[:6])
        advice = "Is it a file of settings, or of the optimiser alone? Ask its author for the weights."
        raise CheckpointError(given, f"it holds no weights; it holds {held}", advice)
    return {WHOLE_FILE: state}


def _rank(place: str, usual: tuple[str, ...]) -> int:
    last = place.rpartition(".")[2].lower()
    return usual.index(last) if last in usual else len(usual)


def _without(raw: Mapping[Any, Any], places: set[str]) -> dict[Any, Any]:
    """Return a copy without what stands at these places; "" stands for all tensors at the top."""
    found = {}
    for key, value in raw.items():
        inside = {place.removeprefix(f"{key}.") for place in places if place.startswith(f"{key}.")}
        if str(key) in places or (WHOLE_FILE in places and isinstance(value, torch.Tensor)):
            continue
        found[key] = _without(value, inside) if inside and isinstance(value, Mapping) else value
    return found
