"""Short floating-point formats on any CPU: rounding to them, how far results are apart, and how far they may be.

A GPU multiplies float32 matrices in TF32 where it is allowed to; a CPU has no TF32, but rounding its numbers to the
same 10 mantissa bits shows what is lost.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from labkit.errors import InputError, check_choice, check_count


class _Format(NamedTuple):
    mantissa_bits: int  # stored ones; the leading one is implied
    roundings: int  # of a product: two inputs, and the result where it is stored in this format


# IEEE 754-2019 for float16 and float32; bfloat16: Intel, BFLOAT16 - Hardware Numerics Definition, 2018;
# TF32, whose products are added up and stored in float32: NVIDIA A100 Tensor Core GPU Architecture, 2020.
FORMATS = {
    "float32": _Format(23, 2),
    "tf32": _Format(10, 2),
    "float16": _Format(10, 3),
    "bfloat16": _Format(7, 3),
}
ROUNDED = ("tf32", "bfloat16", "float16")


def round_to(x: Any, name: str) -> Any:
    """Return x with every number rounded to the nearest one of "tf32", "bfloat16" or "float16", ties to even.

    x is a number, an array or a tensor, taken as float32; the result is a float, or float32 of the same shape. What
    is too large becomes infinite. A GPU may break ties away from zero instead (PTX: cvt.rna.tf32): 1024.5 becomes 1025.
    Raises InputError for an unknown format and for what holds no real numbers.

    >>> round_to(1024.5, "tf32"), round_to(1024.6, "tf32")  # 10 mantissa bits: above 1024 only whole numbers
    (1024.0, 1025.0)
    >>> round_to(70000.0, "float16"), round_to(70000.0, "bfloat16")
    (inf, 70144.0)
    """
    check_choice("name", name, ROUNDED)
    import numpy as np
    import torch

    rounded = _rounded(_float32(x, "x"), name)
    if isinstance(x, torch.Tensor):
        return torch.from_numpy(rounded).to(x.device)
    return rounded if np.ndim(x) else float(rounded)


def _rounded(x: Any, name: str) -> Any:
    """Round an array of float32: add half of what is cut off, and a little less where the number would stay even."""
    import numpy as np

    if name == "float16":  # its exponent is shorter, too: NumPy knows about its largest and smallest numbers
        with np.errstate(over="ignore"):
            return x.astype(np.float16).astype(np.float32)
    cut = np.uint32(FORMATS["float32"].mantissa_bits - FORMATS[name].mantissa_bits)
    bits = np.atleast_1d(x).view(np.uint32)
    is_odd = (bits >> cut) & np.uint32(1)
    half = (np.uint32(1) << (cut - np.uint32(1))) - np.uint32(1)
    kept = np.uint32(0xFFFFFFFF) << cut
    rounded = ((bits + half + is_odd) & kept).view(np.float32).reshape(np.shape(x))
    return np.where(np.isfinite(x), rounded, x).astype(np.float32)


def relative_error(result: Any, reference: Any) -> float:
    """Return how far result is from reference: the length of their difference over the length of reference.

    Lengths are square roots of sums of squares over all numbers, taken in float64. The error is 0 for equal ones, inf
    where a number is infinite or none in one of the two only. Raises InputError if the shapes differ or are empty.

    >>> relative_error([3.0, 5.0], [3.0, 4.0])  # 1 off, over the root of 9 + 16
    0.2
    """
    import numpy as np

    a, b = (_float64(values, name) for values, name in ((result, "result"), (reference, "reference")))
    if a.shape != b.shape or not a.size:
        problem = "an error is taken number by number, so both need the same shape, and at least one number"
        raise InputError(f"shapes {a.shape} and {b.shape}", problem)
    if not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return math.inf
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    # Times a power of two, which rounds nothing: the difference of two large numbers is beyond all floats.
    _, exponent = np.frexp(max(np.abs(values[finite]).max(initial=0.0) for values in (a, b)))
    a, b = np.ldexp(a, -exponent), np.ldexp(b, -exponent)
    # Divided by the largest first: so is the square of a large number.
    scale = float(np.abs(b[finite]).max(initial=0.0))
    distance = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    if not distance or not scale:
        return math.inf if distance else 0.0
    difference = np.linalg.norm((a[finite] - b[finite]) / distance) * (distance / scale)
    return float(difference / np.linalg.norm(b[finite] / scale))


def unit_roundoff(name: str) -> float:
    """Return the largest relative error of one rounding: half the gap between a number and the next, 2^-(bits + 1).

    Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 2.1. Raises InputError for unknown formats.

    >>> unit_roundoff("tf32") == 2**-11
    True
    """
    return 2.0 ** -(FORMATS[check_choice("name", name, FORMATS)].mantissa_bits + 1)


def tolerance(name: str, *, terms: int, layers: int = 1) -> float:
    """Return the relative error that products of this format may have: layers of sums of so many terms each.

    Each layer rounds its inputs (and, in float16 and bfloat16, its result) once, and adds up in float32, where n terms
    cost about the root of n roundings: the model of Blanchard and others, Mixed precision block fused multiply-add,
    SIAM J. Sci. Comput. 42(3), 2020, with the root of n instead of n after Higham and Mary, A new approach to
    probabilistic rounding error analysis, SIAM J. Sci. Comput. 41(5), 2019. Errors of layers add up. Raises InputError.

    >>> f"{tolerance('float32', terms=512):.1e}, {tolerance('tf32', terms=512):.1e}"
    '1.5e-06, 9.8e-04'
    """
    u = unit_roundoff(name)
    terms, layers = check_count("terms", terms), check_count("layers", layers)
    return layers * (FORMATS[name].roundings * u + math.sqrt(terms) * unit_roundoff("float32"))


def tf32_settings() -> dict[str, bool]:
    """Return what PyTorch may compute in TF32 on a GPU that has it, as it is set now: matrix products, convolutions.

    By default products are exact float32 ("highest") and convolutions may use TF32: the docs of torch.backends.

    >>> sorted(tf32_settings())
    ['convolutions', 'matrix products']
    """
    import torch

    return {
        "matrix products": torch.get_float32_matmul_precision() != "highest",
        "convolutions": bool(torch.backends.cudnn.allow_tf32),
    }


def _float32(values: Any, name: str) -> Any:
    import numpy as np

    with np.errstate(over="ignore"):
        return _array(values, name).astype(np.float32)


def _float64(values: Any, name: str) -> Any:
    import numpy as np

    return _array(values, name).astype(np.float64)


def _array(values: Any, name: str) -> Any:
    """Return values as a NumPy array of real numbers, else raise InputError."""
    import numpy as np
    import torch

    if isinstance(values, torch.Tensor):
        if values.is_meta or values.is_complex() or values.is_quantized:
            raise InputError(f"{name} of {values.dtype} on {values.device}", "it holds no real numbers")
        if values.layout != torch.strided or values.is_nested:
            raise InputError(f"{name} of layout {values.layout}", "it is no dense tensor", "Try .to_dense().")
        values = values.detach().cpu().resolve_neg()
        values = values.float() if values.is_floating_point() and values.dtype != torch.float64 else values
        return values.numpy()
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "fiu":
        raise InputError(f"{name}={values!r:.80}", f"{name} must hold real numbers", "Give a number, array or tensor.")
    return array
