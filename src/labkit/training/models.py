"""The nets of the course: small enough for a CPU, of adjustable size, and alike on every device at the start."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional

from labkit.errors import InputError, check_count, check_kind
from labkit.nets import check_ready
from labkit.training.randomness import cpu_seed

LAYERS_OF_A_STEP = 6  # of a residual net: one more block of two convolutions in each of its three stages


class ImageClassifier(nn.Module):
    """A net that says which images it takes: channels, size (of a side, None for any), and how many classes it knows.

    body maps images (n, channels, size, size) to logits (n, classes).
    """

    def __init__(self, name: str, body: nn.Module, *, channels: int, size: int | None, classes: int) -> None:
        super().__init__()
        self.name = name
        self.channels, self.size, self.classes = channels, size, classes
        self.body = body

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return the logits (n, classes) of images (n, channels, height, width)."""
        return self.body(images)

    def extra_repr(self) -> str:
        """Return the name with the number of parameters, for repr."""
        return f"{self.name}, {parameter_count(self):,} parameters"


def small_cnn(
    *, channels: int = 1, size: int = 8, classes: int = 10, width: int = 16, seed: int = 0
) -> ImageClassifier:
    """Return a net of three convolutions, with width, 2·width and 4·width channels, and one linear layer.

    size is a side of its images, a multiple of 4 (two of the convolutions are followed by a halving). The weights are
    drawn on the CPU from seed: the same net on every device. Raises InputError for sizes that make no net.

    >>> net = small_cnn()
    >>> net(torch.zeros(5, 1, 8, 8)).shape, parameter_count(net)
    (torch.Size([5, 10]), 25978)
    """
    channels, size = check_count("channels", channels), check_count("size", size)
    classes, width = check_count("classes", classes), check_count("width", width)
    if size % 4:
        raise InputError(f"size={size}", "the net halves its images twice", f"Try size={size + 4 - size % 4}.")

    def body() -> nn.Module:
        return nn.Sequential(
            *_convolution(channels, width),
            *_convolution(width, 2 * width),
            nn.MaxPool2d(2),
            *_convolution(2 * width, 4 * width),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(4 * width * (size // 4) ** 2, classes),
        )

    name = f"small CNN of width {width}"
    return _drawn_on_the_cpu(seed, lambda: ImageClassifier(name, body(), channels=channels, size=size, classes=classes))


def residual_net(
    *, channels: int = 3, classes: int = 10, width: int = 16, depth: int = 8, seed: int = 0
) -> ImageClassifier:
    """Return a residual net of depth layers, for images of any size from 8×8: 8, 14, 20 … layers (6n + 2).

    Three stages of n blocks with width, 2·width and 4·width channels; each block adds its input to what two
    convolutions make of it. K. He et al., Deep Residual Learning for Image Recognition, CVPR 2016, section 4.2: with
    width 16 and depth 20 it is their ResNet-20, but that a 1×1 convolution widens the shortcut. The weights are
    drawn on the CPU from seed. Raises InputError for sizes that make no net.

    >>> residual_net(depth=14)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    channels, classes = check_count("channels", channels), check_count("classes", classes)
    width, depth = check_count("width", width), check_count("depth", depth)
    blocks, rest = divmod(depth - 2, LAYERS_OF_A_STEP)
    if rest or not blocks:
        raise InputError(f"depth={depth}", "a residual net has 6n + 2 layers", "Try depth=8, 14, 20, 32, 44 or 56.")

    def body() -> nn.Module:
        layers = [*_convolution(channels, width)]
        for stage, (into, out) in enumerate([(width, width), (width, 2 * width), (2 * width, 4 * width)]):
            layers.append(ResidualBlock(into, out, stride=2 if stage else 1))
            layers += [ResidualBlock(out, out) for _ in range(blocks - 1)]
        return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, classes))

    name = f"residual net of {depth} layers, width {width}"
    return _drawn_on_the_cpu(seed, lambda: ImageClassifier(name, body(), channels=channels, size=None, classes=classes))


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions whose result is added to the input; stride 2 halves the image."""

    def __init__(self, into: int, out: int, *, stride: int = 1) -> None:
        super().__init__()
        self.first = nn.Sequential(*_convolution(into, out, stride=stride))
        self.second = nn.Sequential(nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out))
        widened = nn.Sequential(nn.Conv2d(into, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Identity() if into == out and stride == 1 else widened

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(x + what the convolutions make of x), shape (n, out, height / stride, width / stride)."""
        return functional.relu(self.shortcut(x) + self.second(self.first(x)))


def check_model(model: nn.Module, *, meta_ok: bool = False) -> nn.Module:
    """Return model if it is one that can learn, else raise InputError; meta_ok as in check_ready."""
    check_ready(check_kind("model", model, nn.Module, "Try small_cnn()."), meta_ok=meta_ok)
    if not parameter_count(model):
        raise InputError(f"{type(model).__name__}", "this model has nothing to learn: no parameter of it may change")
    return model


def parameter_count(model: nn.Module) -> int:
    """Return how many numbers a training changes.

    >>> parameter_count(nn.Linear(3, 2))
    8
    """
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _drawn_on_the_cpu(seed: int, build: Callable[[], ImageClassifier]) -> ImageClassifier:
    with cpu_seed(seed), torch.device("cpu"):
        return build()


def _convolution(into: int, out: int, *, stride: int = 1) -> tuple[nn.Module, ...]:
    # The normalisation has a bias of its own.
    return nn.Conv2d(into, out, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()
