"""Rules for the claims about training (lesson 03)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from labkit.claims.verdicts import DEPENDS, REFUTED, UPHELD, Verdict, claim, gpu_name, needs_gpu, source_of
from labkit.comparison import interval_s, speedup
from labkit.errors import InputError, check_positive
from labkit.measurement import Measurement
from labkit.units import format_flop, format_ratio, format_s

DAY_S = 86_400.0
WEEK_S = 7 * DAY_S


@claim("training-needs-gpu", "Training without a GPU is hopeless.", "03")
def training_needs_gpu(*, trainings: Mapping[str, Measurement], patience_s: float) -> Verdict:
    """Decide by which whole trainings end on the CPU within patience_s, the time that one would wait for them.

    trainings maps a name to the time of a whole training, and where it is known to its FLOP.
    """
    check_positive("patience_s", patience_s, unit="seconds")
    if not trainings:
        raise InputError("trainings={}", "the rule needs at least one training")
    rising = sorted(trainings, key=lambda name: trainings[name].median_s)
    times = ", ".join(f"{name} {format_s(trainings[name].median_s)}" for name in rising)
    found = {"number": trainings[rising[0]].median_s, "source": source_of(*trainings.values())}
    sentence = f"On this CPU: {times}. The patience: {format_s(patience_s)}."
    done = [name for name in rising if interval_s(trainings[name])[1] <= patience_s]
    hopeless = [name for name in rising if interval_s(trainings[name])[0] > patience_s]
    if len(done) == len(rising):
        return Verdict(outcome=REFUTED, sentence=sentence, **found)
    if len(hopeless) == len(rising):
        return Verdict(outcome=UPHELD, sentence=sentence, **found)
    if len(done) + len(hopeless) < len(rising):
        between = next(name for name in rising if name not in done + hopeless)
        flips = f"For {between} the range of the time reaches over the patience: it may end in time or not."
    else:
        flips = _flip(done[-1], hopeless[0], trainings, patience_s)
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, **found)


def _flip(done: str, hopeless: str, trainings: Mapping[str, Measurement], patience_s: float) -> str:
    """Say between which two trainings it becomes hopeless, and at how much work, interpolated in logarithms."""
    low, high = trainings[done], trainings[hopeless]
    flips = f"It becomes hopeless between {done} and {hopeless}"
    if not (low.task.flop and high.task.flop):
        return f"{flips}."
    share = math.log(patience_s / low.median_s) / math.log(high.median_s / low.median_s)
    ratio = (high.task.flop / low.task.flop) ** share
    return f"{flips}, at about {format_flop(low.task.flop * ratio)}: {format_ratio(ratio)} the work of {done}."


@claim("days-to-hours", "Weeks on a CPU become hours on a GPU.", "03", "07")
def days_to_hours(*, cpu: Measurement, gpu: Measurement | None) -> Verdict:
    """Decide by the time of one whole training on each: a week or more on the CPU, at most a day on the GPU."""
    if gpu is None:
        return needs_gpu(f"The training takes {_span(cpu)} on this CPU; there is no GPU to compare with.")
    lead = speedup(cpu, gpu)
    name = gpu_name(gpu)
    sentence = f"The training takes {_span(cpu)} on this CPU and {_span(gpu)} on the {name}."
    found = {"number": cpu.median_s, "source": lead.source}
    if interval_s(cpu)[0] >= WEEK_S and interval_s(gpu)[1] <= DAY_S:
        return Verdict(outcome=UPHELD, sentence=sentence, **found)
    needed = WEEK_S / DAY_S
    if lead.high < needed:
        sentence += f" The {name} is {format_ratio(lead.ratio)} as fast: no training turns from a week into a day."
        return Verdict(outcome=REFUTED, sentence=sentence, **found)
    if lead.ratio < needed:
        flips = f"A week has seven days, and the range of the lead ({lead}) reaches over seven: it decides nothing."
    else:
        longest = format_s(DAY_S * lead.ratio)
        flips = f"It holds for trainings that take this CPU a week to {longest}: the {name} takes a day at most."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, **found)


def _span(measurement: Measurement) -> str:
    low_s, high_s = interval_s(measurement)
    return f"{format_s(measurement.median_s)} ({format_s(low_s)} to {format_s(high_s)}, {measurement.source})"
