"""Nets and data so small that a training takes moments, and a loop written by hand to compare with."""

from __future__ import annotations

import functools
import math
import signal

import numpy as np
import pytest
import torch
from torch import nn

from labkit.datasets import synthetic_images
from labkit.training import small_cnn, train
from labkit.training.precision import Precision

COUNT, BATCH = 22, 8  # two full batches and a partial one of 6
STEPS = 3


class WithDropout(nn.Module):
    """A net that draws by chance in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.net = small_cnn(width=2, size=4, classes=3)
        self.drop = nn.Dropout(0.3)

    def forward(self, images):
        return self.net(self.drop(images))


def tiny_net(seed=0):
    return small_cnn(width=2, size=4, classes=3, seed=seed)


def tiny_data(count=COUNT):
    return synthetic_images(count, size=4, channels=1, classes=3, seed=5)


tiny_train = functools.partial(train, batch=BATCH, device="cpu", threads=1, progress=False)


def weights_of(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same_weights(one, other):
    one, other = (it if isinstance(it, dict) else it.state_dict() for it in (one, other))
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def train_by_hand(model, data, *, steps, epochs, seed=0, rate=0.01, decay=0.01, cycle=True):
    """Train for so many of the steps of so many epochs, in plain PyTorch; return loss sum and right ones by epoch."""
    torch.set_num_threads(1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)
    count = len(data)
    per_epoch = math.ceil(count / BATCH)
    total, done, sums = epochs * per_epoch, 0, []
    model.train()
    for epoch in range(1, epochs + 1):
        order = np.random.default_rng([seed, epoch]).permutation(count)
        sums.append([0.0, 0])
        for start in range(0, count, BATCH):
            if done == steps:
                return sums
            which = order[start : start + BATCH]
            share = done / total
            height = share / 0.3 if share < 0.3 else (1 - share) / 0.7
            factor = 0.01 + 0.99 * (1 - math.cos(math.pi * height)) / 2 if cycle else 1.0
            optimiser.param_groups[0]["lr"] = rate * factor
            logits = model(data.images[which])
            loss = nn.functional.cross_entropy(logits, data.labels[which])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            sums[-1][0] += loss.item() * len(which)
            sums[-1][1] += int((logits.argmax(1) == data.labels[which]).sum())
            done += 1
    return sums


def press_stop(monkeypatch, number, times=1):
    """Press the stop button so many times in the middle of the step with this number, counted from 1."""
    of_ours, steps = Precision.backward, []

    def backward(self, loss):
        steps.append(None)
        if len(steps) == number:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        of_ours(self, loss)

    monkeypatch.setattr(Precision, "backward", backward)


@pytest.fixture(autouse=True)
def torch_is_left_as_it_was():
    """Whatever a test did: threads and switches of torch are as before. Two threads would wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    assert not torch.are_deterministic_algorithms_enabled()
