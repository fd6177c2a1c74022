"""What the loader helper costs: a planned loader, and a whole pipeline run, against torch's own DataLoader."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from bench._pairs import paired
from bench._table import middle_half, row

MOST = 1.02
BATCH = 16
MEGAPIXELS = 0.05
# By the number of workers. Without any, all is done by one thread, and the time that it was given is compared, in many
# short pairs: other programs have little part in that. With workers only the wall clock will do, and their batches come
# in bursts, so that an epoch must have many.
CLOCKS = {0: time.thread_time, 2: time.perf_counter}
IMAGES = {0: 96, 2: 480}
# Where the data of a process happens to lie makes one side some percent slower for as long as it lives: so the pairs
# are taken in several processes.
PROCESSES = 9
PAIRS = {0: 15, 2: 5}
# glibc hands large blocks back to the system or keeps them, depending on where they happen to lie, and that alone makes
# a loader a tenth faster or slower for as long as the process lives. With a fixed threshold all come from the system.
FIXED_THRESHOLD = {"MALLOC_MMAP_THRESHOLD_": "131072"}


def main() -> int:
    """Print each figure beside its target; return 1 if one was missed, else 0."""
    found = [ratios_of_a_process() for _ in range(PROCESSES)]
    reached = []
    for what in found[0]:
        ratios = [ratio for one in found for ratio in one[what]]
        median = statistics.median(ratios)
        reached.append(row(what, f"{median:.3f}", f"≤ {MOST}", median <= MOST, middle_half(ratios)))
    return 0 if all(reached) else 1


def ratios_of_a_process() -> dict[str, list[float]]:
    """Return the ratios of all cases, taken in a process of their own."""
    command = [sys.executable, "-c", "from bench.loading import print_ratios; print_ratios()"]
    done = subprocess.run(command, env=os.environ | FIXED_THRESHOLD, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def print_ratios() -> None:
    """Print, as JSON, the ratios of each case: an epoch over that of a plain loader of the same settings."""
    found = {}
    for workers in CLOCKS:
        for run in (planned_epoch, pipeline_epoch):
            # run_pipeline starts its workers and stops them: beside it, the plain loader does so too.
            plain = plain_epoch(workers, persistent=run is planned_epoch)
            what = f"{run.__doc__.splitlines()[0].removesuffix('.')}, {workers} workers: over a DataLoader"
            ratios = paired(run(workers), plain, lambda ours_s, plain_s: ours_s / plain_s, pairs=PAIRS[workers])
            found[what] = ratios
    print(json.dumps(found))


@functools.cache
def photos(workers: int):
    """The data set of all, one and the same for both sides: photos that take under a millisecond each."""
    from labkit.loading import JpegImages

    return JpegImages(IMAGES[workers], megapixels=MEGAPIXELS)


def plain_epoch(workers: int, *, persistent: bool) -> Callable[[], float]:
    """Return a function that gives the seconds of an epoch of torch's own loader."""
    from torch.utils.data import DataLoader

    options = {"persistent_workers": persistent, "prefetch_factor": 2} if workers else {}
    loader = DataLoader(photos(workers), batch_size=BATCH, shuffle=True, drop_last=True, num_workers=workers, **options)
    return lambda: seconds_of(loader, workers)


def planned_epoch(workers: int) -> Callable[[], float]:
    """A planned loader."""
    from labkit.loading import plan_loader

    loader = plan_loader(photos(workers), batch=BATCH, workers=workers, device="cpu", more_than_cpus=True).loader()
    return lambda: seconds_of(loader, workers)


def pipeline_epoch(workers: int) -> Callable[[], float]:
    """run_pipeline."""
    from labkit.loading import StandIn, plan_loader, run_pipeline

    plan = plan_loader(photos(workers), batch=BATCH, workers=workers, device="cpu", more_than_cpus=True)
    steps = IMAGES[workers] // BATCH - max(1, workers)

    def seconds() -> float:
        gpu = StandIn(1e-9, clock=CLOCKS[workers])
        return sum(run_pipeline(plan, gpu, steps=steps, progress=False).intervals_s)

    return seconds


def seconds_of(loader, workers: int) -> float:
    """Return the seconds of an epoch without its first batches, for which workers may have to start, nor their end."""
    batches, warm_up = iter(loader), max(1, workers)
    for _ in range(warm_up):
        next(batches)
    began_s = CLOCKS[workers]()
    for _ in range(len(loader) - warm_up):
        next(batches)
    took_s = CLOCKS[workers]() - began_s
    next(batches, None)  # here workers that do not persist are stopped
    return took_s


if __name__ == "__main__":
    sys.exit(main())
