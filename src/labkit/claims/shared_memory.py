"""Rules for the claims about shared memory (lesson 04): counts are the simulator's, times say where they are from."""

from __future__ import annotations

from collections.abc import Mapping

from labkit.claims.verdicts import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD, Verdict, claim, source_of
from labkit.comparison import Speedup, speedup
from labkit.errors import InputError, check_positive
from labkit.measurement import Measurement
from labkit.occupancy import Occupancy
from labkit.units import format_count, format_memory, format_ratio

WORTH_IT = 1.2  # a gain below this is no reason to write a second kernel
RARE, COMMON = 0.05, 0.5  # below the one share "almost never" holds, from the other on it is plainly wrong
MOST_NAMES = 6
HARDER = 2.0  # the same right answer at this many times the work: being right is not enough


@claim("shared-unused", "Shared memory is almost never used.", "04")
def shared_unused(
    *, saved: Mapping[str, float], sources: Mapping[str, bool], library: Mapping[str, float] | None = None
) -> Verdict:
    """Decide by the library's own code: sources maps each of its files with GPU kernels to whether it uses any.

    saved maps a task to how many times fewer sectors its kernel moves thanks to shared memory, as counted. library
    maps an operation, profiled on a GPU, to the bytes that a block of it takes. Both are told beside; without sources
    the profile decides, and without either nothing does.
    """
    _check_ratios("saved", saved)
    listed = ", ".join(f"{task} {format_ratio(ratio)}" for task, ratio in saved.items())
    sentence = f"Counted, shared memory makes the sectors fewer by: {listed}."
    if library:
        takes = ", ".join(f"{name} {format_memory(size) if size else 'none'}" for name, size in library.items())
        sentence += f" Shared memory of a block, by the profile: {takes}."
    uses = dict(sources) or {name: size > 0 for name, size in (library or {}).items()}
    if not uses:
        need = "It needs a library's CUDA sources, or a profile of its kernels on a GPU."
        return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=need)
    users = [name for name, used in uses.items() if used]
    others = [name for name in uses if name not in users]
    share = len(users) / len(uses)
    what = "source files with kernels" if sources else "operations"
    sentence += f" Of {len(uses)} {what} of the library, {len(users)} use it."
    if share < RARE:
        return Verdict(outcome=UPHELD, sentence=sentence, number=share)
    if share >= COMMON:
        return Verdict(outcome=REFUTED, sentence=sentence, number=share)
    flips = f"It depends on the work: used in {_some(users)}; not in {_some(others)}."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=share)


def _some(names: list[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


@claim("shared-needs-sync", "Shared memory needs explicit management and synchronisation.", "04")
def shared_needs_sync(
    *, complete: int, without: Mapping[str, int], wrong_runs: int, runs: int, lockstep_right: bool
) -> Verdict:
    """Decide by the hazards found: complete with all barriers, without maps a removed barrier to its hazards.

    wrong_runs of runs interleaved schedules gave wrong values; lockstep_right tells whether the one schedule in which
    all threads keep step gave the right ones.
    """
    check_positive("runs", runs)
    if not without:
        raise InputError("without={}", "the rule needs at least one kernel with a barrier taken out")
    needed = [barrier for barrier, hazards in without.items() if hazards > 0]
    listed = ", ".join(f"without {barrier} {format_count(hazards)}" for barrier, hazards in without.items())
    sentence = (
        f"Races found: with all barriers {format_count(complete)}, {listed}. "
        f"{wrong_runs} of {runs} shuffled schedules gave wrong values"
        f"{', and the one in step gave the right ones' if lockstep_right else ''}."
    )
    number = wrong_runs / runs
    if complete > 0:
        flips = "The kernel has a race even with its barriers: it decides nothing until that is mended."
        return Verdict(outcome=NOT_TESTABLE, sentence=sentence, flips_at=flips)
    if len(needed) == len(without):
        return Verdict(outcome=UPHELD, sentence=sentence, number=number)
    if not needed:
        return Verdict(outcome=REFUTED, sentence=sentence, number=number)
    flips = f"It depends on the barrier: {', '.join(needed)} is needed, the others are not."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=number)


@claim("shared-is-scarce", "Shared memory is limited and becomes the bottleneck.", "04")
def shared_is_scarce(
    *,
    kernels: Mapping[str, Occupancy],
    flips_at_bytes: int | None,
    device: str,
    wavefronts: Mapping[str, float] | None = None,
    source: str = "predicted",
) -> Verdict:
    """Decide by which kernels' occupancy shared memory limits alone, and name the bytes per block where it begins to.

    flips_at_bytes: the fewest bytes per block with which a block of the size in question meets that limit, None if it
    never does. wavefronts: how often the banks were asked for one request of a kernel, told beside. The limits are a
    data sheet's: predicted.
    """
    if not kernels:
        raise InputError("kernels={}", "the rule needs at least one kernel's occupancy")
    limited = [name for name, found in kernels.items() if found.limits == ("shared_memory",)]
    listed = ", ".join(f"{name} {found.fraction:.0%}" for name, found in kernels.items())
    sentence = (
        f"Occupancy on the {device}: {listed}. Shared memory alone limits {len(limited)} of {len(kernels)} kernels."
    )
    if wavefronts:
        _check_ratios("wavefronts", wavefronts)
        told = "; ".join(f"{name}: {count:g}" for name, count in wavefronts.items())
        sentence += f" Wavefronts for one read, as counted, with {told}."
    common = {"sentence": sentence, "number": flips_at_bytes, "source": source}
    if len(limited) == len(kernels):
        return Verdict(outcome=UPHELD, **common)
    if not limited and flips_at_bytes is None:
        return Verdict(outcome=REFUTED, **common)
    where = f"from {format_memory(flips_at_bytes)} a block on" if flips_at_bytes else f"for {', '.join(limited)}"
    return Verdict(outcome=DEPENDS, flips_at=f"It becomes the bottleneck {where}.", **common)


@claim("global-is-better", "Programmers prefer global memory because it is more efficient.", "04")
def global_is_better(*, pairs: Mapping[str, tuple[Measurement, Measurement]]) -> Verdict:
    """Decide by time: pairs maps a task to its kernel on global memory alone and the one with shared memory."""
    if not pairs:
        raise InputError("pairs={}", "the rule needs at least one task with both kernels")
    leads = {task: speedup(plain, shared) for task, (plain, shared) in pairs.items()}
    listed = ", ".join(f"{task} {format_ratio(lead.ratio)}" for task, lead in leads.items())
    sentence = f"With shared memory the speedup over global memory alone is: {listed}."
    best = max(leads.values(), key=lambda lead: lead.ratio)
    common = {"sentence": sentence, "number": best.ratio, "source": source_of(*(m for p in pairs.values() for m in p))}
    faster = [task for task, lead in leads.items() if _pays(lead)]
    if not faster:
        return Verdict(outcome=UPHELD, **common)
    if len(faster) == len(leads):
        return Verdict(outcome=REFUTED, **common)
    rest = ", ".join(task for task in leads if task not in faster)
    flips = f"Shared memory pays in {', '.join(faster)}; in {rest} global memory alone is just as good."
    return Verdict(outcome=DEPENDS, flips_at=flips, **common)


def _pays(lead: Speedup) -> bool:
    """Whether the gain counts: large enough, and, where it was measured, outside of the spread.

    The ranges of two predictions come from the same constants and move together, so they do not blur the ratio.
    """
    return lead.ratio >= WORTH_IT and (lead.clear or lead.source == "predicted")


@claim("gpu-harder", "GPUs are harder to program for.", "04")
def gpu_harder(*, work: Mapping[str, float], agree: bool) -> Verdict:
    """Decide by what kernels with the same result cost: work maps each to its counted turns, from first to last idea.

    agree: whether all of them gave the result of the CPU's one line.
    """
    _check_ratios("work", work)
    if len(work) < 2:
        raise InputError(f"work={dict(work)!r}", "the rule compares kernels that do the same", "Give it two or more.")
    if not agree:
        need = "It needs kernels that all give the right result."
        return Verdict(outcome=NOT_TESTABLE, sentence="The kernels disagree about the result.", flips_at=need)
    worst, best = max(work, key=work.__getitem__), min(work, key=work.__getitem__)
    ratio = work[worst] / work[best]
    sentence = (
        f"{len(work)} kernels give the result of one line on the CPU; {worst} takes {format_ratio(ratio)} the turns "
        f"of {best}."
    )
    if ratio >= HARDER:
        return Verdict(outcome=UPHELD, sentence=sentence, number=ratio)
    if ratio < WORTH_IT:
        return Verdict(outcome=REFUTED, sentence=sentence, number=ratio)
    flips = f"It counts as harder where the naive kernel costs at least {format_ratio(HARDER)} the best one."
    return Verdict(outcome=DEPENDS, sentence=sentence, flips_at=flips, number=ratio)


def _check_ratios(name: str, ratios: Mapping[str, float]) -> None:
    if not ratios:
        raise InputError(f"{name}={{}}", "the rule needs at least one number")
    for label, ratio in ratios.items():
        check_positive(f"{name}[{label!r}]", ratio)
