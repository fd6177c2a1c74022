"""What kind of file this is, told from its first bytes; and a sentence for each kind that is no checkpoint."""

from __future__ import annotations

import difflib
import json
import os
import re
import zipfile
from pathlib import Path

from labkit.checkpoints.pickles import scan
from labkit.errors import CheckpointError
from labkit.files import checked_path
from labkit.units import format_bytes

ZIP, SAFETENSORS, PICKLE = "zip", "safetensors", "pickle"
AGAIN = "Download or copy it again."
HEAD_BYTES = 1024
TORCH_MAGIC = 0x1950A86A20F9469CFC6C.to_bytes(10, "little")
LFS_POINTER = b"version https://git-lfs"
# The bytes that a file begins with, by the format that they belong to. Each is no checkpoint of PyTorch.
OTHER_FORMATS = {
    b"\x1f\x8b": "a file packed by gzip: unpack it first",
    b"BZh": "a file packed by bzip2: unpack it first",
    b"\xfd7zXZ": "a file packed by xz: unpack it first",
    b"7z\xbc\xaf": "an archive of 7-Zip: unpack it first",
    b"Rar!": "an archive of RAR: unpack it first",
    b"\x89HDF": "an HDF5 file, as Keras writes: PyTorch cannot read it",
    b"GGUF": "a GGUF file, as llama.cpp reads: PyTorch cannot read it",
    b"\x93NUMPY": "one NumPy array (.npy): read it with numpy.load",
    b"%PDF": "a PDF document",
    b"\x89PNG": "a picture (PNG)",
    b"\xff\xd8\xff": "a picture (JPEG)",
}


def checked_file(path: str | os.PathLike[str]) -> Path:
    """Return path if it is a file that can be read and has something in it, else raise CheckpointError."""
    path = checked_path(path, example="weights.pt")
    try:
        if path.is_dir():
            raise CheckpointError(str(path), "this is a folder, not a file", _files_in(path))
        with path.open("rb") as file:
            if not file.read(1):
                problem = "the file is empty (0 bytes): it was never written or downloaded"
                raise CheckpointError(path.name, problem, AGAIN)
    except FileNotFoundError:
        raise CheckpointError(str(path), "there is no such file", _similar_to(path)) from None
    except PermissionError:
        advice = "Ask its owner for the right to read it, or copy it into a folder of yours."
        raise CheckpointError(str(path), "this user may not read the file", advice) from None
    except OSError as problem:
        raise CheckpointError(str(path), f"the file could not be read ({problem.strerror})", AGAIN) from problem
    return path


def format_of(path: Path) -> str:
    """Return ZIP, SAFETENSORS or PICKLE for a file that checked_file passed, else raise CheckpointError."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if head.startswith(b"PK\x03\x04"):
        return ZIP
    if head[8:9] == b"{" and not _is_text(head):
        _check_safetensors_length(path, head, size_bytes)
        return SAFETENSORS
    for magic, what in OTHER_FORMATS.items():
        if head.startswith(magic):
            raise CheckpointError(path.name, f"this is no checkpoint but {what}")
    if head[257:262] == b"ustar":
        problem = "this is a tar archive; PyTorch wrote its checkpoints so before 2018, and they can run code"
        raise CheckpointError(path.name, problem, "Unpack it; of an old checkpoint ask the author for a new one.")
    if head.startswith(b"\x80"):
        return PICKLE
    found = scan(path)  # the oldest pickles begin with anything, and may be text
    if found.is_complete and (found.names or _is_text(head)):
        return PICKLE
    if _is_text(head):
        raise _text_error(path, head, size_bytes)
    advice = f"Look at how it was made. {AGAIN}"
    raise CheckpointError(path.name, f"this is no checkpoint: it begins with the bytes {head[:8].hex(' ')}", advice)


def cut_error(path: Path, whole_bytes: int | None = None) -> CheckpointError:
    """Return the error for a file whose end is missing; whole_bytes is what it should have at least, where known."""
    found_bytes = path.stat().st_size
    whole_bytes = whole_bytes or scan(path).storage_bytes
    found, whole = format_bytes(found_bytes), format_bytes(whole_bytes)
    if found == whole:
        found, whole = f"{found_bytes:,} bytes", f"{whole_bytes:,} bytes"
    wanted = f" of at least {whole}" if whole_bytes > found_bytes else ""
    problem = f"the end of the file is missing: only {found}{wanted} are here"
    return CheckpointError(path.name, problem, f"It was cut. {AGAIN}")


def is_of_torch(path: Path) -> bool:
    """Tell whether a pickle begins as those of torch.save did before PyTorch 1.6."""
    with path.open("rb") as file:
        return TORCH_MAGIC in file.read(HEAD_BYTES)


def is_cut_zip(path: Path) -> bool:
    """Tell whether a zip archive lacks its directory, which stands at the end."""
    return not zipfile.is_zipfile(path)


def _check_safetensors_length(path: Path, head: bytes, size_bytes: int) -> None:
    """A safetensors file begins with the length of its header, whose offsets say how long the file must be."""
    header_bytes = int.from_bytes(head[:8], "little")
    if 8 + header_bytes > size_bytes:
        raise cut_error(path, 8 + header_bytes)
    with path.open("rb") as file:
        file.seek(8)
        header = file.read(header_bytes)
    try:
        entries = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
        whole_bytes = 8 + header_bytes + max((int(entry["data_offsets"][1]) for entry in entries), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        raise CheckpointError(path.name, "the header of this safetensors file is damaged", AGAIN) from None
    if whole_bytes > size_bytes:
        raise cut_error(path, whole_bytes)


def _text_error(path: Path, head: bytes, size_bytes: int) -> CheckpointError:
    text = head.decode("utf-8", errors="replace")
    if head.startswith(LFS_POINTER):
        size = re.search(r"^size (\d+)", text, re.MULTILINE)
        there = f" of {format_bytes(int(size[1]))}" if size else ""
        problem = f"this is a Git LFS pointer of {size_bytes} bytes, which stands for the weights{there}"
        return CheckpointError(path.name, problem, 'Run "git lfs pull" where it was cloned, or use the download link.')
    if re.match(r"\s*(<!doctype html|<html|<\?xml|<head)", text, re.IGNORECASE):
        title = re.search(r"<title[^>]*>\s*(.*?)\s*</title>", text, re.IGNORECASE | re.DOTALL)
        named = f" titled “{title[1]}”" if title else ""
        advice = "The link led to a page: use the page's own download button, and sign in if it asks for that."
        return CheckpointError(path.name, f"this is a web page{named}, not a checkpoint", advice)
    first = text.strip().splitlines()[0][:60] if text.strip() else ""
    advice = "Look into it with an editor. The file with the weights ends with .pt, .pth, .bin or .safetensors."
    return CheckpointError(path.name, f"this is a text of {size_bytes} bytes that begins with {first!r}", advice)


def _is_text(head: bytes) -> bool:
    """Tell whether bytes read as text; the last character may be cut."""
    for cut in range(min(4, len(head))):
        try:
            text = head[: len(head) - cut].decode("utf-8")
            return all(char.isprintable() or char in "\r\n\t\f" for char in text)
        except UnicodeDecodeError:
            continue
    return False


def _similar_to(path: Path) -> str:
    if path.is_symlink():
        return f"{path.name} is a link to {os.readlink(path)!r}: that is what is not there."
    names = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
    similar = difflib.get_close_matches(path.name, names, n=1)
    return f"Did you mean {similar[0]!r}?" if similar else f"Look into {path.parent.absolute()}."


def _files_in(folder: Path) -> str:
    suffixes = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
    found = sorted(file.name for file in folder.iterdir() if file.suffix in suffixes)[:3]
    return f"Name a file in it, such as {found[0]!r}." if found else "Name a file in it."
