"""What goes wrong around a training: a model that cannot learn, numbers that run away, a disk that is full."""

from __future__ import annotations

import errno
import signal

import pytest
import torch
from torch import nn

from labkit import checkpoints, files
from labkit.datasets import Images
from labkit.errors import CheckpointError, DataError, InputError
from labkit.training import evaluate, training_step, training_work
from labkit.training import loop as loop_module
from labkit.training.saved import KEY

from .conftest import STEPS, same_weights, tiny_data, tiny_net, tiny_train, weights_of


def linear(into=16, out=3):
    return nn.Sequential(nn.Flatten(), nn.Linear(into, out))


class Detached(nn.Module):
    """Its answer is cut off from its weights."""

    def __init__(self):
        super().__init__()
        self.net = linear()

    def forward(self, images):
        return self.net(images).detach()


# --- models ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda model: tiny_train(model, tiny_data(), epochs=1),
        lambda model: evaluate(model, tiny_data(), device="cpu"),
        lambda model: training_step(model, tiny_data(5), device="cpu")(),
    ],
    ids=["train", "evaluate", "training_step"],
)
def test_a_model_that_cannot_take_the_images_says_so_in_one_line(use):
    with pytest.raises(DataError, match=r"a batch of shape \(\d+, 1, 4, 4\).*Sequential.*shapes cannot be multiplied"):
        use(linear(into=15))
    with pytest.raises(DataError, match="not one logit for each class"):  # on a GPU it would end the process
        use(linear(out=2))
    with pytest.raises(InputError, match="no size yet"):
        use(nn.Sequential(nn.Flatten(), nn.LazyLinear(3)))
    with pytest.raises(InputError, match="no values"):
        use(linear().to("meta"))


def test_an_error_in_the_last_small_batch_is_told_too():
    """Batch norm cannot learn from one image."""
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16), nn.Linear(16, 3))
    with pytest.raises(DataError, match=r"shape \(1, 1, 4, 4\).*more than 1 value per channel"):
        tiny_train(model, tiny_data(17), epochs=1)


def test_a_model_that_is_cut_off_from_its_weights_is_told():
    for use in (lambda: tiny_train(Detached(), tiny_data(), epochs=1), training_step(Detached(), tiny_data(4))):
        with pytest.raises(DataError, match="does not depend on what it could learn"):
            use()


def test_a_lack_of_memory_is_no_fault_of_the_model():
    class Greedy(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = linear()

        def forward(self, images):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    with pytest.raises(torch.OutOfMemoryError):
        evaluate(Greedy(), tiny_data(), device="cpu")


def test_work_of_a_model_without_values_can_be_counted():
    assert training_work(tiny_net().to("meta"), 4).flop == training_work(tiny_net(), 4).flop


def test_each_part_keeps_its_mode_when_a_model_is_evaluated():
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(16).eval(), nn.Dropout(), nn.Linear(16, 3))
    evaluate(model, tiny_data(), device="cpu")
    assert [part.training for part in model] == [True, False, True, True] and model.training


def test_a_loss_that_runs_away_is_told_with_advice():
    history = tiny_train(tiny_net(), tiny_data(), epochs=2, learning_rate=1e30)
    assert "The loss was no finite number in epoch" in repr(history)
    assert "Try a smaller learning_rate" in repr(history)
    assert "finite" not in repr(tiny_train(tiny_net(), tiny_data(), epochs=1))


# --- checkpoints -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["folder", "file/net.pt"])
def test_a_place_that_cannot_be_written_is_told_before_the_first_step(tmp_path, place):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    net = tiny_net()
    before = weights_of(net)
    with pytest.raises(CheckpointError):
        tiny_train(net, tiny_data(), epochs=1, checkpoint=tmp_path / place)
    assert same_weights(net, before)


def test_a_disk_that_fills_up_ends_no_training_and_loses_nothing(tmp_path, monkeypatch, capsys):
    path, net, by_itself = tmp_path / "net.pt", tiny_net(), tiny_net()
    tiny_train(by_itself, tiny_data(), epochs=3)
    of_files, calls = files.replaced, []

    def full_from_the_second_on(target):
        calls.append(target)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return of_files(target)

    monkeypatch.setattr("labkit.checkpoints.saving.replaced", full_from_the_second_on)
    history = tiny_train(net, tiny_data(), epochs=3, checkpoint=path)
    assert history.complete and same_weights(net, by_itself)
    assert "could not be written after epoch 2: the file could not be written (No space left" in repr(history)
    assert "No space left on device" in capsys.readouterr().out
    assert checkpoints.load(path, device="cpu").metadata[KEY]["step"] == STEPS  # the last that could be written


def test_an_interrupt_in_the_test_of_an_epoch_can_be_resumed(tmp_path, monkeypatch):
    path, whole, first, second = tmp_path / "net.pt", tiny_net(), tiny_net(), tiny_net()
    expected = tiny_train(whole, tiny_data(), epochs=2, test=tiny_data(9))

    def pressed_twice(*args, **kwargs):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(loop_module, "loss_and_accuracy", pressed_twice)
        stopped = tiny_train(first, tiny_data(), epochs=2, test=tiny_data(9), checkpoint=path)
    assert stopped.stopped == "interrupted in epoch 1, after step 3 of 3"
    history = tiny_train(second, tiny_data(), epochs=2, test=tiny_data(9), checkpoint=path, resume=True)
    assert same_weights(whole, second) and history.complete
    assert [epoch.test_accuracy for epoch in history.epochs] == [epoch.test_accuracy for epoch in expected.epochs]


def test_an_interrupt_while_the_checkpoint_is_written_keeps_history_and_old_file(tmp_path, monkeypatch):
    path, whole, second = tmp_path / "net.pt", tiny_net(), tiny_net()
    tiny_train(whole, tiny_data(), epochs=3)
    of_torch, calls = torch.save, []

    def pressed_in_the_second(*args, **kwargs):
        calls.append(None)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        of_torch(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", pressed_in_the_second)
        history = tiny_train(tiny_net(), tiny_data(), epochs=3, checkpoint=path)
    assert len(history.epochs) == 2 and history.stopped == "interrupted after epoch 2"
    assert "could not be written after epoch 2: interrupted" in repr(history)
    assert [file.name for file in tmp_path.iterdir()] == ["net.pt"]
    tiny_train(second, tiny_data(), epochs=3, checkpoint=path, resume=True)
    assert same_weights(whole, second)


def test_other_images_with_the_same_labels_are_other_data(tmp_path):
    data = tiny_data()
    other = Images(images=1 - data.images, labels=data.labels, classes=data.classes, name=data.name, synthetic=True)
    tiny_train(tiny_net(), data, epochs=1, checkpoint=tmp_path / "net.pt")
    with pytest.raises(CheckpointError, match="of another training: data="):
        tiny_train(tiny_net(), other, epochs=1, checkpoint=tmp_path / "net.pt", resume=True)


ODD = [None, "x", [], {}, float("nan"), -1, 10**400, torch.zeros(3)]


@pytest.mark.parametrize("name", ["settings", "data", "step", "epoch_s", "loss_sum", "right", "generators", "history"])
def test_a_file_with_an_odd_value_is_refused_and_the_model_stays(tmp_path, name):
    path = tmp_path / "net.pt"
    tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path, schedule="constant")
    content = torch.load(path)
    for odd in ODD:
        if name == "loss_sum" and type(odd) in (int, float) and odd != 10**400:
            continue  # a sum of losses may be any number, and none
        content["metadata"][KEY][name], before = odd, content["metadata"][KEY][name]
        torch.save(content, path)
        content["metadata"][KEY][name] = before
        net = tiny_net(seed=7)
        weights = weights_of(net)
        with pytest.raises(CheckpointError):
            tiny_train(net, tiny_data(), epochs=1, checkpoint=path, resume=True, schedule="constant")
        assert same_weights(net, weights)


def test_an_optimiser_of_another_net_is_refused_and_the_model_stays(tmp_path):
    path, net = tmp_path / "net.pt", tiny_net(seed=7)
    tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path)
    content, weights = torch.load(path), weights_of(net)
    content["optimiser"] = torch.optim.AdamW(linear().parameters()).state_dict()
    torch.save(content, path)
    with pytest.raises(CheckpointError, match="its training cannot be read"):
        tiny_train(net, tiny_data(), epochs=1, checkpoint=path, resume=True)
    assert same_weights(net, weights)
