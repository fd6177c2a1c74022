"""Rules for the claims about matrix products (lesson 02)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from labkit.claims.verdicts import (
    DEPENDS,
    NOT_TESTABLE,
    REFUTED,
    UPHELD,
    Verdict,
    claim,
    gpu_name,
    needs_gpu,
    source_of,
)
from labkit.comparison import speedup
from labkit.errors import InputError, check_positive, listed
from labkit.measurement import Measurement
from labkit.units import format_count, format_ratio, format_s

AT_ONCE = 2.0  # more than this many multiply-adds in the time of one dependent step is not one by one
TENS, HUNDREDS = 10.0, 1000.0
EXPERT_LEAD = 10.0
SUSTAINED_S = 30.0  # a heat sink takes tens of seconds to warm up; a shorter run shows nothing
HEAT_LOSS = 0.03


@claim(
    "thousand-matmul",
    "In a 1000×1000 product the CPU computes a million elements one by one, the GPU thousands at once.",
    "02",
)
def thousand_matmul(*, chain: Measurement, steps: int, product: Measurement) -> Verdict:
    """Decide by how many multiply-adds the CPU finishes in the time that one dependent addition takes.

    chain times additions of which each waits for the one before, steps is how many there are, and product times the
    whole matrix product and knows its FLOP.
    """
    check_positive("steps", steps)
    if product.task.flop is None:
        raise InputError("a product without its FLOP", "the rule counts multiply-adds", "Measure it with flop=2*n**3.")
    step_s = chain.median_s / steps
    at_once = product.task.flop / 2 * step_s / product.median_s
    sentence = (
        f"The product takes {format_s(product.median_s)}. In the time of one dependent addition "
        f"({format_s(step_s)}) the CPU finishes {format_count(round(at_once, 1))} multiply-adds."
    )
    outcome = REFUTED if at_once > AT_ONCE else UPHELD
    return Verdict(outcome=outcome, sentence=sentence, number=at_once, source=source_of(chain, product))


@claim("tens-to-hundreds", "A GPU is tens to hundreds of times faster.", "02", "03", "07")
def tens_to_hundreds(*, cpu_codes: Mapping[str, Measurement], gpu: Measurement | None) -> Verdict:
    """Decide by the ratio to each CPU code, all scaled to one size: which CPU code was compared?"""
    if not cpu_codes:
        raise InputError("cpu_codes={}", "the rule needs at least one CPU measurement")
    if gpu is None:
        return needs_gpu("Only CPU codes were measured.")
    ratios = {name: speedup(code, gpu) for name, code in cpu_codes.items()}
    best = min(ratios, key=lambda name: ratios[name].ratio)
    worst = max(ratios, key=lambda name: ratios[name].ratio)
    listed = ", ".join(f"{format_ratio(lead.ratio)} against {name}" for name, lead in ratios.items())
    sentence, source = f"The lead of the {gpu_name(gpu)}: {listed}.", source_of(gpu, *cpu_codes.values())
    held = [name for name, lead in ratios.items() if TENS <= lead.ratio <= HUNDREDS]
    if len(held) == len(ratios):
        return Verdict(outcome=UPHELD, sentence=sentence, number=ratios[best].ratio, source=source)
    if not held and ratios[worst].ratio < TENS:
        return Verdict(outcome=REFUTED, sentence=sentence, number=ratios[best].ratio, source=source)
    flips = f"It depends on the CPU code: {best} gives the smallest lead, {worst} the largest."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=ratios[best].ratio, source=source)


@claim("float-expert", "A GPU is built for floating-point numbers.", "02")
def float_expert(*, cpu: Mapping[str, Measurement], gpu: Mapping[str, Measurement]) -> Verdict:
    """Decide by the GPU's lead in each floating-point dtype that both devices ran."""
    shared = [dtype for dtype in cpu if dtype in gpu and "float" in dtype]
    if not shared:
        return needs_gpu("The dtypes were measured on the CPU alone.")
    leads = {dtype: speedup(cpu[dtype], gpu[dtype]) for dtype in shared}
    sentence = (
        f"The lead of the {gpu_name(gpu[shared[0]])}: "
        + ", ".join(f"{dtype} {format_ratio(lead.ratio)}" for dtype, lead in leads.items())
        + "."
    )
    least = min(leads, key=lambda dtype: leads[dtype].ratio)
    strong = [dtype for dtype, lead in leads.items() if lead.ratio >= EXPERT_LEAD]
    number, source = leads[least].ratio, source_of(*(side[dtype] for side in (cpu, gpu) for dtype in shared))
    if len(strong) == len(leads):
        return Verdict(outcome=UPHELD, sentence=sentence, number=number, source=source)
    if not strong:
        return Verdict(outcome=REFUTED, sentence=sentence, number=number, source=source)
    flips = f"It depends on which float: at least tenfold in {', '.join(strong)}, but not in {least}."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=number, source=source)


@claim("heat", "Heat slows both.", "02")
def heat(*, times_s: Sequence[float], source: str = "measured") -> Verdict:
    """Decide by the last tenth of a sustained run against its first tenth; times_s are all its calls in order."""
    times_s = [check_positive("times_s", time_s, unit="seconds") for time_s in listed("times_s", times_s)]
    tenth, total_s = len(times_s) // 10, sum(times_s)
    if total_s < SUSTAINED_S or tenth < 3:
        sentence = f"The run lasted {format_s(total_s)} with {len(times_s)} calls."
        need = f"It needs a run of at least {format_s(SUSTAINED_S)}: choose a longer one, or the thorough profile."
        return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=need)
    first, last = times_s[:tenth], times_s[-tenth:]
    loss = 1 - statistics.median(first) / statistics.median(last)
    sentence = f"Over {format_s(total_s)} the CPU's speed changed by {-loss:+.1%} from the first tenth to the last."
    if loss <= HEAT_LOSS:
        return Verdict(outcome=REFUTED, sentence=sentence, number=loss, source=source)
    if statistics.quantiles(last, n=4)[0] <= statistics.quantiles(first, n=4)[2]:
        flips = "The two spreads overlap, so other programs may be the cause: repeat it on an idle machine."
        return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=loss, source=source)
    sentence += " Heat may be the cause, or another program: repeat it on an idle machine. No GPU was run."
    return Verdict(outcome=UPHELD, sentence=sentence, number=loss, source=source)
