"""What labkit's training loop costs over a bare PyTorch loop, and how well and how fast it learns the digits."""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import time
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

import labkit as lab
from bench._pairs import paired
from bench._table import middle_half, row
from labkit.training.randomness import epoch_order
from labkit.training.settings import LEARNING_RATE, WEIGHT_DECAY

BATCH = 64
PAIRS = 101  # of one epoch each: the shorter a run, the less the machine's speed changes within a pair
MOST_OVERHEAD = 0.03
# The loops are compared, not the machine's other programs: on one thread, by the time that this thread was given.
THREADS = 1
CLOCK = time.thread_time

SEEDS = range(5)
GOALS = {"quick": (4, 0.95, 10.0), "normal": (15, 0.98, 60.0)}  # epochs, accuracy of the worst seed, seconds


def main() -> int:
    """Print each figure beside its target; return 1 if one was missed, else 0."""
    digits, _ = lab.digits().split(0.2)
    pictures = lab.synthetic_images(4 * BATCH)
    reached = [
        overhead("small CNN, digits", lab.small_cnn, digits),
        overhead("small CNN, digits, with a progress bar", lab.small_cnn, digits, progress=True),
        overhead("residual net, 32×32", lambda: lab.residual_net(width=8), pictures),
        same_weights(digits),
        set_up(digits),
        *(digits_learned(profile) for profile in GOALS),
    ]
    return 0 if all(reached) else 1


def overhead(what: str, make: Callable[[], nn.Module], data: lab.Images, *, progress: bool = False) -> bool:
    """Compare the steps of train() with those of a bare loop over the same images in the same order, in pairs."""

    def ours() -> float:
        with contextlib.redirect_stderr(io.StringIO()):
            return trained(make(), data, progress=progress).train_s

    ratios = paired(ours, lambda: bare_s(make(), data), lambda x, y: x / y, pairs=PAIRS)
    found = statistics.median(ratios)
    return row(
        f"{what}: ours / bare loop",
        f"{found:.3f}",
        f"≤ {1 + MOST_OVERHEAD}",
        found <= 1 + MOST_OVERHEAD,
        middle_half(ratios),
    )


def same_weights(data: lab.Images) -> bool:
    """Train twice, by train() and by the bare loop: that they do the same work is seen by the weights."""
    one, other = lab.small_cnn(), lab.small_cnn()
    trained(one, data)
    bare_s(other, data)
    pairs = zip(one.parameters(), other.parameters(), strict=True)
    same = all(torch.equal(a, b) for a, b in pairs)
    return row("weights after both loops", "the same bits" if same else "different", "the same bits", same)


def set_up(data: lab.Images) -> bool:
    """Measure what a whole call of train() takes beside its epochs: counting the FLOP, the bar, the history."""
    found_s = []
    for _ in range(5):
        start_s = time.perf_counter()
        history = trained(lab.small_cnn(), data, clock=time.perf_counter)
        found_s.append(time.perf_counter() - start_s - history.train_s)
    median_s = statistics.median(found_s)
    return row("train(): all beside the epochs", f"{median_s * 1e3:.0f} ms", "≤ 200 ms", median_s <= 0.2)


def digits_learned(profile: str) -> bool:
    """Train the small CNN on the digits with several seeds: the accuracy of the worst, and the median time."""
    epochs, goal, most_s = GOALS[profile]
    train, test = lab.digits().split(0.2, seed=0)
    accuracies, seconds = [], []
    for seed in SEEDS:
        start_s = time.perf_counter()
        history = lab.train(
            lab.small_cnn(seed=seed), train, test=test, epochs=epochs, seed=seed, device="cpu", progress=False
        )
        seconds.append(time.perf_counter() - start_s)
        accuracies.append(history.test_accuracy)
    median_s = statistics.median(seconds)
    return row(
        f"digits, {epochs} epochs ({profile}), {len(SEEDS)} seeds: worst accuracy",
        f"{min(accuracies):.2%}",
        f"≥ {goal:.0%}",
        min(accuracies) >= goal and median_s <= most_s,
        f"median {statistics.median(accuracies):.2%}, {median_s:.1f} s each (target: at most {most_s:.0f} s)",
    )


def trained(model: nn.Module, data: lab.Images, **options: object) -> lab.History:
    """Train by labkit."""
    options = {"progress": False, "clock": CLOCK} | options
    return lab.train(model, data, epochs=1, batch=BATCH, schedule="constant", device="cpu", threads=THREADS, **options)


def bare_s(model: nn.Module, data: lab.Images) -> float:
    """Train by a loop of the fewest lines, and return the seconds of its steps."""
    torch.set_num_threads(THREADS)
    optimiser = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY, fused=True)
    model.train()
    order = epoch_order(len(data), seed=0, epoch=1).split(BATCH)
    start_s = CLOCK()
    for which in order:
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(data.images[which]), data.labels[which])
        loss.backward()
        optimiser.step()
    return CLOCK() - start_s


if __name__ == "__main__":
    sys.exit(main())
