"""Which dtypes a device has, which one to use instead, and what makes a timing on it doubtful."""

from __future__ import annotations

import functools
import os
import reprlib
import warnings
from typing import Any, NamedTuple

from labkit.devices.gpus import find, parse_name
from labkit.errors import DeviceError, InputError

# Metal has no 64-bit floating point. https://developer.apple.com/metal/Metal-Shading-Language-Specification.pdf, 2.1
_INSTEAD_ON_MPS = {"float64": "float32", "complex128": "complex64"}
_ON_MPS = ("float32", "float16", "bfloat16", "complex64", "int64", "int32", "int16", "int8", "uint8", "bool")
_COMMON = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex128", "complex64")
_COMMON += ("int64", "int32", "int16", "int8", "uint8", "bool")

FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"


class SafeDtype(NamedTuple):
    """A torch dtype that the device has, and a note for the reader ("" where there is nothing to say)."""

    dtype: Any
    note: str


def safe_dtype(dtype: Any, device: Any) -> SafeDtype:
    """Return the dtype to use on the device: the one given, or float32 for float64 on mps, with a note.

    Takes a torch or NumPy dtype, its name, or data that has a dtype; the device need not be here. Raises DeviceError
    for a dtype that the device cannot calculate with, naming those that it can; InputError for what is no dtype.

    >>> safe_dtype("float64", "mps")
    SafeDtype(dtype=torch.float32, note='float64 became float32: Apple GPUs have no float64')
    """
    import torch

    name = dtype_name(dtype)
    kind, index = parse_name(device)
    if kind == "mps" and name in _INSTEAD_ON_MPS:
        instead = _INSTEAD_ON_MPS[name]
        return SafeDtype(getattr(torch, instead), f"{name} became {instead}: Apple GPUs have no {name}")
    torch_name = f"cuda:{index or 0}" if kind == "cuda" else kind
    if not _has(name, torch_name):
        known = _ON_MPS if kind == "mps" else _COMMON
        has = ", ".join(other for other in known if _has(other, torch_name))
        raise DeviceError(f"dtype={name}", f"{torch_name} cannot calculate with {name}", f"It has {has}.")
    return SafeDtype(getattr(torch, name), _emulation_note(name, torch_name))


def dtype_name(dtype: Any) -> str:
    """Return the name that torch uses for a torch or NumPy dtype, a name, or the dtype of data.

    >>> dtype_name("torch.float16"), dtype_name(float)
    ('float16', 'float64')
    """
    import numpy as np
    import torch

    given = dtype
    if not isinstance(dtype, (str, type, torch.dtype, np.dtype)):
        dtype = getattr(dtype, "dtype", dtype)
    name = dtype if isinstance(dtype, str) else str(dtype)
    if isinstance(dtype, (type, np.dtype)):
        name = _numpy_name(dtype)
    name = name.removeprefix("torch.")
    if not isinstance(getattr(torch, name, None), torch.dtype):
        raise InputError(
            f"dtype={reprlib.repr(given)}", "this is no dtype that torch knows", f"Choose one of {', '.join(_COMMON)}."
        )
    return str(getattr(torch, name)).removeprefix("torch.")


def mps_fallback_enabled() -> bool:
    """Tell whether torch may silently run on the CPU what Apple's GPU lacks (PYTORCH_ENABLE_MPS_FALLBACK)."""
    return os.environ.get(FALLBACK, "").strip() not in ("", "0")


def timing_note(device: Any) -> str:
    """Return what must stand beside a timing on this device, or "": on mps, that the CPU may have done part of it.

    >>> timing_note("cpu")
    ''
    """
    kind, _ = parse_name(device)
    return "contains CPU fallback" if kind == "mps" and mps_fallback_enabled() else ""


def _numpy_name(dtype: Any) -> str:
    import numpy as np

    try:
        return np.dtype(dtype).name
    except TypeError:
        return repr(dtype)


@functools.cache
def _has(name: str, torch_name: str) -> bool:
    """Try one addition where the device is here; else go by what is documented for it."""
    import torch

    if all(device.torch_name != torch_name for device in find()):
        return name in _ON_MPS if torch_name == "mps" else name in _COMMON
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = torch.zeros(4, dtype=getattr(torch, name), device=torch_name)
            (x + x).cpu()
    except (RuntimeError, TypeError):
        return False
    return True


def _emulation_note(name: str, torch_name: str) -> str:
    """bfloat16 came with compute capability 8.0; older GPUs run it, but not faster than float32."""
    device = next((device for device in find() if device.torch_name == torch_name), None)
    if name != "bfloat16" or device is None or device.capability is None or device.capability >= (8, 0):
        return ""
    major, minor = device.capability
    return f"bfloat16 is emulated on {device} (compute capability {major}.{minor}): expect no speedup"
