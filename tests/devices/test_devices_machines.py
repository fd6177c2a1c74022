"""The machine in a record, and the report of lesson 00."""

from __future__ import annotations

import json
from dataclasses import replace

import psutil
import pytest

from labkit.devices import Machine, cgroups, facts, machine, machines, report
from labkit.errors import InputError, RecordError

COLAB = Machine(
    cpu="Intel Xeon @ 2.20GHz",
    cpus=2,
    gpus=("Tesla T4",),
    os="Ubuntu 22.04.4 LTS, x86_64",
    python="3.12.11",
    torch="2.11.0+cu128",
    driver="550.54.15",
    memory_bytes=13_605_000_000,
)


def test_a_machine_reads_as_one_line():
    text = str(COLAB)
    assert "\n" not in text
    for part in ("Intel Xeon @ 2.20GHz (2 CPUs, 12.7 GiB)", "Tesla T4", "3.12.11", "2.11.0+cu128", "driver 550.54.15"):
        assert part in text
    assert COLAB.id in text


def test_the_id_is_the_same_wherever_it_is_computed():
    # computed once with sha256sum from the JSON text of the fields: an id in a record must never change
    import hashlib

    text = (
        '["Intel Xeon @ 2.20GHz", 2, ["Tesla T4"], "Ubuntu 22.04.4 LTS, x86_64", "3.12", "2.11.0+cu128", "550.54.15"]'
    )
    assert COLAB.id == hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize(
    "change",
    [{"cpu": "AMD EPYC"}, {"cpus": 4}, {"gpus": ()}, {"os": "Debian"}, {"python": "3.13.1"}, {"torch": "2.12.0"}],
)
def test_what_changes_timings_changes_the_id(change):
    assert replace(COLAB, **change).id != COLAB.id


@pytest.mark.parametrize("change", [{"memory_bytes": 13_604_000_000}, {"python": "3.12.12"}])
def test_what_does_not_change_timings_keeps_the_id(change):
    assert replace(COLAB, **change).id == COLAB.id


def test_a_machine_goes_through_json_and_back():
    for one in (COLAB, replace(COLAB, gpus=(), driver=None), machine()):
        assert Machine.from_dict(json.loads(json.dumps(one.to_dict()))) == one


@pytest.mark.parametrize(
    "damage",
    [
        {"cpus": 0},
        {"cpus": "2"},
        {"cpus": True},
        {"gpus": "Tesla T4"},
        {"gpus": [1]},
        {"cpu": None},
        {"memory_bytes": -1},
        {"python": 3.12},
        {"id": "000000000000"},
        {"torch": "2.99"},
        {"os": ""},
    ],
)
def test_a_damaged_machine_is_refused(damage):
    with pytest.raises(RecordError, match="measure again"):
        Machine.from_dict(COLAB.to_dict() | damage)


@pytest.mark.parametrize("data", [None, [], "Tesla T4", {}, {"cpu": "AMD EPYC"}])
def test_what_is_no_machine_is_refused(data):
    with pytest.raises(RecordError):
        Machine.from_dict(data)


def test_a_machine_that_makes_no_sense_cannot_be_built():
    with pytest.raises(InputError, match="cpus=0"):
        replace(COLAB, cpus=0)


def test_the_machine_names_only_gpus_that_work(with_torch):
    with_torch(cuda="12.6", gpus=[("Tesla T4", (7, 5), None), ("GTX 980", (5, 2), RuntimeError("no kernel image"))])
    assert machine().gpus == ("Tesla T4",)


def test_this_machine_has_no_personal_data():
    import getpass
    import platform

    text = json.dumps(machine().to_dict())
    assert platform.node() not in text.split('"') and f"/{getpass.getuser()}" not in text


def rows():
    return {row.label: row for row in report()}


def test_the_report_without_a_gpu_gives_the_reason_and_advice(with_torch, monkeypatch):
    with_torch(version="2.13.0+cpu")
    monkeypatch.setattr(facts, "_driver_cuda", lambda: None)
    found = rows()
    assert found["GPU"].value == "none (CPU-only build)"
    assert "2.13.0+cpu" in found["GPU"].note
    assert found["PyTorch"] == ("PyTorch", "2.13.0+cpu", "CPU-only build")
    assert found["CPU"].note == "SIMD AVX2, 256 bits: 8 float32 at once"
    assert found["Machine"].value == machine().id


def test_the_report_with_a_gpu(t4, monkeypatch):
    monkeypatch.setattr(facts, "_driver_cuda", lambda: 12040)
    found = rows()
    assert found["GPU"].value == "Tesla T4" and "compute capability 7.5" in found["GPU"].note
    assert found["GPU memory"].value == "16 GiB, 12 GiB free"
    assert "CUDA up to 12.4" in found["NVIDIA driver"].note
    assert found["PyTorch"].note == "built for CUDA 12.6"


def test_a_gpu_that_failed_beside_one_that_works_is_reported(with_torch):
    with_torch(cuda="12.6", gpus=[("Tesla T4", (7, 5), None), ("GTX 980", (5, 2), RuntimeError("no kernel image"))])
    notes = [row.note for row in report() if row.value == "GTX 980: not usable"]
    assert notes == ["RuntimeError: no kernel image"]


def test_a_quota_is_named_with_the_file_that_sets_it(with_torch, monkeypatch):
    with_torch(version="2.13.0+cpu")
    quota = cgroups.CpuQuota(1.5, "/sys/fs/cgroup/cpu.max", "150000 100000")
    wider = cgroups.CpuQuota(4.0, "/sys/fs/cgroup/above/cpu.max", "400000 100000")
    monkeypatch.setattr(cgroups, "cpu_quotas", lambda root=None: [wider, quota])
    monkeypatch.setattr("labkit.devices.cpus.affinity_cpus", lambda: 384)
    monkeypatch.setattr(machines, "affinity_cpus", lambda: 384)
    monkeypatch.setattr(machines, "host_cpus", lambda: 384)
    row = rows()["Usable CPUs"]
    assert row.value == "1 of 384"
    assert "1.5 CPUs' worth of time (/sys/fs/cgroup/cpu.max: 150000 100000)" in row.note


def test_a_bound_process_is_told_of_its_affinity(with_torch, monkeypatch):
    with_torch(version="2.13.0+cpu")
    monkeypatch.setattr(cgroups, "cpu_quotas", lambda root=None: [])
    monkeypatch.setattr("labkit.devices.cpus.affinity_cpus", lambda: 1)
    monkeypatch.setattr(machines, "affinity_cpus", lambda: 1)
    monkeypatch.setattr(machines, "host_cpus", lambda: 8)
    assert rows()["Usable CPUs"] == ("Usable CPUs", "1 of 8", "this process is bound to 1 of them (CPU affinity)")


def test_a_memory_limit_is_named_beside_the_machines_memory(with_torch, monkeypatch):
    with_torch(version="2.13.0+cpu")
    total = psutil.virtual_memory().total
    monkeypatch.setattr(cgroups, "memory_limits", lambda root=None: [cgroups.MemoryLimit(total // 2, 0)])
    assert "this container's limit; the machine has" in rows()["Memory"].note


# C03-04 and C03-05, as a student sees them
def test_what_makes_numbers_doubtful_is_reported(t4, monkeypatch):
    monkeypatch.setattr(facts, "VISIBLE_DEVICES_AT_IMPORT", "0")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("PYTORCH_ENABLE_MPS_FALLBACK", "1")
    found = rows()
    assert "restart the kernel" in found["CUDA_VISIBLE_DEVICES"].note
    assert "contains CPU fallback" in found["PYTORCH_ENABLE_MPS_FALLBACK"].note
