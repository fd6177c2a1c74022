"""Which items make an epoch, and random numbers that differ between workers and epochs, yet repeat with the seed."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from labkit.errors import InputError, check_count, check_seed


def generator_for(seed: int, epoch: int, index: int) -> np.random.Generator:
    """Return the random generator of one item in one epoch; the same three numbers give the same generator.

    >>> first, other, again = (generator_for(0, epoch, 7).random() for epoch in (1, 2, 1))
    >>> first == again, first == other
    (True, False)
    """
    return np.random.default_rng((seed, epoch, index))  # NumPy mixes the three: SeedSequence


class EpochIndex(int):
    """The index of an item that also knows its epoch: to any dataset it is an int."""

    def __new__(cls, index: int, epoch: int = 0) -> EpochIndex:
        """Return the index; it pickles like any int, with its epoch.

        >>> item = EpochIndex(7, epoch=2)
        >>> item, item.epoch, "abcdefgh"[item]
        (7, 2, 'h')
        """
        made = super().__new__(cls, index)
        made.epoch = epoch
        return made


class EpochSampler:
    """Gives each item once an epoch, in an order that changes with the epoch, as EpochIndex.

    A sampler lives in the main process. So the epoch reaches the dataset even where its workers live on from one epoch
    to the next and keep the copy that they were started with.

    >>> sampler = EpochSampler(3, seed=0, shuffle=False)
    >>> [(int(item), item.epoch) for _ in range(2) for item in sampler]
    [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    """

    def __init__(self, count: int, *, shuffle: bool = True, seed: int = 0) -> None:
        self.count = check_count("count", count)
        if not isinstance(shuffle, bool):
            raise InputError(f"shuffle={shuffle!r}", "shuffle is True or False")
        self.shuffle = shuffle
        self.seed = check_seed(seed)
        self.epoch = 0

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[EpochIndex]:
        epoch = self.epoch
        self.epoch += 1
        order = generator_for(self.seed, epoch, self.count).permutation(self.count) if self.shuffle else None
        for place in range(self.count):
            yield EpochIndex(place if order is None else int(order[place]), epoch)


class WithEpoch:
    """A data set that wraps another, as torch's Subset does, and hands the epoch on to what it wraps.

    A wrapper looks a plain number up and passes that on: the epoch of an EpochIndex would be lost, and with it the
    difference between the random crops of two epochs. epoch_of finds it here, in whatever process loads.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        _AT_WORK.epoch = getattr(index, "epoch", 0)
        try:
            return self.dataset[index]
        finally:
            _AT_WORK.epoch = 0


_AT_WORK = threading.local()


def epoch_of(index: int) -> int:
    """Return the epoch that an item is loaded for: that of its EpochIndex, or that of the WithEpoch around it.

    >>> epoch_of(EpochIndex(7, epoch=2)), epoch_of(7)
    (2, 0)
    """
    return getattr(index, "epoch", getattr(_AT_WORK, "epoch", 0))


def handing_epochs_on(dataset: Any) -> Any:
    """Return the data set itself, or WithEpoch of it if it wraps others."""
    return WithEpoch(dataset) if next(_wrapped(dataset), None) is not None else dataset


def _wrapped(dataset: Any) -> Iterator[Any]:
    """Yield the data sets that one wraps, as torch's Subset and ConcatDataset keep them."""
    own = getattr(dataset, "__dict__", {})
    if own.get("dataset") is not None:
        yield own["dataset"]
    if isinstance(own.get("datasets"), (list, tuple)):
        yield from own["datasets"]


class CropsFromOneGenerator:
    """Where to crop, drawn from one generator that the dataset carries: how many people write it, and wrong.

    Each worker process gets a copy of the dataset, and with it a copy of the generator in the same state: all workers
    draw the same numbers, and workers started anew for the next epoch draw them once more.

    >>> crops = CropsFromOneGenerator(4, seed=1)
    >>> len(crops), 0 <= crops[0] < 1000
    (4, True)
    """

    def __init__(self, count: int, *, seed: int = 0) -> None:
        self.count = check_count("count", count)
        self.rng = np.random.default_rng(check_seed(seed))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> int:
        return int(self.rng.integers(1000))


def carried_generators(dataset: Any) -> dict[str, Any]:
    """Return the random generators that a dataset carries as attributes, and those of the datasets that it wraps.

    >>> list(carried_generators(CropsFromOneGenerator(4)))
    ['rng']
    """
    return {name: value for _, name, value in _carried(dataset)}


def seed_each_worker(worker_id: int) -> None:
    """Give this worker's copy of each carried generator a seed of its own, new in each epoch that starts workers."""
    from torch.utils.data import get_worker_info

    info = get_worker_info()
    for owner, name, value in _carried(info.dataset):
        setattr(owner, name, _reseeded(value, info.seed))


def _carried(dataset: Any) -> Iterator[tuple[Any, str, Any]]:
    import torch

    kinds = (np.random.Generator, np.random.RandomState, random.Random, torch.Generator)
    own = getattr(dataset, "__dict__", {})
    yield from ((dataset, name, value) for name, value in own.items() if isinstance(value, kinds))
    for inner in _wrapped(dataset):
        yield from _carried(inner)


def _reseeded(generator: Any, seed: int) -> Any:
    if isinstance(generator, np.random.Generator):
        return np.random.Generator(type(generator.bit_generator)(seed))
    if isinstance(generator, np.random.RandomState):
        return np.random.RandomState(seed % 2**32)
    return random.Random(seed) if isinstance(generator, random.Random) else generator.manual_seed(seed)
