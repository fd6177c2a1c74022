"""Mixed precision: which parts of a step run in which dtype, and what float16 needs beside that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from labkit import devices
from labkit.errors import check_choice

DTYPES = ("float32", "bfloat16", "float16", "float64")


class Precision:
    """How a step computes in dtype on device.

    float32 and float64 are the dtype of weights and images. With bfloat16 and float16 the weights stay float32, and
    autocast lets the products and convolutions alone run in the short dtype. Small gradients vanish in float16: on an
    NVIDIA GPU the loss is scaled up before backward and the gradients down after it (torch's GradScaler), elsewhere
    not, since the scaler is made for CUDA. Raises InputError for another dtype.
    """

    def __init__(self, dtype: str, device: devices.Device) -> None:
        check_choice("dtype", dtype, DTYPES)
        usable, self.note = devices.safe_dtype(dtype, device)
        self.name = str(usable).removeprefix("torch.")
        self.is_mixed = self.name in ("bfloat16", "float16")
        self.weights = torch.float32 if self.is_mixed else usable
        scaled = device.kind == "cuda" and self.name == "float16"
        self.scaler = torch.amp.GradScaler("cuda") if scaled else None
        self._autocast = torch.autocast(device.kind, dtype=usable) if self.is_mixed else contextlib.nullcontext()

    def __call__(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context in which forward and loss are to be computed."""
        return self._autocast

    def backward(self, loss: torch.Tensor) -> None:
        """Compute the gradients of loss."""
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()

    def step(self, optimiser: torch.optim.Optimizer) -> None:
        """Let the optimiser change the weights, unless a scaled gradient overflowed, and drop the gradients."""
        if self.scaler is None:
            optimiser.step()
        else:
            self.scaler.step(optimiser)
            self.scaler.update()
        optimiser.zero_grad(set_to_none=True)


def mover(
    device: devices.Device, precision: Precision, channels_last: bool
) -> Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Return the function that carries images and labels to device, in the dtype and layout of the training."""
    layout = torch.channels_last if channels_last else torch.contiguous_format
    to = {"device": device.torch_name, "dtype": precision.weights, "memory_format": layout}

    def move(images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return images.to(**to), labels.to(device.torch_name)

    return move
