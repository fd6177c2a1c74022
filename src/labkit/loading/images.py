"""JpegImages: made-up photos, stored as JPEG in memory, that must be decoded, resized and cropped to be trained on."""

from __future__ import annotations

import base64
import io
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from labkit.errors import InputError, check_count, check_number, check_positive, check_seed
from labkit.loading.sampling import epoch_of, generator_for
from labkit.units import format_bytes, format_count

if TYPE_CHECKING:
    import torch

CLASSES = 10
QUALITY = 90
MARGIN = 1 / 8  # of the edge: how far a random crop can wander
MOST_MEGAPIXELS = 25.0
THUMBNAILS, THUMBNAIL_PIXELS = 6, 96


class Sample(NamedTuple):
    """One decoded image: (3, size, size) float32 in [0, 1], its label, and the seconds that its decoding took."""

    image: torch.Tensor
    label: int
    decode_s: float


class JpegImages:
    """Generated photos of a stated size, stored as JPEG bytes in memory; each access decodes one with Pillow.

    An item is decoded, resized, cropped at random, perhaps mirrored, and made a float32 tensor: real work, whose cost
    grows with megapixels, the size of the stored photo. No disk is read. The photos are synthetic; distinct of them
    are made, once, from the seed, and repeat over the count items. Where an item is cropped follows from the seed, the
    epoch and the item's number, so it differs between epochs and does not depend on which worker decodes it.
    Raises InputError for a count, size or megapixels that is not positive, and for more than 25 megapixels.

    >>> photos = JpegImages(100, megapixels=0.01, size=32)
    >>> len(photos), tuple(photos[0].image.shape), photos[0].label
    (100, (3, 32, 32), 0)
    """

    def __init__(
        self,
        count: int,
        *,
        megapixels: float = 0.25,
        size: int = 64,
        augment: bool = True,
        distinct: int = 16,
        seed: int = 0,
    ) -> None:
        self.count = check_count("count", count)
        self.size = check_count("size", size)
        self.megapixels = float(check_positive("megapixels", megapixels))
        if self.megapixels > MOST_MEGAPIXELS:
            problem = f"the photos are kept in memory, and {MOST_MEGAPIXELS:g} is the most"
            raise InputError(f"megapixels={megapixels!r}", problem, "A photo of a telephone has about 12.")
        if not isinstance(augment, bool):
            raise InputError(f"augment={augment!r}", "augment is True or False")
        self.augment = augment
        self.seed = check_seed(seed)
        edge = max(8, round(math.sqrt(self.megapixels * 1e6)))
        made = min(self.count, check_count("distinct", distinct))
        self.photos = tuple(_encode(_photo(edge, generator_for(self.seed, 0, number))) for number in range(made))

    @property
    def stored_bytes(self) -> int:
        """The bytes of all JPEGs that are kept."""
        return sum(map(len, self.photos))

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(self.count))

    def __getitem__(self, index: int) -> Sample:
        import torch

        item = check_number("index", index)
        if not isinstance(item, int) or not 0 <= item < self.count:
            raise InputError(f"photos[{index!r}]", f"there are {self.count} items", f"The last is {self.count - 1}.")
        began_s = time.perf_counter()
        number = item % len(self.photos)
        picture = self._augmented(_decode(self.photos[number]), epoch_of(index), item)
        # By NumPy, on one thread as in a worker process: for so little work torch's threads would wait for each other.
        pixels = np.ascontiguousarray(np.asarray(picture).transpose(2, 0, 1), dtype=np.float32)
        pixels /= 255
        return Sample(torch.from_numpy(pixels), number % CLASSES, time.perf_counter() - began_s)

    def _augmented(self, picture: Image.Image, epoch: int, index: int) -> Image.Image:
        """Return the picture at the size that a network takes: resized, and cropped and mirrored at random."""
        if not self.augment:
            return picture.resize((self.size, self.size), Image.Resampling.BILINEAR)
        wide = self.size + max(1, round(MARGIN * self.size))
        picture = picture.resize((wide, wide), Image.Resampling.BILINEAR)
        draw = generator_for(self.seed, epoch + 1, index)
        left, top = (int(place) for place in draw.integers(0, wide - self.size + 1, 2))
        picture = picture.crop((left, top, left + self.size, top + self.size))
        return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else picture

    def __repr__(self) -> str:
        edge = _decode(self.photos[0]).width
        return (
            f"{format_count(self.count)} synthetic photos of {edge}×{edge} pixels ({self.megapixels:g} megapixels), "
            f"{format_bytes(len(self.photos[0]))} of JPEG each, {len(self.photos)} of them distinct; "
            f"an item is 3×{self.size}×{self.size}."
        )

    def _repr_html_(self) -> str:
        shown = "".join(map(_thumbnail, self.photos[:THUMBNAILS]))
        return f"<p>{self!r}</p><p>{shown}</p>"


def _photo(edge: int, draw: np.random.Generator) -> Image.Image:
    """Return a made-up photo: soft colours, a few round things with edges, and grain, which JPEG finds as hard."""
    picture = _noise(draw, edge, max(2, edge // 64))
    pen = ImageDraw.Draw(picture)
    for _ in range(8):
        x, y, radius = draw.random(3) * (edge, edge, edge / 4)
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=tuple(map(int, draw.integers(0, 256, 3))))
    return Image.blend(picture, _noise(draw, edge, max(2, edge // 4)), 0.2)


def _noise(draw: np.random.Generator, edge: int, cells: int) -> Image.Image:
    coarse = Image.fromarray(draw.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
    return coarse.resize((edge, edge), Image.Resampling.BICUBIC)


def _encode(picture: Image.Image, quality: int = QUALITY) -> bytes:
    stored = io.BytesIO()
    picture.save(stored, "JPEG", quality=quality)
    return stored.getvalue()


def _decode(jpeg: bytes) -> Image.Image:
    return Image.open(io.BytesIO(jpeg)).convert("RGB")


def _thumbnail(jpeg: bytes) -> str:
    small = _decode(jpeg).resize((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
    data = base64.b64encode(_encode(small, 80)).decode()
    return f'<img width="{THUMBNAIL_PIXELS}" alt="a synthetic photo" src="data:image/jpeg;base64,{data}"> '
