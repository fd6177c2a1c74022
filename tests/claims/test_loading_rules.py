"""The rules about feeding an accelerator, on runs made by hand, for every outcome that they can give."""

from __future__ import annotations

import pytest

from labkit.claims import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD, Verdict, find_claim
from labkit.errors import InputError
from labkit.loading import PipelineRun, Step


def fed(
    decode_s: float | None,
    step_s: float,
    wait_s: float,
    *,
    workers: int = 0,
    source: str = "predicted",
) -> PipelineRun:
    """Return a run of ten steps with this much waiting before each."""
    every_s = step_s + wait_s
    steps = [Step(every_s * n + wait_s, every_s * (n + 1)) for n in range(11)]
    return PipelineRun(
        label="photos",
        batch=32,
        workers=workers,
        steps=steps,
        start_s=0.1,
        accelerator="T4",
        source=source,
        decode_s=decode_s,
    )


def decide(claim: str, **runs: PipelineRun) -> Verdict:
    return find_claim(claim).decide(runs={name.replace("_", " "): run for name, run in runs.items()})


# --- cpu-feeds-gpu -----------------------------------------------------------------------------------------------


def test_it_waits_where_the_cpu_is_slower_and_only_there() -> None:
    verdict = decide("cpu-feeds-gpu", large=fed(0.08, 0.02, 0.06), small=fed(0.01, 0.02, 0.0))
    assert (verdict.outcome, verdict.number, verdict.source) == (UPHELD, pytest.approx(0.75), "predicted")
    assert verdict.headline == "predicted: upheld"
    assert "waits most with large, 75% of the time (80 ms to prepare a batch, 20 ms a step" in verdict.sentence
    assert "It waits in the one run in which" in verdict.sentence
    larger = decide("cpu-feeds-gpu", large=fed(0.08, 0.02, 0.06), huge=fed(0.8, 0.02, 0.78))
    assert "It waits in all 2 runs in which" in larger.sentence


def test_workers_share_the_decoding() -> None:
    # 80 ms by four workers are 20 ms a batch: no longer than a step.
    verdict = decide("cpu-feeds-gpu", none=fed(0.08, 0.02, 0.06), four=fed(0.08, 0.02, 0.0, workers=4))
    assert verdict.outcome == UPHELD


def test_a_real_gpu_gives_a_verdict_without_reserve() -> None:
    assert decide("cpu-feeds-gpu", large=fed(0.08, 0.02, 0.06, source="measured")).headline == UPHELD


def test_a_cpu_that_is_slower_though_nobody_waits_refutes_it() -> None:
    assert decide("cpu-feeds-gpu", large=fed(0.08, 0.02, 0.001)).outcome == REFUTED


def test_it_depends_where_only_some_wait_for_the_slower_cpu() -> None:
    verdict = decide("cpu-feeds-gpu", large=fed(0.08, 0.02, 0.06), medium=fed(0.03, 0.02, 0.001))
    assert verdict.outcome == DEPENDS
    assert "did not wait with medium" in verdict.flips_at


def test_it_depends_where_something_else_than_decoding_is_waited_for() -> None:
    verdict = decide("cpu-feeds-gpu", large=fed(0.08, 0.02, 0.06), tiny_photos=fed(0.001, 0.02, 0.01, workers=2))
    assert verdict.outcome == DEPENDS
    assert "also waited with tiny photos" in verdict.flips_at


def test_nothing_can_be_said_where_the_cpu_was_never_the_bottleneck() -> None:
    verdict = decide("cpu-feeds-gpu", small=fed(0.01, 0.02, 0.0), as_fast=fed(0.021, 0.02, 0.001))
    assert verdict.outcome == NOT_TESTABLE
    assert "larger photos" in verdict.flips_at


def test_runs_that_do_not_know_their_decoding_are_refused() -> None:
    with pytest.raises(InputError, match="'x'.*does not know how long the CPU took"):
        decide("cpu-feeds-gpu", x=fed(None, 0.02, 0.0))


# --- cheap-cpu-big-gpu ---------------------------------------------------------------------------------------------


def test_a_cpu_that_feeds_all_of_them_will_do() -> None:
    verdict = decide("cheap-cpu-big-gpu", T4=fed(0.04, 0.08, 0.0, workers=2), H100=fed(0.04, 0.04, 0.0, workers=2))
    assert (verdict.outcome, verdict.number) == (UPHELD, pytest.approx(0.5))  # 20 ms a batch beside 40 ms a step
    assert "To decode for the H100, it takes 0.5 times this CPU." in verdict.sentence


def test_a_cpu_that_feeds_none_of_them_will_not_do() -> None:
    verdict = decide("cheap-cpu-big-gpu", T4=fed(0.2, 0.08, 0.12), H100=fed(0.2, 0.01, 0.19))
    assert (verdict.outcome, verdict.number) == (REFUTED, pytest.approx(20))


def test_it_depends_on_how_fast_the_gpu_is_and_says_from_where() -> None:
    verdict = decide(
        "cheap-cpu-big-gpu", T4=fed(0.05, 0.08, 0.0), A100=fed(0.05, 0.03, 0.02), H100=fed(0.05, 0.01, 0.04)
    )
    assert (verdict.outcome, verdict.number) == (DEPENDS, pytest.approx(5))
    assert verdict.flips_at == (
        "This CPU feeds what takes at least 50 ms for a batch: enough for T4, too slow for A100, H100."
    )


def test_without_a_decoding_time_the_pace_of_the_batches_counts() -> None:
    verdict = decide("cheap-cpu-big-gpu", T4=fed(None, 0.02, 0.06))
    assert (verdict.outcome, verdict.number) == (REFUTED, pytest.approx(4))  # a batch every 80 ms, a step of 20


@pytest.mark.parametrize("claim", ["cpu-feeds-gpu", "cheap-cpu-big-gpu"])
@pytest.mark.parametrize("runs", [{}, {"x": 0.5}, [], 7, None])
def test_nonsense_is_refused(claim: str, runs: object) -> None:
    with pytest.raises(InputError):
        find_claim(claim).decide(runs=runs)
