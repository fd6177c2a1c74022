"""The same net in other number formats, memory orders, thread counts, and compiled: what this machine can do of it."""

from __future__ import annotations

import copy
import os
import platform
import shutil
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from labkit import devices
from labkit.errors import InputError, LabkitError, check_choice, check_count, listed
from labkit.inference.calls import check_batch, check_callable
from labkit.inference.int8 import check_int8, convert_to_int8
from labkit.nets import answer_of, check_ready
from labkit.profiles import current_profile
from labkit.units import format_s

COMPILERS = {"Windows": "cl", "Darwin": "clang++"}  # as torch.compile looks for them; g++ elsewhere


@dataclass(frozen=True)
class Variant:
    """One way to run a net: run maps a float32 batch to its float32 answers, or is None where sentence says why not.

    threads is what it is to be timed with, None for torch's own choice.
    """

    name: str
    sentence: str
    run: Callable[[Any], Any] | None = None
    threads: int | None = None

    def __repr__(self) -> str:
        return f"{self.name}: {'NOT HERE, ' if self.run is None else ''}{self.sentence}"


def variants(
    model: Any, examples: Any, *, names: Iterable[str] | None = None, batch: int = 1, device: Any = "cpu"
) -> tuple[Variant, ...]:
    """Return the variants of a net that are named (all, unless told otherwise), each tried once on a batch.

    model is an nn.Module, examples a float32 batch (n, …) of at least `batch` items: a compiled net is made for that
    many. The model itself stays as it is. A variant that this machine cannot run has a sentence that says why; nothing
    is raised for it. Raises InputError for unknown names, DataError for a model and examples that do not go together.

    >>> import torch
    >>> for variant in variants(torch.nn.Linear(4, 2), torch.ones(1, 4), names=["float32", "channels_last"]):
    ...     print(variant)
    float32: the net as it is, in float32 with all threads.
    channels_last: NOT HERE, it is an order of images (n, channels, height, width), and these examples have 2 axes.
    """
    names = NAMES if names is None else tuple(check_choice("names", name, NAMES) for name in listed("names", names))
    if not names:
        raise InputError("names=()", "there is nothing to try", f"Choose among {', '.join(NAMES)}.")
    target = devices.pick(device).torch_name
    given = first_of(examples, batch).to(target)
    plain = _plain(model, target)
    expected = _answer(plain, given)
    with devices.cpu_threads():  # as measure() sets them: for another number, torch would compile once more
        return tuple(_tried(name, plain, given, expected) for name in names)


def first_of(examples: Any, batch: int) -> Any:
    """Return the first items of examples as one float32 batch. Raises InputError if they are fewer, or no numbers."""
    check_count("batch", batch)
    if len(check_batch(examples)) < batch:
        raise InputError(f"{len(examples)} examples", f"a batch of {batch} needs as many", "Give more examples.")
    if not examples.is_floating_point():
        advice = "Try examples.float() / 255 for pixels."
        raise InputError(f"examples of {examples.dtype}", "variants differ in how they store real numbers", advice)
    return examples[:batch].float()


def _plain(model: Any, device: str) -> Any:
    """Return a copy of the model in float32 and eval mode on the device."""
    import torch

    if not isinstance(check_callable(model), torch.nn.Module):
        advice = "Give the net itself, not a function that calls it."
        raise InputError(f"model={model!r:.80}", "a variant is made of an nn.Module", advice)
    return copy.deepcopy(check_ready(model)).float().to(device).eval()


def _answer(model: Any, given: Any) -> Any:
    import torch

    with torch.inference_mode():
        answered = answer_of(model, given)
    if not isinstance(answered, torch.Tensor):
        raise InputError(f"an answer of type {type(answered).__name__}", "only answers in one tensor can be compared")
    return answered


def _tried(name: str, plain: Any, given: Any, expected: Any) -> Variant:
    """Return the variant if it makes and answers like the plain net, else the sentence that says what went wrong."""
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch about itself: nothing that a student could change
            made = _MAKERS[name](plain, given)
            if made.run is None:
                return made
            with torch.inference_mode():
                answered = made.run(given)
    except LabkitError as problem:
        return Variant(name, f"{problem.problem}.")
    except Exception as problem:  # compilers and kernels fail in ways of their own, and a lesson goes on
        return Variant(name, f"it failed here with {_in_short(problem)}")
    if answered.shape != expected.shape:
        return Variant(name, f"it failed here: its answer has the shape {tuple(answered.shape)}.")
    return made


def _in_short(problem: Exception) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    text = f"{type(problem).__name__}: {lines[0] if lines else 'no reason given'}"
    return text if len(text) <= 200 else f"{text[:197]}…"


# --- the variants --------------------------------------------------------------------------------------------------


def _float32(plain: Any, given: Any) -> Variant:
    return Variant("float32", "the net as it is, in float32 with all threads.", plain)


def _one_thread(plain: Any, given: Any) -> Variant:
    usable = devices.usable_cpus()
    if given.device.type != "cpu":
        return Variant("1 thread", "a GPU does the work, whatever the CPU's threads.")
    if usable == 1:
        return Variant("1 thread", "this process may use one CPU only, so it is what float32 does already.")
    return Variant("1 thread", f"float32 on one of the {usable} CPUs that this process may use.", plain, threads=1)


def _shorter(name: str) -> Callable[[Any, Any], Variant]:
    """Return the maker of a net in a shorter float: what comes in is converted in each call, and so is the answer."""

    def make(plain: Any, given: Any) -> Variant:
        safe = devices.safe_dtype(name, given.device)
        net = copy.deepcopy(plain).to(safe.dtype)
        sentence = f"weights and all in between in {name}, half the bytes of float32."
        note = f" Beware: {safe.note}." if safe.note else ""
        return Variant(name, sentence + note, lambda batch: net(batch.to(safe.dtype)).float())

    return make


def _channels_last(plain: Any, given: Any) -> Variant:
    import torch

    name = "channels_last"
    if given.ndim != 4:
        axes = f"these examples have {given.ndim} ax{'i' if given.ndim == 1 else 'e'}s"
        return Variant(name, f"it is an order of images (n, channels, height, width), and {axes}.")
    net = copy.deepcopy(plain).to(memory_format=torch.channels_last)
    sentence = "the channels of a pixel side by side in memory; the same numbers in another order."
    return Variant(name, sentence, lambda batch: net(batch.contiguous(memory_format=torch.channels_last)))


def _int8(plain: Any, given: Any) -> Variant:
    if given.device.type != "cpu":
        return Variant("int8", "these 8-bit layers are made for CPUs; a GPU needs a library such as torchao.")
    made = convert_to_int8(plain)
    layers = f"{made.converted} of {made.converted + made.left} layers with weights"
    bits = "" if check_int8() == 255 else " What comes in has 7 bits: this CPU lacks VNNI instructions."
    sentence = f"{layers} multiply whole numbers of 8 bits; what comes in is rounded anew at every call.{bits}"
    return Variant("int8", sentence, made.model)


def _compile(plain: Any, given: Any) -> Variant:
    import torch

    if current_profile().name == "quick":
        # Timed with an empty cache, torch 2.13, two cores of a shared server CPU: a net of three convolutions.
        seconds = "12 to 23 s for a net of three convolutions on two cores"
        return Variant("compile", f"left out in the quick profile: the first call compiles, which took {seconds}.")
    if given.device.type == "cpu" and (missing := _missing_compiler()):
        return Variant("compile", missing)
    net = torch.compile(copy.deepcopy(plain), dynamic=False)
    start_s = time.perf_counter()
    with torch.inference_mode():
        net(given)
    took = format_s(time.perf_counter() - start_s)
    return Variant("compile", f"torch.compile made one program for batches of {len(given)} in {took}.", net)


def _missing_compiler() -> str:
    """Return the sentence about a missing compiler for C++, or "" if there is one."""
    wanted = os.environ.get("CXX", "").strip() or COMPILERS.get(platform.system(), "g++")
    if shutil.which(wanted.split()[0]):
        return ""
    return f"torch.compile turns a net into C++ for a CPU, and needs a compiler for it: there is no {wanted} here."


_MAKERS: dict[str, Callable[[Any, Any], Variant]] = {
    "float32": _float32,
    "1 thread": _one_thread,
    "bfloat16": _shorter("bfloat16"),
    "float16": _shorter("float16"),
    "channels_last": _channels_last,
    "int8": _int8,
    "compile": _compile,
}
NAMES = tuple(_MAKERS)
