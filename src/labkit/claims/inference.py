"""Rules for the claims about answering with a trained model (lesson 05)."""

from __future__ import annotations

import math
from collections.abc import Sequence

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
from labkit.comparison import interval_s
from labkit.errors import InputError, check_kind, check_positive, listed
from labkit.inference import LoadRun, best_throughput, percentile
from labkit.measurement import Measurement, Sweep
from labkit.units import format_count, format_ratio, format_s

ENOUGH = 0.95  # of the answers must come within the limit
FEWEST_REQUESTS = 20  # of which one may come late: fewer cannot tell 95 % from all


@claim("cpu-inference-fine", "For small models and light loads a CPU is enough for inference.", "05")
def cpu_inference_fine(*, latency: Measurement, runs: Sequence[LoadRun], limit_s: float) -> Verdict:
    """Decide by the share of answers that come within limit_s, alone and under each load that was tried.

    latency holds single calls; runs are loads that were really run or predicted. A load is held where the server keeps
    up with it and 95 % of the answers come in time.
    """
    check_positive("limit_s", limit_s, unit="seconds")
    runs = [check_kind("a run", run, LoadRun) for run in listed("runs", runs)]
    alone_s = percentile(latency.times_s, 100 * ENOUGH)
    sentence = f"Alone, {ENOUGH:.0%} of the answers take at most {format_s(alone_s)}; the limit is {format_s(limit_s)}."
    if alone_s > limit_s:
        sentence += " That is too long, however few requests come."
        return Verdict(outcome=REFUTED, sentence=sentence, number=0, source=source_of(latency))
    runs = sorted((run for run in runs if run.arrived >= FEWEST_REQUESTS), key=lambda run: run.rate_per_s)
    if not any(run.requests for run in runs):
        need = f"It needs a run in which at least {FEWEST_REQUESTS} requests arrive: a longer one, or a higher rate."
        return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=need)
    source = source_of(latency, *(run.responses() for run in runs if run.requests))
    shares = ", ".join(f"at {_rate(run)} {run.share_within(limit_s):.0%}{_growing(run)}" for run in runs)
    sentence += f" Within the limit came: {shares}."
    held = [run for run in runs if _holds(run, limit_s)]
    failed = [run for run in runs if run not in held]
    # A load that is held beyond one that is not was luck, or the lighter one met another program.
    held_below = [run for run in held if not failed or run.rate_per_s < failed[0].rate_per_s]
    number = max((run.rate_per_s for run in held_below), default=0)
    found = {"sentence": sentence, "number": number, "source": source}
    if not failed:
        return Verdict(outcome=UPHELD, **found)
    return Verdict(outcome=DEPENDS, flips_at=_where_it_breaks(held_below, failed), **found)


def _holds(run: LoadRun, limit_s: float) -> bool:
    return bool(run.requests) and run.keeps_up and run.share_within(limit_s) >= ENOUGH


def _growing(run: LoadRun) -> str:
    """Say of answers that came in time that this could not have lasted."""
    return "" if run.requests and run.keeps_up else " (the queue was growing)"


def _where_it_breaks(held: list[LoadRun], failed: list[LoadRun]) -> str:
    """Say between which two loads it stops being enough; held are those below the lightest that failed."""
    if not held:
        return f"Already {_rate(failed[0])} are too many, and no lighter load was tried."
    return f"It is enough up to {_rate(held[-1])} and no longer at {_rate(failed[0])}."


def _rate(run: LoadRun) -> str:
    return f"{format_count(run.rate_per_s)} requests/s"


@claim("inference-at-scale", "For many requests at once only a GPU gives the throughput.", "05")
def inference_at_scale(*, cpu: Sweep, gpu: Sweep | None, rate_per_s: float) -> Verdict:
    """Decide by the best throughput of each over all batches, against the requests that come in a second.

    Both sweeps go over "batch".
    """
    check_positive("rate_per_s", rate_per_s)
    best = best_throughput(cpu)
    reach = f"The CPU answers up to {_per_s(best.images_per_s)} ({_batch(best)}); {_per_s(rate_per_s)} are asked for."
    if gpu is None:
        return needs_gpu(reach)
    gpu_best = best_throughput(gpu)
    (low, high), (gpu_low, gpu_high) = (_range_per_s(measurement) for measurement in (best, gpu_best))
    lead = gpu_best.images_per_s / best.images_per_s
    name = gpu_name(gpu)
    sentence = (
        f"{reach} The {name} answers up to {_per_s(gpu_best.images_per_s)} ({_batch(gpu_best)}), "
        f"{format_ratio(lead)} as many."
    )
    found = {"number": lead, "source": source_of(cpu, gpu)}
    if rate_per_s <= low:
        return Verdict(outcome=REFUTED, sentence=f"{sentence} The CPU alone is enough for that.", **found)
    if gpu_high <= low:
        return Verdict(outcome=REFUTED, sentence=f"{sentence} The GPU gives no more than the CPU.", **found)
    if high < rate_per_s <= gpu_low:
        sentence += f" It would take {format_count(math.ceil(rate_per_s / best.images_per_s))} such CPUs."
        return Verdict(outcome=UPHELD, sentence=sentence, **found)
    flips = (
        f"One such CPU is enough up to about {_per_s(best.images_per_s)}, one such GPU up to about "
        f"{_per_s(gpu_best.images_per_s)}."
    )
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, **found)


def _range_per_s(measurement: Measurement) -> tuple[float, float]:
    """Return the images per second that the spread of the times allows."""
    fast_s, slow_s = interval_s(measurement)
    batch = measurement.images_per_s * measurement.median_s
    return batch / slow_s, batch / fast_s


def _per_s(rate: float) -> str:
    return f"{format_count(rate if rate < 100 else round(rate))} images/s"


def _batch(measurement: Measurement) -> str:
    batch = measurement.task.parameters["batch"]
    if not isinstance(batch, (int, float)):
        raise InputError(f"batch={batch!r}", "a batch is a number of images")
    return f"batch {format_count(batch)}"
