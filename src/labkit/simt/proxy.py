"""The `cuda` that kernels and cells use: Numba's where there is a usable GPU, the simulator's elsewhere."""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.errors import InputError, KernelError
from labkit.simt.arrays import DeviceArray
from labkit.simt.intrinsics import DEVICE_NAMES, Intrinsic
from labkit.simt.launch import Kernel

_JIT_OPTIONS = {
    *("device", "inline", "link", "debug", "opt", "lineinfo", "cache", "fastmath", "max_registers", "func_or_sig"),
    *("argtypes", "restype", "bind", "nopython", "forceinline", "boundscheck"),
}


class _Stream:
    """A stream of the simulator: everything has happened by the time a call returns."""

    def synchronize(self) -> None:
        """Wait for nothing."""

    def auto_synchronize(self) -> Any:
        """Return a context that waits for nothing at its end."""
        return contextlib.nullcontext(self)


class StandIn:
    """What `cuda` offers on the host where there is no GPU: kernels run in the simulator."""

    name = "the simulator on the CPU"

    def is_available(self) -> bool:
        """Return False: there is no GPU."""
        return False

    def to_device(self, obj: Any, stream: Any = 0, copy: bool = True, to: DeviceArray | None = None) -> DeviceArray:
        """Return a copy of an array as a device array."""
        if to is not None:
            to.copy_to_device(obj)
            return to
        return DeviceArray(np.array(obj.array if isinstance(obj, DeviceArray) else obj))

    def device_array(
        self, shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C", stream: Any = 0
    ) -> DeviceArray:
        """Return a device array with nothing in it yet (zeros here; anything on a GPU)."""
        return DeviceArray(np.zeros(shape, dtype, order))

    def device_array_like(self, ary: Any, stream: Any = 0) -> DeviceArray:
        """Return an empty device array like another array."""
        return DeviceArray(np.zeros_like(ary.array if isinstance(ary, DeviceArray) else ary))

    def pinned_array(self, shape: Any, dtype: Any = np.float64, strides: Any = None, order: str = "C") -> np.ndarray:
        """Return a host array; nothing needs pinning here."""
        return np.zeros(shape, dtype, order)

    def synchronize(self) -> None:
        """Wait for nothing: a simulated launch returns when it is done."""

    def stream(self) -> _Stream:
        """Return a stream in which everything has happened already."""
        return _Stream()

    default_stream = stream


class Decorated:
    """A function decorated with @cuda.jit. Its first launch finds out where it runs; `trace` always simulates it."""

    def __init__(self, cuda: Cuda, function: Callable[..., Any], options: dict[str, Any], signature: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.simulated = Kernel(function, signature)
        self._cuda = cuda
        self._options = options
        self._signature = signature

    @functools.cached_property
    def on_gpu(self) -> Any:
        """The function as Numba compiles it, with its `cuda` replaced by numba.cuda; None without a GPU."""
        if not isinstance(self._cuda.backend, Gpu):
            return None
        numba_cuda = self._cuda.backend.numba_cuda
        function = with_numba_cuda(self.py_func, numba_cuda)
        signature = () if self._signature is None else (self._signature,)
        return numba_cuda.jit(*signature, **self._options)(function)

    def __getitem__(self, configuration: Any) -> Any:
        return (self.on_gpu or self.simulated)[configuration]

    def __call__(self, *args: Any) -> Any:
        """Call the kernel without a configuration, which is refused."""
        return (self.on_gpu or self.simulated)(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.on_gpu or self.simulated, name)


def with_numba_cuda(function: Callable[..., Any], numba_cuda: Any) -> types.FunctionType:
    """Return the function with every proxy and proxied kernel that it refers to replaced by Numba's."""

    def real(value: Any) -> Any:
        if isinstance(value, Cuda):
            return numba_cuda
        if isinstance(value, Decorated):
            return value.on_gpu
        if isinstance(value, Intrinsic):
            return functools.reduce(getattr, value._path.split("."), numba_cuda)
        return value

    used = {name: function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__}
    names = {**function.__globals__, **{name: real(value) for name, value in used.items() if value is not function}}
    cells = tuple(types.CellType(real(cell.cell_contents)) for cell in function.__closure__ or ())
    copy = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
    return functools.update_wrapper(copy, function, updated=())


class Gpu:
    """What `cuda` offers where a GPU works: numba.cuda."""

    name = "numba.cuda on a GPU"

    def __init__(self, numba_cuda: Any) -> None:
        self.numba_cuda = numba_cuda

    def __getattr__(self, name: str) -> Any:
        return getattr(self.numba_cuda, name)


def probe_gpu() -> tuple[Any | None, str]:
    """Return numba.cuda if a small kernel compiles and runs on a GPU here, else None and the reason."""
    try:
        numba_cuda = importlib.import_module("numba.cuda")
        if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" or not numba_cuda.is_available():
            return None, ""
    except Exception as error:  # a missing or broken installation may raise anything
        reason = f"there seems to be a GPU, but numba.cuda cannot be imported ({_first_line(error)})"
        return None, reason if _gpu_is_likely() else ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = numba_cuda.to_device(np.zeros(32, np.float32))
            numba_cuda.jit(with_numba_cuda(_probe_kernel, numba_cuda))[1, 32](out)
            numba_cuda.synchronize()
            if not (out.copy_to_host() == np.arange(32)).all():
                return None, "there is a GPU, but a small kernel gives wrong results on it"
    except Exception as error:  # a driver too old for the PTX, a missing toolkit: many types, none of them ours
        hint = "the driver may be older than the CUDA toolkit" if "PTX" in str(error) else "check driver and toolkit"
        return None, f"there is a GPU, but a small kernel fails on it ({_first_line(error)}); {hint}"
    return numba_cuda, ""


def _probe_kernel(out: Any) -> None:
    out[cuda.grid(1)] = cuda.threadIdx.x


class Cuda:
    """Stands where a program writes `cuda`: Numba's where there is a usable GPU, the simulator's elsewhere.

    Which of the two is found out at the first use that needs to know (a launch, a copy, is_available), by compiling and
    running a small kernel. The environment variable LABKIT_SIMT=cpu, read then, forces the simulator. A launch on a GPU
    detects no hazards: trace a kernel first and launch only a clean one.
    """

    is_cuda_namespace = True

    def __init__(self) -> None:
        self._chosen: StandIn | Gpu | None = None

    @property
    def backend(self) -> StandIn | Gpu:
        """What does the work here; found out once."""
        if self._chosen is None:
            wanted = os.environ.get("LABKIT_SIMT", "").strip().lower()
            if wanted not in ("", "auto", "cpu"):
                raise InputError(f"LABKIT_SIMT={wanted}", "labkit.simt knows cpu and auto", "Set LABKIT_SIMT=cpu.")
            numba_cuda, reason = (None, "") if wanted == "cpu" else probe_gpu()
            if reason:
                message = f"labkit.simt: {reason}; kernels run in the simulator on the CPU instead."
                warnings.warn(message, RuntimeWarning, stacklevel=3)
            self._chosen = StandIn() if numba_cuda is None else Gpu(numba_cuda)
        return self._chosen

    def jit(self, func_or_sig: Any = None, device: bool = False, **options: Any) -> Any:
        """Decorate a kernel, or with device=True a function that kernels call; takes Numba's options and signatures."""
        unknown = set(options) - _JIT_OPTIONS
        if unknown:
            raise InputError(f"@cuda.jit({', '.join(sorted(unknown))}=…)", "Numba has no such option")
        if isinstance(func_or_sig, types.FunctionType):
            return Decorated(self, func_or_sig, {"device": device, **options}, None)
        return lambda function: Decorated(self, function, {"device": device, **options}, func_or_sig)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in DEVICE_NAMES:
            return Intrinsic(name)
        found = getattr(self.backend, name, None)
        if found is None:
            raise KernelError(
                f"cuda.{name}",
                f"{self.backend.name} has nothing of this name",
                "On the host there are jit, to_device, device_array, synchronize, stream and is_available.",
            )
        return found

    def __repr__(self) -> str:
        return f"<labkit.simt.cuda: {self._chosen.name if self._chosen else 'not used yet'}>"


def _first_line(error: Exception) -> str:
    text = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {text[:200]}"


def _gpu_is_likely() -> bool:
    """Whether there is a sign of an NVIDIA driver, so that a failing probe is worth a word."""
    return any(map(os.path.exists, ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")))


cuda = Cuda()
