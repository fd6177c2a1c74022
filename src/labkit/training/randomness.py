"""What is drawn by chance in a training: from seeds, on the CPU, the same on every device and after every restart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from labkit.devices import Device
from labkit.errors import check_count, check_positive, check_seed


@contextmanager
def cpu_seed(seed: int) -> Iterator[None]:
    """Run a block with torch's CPU generator seeded, then restore it; the generators of GPUs are not touched.

    >>> with cpu_seed(1):
    ...     a = torch.rand(1)
    >>> with cpu_seed(1):
    ...     print(torch.equal(a, torch.rand(1)))
    True
    """
    seed = check_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        yield


@contextmanager
def seeded(device: Device, seed: int) -> Iterator[None]:
    """Run a block with the generators of the CPU and of device seeded, then restore both; others are not touched."""
    with cpu_seed(seed):
        if not device.is_gpu:
            yield
            return
        before = _gpu_state(device)
        _seed_gpu(device, seed)
        try:
            yield
        finally:
            _set_gpu_state(device, before)


def epoch_order(count: int, *, seed: int, epoch: int) -> torch.Tensor:
    """Return the numbers from 0 to count - 1 in the order of one epoch, which depends on seed and epoch alone.

    >>> epoch_order(5, seed=0, epoch=1).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    count, epoch = check_count("count", count), int(check_positive("epoch", epoch, zero_ok=True))
    return torch.from_numpy(np.random.default_rng([check_seed(seed), epoch]).permutation(count))


def generator_states(device: Device) -> dict[str, str]:
    """Return the states of the generators of the CPU and of device as texts, for a checkpoint."""
    states = {"cpu": torch.get_rng_state()}
    if device.is_gpu:
        states[device.kind] = _gpu_state(device)
    return {kind: bytes(state.tolist()).hex() for kind, state in states.items()}


def restore_generators(states: dict[str, str], device: Device) -> None:
    """Set the generators to the states that generator_states gave; one of another kind of device is left out."""
    found = {kind: torch.tensor(list(bytes.fromhex(text)), dtype=torch.uint8) for kind, text in states.items()}
    torch.set_rng_state(found["cpu"])
    if device.is_gpu and device.kind in found:
        _set_gpu_state(device, found[device.kind])


def _gpu_state(device: Device) -> torch.Tensor:
    return torch.cuda.get_rng_state(device.index) if device.kind == "cuda" else torch.mps.get_rng_state()


def _set_gpu_state(device: Device, state: torch.Tensor) -> None:
    if device.kind == "cuda":
        torch.cuda.set_rng_state(state, device.index)
    else:
        torch.mps.set_rng_state(state)


def _seed_gpu(device: Device, seed: int) -> None:
    if device.kind == "cuda":
        with torch.cuda.device(device.index):
            torch.cuda.manual_seed(seed)
    else:
        torch.mps.manual_seed(seed)
