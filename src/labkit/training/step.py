"""One real training step as a function of no arguments, to be measured, swept and counted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from labkit import devices
from labkit.datasets import Images, synthetic_images
from labkit.errors import InputError, check_count, check_kind
from labkit.nets import answer_of
from labkit.training.evaluation import check_fit, check_learning, check_logits
from labkit.training.models import check_model
from labkit.training.precision import Precision, mover
from labkit.training.settings import LEARNING_RATE, adamw
from labkit.workload import CountedWork, count_work

OPTIMISER_TRAFFIC = 7  # times the bytes of the weights: four reads and three writes


def training_step(
    model: nn.Module,
    batch: int | Images,
    *,
    size: int | None = None,
    device: Any = "auto",
    dtype: str = "float32",
    channels_last: bool = False,
) -> Callable[[], torch.Tensor]:
    """Return a function that does one training step on device and returns the loss: forward, backward and optimiser.

    batch is the number of synthetic images, or Images that all go into each step. They lie on the device already:
    neither waiting for data nor transfer is in it. size is a side of the synthetic images, where the model does not
    say it. The model is changed by every call, and carried to device.
    Raises InputError for nonsense, DataError where images do not fit the model, DeviceError for a missing device.

    >>> from labkit.training.models import small_cnn
    >>> step = training_step(small_cnn(width=4), 8, device="cpu")
    >>> step().device
    device(type='cpu')
    """
    check_model(model)
    check_kind("channels_last", channels_last, bool)
    data = batch if isinstance(batch, Images) else _made_for(model, check_count("batch", batch), size)
    check_fit(model, data, "batch")
    target = devices.pick(device)
    precision = Precision(dtype, target)
    layout = torch.channels_last if channels_last else torch.preserve_format
    model.to(device=target.torch_name, dtype=precision.weights, memory_format=layout).train()
    images, labels = mover(target, precision, channels_last)(data.images, data.labels)
    optimiser = adamw(model, LEARNING_RATE, device=target)

    def step() -> torch.Tensor:
        with precision():
            loss = functional.cross_entropy(check_logits(answer_of(model, images), data), labels)
        check_learning(loss, model)
        precision.backward(loss)
        precision.step(optimiser)
        return loss.detach()

    return step


def training_work(model: nn.Module, batch: int, *, size: int | None = None) -> CountedWork:
    """Return the work of one training step with so many images: FLOP, bytes and launches, from which to predict a GPU.

    Nothing is computed and the model stays as it is, so that nets too large for this machine can be counted, too. The
    optimiser is taken as one kernel that reads weights, gradients and two moments, and writes all but the gradients.
    Raises InputError for nonsense, DataError for a model that cannot be run without data.

    >>> from labkit.training.models import small_cnn
    >>> training_work(small_cnn(width=4), 8).flop
    1873920
    """
    check_model(model, meta_ok=True)
    channels, size, _ = _takes(model, size)
    return work_of(model, (check_count("batch", batch), channels, size, size))


def work_of(model: nn.Module, shape: Sequence[int]) -> CountedWork:
    """Return the work of one training step on images of this shape, counted on a copy of the model without data."""
    twin = copy.deepcopy(model).to("meta").train()
    images = torch.empty(tuple(shape), dtype=next(twin.parameters()).dtype, device="meta")
    labels = torch.zeros(shape[0], dtype=torch.int64, device="meta")
    found = count_work(lambda: functional.cross_entropy(answer_of(twin, images), labels).backward())
    weights_bytes = sum(weights.nbytes for weights in twin.parameters() if weights.requires_grad)
    return CountedWork(found.flop, found.bytes_moved + OPTIMISER_TRAFFIC * weights_bytes, found.launches + 1)


def _made_for(model: nn.Module, count: int, size: int | None) -> Images:
    channels, size, classes = _takes(model, size)
    return synthetic_images(count, size=size, channels=channels, classes=classes)


def _takes(model: nn.Module, size: int | None) -> tuple[int, int, int]:
    """Return channels, size and classes that fit the model: 32×32 where neither it nor the caller says a size."""
    channels, own_size, classes = (getattr(model, asked, None) for asked in ("channels", "size", "classes"))
    if not isinstance(channels, int) or not isinstance(classes, int):
        advice = "Pass the images instead: synthetic_images(64, size=32, channels=3, classes=10)."
        raise InputError(type(model).__name__, "this model does not say which images it takes", advice)
    return channels, check_count("size", own_size or 32 if size is None else size), classes
