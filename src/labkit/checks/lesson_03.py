"""The exercises of lesson 03: accuracy, the training loop, the work of a convolution and of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from labkit.checks.exercises import Exercise

# --- accuracy ----------------------------------------------------------------------------------------------------


def _as_tensors(logits: list[list[int]], labels: list[int]) -> tuple[Any, Any]:
    import torch

    return torch.tensor(logits, dtype=torch.float32), torch.tensor(labels)


def _accuracy(logits: Any, labels: Any) -> float:
    return (logits.argmax(1) == labels).double().mean().item()


def _accuracy_by_loop(logits: Any, labels: Any) -> float:
    right = 0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        right += row.index(max(row)) == label
    return right / len(labels)


ACCURACY = Exercise(
    name="accuracy",
    task="Return the share of images, from 0 to 1, whose largest logit stands at the place of the label.",
    reference=_accuracy,
    make_arguments=_as_tensors,
    # In the first, each known wrong answer gives another share, so that a hint never fits by chance.
    cases=[
        ([[3, -3, 4], [1, 0, 2], [1, -3, -1], [2, -1, -2], [3, 2, 0], [-2, -1, 3]], [1, 0, 1, 2, 2, 2]),
        ([[1, 3, 2]], [1]),
        ([[-3, -1], [4, -2], [5, 2]], [1, 1, 0]),
        ([[-9, -7, -8], [-1, -2, -3]], [2, 1]),
        ([[0, 2], [3, 1], [5, 6], [7, 4], [1, 9], [1, 0], [2, 8]], [1, 0, 1, 0, 0, 0, 1]),
    ],
    known_wrong=[
        (
            "That counts the right ones; a share is divided by how many there are.",
            lambda logits, labels: (logits.argmax(1) == labels).sum(),
        ),
        (
            "A share lies between 0 and 1: no percent.",
            lambda logits, labels: 100 * _accuracy(logits, labels),
        ),
        (
            "That is the share of wrong ones.",
            lambda logits, labels: 1 - _accuracy(logits, labels),
        ),
        (
            "The largest, not the smallest logit is the answer of the network.",
            lambda logits, labels: _accuracy(-logits, labels),
        ),
        (
            "Each image is a row: look for the largest logit along dimension 1.",
            lambda logits, labels: (logits.argmax(0) == labels).float().mean(),
        ),
        (
            "One number for all images: the mean.",
            lambda logits, labels: logits.argmax(1) == labels,
        ),
        (
            "Where it stands, not how large it is: argmax, not max.",
            lambda logits, labels: (logits.max(1).values == labels).float().mean(),
        ),
        (
            "argmax() looks through all images at once: argmax(1) gives one place for each.",
            lambda logits, labels: (logits.argmax() == labels).float().mean(),
        ),
        (
            "The mean of True and False needs them as numbers: .float() makes them 1 and 0.",
            lambda logits, labels: (logits.argmax(1) == labels).mean(),
        ),
        (
            "First from logits to places: argmax(1). The places can be compared with the labels.",
            lambda logits, labels: logits == labels,
        ),
        (
            "max(1) gives a pair, the largest logits and their places; argmax(1) gives the places alone.",
            lambda logits, labels: logits.max(1) == labels,
        ),
        (
            "A share keeps its fraction: / and no //.",
            lambda logits, labels: (logits.argmax(1) == labels).sum() // len(labels),
        ),
    ],
    also_right=[
        _accuracy_by_loop,
        lambda logits, labels: sum(logits.argmax(dim=-1) == labels) / len(labels),
        lambda logits, labels: (logits.max(1).indices == labels).double().mean(),
    ],
    general_hint="argmax(1) gives the place of the largest logit in each row; compare it with the labels.",
)

# --- the training loop -------------------------------------------------------------------------------------------

Loop = Callable[..., list[Any]]


def _small_training(seed: int, batches: int, images: int, learning_rate: float) -> tuple[Any, ...]:
    """Return a network of one layer, seeded batches, the loss and the optimiser, all new."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Linear(3, 4)
    with torch.no_grad():
        for weights in model.parameters():
            weights.copy_(torch.randn(weights.shape, generator=generator))
    data = [
        (torch.randn(images, 3, generator=generator), torch.randint(4, (images,), generator=generator))
        for _ in range(batches)
    ]
    return model, data, torch.nn.CrossEntropyLoss(), torch.optim.SGD(model.parameters(), lr=learning_rate)


def _loop(*order: str) -> Loop:
    """Return a training loop that does these of the five steps in this order, the forward pass before the loss."""

    def train_epoch(model: Any, batches: Iterable[Any], loss_of: Any, optimiser: Any) -> list[Any]:
        losses = []
        for images, labels in batches:
            for step in order:
                if step == "forward":
                    logits = model(images)
                elif step == "loss":
                    loss = loss_of(logits, labels)
                elif step == "backward":
                    loss.backward()
                else:
                    getattr(optimiser, step)()
            losses.append(loss.item())
        return losses

    return train_epoch


_train_epoch = _loop("zero_grad", "forward", "loss", "backward", "step")


def _train_epoch_by_hand(model: Any, batches: Iterable[Any], loss_of: Any, optimiser: Any) -> list[Any]:
    """Clear the gradients without the optimiser, and keep the losses as tensors."""
    losses = []
    for images, labels in batches:
        loss = loss_of(model(images), labels)
        for weights in model.parameters():
            weights.grad = None
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    return losses


def _last_loss(model: Any, batches: Any, loss_of: Any, optimiser: Any) -> float:
    return _train_epoch(model, batches, loss_of, optimiser)[-1]


def _mean_loss(model: Any, batches: Any, loss_of: Any, optimiser: Any) -> float:
    return sum(losses := _train_epoch(model, batches, loss_of, optimiser)) / len(losses)


def _first_batch_only(model: Any, batches: Any, loss_of: Any, optimiser: Any) -> list[float]:
    return _train_epoch(model, batches[:1], loss_of, optimiser)


def _loss_after_the_step(model: Any, batches: Any, loss_of: Any, optimiser: Any) -> list[float]:
    losses = []
    for batch in batches:
        _train_epoch(model, [batch], loss_of, optimiser)
        losses.append(loss_of(model(batch[0]), batch[1]).item())
    return losses


def _list_anew(model: Any, batches: Any, loss_of: Any, optimiser: Any) -> list[float]:
    return _train_epoch(model, batches, loss_of, optimiser)[-1:]


def _swapped(model: Any, batches: Any, loss_of: Any, optimiser: Any) -> list[float]:
    return [loss_of(labels, model(images)).item() for images, labels in batches]


WEIGHTS_STAY = (
    "The weights never change. Backward makes the gradients, then step uses them; zero_grad must not come between. "
    "And each of the three is a call: mind the ()."
)

TRAIN_EPOCH = Exercise(
    name="train_epoch",
    task="Do one training step for each batch, and return the list of the losses, one for each batch.",
    reference=_train_epoch,
    make_arguments=_small_training,
    cases=[(1, 5, 4, 0.5), (2, 1, 1, 0.1), (3, 3, 7, 1.0), (4, 7, 2, 0.25)],
    known_wrong=[
        (
            "Gradients add up over the batches: clear them with zero_grad before each backward.",
            _loop("forward", "loss", "backward", "step"),
        ),
        (
            WEIGHTS_STAY,
            _loop("zero_grad", "forward", "loss", "step", "backward"),
        ),
        (
            WEIGHTS_STAY,
            _loop("forward", "loss", "backward", "zero_grad", "step"),
        ),
        (
            WEIGHTS_STAY,
            _loop("zero_grad", "forward", "loss", "backward"),
        ),
        (
            "The step comes before backward, so it uses the gradients of the batch before.",
            _loop("forward", "loss", "step", "zero_grad", "backward"),
        ),
        (
            "One step for each batch: yours makes two.",
            _loop("zero_grad", "forward", "loss", "backward", "step", "step"),
        ),
        ("That is the last loss alone; return the list of all.", _last_loss),
        ("That is the mean; return the list of the losses.", _mean_loss),
        ("The loop ended after the first batch: return stands inside of it.", _first_batch_only),
        ("Only the last loss is left: make the empty list before the loop, not in it.", _list_anew),
        ("The loss takes the logits first, then the labels.", _swapped),
        ("The loss belongs to the forward pass before the step, not to a second one after it.", _loss_after_the_step),
    ],
    also_right=[
        _loop("forward", "loss", "zero_grad", "backward", "step"),
        _loop("forward", "zero_grad", "loss", "backward", "step"),
        _loop("forward", "loss", "backward", "step", "zero_grad"),
        _train_epoch_by_hand,
    ],
    general_hint="For each batch: zero_grad, forward, loss, backward, step; then keep the loss.",
    tolerance=1e-4,
)

# --- work and time -----------------------------------------------------------------------------------------------

CONV_FLOP = Exercise(
    name="conv_flop",
    task="Return the FLOP of a convolution for one image: c_in channels to c_out, a k×k kernel, h×w results a channel.",
    reference=lambda c_in, c_out, k, h, w: 2 * c_in * c_out * k * k * h * w,
    cases=[
        (3, 16, 5, 8, 6),
        (1, 16, 3, 8, 8),
        (3, 5, 1, 7, 2),
        (64, 64, 3, 56, 56),
        (2, 1, 5, 1, 11),
        (13, 17, 7, 3, 1),
    ],
    known_wrong=[
        (
            "Each term is a multiplication and an addition: two FLOP.",
            lambda c_in, c_out, k, h, w: c_in * c_out * k * k * h * w,
        ),
        ("Each result sums over all c_in channels.", lambda c_in, c_out, k, h, w: 2 * c_out * k * k * h * w),
        ("There are c_out channels of results.", lambda c_in, c_out, k, h, w: 2 * c_in * k * k * h * w),
        ("A kernel has k·k weights for each channel.", lambda c_in, c_out, k, h, w: 2 * c_in * c_out * k * h * w),
        (
            "The kernel is applied at each of the h·w places.",
            lambda c_in, c_out, k, h, w: 2 * c_in * c_out * k * k,
        ),
        ("The results need not be square: h times w.", lambda c_in, c_out, k, h, w: 2 * c_in * c_out * k * k * h * h),
        (
            "That is the work of one result; there are c_out channels of h times w.",
            lambda c_in, c_out, k, h, w: 2 * c_in * k * k,
        ),
        (
            "That is how many results there are; each one is a sum of products.",
            lambda c_in, c_out, k, h, w: c_out * h * w,
        ),
        (
            "One addition for each multiplication: the first one adds to zero.",
            lambda c_in, c_out, k, h, w: (2 * c_in * k * k - 1) * c_out * h * w,
        ),
        (
            "One forward pass only; what backward needs is the next exercise.",
            lambda c_in, c_out, k, h, w: 6 * c_in * c_out * k * k * h * w,
        ),
        ("Sizes multiply, they do not add.", lambda c_in, c_out, k, h, w: 2 * (c_in + c_out) * k * k * h * w),
    ],
    also_right=[
        lambda c_in, c_out, k, h, w: (c_out * h * w) * (2 * c_in * k**2),
        lambda c_in, c_out, k, h, w: sum(2 * c_in * k * k * w for _ in range(h)) * c_out,
    ],
    general_hint="How many results are there, and how many FLOP does each need?",
)

TRAINING_FLOP = Exercise(
    name="training_flop",
    task="Return about how many FLOP a training needs: forward and backward, each image once an epoch.",
    reference=lambda forward_flop, images, epochs: 3 * forward_flop * images * epochs,
    cases=[(2e6, 1437, 20), (1e9, 1, 1), (3.6e9, 1_281_167, 90), (7, 3, 1), (5, 1, 11)],
    known_wrong=[
        ("That is the forward pass alone; the backward pass needs twice as much again.", lambda f, n, e: f * n * e),
        ("That is the backward pass alone; the forward pass comes on top.", lambda f, n, e: 2 * f * n * e),
        ("The backward pass makes two products for each one of the forward pass.", lambda f, n, e: 4 * f * n * e),
        ("Every image comes again in each epoch.", lambda f, n, e: 3 * f * n),
        ("That is the work for one image; there are many of them.", lambda f, n, e: 3 * f * e),
        ("That is the work for one image; there are many of them, in each epoch.", lambda f, n, e: 3 * f),
        ("Mind the brackets: forward and backward, both times the images.", lambda f, n, e: f + 2 * f * n * e),
    ],
    also_right=[
        lambda f, n, e: sum((f + 2 * f) * n for _ in range(e)),
        lambda f, n, e: e * n * f * 3.0,
    ],
    general_hint="Forward once, backward twice as much, times the images, times the epochs.",
)

EPOCHS_TO_HOURS = Exercise(
    name="epochs_to_hours",
    task="Return the hours that a training of this many images and epochs takes at images_per_s.",
    reference=lambda images, epochs, images_per_s: images * epochs / images_per_s / 3600,
    cases=[(50_000, 30, 250.0), (3600, 1, 1), (1_281_167, 90, 12.5), (1437, 20, 4000), (7200, 3, 2)],
    known_wrong=[
        ("Those are seconds; an hour has 3600 of them.", lambda n, e, rate: n * e / rate),
        ("Those are minutes; divide by 3600, not by 60.", lambda n, e, rate: n * e / rate / 60),
        ("Those are days; the question is hours.", lambda n, e, rate: n * e / rate / 86_400),
        ("Every image comes again in each epoch.", lambda n, e, rate: n / rate / 3600),
        ("More images per second take less time: divide by the rate.", lambda n, e, rate: n * e * rate / 3600),
        ("Images over images per second gives seconds: it is the other way round.", lambda n, e, rate: rate / (n * e)),
        ("Parts of an hour count, too: / and no //.", lambda n, e, rate: n * e / rate // 3600),
        ("An hour has 3600 seconds: divide, do not multiply.", lambda n, e, rate: n * e / rate * 3600),
    ],
    also_right=[
        lambda n, e, rate: n * e / (rate * 60 * 60),
        lambda n, e, rate: sum(n / rate for _ in range(e)) / 3600,
    ],
    general_hint="images · epochs is how many images pass; over the rate it gives seconds; an hour has 3600.",
)

EXERCISES = (ACCURACY, TRAIN_EPOCH, CONV_FLOP, TRAINING_FLOP, EPOCHS_TO_HOURS)
