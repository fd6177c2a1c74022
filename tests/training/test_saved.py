"""Checkpoints of a training: a break leaves no trace, and a file of something else is refused."""

from __future__ import annotations

import pytest
import torch

from labkit import checkpoints
from labkit.errors import CheckpointError
from labkit.training import small_cnn

from .conftest import STEPS, WithDropout, press_stop, same_weights, tiny_data, tiny_net, tiny_train, weights_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.pt"


def qualities(history):
    return [(epoch.number, epoch.loss, epoch.train_accuracy, epoch.test_accuracy) for epoch in history.epochs]


def test_two_epochs_and_two_more_are_four_to_the_last_bit(path):
    whole, first, second = WithDropout(), WithDropout(), WithDropout()
    options = {"schedule": "constant", "test": tiny_data(9)}
    expected = tiny_train(whole, tiny_data(), epochs=4, **options)
    tiny_train(first, tiny_data(), epochs=2, checkpoint=path, **options)
    history = tiny_train(second, tiny_data(), epochs=4, checkpoint=path, resume=True, **options)
    assert same_weights(whole, second)
    assert qualities(history) == qualities(expected) and history.complete


@pytest.mark.parametrize("step", [1, STEPS, STEPS + 2, 2 * STEPS, 4 * STEPS - 1])
def test_an_interrupted_cycle_goes_on_to_the_same_bits(monkeypatch, path, step):
    whole, first, second = WithDropout(), WithDropout(), WithDropout()
    expected = tiny_train(whole, tiny_data(), epochs=4)
    with monkeypatch.context() as patch:
        press_stop(patch, step)
        stopped = tiny_train(first, tiny_data(), epochs=4, checkpoint=path)
    assert not stopped.complete
    torch.rand(3)  # what the reader draws in between makes no difference
    history = tiny_train(second, tiny_data(), epochs=4, checkpoint=path, resume=True)
    assert same_weights(whole, second)
    assert qualities(history) == qualities(expected) and history.complete and not history.stopped


def test_a_step_that_was_broken_off_is_not_in_the_file(monkeypatch, path):
    whole, first, second = tiny_net(), tiny_net(), tiny_net()
    tiny_train(whole, tiny_data(), epochs=2)
    with monkeypatch.context() as patch:
        press_stop(patch, STEPS + 2, times=2)
        tiny_train(first, tiny_data(), epochs=2, checkpoint=path)
    assert checkpoints.load(path, device="cpu").metadata["training"]["step"] == STEPS
    tiny_train(second, tiny_data(), epochs=2, checkpoint=path, resume=True)
    assert same_weights(whole, second)


def test_the_file_is_written_after_each_epoch(path):
    steps = []

    def look(_):
        steps.append(checkpoints.load(path, device="cpu").metadata["training"]["step"])

    tiny_train(tiny_net(), tiny_data(), epochs=3, checkpoint=path, on_epoch=look)
    assert steps == [STEPS, 2 * STEPS, 3 * STEPS]


def test_the_weights_in_the_file_are_those_of_the_model(path):
    net, other = tiny_net(), tiny_net(seed=1)
    tiny_train(net, tiny_data(), epochs=1, checkpoint=path)
    checkpoints.load(path, into=other, device="cpu")
    assert same_weights(net, other)


def test_a_crash_while_writing_leaves_the_file_of_the_epoch_before(monkeypatch, path):
    def fail_the_second_time(*arguments, **options):
        monkeypatch.setattr(torch, "save", full_disk)
        return of_torch(*arguments, **options)

    def full_disk(content, target):
        of_torch(content, target)
        raise OSError(28, "No space left on device")

    of_torch = torch.save
    monkeypatch.setattr(torch, "save", fail_the_second_time)
    history = tiny_train(tiny_net(), tiny_data(), epochs=2, checkpoint=path)
    assert history.complete and "No space left" in repr(history)  # what was trained is worth more than the file
    assert checkpoints.load(path, device="cpu").metadata["training"]["step"] == STEPS
    assert list(path.parent.iterdir()) == [path]


def test_without_a_file_resume_begins_at_the_beginning(path):
    history = tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path, resume=True)
    assert history.complete and path.exists()


def test_without_resume_a_file_is_written_anew(path):
    tiny_train(tiny_net(), tiny_data(), epochs=3, checkpoint=path)
    tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path, seed=2)
    found = checkpoints.load(path, device="cpu").metadata["training"]
    assert (found["step"], found["settings"]["seed"]) == (STEPS, 2)


def test_a_training_that_was_complete_is_only_read(path):
    first, second = tiny_net(), tiny_net(seed=1)
    done = tiny_train(first, tiny_data(), epochs=2, checkpoint=path)
    again = tiny_train(second, tiny_data(), epochs=2, checkpoint=path, resume=True)
    assert same_weights(first, second) and again.epochs == done.epochs
    assert again.throughput.times_s == done.throughput.times_s


def test_the_steps_of_both_parts_are_kept_on_one_machine_only(path):
    options = {"schedule": "constant", "checkpoint": path, "resume": True}
    first = tiny_train(tiny_net(), tiny_data(), epochs=2, **options)
    both = tiny_train(tiny_net(), tiny_data(), epochs=3, **options)
    assert len(both.throughput.times_s) == 3 and both.throughput.times_s[:2] == first.throughput.times_s
    later = tiny_train(tiny_net(), tiny_data(), epochs=4, **options | {"threads": 2})
    assert len(later.throughput.times_s) == 1 and later.throughput.threads == 2


# --- files of something else -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"batch": 4}, "batch=8"),
        ({"seed": 1}, "seed=0"),
        ({"learning_rate": 0.1}, "learning_rate=0.01"),
        ({"dtype": "bfloat16"}, "dtype='float32'"),
        ({"schedule": "constant"}, "schedule='one cycle'"),
        ({"epochs": 5}, 'epochs=2. .*To add epochs later, train with schedule="constant"'),
        ({"data": tiny_data(21)}, "data=synthetic images: 22 images"),
    ],
    ids=lambda other: next(iter(other)) if isinstance(other, dict) else "",
)
def test_another_training_is_refused_by_name_and_the_model_stays_as_it_is(path, other, said):
    tiny_train(tiny_net(), tiny_data(), epochs=2, checkpoint=path)
    net = tiny_net(seed=1)
    before = weights_of(net)
    asked = {"data": tiny_data(), "epochs": 2} | other
    with pytest.raises(CheckpointError, match=f"it is of another training: {said}"):
        tiny_train(net, asked.pop("data"), checkpoint=path, resume=True, **asked)
    assert same_weights(net, before)


def test_fewer_epochs_than_were_trained_are_refused(path):
    tiny_train(tiny_net(), tiny_data(), epochs=3, checkpoint=path, schedule="constant")
    with pytest.raises(CheckpointError, match="another training: epochs=3"):
        tiny_train(tiny_net(), tiny_data(), epochs=2, checkpoint=path, resume=True, schedule="constant")


def test_the_same_images_in_another_order_are_another_data_set(path):
    data = tiny_data()
    tiny_train(tiny_net(), data.split(0.5, seed=0)[0], epochs=1, checkpoint=path)
    with pytest.raises(CheckpointError, match="another training: data="):
        tiny_train(tiny_net(), data.split(0.5, seed=1)[0], epochs=1, checkpoint=path, resume=True)


def test_another_model_is_refused_with_its_shapes(path):
    tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path)
    wider = small_cnn(width=3, size=4, classes=3)
    before = weights_of(wider)
    with pytest.raises(CheckpointError):
        tiny_train(wider, tiny_data(), epochs=1, checkpoint=path, resume=True)
    assert same_weights(wider, before)


def test_weights_without_a_training_cannot_be_resumed(path):
    checkpoints.save(path, tiny_net())
    with pytest.raises(CheckpointError, match="it holds weights, but no training to go on with"):
        tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path, resume=True)


@pytest.mark.parametrize(
    "damage", [{"step": None}, {"step": 2}, {"generators": {}}, {"history": {"label": "x"}}, {"settings": 3}]
)
def test_a_damaged_training_is_told_so(path, damage):
    tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path)
    found = checkpoints.load(path, device="cpu")
    state = found.metadata["training"] | damage
    checkpoints.save(path, found.state, optimiser=found.optimiser, metadata={"training": state})
    with pytest.raises(CheckpointError, match="its training cannot be read"):
        tiny_train(tiny_net(), tiny_data(), epochs=1, checkpoint=path, resume=True)
