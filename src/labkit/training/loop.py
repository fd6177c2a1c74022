"""train(): many steps, and what goes on beside them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn
from tqdm.auto import tqdm

from labkit import devices
from labkit.datasets import Images
from labkit.errors import CheckpointError, InputError, check_kind
from labkit.training.determinism import deterministic as deterministic_algorithms
from labkit.training.evaluation import check_fit, loss_and_accuracy
from labkit.training.history import History
from labkit.training.interrupt import Interrupt, waiting_interrupt
from labkit.training.models import check_model
from labkit.training.randomness import seeded
from labkit.training.report import Report
from labkit.training.saved import check_checkpoint, check_writable, take_up, write
from labkit.training.settings import LEARNING_RATE, WEIGHT_DECAY, Settings
from labkit.training.steps import Training
from labkit.training.watch import StepWatch

OnEpoch = Callable[[History], Any]


def train(
    model: nn.Module,
    data: Images,
    *,
    test: Images | None = None,
    epochs: int,
    batch: int = 64,
    learning_rate: float = LEARNING_RATE,
    schedule: str = "one cycle",
    weight_decay: float = WEIGHT_DECAY,
    device: Any = "auto",
    threads: int | None = None,
    dtype: str = "float32",
    channels_last: bool = False,
    seed: int = 0,
    deterministic: bool = False,
    profile_phases: bool = False,
    progress: bool = True,
    on_epoch: OnEpoch | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> History:
    """Train model on data with AdamW and cross-entropy, and return what happened; the model is changed in place.

    The order of the images depends on seed and epoch alone and is drawn on the CPU: every device sees the same.
    schedule is "one cycle" (the learning rate rises to learning_rate and falls again within epochs) or "constant".
    dtype is "float32", "float64", or "bfloat16" and "float16" through autocast. deterministic allows only operations
    that give the same bits every time.

    on_epoch is called after each epoch with the history so far, to draw a live curve; its time is not counted.
    profile_phases takes every other group of steps apart and waits for the device after each phase;
    history.profiling_cost says what that cost. An interrupt ends the training after the step at work: what was learned
    is kept in the model, and history.complete is False. At the end the model is on the device in eval mode.

    checkpoint names a file that is written after each epoch and after an interrupt; where the disk is full by then, the
    training goes on and history.notes says so. With resume=True the training goes
    on from it, where there is one: on the same CPU with as many threads to the same bits as without a break.

    Raises InputError for nonsense, DataError where data does not fit the model, DeviceError for a device that is not
    here, CheckpointError for a file of something else, LabkitError naming an operation that is not deterministic.

    >>> from labkit.datasets import digits
    >>> from labkit.training.models import small_cnn
    >>> history = train(small_cnn(width=4), digits().take(200), epochs=2, device="cpu", progress=False)
    >>> len(history.epochs), history.complete, history.images_per_s > 0
    (2, True, True)
    """
    settings = Settings(
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
        schedule=schedule,
        weight_decay=weight_decay,
        seed=seed,
        dtype=dtype,
        channels_last=channels_last,
    )
    _check(model, data, test, on_epoch, deterministic, profile_phases, progress)
    path = check_checkpoint(checkpoint, resume=resume)
    if path:
        check_writable(path)
    target = devices.pick(device)
    with ExitStack() as stack:
        threads = stack.enter_context(devices.cpu_threads(threads))
        stack.enter_context(seeded(target, settings.seed))
        if deterministic:
            stack.enter_context(deterministic_algorithms(target))
        watch = StepWatch(target, batch=settings.batch, profile=profile_phases, clock=clock)
        training = Training(model, data, settings, target, watch)
        before = take_up(path, training) if resume and path.exists() else None
        report = Report(training, threads, before)
        interrupt = stack.enter_context(waiting_interrupt())
        bar = tqdm(total=training.steps, initial=training.step, unit="step", disable=not progress, leave=False)
        return Run(training, report, test, path, on_epoch, interrupt, stack.enter_context(bar)).run()


def _check(
    model: Any, data: Any, test: Any, on_epoch: Any, deterministic: Any, profile_phases: Any, progress: Any
) -> None:
    check_model(model)
    check_fit(model, data)
    if test is not None:
        check_fit(model, test, "test")
    for name, flag in (("deterministic", deterministic), ("profile_phases", profile_phases), ("progress", progress)):
        check_kind(name, flag, bool)
    if on_epoch is not None and not callable(on_epoch):
        raise InputError(f"on_epoch={on_epoch!r}", "on_epoch is a function that takes the history so far")


@dataclass
class Run:
    """A training with all that goes on beside its steps: tests, checkpoints, the bar, the reader's interrupt."""

    training: Training
    report: Report
    test: Images | None
    path: Path | None
    on_epoch: OnEpoch | None
    interrupt: Interrupt
    bar: Any

    def run(self) -> History:
        """Train until all epochs are done or an interrupt comes, and return the history."""
        training = self.training
        try:
            while len(training.epochs) < training.settings.epochs and not self.interrupt.requested:
                self._run_epoch()
        except KeyboardInterrupt:  # a second one, or one that did not come from the reader's hand
            pass
        finally:
            training.model.eval()
        if len(training.epochs) >= training.settings.epochs:
            return self.report.history()
        where = self.report.where()
        print(f"Interrupted {where}: what was learned until then is kept in the model.")
        history = self.report.history(stopped=f"interrupted {where}")
        if training.steps_into_epoch and not training.in_step:
            self._write(history)
        return self.report.history(stopped=f"interrupted {where}")

    def _run_epoch(self) -> None:
        training, watch = self.training, self.training.watch
        training.model.train()
        batches = training.rest_of_epoch()
        watch.start_epoch()
        start_s = watch.clock()
        for which in batches:
            training.run_step(which)
            self.bar.update()
            if self.interrupt.requested:
                break
        watch.end_epoch()
        training.epoch_s += watch.clock() - start_s
        if training.steps_into_epoch == training.steps_per_epoch:
            self._finish_epoch()

    def _finish_epoch(self) -> None:
        training = self.training
        tested = (None, None)
        if self.test is not None:
            tested = loss_and_accuracy(training.model, self.test, device=training.device, precision=training.precision)
        training.finish_epoch(*tested)
        self.bar.set_postfix_str(f"loss {training.epochs[-1].loss:.3f}", refresh=False)
        self._write(self.report.history())
        if self.on_epoch:
            self.on_epoch(self.report.history())

    def _write(self, history: History) -> None:
        """Write the checkpoint, where one is wanted. A full disk is told, and is no reason to lose the training."""
        if not self.path:
            return
        try:
            write(self.path, self.training, history)
        except (CheckpointError, KeyboardInterrupt) as problem:
            why = problem.problem if isinstance(problem, CheckpointError) else "interrupted"
            note = f"the checkpoint could not be written {self.report.where()}: {why}"
            self.training.notes.append(note)
            print(f"{self.path}: {note}. The training is kept in the model.")
            if isinstance(problem, KeyboardInterrupt):
                self.interrupt.requested = True
