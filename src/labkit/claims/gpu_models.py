"""The rule for the claim about a model that was trained on a GPU (lesson 05)."""

from __future__ import annotations

from labkit.claims.verdicts import DEPENDS, REFUTED, UPHELD, Verdict, claim, gpu_name, needs_gpu, source_of
from labkit.comparison import shared_values, speedup
from labkit.errors import InputError, check_choice, check_positive
from labkit.measurement import SOURCES, Sweep
from labkit.units import format_count, format_ratio

SAME = 0.99  # the share of equal answers from which on two computers give "the same" ones


@claim("gpu-model-on-cpu", "A model that was trained on a GPU can be used on a CPU, only slower.", "05")
def gpu_model_on_cpu(
    *,
    same_best: float,
    drift: float,
    tolerance: float,
    cpu: Sweep,
    gpu: Sweep | None,
    drift_source: str = "measured",
) -> Verdict:
    """Decide by the CPU's answers beside the GPU's, then by the time of each on batches of the same sizes.

    same_best is the share of inputs with the same best class on both, drift the relative difference of the scores,
    tolerance the most that the two devices' arithmetic explains; drift_source is "predicted" where the GPU's arithmetic
    was imitated. cpu and gpu are sweeps over "batch". Only slower means: at every batch, beyond the spread.
    """
    check_positive("tolerance", tolerance)
    check_positive("drift", drift, zero_ok=True)
    check_choice("drift_source", drift_source, SOURCES)
    if check_positive("same_best", same_best, zero_ok=True) > 1:
        raise InputError(f"same_best={same_best!r}", "a share lies between 0 and 1")
    answers = (
        f"Both find the same best class for {same_best:.1%} of the inputs. Their scores differ by {drift:.1e}; "
        f"rounding explains up to {tolerance:.0e}."
    )
    if drift > tolerance or same_best < SAME:
        return Verdict(outcome=REFUTED, sentence=f"{answers} These are other answers.", source=drift_source)
    if gpu is None:
        return needs_gpu(answers)
    return _by_time(answers, cpu, gpu, drift_source)


def _by_time(answers: str, cpu: Sweep, gpu: Sweep, drift_source: str) -> Verdict:
    """Return the verdict for equal answers: at which batches is the CPU slower?"""
    leads = {batch: speedup(cpu.at(batch), gpu.at(batch)) for batch in shared_values(cpu, gpu)}
    ratios = ", ".join(f"{format_ratio(lead.ratio)} at batch {format_count(batch)}" for batch, lead in leads.items())
    found = {
        "sentence": f"{answers} The speedup of the {gpu_name(gpu)} over the CPU is {ratios}.",
        "number": leads[max(leads)].ratio,
        "source": max(source_of(cpu, gpu), drift_source, key=SOURCES.index),
    }
    slower = [format_count(batch) for batch, lead in leads.items() if lead.low > 1]
    others = [format_count(batch) for batch, lead in leads.items() if lead.low <= 1]
    if not others:
        return Verdict(outcome=UPHELD, **found)
    if not slower:
        flips = f"It can be used, and up to batch {others[-1]} it is not clearly slower."
        return Verdict(outcome=DEPENDS, flips_at=flips, **found)
    flips = f"The CPU is clearly slower at batch {', '.join(slower)}, and not at batch {', '.join(others)}."
    return Verdict(outcome=DEPENDS, flips_at=flips, **found)
