"""The photos: real JPEG, real decoding, the same ones for the same seed."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

from labkit.errors import InputError
from labkit.loading import EpochIndex, JpegImages

SMALL = {"megapixels": 0.01, "size": 32}


def test_each_stored_photo_is_a_jpeg_of_the_stated_size() -> None:
    photos = JpegImages(4, megapixels=0.04, size=32)
    for stored in photos.photos:
        with Image.open(io.BytesIO(stored)) as picture:
            assert (picture.format, picture.size) == ("JPEG", (200, 200))  # 200² = 0.04 · 10⁶
    assert photos.stored_bytes == sum(len(stored) for stored in photos.photos)


def test_an_item_without_augmentation_is_what_pillow_decodes() -> None:
    photos = JpegImages(1, augment=False, **SMALL)
    by_hand = Image.open(io.BytesIO(photos.photos[0])).resize((32, 32), Image.Resampling.BILINEAR)
    expected = np.asarray(by_hand, dtype=np.float32).transpose(2, 0, 1) / 255
    image, label, decode_s = photos[0]
    np.testing.assert_allclose(image.numpy(), expected, rtol=1e-6)
    assert (image.dtype, image.is_contiguous(), label) == (torch.float32, True, 0)
    assert decode_s > 0


def test_a_crop_is_a_part_of_the_resized_photo_or_of_its_mirror_image() -> None:
    photos = JpegImages(40, distinct=1, **SMALL)
    wide = Image.open(io.BytesIO(photos.photos[0])).resize((36, 36), Image.Resampling.BILINEAR)  # 32 and an eighth
    whole = torch.from_numpy(np.array(wide)).permute(2, 0, 1).float() / 255
    places = set()
    for sample in photos:
        for mirrored, image in enumerate((sample.image, sample.image.flip(2))):
            for top in range(5):
                for left in range(5):
                    if torch.equal(whole[:, top : top + 32, left : left + 32], image):
                        places.add((mirrored, top, left))
    assert len(places) > 20  # 40 draws from 50 places: by chance alone 28 distinct ones are expected
    assert {mirrored for mirrored, _, _ in places} == {0, 1}


def test_the_same_seed_gives_the_same_bytes_and_crops_and_another_seed_others() -> None:
    one, same, other = (JpegImages(6, seed=seed, **SMALL) for seed in (3, 3, 4))
    assert one.photos == same.photos != other.photos
    assert all(torch.equal(a.image, b.image) for a, b in zip(one, same, strict=True))


def test_the_crop_changes_with_the_epoch_and_with_the_item_and_repeats_with_both() -> None:
    photos = JpegImages(64, distinct=1, **SMALL)

    def crops(epoch: int) -> list[bytes]:
        return [photos[EpochIndex(index, epoch)].image.numpy().tobytes() for index in range(64)]

    first, second = crops(0), crops(1)
    assert first == crops(0)
    assert len(set(first)) > 32  # all are crops of one photo: 64 draws from 50 places give 36 distinct ones
    assert sum(a == b for a, b in zip(first, second, strict=True)) < 10  # by chance one in 50 is the same


def test_photos_repeat_over_the_items_and_the_text_says_how_many_differ() -> None:
    photos = JpegImages(7, distinct=3, augment=False, **SMALL)
    assert [sample.label for sample in photos] == [0, 1, 2, 0, 1, 2, 0]
    assert torch.equal(photos[0].image, photos[3].image)
    assert not torch.equal(photos[0].image, photos[1].image)
    assert "7 synthetic photos of 100×100 pixels (0.01 megapixels)" in repr(photos)
    assert "3 of them distinct" in repr(photos)
    assert photos._repr_html_().count("<img") == 3


def test_a_larger_photo_has_more_bytes_to_decode() -> None:
    sizes = [JpegImages(2, megapixels=megapixels).stored_bytes for megapixels in (0.01, 0.1, 1)]
    assert sizes[0] < sizes[1] / 4 < sizes[2] / 16


def test_it_pickles_whole() -> None:
    photos = JpegImages(3, **SMALL)
    again = pickle.loads(pickle.dumps(photos))
    assert torch.equal(again[2].image, photos[2].image)


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 0},
        {"count": 2.5},
        {"size": 0},
        {"megapixels": 0},
        {"megapixels": -1},
        {"megapixels": float("nan")},
        {"megapixels": 26},
        {"distinct": 0},
        {"augment": "flip"},
        {"seed": "x"},
    ],
)
def test_nonsense_is_refused(wrong: dict) -> None:
    with pytest.raises(InputError):
        JpegImages(**({"count": 2, **SMALL} | wrong))


@pytest.mark.parametrize("index", [3, -1, 1.5])
def test_an_item_that_is_not_there_is_refused(index: object) -> None:
    with pytest.raises(InputError, match="there are 3 items"):
        JpegImages(3, **SMALL)[index]


@pytest.mark.parametrize("index", ["0", None, True, slice(2)])
def test_what_is_no_number_is_refused(index: object) -> None:
    with pytest.raises(InputError, match="must be a finite number"):
        JpegImages(3, **SMALL)[index]
