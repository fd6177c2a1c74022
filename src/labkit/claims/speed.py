"""Rules for the claims about speed, memory and transfers (lesson 01)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

from labkit.claims.verdicts import DEPENDS, REFUTED, UPHELD, Verdict, claim, gpu_name, needs_gpu, source_of
from labkit.comparison import Crossover, Speedup, crossover, shared_values, speedup
from labkit.errors import InputError, check_kind, check_positive
from labkit.measurement import Measurement, Sweep
from labkit.units import format_bytes_per_s, format_count, format_memory, format_ratio, format_s

MANY_PASSES = 1000  # data that is used this often has paid for its way to the GPU in nearly every real program


@claim("serial-cpu-wins", "Work that must go step by step is faster on the CPU.", "01")
def serial_cpu_wins(*, cpu: Measurement, gpu: Measurement | None, steps: int) -> Verdict:
    """Decide by the time of a chain in which every step waits for the one before."""
    check_positive("steps", steps)
    if gpu is None:
        return needs_gpu(
            f"One step takes {format_s(cpu.median_s / steps)} on the CPU; there is no GPU to compare with."
        )
    lead = speedup(gpu, cpu)
    times = [format_s(m.median_s / steps) for m in (cpu, gpu)]
    sentence = f"One step takes {times[0]} on the CPU and {times[1]} on the {gpu_name(gpu)}."
    overlap = "Their ranges overlap, so neither is clearly faster. A predicted range stays as wide as its model."
    return _by_lead(lead, sentence, overlap)


@claim("parallel-gpu-wins", "For the same operation on much data the GPU is faster.", "01")
def parallel_gpu_wins(*, cpu: Sweep, gpu: Sweep | None) -> Verdict:
    """Decide by the largest size that both devices ran."""
    if gpu is None:
        return needs_gpu("The sweep ran on the CPU alone.")
    largest = shared_values(cpu, gpu)[-1]
    lead = speedup(cpu.at(largest), gpu.at(largest))
    point = f"{cpu.parameter} = {format_count(largest)}"
    sentence = (
        f"At {point} the {gpu_name(gpu)} is {format_ratio(lead.ratio)} as fast as the CPU. "
        f"{_crossing(cpu, crossover(cpu, gpu))}"
    )
    return _by_lead(lead, sentence, f"At {point} the spreads overlap; a larger size decides.")


@claim("small-data", "On small data the GPU's advantage does not show.", "01", "02", "03")
def small_data(*, cpu: Sweep, gpu: Sweep | None) -> Verdict:
    """Decide by the smallest size, and name the size at which the GPU overtakes."""
    if gpu is None:
        return needs_gpu("The sweep ran on the CPU alone.")
    smallest = shared_values(cpu, gpu)[0]
    lead, crossing = speedup(cpu.at(smallest), gpu.at(smallest)), crossover(cpu, gpu)
    point = f"{cpu.parameter} = {format_count(smallest)}"
    sentence = (
        f"At {point} the {gpu_name(gpu)} is {format_ratio(lead.ratio)} as fast as the CPU. {_crossing(cpu, crossing)}"
    )
    if crossing.never:
        flips = f"No size up to {format_count(cpu.values[-1])} shows one: it is not smallness that hides it."
        return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, source=lead.source)
    if lead.low <= 1 <= lead.high:
        flips = f"At {point} their ranges overlap: there the two are about equally fast."
        return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=crossing.value, source=lead.source)
    outcome = REFUTED if lead.low > 1 else UPHELD
    return Verdict(outcome=outcome, sentence=sentence, number=crossing.value, source=lead.source)


@claim("same-code", "The same PyTorch code runs on both; you only name the device.", "01")
def same_code(*, differences: Mapping[str, float], tolerance: float) -> Verdict:
    """Decide by the largest relative difference from the CPU's result on each other device."""
    check_positive("tolerance", tolerance)
    for device, difference in differences.items():
        check_kind(f"differences[{device!r}]", difference, Real)
    if not differences:
        return needs_gpu("The function ran on the CPU; there is no second device to run the same code on.")
    endless = [device for device, difference in differences.items() if not math.isfinite(difference)]
    if endless:
        sentence = f"On {endless[0]} some results are infinite or no numbers, and the CPU's are not."
        return Verdict(outcome=REFUTED, sentence=sentence)
    worst = max(differences, key=lambda device: differences[device])
    sentence = f"The largest relative difference is {differences[worst]:.1e}, on {worst}; allowed are {tolerance:.0e}."
    outcome = UPHELD if differences[worst] <= tolerance else REFUTED
    return Verdict(outcome=outcome, sentence=sentence, number=differences[worst])


@claim("high-bandwidth", "A GPU's memory is much faster.", "01")
def high_bandwidth(*, cpu: Measurement, gpu: Measurement | None) -> Verdict:
    """Decide by bytes per second of the same copy: "much" means clearly more than twice."""
    if gpu is None:
        return needs_gpu("Only the CPU's memory was measured.")
    for m in (cpu, gpu):
        if not m.task.bytes_moved:
            raise InputError(str(m.task), "the rule compares bytes per second", "Measure it with bytes_moved=….")
    lead = speedup(cpu, gpu)
    rates = [format_bytes_per_s(m.task.bytes_moved / m.median_s) for m in (cpu, gpu)]
    sentence = f"The CPU moves {rates[0]}, the {gpu_name(gpu)} {rates[1]}: {format_ratio(lead.ratio)} as much."
    return _by_threshold(lead, 2.0, sentence, "The advantage is less than twofold.")


@claim("cpu-more-memory", "A CPU usually has more memory than a GPU.", "01")
def cpu_more_memory(*, cpu_bytes: float, gpu_bytes: Mapping[str, float], source: str) -> Verdict:
    """Decide by the capacities of this machine and of every GPU it is compared with."""
    check_positive("cpu_bytes", cpu_bytes)
    for name, size in gpu_bytes.items():
        check_positive(f"gpu_bytes[{name!r}]", size, unit="bytes")
    if not gpu_bytes:
        return needs_gpu(f"This machine has {format_memory(cpu_bytes)}; there is no GPU to compare with.")
    smaller = sorted((size, name) for name, size in gpu_bytes.items() if size < cpu_bytes)
    larger = sorted((size, name) for name, size in gpu_bytes.items() if size >= cpu_bytes)
    sentence = f"This machine has {format_memory(cpu_bytes)}; {len(smaller)} of {len(gpu_bytes)} GPUs have less."
    if smaller and larger:
        (size, name), (next_size, next_name) = smaller[-1], larger[0]
        flips = (
            f"The answer changes between {name} ({format_memory(size)}) and {next_name} ({format_memory(next_size)})."
        )
        return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, source=source)
    return Verdict(outcome=UPHELD if smaller else REFUTED, sentence=sentence, source=source)


@claim("feeding-costs", "Carrying the data to the GPU costs more than the GPU saves.", "01")
def feeding_costs(
    *, cpu: Measurement, gpu: Measurement | None, transfer: Measurement | None, arrays: int = 1
) -> Verdict:
    """Decide by the passes over the data after which the time saved exceeds that of carrying this many arrays."""
    if gpu is None or transfer is None:
        return needs_gpu("There is no GPU to carry data to.")
    source = source_of(cpu, gpu, transfer)
    carry_s = check_positive("arrays", arrays) * transfer.median_s
    saved_s = cpu.median_s - gpu.median_s
    times = (
        f"A pass takes {format_s(cpu.median_s)} on the CPU and {format_s(gpu.median_s)} on the {gpu_name(gpu)}; "
        f"carrying the data there takes {format_s(carry_s)}"
    )
    if saved_s <= 0:
        return Verdict(outcome=UPHELD, sentence=f"{times}: the GPU saves nothing on this task.", source=source)
    passes = carry_s / saved_s
    if passes < 1:
        sentence = f"{times}: the first pass already pays for the transfer."
        return Verdict(outcome=REFUTED, sentence=sentence, number=1, source=source)
    flips = f"It pays once the same data is used about {format_count(math.ceil(passes))} times."
    return Verdict(outcome=DEPENDS, sentence=f"{times}.", flips_at=flips, number=passes, source=source)


@claim("unified-memory", "CPU and GPU on one chip are the future, since nothing must be carried.", "01", "07")
def unified_memory(*, gpu: Measurement | None, transfer: Measurement | None, arrays: int = 1) -> Verdict:
    """Decide by the share of the time that a separate memory costs, and where it falls below one half."""
    if gpu is None or transfer is None:
        return needs_gpu("There is no GPU to carry data to.")
    source = source_of(gpu, transfer)
    carry_s = check_positive("arrays", arrays) * transfer.median_s
    share, passes = carry_s / (carry_s + gpu.median_s), carry_s / gpu.median_s
    sentence = f"With one pass over the data, {share:.0%} of the time is transfer, which one shared memory would save."
    if passes < 1:
        return Verdict(outcome=REFUTED, sentence=sentence, number=share, source=source)
    if passes > MANY_PASSES:
        return Verdict(outcome=UPHELD, sentence=sentence, number=share, source=source)
    flips = f"From about {format_count(math.ceil(passes))} passes on, the transfer is less than half of the time."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=share, source=source)


def _by_lead(lead: Speedup, sentence: str, overlap: str) -> Verdict:
    """Uphold a clear lead, refute a clear deficit, and let an overlap depend."""
    return _by_threshold(lead, 1.0, sentence, overlap)


def _by_threshold(lead: Speedup, threshold: float, sentence: str, between: str) -> Verdict:
    """Uphold a lead clearly above the threshold, refute one clearly below 1, and let anything else depend."""
    if lead.low > threshold:
        outcome = UPHELD
    elif lead.high < 1:
        outcome = REFUTED
    else:
        return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=between, number=lead.ratio, source=lead.source)
    return Verdict(outcome=outcome, sentence=sentence, number=lead.ratio, source=lead.source)


def _crossing(cpu: Sweep, crossing: Crossover) -> str:
    if crossing.never:
        return "It overtakes at no size tried."
    if crossing.always:
        return "It is ahead from the smallest size on."
    low = _size(crossing.low) if crossing.low else "below the sizes tried"
    high = _size(crossing.high) if crossing.high else "above the sizes tried"
    return f"It overtakes at about {cpu.parameter} = {_size(crossing.value)} (between {low} and {high})."


def _size(value: float) -> str:
    """Write a size as the figure does: 1.5 is not 1, and what is ten or more is whole."""
    return format_count(round(value) if value >= 10 else float(f"{value:.2g}"))
