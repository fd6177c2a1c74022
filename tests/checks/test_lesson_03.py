"""The references of lesson 03's exercises against PyTorch's own counter and optimiser."""

from __future__ import annotations

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from labkit import checks
from labkit.checks import NOT_YET, RIGHT


@pytest.mark.parametrize("case", checks.find("03", "conv_flop").cases, ids=str)
def test_the_flop_of_a_convolution_are_those_that_torch_counts(case: tuple[int, ...]) -> None:
    c_in, c_out, k, h, w = case
    images = torch.empty(1, c_in, h + k - 1, w + k - 1, device="meta")  # no padding: h·w places for the kernel
    with FlopCounterMode(display=False) as counter:
        torch.nn.Conv2d(c_in, c_out, k, device="meta")(images)
    assert checks.find("03", "conv_flop").reference(*case) == counter.get_total_flops()


def test_a_training_step_needs_three_times_the_forward_pass_but_for_the_first_layer() -> None:
    """The gradient of the input is a product that the first layer does without."""
    layers = [torch.nn.Linear(64, 64, bias=False) for _ in range(20)]
    images, model = torch.randn(8, 64), torch.nn.Sequential(*layers)
    with FlopCounterMode(display=False) as forward:
        model(images)
    with FlopCounterMode(display=False) as step:
        model(images).sum().backward()
    reference = checks.find("03", "training_flop").reference(forward.get_total_flops(), 1, 1)
    assert step.get_total_flops() == reference - 2 * 8 * 64 * 64


def test_the_loop_learns_as_plain_gradient_descent_by_hand() -> None:
    """Two steps worked out with autograd.grad and no optimiser."""
    exercise = checks.find("03", "train_epoch")
    case = (5, 3, 4, 0.5)
    model, batches, loss_of, _ = exercise.make_arguments(*case)
    expected = []
    for images, labels in batches:
        loss = loss_of(model(images), labels)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weights, gradient in zip(model.parameters(), gradients, strict=True):
                weights -= 0.5 * gradient
        expected.append(loss.item())
    assert exercise.outcome(exercise.reference, case) == pytest.approx(expected, rel=1e-5)


def test_each_answer_gets_a_network_of_its_own() -> None:
    """An answer that has trained the network leaves the next one a fresh one."""
    exercise = checks.find("03", "train_epoch")
    assert exercise.check(exercise.reference) == exercise.check(exercise.reference)
    assert exercise.check(exercise.reference).status == RIGHT


def test_a_training_says_under_which_settings_it_went_wrong() -> None:
    def forgets(model, batches, loss_of, optimiser) -> list[float]:
        losses = []
        for images, labels in batches:
            loss = loss_of(model(images), labels)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    result = checks.find("03", "train_epoch").check(forgets)
    assert (result.status, result.given) == (
        NOT_YET,
        "train_epoch with seed = 1, batches = 5, images = 4, learning_rate = 0.5",
    )
    assert "add up" in result.hint


def test_logits_are_shown_where_the_accuracy_is_wrong() -> None:
    result = checks.find("03", "accuracy").check(lambda logits, labels: 0.25)
    assert result.given.startswith("accuracy with logits = [[3, -3, 4], [1, 0, 2]")
    assert (float(result.expected), result.got) == (pytest.approx(1 / 6), "0.25")  # only the last row is right


def _hint(exercise: str, answer: object) -> str:
    return checks.find("03", exercise).check(answer).hint


def test_two_failures_of_one_kind_get_their_own_hints() -> None:
    """All three raise RuntimeError; only the words differ."""
    assert ".float()" in _hint("accuracy", lambda logits, labels: torch.mean(logits.argmax(1) == labels))
    assert "dimension 1" in _hint("accuracy", lambda logits, labels: (logits.argmax(0) == labels).sum())
    assert "First from logits" in _hint("accuracy", lambda logits, labels: (logits == labels).sum())


@pytest.mark.parametrize(
    ("exercise", "answer", "part"),
    [
        ("accuracy", lambda logits, labels: (logits.argmax() == labels).double().mean(), "all images at once"),
        ("accuracy", lambda logits, labels: (logits.max(1).values == labels).double().mean(), "Where it stands"),
        ("conv_flop", lambda c_in, c_out, k, h, w: c_out * k * k * h * w, "How many results"),
        ("training_flop", lambda forward_flop, images, epochs: forward_flop * images, "Forward once"),
    ],
)
def test_no_hint_fits_by_chance(exercise: str, answer: object, part: str) -> None:
    """The first case tells apart what others cannot, such as c_in = 1 or one image."""
    assert part in _hint(exercise, answer)


def test_a_call_without_its_brackets_is_hinted_at() -> None:
    def no_brackets(model, batches, loss_of, optimiser) -> list[float]:
        losses = []
        for images, labels in batches:
            optimiser.zero_grad()
            loss = loss_of(model(images), labels)
            loss.backward  # noqa: B018 — the mistake on trial
            optimiser.step  # noqa: B018
            losses.append(loss.item())
        return losses

    assert "mind the ()" in _hint("train_epoch", no_brackets)
