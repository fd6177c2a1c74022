"""Rules for the claims about cores and lanes (lessons 00 and 01)."""

from __future__ import annotations

from labkit.claims.verdicts import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD, Verdict, claim
from labkit.comparison import Amdahl, fit_amdahl, speedup
from labkit.errors import InputError, check_count
from labkit.measurement import Measurement, Sweep
from labkit.units import format_count, format_ratio

FEW_CORES, MANY_LANES = 64, 1000
GOOD_EFFICIENCY = 0.9  # the share of a perfect speedup that still counts as "proportionally faster"


@claim("few-strong-cores", "A CPU has a few strong cores, a GPU thousands of simple ones.", "00", "01")
def few_strong_cores(
    *,
    cpu_cores: int,
    lanes_per_core: int,
    gpu_lanes: int | None,
    gpu_name: str = "GPU",
    one_lane: Measurement | None = None,
    all_lanes: Measurement | None = None,
    source: str = "predicted",
) -> Verdict:
    """Decide by counting both in one unit, the float32 lane; the measured gain of one core's lanes is told beside it.

    one_lane and all_lanes time the same additions on one thread, once in a chain and once independent of each other.
    source is that of the GPU's lanes: predicted when they come from the catalogue.
    """
    for name, count in (("cpu_cores", cpu_cores), ("lanes_per_core", lanes_per_core)):
        check_count(name, count)
    cpu_lanes = cpu_cores * lanes_per_core
    cores = f"{cpu_cores} usable core{'s' if cpu_cores > 1 else ''}"
    sentence = f"This CPU has {cores} with {lanes_per_core} float32 lanes each, {cpu_lanes} lanes."
    if one_lane and all_lanes:
        gain = speedup(one_lane, all_lanes)
        sentence += f" On one core, independent additions run {gain} as fast as a chain of them."
    if gpu_lanes is None:
        need = "It needs a GPU, or one of the catalogue, to count against."
        return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=need)
    check_count("gpu_lanes", gpu_lanes)
    ratio = gpu_lanes / cpu_lanes
    sentence += f" The {gpu_name} has {format_count(gpu_lanes)} lanes, {format_ratio(ratio)} as many."
    if cpu_cores > FEW_CORES or gpu_lanes < MANY_LANES:
        flips = f"“Few” holds up to {FEW_CORES} cores and “thousands” from {format_count(MANY_LANES)} lanes on."
        return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=ratio, source=source)
    return Verdict(outcome=UPHELD, sentence=sentence, number=ratio, source=source)


@claim("more-cores", "With more cores the same work becomes proportionally faster.", "01")
def more_cores(*, threads: Sweep) -> Verdict:
    """Decide by the speedup on all threads over one, and by the thread count where Amdahl's law halves efficiency."""
    if threads.parameter != "threads" or 1 not in threads.values:
        raise InputError(f"a sweep over {threads.parameter}", "this claim needs a sweep over threads that starts at 1")
    most = threads.values[-1]
    if most == 1:
        need = "It needs a machine with at least two usable CPUs."
        return Verdict(outcome=NOT_TESTABLE, sentence="Only one CPU is usable here.", flips_at=need)
    gain = speedup(threads.at(1), threads.at(most))
    sentence = f"{most} threads are {gain} as fast as one."
    if gain.ratio <= 1:
        sentence += (
            " More threads made it slower, which Amdahl's law cannot describe: other programs may use the cores."
        )
        return Verdict(outcome=REFUTED, sentence=sentence, number=gain.ratio, source=gain.source)
    law = fit_amdahl(threads.values, threads.medians_s)
    sentence += f" By Amdahl's law, {law.serial:.0%} of the work stays serial."
    if gain.ratio >= GOOD_EFFICIENCY * most:
        return Verdict(outcome=UPHELD, sentence=sentence, number=gain.ratio, source=gain.source)
    return Verdict(
        outcome=DEPENDS, sentence=sentence, flips_at=_half_efficiency(law), number=gain.ratio, source=gain.source
    )


def _half_efficiency(law: Amdahl) -> str:
    """Name the thread count p where speedup(p) = p/2: serial + (1 - serial)/p = 2/p gives p = (1 + serial)/serial."""
    if law.serial == 0:
        return "By Amdahl's law it would hold for any number of threads."
    count = (1 + law.serial) / law.serial
    return f"By Amdahl's law half of the gain is lost from about {format_count(round(count))} threads on."
