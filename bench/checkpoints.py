"""What labkit.load costs beside what one writes with torch, on a file of 100 MB as a GPU's owner would save it."""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench._pairs import paired
from bench._table import middle_half, row

FILE_BYTES = 100e6
EDGE = 1000  # of each layer: 25 layers of 1000 × 1000 float32 numbers are 100 MB
PAIRS = 41
MOST = 1.5
# The file lies in the system's cache, so that there is no disk to wait for, and other programs' turns do not count.
CLOCK = time.process_time


def main() -> int:
    """Print each figure beside its target; return 1 if one was missed, else 0."""
    import torch

    from labkit.checkpoints import load, make_gpu_tagged

    model = torch.nn.Sequential(*(torch.nn.Linear(EDGE, EDGE, bias=False) for _ in range(round(FILE_BYTES / 4e6))))
    with tempfile.TemporaryDirectory() as folder:
        path = make_gpu_tagged(Path(folder) / "model.pt", model)
        half = make_gpu_tagged(Path(folder) / "half.pt", {n: t.half() for n, t in model.state_dict().items()})

        def plain() -> Any:
            return torch.load(path, map_location="cpu", weights_only=True)

        def plain_into() -> Any:
            return model.load_state_dict(plain())

        def widened() -> Any:
            state = torch.load(half, map_location="cpu", weights_only=True)
            return {name: tensor.float() for name, tensor in state.items()}

        reached = [
            compare("100 MB: load(path) / torch.load", lambda: load(path, device="cpu"), plain),
            compare(
                "100 MB: load(path, into=model) / torch.load and load_state_dict",
                lambda: load(path, into=model, device="cpu"),
                plain_into,
            ),
            compare("50 MB of float16: load(path) / torch.load and float()", lambda: load(half, device="cpu"), widened),
        ]
    return 0 if all(reached) else 1


def compare(what: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> bool:
    """Print the median ratio of ours to theirs over pairs that take turns; return whether it is within the target."""
    ratios = paired(lambda: seconds(ours), lambda: seconds(theirs), lambda a, b: a / b, pairs=PAIRS)
    found = statistics.median(ratios)
    return row(what, f"{found:.2f}", f"≤ {MOST}", found <= MOST, middle_half(ratios))


def seconds(work: Callable[[], Any]) -> float:
    """Return how long work() takes; what it returned is freed outside of that."""
    gc.collect()
    start_s = CLOCK()
    kept = work()
    took_s = CLOCK() - start_s
    del kept
    return took_s


if __name__ == "__main__":
    sys.exit(main())
