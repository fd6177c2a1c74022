"""The simulator's device arrays: NumPy arrays that, like memory on a GPU, are copied to and from."""

from __future__ import annotations

from typing import Any

import numpy as np

from labkit.errors import InputError


class DeviceArray:
    """An array that stands for one in a GPU's memory; the host reads it with copy_to_host()."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    size = property(lambda self: self.array.size)
    ndim = property(lambda self: self.array.ndim)
    strides = property(lambda self: self.array.strides)
    nbytes = property(lambda self: self.array.nbytes)
    T = property(lambda self: DeviceArray(self.array.T))

    def copy_to_host(self, ary: np.ndarray | None = None, stream: Any = 0) -> np.ndarray:
        """Return a copy for the host, or copy into the array given."""
        if ary is None:
            return self.array.copy()
        if ary.shape != self.shape:
            raise InputError(f"an array of shape {ary.shape}", f"the device array has shape {self.shape}")
        ary[...] = self.array
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Copy an array from the host into this one."""
        values = ary.array if isinstance(ary, DeviceArray) else np.asarray(ary)
        if values.shape != self.shape:
            raise InputError(f"an array of shape {values.shape}", f"the device array has shape {self.shape}")
        self.array[...] = values

    def reshape(self, *shape: Any, order: str = "C") -> DeviceArray:
        """Return a view of another shape."""
        return DeviceArray(self.array.reshape(*shape, order=order))

    def ravel(self, order: str = "C", stream: Any = 0) -> DeviceArray:
        """Return a flat view."""
        return DeviceArray(self.array.ravel(order))

    def view(self, dtype: Any) -> DeviceArray:
        """Return a view of another type."""
        return DeviceArray(self.array.view(dtype))

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, index: Any) -> Any:
        part = self.array[index]
        return DeviceArray(part) if isinstance(part, np.ndarray) and part.ndim else part

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value.array if isinstance(value, DeviceArray) else value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, simulated on the CPU)"
