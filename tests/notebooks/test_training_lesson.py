"""The training that lesson 03 shows, as it stands in the notebook: it learns what the lesson promises."""

from __future__ import annotations

import re

import pytest
from lessons import NOTEBOOKS
from notebook_style import Notebook, source_of

import labkit as lab

(PATH,) = NOTEBOOKS.glob("03_*.ipynb")


def epochs_of(profile: str) -> int:
    """Return the number of epochs in the cell that trains on the digits."""
    cell = next(cell for cell in Notebook.read(PATH).cells("code") if cell["id"] == "train")
    return int(re.search(rf"epochs=lesson\.choose\(.*?{profile}=(\d+)", source_of(cell))[1])


@pytest.mark.parametrize(("profile", "least"), [("quick", 0.95), ("normal", 0.98)])
def test_the_digits_are_learned(profile: str, least: float) -> None:
    train_images, test_images = lab.digits().split()
    options = {"device": "cpu", "threads": 1, "progress": False}
    history = lab.train(lab.small_cnn(), train_images, test=test_images, epochs=epochs_of(profile), **options)
    assert history.test_accuracy >= least
