"""The calls that are timed: a model answers a batch, on any device; and the work that such a call is."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

from labkit import devices
from labkit.errors import InputError, check_count
from labkit.nets import NET_ERRORS, answer_of, check_ready, explain
from labkit.workload import CountedWork, count_work, tensors_in

Call = Callable[[], Any]


def inference_call(model: Any, example: Any, device: Any = "cpu") -> Call:
    """Return a function that answers example once on the device: what a caller of the model waits for.

    model is an nn.Module or any function of a batch, example a batch (n, …) in the host's memory. On a GPU each call
    carries the batch there and the answer back, and returns the answer that lies on the GPU. A module works in eval
    mode and float32 as it is; where that or the device has to be changed, a copy of it does. Raises InputError if model
    cannot be called or example is no batch, DeviceError for an absent device.

    >>> import torch
    >>> inference_call(torch.nn.Linear(4, 2), torch.ones(3, 4))().shape
    torch.Size([3, 2])
    """
    import torch

    batch = check_batch(example)
    target = devices.pick(device).torch_name
    ready = ready_on(model, target)
    if target == "cpu":
        return _without_gradients(ready, batch)

    @torch.inference_mode()
    def answer() -> Any:
        answered = answer_of(ready, batch.to(target))
        for part in tensors_in(answered):
            part.cpu()
        return answered

    return answer


def by_batch(model: Any, example: Any) -> Callable[[int, str], Call]:
    """Return make(batch, device), as sweep() and lesson.gpu_sweep take it: the model answers that many at once.

    The batch repeats the first item of example and lies on the device already: how it gets there is another question.

    >>> import torch
    >>> make = by_batch(torch.nn.Linear(4, 2), torch.ones(1, 4))
    >>> make(8, "cpu")().shape
    torch.Size([8, 2])
    """
    one = check_batch(example)[:1]
    check_callable(model)
    on_device = functools.cache(lambda device: ready_on(model, device))

    def make(batch: int, device: str) -> Call:
        many = one.expand(check_count("batch", batch), *one.shape[1:]).to(device).contiguous()
        return _without_gradients(on_device(device), many)

    return make


def inference_work(model: Any, example: Any) -> dict[str, Callable[[int], int]]:
    """Return the work of a call as functions of the batch: flop, bytes_moved and launches, as gpu_sweep takes them.

    Counted operator by operator with labkit.workload, on tensors without data, so that no batch is too large.

    >>> import torch
    >>> work = inference_work(torch.nn.Linear(4, 2), torch.ones(1, 4))
    >>> [work["flop"](batch) for batch in (1, 10)]  # a multiplication and an addition for each weight
    [16, 160]
    """
    make = by_batch(model, example)

    @functools.cache
    def counted(batch: int) -> CountedWork:
        return count_work(make(batch, "meta"))

    return {
        "flop": lambda batch: counted(batch).flop,
        "bytes_moved": lambda batch: counted(batch).bytes_moved,
        "launches": lambda batch: counted(batch).launches,
    }


def ready_on(model: Any, device: str) -> Any:
    """Return the model in eval mode on the device: itself if it is so already or no module, else a copy."""
    import torch

    check_callable(model)
    if not isinstance(model, torch.nn.Module):
        return model
    places = {tensor.device for tensor in [*model.parameters(), *model.buffers()]}
    check_ready(model, meta_ok=device == "meta")
    if not any(part.training for part in model.modules()) and places <= {torch.device(device)}:
        return model
    return copy.deepcopy(model).to(device).eval()


def check_callable(model: Any) -> Any:
    """Return model if it can be called, else raise InputError."""
    if not callable(model):
        advice = "Give an nn.Module, or a function that takes a batch."
        raise InputError(f"model={model!r:.80}", "a model answers when it is called", advice)
    return model


def check_batch(example: Any) -> Any:
    """Return example if it is a tensor with at least one item, else raise InputError."""
    import torch

    if not isinstance(example, torch.Tensor) or example.ndim < 1 or not len(example):
        shape = f"of shape {tuple(example.shape)}" if isinstance(example, torch.Tensor) else f"{example!r:.80}"
        advice = "Try images[:1]: the first axis counts the items."
        raise InputError(f"example {shape}", "this is no batch: a tensor of one item or more", advice)
    return example


def _without_gradients(model: Any, batch: Any) -> Call:
    import torch

    @torch.inference_mode()
    def answer() -> Any:
        try:  # written out: a function around it would take time in every call that is measured
            return model(batch)
        except NET_ERRORS as problem:
            explain(problem, model, batch)
            raise

    return answer
