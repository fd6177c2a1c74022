"""Variants side by side: how long each takes, and how far its answers are from those in float32."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from labkit import devices
from labkit.comparison import speedup
from labkit.errors import InputError, check_count, check_kind, check_seed, listed
from labkit.html import table
from labkit.inference.variant import Variant, first_of
from labkit.measurement import Measurement
from labkit.precision import relative_error
from labkit.profiles import current_profile
from labkit.timing import measure
from labkit.units import format_ratio, format_s

BASELINE = "float32"
HEAD = ("variant", "median", "speedup", "relative error", "same best class", "what it is")


@dataclass(frozen=True)
class Outcome:
    """What one variant did: its time, the relative error of its answers, the share of items with the same best class.

    measurement and error are None where the variant cannot run here, same_best also where answers are no scores.
    """

    variant: Variant
    measurement: Measurement | None = None
    error: float | None = None
    same_best: float | None = None


@dataclass(frozen=True, repr=False)
class Comparison:
    """The outcomes of all variants, float32 first, judged on so many examples."""

    outcomes: tuple[Outcome, ...]
    judged_on: int

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """The times of the variants that ran, for plot_bars and the lesson's record."""
        return tuple(outcome.measurement for outcome in self.outcomes if outcome.measurement)

    @property
    def baseline(self) -> Measurement:
        """The time of float32."""
        return self.measurements[0]

    def __getitem__(self, name: str) -> Outcome:
        """Return the outcome of one variant. Raises InputError that names the others."""
        found = {outcome.variant.name: outcome for outcome in self.outcomes}
        if name not in found:
            raise InputError(f"{name!r}", "this variant was not compared", f"There are {', '.join(found)}.")
        return found[name]

    def _rows(self) -> list[tuple[str, ...]]:
        return [_row(outcome, self.baseline) for outcome in self.outcomes]

    def _repr_html_(self) -> str:
        return table(self._rows(), head=HEAD, caption=f"Answers judged on {self.judged_on} examples")._repr_html_()

    def __repr__(self) -> str:
        return repr(table(self._rows(), head=HEAD))


def compare_variants(
    found: Iterable[Variant],
    examples: Any,
    *,
    batch: int = 1,
    device: Any = "cpu",
    rounds: int = 3,
    seed: int = 0,
    label: str = "inference",
    **options: Any,
) -> Comparison:
    """Time variants against each other in shuffled rounds, and judge their answers by those of float32.

    Each call answers the first `batch` of examples; the answers to all of them, batch by batch, are judged. The batch
    lies on the device already. found must have float32 in it. options are those of measure.

    >>> import torch
    >>> from labkit.inference.variant import variants
    >>> net, examples = torch.nn.Linear(4, 2), torch.ones(8, 4)
    >>> found = compare_variants(variants(net, examples, names=["float32", "bfloat16"]), examples, min_time_s=0.003)
    >>> found["float32"].error, 0 <= found["bfloat16"].error < 0.05
    (0.0, True)
    """
    found = [check_kind("a variant", variant, Variant) for variant in listed("found", found)]
    found.sort(key=lambda variant: variant.name != BASELINE)
    if not found or found[0].name != BASELINE or found[0].run is None:
        raise InputError(f"variants {[variant.name for variant in found]}", "float32 must be among them: it judges")
    check_count("rounds", rounds)
    target = devices.pick(device).torch_name
    first_of(examples, batch)  # raises for examples that make no batch
    chunks = [examples[start : start + batch].float().to(target) for start in range(0, len(examples), batch)]
    chunks = [chunk for chunk in chunks if len(chunk) == batch]
    runnable = [variant for variant in found if variant.run is not None]
    min_time_s = options.pop("min_time_s", None) or current_profile().min_time_s
    fixed = options | {"device": device, "parameters": {"batch": batch}, "min_time_s": min_time_s / rounds}
    measured: dict[str, list[Measurement]] = {variant.name: [] for variant in runnable}
    shuffle = random.Random(check_seed(seed))
    for _ in range(rounds):
        for variant in shuffle.sample(runnable, len(runnable)):
            measured[variant.name].append(_timed(variant, chunks[0], label, fixed))
    expected = _answers(found[0], chunks)
    if not expected.isfinite().all():
        problem = "they hold infinite numbers or none (NaN), and nothing can be judged by them"
        raise InputError("the answers in float32", problem, "Look at the examples, and at the weights.")
    outcomes = {
        variant.name: Outcome(variant, functools.reduce(Measurement.merge, times), *_judged(variant, chunks, expected))
        for variant, times in ((variant, measured[variant.name]) for variant in runnable)
    }
    shown = tuple(outcomes.get(variant.name, Outcome(variant)) for variant in found)
    return Comparison(shown, judged_on=len(chunks) * batch)


def _timed(variant: Variant, batch: Any, label: str, options: dict[str, Any]) -> Measurement:
    import torch

    @torch.inference_mode()
    def call() -> Any:
        return variant.run(batch)

    name = {"compile": "compiled", "channels_last": "channels_last"}.get(variant.name)
    dtype = variant.name if variant.name in ("bfloat16", "float16", "int8") else BASELINE
    label = f"{label}, {name}" if name else label
    return measure(call, label=label, dtype=dtype, **({"threads": variant.threads} | options))


def _answers(variant: Variant, chunks: list[Any]) -> Any:
    import torch

    with torch.inference_mode(), devices.cpu_threads(variant.threads):
        return torch.cat([variant.run(chunk).float() for chunk in chunks]).cpu()


def _judged(variant: Variant, chunks: list[Any], expected: Any) -> tuple[float, float | None]:
    """Return the relative error and the share of items whose largest score is of the same class."""
    answers = _answers(variant, chunks)
    error = relative_error(answers, expected)
    if expected.ndim != 2 or expected.shape[1] < 2:
        return error, None
    return error, (answers.argmax(1) == expected.argmax(1)).double().mean().item()


def _row(outcome: Outcome, baseline: Measurement) -> tuple[str, ...]:
    variant, measured = outcome.variant, outcome.measurement
    if measured is None:
        return variant.name, "not here", "", "", "", variant.sentence
    lead = speedup(baseline, measured)
    faster = f"{format_ratio(lead.ratio)} ({format_ratio(lead.low)} to {format_ratio(lead.high)})"
    if variant.name == BASELINE:
        faster = "1×"
    best = "" if outcome.same_best is None else f"{outcome.same_best:.1%}"
    return variant.name, format_s(measured.median_s), faster, f"{outcome.error:.1e}", best, variant.sentence
