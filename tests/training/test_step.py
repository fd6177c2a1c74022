"""training_step(): the step of the loop, to be measured; training_work(): its work without doing it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import labkit as lab
from labkit.errors import DataError, InputError
from labkit.training import residual_net, small_cnn, training_step, training_work
from labkit.workload import count_work

from .conftest import same_weights, tiny_data, tiny_net, tiny_train, weights_of


def test_a_step_is_that_of_the_loop():
    stepped, trained, data = tiny_net(), tiny_net(), tiny_data(8)
    with lab.devices.cpu_threads(1):
        loss = training_step(stepped, data, device="cpu")()
    history = tiny_train(trained, data, epochs=1, schedule="constant", batch=8)
    for one, other in zip(stepped.parameters(), trained.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-5)  # the loop shuffles: the sums run in another order
    assert loss.item() == pytest.approx(history.epochs[0].loss, rel=1e-5)


def test_every_call_is_a_step_and_the_loss_falls():
    step = training_step(tiny_net(), 16, device="cpu")
    losses = [step().item() for _ in range(30)]
    assert losses[-1] < losses[0]


def test_it_can_be_measured_and_swept():
    def make(batch, device):
        return training_step(small_cnn(width=2), batch, device=device)

    found = lab.sweep(make, [2, 4], device="cpu", parameter="batch", threads=1, progress=False, min_time_s=0.001)
    assert found.values == (2, 4)
    assert found.at(4).images_per_s == pytest.approx(4 / found.at(4).median_s)


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
def test_dtypes(dtype):
    assert training_step(tiny_net(), 4, device="cpu", dtype=dtype)().isfinite()


def test_the_images_fit_the_model():
    assert training_step(residual_net(width=2), 3, size=9, device="cpu")().isfinite()
    with pytest.raises(DataError, match="takes images of 4×4"):
        training_step(tiny_net(), 3, size=8, device="cpu")


# --- its work ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 5])
def test_the_flop_of_linear_layers_are_those_of_a_count_by_hand(batch):
    """Each layer: one product forward, one for its weights, one for its input; but nobody asks for the images'."""

    class Net(nn.Sequential):
        channels, size, classes = 2, 3, 7

    net = Net(nn.Flatten(), nn.Linear(18, 11), nn.ReLU(), nn.Linear(11, 7))
    assert training_work(net, batch).flop == 2 * batch * (2 * 18 * 11 + 3 * 11 * 7)


@pytest.mark.parametrize("net", [small_cnn(width=3), residual_net(width=4, depth=14)], ids=lambda net: net.name)
def test_the_work_is_what_a_step_does_that_is_really_done(net):
    """torch's optimiser counts its steps with a kernel of its own, and is said to write the gradients, too."""
    step = training_step(net, 3, size=8, device="cpu")
    step()  # the first makes the moments
    done, found = count_work(step), training_work(net, 3, size=8)
    assert found.flop == done.flop
    assert done.launches - 2 <= found.launches <= done.launches
    weights_bytes = sum(weights.nbytes for weights in net.parameters())
    assert done.bytes_moved - 1.1 * weights_bytes <= found.bytes_moved <= done.bytes_moved


def test_counting_changes_nothing_and_needs_no_memory():
    net = small_cnn(width=2, size=2048, channels=3)
    before, mode = weights_of(net), net.training
    work = training_work(net, 4096)  # 200 GB of images
    first = 2 * 9 * 3 * 2 * 2048**2
    forward = first + 2 * 9 * 2 * 4 * 2048**2 + 2 * 9 * 4 * 8 * 1024**2 + 2 * 8 * 512**2 * 10
    assert work.flop == 4096 * (3 * forward - first) and same_weights(net, before) and net.training is mode
    assert next(net.parameters()).device.type == "cpu"


@pytest.mark.parametrize(
    "call",
    [
        lambda: training_step(None, 4),
        lambda: training_step(tiny_net(), 0),
        lambda: training_step(tiny_net(), 2.5),
        lambda: training_step(tiny_net(), "64"),
        lambda: training_step(tiny_net(), 4, dtype="int8"),
        lambda: training_step(tiny_net(), 4, channels_last="yes"),
        lambda: training_step(residual_net(width=2), 4, size=0),
        lambda: training_step(nn.Linear(4, 3), 4),
        lambda: training_work(None, 4),
        lambda: training_work(tiny_net(), 0),
        lambda: training_work(residual_net(width=2), 4, size=-1),
        lambda: training_work(nn.Linear(4, 3), 4),
    ],
)
def test_nonsense_is_refused(call):
    with pytest.raises(InputError):
        call()


def test_a_model_that_does_not_say_its_images_can_be_given_some():
    with pytest.raises(InputError, match="Pass the images instead"):
        training_step(nn.Sequential(nn.Flatten(), nn.Linear(16, 3)), 4, device="cpu")
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 3))
    assert training_step(net, tiny_data(5), device="cpu")().isfinite()
