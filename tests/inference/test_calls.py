"""What is timed is the model as it would be used, in eval mode and without gradients; and it stays as it was."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from labkit import devices
from labkit.errors import DataError, InputError
from labkit.inference import best_throughput, by_batch, inference_call, inference_work, latency, throughput


def net() -> nn.Sequential:
    """A convolution and a linear layer whose work is counted by hand below."""
    return nn.Sequential(nn.Conv2d(3, 5, 3, padding=1), nn.Flatten(), nn.Linear(5 * 4 * 4, 2))


def test_a_model_in_training_answers_in_eval_mode_and_stays_in_training() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5))
    mean = model[0].running_mean.clone()
    x = torch.randn(8, 4)
    call = inference_call(model, x)
    torch.testing.assert_close(call(), x / (1 + 1e-5) ** 0.5)  # as before any training: mean 0, variance 1
    assert torch.equal(call(), call())
    assert model.training and model[0].training
    assert torch.equal(model[0].running_mean, mean)


def test_no_gradient_is_kept() -> None:
    answered = inference_call(nn.Linear(4, 2), torch.ones(1, 4))()
    assert not answered.requires_grad and answered.is_inference()


def test_a_model_that_is_ready_is_not_copied() -> None:
    model = nn.Linear(4, 2).eval()
    call = inference_call(model, torch.ones(1, 4))
    with torch.no_grad():
        model.weight.zero_()
        model.bias.fill_(3)
    assert call().tolist() == [[3, 3]]


def test_on_another_device_the_batch_is_carried_there_and_the_answer_back(monkeypatch) -> None:
    """cpu:0 is a device that torch tells apart from cpu: it stands for a GPU here."""
    monkeypatch.setattr(devices, "pick", lambda device: SimpleNamespace(torch_name="cpu:0"))
    went = []
    to, cpu = torch.Tensor.to, torch.Tensor.cpu
    monkeypatch.setattr(torch.Tensor, "to", lambda self, *a, **k: (went.append(("to", a)), to(self, *a, **k))[1])
    monkeypatch.setattr(torch.Tensor, "cpu", lambda self: (went.append(("cpu", ())), cpu(self))[1])
    call = inference_call(lambda batch: batch + 1, torch.ones(2, 3))
    assert went == []
    assert call().tolist() == [[2, 2, 2]] * 2
    assert went == [("to", ("cpu:0",)), ("cpu", ())]


def test_batches_repeat_the_first_item_and_are_really_that_large() -> None:
    seen = []
    call = by_batch(lambda batch: seen.append(batch), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))(3, "cpu")
    call()
    assert seen[0].tolist() == [[1, 2]] * 3 and seen[0].is_contiguous()


@pytest.mark.parametrize("batch", [1, 2, 7, 100_000])
def test_work_by_hand(batch: int) -> None:
    """Each output of a convolution is 3 · 3 · 3 multiply-adds, of the linear layer 80; a multiply-add is two FLOP."""
    model = net()
    work = inference_work(model, torch.ones(1, 3, 4, 4))
    assert work["flop"](batch) == batch * 2 * (5 * 4 * 4 * 27 + 2 * 80)
    numbers = batch * 3 * 16 + 5 * 27 + 5 + batch * 80  # the convolution: image, weights, bias, result
    numbers += batch * 80 + 80 * 2 + 2 + batch * 2  # the linear layer
    assert work["bytes_moved"](batch) == 4 * numbers
    assert work["launches"](batch) == 2
    assert next(model.parameters()).device.type == "cpu"


def test_throughput_knows_items_and_flop() -> None:
    found = throughput(net(), torch.ones(1, 3, 4, 4), [1, 4], progress=False, min_time_s=0.001)
    assert (found.parameter, found.values) == ("batch", (1, 4))
    four = found.at(4)
    assert four.task.flop == 4 * 2 * (80 * 27 + 160)
    assert four.images_per_s == 4 / four.median_s
    assert best_throughput(found) in found.measurements
    assert best_throughput(found).images_per_s == max(m.images_per_s for m in found.measurements)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="batch"):
        by_batch(net(), torch.ones(1, 3, 4, 4))(0, "cpu")
    with pytest.raises(InputError, match="answers when it is called"):
        by_batch(None, torch.ones(1))
    with pytest.raises(InputError, match="no batch"):
        inference_work(net(), None)
    with pytest.raises(InputError, match="no times of a batch"):
        best_throughput(sweep_over_n())
    with pytest.raises(InputError, match="found"):
        best_throughput("sweep")


def sweep_over_n():
    from labkit.measurement import Measurement, Point, Sweep, Task

    return Sweep(
        label="add", parameter="n", points=[Point(value=1, measurement=Measurement(task=Task(label="a"), times_s=[1]))]
    )


def test_a_part_that_was_left_in_training_answers_in_eval_mode_too() -> None:
    net = nn.Sequential(nn.Dropout(0.9), nn.Identity()).eval()
    net[0].train()
    for answer in (inference_call(net, torch.ones(4, 8)), by_batch(net, torch.ones(1, 8))(4, "cpu")):
        assert torch.equal(answer(), torch.ones(4, 8))
    assert net[0].training


@pytest.mark.parametrize(
    "use",
    [
        lambda model, x: inference_call(model, x)(),
        lambda model, x: latency(model, x, calls=1, min_time_s=0.001),
        lambda model, x: throughput(model, x, [1], progress=False),
        lambda model, x: inference_work(model, x)["flop"](2),
    ],
    ids=["call", "latency", "throughput", "work"],
)
def test_a_net_that_cannot_answer_says_so_in_one_line(use) -> None:
    with pytest.raises(DataError, match=r"a batch of shape \(\d, 5\) in float32: the model Linear cannot answer it"):
        use(nn.Linear(4, 2), torch.ones(1, 5))
    with pytest.raises(InputError, match="no size yet"):
        use(nn.LazyLinear(2), torch.ones(1, 5))


def test_a_net_without_values_can_be_counted_and_not_called() -> None:
    net = nn.Linear(4, 2, device="meta")
    assert inference_work(net, torch.ones(1, 4))["flop"](10) == 2 * 10 * 4 * 2
    with pytest.raises(InputError, match="no values"):
        inference_call(net, torch.ones(1, 4))


def test_answers_of_several_tensors_come_back_from_a_gpu(monkeypatch) -> None:
    class Two(nn.Module):
        def forward(self, x):
            return {"a": x, "more": [x]}

    monkeypatch.setattr(devices, "pick", lambda device: SimpleNamespace(torch_name="cpu:0"))
    assert inference_call(Two(), torch.ones(1, 4), "cuda")().keys() == {"a", "more"}
