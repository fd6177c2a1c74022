"""sweep(): one function measured over many values, out-of-memory points and interrupts included."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tqdm.auto import tqdm

from labkit import devices
from labkit.errors import check_kind, check_number, check_positive, check_text
from labkit.measurement import OUT_OF_MEMORY, Point, Sweep, check_functions, checked_values
from labkit.timing.measuring import measure
from labkit.units import format_bytes

HEADROOM = 0.9  # the share of the free memory that one point may ask for

OfValue = Callable[[Any], float]
Make = Callable[[Any, str], Callable[[], Any]]


def sweep(
    make: Make,
    values: Iterable[float],
    *,
    device: Any,
    parameter: str = "n",
    label: str = "",
    flop: OfValue | None = None,
    bytes_moved: OfValue | None = None,
    needs_bytes: OfValue | None = None,
    threads: OfValue | int | None = None,
    seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> Sweep:
    """Measure make(value, device)() for each value and return the points as a Sweep.

    make builds the function for one value on one device, inputs included: the same code serves every device.
    flop, bytes_moved and needs_bytes are functions of the value: the work of one call, and the memory that all inputs
    and outputs take, which is compared with the free memory before anything is allocated. threads may be a function
    of the value too. options are those of measure.

    Values are visited in a shuffled order, so that a slow drift of the machine does not look like an effect of the
    size. A point that does not fit into memory is kept as "out of memory" and the others go on. An interrupt (the
    stop button) keeps the points measured so far. Raises InputError for an empty sweep, and what measure raises.

    >>> import torch
    >>> def make(n, device):
    ...     x = torch.ones(n, device=device)
    ...     return lambda: x + x
    >>> s = sweep(make, [10, 1000], device="cpu", label="add", progress=False, min_time_s=0.001)
    >>> s.parameter, s.values
    ('n', (10, 1000))
    """
    values = checked_values(parameter, values)
    check_functions({"make": make}, flop=flop, bytes_moved=bytes_moved, needs_bytes=needs_bytes)
    parameters = options.pop("parameters", None)
    parameters = {} if parameters is None else check_kind("parameters", parameters, Mapping, 'Try {"batch": 8}.')
    label = check_text("label", label, empty_ok=True)
    target = devices.pick(device)
    points: list[Point] = []
    complete = True
    order = random.Random(check_number("seed", seed)).sample(values, len(values))
    bar = tqdm(order, desc=label or parameter, disable=not progress, leave=False)
    try:
        for value in bar:
            point_options = options | {
                "label": label or "unnamed",
                "parameters": {**parameters, parameter: value},
                "flop": flop(value) if flop else None,
                "bytes_moved": bytes_moved(value) if bytes_moved else None,
                "threads": threads(value) if callable(threads) else threads,
            }
            points.append(_measure_point(make, value, target, needs_bytes, point_options))
    except KeyboardInterrupt:
        if not points:
            raise
        complete = False
        print(f"Interrupted: {len(points)} of {len(values)} points were measured and are kept.")
    finally:
        bar.close()
    return Sweep(label=label or "unnamed", parameter=parameter, points=tuple(points), complete=complete)


def _measure_point(
    make: Make,
    value: float,
    target: devices.Device,
    needs_bytes: OfValue | None,
    options: dict[str, Any],
) -> Point:
    if needs_bytes is not None:
        wanted = check_positive("needs_bytes", needs_bytes(value), unit="bytes", zero_ok=True)
        free = devices.free_memory_bytes(target)
        if wanted > HEADROOM * free:
            detail = f"needs {format_bytes(wanted)}, {format_bytes(free)} are free"
            return Point(value=value, outcome=OUT_OF_MEMORY, detail=detail)
    detail = ""
    try:
        return Point(value=value, measurement=measure(make(value, target.torch_name), device=target, **options))
    except (MemoryError, RuntimeError) as problem:
        if not devices.is_out_of_memory(problem):
            raise
        detail = str(problem).splitlines()[0][:120] if str(problem) else type(problem).__name__
    # The except block is left before memory is given back: the exception holds the frames, and they hold the tensors.
    _give_memory_back(target)
    return Point(value=value, outcome=OUT_OF_MEMORY, detail=detail)


def _give_memory_back(target: devices.Device) -> None:
    gc.collect()
    if target.is_gpu:
        import torch

        (torch.cuda if target.kind == "cuda" else torch.mps).empty_cache()
