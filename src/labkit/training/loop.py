"""train(): the loop, with nothing in it that a reader would not write by hand but the clocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from tqdm.auto import tqdm

from labkit import devices
from labkit.datasets import Images
from labkit.errors import InputError, check_kind
from labkit.training.determinism import deterministic as deterministic_algorithms
from labkit.training.evaluation import check_fit, loss_and_accuracy
from labkit.training.history import Epoch, History
from labkit.training.interrupt import Interrupt, waiting_interrupt
from labkit.training.models import check_model
from labkit.training.precision import Precision, mover
from labkit.training.randomness import epoch_order, seeded
from labkit.training.report import Report
from labkit.training.settings import LEARNING_RATE, WEIGHT_DECAY, Settings, adamw
from labkit.training.watch import BACKWARD, FORWARD, OPTIMISER, TRANSFER, WAITING, StepWatch

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
    clock: Callable[[], float] = time.perf_counter,
) -> History:
    """Train model on data with AdamW and cross-entropy, and return what happened; the model is changed in place.

    The order of the images depends on seed and epoch alone and is drawn on the CPU: every device sees the same.
    schedule is "one cycle" (the learning rate rises to learning_rate and falls again within epochs) or "constant".
    dtype is "float32", "float64", or "bfloat16" and "float16" through autocast. on_epoch is called after each epoch
    with the history so far, to draw a live curve; its time is not counted. profile_phases takes every other group of
    steps apart and synchronises for it; history.profiling_cost says what that cost. deterministic allows only
    operations that give the same bits every time. An interrupt ends the training after the step at work: what was
    learned is kept in the model, and history.complete is False. At the end the model is on the device in eval mode.

    Raises InputError for nonsense, DataError where data does not fit the model, DeviceError for a device that is not
    here, LabkitError naming an operation that is not deterministic.

    >>> from labkit.datasets import digits
    >>> from labkit.training.models import small_cnn
    >>> history = train(small_cnn(width=4), digits().take(200), epochs=2, device="cpu", progress=False)
    >>> len(history.epochs), history.complete, history.images_per_s > 0
    (2, True, True)
    """
    check_model(model)
    for name, images in (("data", data), ("test", test)):
        if images is not None or name == "data":
            check_fit(model, images, name)
    for name, flag in (("deterministic", deterministic), ("profile_phases", profile_phases), ("progress", progress)):
        check_kind(name, flag, bool)
    if on_epoch is not None and not callable(on_epoch):
        raise InputError(f"on_epoch={on_epoch!r}", "on_epoch is a function that takes the history so far")
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
    target = devices.pick(device)
    with ExitStack() as stack:
        threads = stack.enter_context(devices.cpu_threads(threads))
        stack.enter_context(seeded(target, settings.seed))
        if deterministic:
            stack.enter_context(deterministic_algorithms(target))
        interrupt = stack.enter_context(waiting_interrupt())
        watch = StepWatch(target, batch=settings.batch, profile=profile_phases, clock=clock)
        training = Training(model, data, test, settings, target, watch)
        report = Report(training, threads)
        bar = stack.enter_context(tqdm(total=training.steps, unit="step", disable=not progress, leave=False))
        return training.run(interrupt, report, bar, on_epoch)


class Training:
    """One training at work: what changes from step to step, and the step itself."""

    def __init__(
        self,
        model: nn.Module,
        data: Images,
        test: Images | None,
        settings: Settings,
        device: devices.Device,
        watch: StepWatch,
    ) -> None:
        self.model, self.data, self.test = model, data, test
        self.settings, self.device, self.watch = settings, device, watch
        self.precision = Precision(settings.dtype, device)
        layout = torch.channels_last if settings.channels_last else torch.preserve_format
        model.to(device=device.torch_name, dtype=self.precision.weights, memory_format=layout)
        self.optimiser = adamw(model, settings.learning_rate, device=device, weight_decay=settings.weight_decay)
        self.steps_per_epoch = -(-len(data) // settings.batch)
        self.steps = settings.epochs * self.steps_per_epoch
        self.step = 0  # the number of steps done
        self.epochs: list[Epoch] = []
        self.loss_sum = torch.zeros((), device=device.torch_name)
        self.right = torch.zeros((), device=device.torch_name, dtype=torch.int64)

    def run(self, interrupt: Interrupt, report: Report, bar: Any, on_epoch: OnEpoch | None) -> History:
        """Train until all epochs are done or an interrupt comes."""
        try:
            while len(self.epochs) < self.settings.epochs and not interrupt.requested:
                self._run_epoch(interrupt, bar)
                if on_epoch is not None and len(self.epochs) * self.steps_per_epoch == self.step:
                    on_epoch(report.history())
        except KeyboardInterrupt:
            interrupt.requested = True
        finally:
            self.model.eval()
        if len(self.epochs) < self.settings.epochs:
            print(f"Interrupted {report.where()}: what was learned until then is kept in the model.")
            return report.history(stopped=f"interrupted {report.where()}")
        return report.history()

    def _run_epoch(self, interrupt: Interrupt, bar: Any) -> None:
        number = len(self.epochs) + 1
        order = epoch_order(len(self.data), seed=self.settings.seed, epoch=number)
        move = mover(self.device, self.precision, self.settings.channels_last)
        self.model.train()
        self.loss_sum.zero_()
        self.right.zero_()
        self.watch.start_epoch()
        start_s = self.watch.clock()
        for which in order.split(self.settings.batch):
            self._step(which, move)
            bar.update()
            if interrupt.requested and self.step % self.steps_per_epoch:
                self.watch.end_epoch()
                return
        self.watch.end_epoch()
        self._finish_epoch(number, self.watch.clock() - start_s)
        bar.set_postfix_str(f"epoch {number}, loss {self.epochs[-1].loss:.3f}", refresh=False)

    def _step(self, which: torch.Tensor, move: Callable[..., Any]) -> None:
        done = self.watch.start_step()
        images, labels = self.data.images[which], self.data.labels[which]
        done(WAITING)
        images, labels = move(images, labels)
        done(TRANSFER)
        with self.precision():
            logits = self.model(images)
            loss = functional.cross_entropy(logits, labels)
        done(FORWARD)
        self.precision.backward(loss)
        done(BACKWARD)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate_at(self.step, self.steps)
        self.precision.step(self.optimiser)
        done(OPTIMISER)
        with torch.no_grad():  # on the device: asking for a number here would wait for it
            self.loss_sum += loss.detach() * len(labels)
            self.right += (logits.argmax(1) == labels).sum()
        self.step += 1
        self.watch.end_step(len(labels))

    def _finish_epoch(self, number: int, seconds: float) -> None:
        test_loss = test_accuracy = None
        if self.test is not None:
            test_loss, test_accuracy = loss_and_accuracy(
                self.model, self.test, device=self.device, precision=self.precision, batch=512
            )
        self.epochs.append(
            Epoch(
                number=number,
                loss=self.loss_sum.item() / len(self.data),
                train_accuracy=self.right.item() / len(self.data),
                seconds=max(seconds, 1e-9),
                test_loss=test_loss,
                test_accuracy=test_accuracy,
            )
        )
