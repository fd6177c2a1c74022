"""Which dtypes a device has, and what is used instead."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labkit.devices import dtypes
from labkit.devices.gpus import Device
from labkit.errors import DeviceError, InputError


# C03-05: float64 input (numpy default) becomes float32 on mps, no Mac needed
@pytest.mark.parametrize(
    "given",
    [
        np.float64,
        np.dtype("float64"),
        np.ones(3),
        torch.float64,
        torch.ones(3).double(),
        "float64",
        "torch.float64",
        float,
    ],
)
def test_float64_becomes_float32_on_mps_and_says_so(given):
    for device in ("mps", "mps:0", torch.device("mps"), Device("mps", 0, "Apple M2 GPU")):
        dtype, note = dtypes.safe_dtype(given, device)
        assert dtype is torch.float32
        assert "float64 became float32" in note


def test_complex128_becomes_complex64_on_mps():
    assert dtypes.safe_dtype(np.complex128, "mps").dtype is torch.complex64


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_float64_stays_elsewhere(device):
    assert dtypes.safe_dtype(np.ones(3), device) == (torch.float64, "")


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int64", "bool"])
def test_what_mps_has_stays(name):
    assert dtypes.safe_dtype(name, "mps") == (getattr(torch, name), "")


@pytest.mark.parametrize(("dtype", "device"), [("float8_e4m3fn", "mps"), ("uint32", "cpu"), (torch.quint8, "cpu")])
def test_a_dtype_that_the_device_lacks_is_refused_with_what_it_has(dtype, device):
    with pytest.raises(DeviceError, match="It has .*float32, float16, bfloat16") as caught:
        dtypes.safe_dtype(dtype, device)
    assert ("float64" in caught.value.advice) is (device == "cpu")


@pytest.mark.parametrize("given", ["flaot32", "", 3, None, np.ones(2).astype(str), "zeros", "nn", [1.0]])
def test_what_is_no_dtype_is_refused(given):
    with pytest.raises(InputError, match="no dtype that torch knows"):
        dtypes.safe_dtype(given, "cpu")


@pytest.mark.parametrize(
    ("given", "name"),
    [(np.float16, "float16"), (int, "int64"), (bool, "bool"), (torch.half, "float16"), ("float", "float32")],
)
def test_one_name_for_each_dtype(given, name):
    assert dtypes.dtype_name(given) == name


@pytest.mark.parametrize(("capability", "emulated"), [((7, 5), True), ((8, 0), False), ((9, 0), False)])
def test_bfloat16_on_an_old_gpu_carries_a_warning(monkeypatch, capability, emulated):
    gpu = Device("cuda", 0, "Tesla T4", capability=capability)
    monkeypatch.setattr(dtypes, "find", lambda: (gpu,))
    monkeypatch.setattr(dtypes, "_has", lambda name, torch_name: True)
    assert ("emulated on Tesla T4 (compute capability" in dtypes.safe_dtype("bfloat16", "cuda").note) is emulated
    assert dtypes.safe_dtype("float16", "cuda").note == ""


# C03-05: if the fallback variable is set the timing is marked 'contains CPU fallback'
@pytest.mark.parametrize(("value", "enabled"), [(None, False), ("", False), ("0", False), ("1", True), ("2", True)])
def test_timings_with_the_fallback_on_are_marked(monkeypatch, value, enabled):
    monkeypatch.delenv("PYTORCH_ENABLE_MPS_FALLBACK", raising=False)
    if value is not None:
        monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", value)
    assert dtypes.mps_fallback_enabled() is enabled
    assert dtypes.timing_note("mps") == ("contains CPU fallback" if enabled else "")
    assert dtypes.timing_note("cpu") == dtypes.timing_note("cuda") == ""
