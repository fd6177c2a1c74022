"""What a call does, counted while it runs: FLOP, bytes and launches, from which a GPU's time can be predicted.

The model: every operator reads each of its inputs once and writes each of its outputs once, as PyTorch does when it
runs one operator after the other. Caches make it less, and kernels that go over their data twice make it more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from labkit.errors import InputError

# Operators that give out memory without touching it: no kernel starts.
ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")
# Operators that only ask about a tensor, or hand out what it holds already.
BOOKKEEPING = ("detach", "lift_fresh", "is_pinned", "is_same_size", "set_", "record_stream", "_unsafe_view")


@dataclass(frozen=True)
class CountedWork:
    """What one call does: FLOP as torch counts them, bytes read and written, and operators that start a kernel."""

    flop: int
    bytes_moved: int
    launches: int

    def as_work(self) -> dict[str, int]:
        """Return the three as the arguments of lesson.gpu_measure and of labkit.prediction."""
        return {"flop": self.flop, "bytes_moved": self.bytes_moved, "launches": self.launches}


def count_work(fn: Callable[[], Any]) -> CountedWork:
    """Call fn once and return its work: FLOP, bytes read and written by its operators, and launches.

    FLOP are those that torch.utils.flop_counter knows: of products and convolutions, a multiply-add as two. With
    tensors on the device "meta" nothing is computed, so that work too large for this machine can be counted, too. A
    GPU may start several kernels for one operator, and its optimisers one for many tensors where foreach is used.
    Raises InputError if fn cannot be called or no operator of torch ran in it; what fn raises is passed on.

    >>> import torch
    >>> a = torch.ones(8, 16)
    >>> count_work(lambda: a @ a.T)
    CountedWork(flop=2048, bytes_moved=1280, launches=1)
    """
    if not callable(fn):
        raise InputError(
            f"fn={fn!r:.80}", "count_work calls a function", "Wrap the expression: count_work(lambda: a @ b)."
        )
    from torch.utils.flop_counter import FlopCounterMode

    traffic = _traffic_counter()
    with FlopCounterMode(display=False, custom_mapping=_more_formulas()) as counter, traffic:
        fn()
    if not traffic.launches:
        raise InputError(
            f"fn={fn!r:.80}", "no operator of torch ran in this call", "Count a call that computes with tensors."
        )
    return CountedWork(int(counter.get_total_flops()), traffic.bytes_moved, traffic.launches)


def _more_formulas() -> dict[Any, Callable[..., int]]:
    """Return formulas that torch's counter lacks: it counts attention by the kernel of CPUs as 0 FLOP."""
    import torch
    from torch.utils.flop_counter import sdpa_flop_count

    def attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
        return sdpa_flop_count(query, key, value)

    kernel = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
    return {} if kernel is None else {kernel: attention}


def _traffic_counter() -> Any:
    """Return a dispatch mode that counts bytes and launches. Its class needs torch, which loads only here."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Traffic(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.bytes_moved = self.launches = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            name = func.overloadpacket.__name__
            written = list(_written(func, args, kwargs or {}, result))
            if written and not func.is_view and name not in ALLOCATIONS + BOOKKEEPING:
                read = tensors_in([*args, *(kwargs or {}).values()])
                self.launches += 1
                self.bytes_moved += sum(map(_touched_bytes, [*read, *written]))
            return result

    return Traffic()


def _written(func: Any, args: Any, kwargs: Any, result: Any) -> Iterator[Any]:
    """Yield the tensors that an operator wrote: arguments that its schema marks so, and results of their own."""
    schema = func._schema
    given = {argument.name: value for argument, value in zip(schema.arguments, args, strict=False)} | kwargs
    changed = [given.get(a.name) for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write]
    yield from tensors_in(changed)
    results = result if len(schema.returns) > 1 else [result]
    yield from tensors_in([value for value, r in zip(results, schema.returns, strict=False) if r.alias_info is None])


def tensors_in(found: Any) -> Iterator[Any]:
    """Yield the tensors in found: found itself, or those in nested lists, tuples, sets and mappings.

    >>> import torch
    >>> len(list(tensors_in({"a": [torch.ones(1), 3], "b": torch.ones(2)})))
    2
    """
    import torch

    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, (list, tuple, set, Mapping)):
        for part in found.values() if isinstance(found, Mapping) else found:
            yield from tensors_in(part)


def _touched_bytes(tensor: Any) -> int:
    """Return the bytes of the elements that a tensor has in memory: an expanded dimension, of stride 0, has one."""
    import torch

    if tensor.is_nested or tensor.layout != torch.strided:
        return sum(part.numel() * part.element_size() for part in _parts(tensor))
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= size if stride or not size else 1
    return elements * tensor.element_size()


def _parts(tensor: Any) -> list[Any]:
    """Return the tensors that a sparse or nested one is made of: its values and, of a sparse one, their places."""
    import torch

    if tensor.is_nested:
        return [tensor.values()]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    rows = tensor.layout in (torch.sparse_csr, torch.sparse_bsr)
    places = (tensor.crow_indices, tensor.col_indices) if rows else (tensor.ccol_indices, tensor.row_indices)
    return [place() for place in places] + [tensor.values()]
