"""How good a model is on images that it has not learned from."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from labkit import devices
from labkit.datasets import Images
from labkit.errors import DataError, check_count, check_kind
from labkit.nets import answer_of, check_ready, evaluating
from labkit.training.precision import Precision, mover

BATCH = 512  # images at a time: the results are the same, only the memory differs


def evaluate(
    model: nn.Module, data: Images, *, device: Any = "auto", batch: int = BATCH, dtype: str = "float32"
) -> float:
    """Return the accuracy of model on data, from 0 to 1: the share of images whose largest logit is the label's.

    The model is carried to device and stays there; each part's mode (train or eval) is afterwards what it was. Raises
    InputError for nonsense, DataError where data does not fit the model, DeviceError for a device that is not here.
    """
    check_ready(check_kind("model", model, nn.Module, "Try small_cnn()."))
    check_fit(model, data)
    target = devices.pick(device)
    precision = Precision(dtype, target)
    model.to(device=target.torch_name, dtype=precision.weights)
    _, accuracy = loss_and_accuracy(model, data, device=target, precision=precision, batch=check_count("batch", batch))
    return accuracy


def loss_and_accuracy(
    model: nn.Module, data: Images, *, device: devices.Device, precision: Precision, batch: int = BATCH
) -> tuple[float, float]:
    """Return the mean loss and the accuracy of a model that is on device already."""
    move = mover(device, precision, channels_last=False)
    loss_sum = torch.zeros((), device=device.torch_name)
    right = torch.zeros((), device=device.torch_name, dtype=torch.int64)
    with evaluating(model), torch.inference_mode(), precision():
        for images, labels in zip(data.images.split(batch), data.labels.split(batch), strict=True):
            images, labels = move(images, labels)
            logits = check_logits(answer_of(model, images), data)
            loss_sum += functional.cross_entropy(logits, labels, reduction="sum")
            right += (logits.argmax(1) == labels).sum()
    return loss_sum.item() / len(data), right.item() / len(data)


def check_fit(model: nn.Module, data: Images, name: str = "data") -> None:
    """Raise DataError if the model says that it takes other images, or knows fewer classes, than data has."""
    check_kind(name, data, Images, "Try digits() or synthetic_images(1000).")
    channels, size, classes = (getattr(model, asked, None) for asked in ("channels", "size", "classes"))
    given = repr(data)
    if isinstance(channels, int) and channels != data.shape[0]:
        raise DataError(given, f"the model takes images of {channels} channels", f"Try channels={data.shape[0]}.")
    if isinstance(size, int) and (size, size) != data.shape[1:]:
        raise DataError(given, f"the model takes images of {size}×{size}", f"Try size={data.shape[1]}.")
    if isinstance(classes, int) and classes < len(data.classes):
        raise DataError(given, f"the model knows {classes} classes", f"Try classes={len(data.classes)}.")


def check_learning(loss: torch.Tensor, model: nn.Module) -> None:
    """Raise DataError if no weight of the model can be changed by this loss."""
    if not loss.requires_grad:
        advice = "Look for detach(), .data, no_grad() or a way through NumPy in its forward."
        raise DataError(type(model).__name__, "its answer does not depend on what it could learn", advice)


def check_logits(logits: Any, data: Images) -> torch.Tensor:
    """Return what a model made of images of data if it has a logit for each class, else raise DataError.

    On a GPU a label without a logit would end the process.
    """
    if not isinstance(logits, torch.Tensor) or logits.dim() != 2 or logits.shape[1] < len(data.classes):
        made = f"shape {tuple(logits.shape)}" if isinstance(logits, torch.Tensor) else f"a {type(logits).__name__}"
        advice = f"Its last layer needs {len(data.classes)} outputs, its result the shape (n, {len(data.classes)})."
        raise DataError(repr(data), f"the model returns {made}: not one logit for each class", advice)
    return logits
