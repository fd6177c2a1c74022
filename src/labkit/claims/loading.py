"""Rules for the claims about feeding an accelerator (lesson 06)."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.claims.verdicts import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD, Verdict, claim, source_of
from labkit.errors import InputError, check_kind
from labkit.loading import PipelineRun
from labkit.units import format_count, format_s

WAITS = 0.10  # a smaller share of waiting is no reason to change anything
CLEARLY = 1.1  # times as long: two stages that are closer to each other are about equally fast


@claim("cpu-feeds-gpu", "The CPU prepares the data; if it is the bottleneck, the GPU waits.", "06")
def cpu_feeds_gpu(*, runs: Mapping[str, PipelineRun]) -> Verdict:
    """Decide by whether the accelerator waits in those runs, and only in those, in which the CPU is slower than it.

    The CPU's time for a batch is that of its decoding, shared by the workers, as the data set itself clocked it.
    """
    _check(runs)
    missing = [name for name, run in runs.items() if run.feeding_s is None]
    if missing:
        advice = "Use JpegImages, or another data set whose batches have decode_s."
        raise InputError(f"the run {missing[0]!r}", "it does not know how long the CPU took for a batch", advice)
    slow = [name for name, run in runs.items() if run.feeding_s > CLEARLY * run.step_s]
    fast = [name for name, run in runs.items() if CLEARLY * run.feeding_s < run.step_s]
    most = max(runs, key=lambda name: runs[name].waiting_share)
    share, source = runs[most].waiting_share, source_of(*(run.measurement for run in runs.values()))
    sentence = f"The accelerator waits most with {most}, {_in_words(runs[most])}."
    if not slow:
        need = "Here the CPU was never the bottleneck: it needs larger photos, fewer workers or a faster accelerator."
        return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=need)
    idle = [name for name in slow if runs[name].waiting_share >= WAITS]
    in_vain = [name for name in fast if runs[name].waiting_share >= WAITS]
    if not idle:
        return Verdict(outcome=REFUTED, sentence=sentence, number=share, source=source)
    if len(idle) < len(slow):
        busy = ", ".join(name for name in slow if name not in idle)
        flips = f"It did not wait with {busy}, though decoding takes longer than a step there."
    elif in_vain:
        flips = (
            f"It also waited with {', '.join(in_vain)}, where decoding is fast enough: there the rest of the loading "
            "limits, such as handing batches from process to process, or another program takes the CPU."
        )
    else:
        where = "the one run" if len(slow) == 1 else f"all {len(slow)} runs"
        sentence += f" It waits in {where} in which decoding a batch takes longer than a step."
        return Verdict(outcome=UPHELD, sentence=sentence, number=share, source=source)
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=share, source=source)


@claim("cheap-cpu-big-gpu", "A cheap CPU will do beside a big GPU.", "06", "07")
def cheap_cpu_big_gpu(*, runs: Mapping[str, PipelineRun]) -> Verdict:
    """Decide by which accelerators this CPU keeps at work; runs maps each to its run with the best loader found.

    The number is how many CPUs like this one the fastest of them would take: the CPU's time for a batch over its step.
    """
    _check(runs)
    fastest = min(runs, key=lambda name: runs[name].step_s)
    feeding_s = {name: run.feeding_s or _interval_s(run) for name, run in runs.items()}
    needed = feeding_s[fastest] / runs[fastest].step_s
    source = source_of(*(run.measurement for run in runs.values()))
    said = "; ".join(f"the {name} waits {_in_words(run)}" for name, run in runs.items())
    sentence = f"Fed by this CPU: {said}. To decode for the {fastest}, it takes {format_count(needed)} times this CPU."
    fed = [name for name, run in runs.items() if run.waiting_share < WAITS]
    if len(fed) == len(runs):
        return Verdict(outcome=UPHELD, sentence=sentence, number=needed, source=source)
    if not fed:
        return Verdict(outcome=REFUTED, sentence=sentence, number=needed, source=source)
    flips = (
        f"This CPU feeds what takes at least {format_s(feeding_s[fastest])} for a batch: enough for {', '.join(fed)}, "
        f"too slow for {', '.join(name for name in runs if name not in fed)}."
    )
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=needed, source=source)


def _check(runs: Mapping[str, PipelineRun]) -> None:
    if not runs:
        raise InputError("runs={}", "the rule needs at least one run of a pipeline", "Try run_pipeline.")
    for name, run in runs.items():
        check_kind(f"runs[{name!r}]", run, PipelineRun)


def _interval_s(run: PipelineRun) -> float:
    return sum(run.intervals_s) / len(run.intervals_s)


def _in_words(run: PipelineRun) -> str:
    prepares = f"{format_s(run.feeding_s)} to prepare a batch, " if run.feeding_s else ""
    return (
        f"{run.waiting_share:.0%} of the time ({prepares}{format_s(run.step_s)} a step, "
        f"{format_count(run.images_per_s)} images/s)"
    )
