"""The CPU: its name, how many of its CPUs and how much memory this process may use, and how many threads torch gets."""

from __future__ import annotations

import functools
import math
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from labkit.devices import cgroups
from labkit.errors import InputError, check_count

# OpenMP ends the process, and with it a notebook's kernel, where the system refuses one more thread.
MOST_THREADS_PER_CPU = 16


def usable_cpus(root: Path = Path("/")) -> int:
    """Return how many CPUs this process may use: the affinity, capped by the smallest container quota.

    `os.cpu_count()` counts the CPUs of the host, which in a container may be many more.

    >>> 1 <= usable_cpus() <= host_cpus()
    True
    """
    return cap_by_quota(affinity_cpus(), (quota.cpus for quota in cgroups.cpu_quotas(root)))


def cap_by_quota(affinity: int, quotas: Iterable[float]) -> int:
    """Return max(1, min(affinity, floor(quota))) for the smallest of quotas, each in CPUs.

    >>> cap_by_quota(8, [1.5]), cap_by_quota(8, [0.5]), cap_by_quota(8, [])
    (1, 1, 8)
    """
    return max(1, min([affinity, *(math.floor(quota) for quota in quotas)]))


def affinity_cpus() -> int:
    """Return how many CPUs the scheduler may put this process on; where that cannot be asked, all of them."""
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return len(os.sched_getaffinity(0))
    count = getattr(os, "process_cpu_count", os.cpu_count)  # process_cpu_count: from Python 3.13
    return count() or 1


def host_cpus() -> int:
    """Return how many logical CPUs the machine has, whether or not this process may use them."""
    return os.cpu_count() or 1


def default_threads() -> int:
    """Return the threads that torch is set to use (by itself, unless you set it), capped by the usable CPUs.

    torch counts the cores it sees; in a container with a quota those can be hundreds too many.
    """
    import torch

    return min(torch.get_num_threads(), usable_cpus())


@contextmanager
def cpu_threads(n: int | None = None) -> Iterator[int]:
    """Run a block with n threads of torch and of NumPy's BLAS (None: `default_threads()`), then restore both.

    Of torch's threads only those within an operation are set: the number of inter-op threads can be set just once in
    a process. Raises InputError unless n is a whole number from 1 to MOST_THREADS_PER_CPU times the CPUs.

    >>> with cpu_threads(1) as n:
    ...     n
    1
    """
    import torch
    from threadpoolctl import threadpool_limits

    if n is None:
        n = default_threads()
    n, most = check_count("threads", n), MOST_THREADS_PER_CPU * host_cpus()
    if n > most:
        problem = f"so many threads may end the whole process; at most {most} make sense on {host_cpus()} CPUs"
        raise InputError(f"threads={n}", problem, f"Try threads={usable_cpus()}.")
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        with threadpool_limits(limits=n, user_api="blas"):
            yield n
    finally:
        torch.set_num_threads(before)


def total_cpu_memory_bytes(root: Path = Path("/")) -> int:
    """Return the bytes of memory that this process could use: the machine's, capped by the container's limit."""
    import psutil

    return min([psutil.virtual_memory().total, *(limit.limit_bytes for limit in cgroups.memory_limits(root))])


def free_cpu_memory_bytes(root: Path = Path("/")) -> int:
    """Return the bytes that this process could still take: what the machine has available, or the container's rest."""
    import psutil

    rests = (max(0, limit.limit_bytes - limit.used_bytes) for limit in cgroups.memory_limits(root))
    return min([psutil.virtual_memory().available, *rests])


@functools.cache
def cpu_name() -> str:
    """Return the name of the CPU's model, such as "AMD EPYC" or "Apple M2"; what the machine says of itself."""
    readers = {"Linux": _linux_name, "Darwin": _mac_name, "Windows": _windows_name}
    try:
        found = readers[platform.system()]()
    except (KeyError, OSError, ValueError):
        found = ""
    return tidy_name(found or platform.processor()) or f"CPU ({platform.machine() or 'unknown architecture'})"


def tidy_name(name: str) -> str:
    """Return a CPU's name without trademark signs, core count and clock, short enough for a legend.

    >>> tidy_name("Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz"), tidy_name("AMD Ryzen 7 5800X 8-Core Processor")
    ('Intel Core i7-8550U', 'AMD Ryzen 7 5800X')
    >>> tidy_name("Intel(R) Xeon(R) CPU @ 2.20GHz")  # nothing else tells these apart: the clock stays
    'Intel Xeon @ 2.20GHz'
    """
    name = re.sub(r"\((R|TM|C)\)|[®™]", " ", name, flags=re.IGNORECASE)
    name = re.sub(r"\b(\d+-Core )?Processor\b|\bCPU\b", " ", name)
    model, _, _ = name.partition("@")
    if re.search(r"\d", model):
        name = model
    return " ".join(name.split())


def parse_cpuinfo(text: str) -> str:
    """Return the model's name from `/proc/cpuinfo`, or "" (most ARM kernels do not write one).

    >>> parse_cpuinfo("processor : 0\\nmodel name : AMD EPYC\\n")
    'AMD EPYC'
    """
    found = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return found[1].strip() if found else ""


def parse_lscpu(text: str) -> str:
    """Return the model's name from `lscpu`, which knows the part numbers of ARM cores; big and little cores joined.

    >>> parse_lscpu("Vendor ID: ARM\\nModel name: Cortex-A55\\nModel name: Cortex-A76\\n")
    'ARM Cortex-A55 + Cortex-A76'
    """
    values = re.findall(r"^\s*(Vendor ID|Model name)\s*:\s*(.+)$", text, flags=re.MULTILINE)
    models = [value.strip() for label, value in values if label == "Model name" and value.strip() != "-"]
    vendors = [value.strip() for label, value in values if label == "Vendor ID"]
    if not models:
        return ""
    joined = " + ".join(dict.fromkeys(models))
    return f"ARM {joined}" if vendors[:1] == ["ARM"] else joined


def _linux_name() -> str:
    text = Path("/proc/cpuinfo").read_text()
    return parse_cpuinfo(text) or parse_lscpu(_output("lscpu")) or _arm_part(text)


def _arm_part(cpuinfo: str) -> str:
    codes = [re.search(rf"^CPU {label}\s*:\s*(\S+)", cpuinfo, flags=re.MULTILINE) for label in ("implementer", "part")]
    return f"ARM core (implementer {codes[0][1]}, part {codes[1][1]})" if all(codes) else ""


def _mac_name() -> str:
    return _output("sysctl", "-n", "machdep.cpu.brand_string")


def _windows_name() -> str:
    import winreg

    with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0") as key:
        return winreg.QueryValueEx(key, "ProcessorNameString")[0]


def _output(*command: str) -> str:
    """Return what a command of the system prints, or "" where it is missing or fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, env=environment, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def simd_bits() -> int:
    """Return the width in bits of the vector instructions that torch uses on this CPU.

    Every 64-bit x86 (SSE2) and ARM (NEON) has 128 bits; wider ones are named in torch's own report.

    >>> simd_bits() % 128
    0
    """
    import torch

    named = re.search(r"AVX512|AVX2|SVE(\d+)", torch.backends.cpu.get_cpu_capability())
    if named is None:
        return 128
    return int(named[1]) if named[1] else {"AVX512": 512, "AVX2": 256}[named[0]]
