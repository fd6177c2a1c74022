"""Random numbers in an input pipeline: the bug of the same numbers in every worker, and what keeps it away."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset

from labkit.errors import InputError
from labkit.loading import CropsFromOneGenerator, EpochIndex, EpochSampler, JpegImages, batches_of, plan_loader
from labkit.loading.sampling import _reseeded, carried_generators

ITEMS, BATCH, WORKERS = 16, 4, 2


def drawn(loader, epochs: int = 1) -> list[list[int]]:
    """Return what each epoch of a loader draws, and leave no worker behind."""
    with batches_of(loader) as batches:
        return [[int(n) for _ in range(ITEMS // BATCH) for n in next(batches)] for _ in range(epochs)]


def test_an_epoch_index_is_an_int_with_an_epoch_also_in_another_process() -> None:
    again = pickle.loads(pickle.dumps(EpochIndex(5, epoch=3)))
    assert (again, again.epoch, type(again)) == (5, 3, EpochIndex)
    assert torch.arange(9)[again] == 5


def test_every_epoch_holds_every_item_once_in_an_order_of_its_own() -> None:
    sampler = EpochSampler(50, seed=1)
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second
    assert [item.epoch for item in (first[0], second[0])] == [0, 1]
    assert list(EpochSampler(50, seed=1)) == first
    assert list(EpochSampler(50, seed=2)) != first


@pytest.mark.parametrize("wrong", [{"count": 0}, {"shuffle": 1}, {"seed": None}])
def test_nonsense_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError):
        EpochSampler(**({"count": 3} | wrong))


def test_a_carried_generator_draws_the_same_in_every_worker_and_every_epoch() -> None:
    """The bug itself, with nothing of ours in between: half of the numbers are repeats, and each epoch begins anew."""
    crops = CropsFromOneGenerator(ITEMS)
    loader = DataLoader(crops, batch_size=BATCH, num_workers=WORKERS, multiprocessing_context="fork")
    first, second = drawn(loader, epochs=2)
    # Batches 0 and 2 come from worker 0, batches 1 and 3 from worker 1.
    assert first[0:4] == first[4:8] and first[8:12] == first[12:16]
    assert first == second
    assert len(set(first)) <= ITEMS // 2


@pytest.mark.parametrize("persistent", [True, False])
def test_a_planned_loader_draws_other_numbers_in_each_worker_and_epoch(persistent: bool) -> None:
    plan = plan_loader(
        CropsFromOneGenerator(ITEMS),
        batch=BATCH,
        workers=WORKERS,
        device="cpu",
        persistent=persistent,
        start_method="fork",
        more_than_cpus=True,
    )
    assert "Each worker gets a seed of its own for rng" in " ".join(plan.changes)
    first, second = drawn(plan.loader(), epochs=2)
    assert len({*first, *second}) > 2 * ITEMS - 5  # of 32 draws from 1000 one pair or none is the same by chance
    again = drawn(plan.loader(), epochs=2)
    assert again == [first, second]


def test_generators_are_found_where_a_dataset_carries_them_and_where_it_wraps_one_that_does() -> None:
    crops = CropsFromOneGenerator(4)
    assert list(carried_generators(crops)) == ["rng"]
    assert list(carried_generators(Subset(crops, [0, 1]))) == ["rng"]
    assert carried_generators([1, 2, 3]) == {}


@pytest.mark.parametrize(
    ("make", "draw"),
    [
        (lambda: np.random.default_rng(0), lambda g: g.random()),
        (lambda: np.random.RandomState(0), lambda g: g.rand()),
        (lambda: random.Random(0), lambda g: g.random()),
        (lambda: torch.Generator().manual_seed(0), lambda g: torch.rand(1, generator=g).item()),
    ],
)
def test_every_kind_of_generator_gets_the_seed_of_its_worker(make, draw) -> None:
    one, same, other = (draw(_reseeded(make(), seed)) for seed in (2**40 + 1, 2**40 + 1, 2**40 + 2))
    assert one == same != other
    assert type(_reseeded(make(), 1)) is type(make())


@pytest.mark.parametrize("workers", [0, 2])
def test_the_epoch_reaches_photos_through_whatever_wraps_them(workers: int) -> None:
    """Subset and ConcatDataset pass plain numbers on, and a list of crops would be the same in every epoch."""
    photos = JpegImages(8, megapixels=0.01, size=16)
    for dataset in (Subset(photos, range(8)), ConcatDataset([photos]), Subset(ConcatDataset([photos]), range(8))):
        plan = plan_loader(dataset, batch=8, workers=workers, shuffle=False, device="cpu", more_than_cpus=True)
        with batches_of(plan.loader()) as batches:
            epochs = [next(batches).image for _ in range(3)]
        for epoch, images in enumerate(epochs):
            expected = torch.stack([photos[EpochIndex(index, epoch)].image for index in range(8)])
            assert torch.equal(images, expected)
        assert not torch.equal(epochs[0], epochs[1])
    assert torch.equal(photos[0].image, photos[EpochIndex(0, 0)].image)  # and nothing of it is left behind


def test_generators_in_joined_datasets_are_found() -> None:
    joined = ConcatDataset([[1, 2], CropsFromOneGenerator(4)])
    assert list(carried_generators(joined)) == ["rng"]
    plan = plan_loader(joined, batch=1, workers=2, device="cpu", more_than_cpus=True)
    assert any("rng" in change for change in plan.changes)


@pytest.mark.parametrize("seed", [-1, 1.5, 2**70, True, "3"])
@pytest.mark.parametrize(
    "make",
    [
        lambda seed: EpochSampler(3, seed=seed),
        lambda seed: CropsFromOneGenerator(3, seed=seed),
        lambda seed: JpegImages(1, megapixels=0.01, size=8, seed=seed),
        lambda seed: plan_loader([1, 2], batch=1, workers=0, device="cpu", seed=seed),
    ],
)
def test_a_seed_that_is_none_is_refused_and_not_cut(make, seed) -> None:
    with pytest.raises(InputError, match="a seed is a whole number"):
        make(seed)
