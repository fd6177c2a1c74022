"""Usable CPUs, threads, memory and names of CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest
import torch

from labkit.devices import cpus
from labkit.errors import InputError


# C06-01: usable = max(1, min(affinity, floor(quota/period)))
@pytest.mark.parametrize(
    ("cpu_max", "affinity", "usable"),
    [
        ("200000 100000", 384, 2),
        ("150000 100000", 384, 1),
        ("50000 100000", 384, 1),
        ("max 100000", 384, 384),
        ("800000 100000", 4, 4),
        (None, 3, 3),
    ],
)
def test_the_quota_caps_the_affinity(linux_root, monkeypatch, cpu_max, affinity, usable):
    monkeypatch.setattr(cpus, "affinity_cpus", lambda: affinity)
    root = linux_root({"sys/fs/cgroup/cpu.max": cpu_max} if cpu_max else {})
    assert cpus.usable_cpus(root) == usable


@pytest.mark.parametrize(("quota", "usable"), [("-1", 16), ("250000", 2)])
def test_version_1_quota_caps_too(linux_root, monkeypatch, quota, usable):  # C06-01
    monkeypatch.setattr(cpus, "affinity_cpus", lambda: 16)
    root = linux_root(
        {"sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota, "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000"},
    )
    assert cpus.usable_cpus(root) == usable


def test_the_smallest_of_nested_quotas_wins(linux_root, monkeypatch):
    monkeypatch.setattr(cpus, "affinity_cpus", lambda: 16)
    root = linux_root(
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/b/cpu.max": "800000 100000",
            "sys/fs/cgroup/a/cpu.max": "300000 100000",
            "sys/fs/cgroup/cpu.max": "max 100000",
        }
    )
    assert cpus.usable_cpus(root) == 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity to set")
def test_a_process_bound_to_one_cpu_uses_one(tmp_path):  # C06-01: what `taskset -c 0` does
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from labkit import devices; import torch\n"
        "print(devices.usable_cpus(), devices.default_threads(), torch.get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.split() == ["1", "1", "1"]


@pytest.mark.parametrize(("process_cpu_count", "usable"), [(6, 6), (None, 12)])
def test_without_affinity_python_is_asked(monkeypatch, process_cpu_count, usable):  # Windows, macOS
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    if process_cpu_count is not None:
        monkeypatch.setattr(os, "process_cpu_count", lambda: process_cpu_count, raising=False)
    assert cpus.affinity_cpus() == usable


def test_a_machine_that_does_not_know_its_cpus_has_one(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "process_cpu_count", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cpus.affinity_cpus() == cpus.host_cpus() == 1


def test_the_threads_of_torch_are_capped(monkeypatch):  # C06-01: 384-core host, limit 8, 192 threads
    monkeypatch.setattr(torch, "get_num_threads", lambda: 192)
    monkeypatch.setattr(cpus, "usable_cpus", lambda: 8)
    assert cpus.default_threads() == 8
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert cpus.default_threads() == 4


def test_threads_of_numpy_follow_and_are_restored() -> None:
    """C02-07: a comparison is fair only if the legend's thread count holds for NumPy, too."""
    import numpy as np
    from threadpoolctl import threadpool_info

    def blas_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    np.ones((2, 2)) @ np.ones((2, 2))
    before = blas_threads()
    assert before, "NumPy's BLAS shows no thread pool here"
    with cpus.cpu_threads(1):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_the_thread_count_is_restored_even_after_an_error():  # C02-07: afterwards = before
    before = torch.get_num_threads()
    for inside in (1, before + 1):
        with cpus.cpu_threads(inside) as n:
            assert n == inside == torch.get_num_threads()
        assert torch.get_num_threads() == before
    with pytest.raises(KeyError), cpus.cpu_threads(1):
        raise KeyError
    assert torch.get_num_threads() == before


def test_threads_can_be_set_twice_after_parallel_work():  # C06-04
    code = (
        "import torch; from labkit import devices\n"
        "for _ in range(2):\n"
        "    with devices.cpu_threads(2):\n"
        "        torch.ones(300, 300) @ torch.ones(300, 300)\n"
        "print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("fine", "")


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True])
def test_a_thread_count_that_makes_no_sense_is_refused(n):
    with pytest.raises(InputError, match="whole number"), cpus.cpu_threads(n):
        pass


@pytest.mark.parametrize("n", [33, 40_000, 10**400])
def test_more_threads_than_a_process_survives_are_refused(n, monkeypatch):
    monkeypatch.setattr(cpus, "host_cpus", lambda: 2)
    monkeypatch.setattr(torch, "set_num_threads", lambda n: pytest.fail(f"{n} threads"))
    with (
        pytest.raises(InputError, match=r"threads=.* at most 32 make sense on 2 CPUs|finite|whole number"),
        cpus.cpu_threads(n),
    ):
        pass


def test_memory_is_the_containers_where_that_is_less(linux_root, monkeypatch):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=10_000, available=6_000))
    limited = {"sys/fs/cgroup/memory.max": "4000", "sys/fs/cgroup/memory.current": "1500"}
    root = linux_root(limited)
    assert (cpus.total_cpu_memory_bytes(root), cpus.free_cpu_memory_bytes(root)) == (4000, 2500)
    root = linux_root(limited | {"sys/fs/cgroup/memory.current": "4100"})
    assert cpus.free_cpu_memory_bytes(root) == 0
    root = linux_root(limited | {"sys/fs/cgroup/memory.max": "50000"})
    assert (cpus.total_cpu_memory_bytes(root), cpus.free_cpu_memory_bytes(root)) == (10_000, 6_000)


GRAVITON = """\
Architecture:             aarch64
  CPU op-mode(s):         32-bit, 64-bit
Vendor ID:                ARM
  BIOS Vendor ID:         AWS
  Model name:             Neoverse-V1
    BIOS Model name:      AWS Graviton3 AWS Graviton3 CPU @ 2.6GHz
    Model:                1
"""
ARM_CPUINFO = """\
processor	: 0
BogoMIPS	: 50.00
Features	: fp asimd evtstrm
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
"""


def _on(monkeypatch, system, output=lambda *command: ""):
    cpus.cpu_name.cache_clear()
    monkeypatch.setattr(cpus.platform, "system", lambda: system)
    monkeypatch.setattr(cpus, "_output", output)
    try:
        return cpus.cpu_name()
    finally:
        cpus.cpu_name.cache_clear()


def test_names_on_linux(monkeypatch):
    def with_cpuinfo(text):
        monkeypatch.setattr(cpus.Path, "read_text", lambda path: text)

    with_cpuinfo("processor\t: 0\nmodel name\t: AMD EPYC 9B14 96-Core Processor\n")
    assert _on(monkeypatch, "Linux") == "AMD EPYC 9B14"
    with_cpuinfo(ARM_CPUINFO)
    assert _on(monkeypatch, "Linux", lambda *command: GRAVITON) == "ARM Neoverse-V1"
    assert _on(monkeypatch, "Linux") == "ARM core (implementer 0x41, part 0xd0c)"


def test_names_on_a_mac_and_on_windows(monkeypatch):
    asked = []
    assert _on(monkeypatch, "Darwin", lambda *command: asked.append(command) or "Apple M2 Pro") == "Apple M2 Pro"
    assert asked == [("sysctl", "-n", "machdep.cpu.brand_string")]

    class Key:
        def __enter__(self):
            return "open"

        def __exit__(self, *_):
            pass

    winreg = SimpleNamespace(
        HKEY_LOCAL_MACHINE="HKLM",
        OpenKey=lambda root, path: Key() if path.endswith(r"CentralProcessor\0") else None,
        QueryValueEx=lambda key, name: {"ProcessorNameString": ("13th Gen Intel(R) Core(TM) i5-1335U ", 1)}[name],
    )
    monkeypatch.setitem(sys.modules, "winreg", winreg)
    assert _on(monkeypatch, "Windows") == "13th Gen Intel Core i5-1335U"


def test_a_machine_that_tells_nothing_still_gets_a_name(monkeypatch):
    monkeypatch.setattr(cpus.platform, "processor", lambda: "")
    monkeypatch.setattr(cpus.platform, "machine", lambda: "riscv64")
    assert _on(monkeypatch, "Plan9") == "CPU (riscv64)"


def test_a_missing_or_failing_tool_gives_no_name_and_no_error():
    assert cpus._output("no-such-tool-anywhere") == ""
    assert cpus._output(sys.executable, "-c", "raise SystemExit(3)") == ""
    assert cpus._output(sys.executable, "-c", "print(' x ')") == "x"


def test_importing_the_package_loads_nothing_heavy():
    code = (
        "import sys, labkit.devices; print([m for m in ('torch', 'numpy', 'matplotlib', 'psutil') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
