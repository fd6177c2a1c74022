"""Images of a data set with their classes, and what a net took them for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes

from labkit.datasets import Images
from labkit.errors import InputError, check_count, check_kind, listed
from labkit.plotting.style import PALETTE, SMALL, WIDTH_IN, axes_for, describe_axes, finish, is_own

COLUMNS = 10
LABEL_ROOM = 0.32  # above each image, as a share of its height
GAP = 0.12
RIGHT, WRONG = "black", PALETTE[1]


def plot_images(
    images: Images,
    *,
    count: int = 20,
    guesses: Iterable[int] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the first count images under their classes; with guesses, the number of a class for each, the wrong first.

    A wrong one is marked with a cross, its class and the guess. The title says whether the images are real.
    Raises InputError for anything but Images, and for guesses that are not one known class for each image.

    >>> from labkit.datasets import digits
    >>> plot_images(digits(), count=3).get_title(loc="left")
    'UCI digits: 1,797 images of 1×8×8, 10 classes (real)'
    """
    check_kind("images", images, Images, "Pass what digits() or synthetic_images(…) returned.")
    guessed = images.labels.tolist() if guesses is None else _checked(guesses, images)
    labels = images.labels.tolist()
    order = sorted(range(len(images)), key=lambda index: guessed[index] == labels[index])
    shown = order[: check_count("count", count)]
    rows = math.ceil(len(shown) / COLUMNS)
    columns = min(COLUMNS, len(shown))
    ax = axes_for(ax)
    if is_own(ax):
        ax.figure.set_size_inches(WIDTH_IN, 0.45 + rows * (WIDTH_IN / COLUMNS) * (1 + LABEL_ROOM))
    for place, index in enumerate(shown):
        row, column = divmod(place, COLUMNS)
        _draw(ax, column, row * (1 + LABEL_ROOM), images, index, guessed[index])
    ax.set(xlim=(0, max(columns, COLUMNS)), ylim=(rows * (1 + LABEL_ROOM), 0), aspect="equal")
    ax.set_axis_off()
    if title is None:
        title = repr(images) if guesses is None else _score(images, labels, guessed)
    describe_axes(ax, f"{title}. Images: {', '.join(_words(images, i, guessed[i]) for i in shown)}.")
    return finish(ax, title=title, legend=False)


def _draw(ax: Axes, left: float, top: float, images: Images, index: int, guess: int) -> None:
    pixels = images.images[index].permute(1, 2, 0).numpy()  # (channels, height, width) -> (height, width, channels)
    box = (left, left + 1 - GAP, top + 1 - GAP + LABEL_ROOM, top + LABEL_ROOM)
    if pixels.shape[2] == 3:
        ax.imshow(pixels, extent=box, interpolation="nearest")
    else:  # ink on paper: 1 is black
        ax.imshow(pixels.mean(axis=2), extent=box, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    is_wrong = guess != images.labels[index]
    look = {"color": WRONG if is_wrong else RIGHT, "weight": "bold" if is_wrong else "normal", "fontsize": SMALL}
    middle = left + (1 - GAP) / 2
    ax.text(middle, top + LABEL_ROOM - 0.06, _words(images, index, guess), ha="center", va="bottom", **look)


def _words(images: Images, index: int, guess: int) -> str:
    name = images.classes[images.labels[index]]
    return name if guess == images.labels[index] else f"✗ {name}, not {images.classes[guess]}"


def _score(images: Images, labels: list[int], guessed: list[int]) -> str:
    wrong = sum(label != guess for label, guess in zip(labels, guessed, strict=True))
    return f"{images!r}: {wrong} taken for another class, shown first"


def _checked(guesses: Any, images: Images) -> list[int]:
    guesses = guesses.tolist() if hasattr(guesses, "tolist") else list(listed("guesses", guesses))
    known = isinstance(guesses, list) and all(guess in range(len(images.classes)) for guess in guesses)
    if not known or len(guesses) != len(images):
        given = f"guesses={guesses!r:.60}"
        advice = "Try logits.argmax(1)."
        raise InputError(given, f"there must be a number of a class for each of {len(images)} images", advice)
    return guesses
