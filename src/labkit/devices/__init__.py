"""Devices: what is in this machine, what of it works, and why there is no GPU if there is none."""

from .cpus import cpu_name, cpu_threads, default_threads, host_cpus, usable_cpus
from .dtypes import SafeDtype, mps_fallback_enabled, safe_dtype, timing_note
from .facts import Facts, GpuFact
from .gpus import Device, find, parse_name, pick, synchronize, synchronizer
from .machines import Machine, Row, machine, report
from .memory import free_memory_bytes, total_memory_bytes
from .reasons import NoGpu, Reason, decide, has_code_for, visible_devices_notice, why_no_gpu

__all__ = [
    "Device",
    "Facts",
    "GpuFact",
    "Machine",
    "NoGpu",
    "Reason",
    "Row",
    "SafeDtype",
    "cpu_name",
    "cpu_threads",
    "decide",
    "default_threads",
    "find",
    "free_memory_bytes",
    "has_code_for",
    "host_cpus",
    "machine",
    "mps_fallback_enabled",
    "parse_name",
    "pick",
    "report",
    "safe_dtype",
    "synchronize",
    "synchronizer",
    "timing_note",
    "total_memory_bytes",
    "usable_cpus",
    "visible_devices_notice",
    "why_no_gpu",
]
