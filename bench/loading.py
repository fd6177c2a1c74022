"""What the loader helper costs: a planned loader, and a whole pipeline run, against torch's own DataLoader."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

from bench._pairs import paired
from bench._table import middle_half, row

MOST = 1.02
PAIRS = 101  # many short ones: what another program takes from one of a pair, it takes from few
BATCH = 16
IMAGES = 96
MEGAPIXELS = 0.05
WORKERS = (0, 2)
# Without workers all is done by one thread, and the time that it was given is compared: other programs have no part in
# that. With workers only the wall clock will do.
CLOCKS = {0: time.thread_time, 2: time.perf_counter}


def main() -> int:
    """Print each figure beside its target; return 1 if one was missed, else 0."""
    reached = [over_plain(workers, run) for workers in WORKERS for run in (planned_epoch, pipeline_epoch)]
    return 0 if all(reached) else 1


def over_plain(workers: int, run: Callable[[int], Callable[[], float]]) -> bool:
    """Compare the seconds of an epoch with those of a plain loader of the same settings, in pairs that take turns."""
    # run_pipeline starts its workers and stops them: beside it, the plain loader does so too.
    plain = plain_epoch(workers, persistent=run is planned_epoch)
    ratios = paired(run(workers), plain, lambda ours_s, plain_s: ours_s / plain_s, pairs=PAIRS)
    found = statistics.median(ratios)
    what = f"{run.__doc__.splitlines()[0].removesuffix('.')}, {workers} workers: over a DataLoader"
    return row(what, f"{found:.3f}", f"≤ {MOST}", found <= MOST, middle_half(ratios))


def photos():
    """The data set of all: photos that take under a millisecond each."""
    from labkit.loading import JpegImages

    return JpegImages(IMAGES, megapixels=MEGAPIXELS)


def plain_epoch(workers: int, *, persistent: bool) -> Callable[[], float]:
    """Return a function that gives the seconds of an epoch of torch's own loader."""
    from torch.utils.data import DataLoader

    options = {"persistent_workers": persistent, "prefetch_factor": 2} if workers else {}
    loader = DataLoader(photos(), batch_size=BATCH, shuffle=True, drop_last=True, num_workers=workers, **options)
    return lambda: seconds_of(loader, workers)


def planned_epoch(workers: int) -> Callable[[], float]:
    """A planned loader."""
    from labkit.loading import plan_loader

    loader = plan_loader(photos(), batch=BATCH, workers=workers, device="cpu", more_than_cpus=True).loader()
    return lambda: seconds_of(loader, workers)


def pipeline_epoch(workers: int) -> Callable[[], float]:
    """run_pipeline."""
    from labkit.loading import StandIn, plan_loader, run_pipeline

    plan = plan_loader(photos(), batch=BATCH, workers=workers, device="cpu", more_than_cpus=True)
    steps = IMAGES // BATCH - max(1, workers)

    def seconds() -> float:
        gpu = StandIn(1e-9, clock=CLOCKS[workers])
        return sum(run_pipeline(plan, gpu, steps=steps, progress=False).intervals_s)

    return seconds


def seconds_of(loader, workers: int) -> float:
    """Return the seconds of an epoch without its first batches, for which workers may have to start."""
    batches = iter(loader)
    for _ in range(max(1, workers)):
        next(batches)
    began_s = CLOCKS[workers]()
    for _ in batches:
        pass
    return CLOCKS[workers]() - began_s


if __name__ == "__main__":
    sys.exit(main())
