"""Occupancy: how many warps an SM can hold at once, and which resource says no to one block more.

A block becomes resident on an SM only as a whole, so each resource allows a whole number of blocks, and the scarcest
decides. The rules are those of NVIDIA's occupancy calculator (cuda_occupancy.h in the CUDA Toolkit; CUDA C++ Best
Practices Guide, "Calculating Occupancy"). Occupancy is a limit that is counted, not a time that is measured: more
resident warps hide more latency, up to a point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .errors import InputError
from .hardware import Gpu, gpu

Dim = int | tuple[int, ...]


@dataclass(frozen=True)
class Occupancy:
    """What one SM can hold of a kernel.

    resident_blocks, resident_warps: at once, on one SM. max_warps: the most warps that an SM can hold. limits: every
    resource that stops at resident_blocks: "warps", "blocks", "registers", "shared_memory". block_limits: the blocks
    that each resource alone would allow; a kernel that takes no shared memory has no entry for it.
    """

    resident_blocks: int
    resident_warps: int
    max_warps: int
    limits: tuple[str, ...]
    block_limits: Mapping[str, int] = field(hash=False)

    @property
    def fraction(self) -> float:
        """Occupancy: resident warps over the most that an SM can hold, 0 to 1."""
        return self.resident_warps / self.max_warps

    def __str__(self) -> str:
        names = " and ".join(name.replace("_", " ") for name in self.limits)
        blocks = f"{self.resident_blocks} block{'' if self.resident_blocks == 1 else 's'}"
        return f"{self.fraction:.0%} ({self.resident_warps} of {self.max_warps} warps, {blocks}; limited by {names})"


def occupancy(
    block_size: Dim,
    *,
    shared_bytes: int = 0,
    registers_per_thread: int = 32,
    device: str | Gpu = "T4",
    carveout_bytes: int | None = None,
) -> Occupancy:
    """Return the occupancy of a kernel on a GPU of the catalogue.

    block_size: threads in a block, or the block's dimensions. shared_bytes: what a block uses, static and dynamic.
    registers_per_thread: as the compiler reports it; the simulator cannot know it. carveout_bytes: the part of an SM's
    on-chip memory set aside as shared memory, where the driver gave less than the most. A kernel that cannot run
    because one block needs more than an SM has gets zero resident blocks. InputError for sizes that no launch accepts.

    >>> print(occupancy(256, registers_per_thread=40, shared_bytes=8192, device="T4"))
    100% (32 of 32 warps, 4 blocks; limited by warps)
    >>> occupancy((16, 16), shared_bytes=32 * 1024).limits
    ('shared_memory',)
    """
    device = device if isinstance(device, Gpu) else gpu(device)
    threads = _threads(block_size, device)
    _check_whole("registers_per_thread", registers_per_thread, 1, device.max_registers_per_thread, device)
    _check_whole("shared_bytes", shared_bytes, 0, None, device)
    if carveout_bytes is not None:
        _check_whole("carveout_bytes", carveout_bytes, 0, device.shared_per_sm_bytes, device)
    warps = math.ceil(threads / device.warp_size)
    block_limits = _block_limits(warps, registers_per_thread, shared_bytes, carveout_bytes, device)
    resident = min(block_limits.values())
    return Occupancy(
        resident_blocks=resident,
        resident_warps=resident * warps,
        max_warps=device.max_warps_per_sm,
        limits=tuple(name for name, blocks in block_limits.items() if blocks == resident),
        block_limits=MappingProxyType(block_limits),
    )


def _block_limits(
    warps: int, registers_per_thread: int, shared_bytes: int, carveout_bytes: int | None, device: Gpu
) -> dict[str, int]:
    limits = {
        "warps": device.max_warps_per_sm // warps,
        "blocks": device.max_blocks_per_sm,
        "registers": _warps_by_registers(registers_per_thread, device) // warps,
    }
    kept = device.shared_reserved_per_block_bytes
    shared_per_block = _round_up(shared_bytes + kept, device.shared_allocation_unit_bytes)
    if shared_per_block > 0:
        capacity = device.shared_per_sm_bytes if carveout_bytes is None else carveout_bytes
        fits = shared_bytes <= device.shared_per_block_bytes
        limits["shared_memory"] = capacity // shared_per_block if fits else 0
    return limits


def _warps_by_registers(registers_per_thread: int, device: Gpu) -> int:
    """Warps that the registers can serve: whole units for a warp, and each sub-partition has its own registers."""
    per_warp = _round_up(registers_per_thread * device.warp_size, device.register_allocation_unit)
    per_sub_partition = device.registers_per_sm // device.sub_partitions_per_sm
    return per_sub_partition // per_warp * device.sub_partitions_per_sm


def _threads(block_size: Dim, device: Gpu) -> int:
    extents = block_size if isinstance(block_size, tuple) else (block_size,)
    if not 1 <= len(extents) <= 3:
        raise InputError(f"block_size={block_size!r}", "a block has one to three dimensions")
    for extent in extents:
        _check_whole("block_size", extent, 1, None, device)
    threads = math.prod(extents)
    if threads > device.max_threads_per_block:
        raise InputError(
            f"block_size={block_size!r}",
            f"a block of {threads:,} threads is larger than the {device.max_threads_per_block:,} that a block may have",
            "Use smaller blocks and more of them.",
        )
    return threads


def _check_whole(name: str, value: int, least: int, most: int | None, device: Gpu) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        wanted = f"at least {least}" if most is None else f"from {least} to {most:,} on the {device.name}"
        raise InputError(f"{name}={value!r}", f"{name} must be a whole number, {wanted}")


def _round_up(value: int, unit: int) -> int:
    return math.ceil(value / unit) * unit
