"""The nets: their sizes counted by hand, and weights that a seed decides."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from labkit.errors import InputError
from labkit.training import parameter_count, residual_net, small_cnn
from labkit.training.models import ResidualBlock


@pytest.mark.parametrize(("channels", "size", "classes", "width"), [(1, 8, 10, 16), (3, 32, 10, 8), (2, 4, 3, 1)])
def test_the_small_cnn_has_the_parameters_that_its_layers_need(channels, size, classes, width):
    convolutions = 9 * (channels * width + width * 2 * width + 2 * width * 4 * width)
    normalisations = 2 * (width + 2 * width + 4 * width)
    linear = 4 * width * (size // 4) ** 2 * classes + classes
    net = small_cnn(channels=channels, size=size, classes=classes, width=width)
    assert parameter_count(net) == convolutions + normalisations + linear
    assert net(torch.rand(3, channels, size, size)).shape == (3, classes)


def test_depth_20_and_width_16_is_the_resnet_20_of_the_paper():
    """He et al. count 0.27 million: 269,722 with shortcuts that cost nothing, and 2,752 more for 1×1 convolutions."""
    assert parameter_count(residual_net(depth=20, width=16)) == 269_722 + (16 * 32 + 32 * 64) + 2 * (32 + 64)


@pytest.mark.parametrize("depth", [8, 14, 26])
def test_depth_counts_the_layers_on_the_way_without_the_shortcuts(depth):
    net = residual_net(depth=depth, width=2)
    layers = [
        name
        for name, module in net.named_modules()
        if isinstance(module, (nn.Conv2d, nn.Linear)) and "shortcut" not in name
    ]
    assert len(layers) == depth


@pytest.mark.parametrize("size", [8, 9, 32, 33])
def test_a_residual_net_takes_images_of_any_size(size):
    assert residual_net(width=2, classes=5)(torch.rand(2, 3, size, size)).shape == (2, 5)


def test_a_block_adds_its_input():
    """With convolutions of zeros nothing is left but the input."""
    block = ResidualBlock(2, 2).eval()
    nn.init.zeros_(block.second[0].weight)
    x = torch.rand(1, 2, 4, 4)
    assert torch.equal(block(x), x)


@pytest.mark.parametrize("make", [small_cnn, residual_net])
def test_a_seed_decides_the_weights_and_leaves_the_readers_generator_alone(make):
    state = torch.get_rng_state()
    one, again, other = (list(make(width=2, seed=seed).parameters()) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not torch.equal(one[0], other[0])
    assert torch.equal(torch.get_rng_state(), state)


def test_weights_are_drawn_on_the_cpu_whatever_the_default_device_is():
    with torch.device("meta"):
        net = small_cnn(width=2)
    assert {weights.device.type for weights in net.parameters()} == {"cpu"}


def test_a_net_says_what_it_is():
    net = residual_net(depth=14, width=4)
    assert net.name == "residual net of 14 layers, width 4"
    assert f"{parameter_count(net):,} parameters" in repr(net)


@pytest.mark.parametrize("depth", [1, 2, 7, 9, 20.0, 0, "8", None, True])
def test_a_depth_that_no_residual_net_has_is_refused(depth):
    with pytest.raises(InputError, match="depth="):
        residual_net(depth=depth)


@pytest.mark.parametrize("wrong", [{"size": 9}, {"size": 0}, {"width": 0}, {"channels": 1.5}, {"classes": None}])
def test_sizes_that_make_no_small_cnn_are_refused(wrong):
    with pytest.raises(InputError):
        small_cnn(**wrong)


def test_a_size_that_is_no_multiple_of_4_is_told_the_next_that_is():
    with pytest.raises(InputError, match="Try size=32"):
        small_cnn(size=29)
