"""The rules about inference, for every outcome that each can give; expected values are worked by hand."""

from __future__ import annotations

from typing import Any

import pytest
from evidence import decide, swept, took

from labkit.claims import DEPENDS, NOT_TESTABLE, REFUTED, UPHELD
from labkit.errors import InputError
from labkit.inference import LoadRun, Request
from labkit.measurement import Measurement, Point, Sweep, Task

# --- cpu-inference-fine --------------------------------------------------------------------------------------------


def load(rate_per_s: float, *, in_time: int, late: int = 0, unanswered: int = 0) -> LoadRun:
    """Return ten seconds of requests, of which so many were answered in 0.01 s, and so many after 0.5 s of waiting."""
    waits_s = [0.0] * in_time + [0.5] * late
    requests = [Request(n * 0.1, n * 0.1 + wait_s, n * 0.1 + wait_s + 0.01) for n, wait_s in enumerate(waits_s)]
    left = [9.0] * unanswered
    return LoadRun(label="net", rate_per_s=rate_per_s, duration_s=10, requests=requests, unanswered=left)


ALONE = took(0.010)


def test_held_loads_uphold_it() -> None:
    verdict = decide(
        "cpu-inference-fine", latency=ALONE, runs=[load(8, in_time=95, late=5), load(3, in_time=30)], limit_s=0.1
    )
    assert (verdict.outcome, verdict.number, verdict.source) == (UPHELD, 8, "measured")
    assert "at most 10 ms; the limit is 100 ms" in verdict.sentence
    assert "at 3 requests/s 100%, at 8 requests/s 95%" in verdict.sentence


@pytest.mark.parametrize(
    "heavy",
    [
        load(50, in_time=94, late=6),
        load(50, in_time=99, unanswered=1),  # in time but for one, which shows that it did not keep up
        load(50, in_time=0, unanswered=40),
    ],
    ids=["late", "left waiting", "none answered"],
)
def test_it_depends_on_the_load(heavy: LoadRun) -> None:
    verdict = decide("cpu-inference-fine", latency=ALONE, runs=[heavy, load(5, in_time=50)], limit_s=0.1)
    assert (verdict.outcome, verdict.number) == (DEPENDS, 5)
    assert verdict.flips_at == "It is enough up to 5 requests/s and no longer at 50 requests/s."


def test_a_server_that_is_always_busy_holds_nothing() -> None:
    """All in time until now, but with more than ten seconds of work in ten: the queue grows."""
    requests = [Request(n * 0.1, n * 0.1, n * 0.1 + 0.11) for n in range(100)]
    full = LoadRun(label="net", rate_per_s=10, duration_s=10, requests=requests)
    assert full.load == pytest.approx(1.1)
    verdict = decide("cpu-inference-fine", latency=ALONE, runs=[full], limit_s=0.2)
    assert verdict.outcome == DEPENDS
    assert verdict.flips_at.startswith("Already 10 requests/s are too many")
    assert "at 10 requests/s 100% (the queue was growing)" in verdict.sentence


def test_a_load_held_beyond_one_that_was_not_does_not_count() -> None:
    runs = [load(5, in_time=50), load(8, in_time=50, late=30), load(9, in_time=90)]
    verdict = decide("cpu-inference-fine", latency=ALONE, runs=runs, limit_s=0.1)
    assert (verdict.outcome, verdict.number) == (DEPENDS, 5)
    assert verdict.flips_at == "It is enough up to 5 requests/s and no longer at 8 requests/s."


def test_it_is_refuted_where_one_answer_alone_takes_too_long() -> None:
    verdict = decide("cpu-inference-fine", latency=took(0.2), runs=[load(5, in_time=50)], limit_s=0.1)
    assert (verdict.outcome, verdict.number) == (REFUTED, 0)
    assert "too long, however few requests come" in verdict.sentence


def test_the_slow_answers_decide_and_not_the_median() -> None:
    slow = Measurement(task=Task(label="net"), times_s=[0.01] * 90 + [0.2] * 10)
    assert decide("cpu-inference-fine", latency=slow, runs=[load(5, in_time=50)], limit_s=0.1).outcome == REFUTED


@pytest.mark.parametrize("runs", [[], [load(1, in_time=19)]], ids=["no run", "19 requests"])
def test_too_few_requests_decide_nothing(runs: list[LoadRun]) -> None:
    verdict = decide("cpu-inference-fine", latency=ALONE, runs=runs, limit_s=0.1)
    assert verdict.outcome == NOT_TESTABLE and "at least 20 requests" in verdict.flips_at


def test_a_predicted_run_makes_a_predicted_verdict() -> None:
    run = load(5, in_time=50)
    predicted = LoadRun(label="net", rate_per_s=5, duration_s=10, requests=run.requests, source="predicted")
    verdict = decide("cpu-inference-fine", latency=ALONE, runs=[predicted], limit_s=0.1)
    assert verdict.headline == "predicted: upheld"


@pytest.mark.parametrize(
    "evidence",
    [
        {"latency": ALONE, "runs": [3], "limit_s": 0.1},
        {"latency": ALONE, "runs": load(5, in_time=50), "limit_s": 0.1},
        {"latency": ALONE, "runs": [], "limit_s": 0},
        {"latency": 0.01, "runs": [], "limit_s": 0.1},
    ],
)
def test_nonsense_is_refused(evidence: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        decide("cpu-inference-fine", **evidence)


# --- inference-at-scale ----------------------------------------------------------------------------------------------


def batches(times_s: dict[int, float], **options: Any) -> Sweep:
    """Return a sweep over batch whose tasks know their batch, as throughput() makes them."""
    points = [
        Point(value=batch, measurement=took(time_s, parameters={"batch": batch}, **options))
        for batch, time_s in times_s.items()
    ]
    return Sweep(label="net", parameter="batch", points=points)


CPU = batches({1: 0.010, 10: 0.050, 100: 0.400})  # 100, 200, 250 images/s
GPU = batches({1: 0.010, 10: 0.010, 100: 0.025})  # 100, 1000, 4000 images/s


@pytest.mark.parametrize(
    ("rate_per_s", "outcome"),
    [(100, REFUTED), (250, REFUTED), (251, UPHELD), (1000, UPHELD), (4000, UPHELD), (4001, DEPENDS)],
)
def test_the_rate_decides(rate_per_s: float, outcome: str) -> None:
    verdict = decide("inference-at-scale", cpu=CPU, gpu=GPU, rate_per_s=rate_per_s)
    assert (verdict.outcome, verdict.number) == (outcome, pytest.approx(16))
    assert "The CPU answers up to 250 images/s (batch 100)" in verdict.sentence
    assert "16× as many" in verdict.sentence


def test_how_many_cpus_it_would_take() -> None:
    assert "It would take 5 such CPUs." in decide("inference-at-scale", cpu=CPU, gpu=GPU, rate_per_s=1001).sentence


def test_where_neither_is_enough_it_says_what_each_reaches() -> None:
    verdict = decide("inference-at-scale", cpu=CPU, gpu=GPU, rate_per_s=10_000)
    assert verdict.flips_at.startswith(
        "One such CPU is enough up to about 250 images/s, one such GPU up to about 4,000"
    )


def test_a_gpu_that_gives_no_more_refutes_it() -> None:
    verdict = decide("inference-at-scale", cpu=CPU, gpu=batches({1: 0.010, 10: 0.060}), rate_per_s=10_000)
    assert verdict.outcome == REFUTED and "no more than the CPU" in verdict.sentence


def test_a_rate_within_the_spread_depends() -> None:
    """The middle half of the CPU's times reaches from 0.2 s to 0.6 s: 167 to 500 images/s."""
    wide = batches({100: 0.400}, spread=0.5)
    assert decide("inference-at-scale", cpu=wide, gpu=GPU, rate_per_s=300).outcome == DEPENDS
    assert decide("inference-at-scale", cpu=wide, gpu=GPU, rate_per_s=160).outcome == REFUTED
    assert decide("inference-at-scale", cpu=wide, gpu=GPU, rate_per_s=501).outcome == UPHELD


def test_without_a_gpu_only_the_cpus_reach_is_told() -> None:
    verdict = decide("inference-at-scale", cpu=CPU, gpu=None, rate_per_s=1000)
    assert verdict.outcome == NOT_TESTABLE and "250 images/s" in verdict.sentence


def test_a_predicted_gpu_makes_a_predicted_verdict() -> None:
    predicted = batches({100: 0.025}, source="predicted")
    assert decide("inference-at-scale", cpu=CPU, gpu=predicted, rate_per_s=1000).headline == "predicted: upheld"


def test_a_sweep_over_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="no times of a batch"):
        decide("inference-at-scale", cpu=swept({1: 0.01}), gpu=None, rate_per_s=10)
