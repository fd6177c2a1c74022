"""A small net with all that makes loading hard, and what two sets of weights have in common."""

from __future__ import annotations

import torch
from torch import nn

EXAMPLE = torch.linspace(-1, 1, 2 * 36).reshape(2, 1, 6, 6)


class Net(nn.Module):
    """A net with a convolution, a batch norm with its integer counter, and a part of a part."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU())
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(48, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.body(x).flatten(1)))


def trained(seed: int = 1, classes: int = 5) -> Net:
    """A net whose weights and batch statistics are no default ones."""
    torch.manual_seed(seed)
    net = Net(classes)
    net(torch.rand(8, 1, 6, 6))
    return net


def answer(net: nn.Module) -> torch.Tensor:
    """What a net gives for EXAMPLE in eval mode."""
    with torch.no_grad():
        return net.eval()(EXAMPLE)


def same(state: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of weights have the same names, dtypes and bits."""
    return state.keys() == other.keys() and all(
        state[name].dtype == other[name].dtype and torch.equal(state[name], other[name]) for name in state
    )
