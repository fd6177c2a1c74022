"""Images in a figure: which are drawn, under which words."""

import numpy as np
import pytest
import torch

from labkit.datasets import Images, synthetic_images
from labkit.errors import InputError
from labkit.plotting import alt_text, plot_images


def four(**fields):
    shades = torch.tensor([0.0, 0.25, 0.5, 1.0])
    pixels = shades.reshape(4, 1, 1, 1).expand(4, 1, 2, 2).clone()
    return Images(images=pixels, labels=torch.tensor([0, 1, 0, 1]), classes=("cat", "dog"), name="pets", **fields)


def words_in(ax):
    return [text.get_text() for text in ax.texts]


def test_the_first_images_are_drawn_under_their_classes():
    ax = plot_images(four(), count=3)
    assert words_in(ax) == ["cat", "dog", "cat"]
    assert [float(np.unique(picture.get_array()).item()) for picture in ax.images] == [0.0, 0.25, 0.5]
    assert ax.get_title(loc="left") == "pets: 4 images of 1×2×2, 2 classes (real)"


def test_wrong_ones_come_first_and_are_marked_in_two_ways():
    ax = plot_images(four(), guesses=torch.tensor([0, 1, 1, 0]))
    assert words_in(ax) == ["✗ cat\nas dog", "✗ dog\nas cat", "cat", "dog"]
    assert [text.get_weight() for text in ax.texts] == ["bold", "bold", "normal", "normal"]
    assert ax.get_title(loc="left") == "pets (real): 2 of 4 wrong, shown first"
    assert alt_text(ax).endswith("Images: ✗ cat as dog, ✗ dog as cat, cat, dog.")


def test_synthetic_images_say_so():
    ax = plot_images(synthetic_images(30, size=4, channels=3), count=12)
    assert len(ax.images) == 12
    assert ax.images[0].get_array().shape == (4, 4, 3)
    assert "synthetic, no real data" in ax.get_title(loc="left")
    assert "synthetic, no real data" in alt_text(ax)


def test_images_stand_ten_in_a_row_and_none_covers_another():
    boxes = [picture.get_extent() for picture in plot_images(synthetic_images(25, size=4), count=25).images]
    assert len({(left, top) for left, _, _, top in boxes}) == 25
    assert sum(top == boxes[0][3] for *_, top in boxes) == 10
    assert max(right for _, right, _, _ in boxes) <= 10


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: plot_images("digits"), "images must be an Images"),
        (lambda: plot_images(four(), count=0), "count=0"),
        (lambda: plot_images(four(), guesses=[0, 1]), "each of 4 images"),
        (lambda: plot_images(four(), guesses=[0, 1, 2, 0]), "each of 4 images"),
        (lambda: plot_images(four(), guesses=torch.zeros(4, 2)), "argmax"),
        (lambda: plot_images(four(), guesses=torch.tensor(3)), "argmax"),
        (lambda: plot_images(four(), guesses=7), "guesses must be a list"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, said):
    with pytest.raises(InputError) as caught:
        draw()
    assert said in str(caught.value)
