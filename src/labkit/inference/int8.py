"""A net whose convolutions and linear layers multiply whole numbers of 8 bits.

Weights are rounded once, with one scale for each output channel; what comes in is rounded at every call, with one
scale and one zero point (dynamic quantization: Jacob and others, CVPR 2018, section 2.1). torch.ao.quantization, which
did the same for linear layers, is deprecated; here the layers call what torch.compile itself uses on x86 CPUs, the
operators of oneDNN. They are no public interface of torch: check_int8 finds out what they do on this machine.
"""

from __future__ import annotations

import copy
import functools
import math
from typing import Any, NamedTuple

from labkit.errors import DeviceError, InputError

MOST = 127  # the largest weight; -128 is left out, so that the range is the same on both sides
# Steps of what comes in: 8 bits, or 7 where the sum of two products of 8 bits overflows the 16 bits that CPUs without
# VNNI instructions add them up in (oneDNN, "Nuances of int8 computations").
LEVELS = (255, 127)


class Converted(NamedTuple):
    """A net with 8-bit layers, how many these are, and how many layers with weights stay in float32."""

    model: Any
    converted: int
    left: int


def convert_to_int8(model: Any) -> Converted:
    """Return a copy of the model, in eval mode, whose Conv2d and Linear layers calculate in 8 bits.

    Layers of another kind, grouped convolutions and padding modes other than zeros stay as they are. Raises DeviceError
    where this machine has no exact 8-bit products, InputError if the model has no layer to convert.
    """
    import torch

    levels = check_int8()
    changed, left = torch.nn.Sequential(copy.deepcopy(model)).eval(), 0  # a model may be one layer itself
    replaced = []
    for parent in changed.modules():
        for name, child in parent.named_children():
            if _fits(child):
                replaced.append((parent, name, child))
            elif isinstance(getattr(child, "weight", None), torch.nn.Parameter) and child.weight.ndim > 1:
                left += 1
    if not replaced:
        raise InputError(f"{type(model).__name__}", "it has no Conv2d or Linear layer in float32 to convert")
    layers = _layer_classes()
    for parent, name, child in replaced:
        setattr(parent, name, layers[type(child)](child, levels))
    return Converted(changed[0], len(replaced), left)


@functools.cache
def check_int8() -> int:
    """Return how many steps an input may have for 8-bit products to be exact here: 255, or 127.

    Raises DeviceError where torch has no such products for this CPU, or they are wrong.
    """
    advice = "float32 and bfloat16 need no such products."
    try:
        exact = [levels for levels in LEVELS if _is_exact(levels)]
    except Exception as problem:  # an operator that torch lacks, or that this CPU lacks: there are many texts for it
        reason = (str(problem).splitlines() or [type(problem).__name__])[0][:120]
        raise DeviceError("int8", f"this torch has no 8-bit products for this CPU ({reason})", advice) from problem
    if not exact:
        raise DeviceError("int8", "the 8-bit products of this torch on this CPU are not exact", advice)
    return exact[0]


def _is_exact(levels: int) -> bool:
    """Try the largest products: 64 inputs that are all at one end of their range, with the largest weights."""
    import torch

    linear, conv = torch.nn.Linear(64, 4, bias=False), torch.nn.Conv2d(64, 4, 1, bias=False)
    layers = _layer_classes()
    with torch.inference_mode():
        linear.weight.copy_(torch.tensor([[1.0], [-1.0], [1.0], [0.0]]).expand(4, 64) * MOST)
        conv.weight.copy_(linear.weight[..., None, None])
        x = torch.full((2, 64), float(levels))
        for layer, given in ((linear, x), (conv, x[..., None, None].expand(2, 64, 3, 3))):
            found = layers[type(layer)](layer, levels)(given)
            if not torch.equal(found, layer(given)):
                return False
    return True


def _fits(layer: Any) -> bool:
    import torch

    if type(layer) not in (torch.nn.Linear, torch.nn.Conv2d) or layer.weight.dtype != torch.float32:
        return False
    if isinstance(layer, torch.nn.Linear):
        return True
    return layer.groups == 1 and layer.padding_mode == "zeros" and not isinstance(layer.padding, str)


@functools.cache
def _layer_classes() -> dict[type, type]:
    """Return the 8-bit class for each class of layer. They need torch, which loads only here."""
    import torch

    class Int8Layer(torch.nn.Module):
        def __init__(self, layer: Any, levels: int) -> None:
            super().__init__()
            weight = layer.weight.detach()
            scale = weight.flatten(1).abs().amax(1) / MOST
            self.scale = torch.where(scale > 0, scale, torch.ones_like(scale))
            self.zeros = torch.zeros(len(scale), dtype=torch.int32)
            self.bias = None if layer.bias is None else layer.bias.detach()
            self.levels = levels
            shape = (-1,) + (1,) * (weight.ndim - 1)
            self.packed = self.pack(torch.round(weight / self.scale.reshape(shape)).to(torch.int8), layer)

        def rounded(self, x: Any) -> tuple[Any, float, int]:
            """Return x in whole numbers from 0 to levels, the scale, and the number that stands for zero."""
            low, high = (edge.item() for edge in torch.aminmax(x))
            low, high = min(low, 0.0), max(high, 0.0)
            if not math.isfinite(high - low):
                raise InputError("the input of an 8-bit layer", "it holds infinite numbers or none (NaN)")
            scale = (high - low) / self.levels or 1.0
            zero = round(-low / scale)
            return torch.round(x / scale).add_(zero).clamp_(0, self.levels).to(torch.uint8), scale, zero

        def rest(self) -> tuple[Any, ...]:
            return self.packed, self.scale, self.zeros, self.bias

    class Int8Linear(Int8Layer):
        def pack(self, weight: Any, layer: Any) -> Any:
            return torch.ops.onednn.qlinear_prepack(weight, None)

        def forward(self, x: Any) -> Any:
            rows, scale, zero = self.rounded(x.reshape(-1, x.shape[-1]))
            given = (rows, scale, zero, *self.rest(), 1.0, 0, torch.float32, "none", [], "")
            return torch.ops.onednn.qlinear_pointwise(*given).reshape(*x.shape[:-1], -1)

    class Int8Conv2d(Int8Layer):
        def pack(self, weight: Any, layer: Any) -> Any:
            self.geometry = ([*layer.stride], [*layer.padding], [*layer.dilation], layer.groups)
            return torch.ops.onednn.qconv_prepack(weight, self.scale, 1.0, 0, *self.geometry, None)

        def forward(self, x: Any) -> Any:
            pixels, scale, zero = self.rounded(x)
            given = (pixels, scale, zero, *self.rest(), *self.geometry, 1.0, 0, torch.float32, "none", [], "")
            # Named qconv2d_pointwise up to torch 2.6, and still there under that name in 2.13.
            return torch.ops.onednn.qconv2d_pointwise(*given)

    return {torch.nn.Linear: Int8Linear, torch.nn.Conv2d: Int8Conv2d}
