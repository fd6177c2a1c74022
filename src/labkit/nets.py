"""Nets of any origin: whether they can compute at all, what they answer, and a mode that is given back afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labkit import devices
from labkit.errors import DataError, InputError, LabkitError

if TYPE_CHECKING:
    import torch

NET_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)


def check_ready(model: Any, *, meta_ok: bool = False) -> Any:
    """Return model if all its weights have a shape and values (what is no module passes), else raise InputError.

    meta_ok lets a model pass that lies on torch's meta device: its work can be counted.

    >>> import torch
    >>> check_ready(torch.nn.Linear(2, 1))
    Linear(in_features=2, out_features=1, bias=True)
    """
    import torch

    if not isinstance(model, torch.nn.Module):
        return model
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            advice = "Call the model once with a batch, model(images[:2]): that settles the size."
            raise InputError(type(model).__name__, f"{name!r} has no size yet, as of a Lazy layer", advice)
        if tensor.is_meta and not meta_ok:
            advice = "Build the model on a CPU or GPU, not under torch.device('meta')."
            raise InputError(type(model).__name__, f"{name!r} has a shape and no values: it lies on 'meta'", advice)
    return model


def answer_of(model: Any, batch: torch.Tensor) -> Any:
    """Return model(batch). Raises DataError with the net's own reason where it cannot answer such a batch.

    >>> import torch
    >>> answer_of(torch.nn.Linear(2, 1), torch.ones(4, 3))
    Traceback (most recent call last):
        ...
    labkit.errors.DataError: a batch of shape (4, 3) in float32: the model Linear cannot answer it (mat1 and mat2 ...
    """
    try:
        return model(batch)
    except NET_ERRORS as problem:
        explain(problem, model, batch)
        raise


def explain(problem: Exception, model: Any, batch: torch.Tensor) -> None:
    """Raise a DataError with the net's own reason, unless problem says nothing about the net: no memory, no permit."""
    if isinstance(problem, LabkitError) or devices.is_out_of_memory(problem) or "determinis" in str(problem):
        return
    reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")
    given = f"a batch of shape {tuple(batch.shape)} in {str(batch.dtype).removeprefix('torch.')}"
    advice = "model(batch) alone shows the line in the model where it ends."
    raise DataError(given, f"the model {type(model).__name__} cannot answer it ({reason})", advice) from problem


@contextmanager
def evaluating(model: torch.nn.Module) -> Iterator[None]:
    """Run a block with model in eval mode, and give every part of it the mode back that it had.

    >>> import torch
    >>> net = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Dropout().eval())
    >>> with evaluating(net):
    ...     print(net[0].training)
    False
    >>> [part.training for part in net]
    [True, False]
    """
    before = {part: part.training for part in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for part, mode in before.items():
            part.training = mode
