"""The data sets: what is real and what is not, splits of every class, and CIFAR-10 through a fake torchvision."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest
import torch

from labkit import datasets
from labkit.datasets import Images, cifar10, digits, synthetic_images
from labkit.errors import DataError, InputError


def images_of(labels, *, classes=("a", "b"), **fields):
    labels = torch.tensor(labels)
    pixels = torch.arange(len(labels)).float().div(len(labels)).reshape(-1, 1, 1, 1)
    return Images(images=pixels, labels=labels, classes=classes, name="ours", **fields)


# --- the digits --------------------------------------------------------------------------------------------------


def test_the_digits_are_those_of_the_repository():
    """Counts of each class in optdigits.tes, as its own optdigits.names lists them."""
    data = digits()
    assert len(data) == 1797 and data.shape == (1, 8, 8)
    assert torch.bincount(data.labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert not data.synthetic and "(real)" in repr(data)
    levels = data.images * 16  # each pixel counts the dots in 4×4 of a bitmap
    assert torch.equal(levels, levels.round()) and (levels.min(), levels.max()) == (0, 16)


def test_the_first_digit_is_a_zero_as_published():
    assert digits().labels[0] == 0
    assert (digits().images[0, 0, 0] * 16).tolist() == [0, 0, 5, 13, 9, 1, 0, 0]


# --- synthetic images --------------------------------------------------------------------------------------------


def test_synthetic_images_say_so_wherever_they_are_named():
    data = synthetic_images(50, size=12, channels=2, classes=3)
    train, test = data.split(0.2)
    for part in (data, data.take(10), train, test):
        assert part.synthetic and "synthetic, no real data" in repr(part)
    assert data.images.shape == (50, 2, 12, 12) and data.images.dtype == torch.float32
    assert data.labels.max() <= 2 and len(data.classes) == 3


def test_a_seed_gives_the_same_images_and_another_seed_others():
    one, again, other = (synthetic_images(30, size=8, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(one.images, again.images) and torch.equal(one.labels, again.labels)
    assert not torch.equal(one.images, other.images)


def test_the_generator_of_the_reader_is_left_alone():
    state = torch.get_rng_state()
    synthetic_images(10, size=8)
    assert torch.equal(torch.get_rng_state(), state)


def test_more_images_than_are_made_at_a_time(monkeypatch):
    monkeypatch.setattr(datasets, "CHUNK", 7)
    data = synthetic_images(20, size=4)
    assert len(data) == 20 and data.images.flatten(1).std(1).min() > 0  # none was left empty


def test_the_patterns_can_be_learned():
    """The nearest class mean, a classifier of its own, tells them apart."""
    train, test = synthetic_images(400, size=8, classes=4).split(0.5)
    means = torch.stack([train.images[train.labels == label].mean(0) for label in range(4)])
    distances = (test.images[:, None] - means[None]).flatten(2).norm(dim=2)
    assert (distances.argmin(1) == test.labels).float().mean() > 0.95


# --- splitting and taking ----------------------------------------------------------------------------------------


def test_a_split_shares_out_every_image_once_and_keeps_the_share_of_each_class():
    data = images_of([0] * 40 + [1] * 10)
    train, test = data.split(0.2, seed=3)
    assert (len(train), len(test)) == (40, 10)
    assert torch.bincount(test.labels).tolist() == [8, 2]
    together = torch.cat([train.images, test.images]).flatten().sort().values
    assert torch.equal(together, data.images.flatten())
    assert (train.name, test.name) == ("ours, train", "ours, test")


def test_a_split_is_shuffled_by_its_seed_alone():
    data = images_of([0, 1] * 30)
    one, again, other = (data.split(0.5, seed=seed)[1].images for seed in (0, 0, 1))
    assert torch.equal(one, again) and not torch.equal(one, other)


def test_the_digits_split_as_the_lesson_says():
    train, test = digits().split(0.2)
    assert (len(train), len(test)) == (1437, 360)
    assert torch.bincount(test.labels).min() >= 34  # a fifth of 174, rounded down


def test_take_gives_the_first_images():
    data = images_of([0, 1, 0])
    assert torch.equal(data.take(2).images, data.images[:2]) and data.take(2).labels.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"n=4: ours has 3 images. Try take\(3\)"):
        data.take(4)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5, float("nan"), "a fifth", None, True])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="test_share="):
        images_of([0, 1] * 5).split(share)


def test_a_class_with_one_image_cannot_be_split():
    with pytest.raises(InputError, match="each side needs an image of each class"):
        images_of([0, 0, 0, 1]).split(0.5)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "0", None, True])
def test_a_seed_that_no_generator_takes_is_refused(seed):
    for call in (lambda: images_of([0, 1] * 5).split(0.5, seed=seed), lambda: synthetic_images(4, seed=seed)):
        with pytest.raises(InputError, match="a seed is a whole number"):
            call()


# --- what makes no data set --------------------------------------------------------------------------------------

GOOD = {"images": torch.zeros(2, 1, 4, 4), "labels": torch.tensor([0, 1]), "classes": ("a", "b"), "name": "x"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"images": torch.zeros(2, 4, 4)}, "these are no images"),
        ({"images": torch.zeros(2, 1, 4, 4, dtype=torch.uint8)}, "these are no images"),
        ({"images": np.zeros((2, 1, 4, 4), dtype=np.float32)}, "these are no images"),
        ({"images": torch.zeros(0, 1, 4, 4), "labels": torch.zeros(0, dtype=torch.int64)}, "no pixel"),
        ({"images": torch.full((2, 1, 4, 4), 255.0)}, "Divide bytes by 255"),
        ({"images": torch.full((2, 1, 4, 4), float("nan"))}, "pixels are numbers from 0 to 1"),
        ({"labels": torch.tensor([0])}, "each image has one label"),
        ({"labels": torch.tensor([0.0, 1.0])}, "each image has one label"),
        ({"labels": [0, 1]}, "each image has one label"),
        ({"labels": torch.tensor([0, 2])}, "labels from 0 to 2 for 2 classes"),
        ({"labels": torch.tensor([-1, 0])}, "labels from -1 to 0"),
        ({"classes": ()}, "for 0 classes"),
    ],
)
def test_tensors_that_do_not_fit_each_other_are_refused(wrong, said):
    with pytest.raises(DataError, match=said):
        Images(**GOOD | wrong)


@pytest.mark.parametrize("wrong", [{"name": ""}, {"classes": "ab"}, {"classes": (1, 2)}, {"synthetic": 1}])
def test_names_that_are_none_are_refused(wrong):
    with pytest.raises(InputError):
        Images(**GOOD | wrong)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"size": 2.5}, {"channels": -1}, {"classes": None}, {"count": "9"}])
def test_sizes_that_make_no_images_are_refused(wrong):
    with pytest.raises(InputError):
        synthetic_images(**{"count": 4} | wrong)


# --- CIFAR-10 ----------------------------------------------------------------------------------------------------


@pytest.fixture
def torchvision(monkeypatch):
    """Put a fake torchvision in place: its CIFAR10 is the function that the test hands over."""

    def install(cifar):
        package, module = types.ModuleType("torchvision"), types.ModuleType("torchvision.datasets")
        package.datasets = module
        module.CIFAR10 = cifar
        monkeypatch.setitem(sys.modules, "torchvision", package)
        monkeypatch.setitem(sys.modules, "torchvision.datasets", module)

    return install


def test_cifar_10_comes_as_torchvision_holds_it(torchvision, tmp_path):
    pixels = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    pixels[0, 0, 1] = (255, 51, 0)  # row 0, column 1: red, green, blue
    asked = {}

    def cifar(**options):
        asked.update(options)
        return types.SimpleNamespace(data=pixels, targets=[3, 0], classes=["airplane", "car", "bird", "cat"])

    torchvision(cifar)
    data = cifar10(tmp_path, train=False)
    assert asked == {"root": str(tmp_path), "train": False, "download": False}
    assert data.shape == (3, 32, 32) and data.labels.tolist() == [3, 0] and data.classes[3] == "cat"
    assert data.images[0, :, 0, 1].tolist() == pytest.approx([1.0, 0.2, 0.0])
    assert data.images[0, :, 1, 0].tolist() == [0, 0, 0]
    assert repr(data).startswith("CIFAR-10, test: 2 images of 3×32×32") and not data.synthetic


def test_nothing_is_downloaded_unless_asked_for(torchvision, tmp_path):
    def cifar(root, train, download):
        if not download:
            raise RuntimeError("Dataset not found or corrupted. You can use download=True to download it")
        raise OSError("<urlopen error [Errno -3] Temporary failure in name resolution>")

    torchvision(cifar)
    with pytest.raises(DataError, match="CIFAR-10 is not in this folder .* Say download=True to fetch 170 MB"):
        cifar10(tmp_path)
    with pytest.raises(DataError, match="could not be fetched .*name resolution.* Check the network"):
        cifar10(tmp_path, download=True)


def test_without_torchvision_the_reader_is_told_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torchvision", None)  # as Python does it for a module that is not to be found
    with pytest.raises(DataError, match="pip install torchvision. labkit.datasets.digits"):
        cifar10(tmp_path)


def test_a_torchvision_for_another_torch_is_no_crash(monkeypatch, tmp_path):
    class Broken(types.ModuleType):
        def __getattr__(self, name):
            raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setitem(sys.modules, "torchvision", types.ModuleType("torchvision"))
    monkeypatch.setitem(sys.modules, "torchvision.datasets", Broken("torchvision.datasets"))
    with pytest.raises(DataError, match="torchvision cannot be used here .operator torchvision::nms"):
        cifar10(tmp_path)


@pytest.mark.parametrize("wrong", [{"folder": ""}, {"folder": 3}, {"train": "yes"}, {"download": 1}])
def test_what_makes_no_request_is_refused(wrong):
    with pytest.raises(InputError):
        cifar10(**{"folder": "data"} | wrong)


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (torch.zeros(2, 1, 4, 4, device="meta"), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(2, 1, 4, 4).to_sparse(), torch.zeros(2, dtype=torch.int64)),
        (torch.zeros(2, 1, 4, 4), torch.zeros(2, dtype=torch.int64, device="meta")),
    ],
    ids=["images on meta", "sparse images", "labels on meta"],
)
def test_tensors_that_do_not_hold_their_numbers_are_no_data(images, labels) -> None:
    with pytest.raises(DataError, match="holds its numbers"):
        Images(images=images, labels=labels, classes=("a",), name="x")
