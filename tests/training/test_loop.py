"""train(): the same bits as a loop written by hand, whatever goes on beside the steps."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from labkit.errors import DataError, DeviceError, InputError
from labkit.training import History, evaluate, small_cnn, train
from labkit.training.randomness import epoch_order, seeded
from labkit.training.settings import one_cycle

from .conftest import STEPS, WithDropout, same_weights, tiny_data, tiny_net, tiny_train, train_by_hand, weights_of


@pytest.mark.parametrize("schedule", ["one cycle", "constant"])
def test_training_gives_the_weights_and_the_losses_of_a_loop_by_hand(schedule):
    ours, by_hand, data = tiny_net(), tiny_net(), tiny_data()
    history = tiny_train(ours, data, epochs=3, schedule=schedule, seed=4)
    sums = train_by_hand(by_hand, data, steps=3 * STEPS, epochs=3, seed=4, cycle=schedule == "one cycle")
    assert same_weights(ours, by_hand)
    assert [epoch.loss for epoch in history.epochs] == pytest.approx([loss / len(data) for loss, _ in sums])
    assert [epoch.train_accuracy for epoch in history.epochs] == [right / len(data) for _, right in sums]
    assert history.complete and not history.stopped and [epoch.number for epoch in history.epochs] == [1, 2, 3]


@pytest.mark.parametrize(
    "beside",
    [
        {"profile_phases": True},
        {"progress": True},
        {"on_epoch": repr},
        {"test": tiny_data(9)},
        {"deterministic": True},
        {"channels_last": False, "dtype": "float32"},
    ],
    ids=lambda beside: next(iter(beside)),
)
def test_what_goes_on_beside_the_steps_changes_no_bit(beside):
    plain, other = WithDropout(), WithDropout()
    tiny_train(plain, tiny_data(), epochs=2)
    tiny_train(other, tiny_data(), epochs=2, **beside)
    assert same_weights(plain, other)


def test_the_seed_decides_all_that_is_drawn_and_the_readers_generator_is_left_alone():
    nets = [WithDropout() for _ in range(3)]
    state = torch.get_rng_state()
    for net, seed in zip(nets, (1, 1, 2), strict=True):
        torch.rand(seed)  # what the reader drew before makes no difference
        tiny_train(net, tiny_data(), epochs=1, seed=seed)
    assert same_weights(nets[0], nets[1]) and not same_weights(nets[0], nets[2])
    torch.set_rng_state(state)
    tiny_train(nets[0], tiny_data(), epochs=1)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_alone():
    orders = {(seed, epoch): epoch_order(50, seed=seed, epoch=epoch) for seed in (0, 1, 2**31) for epoch in (1, 2)}
    for key, order in orders.items():
        assert order.sort().values.tolist() == list(range(50))
        assert torch.equal(order, epoch_order(50, seed=key[0], epoch=key[1]))
    assert len({tuple(order.tolist()) for order in orders.values()}) == len(orders)


def test_the_generators_of_a_gpu_are_seeded_and_restored(monkeypatch):
    """A GPU that only has a generator: train() draws there, too, where a model has dropout."""
    from labkit import devices

    states, now = [], torch.tensor([1, 2, 3], dtype=torch.uint8)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda index: now)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, index: states.append((state, index)))
    monkeypatch.setattr(torch.cuda, "manual_seed", lambda seed: states.append(seed))
    monkeypatch.setattr(torch.cuda, "device", lambda index: seeded_nothing())
    with seeded(devices.Device("cuda", 1, "a GPU"), 7):
        assert states == [7]
    assert states[1:] == [(now, 1)]


def seeded_nothing():
    import contextlib

    return contextlib.nullcontext()


def test_one_cycle_is_that_of_torch_but_for_half_a_step():
    steps, parameter = 1000, nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=1.0, total_steps=steps, pct_start=0.3, div_factor=100, final_div_factor=1
    )
    for step in range(steps):
        assert one_cycle(step / steps) == pytest.approx(optimiser.param_groups[0]["lr"], abs=0.005)
        optimiser.step()
        if step < steps - 1:
            theirs.step()


def test_a_net_learns_what_can_be_learned():
    train_images, test_images = tiny_data(300).split(0.2)
    net = small_cnn(width=4, size=4, classes=3)
    history = tiny_train(net, train_images, test=test_images, epochs=4, batch=16)
    assert history.test_accuracy > 0.9
    assert history.epochs[-1].loss < history.epochs[0].loss
    assert history.test_accuracy == evaluate(net, test_images, device="cpu")


def test_the_model_is_left_on_the_device_in_eval_mode():
    net = tiny_net()
    tiny_train(net, tiny_data(), epochs=1)
    assert not net.training


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16])
def test_any_number_of_images_will_do(count):
    history = tiny_train(tiny_net(), tiny_data(count), epochs=2)
    assert len(history.epochs) == 2 and all(math.isfinite(epoch.loss) for epoch in history.epochs)


def test_channels_last_is_another_layout_of_the_same_weights():
    plain, other = small_cnn(width=4, channels=3, size=4, classes=3), small_cnn(width=4, channels=3, size=4, classes=3)
    from labkit.datasets import synthetic_images

    data = synthetic_images(20, size=4, channels=3, classes=3)
    for net, channels_last in ((plain, False), (other, True)):
        tiny_train(net, data, epochs=1, channels_last=channels_last)
    assert other.body[3].weight.is_contiguous(memory_format=torch.channels_last)
    for one, two in zip(plain.parameters(), other.parameters(), strict=True):
        assert torch.allclose(one, two, atol=1e-3)


# C06-01: as many threads as were asked for, and afterwards as many as before.
def test_threads_are_as_asked_during_the_training_and_as_before_afterwards():
    before, seen = torch.get_num_threads(), []
    tiny_train(tiny_net(), tiny_data(), epochs=1, threads=2, on_epoch=lambda _: seen.append(torch.get_num_threads()))
    assert seen == [2] and torch.get_num_threads() == before


def test_on_epoch_gets_the_history_so_far():
    seen: list[History] = []
    tiny_train(tiny_net(), tiny_data(), epochs=3, on_epoch=seen.append)
    assert [(len(history.epochs), history.planned_epochs) for history in seen] == [(1, 3), (2, 3), (3, 3)]
    assert [history.complete for history in seen] == [False, False, True]


def test_an_error_of_on_epoch_is_passed_on_and_torch_restored():
    def fail(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tiny_train(tiny_net(), tiny_data(), epochs=1, on_epoch=fail)


def test_a_loss_that_is_no_number_is_told_and_not_hidden():
    net = tiny_net()
    with torch.no_grad():
        net.body[0].weight.fill_(float("nan"))
    history = tiny_train(net, tiny_data(), epochs=1)
    assert math.isnan(history.epochs[0].loss) and "loss nan" in repr(history)
    restored = History.from_dict(history.to_dict())
    assert math.isnan(restored.epochs[0].loss)


# --- evaluating --------------------------------------------------------------------------------------------------


class Brightness(nn.Module):
    """Class 1 for bright images, else class 0: right or wrong can be seen by eye."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, images):
        mean = images.mean(dim=(1, 2, 3)) * self.scale
        return torch.stack([1 - mean, mean], dim=1)


def bright_and_dark(labels):
    from labkit.datasets import Images

    images = torch.tensor([0.9, 0.1, 0.8, 0.2, 0.7]).reshape(5, 1, 1, 1)
    return Images(images=images, labels=torch.tensor(labels), classes=("dark", "bright"), name="walls")


@pytest.mark.parametrize(
    ("labels", "accuracy"), [([1, 0, 1, 0, 1], 1.0), ([0, 1, 0, 1, 0], 0.0), ([1, 0, 0, 1, 1], 0.6)]
)
@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_accuracy_is_the_share_of_images_with_the_right_class(labels, accuracy, batch):
    assert evaluate(Brightness(), bright_and_dark(labels), device="cpu", batch=batch) == accuracy


@pytest.mark.parametrize("training", [True, False])
def test_evaluating_changes_neither_weights_nor_mode(training):
    net = tiny_net().train(training)
    before = weights_of(net)
    evaluate(net, tiny_data(), device="cpu")
    assert net.training is training and same_weights(net, before)


# --- what makes no training --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"epochs": 2.5},
        {"batch": 0},
        {"batch": "64"},
        {"learning_rate": 0},
        {"learning_rate": float("nan")},
        {"weight_decay": -1},
        {"schedule": "linear"},
        {"dtype": "float8"},
        {"dtype": torch.float32},
        {"channels_last": 1},
        {"seed": -1},
        {"threads": 0},
        {"deterministic": "yes"},
        {"profile_phases": None},
        {"progress": 2},
        {"on_epoch": 3},
        {"checkpoint": 3},
        {"checkpoint": "net.safetensors"},
        {"checkpoint": ""},
        {"resume": True},
        {"checkpoint": "net.pt", "resume": "yes"},
        {"test": 3},
    ],
    ids=str,
)
def test_nonsense_is_refused_before_anything_is_computed(wrong):
    net = tiny_net()
    before = weights_of(net)
    with pytest.raises(InputError):
        tiny_train(net, tiny_data(), **{"epochs": 1} | wrong)
    assert same_weights(net, before) and net.training


@pytest.mark.parametrize("model", [None, "net", small_cnn, nn.ReLU()], ids=str)
def test_what_cannot_learn_is_no_model(model):
    with pytest.raises(InputError, match="model"):
        tiny_train(model, tiny_data(), epochs=1)


@pytest.mark.parametrize("data", [None, [1, 2], torch.zeros(4, 1, 4, 4)], ids=str)
def test_what_holds_no_labels_is_no_data(data):
    with pytest.raises(InputError, match="data="):
        tiny_train(tiny_net(), data, epochs=1)


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (small_cnn(size=4, channels=3, classes=3, width=1), "takes images of 3 channels. Try channels=1"),
        (small_cnn(size=8, classes=3, width=1), "takes images of 8×8. Try size=4"),
        (small_cnn(size=4, classes=2, width=1), "knows 2 classes. Try classes=3"),
    ],
    ids=["channels", "size", "classes"],
)
def test_a_model_for_other_images_is_told_so(net, said):
    for call in (lambda: tiny_train(net, tiny_data(), epochs=1), lambda: evaluate(net, tiny_data(), device="cpu")):
        with pytest.raises(DataError, match=said):
            call()


@pytest.mark.parametrize(
    ("net", "said"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(16, 2)), r"shape \(8, 2\): not one logit for each class"),
        (nn.Sequential(nn.Linear(4, 3)), r"shape \(8, 1, 4, 3\)"),
    ],
)
def test_a_model_without_a_logit_for_each_class_is_told_so(net, said):
    with pytest.raises(DataError, match=said):
        tiny_train(net, tiny_data(), epochs=1)


def test_only_auto_may_fall_back_to_the_cpu(monkeypatch):
    from labkit import devices

    cpu = devices.pick("cpu")
    monkeypatch.setattr(devices.gpus, "find", lambda: (cpu,))
    with pytest.raises(DeviceError, match="no such GPU here"):
        train(tiny_net(), tiny_data(), epochs=1, device="cuda", progress=False)
