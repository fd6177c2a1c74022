"""Reading a checkpoint with torch's safe reader, and a clear sentence where it refuses or fails."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from labkit import devices
from labkit.checkpoints.formats import AGAIN, PICKLE, SAFETENSORS, ZIP, cut_error, format_of, is_cut_zip, is_of_torch
from labkit.checkpoints.marks import unmark
from labkit.checkpoints.pickles import STREAMS, Scan, scan
from labkit.checkpoints.stand_ins import StandIns
from labkit.errors import CheckpointError

WEIGHTS_ONLY = "Ask its author for the weights alone: torch.save(model.state_dict(), path)"
MOST_NAMES = 4
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Read:
    """What stood in a file: Python's objects, on the CPU; how often a plain value took another's place; the tags.

    A tag says where a tensor's numbers lay when they were saved, such as "cuda:0". metadata is that of safetensors,
    which stands apart from the tensors; is_ours tells whether labkit wrote such a file.
    """

    raw: Any
    seen: Counter[str] = field(default_factory=Counter)
    tags: Counter[str] = field(default_factory=Counter)
    metadata: dict[str, Any] = field(default_factory=dict)
    is_ours: bool = False


def read(path: Path) -> Read:
    """Read a file on the CPU. Nothing in it is executed. Raises CheckpointError for all that is no checkpoint."""
    kind = format_of(path)
    if kind == SAFETENSORS:
        return _read_safetensors(path)
    stand_ins, tags = StandIns(), Counter[str]()

    def to_cpu(storage: Any, tag: str) -> Any:
        tags[tag] += 1
        return storage  # torch has read it into the CPU's memory already

    try:
        with _only(stand_ins.table()), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a pickle protocol, or of a storage class that has a new name
            raw = _torch_load(path, to_cpu)
        return Read(stand_ins.plain(raw), stand_ins.seen, tags)
    except CheckpointError as problem:  # a stand-in refused its content
        raise CheckpointError(path.name, f"{problem.given}: {problem.problem}", WEIGHTS_ONLY + ".") from None
    except MemoryError:
        raise
    except Exception as problem:
        # A damaged file makes torch raise almost anything. Its own advice to lift the protection is not repeated.
        raise _explained(path, kind, problem, frozenset(stand_ins.table())) from None


def _torch_load(path: Path, to_cpu: Callable[[Any, str], Any]) -> Any:
    if path.suffix == ".safetensors":  # torch believes the name; this file is something else
        with path.open("rb") as file:
            return torch.load(file, map_location=to_cpu, weights_only=True)
    return torch.load(path, map_location=to_cpu, weights_only=True)


@contextmanager
def _only(table: Mapping[str, Any]) -> Iterator[None]:
    """Allow these constructors and no others, not even those that the program allowed before; restore those after."""
    with _ONE_AT_A_TIME:  # torch keeps one list for the whole program
        before = torch.serialization.get_safe_globals()
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals([(constructor, name) for name, constructor in table.items()])
        try:
            yield
        finally:
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals(before)


def _read_safetensors(path: Path) -> Read:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            texts = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  no mapping of its own
    except (SafetensorError, OSError, ValueError, RuntimeError) as problem:
        raise CheckpointError(path.name, f"this safetensors file is damaged ({problem})", AGAIN) from None
    metadata, is_ours = unmark(texts)
    return Read(state, metadata=metadata, is_ours=is_ours)


def _explained(path: Path, kind: str, problem: Exception, allowed: frozenset[str]) -> CheckpointError:
    """Return the sentence for a file that torch's safe reader did not read."""
    if kind == ZIP and is_cut_zip(path):
        return cut_error(path)
    if devices.is_out_of_memory(problem):
        return CheckpointError(path.name, f"there is not enough memory to read it ({problem})", "Close other programs.")
    found = scan(path)
    if found.reaching_out:
        return _unsafe(path, found)
    if "TorchScript" in str(problem):
        what = "this is a TorchScript program, which holds code beside the weights"
        return CheckpointError(path.name, f"{what}; it was not loaded", f"{WEIGHTS_ONLY}, or a .safetensors file.")
    if refused := found.refused(allowed):
        return _foreign(path, found, refused)
    if kind == PICKLE and is_of_torch(path) and found.streams < STREAMS:
        return cut_error(path)
    if kind == PICKLE and found.is_complete and not is_of_torch(path):
        what = "this is a pickle of other data, not written by torch.save"
        return CheckpointError(path.name, what, f"{WEIGHTS_ONLY}.")
    if found.protocol > 2 and "Unsupported operand" in str(problem):
        what = f"it was written with pickle protocol {found.protocol}, and PyTorch's safe reader knows protocol 2"
        return CheckpointError(path.name, what, "Ask its author to save without pickle_protocol=…")
    if isinstance(problem, (EOFError, OSError)) or "EOF" in str(problem) or not found.is_complete:
        return cut_error(path) if found.names or kind == PICKLE else _no_checkpoint(path)
    first_line = str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__
    # torch's own text advises to lift the protection
    reason = "" if first_line.startswith("Weights only") else f" ({first_line})"
    return CheckpointError(path.name, f"the file is damaged{reason}", AGAIN)


def _no_checkpoint(path: Path) -> CheckpointError:
    problem = "this is a zip archive, but no checkpoint: nothing in it was written by torch.save"
    return CheckpointError(path.name, problem, "Unpack it; the weights may be a file inside.")


def _unsafe(path: Path, found: Scan) -> CheckpointError:
    problem = f"its pickle asks to call {_named(found.reaching_out)}, which no weights need; it was refused and not run"
    advice = "Do not load it in any other way. Delete it, and tell whoever offers it."
    return CheckpointError(path.name, problem, advice)


def _foreign(path: Path, found: Scan, refused: list[str]) -> CheckpointError:
    own = [name for name in refused if not name.startswith("torch.")] or refused
    where, _, what = own[0].rpartition(".")
    if found.has_module:
        problem = f"this is a whole model of class {what} (from {where}), not its weights alone"
        needs = "it is rebuilt by running code, so it was refused"
        others = f" (it also names {_named(own[1:])})" if own[1:] else ""
        advice = f"{WEIGHTS_ONLY}, and for the code of {what}. Then labkit.load(path, into={what}(…))."
        return CheckpointError(path.name, f"{problem}{others}; {needs}", advice)
    problem = f"it holds an object of {_named(own)}, which is rebuilt by running code, so it was refused"
    return CheckpointError(path.name, problem, f"{WEIGHTS_ONLY}, and for settings as plain numbers and texts.")


def _named(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
