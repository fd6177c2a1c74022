"""run_pipeline(): a loader feeds an accelerator, and the time for which the accelerator waits is measured."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tqdm.auto import tqdm

from labkit import devices
from labkit.errors import InputError, check_choice, check_count, check_kind, check_positive, check_text, listed
from labkit.loading.accelerators import Accelerator, StandIn, Step
from labkit.loading.planning import LoaderPlan
from labkit.loading.workers import batches_of
from labkit.measurement import SOURCES, Measurement, Task
from labkit.profiles import current_profile
from labkit.timing.clocks import Clock
from labkit.units import format_count, format_s

RARELY, OFTEN = 0.05, 0.15  # shares of waiting: below the one the accelerator limits, above the other the loading does
ACCELERATOR, LOADING, NEITHER = "the accelerator", "the loading", "neither stage alone"
FEWEST_STEPS = 4
BAR_AFTER_S = 2.0  # most runs are over before a bar says anything


@dataclass(frozen=True, kw_only=True, repr=False)
class PipelineRun:
    """What an accelerator did while a loader fed it: when each step began and ended, and so how long it waited.

    steps begins with the last step of the warm-up; waiting is counted from its end on. start_s is the time until the
    first batch came, which is mostly the start of the workers and stands apart. decode_s is the median time in seconds
    that one process took to decode a batch, longer where it shares its CPU; None where the data set does not say.
    source is predicted where the accelerator is a stand-in, for its step time is stated: the waiting is real.
    """

    label: str
    batch: int
    workers: int
    steps: tuple[Step, ...]
    start_s: float
    accelerator: str
    source: str
    decode_s: float | None = None
    complete: bool = True

    def __post_init__(self) -> None:
        check_text("label", self.label)
        check_text("accelerator", self.accelerator)
        check_choice("source", self.source, SOURCES)
        check_count("batch", self.batch)
        check_positive("workers", self.workers, zero_ok=True)
        check_positive("start_s", self.start_s, unit="seconds", zero_ok=True)
        if self.decode_s is not None:
            check_positive("decode_s", self.decode_s, unit="seconds")
        steps = tuple(check_kind("a step", step, Step) for step in listed("steps", self.steps))
        if len(steps) < 2:
            raise InputError(f"{len(steps)} steps", "waiting is counted between two steps", "Let it run longer.")
        times_s = [time_s for step in steps for time_s in (step.start_s, step.end_s)]
        if times_s != sorted(times_s) or any(step.start_s == step.end_s for step in steps):
            raise InputError(f"steps={steps[:3]}…", "a step takes time, and begins once the one before has ended")
        object.__setattr__(self, "steps", steps)

    @property
    def waits_s(self) -> tuple[float, ...]:
        """For each step but the first, the seconds that the accelerator waited for its batch."""
        return tuple(later.start_s - step.end_s for step, later in itertools.pairwise(self.steps))

    @property
    def intervals_s(self) -> tuple[float, ...]:
        """The seconds from the end of one step to the end of the next: waiting and working together."""
        return tuple(later.end_s - step.end_s for step, later in itertools.pairwise(self.steps))

    @property
    def waiting_share(self) -> float:
        """The share of the time for which the accelerator waited, 0 to 1."""
        return sum(self.waits_s) / sum(self.intervals_s)

    @property
    def step_s(self) -> float:
        """The median seconds for which the accelerator works on a batch, its transfer included."""
        return statistics.median(step.end_s - step.start_s for step in self.steps[1:])

    @property
    def transfer_s(self) -> float:
        """The median seconds of a step that go to carrying the batch to the accelerator; 0 for a stand-in."""
        return statistics.median(step.transfer_s for step in self.steps[1:])

    @property
    def images_per_s(self) -> float:
        """Images per second over the whole run, warm-up left out."""
        return self.batch * len(self.intervals_s) / sum(self.intervals_s)

    @property
    def feeding_s(self) -> float | None:
        """The seconds in which the CPU could prepare a batch: decode_s, shared by the workers; None if not known."""
        return None if self.decode_s is None else self.decode_s / max(1, self.workers)

    @property
    def ideal_share(self) -> float | None:
        """The share of waiting if loading were decoding alone, shared by the workers without loss; None if unknown."""
        return None if self.feeding_s is None else max(0.0, 1 - self.step_s / self.feeding_s)

    @property
    def limited_by(self) -> str:
        """Which stage limits: "the loading", "the accelerator", or "neither stage alone"."""
        share = self.waiting_share
        return ACCELERATOR if share < RARELY else LOADING if share > OFTEN else NEITHER

    @property
    def measurement(self) -> Measurement:
        """The run as a measurement: a call is one step with its waiting; its parameters hold what the run found."""
        found = {"batch": self.batch, "workers": self.workers, "waiting_share": round(self.waiting_share, 4)}
        found |= {"step_s": self.step_s, "start_s": self.start_s, "accelerator": self.accelerator}
        return Measurement(
            task=Task(label=self.label, parameters=found | ({"decode_s": self.decode_s} if self.decode_s else {})),
            times_s=self.intervals_s,
            device_name=f"{devices.cpu_name()} feeding {self.accelerator}",
            machine=devices.machine().id,
            profile=current_profile().name,
            source=self.source,
            provenance="" if self.source == "measured" else "loading measured here beside a step of a stated time",
        )

    def __repr__(self) -> str:
        workers = f"{self.workers} worker{'' if self.workers == 1 else 's'}"
        stopped = "" if self.complete else f" Interrupted: {len(self.waits_s)} steps were measured."
        return (
            f"{self.label}, {workers}, {self.accelerator}: waits {self.waiting_share:.0%} of the time, "
            f"{format_count(self.images_per_s)} images/s, limited by {self.limited_by}. "
            f"First batch after {format_s(self.start_s)}.{stopped}"
        )


def run_pipeline(
    loader: Any,
    accelerator: StandIn | Accelerator,
    *,
    steps: int = 24,
    label: str = "pipeline",
    synchronise_each_step: bool = False,
    progress: bool = True,
    clock: Clock = time.perf_counter,
) -> PipelineRun:
    """Feed the accelerator with steps batches after a warm-up of one batch a worker, and return when it was at work.

    loader is a LoaderPlan, a torch DataLoader or any list of batches, begun anew where it ends too early. steps is
    rounded up to the same number for each worker. With synchronise_each_step, the loop waits for every step before it
    asks for the next batch, as one does that reads the loss. Its worker processes are stopped at the end, also after
    an error or an interrupt; an interrupt keeps what was measured. Raises InputError for nonsense, WorkerError where a
    worker process dies, and what the data set raises.

    >>> import torch
    >>> run = run_pipeline([torch.zeros(8, 3)], StandIn(0.001), steps=4, progress=False)
    >>> run.batch, len(run.waits_s), run.source
    (8, 4, 'predicted')
    """
    steps = check_count("steps", steps)
    if not (hasattr(accelerator, "submit") and hasattr(accelerator, "synchronise")):
        raise InputError(f"accelerator={accelerator!r}", "this takes no batches", "Try StandIn(0.02).")
    check_text("label", label)
    loader = loader.loader() if isinstance(loader, LoaderPlan) else loader
    if not hasattr(loader, "__iter__"):  # not iter(): that would start the workers
        raise InputError(f"loader={loader!r}", "this gives no batches", "Try plan_loader(dataset).")
    workers = getattr(loader, "num_workers", 0)
    warm_up = max(1, workers)
    steps = -(-max(steps, FEWEST_STEPS) // warm_up) * warm_up
    notes = _Notes(clock)
    accelerator.begin()
    bar = tqdm(total=warm_up + steps, unit="batch", desc=label, disable=not progress, leave=False, delay=BAR_AFTER_S)
    with bar, batches_of(loader) as batches:
        try:
            for batch in notes.taken(itertools.islice(batches, warm_up + steps)):
                accelerator.submit(batch)
                if synchronise_each_step:
                    accelerator.synchronise()
                bar.update()
        except KeyboardInterrupt:
            notes.complete = False
            if len(accelerator.steps()) < warm_up + FEWEST_STEPS:
                raise
            print(f"Interrupted: {len(accelerator.steps()) - warm_up} steps were measured and are kept.")
        accelerator.synchronise()
    return PipelineRun(
        label=label,
        batch=notes.images,
        workers=workers,
        steps=accelerator.steps()[warm_up - 1 :],
        start_s=notes.start_s,
        accelerator=accelerator.name,
        source=accelerator.source,
        decode_s=statistics.median(notes.decodes_s[warm_up:] or notes.decodes_s) if notes.decodes_s else None,
        complete=notes.complete,
    )


class _Notes:
    """What is noted down about the batches on their way."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.start_s = 0.0
        self.images = 1
        self.decodes_s: list[float] = []
        self.complete = True

    def taken(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Pass each batch on, with the time of the first, its images and its decoding noted."""
        asked_s = self.clock()
        for number, batch in enumerate(batches):
            if number == 0:
                self.start_s = self.clock() - asked_s
                self.images = _images_of(batch)
            decode_s = getattr(batch, "decode_s", None)
            if decode_s is not None:
                self.decodes_s.append(float(decode_s.sum()))
            yield batch


def _images_of(batch: Any) -> int:
    """Return how many images a batch holds: the length of its first tensor; 1 where there is none."""
    if hasattr(batch, "shape"):
        return max(1, int(batch.shape[0])) if len(batch.shape) else 1
    parts = list(batch.values()) if isinstance(batch, dict) else batch
    return _images_of(parts[0]) if isinstance(parts, (list, tuple)) and parts else 1
