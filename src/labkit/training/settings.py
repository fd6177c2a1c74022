"""What a training is asked to do, checked before anything is computed, and how the learning rate goes."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from labkit.devices import Device
from labkit.errors import check_choice, check_count, check_kind, check_positive, check_seed
from labkit.training.precision import DTYPES

LEARNING_RATE, WEIGHT_DECAY = 0.01, 0.01
SCHEDULES = ("one cycle", "constant")
RISING_SHARE = 0.3  # of a cycle; as in torch's OneCycleLR
LOWEST_SHARE = 0.01  # of the learning rate, at both ends of a cycle


def adamw(
    model: nn.Module, learning_rate: float, *, device: Device, weight_decay: float = WEIGHT_DECAY
) -> torch.optim.AdamW:
    """Return torch's AdamW for a model that is on device, with one kernel for all weights where there is such a one."""
    fused = device.kind in ("cpu", "cuda")
    return torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=fused)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides, with the data and the first weights, which weights a training ends with."""

    epochs: int
    batch: int
    learning_rate: float
    schedule: str
    weight_decay: float
    seed: int
    dtype: str
    channels_last: bool

    def __post_init__(self) -> None:
        for name in ("epochs", "batch"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        object.__setattr__(self, "learning_rate", check_positive("learning_rate", self.learning_rate))
        object.__setattr__(self, "weight_decay", check_positive("weight_decay", self.weight_decay, zero_ok=True))
        object.__setattr__(self, "seed", check_seed(self.seed))
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("dtype", self.dtype, DTYPES)
        check_kind("channels_last", self.channels_last, bool)

    def rate_at(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, counted from 0, of so many in all."""
        return self.learning_rate * (1.0 if self.schedule == "constant" else one_cycle(step / steps))

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain JSON types."""
        return dataclasses.asdict(self)


def one_cycle(done: float) -> float:
    """Return the share of the highest learning rate at a share of the training: up along a cosine, then down.

    Beginning and ending with small steps lets the steps between be large: few epochs are enough. L. N. Smith and N.
    Topin, Super-Convergence, 2018 (arXiv:1708.07120).

    >>> [round(one_cycle(done), 3) for done in (0, 0.3, 1)]
    [0.01, 1.0, 0.01]
    """
    height = done / RISING_SHARE if done < RISING_SHARE else (1 - done) / (1 - RISING_SHARE)
    return LOWEST_SHARE + (1 - LOWEST_SHARE) * (1 - math.cos(math.pi * height)) / 2
