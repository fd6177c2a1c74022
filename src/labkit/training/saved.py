"""A training in a file: written after each epoch and after an interrupt, and taken up again where it stood."""

from __future__ import annotations

import copy
import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit import checkpoints
from labkit.datasets import Images
from labkit.errors import CheckpointError, InputError, LabkitError, check_kind, check_number, check_positive
from labkit.files import checked_path
from labkit.training.history import History
from labkit.training.randomness import generator_states, restore_generators

if TYPE_CHECKING:
    from labkit.training.steps import Training

KEY = "training"
BEGIN_ANEW = "Leave resume out to begin anew."


def check_checkpoint(path: Any, *, resume: bool) -> Path | None:
    """Return the path of a checkpoint or None. Raises InputError for what cannot hold one, or resume without one."""
    check_kind("resume", resume, bool)
    if path is None:
        if resume:
            raise InputError("resume=True", "there is no checkpoint to go on from", 'Say checkpoint="net.pt" too.')
        return None
    path = checked_path(path, name="checkpoint", example="net.pt")
    if path.suffix.lower() == ".safetensors":
        advice = "Choose another suffix, such as .pt."
        raise InputError(f"checkpoint={str(path)!r}", "that format has no room for an optimiser", advice)
    return path


def check_writable(path: Path) -> None:
    """Raise CheckpointError if no file can be written there: better now than after the first epoch."""
    if path.is_dir():
        raise CheckpointError(str(path), "this is a folder, not a file", f"Try {str(path / 'net.pt')!r}.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as problem:
        advice = "Choose another file or folder."
        raise CheckpointError(str(path), f"no file can be written there ({problem.strerror})", advice) from problem


def write(path: Path, training: Training, history: History) -> None:
    """Write all that a training needs to go on, beside path and then renamed: a crash leaves the file before it."""
    scaler = training.precision.scaler
    state = {
        "settings": training.settings.to_dict(),
        "data": training.fingerprint,
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

    Raises CheckpointError for a file that is damaged, made for another model, no training, or another training; the
    model is then as before.
    """
    found = checkpoints.load(path, device=training.device)
    state = found.metadata.get(KEY)
    if not isinstance(state, dict) or found.optimiser is None:
        advice = "Only a file that train(checkpoint=…) wrote can be resumed. Leave resume out to begin anew."
        raise CheckpointError(path.name, "it holds weights, but no training to go on with", advice)
    _check_same(path, state, training)
    before = copy.deepcopy(training.model.state_dict())
    checkpoints.load(path, into=training.model, device=training.device)
    try:
        return _restore(state, found.optimiser, training)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, LabkitError) as problem:
        training.model.load_state_dict(before)
        raise CheckpointError(path.name, f"its training cannot be read ({problem})", BEGIN_ANEW) from problem


def _restore(state: dict[str, Any], optimiser: dict[str, Any], training: Training) -> History:
    history = History.from_dict(state["history"])
    training.step, training.epochs = check_number("step", state["step"]), list(history.epochs)
    training.epoch_s = check_positive("epoch_s", state["epoch_s"], zero_ok=True)
    training.loss_sum.fill_(float(state["loss_sum"]))  # may be no number: then the training ran away
    training.right.fill_(check_positive("right", state["right"], zero_ok=True))
    training.optimiser.load_state_dict(optimiser)
    restore_generators(state["generators"], training.device)
    if training.precision.scaler and state["scaler"]:
        training.precision.scaler.load_state_dict(state["scaler"])
    # All steps of an epoch may be done and its test not: an interrupt came between.
    if not 0 <= training.steps_into_epoch <= training.steps_per_epoch:
        raise InputError(f"step {training.step}", f"it is none of epoch {len(training.epochs) + 1}")
    return history


def fingerprint(data: Images) -> str:
    """Return what tells two data sets, or two splits of one, apart: their description and a hash of all they hold."""
    digest = hashlib.sha256(data.labels.contiguous().numpy())
    digest.update(data.images.contiguous().numpy())
    return f"{data!r}, content {digest.hexdigest()[:16]}"


def _check_same(path: Path, state: dict[str, Any], training: Training) -> None:
    """Raise CheckpointError, naming each difference, unless the file is of the same training.

    With a constant learning rate more epochs may follow; a cycle is laid out over all epochs from the beginning.
    """
    asked, written = training.settings.to_dict(), state.get("settings")
    if not isinstance(written, dict):
        raise CheckpointError(path.name, "its training cannot be read (it has no settings)", BEGIN_ANEW)
    epochs = written.get("epochs")
    longer = asked["schedule"] == "constant" and isinstance(epochs, int) and epochs <= asked["epochs"]
    free = {"epochs"} if longer else set()
    found = {name: repr(written.get(name)) for name in asked if name not in free}
    other = [f"{name}={value}" for name, value in found.items() if value != repr(asked[name])]
    if str(state.get("data")) != training.fingerprint:
        other.append(f"data={state.get('data')}")
    if other:
        advice = "Ask for the same, or leave resume out to begin anew."
        if {"epochs"} == {name.partition("=")[0] for name in other}:
            advice += ' To add epochs later, train with schedule="constant".'
        raise CheckpointError(path.name, f"it is of another training: {', '.join(other)}", advice)
