"""Mixed precision that warns of nothing, and the same bits every time."""

from __future__ import annotations

import math
import os
import warnings

import pytest
import torch
from torch import nn

from labkit import devices
from labkit.errors import DeviceError, InputError, LabkitError
from labkit.training import determinism, evaluate
from labkit.training.determinism import FIXED_WORKSPACE, WORKSPACE, deterministic
from labkit.training.precision import DTYPES, Precision

from .conftest import same_weights, tiny_data, tiny_net, tiny_train

CPU = devices.pick("cpu")
GPU = devices.Device("cuda", 0, "a GPU")


# C12-04: mixed precision on a CPU: no scaler, no warning, and a loss that is a number, in all four dtypes.
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_trains_on_a_cpu_without_a_warning(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net = tiny_net()
        history = tiny_train(net, tiny_data(), epochs=2, dtype=dtype)
        accuracy = evaluate(net, tiny_data(), device="cpu", dtype=dtype)
    assert all(math.isfinite(epoch.loss) for epoch in history.epochs) and 0 <= accuracy <= 1
    assert history.throughput.dtype == dtype
    assert next(net.parameters()).dtype == (torch.float64 if dtype == "float64" else torch.float32)


# C12-04: the scaler belongs to float16 on CUDA alone.
@pytest.mark.parametrize(
    ("dtype", "device", "scaled"),
    [*((dtype, CPU, False) for dtype in DTYPES), *((dtype, GPU, dtype == "float16") for dtype in DTYPES)],
)
def test_only_float16_on_an_nvidia_gpu_is_scaled(monkeypatch, dtype, device, scaled):
    made = []
    monkeypatch.setattr(torch.amp, "GradScaler", lambda kind: made.append(kind))
    monkeypatch.setattr(torch, "autocast", lambda kind, dtype: None)
    Precision(dtype, device)
    assert made == (["cuda"] if scaled else [])


# C12-04: products run in the short dtype, the weights and the loss stay in float32.
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_autocast_computes_products_in_the_short_dtype(dtype):
    precision = Precision(dtype, CPU)
    x, linear = torch.rand(2, 3), nn.Linear(3, 4)
    with precision():
        logits = linear(x)
        loss = nn.functional.cross_entropy(logits, torch.tensor([0, 1]))
    assert logits.dtype == getattr(torch, dtype) and loss.dtype == torch.float32
    precision.backward(loss)
    assert linear.weight.grad.dtype == torch.float32


def test_a_scaled_step_changes_the_weights_as_an_unscaled_one(monkeypatch):
    """torch's scaler, made for CUDA, works on a CPU's tensors: scaling up and down again leaves the gradient."""
    of_torch = torch.amp.GradScaler
    plain, scaled = nn.Linear(2, 2), nn.Linear(2, 2)
    scaled.load_state_dict(plain.state_dict())
    for net, scaler in ((plain, None), (scaled, of_torch("cpu", init_scale=1024.0))):
        precision = Precision("float32", CPU)
        precision.scaler = scaler
        optimiser = torch.optim.SGD(net.parameters(), lr=0.5)
        precision.backward(net(torch.ones(1, 2)).square().sum())
        precision.step(optimiser)
        assert net.weight.grad is None
    assert same_weights(plain, scaled)


def test_a_dtype_that_the_device_lacks_is_replaced_with_a_note(monkeypatch):
    """Apple's GPUs have no float64."""
    precision = Precision("float64", devices.Device("mps", 0, "M2 GPU"))
    assert precision.name == "float32" and precision.weights == torch.float32
    assert precision.note == "float64 became float32: Apple GPUs have no float64"


# --- determinism -------------------------------------------------------------------------------------------------


class Putting(nn.Module):
    """A model with an operation that has no deterministic form, on a CPU neither."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 3)

    def forward(self, images):
        flat = images.flatten(1).clone()
        flat.put_(torch.tensor([0]), torch.tensor([1.0]), accumulate=False)
        return self.linear(flat)


# C12-09: an operation without a deterministic form is named, and torch's switch is put back.
def test_an_operation_without_a_deterministic_form_is_named():
    with pytest.raises(LabkitError, match="the operation put_ has no deterministic form in torch"):
        tiny_train(Putting(), tiny_data(), epochs=1, deterministic=True)
    assert not torch.are_deterministic_algorithms_enabled()
    assert tiny_train(Putting(), tiny_data(), epochs=1).complete


# C12-09: on a CPU nothing changes.
def test_on_a_cpu_determinism_changes_no_bit(monkeypatch):
    monkeypatch.delenv(WORKSPACE, raising=False)
    plain, fixed = tiny_net(), tiny_net()
    tiny_train(plain, tiny_data(), epochs=2)
    tiny_train(fixed, tiny_data(), epochs=2, deterministic=True)
    assert same_weights(plain, fixed)
    assert WORKSPACE not in os.environ


# C12-09: the variable is set before cuBLAS first multiplies; one that the reader set is left.
@pytest.mark.parametrize(("before", "after"), [(None, FIXED_WORKSPACE), (":16:8", ":16:8")])
def test_on_a_gpu_the_workspace_is_fixed(monkeypatch, before, after):
    monkeypatch.setenv(WORKSPACE, "")  # so that monkeypatch puts back what was there
    os.environ.pop(WORKSPACE)
    if before:
        os.environ[WORKSPACE] = before
    with deterministic(GPU):
        assert os.environ[WORKSPACE] == after
        assert torch.are_deterministic_algorithms_enabled() and not torch.backends.cudnn.benchmark


# C12-09: what torch says where the variable came too late becomes what the reader has to do.
def test_a_workspace_that_came_too_late_is_explained():
    said = (
        "Deterministic behavior was enabled with either `torch.use_deterministic_algorithms(True)` or "
        "`at::Context::setDeterministicAlgorithms(true)`, but this operation is not deterministic because it uses "
        "CuBLAS and you have CUDA >= 10.2. To enable deterministic behavior in this case, you must set an environment "
        "variable before running your PyTorch application: CUBLAS_WORKSPACE_CONFIG=:4096:8 or "
        "CUBLAS_WORKSPACE_CONFIG=:16:8."
    )
    with (
        pytest.raises(DeviceError, match="Restart the kernel and begin with: import os; os.environ"),
        deterministic(CPU),
    ):
        raise RuntimeError(said)


def test_other_errors_pass_through_and_the_readers_switches_are_put_back():
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = True
    try:
        with pytest.raises(RuntimeError, match="^something else$"), determinism.deterministic(CPU):
            raise RuntimeError("something else")
        assert torch.is_deterministic_algorithms_warn_only_enabled() and torch.backends.cudnn.benchmark
    finally:
        torch.use_deterministic_algorithms(False)
        torch.backends.cudnn.benchmark = False


def test_an_unknown_dtype_is_refused():
    with pytest.raises(InputError, match="dtype='int8'"):
        Precision("int8", CPU)
