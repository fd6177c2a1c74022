"""What a pickle would call, read from its instructions and never carried out.

A pickle is a small program: it names functions and classes, and calls them. torch.load(weights_only=True) calls only a
few that build tensors. Here the others are found, to say by name what a file asks for.
"""

from __future__ import annotations

import pickletools
import re
import struct
import warnings
import zipfile
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING  # what pickle itself maps the names of Python 2 by
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

STREAMS = 5  # a checkpoint from before PyTorch 1.6 is five pickles in a row, then the numbers
MOST_BYTES = 2**28  # of instructions that are read; those of a checkpoint have about 200 bytes for each tensor
# Modules whose functions reach out of the program: files, processes, the network, other code.
REACHING_OUT = {
    *("os", "posix", "nt", "sys", "subprocess", "_posixsubprocess", "multiprocessing", "asyncio", "pty", "platform"),
    *("shutil", "tempfile", "socket", "urllib", "http", "ftplib", "smtplib", "requests", "httpx", "webbrowser", "pip"),
    *("runpy", "importlib", "code", "ctypes", "marshal", "pickle", "_pickle", "dill", "cloudpickle", "timeit", "pdb"),
}
REACHING_OUT_BUILTINS = {"eval", "exec", "compile", "__import__", "open", "input", "breakpoint", "execfile"}
REACHING_OUT_NAMES = ("io.open", "_io.open", "io.FileIO", "torch.hub.", "torch.utils.cpp_extension.", "torch.load")
ZIP_MAGIC, ZIP_HEADER_BYTES = b"PK\x03\x04", 30
ITEM_BYTES = {"Double": 8, "Float": 4, "Half": 2, "BFloat16": 2, "Long": 8, "Int": 4, "Short": 2}  # else 1
ITEM_BYTES |= {"ComplexDouble": 16, "ComplexFloat": 8}
MODULE_STATE = {"_modules", "_parameters", "_buffers"}  # every nn.Module keeps its parts under these names
# What torch.load(weights_only=True) itself calls: tensors, their storages and dtypes, and plain collections.
HARMLESS = re.compile(
    r"torch\._utils\._rebuild_\w+|torch\._tensor\._rebuild_from_type_v2|torch\.(Size|device|Tensor)|"
    r"torch\.(cuda\.)?(\w+Storage|\w+Tensor)|torch\.storage\.(Untyped|Typed)Storage|torch\.nn\.parameter\.Parameter|"
    r"torch\.(q?u?int\w+|float\w*|bfloat16|half|double|long|short|bool|bits\w+|complex\w+|per_\w+)|"
    r"torch\.serialization\._get_layout|collections\.(OrderedDict|Counter)|_codecs\.encode|"
    r"builtins\.(set|bytearray|complex)"
)


@dataclass(frozen=True)
class Scan:
    """The names that a pickle asks for, in order; whether it holds an nn.Module; and its extent.

    storage_bytes is what the numbers of all its tensors take, which lie behind the pickle. streams counts the whole
    pickles in a row.
    """

    names: tuple[str, ...] = ()
    protocol: int = 0
    has_module: bool = False
    storage_bytes: int = 0
    streams: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether the end of the first pickle was reached."""
        return self.streams > 0

    def refused(self, allowed: frozenset[str] = frozenset()) -> list[str]:
        """Return the names that are neither torch's own for tensors nor among those allowed, each once."""
        return [name for name in dict.fromkeys(self.names) if name not in allowed and not _is_harmless(name)]

    @property
    def reaching_out(self) -> list[str]:
        """The names of functions that could do anything on this machine, each once."""
        return [name for name in dict.fromkeys(self.names) if _reaches_out(name)]


def scan(path: Path) -> Scan:
    """Return what the pickle in a file would ask for: a zip of torch.save, a bare pickle, or several in a row.

    The pickle of a zip stands at its front, and is found there even if the zip's end is missing.
    """
    try:
        with path.open("rb") as file:
            front = file.read(ZIP_HEADER_BYTES)
            if front.startswith(ZIP_MAGIC):
                file.seek(ZIP_HEADER_BYTES + sum(struct.unpack("<HH", front[26:30])))  # past the name and its padding
            else:
                file.seek(0)
            at_front = _scan_stream(file)
        return at_front if at_front.is_complete or not zipfile.is_zipfile(path) else _scan_inside(path)
    except Exception:  # a damaged archive: whatever zipfile makes of it
        return Scan()


def _scan_inside(path: Path) -> Scan:
    with zipfile.ZipFile(path) as archive:
        inside = [name for name in archive.namelist() if name.rpartition("/")[2] == "data.pkl"]
        return _scan_stream(archive.open(inside[0])) if inside else Scan()


def _scan_stream(file: IO[bytes]) -> Scan:
    stream = BytesIO(file.read(MOST_BYTES))
    found: dict[str, list[Any]] = {"name": [], "protocol": [], "text": [], "storage": []}
    streams = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd escapes, where the numbers are read as texts
            for _ in range(STREAMS):
                for kind, value in _steps(stream):
                    found[kind].append(value)
                streams += 1
    except Exception:  # the numbers begin here, or the file is damaged: whatever pickletools makes of it
        pass
    return Scan(
        names=tuple(found["name"]),
        protocol=max(found["protocol"], default=0),
        has_module=set(found["text"]) >= MODULE_STATE,
        storage_bytes=sum(dict(found["storage"]).values()),
        streams=streams,
    )


def _steps(stream: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield the protocol, texts, names and storages of one pickle, following what it pushes and remembers."""
    memo: dict[int, Any] = {}
    pushed: list[Any] = []
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name == "PROTO":
            yield "protocol", argument
        elif opcode.name in ("GLOBAL", "INST", "STACK_GLOBAL"):
            whole = argument or " ".join(map(str, pushed[-2:]))  # the last kind takes its name from the stack
            pushed.append(_dotted(*whole.partition(" ")[::2]))
            yield "name", pushed[-1]
        elif "UNICODE" in opcode.name or "STRING" in opcode.name:
            pushed.append(str(argument))
            yield "text", pushed[-1]
        elif "INT" in opcode.name or "LONG" in opcode.name.partition("_")[0]:
            pushed.append(argument)
        elif opcode.name == "BINPERSID" and "storage" in pushed[-5:-4]:
            yield "storage", _storage(pushed[-5:])
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = pushed[-1] if pushed else None
        elif opcode.name.endswith("PUT"):
            memo[int(argument)] = pushed[-1] if pushed else None
        elif opcode.name.endswith("GET"):
            pushed.append(memo.get(int(argument)))


def _storage(described: list[Any]) -> tuple[str, int]:
    """Return key and bytes of a storage, which a file describes by a text, a class, a key, a tag and a count."""
    _, kind, key, _, count = described
    item_bytes = ITEM_BYTES.get(str(kind).rpartition(".")[2].removesuffix("Storage"), 1)
    return str(key), item_bytes * int(count)


def _dotted(module: str, name: str) -> str:
    """Return module.name as Python 3 calls it: torch.save writes some names as Python 2 had them."""
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    return f"{module}.{name}"


def _is_harmless(name: str) -> bool:
    return HARMLESS.fullmatch(name) is not None


def _reaches_out(name: str) -> bool:
    module, _, function = name.rpartition(".")
    if module == "builtins":
        return function in REACHING_OUT_BUILTINS
    return name.partition(".")[0] in REACHING_OUT or name.startswith(REACHING_OUT_NAMES)
