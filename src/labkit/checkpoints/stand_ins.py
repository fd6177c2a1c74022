"""Plain values in the place of what metadata often holds beside numbers and texts.

torch.load(weights_only=True) refuses NumPy scalars, paths, namespaces and more, though their content is plain. Each is
read here by a constructor of our own, which is given bytes, texts and numbers, and calls nothing that the file names.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from labkit.errors import CheckpointError

# NumPy 1 called its core numpy.core, NumPy 2 calls it numpy._core; a file names the one that its author had.
NUMPY_CORES = ("numpy.core.multiarray", "numpy._core.multiarray")
PATHS = ("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath", "Path", "PurePath")
DATES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)
FACTORIES = ("list", "dict", "int", "float", "str", "tuple", "bool")
PLAIN_DTYPE = re.compile(r"b1|[iu][1248]|f[248]|c8|c16|[SU]\d{1,9}")


class StandIns:
    """The constructors for one load, by the names that files use; seen counts what they read."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._names: dict[Any, str] = {}

    def table(self) -> dict[str, Callable[..., Any]]:
        """Return each name that a file may use, and what is called in its place."""
        found: dict[str, Callable[..., Any]] = {"numpy.dtype": _Dtype, "numpy.ndarray": _Array}
        for core in NUMPY_CORES:
            found |= {f"{core}.scalar": self._scalar, f"{core}._reconstruct": _reconstruct}
        for module in ("pathlib", "pathlib._local"):
            found |= {f"{module}.{name}": functools.partial(self._path) for name in PATHS}
        found |= {"argparse.Namespace": _Namespace, "types.SimpleNamespace": _Namespace}
        found |= {"collections.defaultdict": self._defaultdict}
        found |= {f"builtins.{name}": functools.partial(_nothing) for name in FACTORIES}  # one each, to know its name
        found |= {"builtins.bytes": bytes}  # of an empty array or text, which is written as bytes()
        found |= {"collections.deque": self._deque, "torch.torch_version.TorchVersion": str}
        found |= {f"builtins.{kind.__name__}": kind for kind in (frozenset, range, slice)}
        found |= {f"datetime.{kind.__name__}": kind for kind in DATES}
        self._names = {constructor: name for name, constructor in found.items()}
        return found

    def plain(self, value: Any) -> Any:
        """Return value with every stand-in, however deep, replaced by the plain value that it stands for."""
        if isinstance(value, _Array):
            self.seen["NumPy array"] += 1
            return value.array()
        if isinstance(value, _Namespace):
            self.seen["namespace, now a dict"] += 1
            return {key: self.plain(item) for key, item in vars(value).items()}
        if isinstance(value, dict) and any(isinstance(item, _NESTS) or callable(item) for item in value.values()):
            for key, item in value.items():
                value[key] = self.plain(item)
            return value
        if type(value) in (list, tuple, set):
            return type(value)(self.plain(item) for item in value)
        if callable(value) and value in self._names:  # the file holds the class itself, not an object of it
            self.seen["class, now its name"] += 1
            return self._names[value]
        return value

    def _scalar(self, dtype: _Dtype, raw: Any = b"") -> Any:
        self.seen["NumPy number, now Python's"] += 1
        return np.frombuffer(_bytes_of(raw), dtype=dtype.dtype(), count=1)[0].item()

    def _path(self, *parts: Any) -> str:
        self.seen["path, now a text"] += 1
        texts = [str(part) for part in parts]
        return "/".join([texts[0].rstrip("/\\"), *texts[1:]]) if len(texts) > 1 else "".join(texts)

    def _deque(self, held: Any = (), *length: Any) -> list[Any]:
        self.seen["deque, now a list"] += 1
        return list(held)

    def _defaultdict(self, *factory: Any) -> dict[Any, Any]:
        self.seen["defaultdict, now a dict"] += 1
        return {}


class _Dtype:
    """The dtype of NumPy numbers in a file, if it is one of plain numbers or texts."""

    def __init__(self, code: Any = "", *flags: Any) -> None:
        if not isinstance(code, str) or not PLAIN_DTYPE.fullmatch(code):
            raise CheckpointError(f"a NumPy dtype {code!r}", "only plain numbers and texts are read from a file")
        self._code, self._order = code, "="

    def __setstate__(self, state: Any) -> None:
        self._order = state[1] if isinstance(state, tuple) and len(state) > 1 and state[1] in ("<", ">") else "="

    def dtype(self) -> np.dtype[Any]:
        """Return NumPy's own dtype."""
        return np.dtype(self._code).newbyteorder(self._order)


class _Array:
    """A NumPy array in a file: its state is shape, dtype and bytes."""

    def __setstate__(self, state: Any) -> None:
        _, self._shape, self._dtype, self._is_fortran, self._raw = state

    def array(self) -> np.ndarray[Any, Any]:
        """Return the array, in this machine's byte order."""
        if not isinstance(self._dtype, _Dtype):
            raise CheckpointError("a NumPy array without a dtype", "the file is damaged")
        dtype = self._dtype.dtype()
        flat = np.frombuffer(_bytes_of(self._raw), dtype=dtype)
        return flat.reshape(self._shape, order="F" if self._is_fortran else "C").astype(dtype.newbyteorder("="))


class _Namespace:
    """An object that holds nothing but named values."""

    def __setstate__(self, state: Any) -> None:
        vars(self).update(state if isinstance(state, dict) else {})


_NESTS = (_Array, _Namespace, dict, list, tuple, set)


def _reconstruct(*described: Any) -> _Array:
    """Begin an array, as NumPy does: what it holds follows as its state."""
    return _Array()


def _nothing(*given: Any) -> None:
    """Stand in for the factory of a defaultdict, which a plain dict does not need."""


def _bytes_of(raw: Any) -> bytes:
    if not isinstance(raw, (bytes, bytearray)):
        raise CheckpointError("a NumPy value that is an object", "only plain numbers and texts are read from a file")
    return bytes(raw)
