"""Devices: what is in this machine, what of it works, and why there is no GPU if there is none."""

from labkit.devices.cpus import cpu_name, cpu_threads, default_threads, host_cpus, simd_bits, usable_cpus
from labkit.devices.dtypes import SafeDtype, mps_fallback_enabled, safe_dtype, timing_note
from labkit.devices.facts import Facts, GpuFact
from labkit.devices.gpus import Device, find, parse_name, pick, synchronize, synchronizer
from labkit.devices.machines import Machine, Row, machine, report
from labkit.devices.memory import free_memory_bytes, is_out_of_memory, total_memory_bytes
from labkit.devices.reasons import NoGpu, Reason, decide, has_code_for, visible_devices_notice, why_no_gpu

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
    "is_out_of_memory",
    "machine",
    "mps_fallback_enabled",
    "parse_name",
    "pick",
    "report",
    "safe_dtype",
    "simd_bits",
    "synchronize",
    "synchronizer",
    "timing_note",
    "total_memory_bytes",
    "usable_cpus",
    "visible_devices_notice",
    "why_no_gpu",
]
