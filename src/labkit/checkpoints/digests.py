"""The SHA-256 of a file: whether it is, byte for byte, the one that its author published."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from labkit.checkpoints.formats import checked_file
from labkit.errors import CheckpointError, InputError, check_count
from labkit.units import format_bytes


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits. Raises CheckpointError if it cannot be read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "abc.txt").write_bytes(b"abc")
    ...     sha256_of(Path(folder, "abc.txt"))[:16]
    'ba7816bf8f01cfea'
    """
    with checked_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_digest(path: Path, sha256: str | None, size_bytes: int | None) -> None:
    """Raise CheckpointError, with what was expected and what was found, unless the file is the expected one."""
    found_bytes = path.stat().st_size
    if size_bytes is not None and found_bytes != check_count("size_bytes", size_bytes):
        problem = f"it has {found_bytes:,} bytes, and {size_bytes:,} were expected"
        raise CheckpointError(path.name, f"{problem}{_digest_note(sha256)}", _advice(found_bytes, size_bytes))
    if sha256 is None:
        return
    wanted = _checked_digest(sha256)
    found = sha256_of(path)
    if found != wanted:
        size = f"{format_bytes(found_bytes)} ({found_bytes:,} bytes)"
        problem = f"this is not the expected file: SHA-256 {found} of {size}, expected {wanted}"
        raise CheckpointError(path.name, problem, _advice(found_bytes, size_bytes))


def _checked_digest(sha256: str) -> str:
    text = sha256.strip().lower().removeprefix("sha256:") if isinstance(sha256, str) else ""
    if not re.fullmatch(r"[0-9a-f]{64}", text):
        raise InputError(
            f"sha256={sha256!r}", "a SHA-256 has 64 hexadecimal digits", "labkit.sha256_of(path) gives it."
        )
    return text


def _digest_note(sha256: str | None) -> str:
    return f" (SHA-256 {_checked_digest(sha256)})" if sha256 else ""


def _advice(found_bytes: int, size_bytes: int | None) -> str:
    if size_bytes and found_bytes < size_bytes:
        return "The download was cut: download it again."
    return "It was changed or damaged, or is another version: do not use it, download it again from its author."
