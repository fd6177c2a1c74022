"""The steps of a training, as one would write them by hand, between marks of the clock."""

from __future__ import annotations

import functools

import torch
from torch import nn
from torch.nn import functional

from labkit import devices
from labkit.datasets import Images
from labkit.nets import answer_of
from labkit.training.evaluation import check_learning, check_logits
from labkit.training.history import Epoch
from labkit.training.precision import Precision, mover
from labkit.training.randomness import epoch_order
from labkit.training.saved import fingerprint
from labkit.training.settings import Settings, adamw
from labkit.training.watch import BACKWARD, FORWARD, OPTIMISER, TRANSFER, WAITING, StepWatch


class Training:
    """All that changes from step to step; a checkpoint holds no more than this."""

    def __init__(
        self, model: nn.Module, data: Images, settings: Settings, device: devices.Device, watch: StepWatch
    ) -> None:
        self.model, self.data, self.settings, self.device, self.watch = model, data, settings, device, watch
        self.precision = Precision(settings.dtype, device)
        layout = torch.channels_last if settings.channels_last else torch.preserve_format
        model.to(device=device.torch_name, dtype=self.precision.weights, memory_format=layout)
        self.optimiser = adamw(model, settings.learning_rate, device=device, weight_decay=settings.weight_decay)
        self.move = mover(device, self.precision, settings.channels_last)
        self.steps_per_epoch = -(-len(data) // settings.batch)
        self.steps = settings.epochs * self.steps_per_epoch
        self.step = 0  # the number of steps done
        self.in_step = False
        self.notes: list[str] = []  # what a reader of the history should know
        self.epochs: list[Epoch] = []
        self.epoch_s = 0.0
        self.loss_sum = torch.zeros((), device=device.torch_name)
        self.right = torch.zeros((), device=device.torch_name, dtype=torch.int64)

    @functools.cached_property
    def fingerprint(self) -> str:
        """What tells the data from others; it takes a moment, and only a checkpoint needs it."""
        return fingerprint(self.data)

    @property
    def steps_into_epoch(self) -> int:
        """How many steps of the epoch at work are done."""
        return self.step - len(self.epochs) * self.steps_per_epoch

    def rest_of_epoch(self) -> tuple[torch.Tensor, ...]:
        """Return the numbers of the images of each step that the epoch at work still has to do; none may be left."""
        order = epoch_order(len(self.data), seed=self.settings.seed, epoch=len(self.epochs) + 1)
        if not self.steps_into_epoch:
            self.epoch_s = 0.0
            self.loss_sum.zero_()
            self.right.zero_()
        return order.split(self.settings.batch)[self.steps_into_epoch :]

    def run_step(self, which: torch.Tensor) -> None:
        """Learn from the images with these numbers."""
        self.in_step = True
        done = self.watch.start_step()
        images, labels = self.data.images[which], self.data.labels[which]
        done(WAITING)
        images, labels = self.move(images, labels)
        done(TRANSFER)
        with self.precision():
            logits = answer_of(self.model, images)
            if not self.step:
                check_logits(logits, self.data)
            loss = functional.cross_entropy(logits, labels)
            if not self.step:
                check_learning(loss, self.model)
        done(FORWARD)
        self.precision.backward(loss)
        done(BACKWARD)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.rate_at(self.step, self.steps)
        self.precision.step(self.optimiser)
        done(OPTIMISER)
        # Summed on the device: to ask for a number here would be to wait for it.
        self.loss_sum.add_(loss.detach(), alpha=len(labels))
        self.right.add_((logits.argmax(1) == labels).sum())
        self.step += 1
        self.in_step = False
        self.watch.end_step(len(labels))

    def finish_epoch(self, test_loss: float | None, test_accuracy: float | None) -> None:
        """Add the epoch at work, all of whose steps are done, to the list."""
        epoch = Epoch(
            number=len(self.epochs) + 1,
            loss=self.loss_sum.item() / len(self.data),
            train_accuracy=self.right.item() / len(self.data),
            seconds=max(self.epoch_s, 1e-9),
            test_loss=test_loss,
            test_accuracy=test_accuracy,
        )
        self.epochs.append(epoch)
