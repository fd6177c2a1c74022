"""Images to train on: real handwritten digits offline, synthetic images of any size, CIFAR-10 on request."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labkit.errors import DataError, InputError, check_count, check_kind, check_seed, check_text, listed

if TYPE_CHECKING:
    import torch

NOISE = 0.25  # of the synthetic images, around a pattern that reaches from 0 to 1
SYNTHETIC = "synthetic, no real data"
CHUNK = 1024  # images that are made at a time, so that what is made on the way stays small


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Images:
    """Images with their labels, in memory: float32 in [0, 1], shape (n, channels, height, width); labels int64 (n,).

    synthetic says that nothing in them is real: good for speed, and for no statement about quality.
    Raises DataError for tensors that do not fit each other.

    >>> import torch
    >>> Images(images=torch.zeros(4, 1, 8, 8), labels=torch.tensor([0, 1, 0, 1]), classes=("cat", "dog"), name="pets")
    pets: 4 images of 1×8×8, 2 classes (real)
    """

    images: torch.Tensor
    labels: torch.Tensor
    classes: tuple[str, ...]
    name: str
    synthetic: bool = False

    def __post_init__(self) -> None:
        check_text("name", self.name)
        check_kind("synthetic", self.synthetic, bool)
        classes = tuple(check_text("a class's name", name) for name in listed("classes", self.classes))
        object.__setattr__(self, "classes", classes)
        _check_images(self.images)
        _check_labels(self.labels, len(self.images), len(classes))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        shape, source = "×".join(map(str, self.shape)), SYNTHETIC if self.synthetic else "real"
        return f"{self.name}: {len(self):,} images of {shape}, {len(self.classes)} classes ({source})"

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one image: channels, height, width."""
        return tuple(self.images.shape[1:])

    def take(self, n: int) -> Images:
        """Return the first n images. Raises InputError if there are not so many."""
        n = check_count("n", n)
        if n > len(self):
            raise InputError(f"n={n}", f"{self.name} has {len(self)} images", f"Try take({len(self)}).")
        return self._only(slice(0, n), self.name)

    def split(self, test_share: float = 0.2, *, seed: int = 0) -> tuple[Images, Images]:
        """Return (train, test), shuffled by seed, with the same share of every class in both.

        Raises InputError unless the share leaves each class at least one image on both sides.

        >>> train, test = digits().split(0.2)
        >>> len(train), len(test)
        (1437, 360)
        """
        from sklearn.model_selection import train_test_split

        share = test_share if isinstance(test_share, (int, float)) and not isinstance(test_share, bool) else -1.0
        if not 0 < share < 1:
            raise InputError(f"test_share={test_share!r}", "a share lies between 0 and 1", "Try test_share=0.2.")
        try:
            parts = train_test_split(
                range(len(self)), test_size=share, stratify=self.labels.numpy(), random_state=check_seed(seed)
            )
        except ValueError as problem:  # too few images of a class
            given = f"test_share={test_share!r} of {len(self)} images in {len(self.classes)} classes"
            raise InputError(given, f"each side needs an image of each class ({problem})") from problem
        train, test = (
            self._only(part, f"{self.name}, {side}") for part, side in zip(parts, ("train", "test"), strict=True)
        )
        return train, test

    def _only(self, which: Any, name: str) -> Images:
        return Images(
            images=self.images[which],
            labels=self.labels[which],
            classes=self.classes,
            name=name,
            synthetic=self.synthetic,
        )


def digits() -> Images:
    """Return the UCI handwritten digits: 1,797 real images of 1×8×8, in ten classes; nothing is downloaded.

    E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998, its
    test part, as scikit-learn ships it.

    >>> digits()
    UCI digits: 1,797 images of 1×8×8, 10 classes (real)
    """
    import torch
    from sklearn.datasets import load_digits

    found = load_digits()
    images = torch.tensor(found.images / 16, dtype=torch.float32).unsqueeze(1)  # counts of 4×4 pixels: 0 to 16
    labels = torch.tensor(found.target, dtype=torch.int64)
    return Images(images=images, labels=labels, classes=tuple("0123456789"), name="UCI digits")


def synthetic_images(count: int, *, size: int = 32, channels: int = 3, classes: int = 10, seed: int = 0) -> Images:
    """Return count images of channels×size×size for measuring speed: noise around one random pattern a class.

    They are no real data and are labelled so everywhere; a net can learn the patterns, so that its loss falls.
    The same seed gives the same images. Raises InputError for sizes that are no whole numbers from 1.

    >>> synthetic_images(100, size=16)
    synthetic images: 100 images of 3×16×16, 10 classes (synthetic, no real data)
    """
    import torch

    count, size = check_count("count", count), check_count("size", size)
    channels, classes = check_count("channels", channels), check_count("classes", classes)
    generator = torch.Generator().manual_seed(check_seed(seed))
    patterns = torch.rand(classes, channels, size, size, generator=generator)
    labels = torch.randint(classes, (count,), generator=generator)
    images = torch.empty(count, channels, size, size)
    for part, which in zip(images.split(CHUNK), labels.split(CHUNK), strict=True):
        part.normal_(std=NOISE, generator=generator).add_(patterns[which]).clamp_(0, 1)
    names = tuple(f"pattern {number}" for number in range(classes))
    return Images(images=images, labels=labels, classes=names, name="synthetic images", synthetic=True)


def cifar10(folder: str | os.PathLike[str], *, train: bool = True, download: bool = False) -> Images:
    """Return CIFAR-10 from folder, through torchvision: 50,000 training or 10,000 test images of 3×32×32.

    A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009. The files are fetched (170 MB) only
    where download=True asks for it. Raises DataError where torchvision, the files or the network are missing.
    """
    if not isinstance(folder, (str, os.PathLike)) or not os.fspath(folder):
        raise InputError(f"folder={folder!r}", "this is not the path of a folder", 'Try "data".')
    check_kind("train", train, bool)
    check_kind("download", download, bool)
    import torch

    found = _fetch_cifar10(Path(os.path.expanduser(folder)), train=train, download=download)
    images = torch.from_numpy(found.data).permute(0, 3, 1, 2).float().div_(255).contiguous()  # was n, height, width, 3
    labels = torch.tensor(found.targets, dtype=torch.int64)
    name = f"CIFAR-10, {'train' if train else 'test'}"
    return Images(images=images, labels=labels, classes=tuple(found.classes), name=name)


def _fetch_cifar10(folder: Path, *, train: bool, download: bool) -> Any:
    offline = "labkit.datasets.digits() is real data and needs neither a package nor the network."
    try:
        from torchvision.datasets import CIFAR10
    except Exception as problem:  # a torchvision built for another torch fails with more than an ImportError
        advice = f"Install the torchvision that goes with your torch: pip install torchvision. {offline}"
        given = "cifar10"
        raise DataError(given, f"torchvision cannot be used here ({_first_line(problem)})", advice) from problem
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torchvision's own, of NumPy and pickle
            return CIFAR10(root=str(folder), train=train, download=download)
    except Exception as problem:  # no files, no network, no room, a damaged archive: torchvision passes on many kinds
        why = _first_line(problem)
        if download:
            advice = f"Check the network and the room on the disk, or copy the files there by hand. {offline}"
            raise DataError(str(folder), f"CIFAR-10 could not be fetched into this folder ({why})", advice) from problem
        advice = f"Say download=True to fetch 170 MB, or name the folder that holds cifar-10-batches-py. {offline}"
        raise DataError(str(folder), f"CIFAR-10 is not in this folder ({why})", advice) from problem


def _first_line(problem: Exception) -> str:
    lines = str(problem).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(problem).__name__


def _check_images(images: Any) -> None:
    import torch

    if not isinstance(images, torch.Tensor) or images.dtype != torch.float32 or images.dim() != 4:
        advice = "Images are a float32 tensor of shape (n, channels, height, width)."
        raise DataError(f"images={_short(images)}", "these are no images", advice)
    _check_dense("images", images)
    if not images.numel():
        raise DataError(f"images={_short(images)}", "there is no pixel in them")
    low, high = images.aminmax()
    if not (low >= 0 and high <= 1):  # NaN included
        given = f"images from {low:g} to {high:g}"
        raise DataError(given, "pixels are numbers from 0 to 1", "Divide bytes by 255.")


def _check_labels(labels: Any, count: int, classes: int) -> None:
    import torch

    if not isinstance(labels, torch.Tensor) or labels.dtype != torch.int64 or labels.shape != (count,):
        given = f"labels={_short(labels)} for {count} images"
        raise DataError(given, "each image has one label", "Labels are an int64 tensor of shape (n,).")
    _check_dense("labels", labels)
    if not classes or labels.min() < 0 or labels.max() >= classes:
        given = f"labels from {labels.min()} to {labels.max()} for {classes} classes"
        raise DataError(given, "a label is the number of a class, from 0 on")


def _check_dense(name: str, tensor: Any) -> None:
    import torch

    if tensor.is_meta or tensor.layout != torch.strided:
        where = f"{name} on {tensor.device}, of layout {tensor.layout}"
        raise DataError(
            where, "a data set holds its numbers, all of them, in memory", "Give a dense tensor on the CPU."
        )


def _short(thing: Any) -> str:
    shape: Sequence[int] | None = getattr(thing, "shape", None)
    return f"{thing.dtype} of shape {tuple(shape)}" if shape is not None else f"{thing!r:.60}"
