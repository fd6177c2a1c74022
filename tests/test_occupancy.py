"""Occupancy against what NVIDIA's guide, calculator and profiler say for named GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from labkit.errors import DeviceError, InputError
from labkit.hardware import gpu, gpus
from labkit.occupancy import Occupancy, occupancy

GUIDE = "CUDA C++ Best Practices Guide, 11.1.1 Calculating Occupancy"
T4_REDUCTION = "Nsight Compute, T4: block reductions in twelve versions, sections Launch Statistics and Occupancy"
L4_CAPACITY = "Nsight Compute, L4 (58 SMs): `capacity` kernels, sections Launch Statistics and Occupancy"
L4_ATTENTION = "Nsight Compute, L4 (58 SMs): flash attention `fa` and `fa_tc_v1`"
LAPTOP_SGEMM = "Nsight Compute 2025.3, GeForce RTX 4060 Laptop: SGEMM 128x128x32, custom and trial"
AMPERE_SMOKE = "Nsight Compute 2025.2, GeForce RTX 3060 Ti (compute capability 8.6): a kernel of one warp"
VOLTA_SMALL = "Nsight Compute, compute capability 7.0: 512 blocks of 128 threads, no shared memory"
KOKKOS = "kokkos/kokkos pull request 5739: register and warp allocation granularity, with an example for Ampere"
HOPPER_FP8 = "Nsight Compute, H100: FP8 attention, 128 threads, 167 registers: 12 warps, 18.75 %"


# Source, device, block, registers, shared bytes, carve-out; then blocks by warps, by registers, by shared memory (None:
# not stated there), resident blocks and occupancy in percent. Sizes that a profiler prints rounded (33.02 Kbyte) are
# entered as the multiple of 16 bytes that it rounds.
PUBLISHED = [
    (GUIDE, "V100", 1024, 32, 0, None, 2, None, None, 2, 100.0),
    (GUIDE, "V100", 128, 37, 0, None, 16, 12, None, 12, 75.0),
    (GUIDE, "V100", 320, 37, 0, None, 6, 4, None, 4, 62.5),
    (VOLTA_SMALL, "V100", 128, 21, 0, None, 16, 21, None, 16, 100.0),
    (T4_REDUCTION, "T4", 256, 16, 1024, 32768, 4, 16, 32, 4, 100.0),
    (T4_REDUCTION, "T4", 256, 16, 1024 + 16, 32768, 4, 16, 25, 4, 100.0),
    (T4_REDUCTION, "T4", 256, 30, 1024, 32768, 4, 8, 32, 4, 100.0),
    (L4_CAPACITY, "L4", 256, 72, 33024, 102400, 6, 3, 3, 3, 50.0),
    (L4_CAPACITY, "L4", 256, 64, 24832, 102400, 6, 4, 3, 3, 50.0),
    (L4_CAPACITY, "L4", 256, 75, 33024, 102400, 6, 3, 3, 3, 50.0),
    (L4_CAPACITY, "L4", 256, 72, 28928, 102400, 6, 3, 3, 3, 50.0),
    (L4_ATTENTION, "L4", 512, 54, 29824, 65536, 3, 2, 2, 2, 66.67),
    (L4_ATTENTION, "L4", 128, 80, 43776, 102400, 12, 6, 2, 2, 16.67),
    (LAPTOP_SGEMM, "RTX 4060 Laptop", 256, 128, 32768, None, 6, 2, 3, 2, 33.33),
    (LAPTOP_SGEMM, "RTX 4060 Laptop", 256, 128, 65536, None, 6, 2, 1, 1, 16.67),
    (AMPERE_SMOKE, "RTX 3060", 32, 16, 0, 16384, 48, 128, 16, 16, 33.33),
    (KOKKOS, "A100", 224, 92, 0, None, 9, 2, None, 2, 21.875),
    (HOPPER_FP8, "H100", 128, 167, 40960, None, 16, 3, None, 3, 18.75),
]


@pytest.mark.parametrize(
    "source, device, block, registers, shared, carveout, warps, by_registers, by_shared, blocks, percent",
    PUBLISHED,
    ids=[f"{row[1]}-{row[2]}-{row[3]}-{row[4]}".replace(" ", "-") for row in PUBLISHED],
)
def test_published_values(
    source, device, block, registers, shared, carveout, warps, by_registers, by_shared, blocks, percent
):
    found = occupancy(
        block, registers_per_thread=registers, shared_bytes=shared, device=device, carveout_bytes=carveout
    )
    assert found.block_limits["warps"] == warps, source
    if by_registers is not None:
        assert found.block_limits["registers"] == by_registers, source
    if by_shared is not None:
        assert found.block_limits["shared_memory"] == by_shared, source
    assert found.resident_blocks == blocks, source
    assert 100 * found.fraction == pytest.approx(percent, abs=0.005), source


def test_published_values_are_enough_and_name_their_sources():
    assert len(PUBLISHED) >= 10
    assert all(row[0] for row in PUBLISHED)
    assert len({row[1] for row in PUBLISHED}) >= 5


def test_the_limit_that_the_profiler_names():
    # "limited by the number of required registers, and the required amount of shared memory"
    both = occupancy(256, registers_per_thread=72, shared_bytes=33024, device="L4")
    assert both.limits == ("registers", "shared_memory")
    # "limited by the required amount of shared memory"
    shared = occupancy(256, registers_per_thread=64, shared_bytes=24832, device="L4")
    assert shared.limits == ("shared_memory",)
    # "limited by the number of blocks that can fit on the SM, and the required amount of shared memory"
    small = occupancy(32, registers_per_thread=16, device="RTX 3060", carveout_bytes=16384)
    assert small.limits == ("blocks", "shared_memory")


def test_registers_come_in_units_of_256_per_warp():
    """8 registers a thread make a unit: 33 to 40 cost the same, 41 cost more."""
    limits = [occupancy(32, registers_per_thread=n, device="V100").block_limits["registers"] for n in (32, 33, 40, 41)]
    assert limits == [64, 48, 48, 40]  # 4 × (16384 // 1024), // 1280, // 1280, // 1536


def test_warps_of_a_sub_partition_share_its_registers_only():
    # 96 registers: 3072 a warp; 65536 // 3072 = 21 warps, but 16384 // 3072 = 5 in each of four sub-partitions: 20.
    assert occupancy(32, registers_per_thread=96, device="A100").block_limits["registers"] == 20


def test_shared_memory_of_a_block_includes_what_the_system_keeps():
    # A100: 164 KiB; each block pays 1 KiB more: 40 KiB + 1 KiB goes four times, 41 KiB + 1 KiB three times.
    assert occupancy(128, shared_bytes=40 * 1024, device="A100").block_limits["shared_memory"] == 4
    assert occupancy(128, shared_bytes=41 * 1024, device="A100").block_limits["shared_memory"] == 3
    # T4: nothing is kept; 64 KiB goes twice 32.
    assert occupancy(128, shared_bytes=32 * 1024, device="T4").block_limits["shared_memory"] == 2


def test_small_blocks_are_limited_by_the_number_of_blocks():
    found = occupancy(32, device="T4")
    assert (found.resident_blocks, found.resident_warps, found.max_warps) == (16, 16, 32)
    assert found.limits == ("blocks",)
    assert found.fraction == 0.5


def test_a_partial_warp_counts_as_a_whole_one():
    assert occupancy(33, device="T4").resident_warps == occupancy(64, device="T4").resident_warps == 32
    assert occupancy((5, 7)) == occupancy(35)


def test_what_does_not_fit_is_not_resident():
    too_much = occupancy(256, shared_bytes=64 * 1024 + 1, device="T4")
    assert (too_much.resident_blocks, too_much.fraction, too_much.limits) == (0, 0.0, ("shared_memory",))
    # 1024 threads × 72 registers are more than 65536.
    assert occupancy(1024, registers_per_thread=72, device="T4").limits == ("registers",)
    assert occupancy(1024, registers_per_thread=64, device="T4").resident_blocks == 1


def test_never_more_than_the_sm_can_hold():
    for device in gpus():
        for block in (1, 31, 32, 96, 256, 768, 1024):
            found = occupancy(block, shared_bytes=3000, registers_per_thread=50, device=device)
            assert found.resident_warps <= found.max_warps == device.max_warps_per_sm
            assert found.resident_blocks <= device.max_blocks_per_sm
            assert found.resident_blocks == min(found.block_limits.values()) == found.block_limits[found.limits[0]]


def test_result_is_frozen_and_reads_well():
    found = occupancy(256, registers_per_thread=128, shared_bytes=32768, device="RTX 4060 Laptop")
    assert isinstance(found, Occupancy)
    with pytest.raises(AttributeError):
        found.resident_blocks = 7
    with pytest.raises(TypeError):
        found.block_limits["warps"] = 7
    assert str(found) == "33% (16 of 48 warps, 2 blocks; limited by registers)"
    assert "shared memory" in str(occupancy(64, shared_bytes=40_000))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"block_size": 0}, "whole number, at least 1"),
        ({"block_size": -32}, "whole number"),
        ({"block_size": 1025}, "1,025 threads"),
        ({"block_size": (32, 33)}, "1,056 threads"),
        ({"block_size": ()}, "one to three dimensions"),
        ({"block_size": (2, 2, 2, 2)}, "one to three dimensions"),
        ({"block_size": 64.0}, "whole number"),
        ({"block_size": float("nan")}, "whole number"),
        ({"block_size": True}, "whole number"),
        ({"block_size": 32, "shared_bytes": -1}, "whole number, at least 0"),
        ({"block_size": 32, "registers_per_thread": 0}, "from 1 to 255"),
        ({"block_size": 32, "registers_per_thread": 256}, "from 1 to 255"),
        ({"block_size": 32, "carveout_bytes": 10**6}, "from 0 to 65,536"),
    ],
)
def test_nonsense_is_refused(arguments, problem):
    with pytest.raises(InputError, match=problem):
        occupancy(**arguments)


def test_unknown_device():
    with pytest.raises(DeviceError, match="no GPU of that name"):
        occupancy(32, device="T5")
    roomy = replace(gpu("T4"), max_blocks_per_sm=32)
    assert occupancy(32, device=roomy).fraction == 1.0
