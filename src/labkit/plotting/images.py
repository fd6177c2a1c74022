"""Images of a data set with their classes, and what a net took them for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes

from labkit.datasets import SYNTHETIC, Images
from labkit.errors import InputError, check_count, check_kind, listed
from labkit.plotting.style import PALETTE, SMALL, WIDTH_IN, axes_for, describe_axes, finish, is_own

COLUMNS = 10
LINE = 0.28  # of text above each image, as a share of its height
GAP = 0.12
SHORT = 2  # characters of a class's name with which a wrong guess fits on one line
WIDEST = 10  # characters that fit above an image in the usual size
RIGHT, WRONG, CROSS = "black", PALETTE[1], "✗"


def plot_images(
    images: Images,
    *,
    count: int = 20,
    guesses: Iterable[int] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Axes:
    """Draw the first count images under their classes; with guesses, the number of a class for each, the wrong first.

    A wrong one is marked with a cross: its class, as what it was guessed. The title says whether the images are real.
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
    words = [_words(images, index, guessed[index]) for index in shown]
    room = LINE * (1 + max(text.count("\n") for text in words))
    rows = math.ceil(len(shown) / COLUMNS)
    ax = axes_for(ax)
    if is_own(ax):
        ax.figure.set_size_inches(WIDTH_IN, 0.35 + rows * (WIDTH_IN / COLUMNS) * (1 + room))
    for place, (index, text) in enumerate(zip(shown, words, strict=True)):
        row, column = divmod(place, COLUMNS)
        _draw(ax, (column, row * (1 + room) + room), images.images[index], text)
    ax.set(xlim=(0, COLUMNS), ylim=(rows * (1 + room), 0), aspect="equal")
    ax.set_axis_off()
    if title is None:
        title = repr(images) if guesses is None else _score(images, labels, guessed)
    describe_axes(ax, f"{title}. Images: {', '.join(words)}.".replace("\n", " "))
    return finish(ax, title=title, legend=False)


def _draw(ax: Axes, corner: tuple[float, float], image: Any, text: str) -> None:
    """Draw an image (channels, height, width) with its upper left corner there, and the text above it."""
    left, top = corner
    pixels = image.permute(1, 2, 0).numpy()  # height, width, channels
    box = (left, left + 1 - GAP, top + 1 - GAP, top)
    if pixels.shape[2] == 3:
        ax.imshow(pixels, extent=box, interpolation="nearest")
    else:  # ink on paper: 1 is black
        ax.imshow(pixels.mean(axis=2), extent=box, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    size = SMALL if max(map(len, text.split("\n"))) <= WIDEST else SMALL - 2
    look = {"color": WRONG, "weight": "bold"} if text.startswith(CROSS) else {"color": RIGHT}
    ax.text(left + (1 - GAP) / 2, top - 0.05, text, ha="center", va="bottom", fontsize=size, **look)


def _words(images: Images, index: int, guess: int) -> str:
    name, other = images.classes[images.labels[index]], images.classes[guess]
    if name == other:
        return name
    return f"{CROSS} {name}{' ' if max(map(len, (name, other))) <= SHORT else chr(10)}as {other}"


def _score(images: Images, labels: list[int], guessed: list[int]) -> str:
    wrong = sum(label != guess for label, guess in zip(labels, guessed, strict=True))
    source = SYNTHETIC if images.synthetic else "real"
    return f"{images.name} ({source}): {wrong} of {len(labels)} wrong{', shown first' if wrong else ''}"


def _checked(guesses: Any, images: Images) -> list[int]:
    guesses = guesses.tolist() if hasattr(guesses, "tolist") else list(listed("guesses", guesses))
    known = isinstance(guesses, list) and all(guess in range(len(images.classes)) for guess in guesses)
    if not known or len(guesses) != len(images):
        given = f"guesses={guesses!r:.60}"
        advice = "Try logits.argmax(1)."
        raise InputError(given, f"there must be a number of a class for each of {len(images)} images", advice)
    return guesses
