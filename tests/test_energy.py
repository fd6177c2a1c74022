"""Energy from counters that a test writes, and from power times time."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from labkit import energy as energy_module
from labkit.devices import Device
from labkit.energy import Energy, energy_meter
from labkit.errors import DeviceError, InputError
from labkit.hardware import gpu, prediction_model


def ticks(*seconds: float):
    """A clock that shows these readings, one after the other."""
    return iter(seconds).__next__


def package(folder: Path, number: int, microjoules: int, *, name: str = "", most: int = 10**12) -> Path:
    """Write the files of one package's counter, as Linux shows them."""
    counter = folder / f"intel-rapl:{number}"
    counter.mkdir(parents=True)
    (counter / "name").write_text(f"{name or f'package-{number}'}\n")
    (counter / "energy_uj").write_text(f"{microjoules}\n")
    (counter / "max_energy_range_uj").write_text(f"{most}\n")
    return counter


def test_the_counters_of_both_packages_are_added(tmp_path) -> None:
    first, second = package(tmp_path, 0, 5_000_000), package(tmp_path, 1, 7_000_000)
    package(tmp_path, 2, 0, name="psys")  # counts the packages once more
    with energy_meter(powercap=tmp_path, clock=ticks(10.0, 13.0)) as meter:
        (first / "energy_uj").write_text("25000000")
        (second / "energy_uj").write_text("17000000")
        (tmp_path / "intel-rapl:2" / "energy_uj").write_text("99000000")
    assert meter.energy == Energy(30.0, 30.0, 30.0, 3.0, "measured", "counter of the CPU package")
    assert str(meter.energy) == "30 J in 3 s (measured; counter of the CPU package)"


def test_a_counter_that_started_anew_is_carried_over(tmp_path) -> None:
    counter = package(tmp_path, 0, 90_000_000, most=100_000_000)
    with energy_meter(powercap=tmp_path, clock=ticks(0.0, 1.0)) as meter:
        (counter / "energy_uj").write_text("15000000")
    assert meter.energy.joules == pytest.approx(25.0)


# C12-07
def test_an_unreadable_counter_gives_an_estimate_that_names_its_tdp(tmp_path) -> None:
    counter = package(tmp_path, 0, 5_000_000)
    (counter / "energy_uj").unlink()
    (counter / "energy_uj").mkdir()  # whoever the test runs as, reading this fails
    with energy_meter(tdp_w=65, powercap=tmp_path, clock=ticks(0.0, 60.0)) as meter:
        pass
    found = meter.energy
    assert (found.joules, found.source) == (65 * 60, "predicted")
    assert found.basis == "estimate: TDP × time, TDP 65 W (given)"
    assert not {"sudo", "chmod"} & set(str(found).split())


# C12-07
def test_without_any_counter_the_typical_range_of_tdp_is_shown(tmp_path) -> None:
    with energy_meter(powercap=tmp_path / "nowhere", clock=ticks(0.0, 100.0)) as meter:
        pass
    typical = prediction_model().cpu_tdp_w
    found = meter.energy
    assert (found.low_j, found.joules, found.high_j) == (100 * typical.low, 100 * typical.value, 100 * typical.high)
    assert f"TDP {typical.value:g} W (typical)" in str(found)
    assert "between" in str(found)


# C12-07
def test_a_counter_that_becomes_unreadable_while_the_work_runs(tmp_path) -> None:
    counter = package(tmp_path, 0, 5_000_000)
    with energy_meter(tdp_w=10, powercap=tmp_path, clock=ticks(0.0, 2.0)) as meter:
        (counter / "energy_uj").write_text("")
    assert (meter.energy.source, meter.energy.joules) == ("predicted", 20.0)


@pytest.fixture
def gpu_work(monkeypatch):
    """Let meters of a GPU run here: nothing to wait for, and an NVML that shows the given millijoules."""

    def prepare(*millijoules: int | Exception):
        error = type("NVMLError", (Exception,), {})
        readings = iter(millijoules)

        def read(handle):
            assert handle == "handle of GPU-1234"
            reading = next(readings)
            if reading is None:
                raise error("not supported")
            return reading

        nvml = SimpleNamespace(
            NVMLError=error,
            nvmlInit=lambda: None,
            nvmlDeviceGetHandleByUUID=lambda uuid: f"handle of {uuid}",
            nvmlDeviceGetTotalEnergyConsumption=read,
        )
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        import torch

        monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(uuid="1234"))

    monkeypatch.setattr(energy_module.devices, "synchronize", lambda device: None)
    return prepare


def test_a_gpu_is_read_through_its_counter(gpu_work) -> None:
    gpu_work(1_000, 4_500)
    with energy_meter(Device("cuda", 0, "Tesla T4", spec=gpu("T4")), clock=ticks(0.0, 1.0)) as meter:
        pass
    assert (meter.energy.joules, meter.energy.source) == (3.5, "measured")


def test_a_gpu_without_counter_is_estimated_from_its_datasheet(gpu_work) -> None:
    gpu_work(None, None)
    with energy_meter(Device("cuda", 0, "Tesla T4", spec=gpu("T4")), clock=ticks(0.0, 2.0)) as meter:
        pass
    assert (meter.energy.joules, meter.energy.source) == (2 * 70, "predicted")  # T4 datasheet: 70 W
    assert "TDP 70 W (of the datasheet)" in meter.energy.basis


def test_a_gpu_of_unknown_power_is_refused_before_the_work_begins() -> None:
    with pytest.raises(DeviceError, match="tdp_w"):
        energy_meter(Device("mps", 0, "Apple M2"))


def test_nonsense_is_refused() -> None:
    for tdp_w in (0, -5, float("nan"), "65 W"):
        with pytest.raises(InputError):
            energy_meter(tdp_w=tdp_w)
    with pytest.raises(InputError, match="not ended"):
        _ = energy_meter(tdp_w=5).energy
    with pytest.raises(InputError):
        Energy(1.0, 2.0, 3.0, 1.0, "measured", "a counter")


def test_an_error_in_the_work_is_passed_on(tmp_path) -> None:
    with pytest.raises(ZeroDivisionError), energy_meter(tdp_w=5, powercap=tmp_path):
        _ = 1 / 0


@pytest.mark.parametrize("spoil", ["garbage", "", "5", None], ids=["garbage", "empty", "too small", "missing"])
def test_a_counter_that_started_anew_with_an_unknown_range_gives_an_estimate(tmp_path, spoil) -> None:
    counter = package(tmp_path, 0, 90_000_000)
    largest = counter / "max_energy_range_uj"
    largest.unlink() if spoil is None else largest.write_text(spoil)
    with energy_meter(tdp_w=10, powercap=tmp_path, clock=ticks(0.0, 2.0)) as meter:
        (counter / "energy_uj").write_text("15000000")
    assert (meter.energy.source, meter.energy.joules) == ("predicted", 20.0)


def test_a_counter_that_stands_still_has_measured_nothing(tmp_path) -> None:
    package(tmp_path, 0, 5_000_000)
    with energy_meter(tdp_w=10, powercap=str(tmp_path), clock=ticks(0.0, 2.0)) as meter:
        pass
    assert (meter.energy.source, meter.energy.joules) == ("predicted", 20.0)


@pytest.mark.parametrize("readings", [(500, 500), (500, 20)], ids=["still", "started anew"])
def test_a_gpus_counter_that_says_nothing_gives_an_estimate(gpu_work, readings) -> None:
    gpu_work(*readings)
    with energy_meter(Device("cuda", 0, "Tesla T4", spec=gpu("T4")), clock=ticks(0.0, 2.0)) as meter:
        pass
    assert (meter.energy.source, meter.energy.joules) == ("predicted", 140.0)


def test_files_that_are_no_counters_are_passed_over(tmp_path) -> None:
    (package(tmp_path, 0, 5_000_000) / "name").write_bytes(b"\xff\xfe")
    package(tmp_path / "other", 0, -5)
    for folder in (tmp_path, tmp_path / "other"):
        with energy_meter(tdp_w=10, powercap=folder, clock=ticks(0.0, 2.0)) as meter:
            pass
        assert meter.energy.source == "predicted"
