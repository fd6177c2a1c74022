"""A training in a file: written after each epoch and after an interrupt, and taken up again where it stood."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit import checkpoints
from labkit.datasets import Images
from labkit.errors import CheckpointError, InputError, RecordError, check_kind
from labkit.training.history import History
from labkit.training.randomness import generator_states, restore_generators

if TYPE_CHECKING:
    from labkit.training.steps import Training

KEY = "training"


def check_path(path: Any, *, resume: bool) -> Path | None:
    """Return the path of a checkpoint or None. Raises InputError for what cannot hold one, or resume without one."""
    check_kind("resume", resume, bool)
    if path is None:
        if resume:
            raise InputError("resume=True", "there is no checkpoint to go on from", 'Say checkpoint="net.pt" too.')
        return None
    if not isinstance(path, (str, os.PathLike)) or not Path(path).name or "\0" in str(path):
        raise InputError(f"checkpoint={path!r}", "this is not the path of a file", 'Try checkpoint="net.pt".')
    if Path(path).suffix == ".safetensors":
        advice = "Choose another suffix, such as .pt."
        raise InputError(f"checkpoint={str(path)!r}", "that format has no room for an optimiser", advice)
    return Path(path)


def write(path: Path, training: Training, history: History) -> None:
    """Write all that a training needs to go on, beside path and then renamed: a crash leaves the file before it."""
    scaler = training.precision.scaler
    state = {
        "settings": training.settings.to_dict(),
        "data": fingerprint(training.data),
        "step": training.step,
        "epoch_s": training.epoch_s,
        "loss_sum": training.loss_sum.item(),
        "right": training.right.item(),
        "generators": generator_states(training.device),
        "scaler": scaler.state_dict() if scaler else None,
        "history": history.to_dict(),
    }
    checkpoints.save(path, training.model, optimiser=training.optimiser, metadata={KEY: state})


def take_up(path: Path, training: Training) -> History:
    """Set training to where the file left it, and return the history until there.

    Raises CheckpointError for a file that is damaged, made for another model, no training, or another training.
    """
    found = checkpoints.load(path, device=training.device)
    state = found.metadata.get(KEY)
    if not isinstance(state, dict) or found.optimiser is None:
        advice = "Only a file that train(checkpoint=…) wrote can be resumed. Leave resume out to begin anew."
        raise CheckpointError(path.name, "it holds weights, but no training to go on with", advice)
    try:
        _check_same(path, state, training)  # before the model is touched
        checkpoints.load(path, into=training.model, device=training.device)
        training.step = state["step"]
        training.epoch_s = state["epoch_s"]
        training.loss_sum.fill_(state["loss_sum"])
        training.right.fill_(state["right"])
        training.optimiser.load_state_dict(found.optimiser)
        restore_generators(state["generators"], training.device)
        if training.precision.scaler and state["scaler"]:
            training.precision.scaler.load_state_dict(state["scaler"])
        history = History.from_dict(state["history"])
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, RecordError) as problem:
        advice = "Leave resume out to begin anew."
        raise CheckpointError(path.name, f"its training cannot be read ({problem})", advice) from problem
    training.epochs = list(history.epochs)
    return history


def fingerprint(data: Images) -> str:
    """Return what tells two data sets, or two splits of one, apart: their description and a hash of their labels."""
    return f"{data!r}, labels {hashlib.sha256(data.labels.numpy().tobytes()).hexdigest()[:16]}"


def _check_same(path: Path, state: dict[str, Any], training: Training) -> None:
    """Raise CheckpointError, naming each difference, unless the file is of the same training.

    With a constant learning rate more epochs may follow; a cycle is laid out over all epochs from the beginning.
    """
    asked, written = training.settings.to_dict(), dict(state["settings"])
    free = {"epochs"} if asked["schedule"] == "constant" else set()
    other = [f"{name}={written.get(name)!r}" for name in asked if name not in free and written.get(name) != asked[name]]
    if state["data"] != fingerprint(training.data):
        other.append(f"data={state['data']}")
    if other:
        advice = "Ask for the same, or leave resume out to begin anew."
        if {"epochs"} == {name.partition("=")[0] for name in other}:
            advice += ' To add epochs later, train with schedule="constant".'
        raise CheckpointError(path.name, f"it is of another training: {', '.join(other)}", advice)
